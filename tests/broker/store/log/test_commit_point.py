# SPDX-License-Identifier: Apache-2.0
"""What is confirmed: by the disk, and by replicas that only a policy knows of."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from txrocketmq.broker.store.log.commit_point import Ticket
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


def acknowledged(store: MessageStore, *offsets: int) -> None:
    store.commit.acknowledged = offsets
    store.confirmed()


def late(store: MessageStore, timeout_ms: int = 3000) -> None:
    store.commit.expire(NOW_MS)
    store.commit.expire(NOW_MS + timeout_ms)


def put(store: MessageStore, message: Build) -> PutStatus | Ticket:
    store.put([message()], NOW_MS)
    return store.commit.outcome(store.max_physical_offset)


def test_a_sync_master_waits_for_any_slave(open_store: OpenStore, message: Build) -> None:
    store = open_store(broker_role="SYNC_MASTER")
    acknowledged(store, 0)
    first, first_end = put(store, message), store.max_physical_offset
    second = put(store, message)
    assert isinstance(first, Ticket)
    assert isinstance(second, Ticket)
    assert store.max_offset("Topic", 0) == 2, "seen all the same"
    acknowledged(store, first_end, 0)
    assert (first.outcome, second.outcome) == (OK, None)
    late(store)
    assert second.outcome is PutStatus.FLUSH_SLAVE_TIMEOUT
    acknowledged(store, store.max_physical_offset)
    assert store.commit.outcome(store.max_physical_offset) is OK


def test_a_sender_is_told_at_once_that_no_slave_is_near(
    open_store: OpenStore, message: Build
) -> None:
    store = open_store(broker_role="SYNC_MASTER", ha_slave_fallbehind_max=1000)
    assert put(store, message) is PutStatus.SLAVE_NOT_AVAILABLE
    acknowledged(store, store.max_physical_offset)
    assert isinstance(put(store, message), Ticket)
    for _ in range(20):
        outcome = put(store, message)
    assert outcome is PutStatus.SLAVE_NOT_AVAILABLE


@pytest.mark.parametrize("needed", [1, 2, 3])
@pytest.mark.parametrize("slaves", [0, 1, 2])
def test_so_many_brokers_are_needed(
    open_store: OpenStore, message: Build, needed: int, slaves: int
) -> None:
    store = open_store(broker_role="SYNC_MASTER", in_sync_replicas=needed)
    outcome = put(store, message)
    if needed == 1:
        assert outcome is OK
        return
    assert isinstance(outcome, Ticket)
    acknowledged(store, *([store.max_physical_offset] * slaves + [0]))
    assert outcome.outcome is (OK if slaves + 1 >= needed else None)
    late(store)
    assert outcome.outcome is (OK if slaves + 1 >= needed else PutStatus.FLUSH_SLAVE_TIMEOUT)


@pytest.mark.parametrize(
    ("members", "slaves", "auto", "least", "lacks", "waits"),
    [
        (None, 0, False, 1, False, True),  # without enableSlaveActingMaster
        (1, 0, False, 1, True, True),
        (1, 1, False, 1, True, False),  # no name server has named the slave
        (2, 0, False, 1, True, True),
        (2, 1, False, 1, False, False),
        (1, 0, True, 1, False, False),
        (1, 0, True, 2, True, True),
        (3, 1, True, 2, False, False),
    ],
)
def test_a_group_with_an_acting_slave_may_have_too_few_brokers(
    open_store: OpenStore, message: Build, members: int | None, slaves: int, auto: bool,
    least: int, lacks: bool, waits: bool,
) -> None:  # fmt: skip
    store = open_store(
        broker_role="SYNC_MASTER", in_sync_replicas=2, enable_auto_in_sync_replicas=auto,
        min_in_sync_replicas=least, ha_max_gap_not_in_sync=1_000,
    )  # fmt: skip
    store.commit.members = members
    store.put([message()], NOW_MS)
    acknowledged(store, *[store.max_physical_offset] * slaves)
    assert store.commit.lacks_brokers is lacks
    assert isinstance(store.commit.outcome(store.max_physical_offset), Ticket) is waits
    for _ in range(20):
        store.put([message()], NOW_MS)
    assert store.commit.lacks_brokers is (members is not None and (not auto or least > 1)), "late"


def test_only_a_sync_master_lacks_brokers(open_store: OpenStore) -> None:
    for settings in ({}, {"flush_disk_type": "SYNC_FLUSH"}, {"broker_role": "SYNC_MASTER"}):
        store = open_store(**settings)
        store.commit.members = 1
        assert not store.commit.lacks_brokers, "with 4.9's meaning, too"
        store.stop(NOW_MS)


@pytest.mark.parametrize("slaves", [0, 1, 2])
def test_the_least_number_counts_without_another(
    open_store: OpenStore, message: Build, slaves: int
) -> None:
    """As in the original, where inSyncReplicas is 1 if it is not given."""
    store = open_store(
        broker_role="SYNC_MASTER", enable_auto_in_sync_replicas=True, min_in_sync_replicas=3
    )
    store.put([message()], NOW_MS)
    end = store.max_physical_offset
    assert store.commit.outcome(end) is PutStatus.SLAVE_NOT_AVAILABLE, "not without acting slaves"
    store.commit.members = 3
    acknowledged(store, *[end] * slaves)
    assert store.commit.lacks_brokers is (slaves < 2)
    outcome = store.commit.outcome(end)
    if slaves == 2:
        assert outcome is OK
    else:
        assert isinstance(outcome, Ticket)
        late(store)
        assert outcome.outcome is PutStatus.FLUSH_SLAVE_TIMEOUT


@pytest.mark.parametrize(
    ("is_durable", "has_slave", "is_replicated", "told"),
    [
        (True, True, True, OK),
        (True, True, False, PutStatus.FLUSH_SLAVE_TIMEOUT),
        (False, True, True, PutStatus.FLUSH_DISK_TIMEOUT),
        (False, True, False, PutStatus.FLUSH_SLAVE_TIMEOUT),
        (True, False, False, PutStatus.SLAVE_NOT_AVAILABLE),
        (False, False, False, PutStatus.SLAVE_NOT_AVAILABLE),
    ],
)
def test_disk_and_slaves_are_waited_for_together(
    open_store: OpenStore, message: Build, is_durable: bool, has_slave: bool,
    is_replicated: bool, told: PutStatus,
) -> None:  # fmt: skip
    store = open_store(
        broker_role="SYNC_MASTER", flush_disk_type="SYNC_FLUSH", sync_flush_timeout=5000
    )
    if has_slave:
        acknowledged(store, 0)
    outcome = put(store, message)
    assert isinstance(outcome, Ticket)
    if is_replicated:
        acknowledged(store, store.max_physical_offset)
    assert outcome.outcome is None
    if is_durable:
        synced(store)
        waits = has_slave and not is_replicated
        assert outcome.outcome is (None if waits else told)
    late(store, 4999)
    if not is_durable:
        assert outcome.outcome is None
    store.commit.expire(NOW_MS + 5000)
    assert outcome.outcome is told


def test_who_waits_for_slaves_keeps_nobody_from_the_disk(
    open_store: OpenStore, message: Build
) -> None:
    asked: list[int] = []
    store = open_store(broker_role="SYNC_MASTER", flush_disk_type="SYNC_FLUSH")
    store.commit.on_demand.append(lambda: asked.append(1))
    acknowledged(store, 0)
    put(store, message)
    synced(store)
    assert (asked, store.commit.is_wanted, store.commit.is_sync_wanted) == ([1], True, False)
    put(store, message)
    assert asked == [1, 1], "the first one has what it wants of the disk"
    acknowledged(store)
    alone = put(store, message)
    synced(store)
    assert isinstance(alone, Ticket)
    assert alone.outcome is PutStatus.SLAVE_NOT_AVAILABLE, "without waiting for the others"


def test_slaves_alone_need_no_sync(open_store: OpenStore, message: Build) -> None:
    store = open_store(broker_role="SYNC_MASTER")
    asked: list[int] = []
    store.commit.on_demand.append(lambda: asked.append(1))
    acknowledged(store, 0)
    put(store, message)
    assert store.commit.is_wanted
    assert (asked, store.commit.is_sync_wanted) == ([], False)


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
