# SPDX-License-Identifier: Apache-2.0
"""Reading messages of a queue, as a pull asks for them.

Messages come as slices of the mapped log; those that lie side by side there come as one slice.
Which limits hold, what each status means and where a consumer goes on is the original's; a queue
unit or a record that is damaged is passed over with a status, never an exception.

Java: DefaultMessageStore.getMessage, isTheBatchFull, GetMessageResult, GetMessageStatus.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from itertools import accumulate
from operator import add
from typing import Final, NamedTuple

from txrocketmq.broker.store.commit_log import CommitLog
from txrocketmq.broker.store.config import StoreConfig
from txrocketmq.broker.store.consume_queue import (
    PRE_BLANK_SIZE,
    UNIT,
    UNIT_BYTES,
    ConsumeQueue,
    units_struct,
)

_MAX_PULL_BYTES: Final = 128 * 1024 * 1024
_LEAST_PULL_BYTES: Final = 100
_MOST_COUNT: Final = 1024
"""No push consumer asks for more messages at once (pullBatchSize), so a pull looks through no more
units for one that does, unless the settings of pulls say so."""
_FIELDS: Final = 3
_INT: Final = 1 << 31
_UINT: Final = (1 << 32) - 1

MessageFilter = Callable[[memoryview], bool]
"""Whether the consumer wants the message of this record."""


class GetMessageStatus(Enum):
    """What came of a get; the names are the remarks of pull responses."""

    FOUND = auto()
    NO_MATCHED_MESSAGE = auto()
    """None of the messages looked at passes the filter: go on after them."""
    MESSAGE_WAS_REMOVING = auto()
    """The log has lost the messages looked at, or they are damaged: go on after them."""
    OFFSET_FOUND_NULL = auto()
    """The queue has no unit there, though it should: go on in its next file."""
    OFFSET_OVERFLOW_BADLY = auto()
    OFFSET_OVERFLOW_ONE = auto()
    """There is no message yet."""
    OFFSET_TOO_SMALL = auto()
    NO_MATCHED_LOGIC_QUEUE = auto()
    NO_MESSAGE_IN_QUEUE = auto()
    OFFSET_RESET = auto()
    """Never the store's answer: the broker's, when an administrator moved the offset."""


class QueryResult(NamedTuple):
    """Messages that may have the key asked for (hashes are compared), oldest first.

    The last two are of the newest entry of the index.
    """

    buffers: Sequence[memoryview]
    last_update_timestamp_ms: int
    last_update_offset: int


@dataclass(slots=True)
class GetResult:
    """Messages of a queue, or why there are none; offsets are the queue's.

    `buffers` are records end to end, `count` messages in `size_bytes`. `suggest_slave`: so much was
    stored since that the messages are likely on disk only.
    """

    status: GetMessageStatus
    next_begin_offset: int
    min_offset: int
    max_offset: int
    buffers: Sequence[memoryview] = ()
    count: int = 0
    size_bytes: int = 0
    suggest_slave: bool = False


class Request(NamedTuple):
    """What is asked: from `offset` on at most `max_count` messages in `max_bytes`, at least one.

    `tag_codes` are the hashes of the tags wanted, None for all; `filter_message` looks at those
    that pass.
    """

    offset: int
    max_count: int
    max_bytes: int
    tag_codes: frozenset[int] | None
    filter_message: MessageFilter | None


def recent_bytes(config: StoreConfig) -> int:
    """Messages are taken to be in memory when less than this was stored after them."""
    physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return physical * config.access_message_in_memory_max_ratio // 100


def get_message(
    log: CommitLog, queue: ConsumeQueue | None, request: Request, config: StoreConfig, recent: int
) -> GetResult:
    """Serves the request from the queue; `recent` is recent_bytes()."""
    if queue is None or queue.max_offset == 0:
        return _elsewhere(GetMessageStatus.NO_MESSAGE_IN_QUEUE, 0, request, queue, config)
    offset = request.offset
    if offset < queue.min_offset:
        status = GetMessageStatus.OFFSET_TOO_SMALL
        return _elsewhere(status, queue.min_offset, request, queue, config)
    if offset == queue.max_offset:
        return _elsewhere(GetMessageStatus.OFFSET_OVERFLOW_ONE, offset, request, queue, config)
    if offset > queue.max_offset:
        status = GetMessageStatus.OFFSET_OVERFLOW_BADLY
        return _elsewhere(status, queue.max_offset, request, queue, config)
    if request.tag_codes is None and request.filter_message is None:
        found = _recent_run(log, queue, request, config, recent)
        if found is not None:
            return found
    return _Search(log, queue, request, config, recent).run()


def _elsewhere(
    status: GetMessageStatus,
    next_offset: int,
    request: Request,
    queue: ConsumeQueue | None,
    config: StoreConfig,
) -> GetResult:
    """No messages; the consumer is to go on at `next_offset`, but for one of a slave."""
    if config.is_slave and not config.offset_check_in_slave:
        next_offset = request.offset
    min_offset = queue.min_offset if queue is not None else 0
    max_offset = queue.max_offset if queue is not None else 0
    return GetResult(status, next_offset, min_offset, max_offset)


def _recent_run(
    log: CommitLog, queue: ConsumeQueue, request: Request, config: StoreConfig, recent: int
) -> GetResult | None:
    """The common case in a few steps: all is wanted, recent, and in one file of the log; None else.

    Other queues' messages may lie between these, so they come one by one or all in one slice.
    """
    count = min(request.max_count, config.max_transfer_count_on_message_in_memory)
    units = queue.read(request.offset, max(count, 1))
    if units is None:
        return None
    count = len(units) // UNIT_BYTES
    fields = units_struct(count).unpack(units)
    sizes = fields[1::_FIELDS]
    total = sum(sizes)
    most = min(_max_bytes(request), config.max_transfer_bytes_on_message_in_memory)
    if total > most:
        ends = list(accumulate(sizes))
        count = max(bisect_right(ends, most), 1)
        total, sizes = ends[count - 1], sizes[:count]
    starts = fields[: _FIELDS * count : _FIELDS]
    first, end = min(starts), max(map(add, starts, sizes))
    file = log.files.find(first)
    if file is None or end > file.end_offset or min(sizes) <= 0 or log.max_offset - first > recent:
        return None
    base = file.from_offset
    if end - first == total:
        buffers = [file.view[first - base : end - base]]
    else:
        view = file.view
        buffers = [
            view[start - base : start - base + size]
            for start, size in zip(starts, sizes, strict=True)
        ]
    next_offset = request.offset + count
    return GetResult(
        GetMessageStatus.FOUND, next_offset, queue.min_offset, queue.max_offset,
        buffers, count, total,
    )  # fmt: skip


def _max_bytes(request: Request) -> int:
    return min(max(request.max_bytes, _LEAST_PULL_BYTES), _MAX_PULL_BYTES)


class _Search:
    """One get, unit by unit."""

    def __init__(
        self,
        log: CommitLog,
        queue: ConsumeQueue,
        request: Request,
        config: StoreConfig,
        recent: int,
    ) -> None:
        self._log = log
        self._queue = queue
        self._request = request
        self._config = config
        self._recent = recent
        self._status = GetMessageStatus.NO_MATCHED_MESSAGE
        self._next = request.offset
        self._buffers: list[memoryview] = []
        self._count = 0
        self._size_bytes = 0
        self._last_physical_offset = 0

    def run(self) -> GetResult:
        """Looks through units until it has enough, or has seen enough."""
        queue, request = self._queue, self._request
        config = self._config
        most_count = max(_MOST_COUNT, config.max_transfer_count_on_message_in_memory)
        count = min(request.max_count, most_count)
        scan = max(config.max_filter_message_size, count * UNIT_BYTES)
        end = request.offset - (-scan // UNIT_BYTES)
        for _ in range(config.travel_cq_file_num_when_get_message):
            if self._count or self._next >= min(queue.max_offset, end):
                break
            units = queue.read(self._next, end - self._next)
            if units is None:
                status = GetMessageStatus.OFFSET_FOUND_NULL
                next_offset = queue.next_file_offset(self._next)
                return _elsewhere(status, next_offset, request, queue, config)
            self._look_through(units)
        return GetResult(
            self._status,
            self._next,
            queue.min_offset,
            queue.max_offset,
            self._buffers,
            self._count,
            self._size_bytes,
            self._log.max_offset - self._last_physical_offset > self._recent,
        )

    def _look_through(self, units: memoryview) -> None:
        wanted, filter_message = self._request.tag_codes, self._request.filter_message
        recent_from = self._log.max_offset - self._recent
        recent_most, older_most = self._limits()
        slices = _Slices(self._log)
        count = total = 0
        for physical_offset, size, code in UNIT.iter_unpack(units):
            if count:
                most_count, most = recent_most if physical_offset >= recent_from else older_most
                if count >= most_count or total + size > most:
                    break
            self._last_physical_offset = physical_offset
            self._next += 1
            if size == PRE_BLANK_SIZE:
                continue
            if wanted is not None and code not in wanted and not self._wants(code, wanted):
                continue
            if not slices.find(physical_offset, size):
                # The log has lost it, or the unit is damaged.
                self._status = GetMessageStatus.MESSAGE_WAS_REMOVING
                continue
            if filter_message is not None and not filter_message(slices.found()):
                self._status = GetMessageStatus.NO_MATCHED_MESSAGE
                continue
            slices.take()
            count += 1
            total += size
        if count:
            self._status = GetMessageStatus.FOUND
            self._buffers = slices.end()
        self._count, self._size_bytes = count, total

    def _limits(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """The most messages and bytes: as long as they are recent, and once they are not."""
        config, request = self._config, self._request
        most = _max_bytes(request)
        return (
            (
                min(request.max_count, config.max_transfer_count_on_message_in_memory),
                min(most, config.max_transfer_bytes_on_message_in_memory),
            ),
            (
                min(request.max_count, config.max_transfer_count_on_message_in_disk),
                min(most, config.max_transfer_bytes_on_message_in_disk),
            ),
        )

    def _wants(self, stored_code: int, wanted: frozenset[int]) -> bool:
        """Whether a code that is not itself wanted stands for one; one that is lost is taken."""
        if -_INT <= stored_code < _INT:
            return False
        code = self._queue.tags_code(stored_code)
        return code is None or ((code + _INT) & _UINT) - _INT in wanted


class _Slices:
    """Slices of the log, growing as long as one message follows on the other."""

    def __init__(self, log: CommitLog) -> None:
        self._log = log
        self._slices: list[memoryview] = []
        self._view = memoryview(b"")
        self._file_start = self._file_end = 0
        self._run_start = self._run_end = 0
        self._start = self._end = 0

    def find(self, physical_offset: int, size: int) -> bool:
        """Goes to a message; False when the log does not have it all."""
        end = physical_offset + size
        if not self._file_start <= physical_offset < end <= self._file_end:
            file = self._log.files.find(physical_offset)
            if file is None or size <= 0 or end > file.end_offset:
                return False
            self._end_run()
            self._view, self._file_start, self._file_end = (
                file.view,
                file.from_offset,
                file.end_offset,
            )
        self._start, self._end = physical_offset, end
        return True

    def found(self) -> memoryview:
        """The message gone to."""
        return self._view[self._start - self._file_start : self._end - self._file_start]

    def take(self) -> None:
        """Adds it."""
        if self._start != self._run_end:
            self._end_run()
            self._run_start = self._start
        self._run_end = self._end

    def end(self) -> list[memoryview]:
        """All that was added."""
        self._end_run()
        return self._slices

    def _end_run(self) -> None:
        if self._run_end > self._run_start:
            file_start = self._file_start
            self._slices.append(
                self._view[self._run_start - file_start : self._run_end - file_start]
            )
        self._run_start = self._run_end = -1
