# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.broker.conftest import Parts
from tests.broker.test_service import Client, Scene
from tests.broker.updated import update
from tests.fakes import FakePeer
from tests.live import Checks
from txrocketmq.broker.pulls import broadcast_offsets
from txrocketmq.broker.pulls.broadcast_offsets import BroadcastOffsets
from txrocketmq.broker.tables.clients import Client as ConsumerClient
from txrocketmq.broker.work.walks import Walks
from txrocketmq.remoting.message.flags import PullSysFlag
from txrocketmq.remoting.protocol.body.route import TopicConfig
from txrocketmq.remoting.protocol.pull import (
    PULL_MESSAGE,
    PullMessageRequestHeader,
    RequestSource,
)

PROXY = RequestSource.PROXY_FOR_BROADCAST


def pull(offset: int, *, source: int | None = PROXY, **fields: Any) -> PullMessageRequestHeader:
    values: dict[str, Any] = {
        "consumer_group": "g",
        "topic": "T",
        "queue_id": 0,
        "queue_offset": offset,
        "max_msg_nums": 32,
        "sys_flag": 0,
        "commit_offset": 0,
        "suspend_timeout_millis": 0,
        "sub_version": 0,
        "request_source": source,
        "proxy_forward_client_id": "c1" if source == PROXY else None,
    }
    return PullMessageRequestHeader(**{**values, **fields})


@pytest.fixture
def members(parts: Parts, monkeypatch: pytest.MonkeyPatch) -> BroadcastOffsets:
    """Of a topic whose queues have ten messages each, without any of them in a file."""
    parts.topic("T")
    monkeypatch.setattr(parts.store, "max_offset", lambda *_: 10)
    return parts.broadcast_offsets


def scan(parts: Parts) -> None:
    parts.broadcast_offsets.scan(Walks(lambda call: call(), lambda: 0.0))


def test_who_pulls(parts: Parts, members: BroadcastOffsets) -> None:
    """Members of groups that broadcast, and whoever a proxy pulls for; nobody else."""
    peer = parts.consumer("g", "c2", "T", model="BROADCASTING")
    other = parts.consumer("h", "c3", "T")
    assert members.client_of(pull(-1), FakePeer()) == "c1"
    assert members.client_of(pull(0, source=None), peer) == "c2"
    assert members.client_of(pull(0, source=RequestSource.SDK), peer) == "c2"
    assert members.client_of(pull(0, source=None), FakePeer(1)) is None
    assert members.client_of(pull(0, source=None, consumer_group="h"), other) is None
    assert members.client_of(pull(0, source=None, consumer_group="no"), peer) is None
    parts.set(enable_broadcast_offset_store=False)
    assert members.client_of(pull(-1), FakePeer()) is None


