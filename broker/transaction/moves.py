# SPDX-License-Identifier: Apache-2.0
"""The new offsets of half messages that were put at the end of their queue again.

A producer may end a transaction under the offset that it knows while the broker has put the message
elsewhere to ask for it. With this table the message is ended there as well, and nobody is asked for
it again; the original asks, and so gets the answer twice. The table is kept in memory, and its size
is limited: for messages that are not in it producers are asked again, as by the original.
"""

from __future__ import annotations

from typing import Final

MAX_MOVES: Final = 65_536
"""How many half messages are remembered; beyond that, the oldest are forgotten."""


class Moves:
    """The moved half messages of one queue."""

    def __init__(self, max_moves: int = MAX_MOVES) -> None:
        self._max_moves = max_moves
        self._now_at: dict[int, int] = {}
        """By the offset that the producer knows: the present offset."""
        self._known_as: dict[int, int] = {}
        """By the present offset: the offset that the producer knows."""

    def moved(self, offset: int, to: int, prepared: int) -> None:
        """Notes that a message was put again; `prepared` is the first offset that its properties
        name.
        """
        known_as = self._known_as.pop(offset, prepared)
        self._now_at.pop(known_as, None)
        if len(self._now_at) >= self._max_moves:
            self._known_as.pop(self._now_at.pop(next(iter(self._now_at))), None)
        self._now_at[known_as] = to
        self._known_as[to] = known_as

    def known_as(self, offset: int) -> int:
        """Returns the offset by which the producer knows the message that is at this one now."""
        return self._known_as.get(offset, offset)

    def ended(self, offset: int) -> list[int]:
        """Returns all offsets of the message that ended under this one, and forgets it."""
        known_as = self._known_as.pop(offset, offset)
        now_at = self._now_at.pop(known_as, offset)
        self._known_as.pop(now_at, None)
        return [offset] if now_at == offset else [offset, now_at]
