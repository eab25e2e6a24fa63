# SPDX-License-Identifier: Apache-2.0
"""One queue of a topic: a unit of 20 bytes per message, telling where the message is in the log.

The index of a unit is the message's queue offset, so a queue whose first messages are unknown
starts with blank units. Units are appended in the order of the log: physical offsets rise.

Three counters: `next_offset` is what the next message to be put will get (topicQueueTable in the
original), `max_offset` where the written units end (what consumers see), `min_offset` the first
unit whose message the log still has. The first two differ only while messages wait to be durable.

Java: ConsumeQueue, MappedFileQueue.getConsumeQueueMappedFileByTime.
"""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from functools import lru_cache
from struct import Struct
from typing import Final, NamedTuple

from txrocketmq.broker.store import formats
from txrocketmq.broker.store.consume_queue_ext import ConsumeQueueExt, is_ext_address
from txrocketmq.broker.store.mapped_file import MappedFileQueue
from txrocketmq.remoting.packing import fixed

UNIT: Final = fixed(formats.CONSUME_QUEUE_UNIT).struct
UNIT_BYTES: Final = UNIT.size
_UNIT_FIELDS: Final = len(fixed(formats.CONSUME_QUEUE_UNIT).names)
PRE_BLANK_SIZE: Final = formats.CONSUME_QUEUE_PRE_BLANK_SIZE
_PRE_BLANK: Final = UNIT.pack(0, PRE_BLANK_SIZE, 0)
_INTS_OF_UNIT: Final = UNIT_BYTES // 4
_SIZE_INT: Final = fixed(formats.CONSUME_QUEUE_UNIT).offset_of("size") // 4
_SCAN_UNITS: Final = 4096
_RECOVERED_FILES: Final = 3
"""How many files from the end are looked through at start."""


class Unit(NamedTuple):
    """One unit; `tags_code` is the real one where an ext row holds it, 0 where that is damaged."""

    physical_offset: int
    size_bytes: int
    tags_code: int


@lru_cache(maxsize=512)
def units_struct(count: int) -> Struct:
    """The codec of so many units in a row."""
    return Struct(">" + UNIT.format[1:] * count)


