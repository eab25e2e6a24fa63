# SPDX-License-Identifier: Apache-2.0
"""Locks of orderly consumption."""

from __future__ import annotations

import pytest

from txrocketmq.broker.store.disk.steps import finished
from txrocketmq.broker.tables import queue_locks as module
from txrocketmq.broker.tables.queue_locks import FEW_LOCKS, LOCK_LIVE_MS, QueueLocks
from txrocketmq.remoting.message.message import MessageQueue

QUEUES = [MessageQueue("T", "b", i) for i in range(3)]


def test_a_lock_is_granted_once_and_again_to_its_owner() -> None:
    locks = QueueLocks()
    assert locks.lock("g", "one", QUEUES[:2], 0) == QUEUES[:2]
    assert locks.lock("g", "two", QUEUES, 1) == QUEUES[2:]
    assert locks.lock("g", "one", QUEUES, 2) == QUEUES[:2]


def test_groups_do_not_meet() -> None:
    locks = QueueLocks()
    locks.lock("g", "one", QUEUES, 0)
    assert locks.lock("h", "two", QUEUES, 0) == QUEUES


def test_a_lock_expires_after_its_time_and_not_at_it() -> None:
    locks = QueueLocks()
    locks.lock("g", "one", QUEUES, 0)
    assert locks.lock("g", "two", QUEUES, LOCK_LIVE_MS) == []
    assert not locks.all_expired("g", LOCK_LIVE_MS)
    assert locks.all_expired("g", LOCK_LIVE_MS + 1)
    assert locks.lock("g", "two", QUEUES, LOCK_LIVE_MS + 1) == QUEUES


def test_only_the_owner_unlocks() -> None:
    locks = QueueLocks()
    locks.lock("g", "one", QUEUES, 0)
    locks.unlock("g", "two", QUEUES)
    assert locks.lock("g", "two", QUEUES, 0) == []
    locks.unlock("g", "one", QUEUES)
    assert locks.all_expired("g", 0)
    assert locks.lock("g", "two", QUEUES, 0) == QUEUES


def test_locks_that_are_over_are_forgotten() -> None:
    locks = QueueLocks()
    locks.lock("g", "one", QUEUES[:1], 0)
    locks.lock("g", "one", QUEUES[1:], 5)
    locks.lock("h", "one", QUEUES, 0)
    finished(locks.expire(LOCK_LIVE_MS))
    assert locks.lock("g", "two", QUEUES, LOCK_LIVE_MS) == []
    finished(locks.expire(LOCK_LIVE_MS + 1))
    assert locks._locks.keys() == {"g"}
    assert locks.lock("g", "two", QUEUES, LOCK_LIVE_MS + 1) == QUEUES[:1]


def test_one_group_cannot_take_all_locks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_LOCKS", 100)
    many = [MessageQueue("T", "b", each) for each in range(200)]
    locks = QueueLocks()
    assert locks.lock("g", "one", many, 0) == many[:100]
    assert locks.lock("g", "one", many, 1) == many[:100], "it renews what it has"
    assert locks.lock("h", "two", many, 1) == many[:FEW_LOCKS]
    assert locks.count == 100 + FEW_LOCKS
    locks.unlock("g", "one", many[:90])
    finished(locks.expire(LOCK_LIVE_MS + 2))
    assert locks.count == 0
    assert locks.lock("h", "two", many, LOCK_LIVE_MS + 3) == many[:100]
