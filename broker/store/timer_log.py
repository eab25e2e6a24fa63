# SPDX-License-Identifier: Apache-2.0
"""The timer log: a unit of 52 bytes for each timer message that waits, in the order they came.

A unit says where the message lies in the commit log, when it is due, and where the unit before it
is that is due at the same time: the units of one time are a chain, which the wheel knows the end of
(timer_wheel.py). A unit is never changed, and the units of what has been delivered stay until the
commit log has lost it. Positions are bytes from the start of the log.

A unit that is read has been looked at: its size, its marks, and that the chain leads back. So what
somebody else has written there is found, and never followed.

Java: timer.TimerLog.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from txrocketmq.broker.store import formats
from txrocketmq.broker.store.files import Files
from txrocketmq.broker.store.mapped_file import MappedFile, MappedFileQueue
from txrocketmq.remoting.message.record import MAGIC_BLANK
from txrocketmq.remoting.packing import fixed

_UNIT: Final = fixed(formats.TIMER_LOG_UNIT).struct
_BLANK: Final = fixed(formats.TIMER_LOG_BLANK).struct
UNIT_BYTES: Final = _UNIT.size
NONE: Final = -1
"""In place of a position: the chain begins here."""
_MAGIC_BITS: Final = 0xF
_STEP_BYTES: Final = 64 * 1024


class TimerUnit(NamedTuple):
    """What a unit says; `due_ms` is when the message is to leave the wheel."""

    prev_pos: int
    magic: int
    written_ms: int
    due_ms: int
    physical_offset: int
    size_bytes: int
    topic_hash: int

    @property
    def place(self) -> tuple[int, int, int]:
        """Offset of the message in the commit log, its size, and the hash of its topic."""
        return self.physical_offset, self.size_bytes, self.topic_hash

    @property
    def is_rolled(self) -> bool:
        """Whether the message is put into the log again then, since it is due later."""
        return bool(self.magic & formats.TIMER_MAGIC_ROLL)

    @property
    def takes_back(self) -> bool:
        """Whether it is no message, but takes one back that is due at the same time."""
        return bool(self.magic & formats.TIMER_MAGIC_DELETE) and not self.is_rolled


class TimerLog:
    """See the module. Nothing is read before `load`, and nothing made before the first unit."""

    def __init__(self, files: Files, directory: str, file_bytes: int) -> None:
        self.files = MappedFileQueue(
            files, directory, file_bytes, "mappedFileSizeTimerLog", _STEP_BYTES
        )

    def load(self) -> bool:
        """Finds the files; False when they are not such files without a gap.

        All of them are taken to be full, until somebody who has walked through them says more.
        """
        self.files.load()
        return not (self.files.misfits or self.files.gaps())

    @property
    def end(self) -> int:
        """Where the next unit is put."""
        return self.files.max_offset

    def append(
        self, prev_pos: int, magic: int, written_ms: int, due_ms: int, place: tuple[int, int, int]
    ) -> int:
        """Adds a unit; where it is. `place` is offset, size and topic hash of the message.

        OSError without room on the disk, and nothing is added.
        """
        last = self.files.last
        if last is None or last.is_full:
            last = self.files.roll()
        room = last.size_bytes - last.wrote_bytes
        if room < UNIT_BYTES + _BLANK.size:
            self.files.prepare(0, UNIT_BYTES)
            last.append(_BLANK.pack(room, 0, MAGIC_BLANK))
            last.wrote_bytes = last.size_bytes
            last = self.files.roll()
        position = last.end_offset
        last.append(
            _UNIT.pack(UNIT_BYTES, prev_pos, magic, written_ms, due_ms - written_ms, *place, 0)
        )
        return position

    def unit(self, position: int) -> TimerUnit | None:
        """The unit at a position; None when there is none, or it cannot be one."""
        found = self.files.select(position, UNIT_BYTES) if position >= 0 else None
        if found is None or position % self.files.file_bytes % UNIT_BYTES:
            return None
        size, prev_pos, magic, written_ms, delay_ms, offset, size_bytes, topic_hash, _ = (
            _UNIT.unpack(found)
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
        count = (file.size_bytes - _BLANK.size) // UNIT_BYTES
        return self.unit(file.from_offset + (count - 1) * UNIT_BYTES)

    def walk(self, file: MappedFile) -> Iterator[tuple[int, TimerUnit]]:
        """The units of a file from its start, with their positions, as far as they are units.

        Whoever walks sees by the last one where that ends.
        """
        position = file.from_offset
        size_bytes = min(file.wrote_bytes, len(file.view)) // UNIT_BYTES * UNIT_BYTES
        found = _UNIT.iter_unpack(file.view[:size_bytes])
        for size, prev_pos, magic, written_ms, delay_ms, offset, record_bytes, of_topic, _ in found:
            if not (
                size == UNIT_BYTES
                and 0 < magic <= _MAGIC_BITS
                and NONE <= prev_pos < position
                and offset >= 0
                and record_bytes > 0
            ):
                return
            due_ms = written_ms + delay_ms
            yield (
                position,
                TimerUnit(prev_pos, magic, written_ms, due_ms, offset, record_bytes, of_topic),
            )
            position += UNIT_BYTES

    def is_end_of_file(self, file: MappedFile, position: int) -> bool:
        """Whether a file is full with the units before this position."""
        at = position - file.from_offset
        found = file.select(at, _BLANK.size)
        if found is None:
            return at >= file.size_bytes
        room, _, magic = _BLANK.unpack(found)
        return bool(room == file.size_bytes - at and magic == MAGIC_BLANK)

    def end_at(self, position: int, durable: int) -> None:
        """Ends the log there; what lies behind is no more, and it is durable up to `durable`.

        OSError when the disk fails.
        """
        self.files.truncate(position)
        last = self.files.last
        if last is not None:
            last.clear_tail()
        self.files.flushed_offset = min(durable, self.end)

    def take_expired(self, min_physical_offset: int) -> list[MappedFile]:
        """Files whose messages the commit log has all lost, still to be removed; never the last."""
        count = 0
        for file in self.files.mapped_files[:-1]:
            unit = self.last_unit_of(file)
            if unit is None or unit.physical_offset >= min_physical_offset:
                break
            count += 1
        return self.files.take_first(count)

    def close(self) -> None:
        """Forgets the mappings."""
        self.files.discard_prepared()
        self.files.unmap()
