# SPDX-License-Identifier: Apache-2.0
"""Reads messages of a queue of batches, whose records may contain many messages each.

A record is returned whole, even when the requested offset is in the middle of it. The limits of a
get count messages; the first record is returned however many it contains. Filters see the record as
if it were one message: the tags of a batch, not those of its messages.

Java: DefaultMessageStore.getMessage, BatchConsumeQueue.iterateFrom.
"""

from __future__ import annotations

from txrocketmq.broker.store.disk.in_memory import NotInMemory
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
from txrocketmq.broker.store.queues.batch_queue import BATCH_UNIT_BYTES, BatchQueue, BatchUnit
from txrocketmq.remoting.message.message import record_properties


def search_batches(records: Records, queue: BatchQueue, request: Request) -> GetResult:
    """Serves a request from a queue, at an offset that the queue has."""
    return _BatchSearch(records, queue, request).run()


class _BatchSearch:
    """A get under way: what it has found so far, and where it continues."""

    def __init__(self, records: Records, queue: BatchQueue, request: Request) -> None:
        self._records, self._queue, self._request = records, queue, request
        self._status = GetMessageStatus.NO_MATCHED_MESSAGE
        self._next = request.offset
        self._slices = LogSlices(records.log, queue.magic)
        self._count = self._size_bytes = self._last_offset = 0
        self._work_left = MOST_WORK
        self._limits = Limits(records.config, request, records.recent_from)

    def run(self) -> GetResult:
        """Examines units until enough messages are found, or enough units were examined."""
        queue, request, config = self._queue, self._request, self._records.config
        most = max(config.max_filter_message_size, request.max_count * BATCH_UNIT_BYTES)
        end = request.offset - (-most // BATCH_UNIT_BYTES)
        for _ in range(config.travel_cq_file_num_when_get_message):
            if self._count or self._next >= min(queue.max_offset, end) or self._work_left <= 0:
                break
            units = queue.batches(self._next, end - self._next, self._records.memory.check)
            if not units:
                next_offset = queue.next_file_offset(self._next)
                status = GetMessageStatus.OFFSET_FOUND_NULL
                return elsewhere(config, status, next_offset, request, queue)
            try:
                self._look_through(units, end)
            except NotInMemory:
                if not self._count:
                    raise
        return GetResult(
            GetMessageStatus.FOUND if self._count else self._status,
            self._next, queue.min_offset, queue.max_offset,
            self._slices.end(), self._count, self._size_bytes,
            self._last_offset < self._limits.recent_from,
        )  # fmt: skip

    def _look_through(self, units: list[BatchUnit], end: int) -> None:
        for unit in units:
            if unit.queue_offset >= end:
                return
            if self._count and (
                self._count + unit.message_count > self._request.max_count
                or self._limits.is_full(
                    self._count, self._size_bytes, unit.physical_offset, unit.size_bytes
                )
            ):
                return
            if not self._look_at(unit):
                return
            self._last_offset = unit.physical_offset
            self._next = unit.end_offset
            if self._work_left <= 0:
                return

    def _look_at(self, unit: BatchUnit) -> bool:
        """Takes the record if it is wanted; returns False if the get is to end before it."""
        request, place = self._request, (unit.physical_offset, unit.size_bytes)
        if request.tag_codes is not None and unit.tags_code not in request.tag_codes:
            return True
        self._records.check(*place)
        if not self._slices.find(*place):
            is_lost = 0 <= unit.physical_offset < self._records.log.min_offset
            if self._count and not is_lost:
                return False
            self._status = GetMessageStatus.MESSAGE_WAS_REMOVING
            if not is_lost:
                name = f"{self._queue.topic}/{self._queue.queue_id}"
                self._records.note_damage(*place, name, unit.queue_offset)
            return True
        if request.by_properties is not None and not self._is_wanted(request.by_properties):
            self._status = GetMessageStatus.NO_MATCHED_MESSAGE
            return True
        self._slices.take()
        self._count += unit.message_count
        self._size_bytes += unit.size_bytes
        return True

    def _is_wanted(self, by_properties: PropertiesFilter) -> bool:
        """Whether the record that was found is wanted, judging by its properties."""
        text = record_properties(self._slices.found())
        self._work_left -= work_of(by_properties.terms, text)
        return by_properties.wants(text)
