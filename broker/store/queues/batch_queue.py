# SPDX-License-Identifier: Apache-2.0
"""One queue of a topic of batches (BatchCQ): a unit of 46 bytes for each record.

A unit says which queue offsets its record has: the first one, and how many. So the place of a unit
in the files is not an offset, and offsets are found by search; where messages are missing, offsets
jump, and no unit stands for them.

While records are made, and in what follows from them, each message has the three fields of a plain
unit. Those of a batch but the first have zeros: they are in the record of the one before.

Java: BatchConsumeQueue.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from itertools import compress
from typing import Final, NamedTuple

from txrocketmq.broker.store.disk.in_memory import Check, unchecked
from txrocketmq.broker.store.disk.mapped_file import MappedFile, MappedFileQueue
from txrocketmq.broker.store.formats import formats
from txrocketmq.broker.store.queues.consume_queue import (
    PRE_BLANK_SIZE,
    UNIT_FIELDS,
    ConsumeQueue,
    Unit,
)
from txrocketmq.remoting.primitives.packing import fixed

BATCH_UNIT: Final = fixed(formats.BATCH_CONSUME_QUEUE_UNIT).struct
BATCH_UNIT_BYTES: Final = BATCH_UNIT.size
MAX_BATCH_MESSAGES: Final = 0x7FFF
"""A unit has no room for a higher number of messages."""
_NOT_COMPACTED: Final = -1


class BatchUnit(NamedTuple):
    """One unit; `queue_offset` is the queue offset of the first message in its record."""

    physical_offset: int
    size_bytes: int
    tags_code: int
    stored_ms: int
    queue_offset: int
    message_count: int
    compacted_offset: int = _NOT_COMPACTED
    reserved: int = 0

    @property
    def end_offset(self) -> int:
        """The queue offset after the last message of the record."""
        return self.queue_offset + self.message_count

    @property
    def is_written(self) -> bool:
        """Whether the unit names a record, by the test that the original's recovery uses."""
        return (
            self.physical_offset >= 0
            and self.size_bytes > 0
            and self.queue_offset >= 0
            and self.message_count > 0
        )


