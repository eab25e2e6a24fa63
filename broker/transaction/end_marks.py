# SPDX-License-Identifier: Apache-2.0
"""Which half messages of a queue have ended: marks that are read from the op queue.

There is a byte for each half message from `half_offset` on, whether or not its message is in
memory, and for each op message the last offset that it named: so little that hundreds of thousands
may be under way. Beyond the limits nothing is read until earlier messages are finished. The broker
saves both offsets under CID_RMQ_SYS_TRANS: nothing before them matters any more.
"""

from __future__ import annotations

from array import array
from typing import Final

MAX_MARKS: Final = 16 * 1024 * 1024
"""How many half messages, and how many op messages, are examined together."""
_OPEN: Final = b"\0"


class Ended:
    """The ended half messages of a queue; the offsets given are those to begin with."""

    def __init__(self, half_offset: int, op_offset: int, max_marks: int = MAX_MARKS) -> None:
        self.half_offset = half_offset
        """The first half message that is not finished."""
        self.op_offset = op_offset
        """The first op message that may name an unfinished half message."""
        self._max_marks = max_marks
        self._marks = bytearray()
        self._last_named = array("q")

    @property
    def read_offset(self) -> int:
        """The next op message to read."""
        return self.op_offset + len(self._last_named)

    @property
    def is_full(self) -> bool:
        """Whether no more op messages can be taken before half messages are finished."""
        return len(self._last_named) >= self._max_marks

    def read(self, half_offsets: list[int], half_top: int) -> bool:
        """Marks the half messages that an op message names; False if one is too far ahead.

        Offsets before `half_offset`, or behind `half_top`, the queue's end, are ignored: there are
        no such half messages.
        """
        named = [offset for offset in half_offsets if self.half_offset <= offset < half_top]
        last = max(named, default=-1)
        if last - self.half_offset >= self._max_marks:
            return False
        self.mark(named)
        self._last_named.append(last)
        return True

    def lost(self, count: int) -> None:
        """Takes this many op messages that the log has lost, or as many as there is room for."""
        if not self._last_named:
            self.op_offset += count
            return
        room = max(self._max_marks - len(self._last_named), 0)
        self._last_named += array("q", [-1]) * min(count, room)

    def mark(self, half_offsets: list[int]) -> None:
        """Marks half messages as ended whose op messages are yet to come.

        Those that are finished, or too far ahead, are ignored.
        """
        half_offset, marks, most = self.half_offset, self._marks, self._max_marks
        for offset in half_offsets:
            at = offset - half_offset
            if 0 <= at < most:
                if at >= len(marks):
                    marks += bytes(at + 1 - len(marks))
                marks[at] = 1

    def open_before(self, half_offset: int) -> int:
        """How many half messages before this offset are not known to have ended."""
        count = max(half_offset - self.half_offset, 0)
        return count - sum(self._marks[:count])

    def next_open(self, offset: int) -> int:
        """The first half message at this offset or later that has not ended."""
        at = self._marks.find(_OPEN, offset - self.half_offset)
        if at >= 0:
            return self.half_offset + at
        return max(offset, self.half_offset + len(self._marks))

    def done_before(self, half_offset: int) -> None:
        """Notes that all half messages before this offset are finished."""
        del self._marks[: half_offset - self.half_offset]
        self.half_offset = half_offset
        count = 0
        for last in self._last_named:
            if last >= half_offset:
                break
            count += 1
        del self._last_named[:count]
        self.op_offset += count
