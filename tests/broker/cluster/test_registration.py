# SPDX-License-Identifier: Apache-2.0
"""In a whole broker, with name servers that answer: tests/broker/test_service.py."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.broker.conftest import Parts
from txrocketmq.broker.cluster import registration
from txrocketmq.broker.cluster.registration import FIRST_PAUSE_MS, PAUSE_MS, Registration
from txrocketmq.broker.work.life import Beat
from txrocketmq.remoting.protocol.body.route import TopicConfig


class Scene:
    """A registration, whose name servers note what they are told."""

    def __init__(self, parts: Parts) -> None:
        self.parts = parts
        self.later: list[tuple[float, Callable[[], None]]] = []
        self.told: list[object] = []
        self.registration = Registration(
            parts.topics,
            parts.configuration,
            lambda: parts.now_ms,
            lambda delay_ms, call: self.later.append((delay_ms, call)),
        )
        for each in self.registration.life().hears:
            each.begin()

    def starts(self) -> None:
        name_servers: Any = self
        self.registration.name_servers = name_servers

    is_registered = True

    def set_addresses(self, text: str) -> None:
        assert text == self.parts.config.namesrv_addr

    def register(self, *, force: bool) -> None:
        self.told.append("all" if force else "what is missing")

    def register_topics(self, topics: Sequence[TopicConfig]) -> None:
        self.told.append([topic.topic_name for topic in topics])

    def tick(self) -> None:
        self.told.append("tick")

    def pause(self) -> float:
        delay_ms, call = self.later.pop(0)
        call()
        return delay_ms


@pytest.fixture
def scene(parts: Parts) -> Scene:
    made = Scene(parts)
    made.starts()
    return made


def test_a_changed_topic_is_registered_at_once_and_those_that_follow_together(
    scene: Scene,
) -> None:
    scene.parts.topic("A")
    assert scene.told == [["A"]]
    scene.parts.topic("B")
    scene.parts.topic("C")
    assert scene.told == [["A"]]
    assert scene.pause() == FIRST_PAUSE_MS
    assert scene.told == [["A"], ["B", "C"]]
    assert scene.pause() == 2 * FIRST_PAUSE_MS
    assert scene.later == [], "nothing has changed meanwhile"
    scene.parts.topic("D")
    assert scene.told[2:] == [["D"]]


def test_pauses_grow_up_to_a_limit(scene: Scene) -> None:
    pauses = []
    for number in range(8):
        scene.parts.topic(f"T{number}")
        scene.parts.topic(f"U{number}")
        pauses.append(scene.pause())
    assert pauses[0] == FIRST_PAUSE_MS
    assert pauses[-1] == PAUSE_MS


def test_a_deleted_topic_has_all_registered(scene: Scene) -> None:
    scene.parts.topic("A")
    scene.parts.topics.delete("A")
    scene.pause()
    assert scene.told == [["A"], "all"]


def test_so_have_many(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registration, "MAX_SINGLE_TOPICS", 2)
    for name in "ABCD":
        scene.parts.topic(name)
    scene.pause()
    assert scene.told == [["A"], "all"]


def test_a_broker_that_stops_registers_no_change(scene: Scene) -> None:
    scene.parts.topic("A")
    scene.parts.topic("B")
    scene.registration.forget_changes()
    scene.pause()
    assert scene.told == [["A"]]


def test_all_are_registered_after_a_period_within_limits(scene: Scene) -> None:
    for configured_ms, period_ms in ((1, 10_000), (30_000, 30_000), (99_000, 60_000)):
        scene.parts.set(register_name_server_period=configured_ms)
        beats = [each for each in scene.registration.life().beats if isinstance(each, Beat)]
        assert [each.period_ms for each in beats] == [period_ms, 1_000]
    beats[0].work()
    scene.parts.set(force_register=False)
    beats[0].work()
    beats[1].work()
    assert scene.told == ["all", "what is missing", "tick"]


def test_before_the_start_nobody_is_told(parts: Parts) -> None:
    scene = Scene(parts)
    parts.topic("A")
    scene.pause()
    scene.registration.register(force=True)
    assert scene.told == []
    assert not scene.registration.is_done
    scene.starts()
    assert scene.registration.is_done


def test_what_is_registered_is_as_the_broker_permits(scene: Scene) -> None:
    scene.parts.set(broker_permission=4, split_registration_size=7)
    table = scene.registration.table()
    assert (table.permission, table.part_size) == (4, 7)
    assert table.topics == scene.parts.topics.all()


def test_a_slave_looks_for_its_master_and_registers_no_topic_by_itself(tmp_path: Path) -> None:
    parts = Parts(tmp_path, store_settings={"broker_role": "SLAVE"})
    scene = Scene(parts)
    scene.starts()
    parts.set(force_register=False)
    found: list[tuple[str | None, str | None]] = []
    scene.registration.on_master.append(lambda *news: found.append(news))
    beats = [each for each in scene.registration.life().beats if isinstance(each, Beat)]
    assert [each.period_ms for each in beats] == [30_000, 1_000, 10_000]
    parts.topic("A")
    assert scene.told == [], "its topics are those of the master"
    beats[0].work()
    beats[2].work()
    assert scene.told == ["all", "all"]
    scene.registration._found_master("10.0.0.9:10912", "10.0.0.9:10911")
    assert found == [("10.0.0.9:10912", "10.0.0.9:10911")]
    beats[2].work()
    assert scene.told == ["all", "all"], "it is found"
    parts.store.stop(parts.now_ms)