class BatchQueue(ConsumeQueue):
    """A queue of batches."""

    __slots__ = ("_end_bytes", "_entered")

    is_batch = True

    def __init__(
        self, topic: str, queue_id: int, magic: int, record_topic: bytes, files: MappedFileQueue
    ) -> None:
        super().__init__(topic, queue_id, magic, record_topic, files)
        self._end_bytes = 0
        self._entered = 0
        """How many messages the pending fields stand for."""

    @property
    def end_bytes(self) -> int:
        """The position in the row of files after the written units."""
        return self._end_bytes

    # --- writing ---

    def enter(self, count: int) -> int:
        """Announces that the next pending record has `count` messages; returns their first offset.

        The caller then adds the fields of the record to `pending`.
        """
        self._fill_pending()
        self._entered += count
        return self.next_offset + len(self.pending) // UNIT_FIELDS

    def _fill_pending(self) -> None:
        """Adds fields of zeros for the further messages of the last pending batch."""
        if not self.pending:
            self._entered = 0
        self.pending += [0] * (self._entered * UNIT_FIELDS - len(self.pending))

    def reserve_pending(self) -> int:
        self._fill_pending()
        records = sum(map(bool, self.pending[1::UNIT_FIELDS]))
        self.reserve(self._end_bytes + records * BATCH_UNIT_BYTES)
        return self.next_offset + self._entered

    def append(self, units: list[int], now_ms: int) -> None:
        count = len(units) // UNIT_FIELDS
        first = self.max_offset
        places = [*compress(range(count), units[1::UNIT_FIELDS])]
        found: list[list[int]] = []
        for at, end in zip(places, (*places[1:], count), strict=True):
            physical_offset, size, tags_code = units[at * UNIT_FIELDS : (at + 1) * UNIT_FIELDS]
            its = [now_ms, first + at, end - at, _NOT_COMPACTED, 0]
            found.append([physical_offset, size, tags_code, *its])
        data = b"".join(BATCH_UNIT.pack(*each) for each in found)
        self.append_across(data)
        self._end_bytes += len(data)
        self.max_offset += count
        self.max_physical_offset = found[-1][0] + found[-1][1]
        self.next_offset = max(self.next_offset, self.max_offset)

    def dispatch_all(self, first_offset: int, units: list[int], stored_ms: int) -> bool:
        starts = [at for at in range(0, len(units), UNIT_FIELDS) if units[at + 1]]
        is_put = False
        for at, after in zip(starts, [*starts[1:], len(units)], strict=True):
            fields = units[at:after]
            offset = first_offset + at // UNIT_FIELDS
            is_after = fields[0] + fields[1] > self.max_physical_offset
            if not is_after or (self._end_bytes and offset < self.max_offset):
                continue
            self.reserve(self._end_bytes + BATCH_UNIT_BYTES)
            if not self._end_bytes:
                self.min_offset = offset
            self.max_offset = offset
            self.append(fields, stored_ms)
            is_put = True
        return is_put

    # --- reading ---

    @property
    def _places(self) -> range:
        """The places (indices) of the units in the files."""
        first = max(self._files.min_offset, 0)
        return range(first // BATCH_UNIT_BYTES, self._end_bytes // BATCH_UNIT_BYTES)

    def _unit_at(self, place: int, check: Check = unchecked) -> BatchUnit:
        """The unit at a place; an empty unit where there is no file."""
        at = place * BATCH_UNIT_BYTES
        file = self._files.find(at)
        if file is None:
            return BatchUnit(-1, 0, 0, 0, -1, 0)
        at -= file.from_offset
        check(file, at, at + BATCH_UNIT_BYTES)
        return BatchUnit(*BATCH_UNIT.unpack_from(file.view, at))

    def _place_of(self, offset: int, check: Check = unchecked) -> int:
        """The place of the last unit that begins at this offset or before; -1 if there is none."""
        places = self._places
        count = bisect_right(places, offset, key=lambda at: self._unit_at(at, check).queue_offset)
        return places[count - 1] if count else -1

    def _place_in_log(self, physical_offset: int, check: Check = unchecked) -> int:
        """The place of the first unit whose record is at this log offset or behind it."""
        places = self._places
        return places.start + bisect_left(
            places, physical_offset, key=lambda at: self._unit_at(at, check).physical_offset
        )

    def _offset_at(self, place: int, check: Check = unchecked) -> int:
        """The first queue offset of the unit at a place; max_offset after the last one."""
        if place >= self._places.stop:
            return self.max_offset
        return self._unit_at(place, check).queue_offset

    def batch_at(self, offset: int, check: Check = unchecked) -> BatchUnit | None:
        """The unit of the record with the message of this offset; None if there is none."""
        place = self._place_of(offset, check)
        unit = self._unit_at(place, check) if place >= 0 else None
        return unit if unit is not None and offset < unit.end_offset else None

    def begins_at(self, offset: int) -> bool:
        """Whether a record begins with the message at this offset."""
        unit = self.batch_at(offset)
        return unit is not None and unit.queue_offset == offset

    def batches(self, offset: int, count: int, check: Check = unchecked) -> list[BatchUnit]:
        """Up to `count` units, beginning with the one that has this offset, or the first behind it.

        They all come from one file; the list is empty when the queue has no such units.
        """
        places = self._places
        place = max(self._place_of(offset, check), places.start)
        file = self._files.find(place * BATCH_UNIT_BYTES)
        if file is None or place >= places.stop:
            return []
        start = place * BATCH_UNIT_BYTES - file.from_offset
        end = min(start + count * BATCH_UNIT_BYTES, file.wrote_bytes)
        check(file, start, end)
        found = [BatchUnit._make(each) for each in BATCH_UNIT.iter_unpack(file.view[start:end])]
        if found and found[0].end_offset <= offset:  # messages are missing behind it
            del found[0]
            return found or self.batches(self._offset_at(place + 1, check), count, check)
        return found

    def read(self, offset: int, max_units: int, check: Check = unchecked) -> memoryview | None:
        raise TypeError("units of batches are not plain units: see `batches`")

    def unit(self, offset: int) -> Unit | None:
        found = self.stored(offset)
        return None if found is None else Unit(*found)

    def stored(self, offset: int) -> tuple[int, int, int] | None:
        unit = self.batch_at(offset)
        return None if unit is None else unit[:3]

    def written_from(self, offset: int, check: Check = unchecked) -> int:
        place = self._place_of(offset, check)
        if place >= 0 and offset < self._unit_at(place, check).end_offset:
            return offset
        return self._offset_at(max(place + 1, self._places.start), check)

    def written_before(self, offset: int, check: Check = unchecked) -> int:
        place = self._place_of(offset - 1, check)
        return -1 if place < 0 else min(offset, self._unit_at(place, check).end_offset) - 1

    def units(self, offset: int, count: int) -> Iterator[Unit]:
        """Yields a unit for each offset: one for all messages of a batch, a blank if missing."""
        end = min(offset + count, self.max_offset)
        offset = max(offset, self.min_offset)
        while offset < end:
            unit = self.batch_at(offset)
            after = self.written_from(offset) if unit is None else unit.end_offset
            found = Unit(0, PRE_BLANK_SIZE, 0) if unit is None else Unit(*unit[:3])
            for _ in range(offset, min(after, end)):
                yield found
            offset = after

    def columns(self) -> Iterator[BatchUnit]:
        """All units, in the order of the files."""
        for file in self._files.mapped_files:
            end = file.wrote_bytes // BATCH_UNIT_BYTES * BATCH_UNIT_BYTES
            yield from map(BatchUnit._make, BATCH_UNIT.iter_unpack(file.view[:end]))

    def edges(self) -> Iterator[BatchUnit]:
        """The first and the last unit of each file."""
        for file in self._files.mapped_files:
            first = file.from_offset // BATCH_UNIT_BYTES
            after = file.end_offset // BATCH_UNIT_BYTES
            yield from map(self._unit_at, sorted({first, after - 1}) if after > first else ())

    def next_file_offset(self, offset: int) -> int:
        """Returns 0, as the original does where it finds no unit."""
        return 0

    def offset_by_time(
        self,
        time_ms: int,
        stored_ms: Callable[[int], int],
        *,
        upper: bool,
        check: Check = unchecked,
    ) -> int:
        """The first offset of the first batch stored at a time or later, or of the last one.

        With `upper`, that of the last batch stored at this time or before. Units contain the time,
        so `stored_ms` is not called.
        """
        places = self._places
        first = self._place_of(self.min_offset, check)
        places = range(max(first, places.start), places.stop)
        if not places:
            return self.min_offset
        find = bisect_right if upper else bisect_left
        at = find(places, time_ms, key=lambda at: self._unit_at(at, check).stored_ms) - upper
        place = places[min(max(at, 0), len(places) - 1)]
        return max(self._offset_at(place, check), self.min_offset)

    # --- files ---

    def recover(self) -> None:
        """Finds where the units end: at the first place, or file, that was never written."""
        files = self._files
        for start, _ in files.gaps()[:1]:
            files.end_at(start)
        if files.last is None:
            return
        index = len(files.mapped_files) - 1
        while index and not _has_unit(files.mapped_files[index], 0):
            index -= 1
        file = files.mapped_files[index]
        count = file.size_bytes // BATCH_UNIT_BYTES
        written = bisect_left(range(count), 1, key=lambda at: int(not _has_unit(file, at)))
        files.end_at(file.from_offset + written * BATCH_UNIT_BYTES)
        files.flushed_offset = files.max_offset
        self._find_end(0)
        self.next_offset = self.max_offset
        self.min_offset = self._offset_at(self._places.start)

    def _find_end(self, offset: int) -> None:
        """Sets what depends on the end of the files; without units that is the given offset."""
        self._end_bytes = self._files.max_offset
        places = self._places
        last = self._unit_at(places[-1]) if places else None
        self.max_offset = offset if last is None else last.end_offset
        self.max_physical_offset = -1 if last is None else last.physical_offset + last.size_bytes

    def flush_again(self, physical_offset: int) -> None:
        durable = self._place_in_log(physical_offset) * BATCH_UNIT_BYTES
        self._files.flushed_offset = min(self._files.flushed_offset, durable)

    def offset_of(self, physical_offset: int) -> int:
        return self._offset_at(self._place_in_log(physical_offset))

    def truncate(self, physical_offset: int) -> None:
        self._cut_at(self._place_in_log(physical_offset))

    def cut(self, offset: int) -> None:
        """Removes the batches that contain this offset or later ones."""
        place = self._place_of(offset)
        if place < 0 or offset >= self._unit_at(place).end_offset:
            place = max(place + 1, self._places.start)
        self._cut_at(place)

    def _cut_at(self, place: int) -> None:
        if place >= self._places.stop:
            return
        offset, files = self._offset_at(place), self._files
        files.truncate(place * BATCH_UNIT_BYTES)
        while files.mapped_files and not files.mapped_files[-1].wrote_bytes:
            files.remove_last()
        self._find_end(offset)
        self.next_offset = self.max_offset
        self.min_offset = min(self.min_offset, self.max_offset)
        self.clear_tail()

    def _first_kept(self, min_physical_offset: int, check: Check) -> int:
        if not self._places:
            return self.min_offset
        return self._offset_at(self._place_in_log(max(min_physical_offset, 0), check), check)

    def find_min_offset(self, min_physical_offset: int) -> None:
        self.correct_min_offset(min_physical_offset)

    def take_files_before(
        self, min_physical_offset: int, check: Check = unchecked
    ) -> list[MappedFile]:
        place = self._place_in_log(max(min_physical_offset, 0), check)
        self.min_offset = self._first_kept(min_physical_offset, check)
        row, count = self._files.mapped_files, 0
        while count < len(row) - 1 and row[count].end_offset <= place * BATCH_UNIT_BYTES:
            count += 1
        return self._files.take_first(count)

    def take_all(self) -> list[MappedFile]:
        self._end_bytes = 0
        return super().take_all()

    def destroy(self) -> None:
        super().destroy()
        self._end_bytes = 0


def _has_unit(file: MappedFile, index: int) -> bool:
    at = index * BATCH_UNIT_BYTES
    unit = file.view[at : at + BATCH_UNIT_BYTES]
    return len(unit) == BATCH_UNIT_BYTES and BatchUnit(*BATCH_UNIT.unpack(unit)).is_written
