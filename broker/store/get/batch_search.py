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
    GetMessageStatus,
    GetResult,
    Request,
    Search,
    StoreReader,
    limits_of,
)
from txrocketmq.broker.store.queues.batch_queue import BATCH_UNIT_BYTES, BatchQueue, BatchUnit


class BatchSearch(Search[StoreReader, BatchQueue]):
    """One get under way."""

    def __init__(self, reader: StoreReader, queue: BatchQueue, request: Request) -> None:
        super().__init__(reader, queue, request)
        self._limits = limits_of(reader.config, request)

    def run(self) -> GetResult:
        """Examines units until enough messages are found, or enough units were examined."""
        reader, queue, request = self._reader, self._queue, self._request
        config = reader.config
        most = max(config.max_filter_message_size, request.max_count * BATCH_UNIT_BYTES)
        end = request.offset - (-most // BATCH_UNIT_BYTES)
        for _ in range(config.travel_cq_file_num_when_get_message):
            if self._count or self._next >= min(queue.max_offset, end) or self._work_left <= 0:
                break
            units = queue.batches(self._next, end - self._next, self._check)
            if not units:
                next_offset = queue.next_file_offset(self._next)
                return reader.elsewhere(
                    GetMessageStatus.OFFSET_FOUND_NULL, next_offset, request, queue
                )
            try:
                self._look_through(units, end)
            except NotInMemory:
                if not self._count:
                    raise
        return self._result()

    def _look_through(self, units: list[BatchUnit], end: int) -> None:
        recent_from = self._reader.log.max_offset - self._reader.recent_bytes
        recent_most, older_most = self._limits
        for unit in units:
            if unit.queue_offset >= end:
                return
            if self._count:
                is_recent = unit.physical_offset >= recent_from
                most_count, most_bytes = recent_most if is_recent else older_most
                if (
                    self._count >= most_count
                    or self._count + unit.message_count > self._request.max_count
                    or self._size_bytes + unit.size_bytes > most_bytes
                ):
                    return
            if not self._look_at(unit):
                return
            self._last_physical_offset = unit.physical_offset
            self._next = unit.end_offset
            if self._work_left <= 0:
                return

    def _look_at(self, unit: BatchUnit) -> bool:
        """Takes the record if it is wanted; returns False if the get is to end before it."""
        request, place = self._request, (unit.physical_offset, unit.size_bytes)
        if request.tag_codes is not None and unit.tags_code not in request.tag_codes:
            return True
        if request.only_in_memory:
            self._reader.check_record(*place)
        if not self._slices.find(*place):
            is_lost = 0 <= unit.physical_offset < self._reader.log.min_offset
            if self._count and not is_lost:
                return False
            self._status = GetMessageStatus.MESSAGE_WAS_REMOVING
            if not is_lost:
                name = f"{self._queue.topic}/{self._queue.queue_id}"
                self._reader.note_damage(*place, name, unit.queue_offset)
            return True
        if request.by_properties is not None and not self._is_wanted(request.by_properties):
            self._status = GetMessageStatus.NO_MATCHED_MESSAGE
            return True
        self._slices.take()
        self._count += unit.message_count
        self._size_bytes += unit.size_bytes
        return True
