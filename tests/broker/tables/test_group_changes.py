# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.broker.conftest import Parts
from tests.fakes import FakePeer
from txrocketmq.broker.tables.group_changes import TOLD_A_TURN, GroupChanges
from txrocketmq.remoting.codes import RequestCode
from txrocketmq.remoting.protocol.body.topic import SubscriptionGroupConfig


def at_once(call: Callable[[], None]) -> None:
    call()


@pytest.fixture
def changes(parts: Parts) -> GroupChanges:
    made = GroupChanges(parts.config, parts.groups, parts.consumers, at_once)
    parts.consumers.on_change.append(made.changed)
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
    parts.set(notify_consumer_ids_changed_enable=False)
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
    parts.set(real_time_notify_consumer_change=False)
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


def test_those_who_stay_are_told_once_when_many_go_in_one_turn(parts: Parts) -> None:
    soon: list[Callable[[], None]] = []
    changes = GroupChanges(parts.config, parts.groups, parts.consumers, soon.append)
    members = [parts.consumer("g", f"c{n}", "T") for n in range(20)]
    parts.consumers.on_change.append(changes.changed)
    for peer in members[2:]:
        parts.consumers.disconnected(peer, parts.now_ms)
    assert told(members[0]) == []
    for call in soon:
        call()
    assert [told(peer) for peer in members[:2]] == [[IDS_CHANGED]] * 2
    assert not any(told(peer) for peer in members[2:])


def test_many_are_told_in_slices(parts: Parts) -> None:
    soon: list[Callable[[], None]] = []
    changes = GroupChanges(parts.config, parts.groups, parts.consumers, soon.append)
    members = [parts.consumer("g", f"c{n}", "T") for n in range(3 * TOLD_A_TURN)]
    parts.consumers.on_change.append(changes.changed)
    parts.consumers.disconnected(members[0], parts.now_ms)
    turns = 0
    while soon:
        before = sum(bool(told(peer)) for peer in members)
        soon.pop(0)()
        assert not soon[1:]
        assert sum(bool(told(peer)) for peer in members) - before <= TOLD_A_TURN
        turns += 1
    assert turns == 4
    assert all(told(peer) == [IDS_CHANGED] for peer in members[1:])
    parts.consumers.disconnected(members[1], parts.now_ms)
    assert len(soon) == 1, "it goes on with the next change"


def test_a_member_that_cannot_be_told_does_not_silence_the_others(parts: Parts) -> None:
    soon: list[Callable[[], None]] = []
    changes = GroupChanges(parts.config, parts.groups, parts.consumers, soon.append)
    member = parts.consumer("g", "c1", "T")
    parts.consumers.on_change.append(changes.changed)

    def fail(*_: object) -> None:
        raise ValueError

    patched = pytest.MonkeyPatch()
    patched.setattr(member, "invoke_oneway", fail)
    gone = parts.consumer("g", "c2", "T")
    with pytest.raises(ValueError):  # noqa: PT011 - ours
        soon.pop(0)()
    patched.undo()
    parts.consumers.disconnected(gone, parts.now_ms)
    soon.pop(0)()
    assert told(member) == [IDS_CHANGED]
