# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.disk import NOW_MS, MemoryFiles
from txrocketmq.broker.store.disk.in_memory import NotInMemory
from txrocketmq.broker.store.formats.config import StoreConfig
from txrocketmq.broker.store.get import records as module
from txrocketmq.broker.store.message_store import MessageStore, PutMessage

CONFIG = StoreConfig(
    store_path_root_dir="/store",
    mapped_file_size_commit_log=65_536,
    mapped_file_size_consume_queue=20 * 4,
    max_hash_slot_num=10,
    max_index_num=40,
)


class Cold(MemoryFiles):
    """Nothing is in memory but what was read ahead."""

    def is_in_memory(self, *_: object) -> bool:
        return False


@pytest.fixture
def store(message: Callable[..., PutMessage]) -> MessageStore:
    store = MessageStore(replace(CONFIG), files=Cold())
    store.load(NOW_MS)
    for number in range(10):
        store.put([message(body=b"%d" % number)], NOW_MS)
    return store


def paths(error: pytest.ExceptionInfo[NotInMemory]) -> list[str]:
    return [chunk.path.removeprefix("/store/") for chunk in error.value.read.chunks]


def test_what_was_written_lately_is_in_memory(
    store: MessageStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    records = store._records
    assert records.asked_before == 0
    records.check(0, None)
    records.check_all([(0, 100)])
    records.written_from = 500
    assert records.asked_before == 500
    records.written_from = 0
    monkeypatch.setattr(module, "_WRITTEN_LATELY_BYTES", 100)
    assert records.asked_before == store.max_physical_offset - 100


def test_a_record_is_read_before_it_is_looked_at(store: MessageStore) -> None:
    records = store._records
    records.written_from = store.max_physical_offset
    with pytest.raises(NotInMemory) as error:
        records.check(0, None)
    assert paths(error) == ["commitlog/" + "0" * 20]
    error.value.read.run()
    error.value.read.finish()
    records.check(0, None)
    records.check_all([(0, 100)])
    records.check(store.max_physical_offset + 1, None)
    records.check(1 << 40, 100)


def test_a_record_that_is_larger_than_a_chunk_is_read_in_two_steps(
    store: MessageStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[int, int]] = []
    records = store._records
    records.written_from = store.max_physical_offset

    def missing(_: object, start: int, end: int) -> tuple[()]:
        asked.append((start, end))
        return ()

    monkeypatch.setattr(records.memory, "missing", missing)
    records.check(0, None)
    (head, whole) = asked
    assert head[1] < whole[1] == records.log.record_at(0).nbytes  # type: ignore[union-attr]


def test_units_are_asked_for_over_the_ends_of_files(store: MessageStore) -> None:
    queue = store._queues.find("Topic", 0)
    assert queue is not None
    assert len(queue.files.mapped_files) == 3
    with pytest.raises(NotInMemory) as error:
        store._records.check_units(queue, 3, 100)
    assert [path[-3:] for path in paths(error)] == ["000", "080", "160"]
    with pytest.raises(NotInMemory) as error:
        store._records.check_units(queue, 4, 2)
    assert [path[-3:] for path in paths(error)] == ["080"]
    store._records.check_units(queue, 10, 5)
