# SPDX-License-Identifier: Apache-2.0
"""The timer wheel: for each unit of time, the end of the chain of messages that are due then.

The file has 1,209,600 slots, two weeks of seconds; a slot belongs only to the time that it
contains. A chain consists of units in the timer log. The contents of the wheel follow from that
log: the wheel is made anew from it whenever a store is opened, so no slot is trusted that this
process has not written. The file is mapped: waiting messages cost page cache, not memory of the
process, and the original finds it as it would have left its own.

Java: timer.TimerWheel, Slot.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from txrocketmq.broker.store.disk.files import Files
from txrocketmq.broker.store.disk.mapped_file import MappedFile
from txrocketmq.broker.store.formats import formats
from txrocketmq.remoting.primitives.packing import fixed

_SLOT: Final = fixed(formats.TIMER_WHEEL_SLOT).struct
SLOTS: Final = formats.TIMER_WHEEL_SLOTS
FILE_BYTES: Final = SLOTS * _SLOT.size
_NOTHING: Final = bytes(_SLOT.size)


class Slot(NamedTuple):
    """A chain: positions of its first and last unit in the timer log, and the number of messages.

    A message that withdraws another counts as -1, as in the original.
    """

    first_pos: int
    last_pos: int
    num: int


class TimerWheel:
    """The timer wheel. Its file is created when the first slot is written."""

    def __init__(self, files: Files, path: str, precision_ms: int) -> None:
        self.path = path
        self.precision_ms = precision_ms
        self._file = MappedFile(files, path, FILE_BYTES, wrote_bytes=FILE_BYTES)
        self.is_made = False

    def floored(self, time_ms: int) -> int:
        """The time of the slot that a time belongs to."""
        return time_ms // self.precision_ms * self.precision_ms

    def make(self) -> None:
        """Creates the file with empty slots, unless it exists; raises OSError without room."""
        if not self.is_made:
            self._file.remove()
            try:
                self._file.reserve_whole()
            except OSError:
                self._file.remove()
                raise
            self.is_made = True

    def remove(self) -> None:
        """Removes the file, so that all slots are empty."""
        self._file.remove()
        self.is_made = False

    def slot(self, time_ms: int) -> Slot | None:
        """The chain that is due at a time; None if there is none."""
        if not self.is_made:
            return None
        number = time_ms // self.precision_ms
        time, first_pos, last_pos, num, _ = _SLOT.unpack_from(
            self._file.map(), number % SLOTS * _SLOT.size
        )
        return Slot(first_pos, last_pos, num) if time == number and last_pos >= 0 else None

    def add(self, time_ms: int, position: int, num: int) -> int:
        """Ends the chain of a time with the unit at a position, which counts as `num` messages.

        Returns where the chain ended before; -1 when there was none.
        """
        number, mapped = time_ms // self.precision_ms, self._file.map()
        at = number % SLOTS * _SLOT.size
        time, first_pos, last_pos, before, _ = _SLOT.unpack_from(mapped, at)
        if time != number or last_pos < 0:
            first_pos, last_pos, before = position, -1, 0
        _SLOT.pack_into(mapped, at, number, first_pos, position, before + num, 0)
        return int(last_pos)

    def clear(self, time_ms: int) -> None:
        """Empties the slot of a time, since all that was due then is delivered."""
        if self.slot(time_ms) is not None:
            at = time_ms // self.precision_ms % SLOTS * _SLOT.size
            self._file.map()[at : at + _SLOT.size] = _NOTHING

    def close(self) -> None:
        """Drops the mapping."""
        self._file.unmap()
