# SPDX-License-Identifier: Apache-2.0
"""One line for each thing that people and clients do to a broker: who and what."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from twisted.logger import LogLevel, formatEvent, globalLogPublisher

from tests.broker.conftest import Parts
from tests.fakes import FakePeer
from txrocketmq.broker.journal import Journal
from txrocketmq.broker.store.disk.steps import Steps
from txrocketmq.broker.tables.clients import Client
from txrocketmq.remoting.codes import RequestCode
from txrocketmq.remoting.command import RemotingCommand
from txrocketmq.remoting.dispatch import Dispatcher, Registry
from txrocketmq.remoting.host import console_log
from txrocketmq.remoting.host.life import Opening
from txrocketmq.remoting.protocol.body.route import TopicConfig
from txrocketmq.remoting.protocol.body.topic import SubscriptionGroupConfig

Said = Callable[[], list[str]]


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> Iterator[Said]:
    """What was said since the last call, with its level: all of it, whatever was begun before."""
    monkeypatch.setattr(console_log._shown, "level", None)
    events: list[dict[str, Any]] = []
    observer: Any = events.append
    globalLogPublisher.addObserver(observer)

    def take() -> list[str]:
        lines = [f"{event['log_level'].name} {formatEvent(event)}" for event in events]
        events.clear()
        return lines

    yield take
    globalLogPublisher.removeObserver(observer)


class Scene:
    def __init__(self, parts: Parts) -> None:
        self.parts = parts
        self.dispatcher = Dispatcher(Registry(), lambda: 0, lambda: 0)
        self.journal = Journal(parts, [self.dispatcher])
        life = self.journal.life()
        assert list(life.opens(Opening())) == []
        for each in life.hears:
            each.begin()

    def serving(self, code: int) -> FakePeer:
        peer = FakePeer()
        self.dispatcher.served = peer, RemotingCommand(code)
        return peer


@pytest.fixture
def scene(parts: Parts) -> Scene:
    return Scene(parts)


def test_topics_are_made_changed_and_deleted_by_somebody(scene: Scene, said: Said) -> None:
    who = scene.serving(RequestCode.UPDATE_AND_CREATE_TOPIC).remote_address
    topics = scene.parts.topics
    topics.update(TopicConfig(topic_name="T", read_queue_nums=4, write_queue_nums=4))
    topics.update(TopicConfig(topic_name="T", read_queue_nums=8, write_queue_nums=4))
    scene.serving(17)
    topics.update(TopicConfig(topic_name="U", attributes={"+message.type": "FIFO"}))
    scene.dispatcher.served = None
    topics.delete("T")
    by = f"by UPDATE_AND_CREATE_TOPIC of {who}: "
    first, second, third, fourth = said()
    assert first == f"info topic T was created {by}read queues 4, write queues 4, permission 6"
    assert second.startswith(f"info topic T was changed {by}read queues 8")
    assert third.endswith("permission 6, {'message.type': 'FIFO'}")
    assert fourth == "info topic T was deleted by the broker itself"


def test_groups_are_made_changed_and_deleted_by_somebody(scene: Scene, said: Said) -> None:
    who = scene.serving(RequestCode.HEART_BEAT).remote_address
    groups = scene.parts.groups
    groups.find("g")
    groups.find("g")
    groups.update(SubscriptionGroupConfig(group_name="g", retry_max_times=3))
    groups.delete("g")
    assert said() == [
        f"info group g was {what} by HEART_BEAT of {who}"
        for what in ("created", "changed", "deleted")
    ]


def test_clients_come_and_go_at_the_level_of_debugging(said: Said, scene: Scene) -> None:
    peer = scene.serving(RequestCode.HEART_BEAT)
    client = Client(peer, "c1", "JAVA", 0, 0)
    parts = scene.parts
    for _ in range(2):
        parts.consumers.register(client, "g", "CONSUME_PASSIVELY", "CLUSTERING", "x", ())
        parts.producers.register("p", client)
    scene.dispatcher.served = None
    with scene.journal.because("the end of its connection"):
        parts.consumers.disconnected(peer, 0)
        parts.producers.disconnected(peer, 0)
    beat = f"HEART_BEAT of {peer.remote_address}"
    assert said() == [
        f"debug consumer group g has 1 members after {beat}",
        f"debug producer group p has 1 members after {beat}",
        "debug consumer group g has 0 members after the end of its connection",
        "debug producer group p has 0 members after the end of its connection",
    ]


def test_what_would_not_be_shown_costs_nothing(
    parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    listeners = len(parts.consumers.on_change), len(parts.producers.on_change)
    monkeypatch.setattr(console_log._shown, "level", LogLevel.info)
    Scene(parts)
    assert (len(parts.consumers.on_change), len(parts.producers.on_change)) == listeners


def test_settings_are_changed_by_somebody(scene: Scene, said: Said) -> None:
    who = scene.serving(RequestCode.UPDATE_BROKER_CONFIG).remote_address
    scene.parts.configuration.update({"autoCreateTopicEnable": "false"})
    assert said() == [
        f"info settings were changed by UPDATE_BROKER_CONFIG of {who}: autoCreateTopicEnable=false"
    ]


def test_settings_that_the_broker_finds_out_are_no_news(scene: Scene, said: Said) -> None:
    scene.parts.configuration.update({"haListenPort": "10912"}, at_start=True)
    assert said() == ["debug settings were changed by the broker itself: haListenPort=10912"]


def test_a_full_disk_is_told_once_and_again_when_it_has_room(
    scene: Scene, said: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = scene.parts.store
    for ratio in (0.0, 0.80, 0.95, 0.95, 0.80, 0.10):
        retention = store._retention
        retention.log_disk_ratio = retention.queue_disk_ratio = ratio
        retention._judge_disks()
        scene.journal.tick()
    cleaning, full, room, over = said()
    assert cleaning.startswith("warn old log files are deleted at any hour now: the disk is 80%")
    assert full.startswith("error no messages are accepted: the disk of ")
    assert "is 95% full" in full
    assert room == "info messages are accepted again"
    assert over == "info old log files are deleted at the hours of deleteWhen again"


def test_a_put_without_room_is_told_with_its_reason(scene: Scene, said: Said) -> None:
    store = scene.parts.store
    scene.journal.tick()
    store._put_error = OSError(28, "No space left on device")
    for _ in range(2):
        scene.journal.tick()
    store._put_error = None
    scene.journal.tick()
    full, room = said()
    assert full.endswith("no room for the next message: [Errno 28] No space left on device")
    assert room == "info messages are accepted again"


def test_log_files_that_are_deleted_are_told(
    scene: Scene, said: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = scene.parts.store
    monkeypatch.setattr(type(store), "min_physical_offset", 4096)
    scene.journal.tick()
    scene.journal.tick()
    deleted = "info log files before offset 4096 were deleted, 4096 bytes: "
    assert said() == [deleted + "they were older than fileReservedTime"]


def test_secrets_are_not_told(scene: Scene, said: Said) -> None:
    key, idle = "metricsGrpcExporterHeader", "without effect here"
    who = scene.serving(RequestCode.UPDATE_BROKER_CONFIG).remote_address
    scene.parts.configuration.update({key: "Authorization:hunter2"})
    assert said() == [
        f"info settings were changed by UPDATE_BROKER_CONFIG of {who}: {key}=*** ({idle}: {key})"
    ]


def test_a_slave_does_not_tell_what_its_master_tells(tmp_path: Path, said: Said) -> None:
    """There may be very many topics in the table that it copies."""
    parts = Parts(tmp_path, store_settings={"broker_role": "SLAVE"})
    scene = Scene(parts)
    parts.topic("T")
    parts.groups.find("G")
    assert said() == []
    parts.configuration.update({"autoCreateTopicEnable": "false"})
    assert len(said()) == 1
    scene.parts.store.stop(parts.now_ms)


def test_attributed_steps_pass_on_what_they_have_to_wait_for(scene: Scene, said: Said) -> None:
    def steps() -> Steps[None]:
        scene.parts.topic("T")
        yield None
        yield "a read"
        scene.parts.topic("U")

    assert list(scene.journal.attributed(steps(), "the weather")) == [None, "a read"]
    assert ["by the weather" in line for line in said()] == [True, True]
