# SPDX-License-Identifier: Apache-2.0
"""Puts messages of the log into queues that lack them, behind the last unit or in a gap.

The log is what counts, with one exception: several records may claim the same place of a queue,
when a topic was deleted and made anew. A unit that agrees with its record is therefore left alone,
and a gap takes only messages that lie in the log between those of the units around it.

Java: ConsumeQueue.putMessagePositionInfo, which only ever adds behind the last unit.
"""

from __future__ import annotations

from txrocketmq.broker.store.disk.mapped_file import MappedFile, MappedFileQueue
from txrocketmq.broker.store.formats.scan import Record
from txrocketmq.broker.store.log.log_walk import agrees
from txrocketmq.broker.store.queues.consume_queue import ConsumeQueue
from txrocketmq.broker.store.queues.units import PRE_BLANK, UNIT, UNIT_BYTES, is_written, zero_runs


class UnitRepair:
    """Repairs the queues of one store from its log."""

    def __init__(self, log: MappedFileQueue) -> None:
        self._log = log
        self._confirmed: set[int] = set()
        """The queues whose last sound unit is known, by their identity."""
        self._gaps: dict[int, _Gap] = {}
        """The gap in which each queue was last repaired, by the identity of the queue."""
        self.cut_from: int | None = None
        """The log offset from which to dispatch once more; None: nowhere."""
        self._filled: set[str] = set()
        """The files in which every unit has been written, if only with fillers."""

    def put(
        self, queue: ConsumeQueue, record: Record, fields: list[int], offset: int | None = None
    ) -> bool:
        """Makes sure that the queue has the message at `offset`, by default the record's own.

        Returns whether a unit with these fields was written. Raises OSError when the disk has no
        room.
        """
        offset = record.queue_offset if offset is None else offset
        if queue.is_batch:
            return self._put_batch(queue, record, fields, offset)
        self.confirm(queue)
        start, size, tags_code = fields
        if offset >= queue.max_offset:
            if start < queue.max_physical_offset:
                return False  # of a topic that was deleted and made anew since
            return queue.dispatch(offset, start, size, tags_code, record.store_timestamp_ms)
        if offset == 0 and start >= queue.max_physical_offset >= 0:
            # The topic was deleted, and created again with this message.
            queue.destroy()
            self._gaps.pop(id(queue), None)
            return queue.dispatch(offset, start, size, tags_code, record.store_timestamp_ms)
        unit = queue.stored(offset)
        if unit is not None and unit[:2] == (start, size):
            return False
        if unit is not None and is_written(*unit[:2]) and agrees(self._log, queue, offset):
            return False
        gap = self._gaps.get(id(queue))
        if gap is None or not gap.first <= offset < gap.after:
            gap = self._gaps[id(queue)] = self._gap_at(queue, offset)
        if not gap.lower <= start <= gap.upper - size:
            return False
        self._write(queue, offset, UNIT.pack(start, size, tags_code))
        gap.first, gap.lower = offset + 1, start + size
        return True

    def _put_batch(
        self, queue: ConsumeQueue, record: Record, fields: list[int], offset: int
    ) -> bool:
        """Does what `put` does; batches have no fixed places, so units behind a gap are cut off.

        The log from there on is then to be dispatched again, see `cut_from`.
        """
        start = record.physical_offset
        unit = queue.stored(offset)
        if unit is not None and unit[:2] == (start, record.size_bytes):
            return False
        if queue.max_physical_offset > start or queue.max_offset > offset:
            self.cut_from = start if self.cut_from is None else min(self.cut_from, start)
            queue.truncate(start)
            queue.cut(offset)
        return queue.dispatch_all(offset, fields, record.store_timestamp_ms)

    def blank(self, queue: ConsumeQueue, start: int, end: int) -> None:
        """Writes fillers for the messages that cannot be read between two log offsets.

        Queues of batches get none, as their units must not be blank: reading skips missing messages
        there.
        """
        if queue.is_batch:
            return
        for offset in range(queue.offset_of(start), queue.offset_of(end)):
            unit = queue.stored(offset)
            if unit is None or not start <= unit[0] < end or self._log.find(unit[0]) is None:
                continue
            if is_written(*unit[:2]) and not agrees(self._log, queue, offset, check_crc=True):
                self._write(queue, offset, PRE_BLANK)

    def confirm(self, queue: ConsumeQueue) -> None:
        """Sets how far the queue goes in the log by its last unit that agrees with the log.

        It does nothing if it has done so before; `put` does it, too.
        """
        if id(queue) in self._confirmed:
            return
        self._confirmed.add(id(queue))
        offset = queue.written_before(queue.max_offset)
        while offset >= 0 and not agrees(self._log, queue, offset):
            offset = queue.written_before(offset)
        last = queue.stored(offset)
        queue.max_physical_offset = -1 if last is None else last[0] + last[1]

    def _gap_at(self, queue: ConsumeQueue, offset: int) -> _Gap:
        """The gap around an offset, bounded by the nearest units that agree with the log."""
        before, after = queue.written_before(offset), queue.written_from(offset + 1)
        while before >= 0 and not agrees(self._log, queue, before):
            before = queue.written_before(before)
        while after < queue.max_offset and not agrees(self._log, queue, after):
            after = queue.written_from(after + 1)
        lower, upper = queue.stored(before), queue.stored(after)
        return _Gap(
            before + 1,
            after,
            0 if lower is None else lower[0] + lower[1],
            self._log.max_offset if upper is None else upper[0],
        )

    def _write(self, queue: ConsumeQueue, offset: int, unit: bytes) -> None:
        at = offset * UNIT_BYTES
        row = queue.files
        file = row.find(at)
        if file is None:
            file = row.insert(at, PRE_BLANK)
        elif file.path not in self._filled:
            _fill_zeros(file)
        self._filled.add(file.path)
        file.overwrite(at - file.from_offset, unit)
        row.flushed_offset = min(row.flushed_offset, at)


class _Gap:
    """A range of offsets of a queue, and the part of the log where their messages must be."""

    def __init__(self, first: int, after: int, lower: int, upper: int) -> None:
        self.first, self.after, self.lower, self.upper = first, after, lower, upper


def _fill_zeros(file: MappedFile) -> None:
    """Writes fillers where nothing was written, as an original broker would end the queue there."""
    file.reserve_whole()
    for first, after in zero_runs(file.view[: file.wrote_bytes]):
        file.overwrite(first * UNIT_BYTES, PRE_BLANK * (after - first))
