# SPDX-License-Identifier: Apache-2.0
"""The copies of half messages that were put at the end of their queue again.

A producer may end a transaction under the offset that it has, or under that of an earlier
question, while the broker has put the message elsewhere to ask for it. With this table the message
ends everywhere: nobody is asked for it again, and after a crash, when progress from before the
copies counts, none of them is open any more. The original ends one copy only, and so gets an answer
for each of the others. The table is kept in memory, and its size is limited: for messages that are
not in it producers are asked again, as by the original. A start fills it with what it finds in the
queue (copies.py).
"""

from __future__ import annotations

from typing import Final

MAX_MOVES: Final = 65_536
"""How many half messages are remembered; beyond that, the oldest are forgotten."""
MAX_COPIES: Final = 16
"""How many copies of each are remembered: the newest. Progress has passed the others long since."""


class Moves:
    """The moved half messages of one queue."""

    def __init__(self, max_moves: int = MAX_MOVES) -> None:
        self._max_moves = max_moves
        self._copies: dict[int, list[int]] = {}
        """By the first offset, which the producer has: those of the copies, the newest last."""
        self.first: dict[int, int] = {}
        """By the offset of a copy: the first offset."""

    def moved(self, offset: int, to: int, prepared: int) -> None:
        """Notes that a message was put again; `prepared` is the first offset in its properties."""
        first = self.first.get(offset, prepared)
        copies = self._forget(first)
        if not copies and offset != first:
            copies.append(offset)
        copies.append(to)
        if len(self._copies) >= self._max_moves:
            self._forget(next(iter(self._copies)))
        copies = self._copies[first] = copies[-MAX_COPIES:]
        for copy in copies:
            self.first[copy] = first

    def ended(self, offset: int) -> list[int]:
        """Returns all offsets of the message that ended under this one, and forgets it."""
        first = self.first.get(offset, offset)
        if first not in self._copies:  # as nearly always
            return [offset]
        return sorted({offset, first, *self._forget(first)})

    def _forget(self, first: int) -> list[int]:
        copies = self._copies.pop(first, [])
        for copy in copies:
            self.first.pop(copy, None)
        return copies
