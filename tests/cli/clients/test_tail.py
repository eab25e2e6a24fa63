# SPDX-License-Identifier: Apache-2.0
"""`txrocketmq tail` with a client among fakes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from twisted.internet.defer import Deferred

from tests.cli.given import given
from tests.client.fakes import BROKER_A, Scene, a_route, result_of, started
from txrocketmq.cli.clients.tail import Tailing, command, main, tail
from txrocketmq.cli.reading import LOOK_AGAIN_MS
from txrocketmq.remoting.call import PendingReply, Reply
from txrocketmq.remoting.message.message import MessageExt, encode_message
from txrocketmq.remoting.protocol import offset, pull
from txrocketmq.remoting.protocol.offset import (
    GetMaxOffsetResponseHeader,
    GetMinOffsetResponseHeader,
)
from txrocketmq.remoting.protocol.pull import PullMessageResponseHeader


class Tail:
    """A tail that runs; `put` lets its pull find messages."""

    def __init__(self, scene: Scene, *arguments: str) -> None:
        self.scene = scene
        self.open: list[PendingReply] = []
        self.offset = 0
        on = scene.connections.on
        on(BROKER_A, pull.PULL_MESSAGE, self._pull)
        on(BROKER_A, offset.GET_MIN_OFFSET, Reply(GetMinOffsetResponseHeader(offset=0)))
        on(BROKER_A, offset.GET_MAX_OFFSET, Reply(GetMaxOffsetResponseHeader(offset=50)))
        options = given(command, Tailing, ["T", *arguments])
        self.done: Deferred[int] = started(tail(scene.client, options))

    def _pull(self, address: str, header: Any, body: bytes) -> PendingReply:
        self.wanted = header.subscription, header.expression_type
        self.offset = header.queue_offset
        self.open.append(PendingReply())
        return self.open[-1]

    def put(self, *bodies: bytes) -> None:
        header = PullMessageResponseHeader(
            suggest_which_broker_id=0,
            next_begin_offset=self.offset + len(bodies),
            min_offset=0,
            max_offset=99,
        )
        records = b"".join(encode_message(MessageExt("T", body)) for body in bodies)
        self.open.pop().resolve(Reply(header, records))


@pytest.fixture
def scene() -> Scene:
    scene = Scene()
    scene.routes["T"] = a_route({"broker-a": 1})
    return scene


def test_messages_are_printed_until_enough(
    scene: Scene, capsys: pytest.CaptureFixture[str]
) -> None:
    running = Tail(scene, "--count", "3")
    assert running.offset == 50
    running.put(b"one")
    assert not running.done.called
    running.put(b"two", b"three", b"four")
    assert result_of(running.done) == 0
    assert [line.rpartition(" ")[2] for line in capsys.readouterr().out.splitlines()] == [
        "one",
        "two",
        "three",
    ]


def test_what_is_asked_for(scene: Scene, capsys: pytest.CaptureFixture[str]) -> None:
    wanted = {
        (): ("*", "TAG"),
        ("--tag", "a || b"): ("a || b", "TAG"),
        ("--sql", "a > 5"): ("a > 5", "SQL92"),
    }
    for arguments, pulled in wanted.items():
        running = Tail(scene, *arguments)
        assert running.wanted == pulled
        running.done.addErrback(lambda _: None)
        running.done.cancel()
    assert main(["T", "--tag", "a", "--sql", "a > 5"]) == 2
    assert "--tag and --sql are both given: choose one" in capsys.readouterr().err


def test_from_first_as_json(scene: Scene, capsys: pytest.CaptureFixture[str]) -> None:
    running = Tail(scene, "--from", "first", "--count", "1", "--json")
    assert running.offset == 0
    running.put(b"one")
    assert json.loads(capsys.readouterr().out)["body"] == "one"


def test_a_topic_that_is_not_there_is_waited_for_and_read_whole(
    scene: Scene, capsys: pytest.CaptureFixture[str]
) -> None:
    route = scene.routes.pop("T")
    running = Tail(scene, "--count", "1")
    assert "topic T has no route" in capsys.readouterr().err
    scene.time.advance(LOOK_AGAIN_MS / 1000)
    assert capsys.readouterr().err == ""
    scene.routes["T"] = route
    scene.time.advance(LOOK_AGAIN_MS / 1000)
    assert running.offset == 0  # what came after the start of tail is not passed over
    running.put(b"one")
    assert result_of(running.done) == 0


def test_silence_ends_it(scene: Scene, capsys: pytest.CaptureFixture[str]) -> None:
    running = Tail(scene, "--timeout", "5")
    scene.time.advance(4)
    running.put(b"one")
    scene.time.advance(4)
    assert not running.done.called
    scene.time.advance(1)
    assert result_of(running.done) == 0
    assert scene.time.getDelayedCalls() == []


def test_silence_before_enough_is_told_by_the_exit_code(scene: Scene) -> None:
    running = Tail(scene, "--timeout", "5", "--count", "1")
    scene.time.advance(5)
    assert result_of(running.done) == 1


def test_silence_also_ends_the_wait_for_a_topic(scene: Scene) -> None:
    scene.routes.clear()
    running = Tail(scene, "--timeout", "2")
    for _ in range(5):
        scene.time.advance(LOOK_AGAIN_MS / 1000)
    assert result_of(running.done) == 0


def test_a_cancelled_tail_leaves_nothing_behind(scene: Scene) -> None:
    running = Tail(scene, "--timeout", "5")
    running.done.addErrback(lambda _: None)
    running.done.cancel()
    assert running.done.called
    assert scene.time.getDelayedCalls() == []
