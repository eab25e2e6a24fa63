# SPDX-License-Identifier: Apache-2.0
"""Which brokers are in sync with a master, and what senders wait for."""

from __future__ import annotations

import pytest

from tests.broker.store.replication.terms import Mastery, report
from txrocketmq.broker.store.formats.put_message import PutStatus
from txrocketmq.broker.store.log.commit_point import AsyncFlush, CommitPoint, SyncFlush, Ticket
from txrocketmq.broker.store.replication.in_sync import InSyncPolicy

OK, LATE = PutStatus.PUT_OK, PutStatus.FLUSH_SLAVE_TIMEOUT


def point(mastery: Mastery, *, syncs: bool = False) -> CommitPoint:
    here = SyncFlush(mastery.config) if syncs else AsyncFlush()
    made = CommitPoint(InSyncPolicy(mastery.config, here, lambda: mastery.brokers))
    made.written = mastery.log.max_physical_offset
    return made


def test_alone_it_confirms_what_is_written() -> None:
    mastery = Mastery()
    assert point(mastery).outcome(10_000) is OK
    assert mastery.brokers.confirmed == 10_000


def test_senders_wait_for_all_in_sync() -> None:
    mastery = Mastery()
    two, three = mastery.slave(2), mastery.slave(3)
    mastery.brokers.agreed({1, 2, 3})
    mastery.log.max_physical_offset = 10_100
    commit = point(mastery)
    told: list[PutStatus] = []
    ticket = commit.outcome(10_100)
    assert isinstance(ticket, Ticket)
    ticket.then(told.append)
    for feed in (two, three):
        assert told == []
        feed.sent(len(b"".join(feed.pieces(1 << 20, 0))), 0)
        feed.reported(report(10_100), 0)
        commit.moved()
    assert told == [OK]


def test_one_that_is_late_is_waited_for_in_vain() -> None:
    mastery = Mastery()
    mastery.slave(2)
    mastery.brokers.agreed({1, 2})
    mastery.log.max_physical_offset = 10_100
    commit = point(mastery)
    ticket = commit.outcome(10_100)
    assert isinstance(ticket, Ticket)
    commit.expire(0)
    commit.expire(2_999)
    assert ticket.outcome is None
    commit.expire(3_000)
    assert ticket.outcome is LATE


def test_one_whose_connection_ends_is_waited_for_until_the_controller_agrees() -> None:
    mastery = Mastery()
    brokers, two = mastery.brokers, mastery.slave(2)
    brokers.agreed({1, 2})
    brokers.end(two)
    assert (brokers.replicated, brokers.confirmed) == (-1, 0)
    brokers.proposed = brokers.wanted(0)
    assert brokers.proposed == {1}
    assert brokers.replicated == -1
    brokers.agreed({1})
    brokers.proposed = None
    assert brokers.replicated == 10_000


def test_one_that_is_proposed_is_waited_for_already() -> None:
    mastery = Mastery()
    mastery.slave(2)
    mastery.brokers.proposed = mastery.brokers.wanted(0)
    assert mastery.brokers.proposed == {1, 2}
    mastery.log.max_physical_offset = 10_100
    assert mastery.brokers.replicated == 10_000


def test_one_that_falls_behind_is_in_sync_no_more() -> None:
    mastery = Mastery()
    mastery.slave(2, steady_ms=0)
    mastery.brokers.agreed({1, 2})
    mastery.log.max_physical_offset = 10_100
    assert mastery.brokers.wanted(15_000) == {1, 2}
    assert mastery.brokers.wanted(15_001) == {1}


def test_one_joins_when_it_has_what_is_confirmed_and_the_epoch() -> None:
    mastery = Mastery()
    two = mastery.slave(2)
    mastery.slave(3)
    mastery.brokers.agreed({1, 3})
    two.acknowledged = 9_999
    assert mastery.brokers.wanted(0) == {1, 3}
    two.acknowledged = 10_000
    assert mastery.brokers.wanted(0) == {1, 2, 3}


def test_what_was_confirmed_counts_after_a_connection_has_ended() -> None:
    mastery = Mastery()
    brokers, two, three = mastery.brokers, mastery.slave(2), mastery.slave(3)
    brokers.agreed({1, 3})
    assert brokers.replicated == 10_000
    brokers.end(three)
    mastery.log.max_physical_offset = 10_100
    two.acknowledged = 9_000
    assert brokers.wanted(0) == {1}


def test_one_that_learns_or_has_not_arrived_does_not_join() -> None:
    mastery = Mastery()
    mastery.slave(2, learner=1)
    mastery.feed()
    early = mastery.slave(4)
    early.acknowledged = 5_000
    mastery.log.max_physical_offset = 5_000  # the epoch begins at 6000
    assert mastery.brokers.wanted(0) == {1}
    assert not mastery.brokers.has(early)
    mastery.brokers.agreed({1, 4})
    assert mastery.brokers.has(early)


@pytest.mark.parametrize(("count", "outcome"), [(1, OK), (2, OK), (3, None)])
def test_a_number_of_brokers_may_be_waited_for(count: int, outcome: PutStatus | None) -> None:
    mastery = Mastery(in_sync_replicas=count)
    mastery.slave(2)
    mastery.brokers.agreed({1, 2, 3})
    commit = point(mastery)
    commit.acknowledged = [10_000]
    assert commit.policy.waits(commit, 10_000) is outcome


def test_with_a_number_one_joins_only_with_all_of_the_log() -> None:
    mastery = Mastery(in_sync_replicas=1)
    mastery.slave(2)
    assert mastery.brokers.wanted(0) == {1, 2}
    mastery.log.max_physical_offset = 10_100
    assert mastery.brokers.wanted(0) == {1}


def test_all_in_sync_may_be_waited_for_whatever_the_number_is() -> None:
    mastery = Mastery(in_sync_replicas=1, all_ack_in_sync_state_set=True)
    mastery.brokers.agreed({1, 3})
    commit = point(mastery)
    assert commit.policy.waits(commit, 10_000) is None


def test_the_disk_is_waited_for_as_well() -> None:
    mastery = Mastery(flush_disk_type="SYNC_FLUSH")
    commit = point(mastery, syncs=True)
    assert commit.policy.waits(commit, 10_000) is None
    assert commit.policy.late(commit, 10_000, OK) is PutStatus.FLUSH_DISK_TIMEOUT
    assert commit.policy.timeout_ms == 5_000
    commit.durable = 10_000
    assert commit.policy.waits(commit, 10_000) is OK
    assert commit.visible == 10_000


def test_with_too_few_in_sync_senders_are_refused() -> None:
    mastery = Mastery(min_in_sync_replicas=2)
    commit = point(mastery)
    commit.members = 1
    assert commit.lacks_brokers
    mastery.brokers.agreed({1, 2})
    assert not commit.lacks_brokers
