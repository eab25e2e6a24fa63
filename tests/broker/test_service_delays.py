# SPDX-License-Identifier: Apache-2.0
"""Delayed messages in a whole broker: see test_service.py."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from twisted.internet.interfaces import IDelayedCall
from twisted.logger import capturedLogs, formatEvent

from tests.broker.test_service import Client, Scene
from txrocketmq.broker.delays import schedule
from txrocketmq.broker.intake.inner_message import InnerMessage
from txrocketmq.broker.work import slices


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path).start()


def test_delayed_messages_are_delivered_in_slices(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schedule, "MAX_BATCH", 1)
    monkeypatch.setattr(slices, "SLICE_MS", 0)
    client, store = Client(scene), scene.broker.parts.store
    for _ in range(5):
        client.send(DELAY="1")
    scene.pass_ms(950)
    assert store.max_offset("T", 0) == 0
    others_turn: list[int] = []
    later = scene.clock.later

    def spy(delay_ms: float, call: Callable[..., object], *args: Any) -> IDelayedCall:
        if delay_ms == 0:
            others_turn.append(store.max_offset("T", 0))
        return later(delay_ms, call, *args)

    monkeypatch.setattr(scene.clock, "later", spy)
    scene.pass_ms(100)
    assert others_turn == [1, 2, 3, 4, 5]
    client.send(DELAY="1")
    scene.pass_ms(1_200)
    assert store.max_offset("T", 0) == 6


def test_a_delayed_message_that_is_none_is_a_dead_letter_in_a_topic(scene: Scene) -> None:
    waiting = InnerMessage("SCHEDULE_TOPIC_XXXX", 0, b"lost", 1, bytes(8), bytes(8))
    waiting.properties = {"REAL_TOPIC": "x" * 300, "REAL_QID": "0"}
    scene.broker.parts.store.put([waiting.to_put()], scene.clock.now_ms())
    with capturedLogs() as events:
        scene.pass_ms(1_200)
    told = [formatEvent(event) for event in events]
    assert (
        "1 messages of delay level 1, from offset 0 on, cannot be delivered: MESSAGE_ILLEGAL."
        " They are dead letters in the topic %DLQ%SCHEDULE_TOPIC_XXXX"
    ) in told
    assert len(told) == 2, "and that the topic was made"
    topic = scene.broker.parts.topics.get("%DLQ%SCHEDULE_TOPIC_XXXX")
    assert topic is not None
    assert topic.read_queue_nums == 1
    scene.pass_ms(30_000, 1_000)
    assert scene.broker.parts.store.max_offset("%DLQ%SCHEDULE_TOPIC_XXXX", 0) == 1


def test_a_full_disk_lets_delays_wait_and_is_told(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = Client(scene)
    client.send(DELAY="1")
    with monkeypatch.context() as full, capturedLogs() as events:
        full.setattr(type(scene.broker.parts.store), "writeable", property(lambda _: False))
        scene.pass_ms(9_000)
    told = [formatEvent(event) for event in events]
    assert told[0] == (
        "delay level 1 is on hold: the store accepts no messages for T: SERVICE_NOT_AVAILABLE"
    )
    assert len(told) == 2, "and that no messages are taken"
    scene.pass_ms(11_000)
    assert scene.broker.parts.store.max_offset("T", 0) == 1


def test_what_waits_for_the_log_does_not_wait_for_its_period(tmp_path: Path) -> None:
    """A kill in between would have producers of transactions asked once more."""
    scene = Scene(tmp_path, {"flush_interval_commit_log": 10_000}).start()
    store, after = scene.broker.parts.store, scene.broker.parts.after_durable
    client = Client(scene)
    scene.pass_ms(1_000)
    client.send()
    after.put([InnerMessage("op", 0, b"ended", 1, bytes(8), bytes(8))])
    scene.pass_ms(49, 7)
    assert store.max_offset("op", 0) == 0
    scene.pass_ms(2, 1)
    assert store.max_offset("op", 0) == 1