def test_a_new_member_begins_at_the_end_unless_all_is_new(
    parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    members = parts.broadcast_offsets
    assert members.first_offset(pull(-1), "c1") == 0
    parts.put("T")
    parts.put("T")
    assert members.first_offset(pull(-1), "c1") == 0
    monkeypatch.setattr(parts.store, "is_recent", lambda *_, **__: False)
    assert members.first_offset(pull(-1), "c1") == 2


def test_a_pull_that_says_where_it_goes_on_is_right(members: BroadcastOffsets) -> None:
    assert members.first_offset(pull(3), "c1") is None
    members.pulled(pull(3), "c1", 3)
    assert members.first_offset(pull(4), "c1") is None
    assert members.first_offset(pull(4, source=None), "c2") is None


def test_a_member_of_a_proxy_goes_on_where_it_was(members: BroadcastOffsets) -> None:
    members.pulled(pull(5), "c1", 5)
    members.pulled(pull(4), "c1", 4)  # it only ever rises
    assert members.first_offset(pull(-1), "c1") == 5
    assert members.first_offset(pull(-1, queue_id=1), "c1") == 10


def test_offsets_of_a_topic_that_was_deleted_do_not_count(
    parts: Parts, members: BroadcastOffsets
) -> None:
    members.pulled(pull(12), "c1", 12)
    parts.offsets.commit("g@broadcast", "T", 0, 12)
    assert members.first_offset(pull(-1), "c1") == 10
    members.pulled(pull(3), "c1", 3)
    assert members.first_offset(pull(-1), "c1") == 3


def test_a_member_that_changes_sides_is_told(members: BroadcastOffsets) -> None:
    members.pulled(pull(5), "c1", 5)
    assert members.first_offset(pull(0, source=None), "c1") == 5
    members.pulled(pull(5, source=None), "c1", 5)
    assert members.first_offset(pull(6, source=None), "c1") is None
    assert members.first_offset(pull(0), "c1") == 5


def test_a_stranger_goes_on_where_the_slowest_was(parts: Parts, members: BroadcastOffsets) -> None:
    members.pulled(pull(9), "c1", 9)
    members.pulled(pull(7), "c2", 7)
    members.pulled(pull(2, queue_id=1), "c2", 2)
    scan(parts)
    assert parts.offsets.of("g@broadcast", "T") == {0: 7, 1: 2}
    assert members.first_offset(pull(-1), "c3") == 7
    assert parts.offsets.groups_of("T") == set()


@pytest.mark.parametrize(("is_there", "forgotten_after_s"), [(True, 300), (False, 120)])
def test_members_are_forgotten(
    parts: Parts, members: BroadcastOffsets, is_there: bool, forgotten_after_s: int
) -> None:
    if is_there:
        parts.consumer("g", "c1", "T", model="BROADCASTING")
    members.pulled(pull(9), "c1", 9)
    parts.now_ms += forgotten_after_s * 1000 - 1
    scan(parts)
    members.pulled(pull(3, consumer_group="h"), "c1", 3)
    assert members._members.keys() == {("T", "g"), ("T", "h")}
    parts.now_ms += 1
    scan(parts)
    assert members._members.keys() == {("T", "h")}
    assert parts.offsets.of("g@broadcast", "T") == {0: 9}


def test_members_have_a_limit(
    members: BroadcastOffsets, parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(broadcast_offsets, "MAX_MEMBERS", 2)
    for number in range(4):
        members.pulled(pull(number), f"c{number}", number)
    assert list(members._members["T", "g"]) == ["c0", "c1"]
    parts.now_ms += 200_000
    scan(parts)
    members.pulled(pull(1), "c9", 1)
    assert list(members._members["T", "g"]) == ["c9"]


def test_a_scan_has_pauses_and_is_not_begun_twice(parts: Parts, members: BroadcastOffsets) -> None:
    later: list[Callable[[], None]] = []
    clock = iter(range(1000))
    walks = Walks(later.append, lambda: float(next(clock)))
    members.pulled(pull(1), "c1", 1)
    members.pulled(pull(1, topic="U"), "c1", 1)
    members.scan(walks)
    members.scan(walks)
    (go_on,) = later
    while later:
        later.pop(0)()
    assert go_on is not None
    assert parts.offsets.of("g@broadcast", "U") == {0: 1}
    members.scan(walks)
    assert later


# ---------------------------------------------------------------- live settings

check = Checks()
"""See test_live_settings.py."""


def broadcast_pull(scene: Scene) -> int:
    """How many members of broadcasting groups are remembered after one of them has pulled."""
    parts = scene.broker.parts
    header = pull(0, sys_flag=PullSysFlag.SUBSCRIPTION, subscription="*")
    client = Client(scene)
    client.tell(PULL_MESSAGE, header)
    client.heard()
    return parts.broadcast_offsets.count


@check
def enable_broadcast_offset_store(scene: Scene) -> None:
    scene.broker.parts.topics.update(TopicConfig(topic_name="T"))
    update(scene, enableBroadcastOffsetStore="false")
    assert broadcast_pull(scene) == 0
    update(scene, enableBroadcastOffsetStore="true")
    assert broadcast_pull(scene) == 1


@check
def broadcast_offset_expire_second(scene: Scene) -> None:
    scene.broker.parts.topics.update(TopicConfig(topic_name="T"))
    update(scene, broadcastOffsetExpireSecond="20")
    assert broadcast_pull(scene) == 1
    scene.pass_ms(30_000, step_ms=1_000)
    assert scene.broker.parts.broadcast_offsets.count == 0


@check
def broadcast_offset_expire_max_second(scene: Scene) -> None:
    scene.broker.parts.topics.update(TopicConfig(topic_name="T"))
    update(scene, broadcastOffsetExpireMaxSecond="20")
    peer = FakePeer()
    scene.broker.parts.consumers.register(
        ConsumerClient(peer, "c1", "JAVA", 407, scene.broker.clock.steady_ms()),
        "g", "CONSUME_PASSIVELY", "BROADCASTING", "CONSUME_FROM_LAST_OFFSET", [],
    )  # fmt: skip
    assert broadcast_pull(scene) == 1
    scene.pass_ms(30_000, step_ms=1_000)
    assert scene.broker.parts.broadcast_offsets.count == 0


@pytest.mark.parametrize("name", check)
def test_a_live_setting_counts_at_once(tmp_path: Path, name: str) -> None:
    check[name](Scene(tmp_path).start())
