# SPDX-License-Identifier: Apache-2.0
"""One queue of a topic: a unit of 20 bytes for each message, which points into the log.

The index of a unit is the message's queue offset, so a queue whose first messages are unknown
starts with blank units. Units are appended in the order of the log: physical offsets rise.

Three counters: `next_offset` is what the next message to be put will get (topicQueueTable in the
original), `max_offset` where the written units end (what consumers see), `min_offset` the first
unit whose message the log still has. The first two differ only while messages wait to be durable.

Java: ConsumeQueue, MappedFileQueue.getConsumeQueueMappedFileByTime.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from functools import partial
from typing import Final, NamedTuple

from txrocketmq.broker.store.disk.in_memory import Check, unchecked
from txrocketmq.broker.store.disk.mapped_file import MappedFile, MappedFileQueue
from txrocketmq.broker.store.queues.consume_queue_ext import ConsumeQueueExt, is_ext_address
from txrocketmq.broker.store.queues.light_queues import is_light
from txrocketmq.broker.store.queues.units import (
    MANY_UNITS,
    PRE_BLANK,
    PRE_BLANK_SIZE,
    UNIT,
    UNIT_BYTES,
    UNIT_FIELDS,
    end_of_units,
    first_written,
    has_unit,
    last_written,
    packed,
    units_struct,
)

__all__ = [
    "PRE_BLANK_SIZE",
    "UNIT",
    "UNIT_BYTES",
    "UNIT_FIELDS",
    "ConsumeQueue",
    "Unit",
    "units_struct",
]

_NOWHERE: Final = 1 << 63
"""A log offset behind all others."""


class Unit(NamedTuple):
    """One unit; `tags_code` is the real code when an ext row holds it, or 0 if that is damaged."""

    physical_offset: int
    size_bytes: int
    tags_code: int


class ConsumeQueue:
    """A queue. `record_topic` is the topic as records end with it: its length and its bytes.

    `magic` is that of its records: long topics need V2.
    """

    __slots__ = (
        "_files",
        "ext",
        "is_light",
        "magic",
        "max_offset",
        "max_physical_offset",
        "min_offset",
        "next_offset",
        "pending",
        "queue_id",
        "record_topic",
        "topic",
        "writes_ext",
    )

    is_batch = False
    """Whether it is a queue of batches (batch_queue.py)."""

    def __init__(
        self,
        topic: str,
        queue_id: int,
        magic: int,
        record_topic: bytes,
        files: MappedFileQueue,
        ext: ConsumeQueueExt | None = None,
        *,
        writes_ext: bool = False,
    ) -> None:
        self.topic = topic
        self.queue_id = queue_id
        self.is_light = is_light(topic)
        """Whether its units name messages that have a unit in another queue as well."""
        self.magic = magic
        self.record_topic = record_topic
        self.ext = ext
        self.writes_ext = writes_ext
        self.next_offset = 0
        self.min_offset = 0
        self.max_offset = 0
        self.max_physical_offset = -1
        """The log offset after the last message that has a unit; -1 without one."""
        self.pending: list[int] = []
        """Fields of the next units, one unit after the other, while their records are encoded."""
        self._files = files

    # --- writing ---

    def reserve_pending(self) -> int:
        """Reserves room for the pending units; returns the offset after them.

        Raises OSError when the disk has no room.
        """
        end = self.next_offset + len(self.pending) // UNIT_FIELDS
        row = self._files.mapped_files
        if not row or end * UNIT_BYTES - row[-1].from_offset > row[-1].reserved_bytes:
            self.reserve(end * UNIT_BYTES)
        return end

    def drop_pending(self) -> None:
        """Forgets the pending units."""
        self.pending = []

    def append(self, units: list[int], now_ms: int) -> None:
        """Writes units, given by their fields, after the last one.

        Raises OSError, and writes nothing, when the disk has no room.
        """
        count = len(units) // UNIT_FIELDS
        if count > MANY_UNITS:  # ext units of so many would take long, and are not needed
            data = packed(units)
        else:
            if self.writes_ext:
                self._put_ext(units, now_ms)
            data = units_struct(count).pack(*units)
        row = self._files.mapped_files
        file = row[-1] if row else None
        if file is not None and file.wrote_bytes + len(data) <= file.size_bytes:
            file.append(data)
        else:
            self.append_across(data)
        self.max_offset += count
        self.max_physical_offset = units[-3] + units[-2]
        if self.next_offset < self.max_offset:  # noqa: PLR1730 - for each queue of each read
            self.next_offset = self.max_offset

    @property
    def end_bytes(self) -> int:
        """The position in the row of files after the written units."""
        return self.max_offset * UNIT_BYTES

    def reserve(self, end: int) -> None:
        """Reserves room up to a position in the row of files; raises OSError without."""
        files = self._files
        last = files.last
        if last is not None and end - last.from_offset <= last.size_bytes:
            last.reserve(end - last.from_offset)
            return
        if last is not None:
            last.reserve(last.size_bytes)
        index = 0
        while True:
            file = files.prepare(index, 1, self.end_bytes)
            file.reserve(min(end - file.from_offset, file.size_bytes))
            if file.from_offset + file.size_bytes >= end:
                return
            index += 1

    def dispatch(
        self, queue_offset: int, physical_offset: int, size: int, tags_code: int, stored_ms: int
    ) -> bool:
        """Writes the unit of a message found in the log; False when the queue has it already.

        A gap before the unit is filled with blanks, so that the index stays the queue offset. (The
        original fills only before the first unit and else writes in the wrong place.) OSError when
        the disk has no room.
        """
        if physical_offset + size <= self.max_physical_offset or queue_offset < self.max_offset:
            return False
        if queue_offset > self.max_offset:
            self._fill_blank(queue_offset)
        self.reserve((queue_offset + 1) * UNIT_BYTES)
        self.append([physical_offset, size, tags_code], stored_ms)
        return True

    def dispatch_all(self, first_offset: int, units: list[int], stored_ms: int) -> bool:
        """Writes those of these units that are missing; returns whether there were any."""
        is_put = False
        for at in range(0, len(units), UNIT_FIELDS):
            place, size, tag = units[at : at + UNIT_FIELDS]
            is_put |= self.dispatch(first_offset + at // UNIT_FIELDS, place, size, tag, stored_ms)
        return is_put

    def _fill_blank(self, queue_offset: int) -> None:
        if self._files.last is None:
            # Files before the one of the first unit are never created.
            first = self._files.roll(queue_offset * UNIT_BYTES)
            self.max_offset = first.from_offset // UNIT_BYTES
            self.min_offset = queue_offset
        self.append_across(PRE_BLANK * (queue_offset - self.max_offset))
        self.max_offset = queue_offset

    def append_across(self, data: bytes) -> None:
        """Writes packed units, some of them perhaps into a new file."""
        position = 0
        try:
            while position < len(data):
                file = self._files.last
                if file is None or file.is_full:
                    file = self._files.roll(self.end_bytes)
                room = file.size_bytes - file.wrote_bytes
                file.append(data[position : position + room])
                position += room
        except BaseException:
            # All or nothing: the index of a unit is the queue offset of its message.
            self._files.truncate(self.end_bytes)
            raise

    def _put_ext(self, pending: list[int], now_ms: int) -> None:
        if self.ext is None:
            return
        bitmap_of = self.ext.bitmap_of
        try:
            for at in range(UNIT_FIELDS - 1, len(pending), UNIT_FIELDS):
                physical_offset, size, tags_code = pending[at - 2 : at + 1]
                bitmap = bitmap_of(self.topic, physical_offset, size)
                pending[at] = self.ext.put(tags_code, now_ms, bitmap)
        except OSError:
            # Without an ext unit a message is found all the same: the tag's code is in the queue.
            return

    # --- reading ---

    def read(self, offset: int, max_units: int, check: Check = unchecked) -> memoryview | None:
        """Up to `max_units` units from this offset on, of one file; None when there are none."""
        if not self.min_offset <= offset < self.max_offset:
            return None
        position = offset * UNIT_BYTES
        file = self._files.find(position)
        if file is None:
            return None
        start = position - file.from_offset
        end = min(start + max_units * UNIT_BYTES, file.wrote_bytes)
        if end <= start:
            return None
        check(file, start, end)
        return file.view[start:end]

    def unit(self, offset: int) -> Unit | None:
        """A unit, whether or not the log still has its message; None when there is no such unit."""
        data = self._files.select(offset * UNIT_BYTES, UNIT_BYTES)
        if data is None:
            return None
        physical_offset, size, tags_code = UNIT.unpack(data)
        return Unit(physical_offset, size, self.tags_code(tags_code) or 0)

    def stored(self, offset: int) -> tuple[int, int, int] | None:
        """The fields of a unit as its file has them; None when there is no such unit."""
        data = self._files.select(offset * UNIT_BYTES, UNIT_BYTES) if offset >= 0 else None
        return None if data is None else UNIT.unpack(data)

    def written_from(self, offset: int, check: Check = unchecked) -> int:
        """The offset of the first unit from there on that is not blank; max_offset if all are."""
        files = self._files
        while offset < self.max_offset:
            index = files.index_of(offset * UNIT_BYTES)
            if index < 0:
                later = (
                    each for each in files.mapped_files if each.from_offset > offset * UNIT_BYTES
                )
                offset = next(later).from_offset // UNIT_BYTES
                continue
            file = files.mapped_files[index]
            start = offset * UNIT_BYTES - file.from_offset
            check(file, start, start + UNIT_BYTES)
            units = file.view[start : file.wrote_bytes]
            found = first_written(units[:UNIT_BYTES])
            if found:
                check(file, start, file.wrote_bytes)
                found = first_written(units)
            if found < len(units) // UNIT_BYTES:
                return offset + found
            offset = file.end_offset // UNIT_BYTES
        return self.max_offset

    def written_before(self, offset: int, check: Check = unchecked) -> int:
        """The offset of the last unit before this offset that is not blank; -1 if there is none."""
        for file in reversed(self._files.mapped_files):
            end = min(offset * UNIT_BYTES - file.from_offset, file.wrote_bytes)
            if end <= 0:
                continue
            check(file, max(end - UNIT_BYTES, 0), end)
            first = end // UNIT_BYTES - 1
            if last_written(file.view[max(end - UNIT_BYTES, 0) : end]) < 0:
                check(file, 0, end)
                first = last_written(file.view[:end])
            if first >= 0:
                return file.from_offset // UNIT_BYTES + first
        return -1

    def units(self, offset: int, count: int) -> Iterator[Unit]:
        """Yields units from this offset on, across files."""
        end = min(offset + count, self.max_offset)
        offset = max(offset, self.min_offset)
        while offset < end:
            data = self.read(offset, end - offset)
            if data is None:
                return
            for physical_offset, size, tags_code in UNIT.iter_unpack(data):
                yield Unit(physical_offset, size, self.tags_code(tags_code) or 0)
            offset += len(data) // UNIT_BYTES

    def tags_code(self, stored: int, check: Check = unchecked) -> int | None:
        """The tags code that a stored one means: itself or the ext row's; None when it is lost."""
        if not is_ext_address(stored):
            return stored
        unit = self.ext.get(stored, check) if self.ext is not None else None
        return None if unit is None else unit.tags_code

    def next_file_offset(self, offset: int) -> int:
        """The first offset in the next file (rollNextFile)."""
        units = self._files.file_bytes // UNIT_BYTES
        return offset + units - offset % units

    def offset_by_time(self, time_ms: int, stored_ms: Callable[[int], int], *, upper: bool) -> int:
        """The first offset stored at this time or later; with `upper` the last at it or earlier.

        `stored_ms` tells of an offset when its message was stored, in ms, -1 when that is unknown.
        The answer is within the queue: max_offset when all is earlier, min_offset when later.
        """
        offsets = range(self.min_offset, self.max_offset)
        if upper:
            found = bisect_right(offsets, time_ms, key=stored_ms) - 1
            return self.min_offset + max(found, 0)
        return self.min_offset + bisect_left(offsets, time_ms, key=stored_ms)

    # --- files ---

    @property
    def files(self) -> MappedFileQueue:
        """The row of files, which the queue owns."""
        return self._files

    def load(self) -> None:
        """Finds the files; raises StoreError as MappedFileQueue.load and FileSizeError."""
        self._files.load()
        if self.ext is not None:
            self.ext.load()

    def recover(self) -> None:
        """Finds where the units end; changes no file.

        They end in the last file that has a unit at its start, at the first place that was never
        written. What lies behind is built again from the log.
        """
        files = self._files
        if files.last is None:
            return
        index = len(files.mapped_files) - 1
        while index and not has_unit(files.mapped_files[index].view, 0):
            index -= 1
        file = files.mapped_files[index]
        written = end_of_units(file.view, file.size_bytes // UNIT_BYTES)
        files.end_at(file.from_offset + written * UNIT_BYTES)
        files.flushed_offset = files.max_offset
        self.max_offset = files.max_offset // UNIT_BYTES
        self.min_offset = files.min_offset // UNIT_BYTES
        self.next_offset = self.max_offset
        self._find_last()

    def settle(self) -> None:
        """Removes what is behind the end that `recover` found, and adapts the ext row."""
        self._files.remove_behind()
        if self.ext is not None and self.writes_ext:
            last = self.stored(self.written_before(self.max_offset))
            self.ext.recover(1 if last is None else last[2])

    def flush_again(self, physical_offset: int) -> None:
        """Treats the units of messages from this log offset on as not durable.

        A killed process may have left them in the system's memory only.
        """
        files = self._files
        if files.last is not None:
            durable = self.offset_of(physical_offset) * UNIT_BYTES
            files.flushed_offset = min(files.flushed_offset, durable)
        if self.ext is not None:
            self.ext.files.flushed_offset = max(self.ext.files.min_offset, 0)

    def offset_of(self, physical_offset: int) -> int:
        """The offset of the first unit whose message is at this log offset or behind it.

        A blank counts as the unit behind it, so that gaps mislead no search; if blanks are directly
        before that unit, the result is the offset of the first of them.
        """
        offsets = range(max(self._files.min_offset, 0) // UNIT_BYTES, self.max_offset)
        return offsets.start + bisect_left(offsets, physical_offset, key=self._physical_offset)

    def truncate(self, physical_offset: int) -> None:
        """Removes the units of messages from this log offset on."""
        if self._files.last is None or self._files.min_offset // UNIT_BYTES >= self.max_offset:
            return
        keep = self.offset_of(physical_offset)
        if keep < self.max_offset:
            self.cut(keep)

    def cut(self, offset: int) -> None:
        """Removes the units from this queue offset on."""
        self._files.truncate(offset * UNIT_BYTES)
        while self._files.mapped_files and not self._files.mapped_files[-1].wrote_bytes:
            self._files.remove_last()
        self.max_offset = self._files.max_offset // UNIT_BYTES
        self.next_offset = self.max_offset
        self.min_offset = min(self.min_offset, self.max_offset)
        self.clear_tail()
        self._find_last()

    def clear_tail(self) -> None:
        """Zeroes what is behind the last unit: see MappedFile.clear_tail."""
        if self._files.last is not None:
            self._files.last.clear_tail()

    def correct_min_offset(self, min_physical_offset: int) -> None:
        """Moves min_offset to the first unit whose message the log still has."""
        self.min_offset = self._first_kept(min_physical_offset, unchecked)

    def _first_kept(self, min_physical_offset: int, check: Check) -> int:
        """The offset for min_offset; max_offset when the log has lost all messages.

        Mostly nothing has changed. Two units are asked for that, since one may be damaged.
        """
        if self._files.last is None or self.min_offset >= self.max_offset:
            return self.min_offset
        least = max(min_physical_offset, 0)
        offsets = range(self.min_offset, self.max_offset)
        place = partial(self._physical_offset, check=check)
        first = offsets.start
        if any(place(offset) < least for offset in offsets[:2]):
            first += bisect_left(offsets, least, key=place)
        found = self.written_from(first, check)
        if found == self.max_offset and self.max_physical_offset > min_physical_offset:
            before = self.written_before(self.max_offset, check)
            last = self.stored(before)
            if last is None or last[0] >= min_physical_offset:
                return self.min_offset  # there is such a unit, but it does not read so
        return found

    def find_min_offset(self, min_physical_offset: int) -> None:
        """Like correct_min_offset, but min_offset may move back, as units were put before it."""
        if self._files.last is not None:
            self.min_offset = self._files.min_offset // UNIT_BYTES
        self.correct_min_offset(min_physical_offset)

    def take_files_before(
        self, min_physical_offset: int, check: Check = unchecked
    ) -> list[MappedFile]:
        """Gives up the files whose messages the log has all lost, but never the last file.

        `check` is called before each read; when it raises, nothing has changed.
        """
        first = self._first_kept(min_physical_offset, check)
        unit = self.stored(first)
        self.min_offset = first
        row, count = self._files.mapped_files, 0
        while count < len(row) - 1 and row[count].end_offset <= first * UNIT_BYTES:
            count += 1
        taken = self._files.take_first(count)
        if self.ext is not None and self.writes_ext and unit is not None:
            taken += self.ext.take_files_before(unit[2])
        return taken

    def take_all(self) -> list[MappedFile]:
        """Gives up all files of the queue, which must not be used any more."""
        return self._files.take_all() + ([] if self.ext is None else self.ext.files.take_all())

    def destroy(self) -> None:
        """Removes all files of the queue."""
        self._files.destroy()
        if self.ext is not None:
            self.ext.files.destroy()
        self.next_offset = self.min_offset = self.max_offset = 0
        self.max_physical_offset = -1

    def _physical_offset(self, offset: int, check: Check = unchecked) -> int:
        """For searches: the log offset in this unit, or in the next one that is not blank."""
        found = self.stored(self.written_from(offset, check))
        return _NOWHERE if found is None else found[0]

    def _find_last(self) -> None:
        """Sets max_physical_offset according to the last unit that is not blank."""
        last = self.stored(self.written_before(self.max_offset))
        self.max_physical_offset = -1 if last is None else last[0] + last[1]
