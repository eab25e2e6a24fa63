# SPDX-License-Identifier: Apache-2.0
"""The timer log: a unit of 52 bytes for each waiting timer message, in the order of arrival.

A unit says where the message lies in the commit log, when it is due, and where the unit before it
with the same due time is: the units of one time are a chain, whose end the wheel knows
(timer_wheel.py).

A unit is never changed, and the units of delivered messages stay until the commit log has lost the
messages. Positions are bytes from the start of the log.

A unit is checked when it is read: its size, its marks, and that the chain leads backwards. So what
somebody else has written there is noticed, and never followed. Of units that nobody waits for any
more, a walk checks only sizes and marks, many at once, and files with nothing else are skipped with
the help of notes (timer_dues.py).

Java: timer.TimerLog.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from operator import add
from struct import Struct
from typing import Final, NamedTuple

from txrocketmq.broker.store.disk.files import Files
from txrocketmq.broker.store.disk.mapped_file import MappedFile, MappedFileQueue
from txrocketmq.broker.store.formats import formats
from txrocketmq.broker.store.timers.timer_dues import TimerDues
from txrocketmq.remoting.message.record import MAGIC_BLANK
from txrocketmq.remoting.primitives.checksum import crc32
from txrocketmq.remoting.primitives.packing import fixed, picked_rows

_UNIT: Final = fixed(formats.TIMER_LOG_UNIT).struct
_BLANK: Final = fixed(formats.TIMER_LOG_BLANK).struct
UNIT_BYTES: Final = _UNIT.size
NONE: Final = -1
"""Stands for a position when the chain begins here."""
_MAGIC_BITS: Final = 0xF
_STEP_BYTES: Final = 64 * 1024
_WALK: Final = 2_000
"""How many units are examined in one step of a walk."""


class TimerUnit(NamedTuple):
    """The contents of a unit; `due_ms` is when the message is to leave the wheel."""

    prev_pos: int
    magic: int
    written_ms: int
    due_ms: int
    physical_offset: int
    size_bytes: int
    topic_hash: int

    @property
    def place(self) -> tuple[int, int, int]:
        """The offset of the message in the commit log, its size, and the hash of its topic."""
        return self.physical_offset, self.size_bytes, self.topic_hash

    @property
    def is_rolled(self) -> bool:
        """Whether the message is put into the log again at that time, since it is due later."""
        return bool(self.magic & formats.TIMER_MAGIC_ROLL)

    @property
    def takes_back(self) -> bool:
        """Whether it is no ordinary message, but withdraws one that is due at the same time."""
        return bool(self.magic & formats.TIMER_MAGIC_DELETE) and not self.is_rolled


@lru_cache(maxsize=2)
def _walked(count: int) -> Struct:
    """The codec for size, mark, write time and delay of `count` units, as one row of numbers."""
    names = "size", "magic", "curr_write_time", "delayed_time"
    return picked_rows(formats.TIMER_LOG_UNIT, count, *names)


class TimerLog:
    """The timer log. Nothing is read before `load`, and no file exists before the first unit."""

    def __init__(self, files: Files, directory: str, file_bytes: int) -> None:
        self.files = MappedFileQueue(
            files, directory, file_bytes, "mappedFileSizeTimerLog", _STEP_BYTES
        )
        self.dues = TimerDues(files, f"{directory}.dues")
        self._latest_ms = 0
        """Until when messages are due of the file that is walked through or written, in ms."""

    def load(self) -> bool:
        """Finds the files; returns False when they are not files of such a log without a gap.

        All of them are taken to be full, until a walk through them knows better.
        """
        self.files.load()
        self.dues.load()
        self._latest_ms = 0
        return not (self.files.misfits or self.files.gaps())

    @property
    def end(self) -> int:
        """The position of the next unit."""
        return self.files.max_offset

    def append(
        self, prev_pos: int, magic: int, written_ms: int, due_ms: int, place: tuple[int, int, int]
    ) -> int:
        """Adds a unit; returns its position. `place` is offset, size and topic hash of the message.

        Raises OSError without room on the disk; nothing is added then.
        """
        last = self.files.last
        if last is None or last.is_full:
            last = self.files.roll()
        room = last.size_bytes - last.wrote_bytes
        if room < UNIT_BYTES + _BLANK.size:
            self.files.prepare(0, UNIT_BYTES)
            last.append(_BLANK.pack(room, 0, MAGIC_BLANK))
            last.wrote_bytes = last.size_bytes
            self.note_full(last)
            self.keep_dues()
            last = self.files.roll()
        position = last.end_offset
        last.append(
            _UNIT.pack(UNIT_BYTES, prev_pos, magic, written_ms, due_ms - written_ms, *place, 0)
        )
        self._latest_ms = max(self._latest_ms, due_ms)
        return position

    def unit(self, position: int) -> TimerUnit | None:
        """The unit at a position; None when there is none, or it cannot be one."""
        found = self.files.select(position, UNIT_BYTES) if position >= 0 else None
        if found is None or position % self.files.file_bytes % UNIT_BYTES:
            return None
        return self._read(found, 0, position)

    def _read(self, data: memoryview, at: int, position: int) -> TimerUnit | None:
        size, prev_pos, magic, written_ms, delay_ms, offset, size_bytes, topic_hash, _ = (
            _UNIT.unpack_from(data, at)
        )
        if size != UNIT_BYTES or not 0 < magic <= _MAGIC_BITS or not NONE <= prev_pos < position:
            return None
        if offset < 0 or size_bytes <= 0:
            return None
        return TimerUnit(
            prev_pos, magic, written_ms, written_ms + delay_ms, offset, size_bytes, topic_hash
        )

    def last_unit_of(self, file: MappedFile) -> TimerUnit | None:
        """The last unit of a full file."""
        return self.unit(file.from_offset + _last_unit_at(file))

    def is_past(self, file: MappedFile, before_ms: int) -> bool:
        """Whether a file is known to be full, with nothing that is due at this time or later."""
        if not file.is_full:
            return False
        latest_ms = self.dues.latest_ms(file.from_offset, _mark_of(file))
        return latest_ms is not None and latest_ms < before_ms

    def note_full(self, file: MappedFile) -> None:
        """Notes until when messages of a file are due that was walked through, or filled."""
        self.dues.note(file.from_offset, self._latest_ms, _mark_of(file))
        self._latest_ms = 0

    def keep_dues(self) -> None:
        """Saves what is known of full files."""
        self.dues.keep([file.from_offset for file in self.files.mapped_files])

    def walk(
        self, file: MappedFile, least_ms: int
    ) -> Iterator[tuple[int, list[tuple[int, TimerUnit]]]]:
        """Walks through a file in steps, as far as it has valid units.

        Each step yields the position reached, and those units, with their positions, that are due
        at `least_ms` or later. The last step tells where the units end.
        """
        self._latest_ms = 0
        view = file.view
        end = min(file.wrote_bytes, len(view)) // UNIT_BYTES * UNIT_BYTES
        for start in range(0, end, _WALK * UNIT_BYTES):
            part = view[start : min(start + _WALK * UNIT_BYTES, end)]
            wanted = len(part) // UNIT_BYTES
            found, count = self._step(part, file.from_offset + start, wanted, least_ms)
            yield file.from_offset + start + count * UNIT_BYTES, found
            if count < wanted:
                return

    def _step(
        self, part: memoryview, begin: int, count: int, least_ms: int
    ) -> tuple[list[tuple[int, TimerUnit]], int]:
        """The units of a part that are due at a time or later, and how many in all are valid."""
        values = _walked(count).unpack(part)
        sizes, marks = values[::4], values[1::4]
        if set(sizes) != {UNIT_BYTES} or not all(0 < mark <= _MAGIC_BITS for mark in set(marks)):
            are_units = (
                size == UNIT_BYTES and 0 < mark <= _MAGIC_BITS
                for size, mark in zip(sizes, marks, strict=True)
            )
            count = list(are_units).index(False)
        dues = list(map(add, values[2::4], values[3::4]))[:count]
        latest_ms = max(dues, default=0)
        found: list[tuple[int, TimerUnit]] = []
        if latest_ms >= least_ms:
            for number, due_ms in enumerate(dues):
                if due_ms < least_ms:
                    continue
                position = begin + number * UNIT_BYTES
                unit = self._read(part, number * UNIT_BYTES, position)
                if unit is None:
                    count = number
                    break
                found.append((position, unit))
        self._latest_ms = max(self._latest_ms, latest_ms)
        return found, count

    def is_end_of_file(self, file: MappedFile, position: int) -> bool:
        """Whether a file is full with the units before this position."""
        at = position - file.from_offset
        found = file.select(at, _BLANK.size)
        if found is None:
            return at >= file.size_bytes
        room, _, magic = _BLANK.unpack(found)
        return bool(room == file.size_bytes - at and magic == MAGIC_BLANK)

    def end_at(self, position: int, durable: int) -> None:
        """Ends the log at this position; it is durable up to `durable`.

        Raises OSError when the disk fails.
        """
        self.files.truncate(position)
        last = self.files.last
        if last is not None:
            last.clear_tail()
        self.dues.forget_from(position // self.files.file_bytes * self.files.file_bytes)
        self.files.flushed_offset = min(durable, self.end)

    def take_expired(self, min_physical_offset: int, before_ms: int) -> list[MappedFile]:
        """Takes out files whose messages the commit log has all lost, but never the last file; the
        caller removes them.

        A file stays until all that waits in it is due before a time: only then have readers told of
        what was lost, however often they were killed.
        """
        count = 0
        for file in self.files.mapped_files[:-1]:
            unit = self.last_unit_of(file)
            if unit is None or unit.physical_offset >= min_physical_offset:
                break
            if not self.is_past(file, before_ms):
                break
            count += 1
        return self.files.take_first(count)

    def close(self) -> None:
        """Drops the mappings."""
        self.files.discard_prepared()
        self.files.unmap()


def _last_unit_at(file: MappedFile) -> int:
    """The position in the file of a full file's last unit."""
    return ((file.size_bytes - _BLANK.size) // UNIT_BYTES - 1) * UNIT_BYTES


def _mark_of(file: MappedFile) -> int:
    """The checksum of the first and the last unit of a full file."""
    last_at, view = _last_unit_at(file), file.view
    return crc32(view[last_at : last_at + UNIT_BYTES], crc32(view[:UNIT_BYTES]))
