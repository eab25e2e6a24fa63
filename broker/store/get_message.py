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
    """The common case in a few steps: all is wanted, and lies in memory side by side. None else."""
    count = min(request.max_count, config.max_transfer_count_on_message_in_memory)
    units = queue.read(request.offset, max(count, 1))
    if units is None:
        return None
    count = len(units) // UNIT_BYTES
    fields = units_struct(count).unpack(units)
    start = fields[0]
    if log.max_offset - start > recent:
        return None
    sizes = fields[1::_FIELDS]
    total = sum(sizes)
    most = min(_max_bytes(request), config.max_transfer_bytes_on_message_in_memory)
    if total > most:
        ends = list(accumulate(sizes))
        count = max(bisect_right(ends, most), 1)
        total = ends[count - 1]
    last = _FIELDS * (count - 1)
    if fields[last] + fields[last + 1] - start != total:
        return None
    data = log.select(start, total)
    if data is None or not total:
        return None
    return GetResult(
        GetMessageStatus.FOUND,
        request.offset + count,
        queue.min_offset,
        queue.max_offset,
        (data,),
        count,
        total,
    )


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
        self._log_end = log.max_offset
        self._status = GetMessageStatus.NO_MATCHED_MESSAGE
        self._next = request.offset
        self._lost_before = -1
        """Messages before this physical offset are in a log file that is gone."""
        self._buffers: list[memoryview] = []
        self._run_start = self._run_end = 0
        self._count = 0
        self._size_bytes = 0
        self._last_physical_offset = 0

    def run(self) -> GetResult:
        """Looks through units until it has enough, or has seen enough."""
        queue, request = self._queue, self._request
        scan = max(self._config.max_filter_message_size, request.max_count * UNIT_BYTES)
        end = request.offset - (-scan // UNIT_BYTES)
        for _ in range(self._config.travel_cq_file_num_when_get_message):
            if self._count or self._next >= min(queue.max_offset, end):
                break
            units = queue.read(self._next, end - self._next)
            if units is None:
                return self._found_null()
            for physical_offset, size, stored_code in UNIT.iter_unpack(units):
                if self._is_full(physical_offset, size):
                    break
                self._last_physical_offset = physical_offset
                self._next += 1
                if size != PRE_BLANK_SIZE and self._wants(stored_code):
                    self._take(physical_offset, size)
        self._end_run()
        return GetResult(
            self._status,
            self._next,
            queue.min_offset,
            queue.max_offset,
            self._buffers,
            self._count,
            self._size_bytes,
            self._log_end - self._last_physical_offset > self._recent,
        )

    def _found_null(self) -> GetResult:
        return _elsewhere(
            GetMessageStatus.OFFSET_FOUND_NULL,
            self._queue.next_file_offset(self._next),
            self._request,
            self._queue,
            self._config,
        )

    def _is_full(self, physical_offset: int, size: int) -> bool:
        if not self._count:
            return False
        config = self._config
        if self._log_end - physical_offset <= self._recent:
            most_bytes = config.max_transfer_bytes_on_message_in_memory
            most = config.max_transfer_count_on_message_in_memory
        else:
            most_bytes = config.max_transfer_bytes_on_message_in_disk
            most = config.max_transfer_count_on_message_in_disk
        return self._count >= min(self._request.max_count, most) or (
            self._size_bytes + size > min(_max_bytes(self._request), most_bytes)
        )

    def _wants(self, stored_code: int) -> bool:
        """Whether the tag is one that is asked for; a code that is lost is taken for it."""
        wanted = self._request.tag_codes
        if wanted is None:
            return True
        code = self._queue.tags_code(stored_code)
        return code is None or code in wanted or ((code + _INT) & _UINT) - _INT in wanted

    def _take(self, physical_offset: int, size: int) -> None:
        if physical_offset < self._lost_before:
            return
        data = self._log.select(physical_offset, size) if size > 0 else None
        if data is None:
            if not self._count:
                self._status = GetMessageStatus.MESSAGE_WAS_REMOVING
            self._lost_before = self._log.next_file_offset(physical_offset)
            return
        filter_message = self._request.filter_message
        if filter_message is not None and not filter_message(data):
            if not self._count:
                self._status = GetMessageStatus.NO_MATCHED_MESSAGE
            return
        if physical_offset != self._run_end:
            self._end_run()
            self._run_start = physical_offset
        self._run_end = physical_offset + size
        self._count += 1
        self._size_bytes += size
        self._status = GetMessageStatus.FOUND
        self._lost_before = -1

    def _end_run(self) -> None:
        if self._run_end > self._run_start:
            data = self._log.select(self._run_start, self._run_end - self._run_start)
            assert data is not None, "each message of the run was there"
            self._buffers.append(data)
            self._run_start = self._run_end = 0
