# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest

from tests.broker.conftest import Parts
from tests.fakes import FakePeer
from txrocketmq.broker.group_changes import GroupChanges
from txrocketmq.remoting.codes import RequestCode
from txrocketmq.remoting.protocol.body.topic import SubscriptionGroupConfig


@pytest.fixture
def changes(parts: Parts) -> GroupChanges:
    made = GroupChanges(parts.config, parts.groups, parts.consumers)
    parts.consumers.on_change = made.changed
    return made


def told(peer: FakePeer) -> list[tuple[int, object]]:
    return [(call.code, header.encode()) for call, header, _ in peer.told]


IDS_CHANGED = (RequestCode.NOTIFY_CONSUMER_IDS_CHANGED, {"consumerGroup": "g"})


def test_all_members_are_told_at_once(parts: Parts, changes: GroupChanges) -> None:
    first = parts.consumer("g", "c1", "T")
    second = parts.consumer("g", "c2", "T")
    assert told(first) == [IDS_CHANGED, IDS_CHANGED]
    assert told(second) == [IDS_CHANGED]
    parts.consumers.disconnected(second, parts.now_ms)
    assert told(first) == [IDS_CHANGED] * 3


def test_broadcasting_consumers_are_not_told(parts: Parts, changes: GroupChanges) -> None:
    assert told(parts.consumer("g", "c1", "T", model="BROADCASTING")) == []


def test_nobody_is_told_where_that_is_off(parts: Parts, changes: GroupChanges) -> None:
    parts.config.notify_consumer_ids_changed_enable = False
    assert told(parts.consumer("g", "c1", "T")) == []


def test_a_group_may_have_it_off_for_itself(parts: Parts, changes: GroupChanges) -> None:
    parts.groups.update(
        SubscriptionGroupConfig(group_name="g", notify_consumer_ids_changed_enable=False)
    )
    assert told(parts.consumer("g", "c1", "T")) == []
    assert len(told(parts.consumer("h", "c1", "T"))) == 1


def test_without_real_time_members_are_told_once_for_all_changes(
    parts: Parts, changes: GroupChanges
) -> None:
    parts.config.real_time_notify_consumer_change = False
    first = parts.consumer("g", "c1", "T")
    second = parts.consumer("g", "c2", "T")
    gone = parts.consumer("h", "c3", "T")
    parts.consumers.disconnected(gone, parts.now_ms)
    assert told(first) == []
    changes.tick()
    assert told(first) == told(second) == [IDS_CHANGED]
    assert told(gone) == []
    changes.tick()
    assert told(first) == [IDS_CHANGED]
