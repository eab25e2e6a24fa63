# SPDX-License-Identifier: Apache-2.0
"""Consumers of light queues (LMQ): each message once, also when such a queue is made anew."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import pytest

from txrocketmq.client import (
    Admin,
    ConsumeFrom,
    LitePullConsumer,
    MessageModel,
    PushConsumer,
    new_message,
)
from txrocketmq.testing.server import Server, running

LIGHT: Final = "%LMQ%light"
SOURCES: Final = ("Red", "Blue")
COUNT: Final = 20
ENOUGH_S: Final = 60


@pytest.fixture
def server() -> Iterator[Server]:
    """A broker with a light queue that has a route, and whose messages come from two topics."""
    with running(enableLmq=True, enableMultiDispatch=True) as made:
        for topic in (*SOURCES, LIGHT):
            made.create_topic(topic, queues=1)
        yield made


def fill(server: Server, word: str, count: int) -> list[str]:
    """Sends messages, so that each two of them have one offset in the queues they are sent to."""
    bodies = []
    with server.producer("fills") as producer:
        for n in range(count):
            for topic in SOURCES:
                bodies.append(f"{word}{n} {topic}")
                listed = {"INNER_MULTI_DISPATCH": LIGHT}
                producer.send(new_message(topic, bodies[-1], properties=listed))
    return bodies


class Heard:
    """What a listener has heard; the events tell that it has heard so many messages."""

    def __init__(self, count: int, first: int = 0) -> None:
        self.bodies: list[str] = []
        self.first = threading.Event()
        self.enough = threading.Event()
        self._first, self._count = first, count

    def __call__(self, messages: Sequence[Any], _: Any) -> None:
        self.bodies += [each.body.decode() for each in messages]
        if len(set(self.bodies)) >= self._first:
            self.first.set()
        if len(set(self.bodies)) >= self._count:
            self.enough.set()


def broadcasting(server: Server, folder: Path, heard: Heard) -> PushConsumer:
    return PushConsumer(
        "everybody", {LIGHT: "*"}, heard, namesrv_addr=server.namesrv_addr,
        message_model=MessageModel.BROADCASTING, local_offset_store_dir=folder,
        consume_from=ConsumeFrom.FIRST_OFFSET, consume_concurrency=1,
    )  # fmt: skip


@pytest.mark.parametrize("orderly", [False, True])
def test_each_message_is_consumed_and_committed(server: Server, orderly: bool) -> None:
    sent = fill(server, "a", 6)
    heard = Heard(len(sent))
    settings: dict[str, Any] = {
        "namesrv_addr": server.namesrv_addr,
        "consume_from": ConsumeFrom.FIRST_OFFSET,
    }
    with PushConsumer(
        "pushes", {LIGHT: "*"}, heard, orderly=orderly, consume_concurrency=1, **settings
    ):
        assert heard.enough.wait(ENOUGH_S)
    assert sorted(heard.bodies) == sorted(sent)
    with LitePullConsumer("pushes", {LIGHT: "*"}, auto_commit=False, **settings) as consumer:
        consumer.subscribe(LIGHT)
        assert consumer.poll(2_000) == [], "all of it was committed"
        (queue,) = consumer.assignment
        assert consumer.committed(queue) == len(sent)
        consumer.seek_to_begin(queue)
        seen: list[Any] = []
        while len(seen) < len(sent):
            seen += consumer.poll(2_000)
    assert [(each.queue_id, each.queue_offset) for each in seen] == [
        (0, offset) for offset in range(len(sent))
    ]


def test_a_light_queue_that_is_made_anew_is_read_from_its_first_message(
    server: Server, tmp_path: Path
) -> None:
    """By a consumer that kept its offset in a file, and by one that stayed connected."""
    old = fill(server, "old", 4)
    heard = Heard(len(old))
    with broadcasting(server, tmp_path, heard):
        assert heard.enough.wait(ENOUGH_S)
    stays = Heard(len(old) + COUNT, len(old))
    with PushConsumer(
        "stays", {LIGHT: "*"}, stays, namesrv_addr=server.namesrv_addr,
        consume_from=ConsumeFrom.FIRST_OFFSET,
    ):  # fmt: skip
        assert stays.first.wait(ENOUGH_S)
        with Admin(namesrv_addr=server.namesrv_addr) as admin:
            admin.delete_topic(LIGHT)
        server.create_topic(LIGHT, queues=1)
        new = fill(server, "new", COUNT // len(SOURCES))
        assert stays.enough.wait(ENOUGH_S)
    assert set(new) <= set(stays.bodies)
    heard = Heard(len(new))
    with broadcasting(server, tmp_path, heard):
        assert heard.enough.wait(ENOUGH_S)
    assert sorted(heard.bodies) == sorted(new)
