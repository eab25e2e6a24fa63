# SPDX-License-Identifier: Apache-2.0
"""Reads messages of a queue for a pull.

Messages are returned as slices of the mapped log; adjacent ones come as one slice. The limits, the
meaning of each status and where a consumer continues are the original's.

Each record is checked before it is returned (see record_head.py). A get ends before a place without
a sound record, whether the log or the unit that names it is damaged; the next get skips it, with a
status as if the log had lost the message. A message that the log really has lost, because its file
has expired, is skipped silently.

A caller that must not wait for the disk passes `only_in_memory`: the get then returns what it can
without waiting, and raises NotInMemory if that is nothing. What this process has written lately is
taken to be in memory.

Java: DefaultMessageStore.getMessage, isTheBatchFull, GetMessageResult, GetMessageStatus.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Sequence
from contextlib import suppress
from itertools import accumulate
from operator import add
from typing import Final

from txrocketmq.broker.store.disk.in_memory import Chunk, NotInMemory
from txrocketmq.broker.store.disk.mapped_file import MappedFile
from txrocketmq.broker.store.get.batch_search import BatchSearch
from txrocketmq.broker.store.get.get_result import (
    ExtFilter,
    GetMessageStatus,
    GetResult,
    PropertiesFilter,
    QueryResult,
    Request,
    Search,
    StoreReader,
    limits_of,
    max_bytes,
)
from txrocketmq.broker.store.get.slices import one_slice, slices_of
from txrocketmq.broker.store.queues.batch_queue import BatchQueue
from txrocketmq.broker.store.queues.consume_queue import (
    PRE_BLANK_SIZE,
    UNIT,
    UNIT_BYTES,
    ConsumeQueue,
    units_struct,
)
from txrocketmq.broker.store.queues.consume_queue_ext import is_ext_address

__all__ = [
    "ExtFilter",
    "GetMessageStatus",
    "GetResult",
    "MessageReader",
    "PropertiesFilter",
    "QueryResult",
    "Request",
]

_MOST_COUNT: Final = 1024
"""No push consumer asks for more messages at once (pullBatchSize), so a get examines no more units
for one that does, unless the settings of pulls allow it."""
_FIELDS: Final = 3
_INT: Final = 1 << 31
_UINT: Final = (1 << 32) - 1
_WIDE_BYTES: Final = 1024 * 1024
"""If the messages of a get are farther apart than this, each is looked for in memory by itself."""
_MOST_CHUNKS: Final = 64
"""How many chunks one ColdRead reads, unless a single message is larger."""


class MessageReader(StoreReader):
    """Serves the gets of one store."""

    def get(self, queue: ConsumeQueue | None, request: Request) -> GetResult:
        """Serves a request from a queue.

        Raises NotInMemory only if the request is for `only_in_memory`.
        """
        if queue is None or queue.max_offset == 0:
            return self.elsewhere(GetMessageStatus.NO_MESSAGE_IN_QUEUE, 0, request, queue)
        offset = request.offset
        if offset < queue.min_offset:
            status = GetMessageStatus.OFFSET_TOO_SMALL
            return self.elsewhere(status, queue.min_offset, request, queue)
        if offset == queue.max_offset:
            return self.elsewhere(GetMessageStatus.OFFSET_OVERFLOW_ONE, offset, request, queue)
        if offset > queue.max_offset:
            status = GetMessageStatus.OFFSET_OVERFLOW_BADLY
            return self.elsewhere(status, queue.max_offset, request, queue)
        if isinstance(queue, BatchQueue):
            return BatchSearch(self, queue, request).run()
        if request.tag_codes is None and request.by_properties is None:
            found = self._recent_run(queue, request)
            if found is not None:
                return found
        return _Search(self, queue, request).run()

    def units(
        self, queue: ConsumeQueue, offset: int, count: int, *, only_in_memory: bool
    ) -> memoryview | None:
        """Like ConsumeQueue.read; with `only_in_memory`, raises NotInMemory instead of waiting for
        the disk.
        """
        if only_in_memory and queue.min_offset <= offset < queue.max_offset:
            file = queue.files.find(offset * UNIT_BYTES)
            if file is None:
                return None
            start = offset * UNIT_BYTES - file.from_offset
            end = min(start + count * UNIT_BYTES, file.wrote_bytes)
            if start >= end:
                return None
            cold = self.memory.missing(file, start, end)
            if cold:
                raise self.cold(cold)
            return file.view[start:end]
        return queue.read(offset, count)

    def stored_ms(self, queue: ConsumeQueue, offset: int, *, only_in_memory: bool = False) -> int:
        """When a message of a queue was stored, in ms; -1 when there is none. Raises like
        `units`.
        """
        if only_in_memory:
            self.check_units(queue, offset, 1)
        unit = queue.stored(offset)
        if unit is None:
            return -1
        start, size, _ = unit
        file = self.log.files.find(start) if start < self.asked_before else None
        if only_in_memory and file is not None:
            cold = self._cold_records(file, (start,), (size,))
            if cold:
                raise self.cold(cold)
        return self.log.store_time_ms(start, size)

    def _recent_run(self, queue: ConsumeQueue, request: Request) -> GetResult | None:
        """The most common case, done in a few steps: all messages are wanted, sound, recent, and in
        one file.

        Returns None if that is not so. Messages of other queues may lie between these, so there is
        a slice for each one or a single slice for all.
        """
        config = self.config
        count = max(min(request.max_count, config.max_transfer_count_on_message_in_memory), 1)
        units = self.units(queue, request.offset, count, only_in_memory=request.only_in_memory)
        if units is None:
            return None
        count = len(units) // UNIT_BYTES
        fields = units_struct(count).unpack(units)
        sizes = fields[1::_FIELDS]
        total = sum(sizes)
        most = min(max_bytes(request), config.max_transfer_bytes_on_message_in_memory)
        if total > most:
            ends = list(accumulate(sizes))
            count = max(bisect_right(ends, most), 1)
            total, sizes = ends[count - 1], sizes[:count]
        starts = fields[: _FIELDS * count : _FIELDS]
        first, end = starts[0], starts[-1] + sizes[-1]
        file = self.log.files.find(first)
        if file is None or end > file.end_offset or self.log.max_offset - first > self.recent_bytes:
            return None
        if request.only_in_memory and first < self.asked_before:
            cold = self._cold_records(file, starts, sizes)
            if cold:
                raise self.cold(cold)
        try:
            if end - first == total:
                buffers = one_slice(file, starts, sizes, queue.magic)
            else:
                buffers = slices_of(file, starts, sizes, queue.magic)
        except (struct.error, IndexError):  # a unit points beside the file
            return None
        if buffers is None:
            return None
        next_offset = request.offset + count
        return GetResult(
            GetMessageStatus.FOUND, next_offset, queue.min_offset, queue.max_offset,
            buffers, count, total,
        )  # fmt: skip

    def _cold_records(
        self, file: MappedFile, starts: Sequence[int], sizes: Sequence[int]
    ) -> Sequence[Chunk]:
        """The parts of these records that are not in memory; empty when one cannot be in this
        file.
        """
        base, missing = file.from_offset, self.memory.missing
        first, end = min(starts), max(map(add, starts, sizes))
        if first < base or end > file.end_offset or min(sizes) <= 0:
            return ()
        if end - first <= _WIDE_BYTES:
            return missing(file, first - base, end - base)
        found: list[Chunk] = []
        for start, size in zip(starts, sizes, strict=True):
            found += missing(file, start - base, start - base + size)
        return found


class _Search(Search[MessageReader, ConsumeQueue]):
    """One get that examines unit by unit."""

    def __init__(self, reader: MessageReader, queue: ConsumeQueue, request: Request) -> None:
        super().__init__(reader, queue, request)
        self._log = reader.log
        self._config = reader.config
        self._recent = reader.recent_bytes

    def run(self) -> GetResult:
        """Examines units until enough messages are found, or enough units were examined."""
        queue, request = self._queue, self._request
        config = self._config
        most_count = max(_MOST_COUNT, config.max_transfer_count_on_message_in_memory)
        count = min(request.max_count, most_count)
        scan = max(config.max_filter_message_size, count * UNIT_BYTES)
        end = request.offset - (-scan // UNIT_BYTES)
        for _ in range(config.travel_cq_file_num_when_get_message):
            if self._count or self._next >= min(queue.max_offset, end) or self._work_left <= 0:
                break
            units = self._reader.units(
                queue, self._next, end - self._next, only_in_memory=request.only_in_memory
            )
            if units is None:
                status = GetMessageStatus.OFFSET_FOUND_NULL
                next_offset = queue.next_file_offset(self._next)
                return self._reader.elsewhere(status, next_offset, request, queue)
            self._look_through(units)
        return self._result()

    def _look_through(self, units: memoryview) -> None:
        wanted, by_properties = self._request.tag_codes, self._request.by_properties
        has_ext = self._request.filter_ext is not None and self._queue.ext is not None
        recent_from = self._log.max_offset - self._recent
        recent_most, older_most = limits_of(self._config, self._request)
        asked_before = self._reader.asked_before if self._request.only_in_memory else 0
        slices = self._slices
        count = total = passed = 0
        try:
            for physical_offset, size, code in UNIT.iter_unpack(units):
                if count:
                    most_count, most = recent_most if physical_offset >= recent_from else older_most
                    if count >= most_count or total + size > most:
                        break
                if (
                    size == PRE_BLANK_SIZE
                    or (
                        wanted is not None
                        and code not in wanted
                        and not self._stands_for(code, wanted)
                    )
                    or (has_ext and not self._wants_ext(code))
                ):
                    passed += 1
                    continue
                if physical_offset < asked_before:
                    self._check_record(units, passed, 0 if count else older_most[0])
                if not slices.find(physical_offset, size):
                    if count and not self._is_lost(physical_offset, size):
                        break
                    self._pass_over(physical_offset, size, self._next + passed)
                elif by_properties is not None and not self._is_wanted(by_properties):
                    self._status = GetMessageStatus.NO_MATCHED_MESSAGE
                else:
                    slices.take()
                    count += 1
                    total += size
                passed += 1
                if self._work_left <= 0:
                    break
        except NotInMemory:  # of a record, or of an ext unit
            if not count:
                raise
        self._count, self._size_bytes = count, total
        self._pass(units, passed)

    def _pass(self, units: memoryview, count: int) -> None:
        """Notes that so many of the units were looked at."""
        if count:
            self._last_physical_offset = UNIT.unpack_from(units, (count - 1) * UNIT_BYTES)[0]
        self._next += count

    def _wants_ext(self, stored_code: int) -> bool:
        """Whether the message may be wanted, judging by its ext unit; True if there is none."""
        ext, filter_ext = self._queue.ext, self._request.filter_ext
        if ext is None or filter_ext is None or not is_ext_address(stored_code):
            return True
        unit = ext.get(stored_code, self._check)
        if unit is None or filter_ext(unit):
            return True
        self._status = GetMessageStatus.NO_MATCHED_MESSAGE
        return False

    def _is_lost(self, physical_offset: int, size: int) -> bool:
        """Whether the message may have been there before its file expired."""
        return 0 <= physical_offset < self._log.min_offset and size > 0

    def _pass_over(self, physical_offset: int, size: int, queue_offset: int) -> None:
        """Skips a place without a record: the log has lost it, or log or unit are damaged."""
        self._status = GetMessageStatus.MESSAGE_WAS_REMOVING
        if not self._is_lost(physical_offset, size):
            queue = self._queue
            self._reader.note_damage(
                physical_offset, size, f"{queue.topic}/{queue.queue_id}", queue_offset
            )

    def _cold_record(self, physical_offset: int, size: int) -> Sequence[Chunk]:
        """The parts of this record that are not in memory; empty when no record can be there."""
        file = self._log.files.find(physical_offset)
        if file is None or size <= 0 or physical_offset + size > file.end_offset:
            return ()
        start = physical_offset - file.from_offset
        return self._reader.memory.missing(file, start, start + size)

    def _check_record(self, units: memoryview, at: int, count: int) -> None:
        """Raises NotInMemory, with the chunks for `count` messages, if its record is cold."""
        if self._cold_record(*UNIT.unpack_from(units, at * UNIT_BYTES)[:2]):
            raise self._reader.cold(self._cold_ahead(units, at, count))

    def _cold_ahead(self, units: memoryview, at: int, count: int) -> list[Chunk]:
        """The chunks to read for `count` messages from a unit on; all chunks of the first
        message.
        """
        wanted = self._request.tag_codes
        found: list[Chunk] = []
        with suppress(NotInMemory):  # whether the next is wanted cannot be told without waiting
            for physical_offset, size, code in UNIT.iter_unpack(units[at * UNIT_BYTES :]):
                if size == PRE_BLANK_SIZE or (
                    wanted is not None and code not in wanted and not self._stands_for(code, wanted)
                ):
                    continue
                chunks = self._cold_record(physical_offset, size)
                if count <= 0 or (found and len(found) + len(chunks) > _MOST_CHUNKS):
                    break
                count -= 1
                found += chunks
        return found

    def _stands_for(self, stored_code: int, wanted: frozenset[int]) -> bool:
        """Whether a code that is not itself wanted stands for a wanted one; a lost code counts as
        wanted.
        """
        if -_INT <= stored_code < _INT:
            return False
        code = self._queue.tags_code(stored_code, self._check)
        return code is None or ((code + _INT) & _UINT) - _INT in wanted
