# SPDX-License-Identifier: Apache-2.0
"""Reads messages of a queue for a pull.

Messages are returned as slices of the mapped log; adjacent ones come as one slice. The limits, the
meaning of each status and where a consumer continues are the original's.

Each record is checked before it is returned (see record_head.py). A get ends before a place without
a sound record, whether the log or the unit that names it is damaged; the next get skips it, with a
status as if the log had lost the message. A message that the log really has lost, because its file
has expired, is skipped silently.

A get does not wait for the disk: it returns what it can without waiting, and raises NotInMemory if
that is nothing. What this process has written lately is taken to be in memory.

Java: DefaultMessageStore.getMessage, GetMessageResult, GetMessageStatus.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from txrocketmq.broker.store.disk.in_memory import Chunk, NotInMemory
from txrocketmq.broker.store.get.batch_search import search_batches
from txrocketmq.broker.store.get.get_result import (
    MOST_WORK,
    GetMessageStatus,
    GetResult,
    Limits,
    PropertiesFilter,
    Request,
    elsewhere,
    work_of,
)
from txrocketmq.broker.store.get.log_slices import LogSlices
from txrocketmq.broker.store.get.records import Records
from txrocketmq.broker.store.queues.batch_queue import BatchQueue
from txrocketmq.broker.store.queues.consume_queue import (
    PRE_BLANK_SIZE,
    UNIT,
    UNIT_BYTES,
    ConsumeQueue,
    units_struct,
)
from txrocketmq.broker.store.queues.consume_queue_ext import is_ext_address
from txrocketmq.remoting.message.message import record_properties

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

Chosen = tuple[Sequence[int], Sequence[int], Sequence[int]]
"""Messages: the places of their units among those that are examined, log offsets, sizes."""


def get_message(records: Records, queue: ConsumeQueue | None, request: Request) -> GetResult:
    """Serves a request from a queue."""
    if queue is None or queue.max_offset == 0:
        status = GetMessageStatus.NO_MESSAGE_IN_QUEUE
        return elsewhere(records.config, status, 0, request, queue)
    offset, end = request.offset, queue.max_offset
    if not queue.min_offset <= offset < end:
        status, at = GetMessageStatus.OFFSET_OVERFLOW_BADLY, end
        if offset < queue.min_offset:
            status, at = GetMessageStatus.OFFSET_TOO_SMALL, queue.min_offset
        elif offset == end:
            status = GetMessageStatus.OFFSET_OVERFLOW_ONE
        return elsewhere(records.config, status, at, request, queue)
    if queue.is_batch and isinstance(queue, BatchQueue):
        return search_batches(records, queue, request)
    return _Search(records, queue, request).run()


class _Search:
    """A get under way: what it has found so far, and where it continues."""

    __slots__ = (
        "_asked_before", "_count", "_has_ext", "_limits", "_next", "_queue", "_records", "_request",
        "_size_bytes", "_slices", "_status", "_work_left",
    )  # fmt: skip

    def __init__(self, records: Records, queue: ConsumeQueue, request: Request) -> None:
        self._records, self._queue, self._request = records, queue, request
        self._status = GetMessageStatus.NO_MATCHED_MESSAGE
        self._next = request.offset
        self._slices = LogSlices(records.log, queue.magic)
        self._count = self._size_bytes = 0
        self._has_ext = request.filter_ext is not None and queue.ext is not None
        self._work_left = MOST_WORK
        recent_from, self._asked_before = records.marks()
        self._limits = Limits(records.config, request, recent_from)

    def run(self) -> GetResult:
        """Examines units until messages are found, or enough units were examined."""
        queue, request, config = self._queue, self._request, self._records.config
        limits, check = self._limits, self._records.memory.check
        if request.tag_codes is None and request.by_properties is None:
            # Mostly all messages are wanted and sound, so that these are enough.
            count = limits.first_count
        else:
            count = self._units_left()
        files_left, last_offset = config.travel_cq_file_num_when_get_message, 0
        while files_left > 0:
            units = queue.read(self._next, count, check)
            if units is None:
                status = GetMessageStatus.OFFSET_FOUND_NULL
                next_offset = queue.next_file_offset(self._next)
                return elsewhere(config, status, next_offset, request, queue)
            examined = self._look_through(units)
            if examined:
                last_offset = UNIT.unpack_from(units, (examined - 1) * UNIT_BYTES)[0]
                self._next += examined
            if self._count or self._work_left <= 0 or self._next >= queue.max_offset:
                break
            count = self._units_left()
            if count <= 0:
                break
            files_left -= self._next * UNIT_BYTES % queue.files.file_bytes == 0
        return GetResult(
            GetMessageStatus.FOUND if self._count else self._status,
            self._next, queue.min_offset, queue.max_offset,
            self._slices.end(), self._count, self._size_bytes, last_offset < limits.recent_from,
        )  # fmt: skip

    def _units_left(self) -> int:
        """How many more units may be examined."""
        request, config = self._request, self._records.config
        most = max(_MOST_COUNT, config.max_transfer_count_on_message_in_memory)
        scan_bytes = max(config.max_filter_message_size, min(request.max_count, most) * UNIT_BYTES)
        return request.offset - (-scan_bytes // UNIT_BYTES) - self._next

    def _look_through(self, units: memoryview) -> int:
        """Takes messages of these units that are wanted and fit; returns how many it examined."""
        if self._request.by_properties is not None:
            return self._pick(units, self._request.by_properties)
        (numbers, starts, sizes), examined = self._chosen(units)
        count = len(numbers)
        if count and starts[0] < self._asked_before:
            count = self._count_in_memory(starts, sizes)
            if count < len(numbers):
                examined, starts, sizes = numbers[count], starts[:count], sizes[:count]
        taken = self._slices.take_all(starts, sizes)
        self._count = taken
        if taken == count:
            self._size_bytes = sum(sizes)
            return examined
        self._size_bytes = sum(sizes[:taken])
        while taken < count:
            # There is no sound record at the next place.
            start, size = starts[taken], sizes[taken]
            if self._count and not self._is_lost(start, size):
                return numbers[taken]
            self._pass_over(start, size, self._next + numbers[taken])
            taken += 1
            found = self._slices.take_all(starts[taken:], sizes[taken:])
            self._count += found
            self._size_bytes += sum(sizes[taken : taken + found])
            taken += found
        return examined

    def _chosen(self, units: memoryview) -> tuple[Chosen, int]:
        """The messages of these units that are wanted, as far as units can tell, and fit; returns
        how many units were examined, too.
        """
        limits, wanted, count = self._limits, self._request.tag_codes, len(units) // UNIT_BYTES
        if wanted is None and not self._has_ext:
            fields = units_struct(count).unpack(units)
            starts, sizes = fields[::_FIELDS], fields[1::_FIELDS]
            if PRE_BLANK_SIZE not in sizes:
                fit = limits.fit(starts, sizes)
                if fit < count:
                    starts, sizes = starts[:fit], sizes[:fit]
                return (range(fit), starts, sizes), fit
        chosen: list[tuple[int, int, int]] = []
        number = total = 0
        is_by_tags = wanted is not None and not self._has_ext
        codes = wanted if wanted is not None and is_by_tags else frozenset[int]()
        # As Limits.is_full, but without a call for each unit.
        recent_from, recent_count = limits.recent_from, limits.recent_count
        recent_bytes = limits.recent_bytes
        try:
            for number, (start, size, code) in enumerate(UNIT.iter_unpack(units)):
                if chosen and (
                    len(chosen) >= recent_count or total + size > recent_bytes
                    if start >= recent_from
                    else limits.is_full(len(chosen), total, start, size)
                ):
                    count = number
                    break
                if (code not in codes or size == PRE_BLANK_SIZE) and (
                    (is_by_tags and -_INT <= code < _INT) or self._is_unwanted(size, code)
                ):
                    continue
                chosen.append((number, start, size))
                total += size
        except NotInMemory:  # of an ext unit
            if not chosen:
                raise
            count = number
        numbers, starts, sizes = zip(*chosen, strict=True) if chosen else ((), (), ())
        return (numbers, starts, sizes), count

    def _is_unwanted(self, size: int, code: int) -> bool:
        """Whether nothing or a message of no interest is at a unit; raises NotInMemory."""
        wanted = self._request.tag_codes
        return (
            size == PRE_BLANK_SIZE
            or (wanted is not None and code not in wanted and not self._stands_for(code, wanted))
            or (self._has_ext and not self._wants_ext(code))
        )

    def _pick(self, units: memoryview, by_properties: PropertiesFilter) -> int:
        """Takes the messages whose properties are wanted; returns how many units were examined."""
        slices, number = self._slices, 0
        try:
            for number, (start, size, code) in enumerate(UNIT.iter_unpack(units)):
                if self._count and self._limits.is_full(self._count, self._size_bytes, start, size):
                    return number
                if self._is_unwanted(size, code):
                    continue
                if start < self._asked_before and self._records.missing(start, size):
                    raise self._cold(*self._wanted_from(units, number))
                if not slices.find(start, size):
                    if self._count and not self._is_lost(start, size):
                        return number
                    self._pass_over(start, size, self._next + number)
                    continue
                text = record_properties(slices.found())
                self._work_left -= work_of(by_properties.terms, text)
                if by_properties.wants(text):
                    slices.take()
                    self._count += 1
                    self._size_bytes += size
                else:
                    self._status = GetMessageStatus.NO_MATCHED_MESSAGE
                if self._work_left <= 0:
                    return number + 1
        except NotInMemory:
            if not self._count:
                raise
            return number
        return len(units) // UNIT_BYTES

    def _count_in_memory(self, starts: Sequence[int], sizes: Sequence[int]) -> int:
        """How many of the first messages are in memory; raises NotInMemory if the first is not."""
        first, end, asked_before = starts[0], starts[-1] + sizes[-1], self._asked_before
        records = self._records
        file = records.log.files.find(first)
        if file is not None and first < end <= file.end_offset and end - first <= _WIDE_BYTES:
            base = file.from_offset
            if not records.memory.missing(file, first - base, end - base):
                return len(starts)
        for count, (start, size) in enumerate(zip(starts, sizes, strict=True)):
            if start < asked_before and records.missing(start, size):
                if count:
                    return count
                raise self._cold(starts, sizes)
        return len(starts)

    def _cold(self, starts: Sequence[int], sizes: Sequence[int]) -> NotInMemory:
        """Makes the exception to read these messages: all chunks of the first one at least."""
        found: list[Chunk] = []
        for start, size in zip(starts, sizes, strict=True):
            chunks = self._records.missing(start, size)
            if found and len(found) + len(chunks) > _MOST_CHUNKS:
                break
            found += chunks
        return self._records.memory.cold(found)

    def _wanted_from(self, units: memoryview, number: int) -> tuple[list[int], list[int]]:
        """As many messages as are given at once, from a unit on, that may be wanted."""
        starts: list[int] = []
        sizes: list[int] = []
        with suppress(NotInMemory):  # whether the next is wanted cannot be told without waiting
            for start, size, code in UNIT.iter_unpack(units[number * UNIT_BYTES :]):
                if not self._is_unwanted(size, code):
                    starts.append(start)
                    sizes.append(size)
                    if len(starts) >= self._limits.older_count:
                        break
        return starts, sizes

    def _wants_ext(self, stored_code: int) -> bool:
        """Whether the message may be wanted, judging by its ext unit; True if there is none."""
        ext, filter_ext = self._queue.ext, self._request.filter_ext
        if ext is None or filter_ext is None or not is_ext_address(stored_code):
            return True
        unit = ext.get(stored_code, self._records.memory.check)
        if unit is None or filter_ext(unit):
            return True
        self._status = GetMessageStatus.NO_MATCHED_MESSAGE
        return False

    def _is_lost(self, physical_offset: int, size: int) -> bool:
        """Whether the message may have been there before its file expired."""
        return 0 <= physical_offset < self._records.log.min_offset and size > 0

    def _pass_over(self, physical_offset: int, size: int, queue_offset: int) -> None:
        """Skips a place without a record: the log has lost it, or log or unit are damaged."""
        self._status = GetMessageStatus.MESSAGE_WAS_REMOVING
        if not self._is_lost(physical_offset, size):
            queue = self._queue
            self._records.note_damage(
                physical_offset, size, f"{queue.topic}/{queue.queue_id}", queue_offset
            )

    def _stands_for(self, stored_code: int, wanted: frozenset[int]) -> bool:
        """Whether a code that is not wanted stands for a wanted one, as a lost code does."""
        if -_INT <= stored_code < _INT:
            return False
        code = self._queue.tags_code(stored_code, self._records.memory.check)
        return code is None or ((code + _INT) & _UINT) - _INT in wanted
