# SPDX-License-Identifier: Apache-2.0
"""The messages of a store, with their places and times, for all code that reads.

Nothing here waits for the disk: NotInMemory is raised instead, with the read that loads what is
missing (see in_memory.py, and when_in_memory in steps.py). What this process has written lately is
taken to be in memory.

Java: the reading half of DefaultMessageStore.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import partial
from time import perf_counter_ns
from typing import Final

from txrocketmq.broker.store.disk.files import Files
from txrocketmq.broker.store.disk.in_memory import Chunk, ColdRead
from txrocketmq.broker.store.disk.steps import Steps, when_in_memory
from txrocketmq.broker.store.formats.config import StoreConfig
from txrocketmq.broker.store.formats.damage import Damage, DamagedRecords
from txrocketmq.broker.store.formats.packed import PackedRows, PullAnswer
from txrocketmq.broker.store.formats.scan import store_timestamp_ms
from txrocketmq.broker.store.formats.stats import StoreStats
from txrocketmq.broker.store.get.get_message import get_message
from txrocketmq.broker.store.get.get_result import (
    ExtFilter,
    GetResult,
    PropertiesFilter,
    QueryResult,
    Request,
)
from txrocketmq.broker.store.get.jumps import Jumps
from txrocketmq.broker.store.get.packed_get import NOTHING_YET, PackedGet, get_packed
from txrocketmq.broker.store.get.records import Records
from txrocketmq.broker.store.index.index_file import Index
from txrocketmq.broker.store.index.packed_index import PackedIndex
from txrocketmq.broker.store.log.commit_log import CommitLog
from txrocketmq.broker.store.log.log_walk import LogWalk
from txrocketmq.broker.store.queues.batch_queue import BatchQueue
from txrocketmq.broker.store.queues.consume_queue import Unit
from txrocketmq.broker.store.queues.consume_queues import ConsumeQueues
from txrocketmq.remoting.formats import MAX_BODY_BYTES

_NS_PER_MS: Final = 1_000_000


class StoredMessages:
    """The messages of a store; there are none until a store is opened."""

    def __init__(
        self, config: StoreConfig, files: Files, new_rows: Callable[[], PackedRows] | None = None
    ) -> None:
        self._files = files
        self._is_open = False
        self.config = config
        self.stats = StoreStats()
        self._log = CommitLog(files, config)
        self._queues = ConsumeQueues(files, config)
        self.find_queue = self._queues.find
        self.damaged = DamagedRecords()
        self.jumps = Jumps()
        self._records = Records(files, self._log, config, self.damaged)
        self.wrong_bodies = self._records.memory.wrong_bodies
        self.check_records, self.check_part = self._records.check_all, self._records.memory.check
        self.last_file = self._records.lately
        root = config.store_path_root_dir
        slots, items = config.max_hash_slot_num, config.max_index_num
        index = os.path.join(root, "index")
        self._index = (
            Index(files, index, slots, items)
            if new_rows is None
            else PackedIndex(files, index, slots, items, new_rows)
        )
        self._earliest: tuple[int, int] | None = None
        """The log's start when `earliest_message_ms` was last computed, and its result."""

    def get(
        self,
        topic: str,
        queue_id: int,
        offset: int,
        max_count: int,
        max_bytes: int,
        tag_codes: frozenset[int] | None = None,
        by_properties: PropertiesFilter | None = None,
        filter_ext: ExtFilter | None = None,
    ) -> GetResult:
        """Messages of a queue from an offset on; get_message.py explains the result."""
        started_ns = perf_counter_ns()
        queue = self.find_queue(topic, queue_id) if self._is_open else None
        request = Request(offset, max_count, max_bytes, tag_codes, by_properties, filter_ext)
        result = get_message(self._records, queue, request)
        self._count_get(result.count, started_ns)
        return result

    def get_packed(
        self, topic: str, queue_id: int, offset: int, max_count: int, max_bytes: int,
        answer: PullAnswer, pieces: list[bytes], opaque: int,
    ) -> PackedGet | None:  # fmt: skip
        """All messages of a queue from an offset on, as an answer to a pull that a kernel makes.

        NOTHING_YET if the queue ends there; None if anything is unusual: then `get` is to be asked.
        """
        started_ns = perf_counter_ns()
        queue = self._queues.find(topic, queue_id) if self._is_open else None
        if queue is None or not queue.min_offset <= offset < queue.max_offset or queue.is_batch:
            is_at_end = queue is not None and queue.max_offset == offset != 0
            return NOTHING_YET if is_at_end else None
        request = Request(offset, max_count, max_bytes, None, None)
        result = get_packed(self._records, queue, request, answer, pieces, opaque)
        if result is not None:
            self._count_get(result.messages, started_ns)
        return result

    def _count_get(self, count: int, started_ns: int) -> None:
        stats = self.stats
        if count:
            stats.got_found += 1
            stats.got_messages += count
        else:
            stats.got_missed += 1
        elapsed_ms = (perf_counter_ns() - started_ns) // _NS_PER_MS
        if elapsed_ms > stats.get_max_ms:  # noqa: PLR1730 - for each get
            stats.get_max_ms = elapsed_ms

    def cold_raw(self, offset: int, needed_bytes: int, ahead_bytes: int) -> ColdRead | None:
        """The read that loads the log from an offset on, for a replica; None if so much as is
        needed now is in memory. If it is not, more is read at once.
        """
        records = self._records
        file = self._log.files.find(offset) if offset < records.asked_before else None
        if file is None:
            return None
        start, memory = offset - file.from_offset, records.memory
        if not memory.missing(file, start, min(start + needed_bytes, file.wrote_bytes)):
            return None
        chunks = memory.missing(file, start, min(start + ahead_bytes, file.wrote_bytes))
        # Without a log offset: the bodies are examined when somebody consumes them.
        return ColdRead(self._files, memory, [Chunk(*each[:3]) for each in chunks])

    def max_offset(self, topic: str, queue_id: int) -> int:
        """The offset after the queue's last message; 0 when there is no such queue."""
        queue = self._queues.find(topic, queue_id)
        return 0 if queue is None else queue.max_offset

    def min_offset(self, topic: str, queue_id: int) -> int:
        """The offset of the queue's first message; 0 when there is no such queue."""
        queue = self._queues.find(topic, queue_id)
        return 0 if queue is None else queue.min_offset

    def offset_by_time(
        self, topic: str, queue_id: int, timestamp_ms: int, *, upper: bool = False
    ) -> int:
        """The first message stored at a time or later; with `upper` the last until then.

        The result is 0 when there is no such queue, and otherwise between min_offset and
        max_offset.
        """
        queue = self._queues.find(topic, queue_id)
        if queue is None:
            return 0
        stored_ms = partial(self._records.stored_ms, queue)
        if isinstance(queue, BatchQueue):
            check = self._records.memory.check
            return queue.offset_by_time(timestamp_ms, stored_ms, upper=upper, check=check)
        return queue.offset_by_time(timestamp_ms, stored_ms, upper=upper)

    def earliest_store_time(self, topic: str, queue_id: int) -> int:
        """When the queue's first message was stored, in ms; -1 when there is none."""
        return self.store_time_at(topic, queue_id, self.min_offset(topic, queue_id))

    def store_time_at(self, topic: str, queue_id: int, queue_offset: int) -> int:
        """When the message at this offset was stored, in ms; -1 when there is none."""
        queue = self._queues.find(topic, queue_id)
        return -1 if queue is None else self._records.stored_ms(queue, queue_offset)

    def is_recent(self, topic: str, queue_id: int, queue_offset: int) -> bool:
        """Whether a message exists and is likely to be in memory (checkInMemByConsumeOffset)."""
        queue = self._queues.find(topic, queue_id)
        if queue is None:
            return False
        self._records.check_units(queue, queue_offset, 1)
        unit = queue.stored(queue_offset)
        if unit is None:
            return False
        physical_offset, size_bytes, _ = unit
        file = self._log.files.find(physical_offset)
        if file is None or physical_offset + size_bytes > file.end_offset:
            return False
        return physical_offset >= self._records.recent_from

    def queue_units(self, topic: str, queue_id: int, offset: int, count: int) -> Iterator[Unit]:
        """Units of a queue from an offset on: the log offsets, sizes and tags codes of messages.

        NotInMemory is raised at once if any of them is not in memory.
        """
        queue = self._queues.find(topic, queue_id)
        if queue is None:
            return iter(())
        self._records.check_units(queue, offset, count)
        return queue.units(offset, count)

    def set_bitmap_of(self, bitmap_of: Callable[[str, memoryview | None], bytes]) -> None:
        """Sets the function that makes the bitmap for ext files from a topic and a record."""
        self._queues.bitmap_of = lambda topic, physical_offset, size: bitmap_of(
            topic, self._log.record_at(physical_offset, size)
        )

    def message_at(
        self, physical_offset: int, size: int | None = None, *, is_checked: bool = False
    ) -> memoryview | None:
        """The record at this log offset, with the size from a unit; None when there is none.

        `is_checked`: `check_records` has just found that it is in memory.
        """
        if not is_checked:
            self._records.check(physical_offset, size)
        record = self._log.record_at(physical_offset, size)
        if record is None and size is not None and physical_offset >= self.min_physical_offset:
            self._records.note_damage(physical_offset, size)
        return record

    def headed_at(self, physical_offset: int) -> memoryview | None:
        """What `message_at` returns without a size, if the lengths in it add up; see CommitLog."""
        self._records.check(physical_offset, None)
        return self._log.headed_at(physical_offset)

    def records(self, physical_offset: int) -> Iterator[memoryview]:
        """The records of the log from this offset on, whether or not a queue has them."""
        walk = LogWalk(self._log.files, self._queues, check_crc=False)
        for record in walk.records(physical_offset, self._log.max_offset):
            yield record.view[record.end - record.size_bytes : record.end]

    def query(
        self,
        topic: str,
        key: str,
        max_count: int,
        begin_ms: int,
        end_ms: int,
        index_type: str | None = None,
    ) -> Steps[QueryResult]:
        """Messages stored in a span of time (to the second) by key: their unique key or one of
        their keys, or with index type "T" their tag.

        As in queryMessage, there are at most maxMsgsNumBatch; but no more of the newest ones than
        fit in a frame, where the original answers what no client reads.
        """
        max_count = min(max_count, self.config.max_msgs_num_batch)
        found = yield from self._index.find(
            topic, key, max_count, begin_ms, end_ms, index_type, self._records.memory
        )
        for chain in found.broken:
            self.damaged.found(Damage(-1, -1, chain.path, chain.position, "", -1))
        records: list[memoryview] = []
        left_bytes = MAX_BODY_BYTES
        for offset in sorted(found.physical_offsets, reverse=True):
            record = yield from when_in_memory(partial(self.message_at, offset))
            if record is not None:
                left_bytes -= len(record)
                if left_bytes < 0 and records:
                    break
                records.append(record)
            elif self._log.min_offset <= offset < self._log.max_offset:
                self._records.note_damage(offset, -1)
            yield
        records.reverse()
        return QueryResult(records, found.last_update_timestamp_ms, found.last_update_offset)

    @property
    def min_physical_offset(self) -> int:
        """The log offset at which the log begins."""
        return max(self._log.min_offset, 0)

    @property
    def max_physical_offset(self) -> int:
        """The log offset at which the log ends."""
        return self._log.max_offset

    def earliest_message_ms(self) -> int:
        """When the oldest message of the log was stored, in ms; -1 when there is none."""
        start = self.min_physical_offset
        if self._earliest is None or self._earliest[0] != start:
            record = self.message_at(start)
            if record is None:
                return -1
            self._earliest = start, store_timestamp_ms(record)
        return self._earliest[1]
