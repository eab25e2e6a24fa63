# SPDX-License-Identifier: Apache-2.0
"""A whole broker whose wall clock is set back or forward by an hour: see test_service.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.broker.test_service import Client, Scene
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.protocol.body.route import TopicConfig

HOUR_MS = 3_600_000

either_way = pytest.mark.parametrize("set_by_ms", [-HOUR_MS, HOUR_MS])


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path).start()


@either_way
def test_a_pull_waits_as_long_as_it_wanted(scene: Scene, set_by_ms: int) -> None:
    consumer = Client(scene)
    scene.broker.parts.topics.update(TopicConfig(topic_name="T"))
    consumer.pull()
    scene.clock.set_by_ms = set_by_ms
    scene.pass_ms(14_000, 500)
    assert consumer.heard() == []
    scene.pass_ms(2_000, 500)
    (answer,) = consumer.heard()
    assert answer.code == ResponseCode.PULL_NOT_FOUND


@either_way
def test_clients_live_and_expire_as_ever(scene: Scene, set_by_ms: int) -> None:
    client = Client(scene)
    client.beat()
    scene.clock.set_by_ms = set_by_ms
    scene.pass_ms(110_000, 1_000)
    assert len(scene.broker.parts.consumers.groups()) == 1
    scene.pass_ms(25_000, 1_000)
    assert scene.broker.parts.consumers.groups() == []


def test_a_delayed_message_is_held_no_longer_than_its_delay(scene: Scene) -> None:
    client = Client(scene)
    for level in ("4", "5"):  # 30 s, 60 s
        client.send(DELAY=level)
    scene.pass_ms(20_000, 1_000)
    scene.clock.set_by_ms = -55_000  # less than a delay: nothing seems to be wrong
    scene.pass_ms(9_000, 1_000)
    assert scene.broker.parts.store.max_offset("T", 0) == 0
    scene.pass_ms(2_000)
    assert scene.broker.parts.store.max_offset("T", 0) == 1
    scene.pass_ms(28_000, 1_000)
    assert scene.broker.parts.store.max_offset("T", 0) == 1
    scene.pass_ms(2_000)
    assert scene.broker.parts.store.max_offset("T", 0) == 2


def test_those_stored_after_the_clock_was_set_wait_their_delay(scene: Scene) -> None:
    client = Client(scene)
    scene.pass_ms(2_000)
    client.send(DELAY="3")
    scene.pass_ms(50)
    client.send(DELAY="3")
    scene.clock.set_by_ms = -HOUR_MS
    client.send(DELAY="3")  # before anybody looked at the clock
    scene.pass_ms(5_000)
    client.send(DELAY="3")
    scene.pass_ms(4_500)
    assert scene.broker.parts.store.max_offset("T", 0) == 0
    scene.pass_ms(1_000)
    assert scene.broker.parts.store.max_offset("T", 0) == 3
    scene.pass_ms(4_000)
    assert scene.broker.parts.store.max_offset("T", 0) == 3
    scene.pass_ms(1_000)
    assert scene.broker.parts.store.max_offset("T", 0) == 4


def test_a_level_that_stands_still_goes_on(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    client = Client(scene)
    client.send(DELAY="1")
    with monkeypatch.context() as full:
        full.setattr(type(scene.broker.parts.store), "writeable", property(lambda _: False))
        scene.pass_ms(1_500)
        scene.clock.set_by_ms = -HOUR_MS
    scene.pass_ms(11_000)
    assert scene.broker.parts.store.max_offset("T", 0) == 1


@either_way
def test_files_are_flushed_and_figures_counted(scene: Scene, set_by_ms: int) -> None:
    client = Client(scene)
    client.send()
    scene.pass_ms(2_000)
    scene.clock.set_by_ms = set_by_ms
    client.send()
    scene.pass_ms(2_000)
    flush = scene.broker.parts.store.flush
    assert flush.flushed_offset == flush.appended_offset > 0
    queue = scene.broker.parts.store._queues.find("T", 0)
    assert queue is not None
    scene.pass_ms(62_000, 1_000)
    assert queue.files.flushed_offset == 40
    assert 0 < scene.broker.parts.stats.topic_put_tps("T") < 1
    info = scene.broker.parts.store.runtime_info(scene.clock.steady_ms())
    assert info["runtime"].startswith("[ 0 days, 0 hours, 1 minutes, ")
