# SPDX-License-Identifier: Apache-2.0
"""What is confirmed: by the disk, and by replicas that only a policy knows of."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from txrocketmq.broker.store.log.commit_point import Marks, Ticket
from txrocketmq.broker.store.message_store import MessageStore, PutMessage, PutStatus

NOW_MS = 1_700_000_000_000
OpenStore = Callable[..., MessageStore]
Build = Callable[..., PutMessage]
OK = PutStatus.PUT_OK


def synced(store: MessageStore) -> None:
    job = store.flush.begin()
    assert job is not None
    job.run()
    store.flush.finish(job)


def ticket(store: MessageStore, end_offset: int | None = None) -> Ticket:
    end = store.max_physical_offset if end_offset is None else end_offset
    found = store.commit.outcome(end)
    assert isinstance(found, Ticket)
    return found


def test_what_is_written_is_confirmed_without_sync_flush(
    open_store: OpenStore, message: Build
) -> None:
    store = open_store()
    store.put([message()], NOW_MS)
    assert store.commit.outcome(store.max_physical_offset) is OK
    assert store.commit.visible == store.max_physical_offset
    assert not store.commit.is_wanted


def test_with_sync_flush_it_is_what_is_durable(open_store: OpenStore, message: Build) -> None:
    store = open_store(flush_disk_type="SYNC_FLUSH")
    told: list[tuple[int, PutStatus]] = []
    job = None
    for number in range(3):
        store.put([message()], NOW_MS)
        ticket(store).then(lambda status, n=number: told.append((n, status)))  # type: ignore[misc]
        if number == 1:
            job = store.flush.begin()
    assert store.commit.is_wanted
    assert job is not None
    job.run()
    assert told == []
    store.flush.finish(job)
    assert told == [(0, OK), (1, OK)]
    synced(store)
    assert told[2:] == [(2, OK)]
    assert not store.commit.is_wanted
    assert store.commit.outcome(store.max_physical_offset) is OK, "told at once"


def test_waiting_ends_with_the_deadline(open_store: OpenStore, message: Build) -> None:
    store = open_store(flush_disk_type="SYNC_FLUSH", sync_flush_timeout=5000)
    store.put([message()], NOW_MS)
    waiting = ticket(store)
    store.commit.expire(NOW_MS)
    store.commit.expire(NOW_MS + 4999)
    assert waiting.outcome is None
    store.commit.expire(NOW_MS + 5000)
    told: list[PutStatus] = []
    waiting.then(told.append)
    synced(store)
    assert told == [PutStatus.FLUSH_DISK_TIMEOUT], "once"


def test_who_waits_first_asks_for_a_sync(open_store: OpenStore, message: Build) -> None:
    store = open_store(flush_disk_type="SYNC_FLUSH")
    asked: list[int] = []
    store.commit.on_demand.append(lambda: asked.append(1))
    store.put([message()], NOW_MS)
    ticket(store)
    assert asked == [1]
    job = store.flush.begin()
    assert job is not None
    store.put([message()], NOW_MS)
    ticket(store)
    assert asked == [1]
    job.run()
    store.flush.finish(job)
    assert store.commit.is_wanted, "for whoever comes with the next sync"


class SyncMaster:
    """What SYNC_MASTER is: durable here, and with a replica that is not too far behind."""

    timeout_ms = 3_000

    def __init__(self) -> None:
        self.has_replica = True

    def waits(self, marks: Marks, end_offset: int) -> PutStatus | None:
        return None if self.has_replica else PutStatus.SLAVE_NOT_AVAILABLE

    def reached(self, marks: Marks) -> int:
        return min(marks.durable, marks.replicated)

    def late(self, marks: Marks, end_offset: int) -> PutStatus:
        if marks.durable < end_offset:
            return PutStatus.FLUSH_DISK_TIMEOUT
        return PutStatus.FLUSH_SLAVE_TIMEOUT

    def visible(self, marks: Marks) -> int:
        return min(marks.durable, marks.replicated)


def replicated(store: MessageStore, offset: int) -> None:
    store.commit.replicated = offset
    store.confirmed()


def test_replicas_need_nothing_but_a_policy(open_store: OpenStore, message: Build) -> None:
    store = open_store(policy=SyncMaster())
    arrived: list[int] = []
    store.on_arrival.append(lambda topic, queue_id, end: arrived.append(end))
    store.put([message()], NOW_MS)
    first_end = store.max_physical_offset
    first = ticket(store)
    store.put([message()], NOW_MS)
    second = ticket(store)
    synced(store)
    assert (first.outcome, store.max_offset("Topic", 0), arrived) == (None, 0, [])
    replicated(store, first_end)
    assert (first.outcome, second.outcome) == (OK, None)
    assert (store.max_offset("Topic", 0), arrived) == (1, [1])
    store.commit.expire(NOW_MS)
    store.commit.expire(NOW_MS + 3_000)
    assert second.outcome is PutStatus.FLUSH_SLAVE_TIMEOUT
    store.put([message()], NOW_MS)
    third = ticket(store)
    store.commit.expire(NOW_MS + 3_000)
    store.commit.expire(NOW_MS + 6_000)
    assert third.outcome is PutStatus.FLUSH_DISK_TIMEOUT
    replicated(store, 1 << 40)
    synced(store)
    assert store.max_offset("Topic", 0) == 3


def test_a_sender_is_told_at_once_that_there_is_no_replica(
    open_store: OpenStore, message: Build
) -> None:
    policy = SyncMaster()
    policy.has_replica = False
    store = open_store(policy=policy)
    store.put([message()], NOW_MS)
    outcome = store.commit.outcome(store.max_physical_offset)
    assert outcome is PutStatus.SLAVE_NOT_AVAILABLE


@pytest.mark.parametrize("is_late", [False, True])
def test_a_sender_that_fails_keeps_the_news_from_nobody_else(
    open_store: OpenStore, message: Build, is_late: bool
) -> None:
    store = open_store(flush_disk_type="SYNC_FLUSH", sync_flush_timeout=5000)
    told: list[PutStatus] = []

    def fails(_: PutStatus) -> None:
        raise ValueError("a defect")

    for listener in (fails, told.append, fails, told.append):
        store.put([message()], NOW_MS)
        ticket(store).then(listener)
    store.commit.expire(NOW_MS)
    with pytest.raises(ValueError, match="a defect"):
        store.commit.expire(NOW_MS + 5000) if is_late else synced(store)
    assert told == [PutStatus.FLUSH_DISK_TIMEOUT if is_late else OK] * 2
    assert not store.commit.is_wanted
