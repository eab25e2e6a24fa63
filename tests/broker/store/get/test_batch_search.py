# SPDX-License-Identifier: Apache-2.0
"""Gets from a queue of batches: records of 1, 3, 1, 5, 2 messages, in files of four units."""

from __future__ import annotations

import pytest

from tests.broker.store.batches import batched, kind_of, plain
from tests.broker.store.conftest import NOW_MS, SMALL
from tests.disk import MemoryFiles
from txrocketmq.broker.store.disk.in_memory import NotInMemory
from txrocketmq.broker.store.formats.config import StoreConfig
from txrocketmq.broker.store.message_store import GetMessageStatus, GetResult, MessageStore
from txrocketmq.broker.store.queues.batch_queue import BATCH_UNIT_BYTES
from txrocketmq.remoting.message.message import decode_messages

SIZES = [1, 3, 1, 5, 2]
STATUS = GetMessageStatus


def opened(files: MemoryFiles) -> MessageStore:
    settings = {**SMALL, "mapper_file_size_batch_consume_queue": 4 * BATCH_UNIT_BYTES}
    store = MessageStore(StoreConfig(store_path_root_dir="/store", **settings), files=files)
    store.load(NOW_MS, kind_of=kind_of)
    return store


@pytest.fixture
def store(files: MemoryFiles) -> MessageStore:
    store = opened(files)
    for number, size in enumerate(SIZES):
        made = plain("Batches")._replace(tags_code=number % 2)
        store.put([batched(made, [b"x"] * size) if size > 1 else made], NOW_MS)
    return store


def offsets(got: GetResult) -> list[int]:
    return [each.queue_offset for each in decode_messages(b"".join(got.buffers))]


@pytest.mark.parametrize(
    ("offset", "most", "expected", "after"),
    [
        (0, 32, [0, 1, 4, 5], 10),  # a get ends with a file of the queue
        (2, 1, [1], 4),
        (3, 3, [1], 4),
        (3, 4, [1, 4], 5),
        (3, 8, [1, 4], 5),
        (3, 9, [1, 4, 5], 10),
        (9, 1, [5], 10),
        (10, 1, [10], 12),
        (11, 32, [10], 12),
    ],
)
def test_records_come_whole(
    store: MessageStore, offset: int, most: int, expected: list[int], after: int
) -> None:
    got = store.get("Batches", 0, offset, most, 1 << 20)
    assert got.status is STATUS.FOUND
    assert (offsets(got), got.next_begin_offset) == (expected, after)
    assert got.count == after - expected[0]
    assert got.size_bytes == sum(map(len, got.buffers))


def test_bytes_are_limited_too(store: MessageStore) -> None:
    assert offsets(store.get("Batches", 0, 0, 32, 1)) == [0]


def test_filters_see_records(store: MessageStore) -> None:
    got = store.get("Batches", 0, 0, 32, 1 << 20, frozenset({1}))
    assert (offsets(got), got.next_begin_offset) == ([1, 5], 10)
    got = store.get("Batches", 0, 10, 32, 1 << 20, frozenset({1}))
    assert (got.status, got.next_begin_offset) == (STATUS.NO_MATCHED_MESSAGE, 12)
    seen: list[int] = []

    class Nothing:
        terms = 1

        def wants(self, text: str) -> bool:
            seen.append(len(text))
            return False

    got = store.get("Batches", 0, 0, 32, 1 << 20, None, Nothing())
    assert (got.status, got.next_begin_offset, len(seen)) == (STATUS.NO_MATCHED_MESSAGE, 10, 4)


def test_beside_the_queue(store: MessageStore) -> None:
    for offset, status, after in [
        (12, STATUS.OFFSET_OVERFLOW_ONE, 12),
        (13, STATUS.OFFSET_OVERFLOW_BADLY, 12),
        (-1, STATUS.OFFSET_TOO_SMALL, 0),
    ]:
        got = store.get("Batches", 0, offset, 32, 1 << 20)
        assert (got.status, got.next_begin_offset) == (status, after)


def test_damaged_records_are_passed_over(store: MessageStore, files: MemoryFiles) -> None:
    unit = next(store.queue_units("Batches", 0, 4, 1))
    log = next(path for path in files.maps if "/commitlog/" in path)
    files.map(log, SMALL["mapped_file_size_commit_log"])[
        unit.physical_offset + 4 : unit.physical_offset + 8
    ] = b"none"
    got = store.get("Batches", 0, 0, 32, 1 << 20)
    assert (offsets(got), got.next_begin_offset) == ([0, 1], 4)
    got = store.get("Batches", 0, 4, 1, 1 << 20)
    assert (offsets(got), got.next_begin_offset) == ([5], 10)
    assert store.damaged.count == 1


def test_the_disk_is_not_waited_for(store: MessageStore, files: MemoryFiles) -> None:
    store.stop(NOW_MS)
    store = opened(files)
    files.evict("/store/")
    waited = 0
    for _ in range(20):
        try:
            got = store.get("Batches", 0, 2, 32, 1 << 20)
        except NotInMemory as cold:
            waited += 1
            cold.read.run()
            cold.read.finish()
        else:
            break
    assert offsets(got)[0] == 1
    assert waited >= 2, "for the queue and for the log"