class ConsumeQueue:
    """See the module. `record_topic` is the topic as records end with it: its length and its bytes.

    `magic` is that of its records: long topics need V2.
    """

    __slots__ = (
        "_files",
        "ext",
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
        self.magic = magic
        self.record_topic = record_topic
        self.ext = ext
        self.writes_ext = writes_ext
        self.next_offset = 0
        self.min_offset = 0
        self.max_offset = 0
        self.max_physical_offset = -1
        """Where the last message that has a unit ends in the log; -1: none has."""
        self.pending: list[int] = []
        """Fields of the units that `append_pending` is to write, one unit after the other."""
        self._files = files

    # --- writing ---

    def reserve_pending(self) -> None:
        """Makes sure that append_pending cannot fail; OSError when the disk has no room."""
        end = (self.max_offset + len(self.pending) // _UNIT_FIELDS) * UNIT_BYTES
        files = self._files
        last = files.last
        if last is not None and end - last.from_offset <= last.size_bytes:
            last.reserve(end - last.from_offset)
            return
        if last is not None:
            last.reserve(last.size_bytes)
        index = 0
        while True:
            file = files.prepare(index, 1, self.max_offset * UNIT_BYTES)
            file.reserve(min(end - file.from_offset, file.size_bytes))
            if file.from_offset + file.size_bytes >= end:
                return
            index += 1

    def append_pending(self, now_ms: int) -> None:
        """Writes the pending units, which follow on the last one; they are pending no more."""
        pending = self.pending
        count = len(pending) // _UNIT_FIELDS
        if self.writes_ext:
            self._put_ext(pending, now_ms)
        data = units_struct(count).pack(*pending)
        last = self._files.last
        if last is not None and last.wrote_bytes + len(data) <= last.size_bytes:
            last.append(data)
        else:
            self._append_across(data)
        self.max_offset += count
        self.max_physical_offset = pending[-3] + pending[-2]
        pending.clear()

    def drop_pending(self) -> None:
        """Forgets the pending units, and takes back the offsets that were given to them."""
        self.next_offset -= len(self.pending) // _UNIT_FIELDS
        self.pending.clear()

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
        self.pending += (physical_offset, size, tags_code)
        try:
            self.reserve_pending()
        except OSError:
            self.pending.clear()
            raise
        self.append_pending(stored_ms)
        self.next_offset = max(self.next_offset, self.max_offset)
        return True

    def _fill_blank(self, queue_offset: int) -> None:
        if self._files.last is None:
            # The files before the first unit's are never made.
            first = self._files.roll(queue_offset * UNIT_BYTES)
            self.max_offset = first.from_offset // UNIT_BYTES
            self.min_offset = queue_offset
        self._append_across(_PRE_BLANK * (queue_offset - self.max_offset))
        self.max_offset = queue_offset

    def _append_across(self, data: bytes) -> None:
        position = 0
        while position < len(data):
            file = self._files.last
            if file is None or file.is_full:
                file = self._files.roll(self.max_offset * UNIT_BYTES)
            room = file.size_bytes - file.wrote_bytes
            file.append(data[position : position + room])
            position += room

    def _put_ext(self, pending: list[int], now_ms: int) -> None:
        if self.ext is None:
            return
        try:
            for at in range(_UNIT_FIELDS - 1, len(pending), _UNIT_FIELDS):
                pending[at] = self.ext.put(pending[at], now_ms)
        except OSError:
            # Without its ext unit a message is found all the same: the tag's code is in the queue.
            return

    # --- reading ---

    def read(self, offset: int, max_units: int) -> memoryview | None:
        """Units from this offset on, as many as one file has and no more; None when it has none."""
        if not self.min_offset <= offset < self.max_offset:
            return None
        file = self._files.find(offset * UNIT_BYTES)
        if file is None:
            return None
        start = offset * UNIT_BYTES - file.from_offset
        end = min(start + max_units * UNIT_BYTES, file.wrote_bytes)
        return file.view[start:end] if end > start else None

    def unit(self, offset: int) -> Unit | None:
        """One unit, whether or not the log has its message; None when there is no such unit."""
        data = self._files.select(offset * UNIT_BYTES, UNIT_BYTES)
        if data is None:
            return None
        physical_offset, size, tags_code = UNIT.unpack(data)
        return Unit(physical_offset, size, self.tags_code(tags_code) or 0)

    def units(self, offset: int, count: int) -> Iterator[Unit]:
        """Units from this offset on, over the ends of files."""
        end = min(offset + count, self.max_offset)
        offset = max(offset, self.min_offset)
        while offset < end:
            data = self.read(offset, end - offset)
            if data is None:
                return
            for physical_offset, size, tags_code in UNIT.iter_unpack(data):
                yield Unit(physical_offset, size, self.tags_code(tags_code) or 0)
            offset += len(data) // UNIT_BYTES

    def tags_code(self, stored: int) -> int | None:
        """What a unit's tags code means: itself, or what the ext row has; None when it is lost."""
        if not is_ext_address(stored):
            return stored
        unit = self.ext.get(stored) if self.ext is not None else None
        return None if unit is None else unit.tags_code

    def next_file_offset(self, offset: int) -> int:
        """The first offset in the file after this one's (rollNextFile)."""
        units = self._files.file_bytes // UNIT_BYTES
        return offset + units - offset % units

    def offset_by_time(
        self, time_ms: int, store_time: Callable[[Unit], int], *, upper: bool
    ) -> int:
        """The first offset stored at this time or later; with `upper` the last at it or earlier.

        `store_time` tells of a unit when its message was stored, in ms, -1 when that is unknown.
        The answer is within the queue: max_offset when all is earlier, min_offset when all is
        later.
        """
        offsets = range(self.min_offset, self.max_offset)

        def stored_ms(offset: int) -> int:
            unit = self.unit(offset)
            return -1 if unit is None else store_time(unit)

        if upper:
            return max(
                self.min_offset + bisect_right(offsets, time_ms, key=stored_ms) - 1, self.min_offset
            )
        return self.min_offset + bisect_left(offsets, time_ms, key=stored_ms)

    # --- files ---

    @property
    def files(self) -> MappedFileQueue:
        """The row of files; its owner is the queue."""
        return self._files

    def load(self) -> None:
        """Finds the files; StoreError as MappedFileQueue.load."""
        self._files.load()
        if self.ext is not None:
            self.ext.files.load()

    def recover(self) -> None:
        """Finds where the units end, looking through the last three files.

        Bytes after that are taken off: the queue is built again from there by recovery of the log.
        """
        files = self._files
        if files.last is None:
            return
        max_address = 1
        index = max(len(files.mapped_files) - _RECOVERED_FILES, 0)
        while index and not written_units(files.mapped_files[index].view[:UNIT_BYTES]):
            # Nothing of it was durable when the power went: look further back.
            index -= 1
        while True:
            file = files.mapped_files[index]
            written = written_units(file.view)
            end = file.from_offset + written * UNIT_BYTES
            index += 1
            if written * UNIT_BYTES < file.size_bytes or index >= len(files.mapped_files):
                break
        files.truncate(end)
        files.flushed_offset = end
        self.max_offset = end // UNIT_BYTES
        self.min_offset = files.min_offset // UNIT_BYTES
        self.next_offset = self.max_offset
        last = self._last_unit()
        if last is not None:
            self.max_physical_offset = last[0] + last[1]
            max_address = last[2]
        if self.ext is not None and self.writes_ext:
            self.ext.recover(max_address)

    def flush_again(self, physical_offset: int) -> None:
        """Takes the units of messages from this place of the log on for not durable.

        A killed process has left them in the system's memory, at least.
        """
        files = self._files
        if files.last is not None:
            durable = self._offset_of(physical_offset) * UNIT_BYTES
            files.flushed_offset = min(files.flushed_offset, durable)
        if self.ext is not None:
            self.ext.files.flushed_offset = max(self.ext.files.min_offset, 0)

    def _offset_of(self, physical_offset: int) -> int:
        """The offset of the first unit of a message at this place of the log, or behind it."""
        offsets = range(self._files.min_offset // UNIT_BYTES, self.max_offset)
        return offsets.start + bisect_left(offsets, physical_offset, key=self._physical_offset)

    def truncate(self, physical_offset: int) -> None:
        """Takes off the units of messages from this place of the log on."""
        if self._files.last is None or self._files.min_offset // UNIT_BYTES >= self.max_offset:
            return
        keep = self._offset_of(physical_offset)
        if keep < self.max_offset:
            self._files.truncate(keep * UNIT_BYTES)
            while self._files.mapped_files and not self._files.mapped_files[-1].wrote_bytes:
                self._files.remove_last()
            self.max_offset = self._files.max_offset // UNIT_BYTES
            self.next_offset = self.max_offset
            self.min_offset = min(self.min_offset, self.max_offset)
            self.clear_tail()
        last = self._last_unit()
        self.max_physical_offset = -1 if last is None else last[0] + last[1]

    def clear_tail(self) -> None:
        """Makes what is behind the last unit zero: see MappedFile.clear_tail."""
        if self._files.last is not None:
            self._files.last.clear_tail()

    def correct_min_offset(self, min_physical_offset: int) -> None:
        """Moves min_offset to the first unit whose message the log still has."""
        if self._files.last is None or self.min_offset >= self.max_offset:
            return
        offsets = range(max(self.min_offset, self._files.min_offset // UNIT_BYTES), self.max_offset)
        self.min_offset = offsets.start + bisect_left(
            offsets, max(min_physical_offset, 0), key=self._physical_offset
        )
        if self.ext is not None and self.writes_ext and self.min_offset < self.max_offset:
            data = self._files.select(self.min_offset * UNIT_BYTES, UNIT_BYTES)
            if data is not None:
                self.ext.truncate_before(UNIT.unpack(data)[2])

    def remove_files_before(self, min_physical_offset: int) -> int:
        """Removes the files all of whose messages the log has lost, never the last; how many."""
        count = 0
        for file in self._files.mapped_files[:-1]:
            last = file.select(file.size_bytes - UNIT_BYTES, UNIT_BYTES)
            if last is None or UNIT.unpack(last)[0] >= min_physical_offset:
                break
            count += 1
        self._files.remove_first(count)
        self.correct_min_offset(min_physical_offset)
        return count

    def destroy(self) -> None:
        """Removes all files of the queue."""
        self._files.destroy()
        if self.ext is not None:
            self.ext.files.destroy()
        self.next_offset = self.min_offset = self.max_offset = 0
        self.max_physical_offset = -1

    def _physical_offset(self, offset: int) -> int:
        """For searches: of a unit; of a blank, less than that of any message."""
        data = self._files.select(offset * UNIT_BYTES, UNIT_BYTES)
        if data is None:
            return -1
        physical_offset, size, _ = UNIT.unpack(data)
        return -1 if size == PRE_BLANK_SIZE else int(physical_offset)

    def _last_unit(self) -> tuple[int, int, int] | None:
        """The last unit, if it is of a message."""
        data = self._files.select((self.max_offset - 1) * UNIT_BYTES, UNIT_BYTES)
        if data is None:
            return None
        physical_offset, size, tags_code = UNIT.unpack(data)
        return None if size == PRE_BLANK_SIZE else (physical_offset, size, tags_code)


def written_units(units: memoryview) -> int:
    """How many units from the start were written: a size above 0, an offset not below it."""
    count = len(units) // UNIT_BYTES
    for start in range(0, count, _SCAN_UNITS):
        end = min(start + _SCAN_UNITS, count)
        ints = units[start * UNIT_BYTES : end * UNIT_BYTES].cast("i")
        found = min(
            _first_index(ints[_SIZE_INT::_INTS_OF_UNIT], 1),
            _first_index(ints[0::_INTS_OF_UNIT], 0),
        )
        if found < end - start:
            return start + found
    return count


def _first_index(ints: memoryview, least: int) -> int:
    """The index of the first big-endian integer below `least`; their number when none is."""
    values = array("i", ints.tobytes())
    if sys.byteorder == "little":
        values.byteswap()
    if min(values) >= least:
        return len(values)
    return next(index for index, value in enumerate(values) if value < least)
