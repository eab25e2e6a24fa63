# SPDX-License-Identifier: Apache-2.0
"""What is read without waiting for the disk; what is read at all is in test_message_store.py."""

from __future__ import annotations

from functools import partial

import pytest

from tests.broker.store.get.test_records import Cold, store
from tests.disk import NOW_MS
from txrocketmq.broker.store.disk.in_memory import NotInMemory
from txrocketmq.broker.store.disk.steps import finished, when_in_memory
from txrocketmq.broker.store.message_store import MessageStore

__all__ = ["store"]


@pytest.fixture
def cold(store: MessageStore) -> MessageStore:
    store._records.written_from = store.max_physical_offset
    return store


def test_all_that_reads_says_when_it_would_wait(cold: MessageStore) -> None:
    files = cold._files
    assert isinstance(files, Cold)
    for ask, expected in (
        (partial(cold.store_time_at, "Topic", 0, 3), NOW_MS),
        (partial(cold.earliest_store_time, "Topic", 0), NOW_MS),
        (partial(cold.is_recent, "Topic", 0, 3), True),
        (cold.earliest_message_ms, NOW_MS),
        (lambda: len(list(cold.queue_units("Topic", 0, 2, 3))), 3),
        (lambda: cold.message_at(0) is not None, True),
        (lambda: cold.headed_at(0) is not None, True),
        (partial(cold.offset_by_time, "Topic", 0, 0), 0),
    ):
        cold._records.memory.tick()
        cold._records.memory.tick()
        files.read_ahead_of.clear()
        with pytest.raises(NotInMemory):
            ask()
        assert finished(when_in_memory(ask)) == expected
        assert files.read_ahead_of


def test_where_there_is_nothing_nothing_is_read(cold: MessageStore) -> None:
    assert cold.store_time_at("other", 0, 0) == -1
    assert not cold.is_recent("other", 0, 0)
    assert list(cold.queue_units("other", 0, 0, 5)) == []
    assert list(cold.queue_units("Topic", 0, 10, 5)) == []


def test_when_the_log_began_is_looked_for_once(cold: MessageStore) -> None:
    assert finished(when_in_memory(cold.earliest_message_ms)) == NOW_MS
    cold._records.memory.tick()
    cold._records.memory.tick()
    assert cold.earliest_message_ms() == NOW_MS
