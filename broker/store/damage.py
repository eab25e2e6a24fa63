# SPDX-License-Identifier: Apache-2.0
"""Places of the log to which a queue or the index points and where there is no message.

Places of the index are among them where it is itself damaged. In a list of their own are messages
whose bodies do not have the CRC that they were stored with: they are served all the same, as
consumers compare.

A zeroed page of the log or a damaged unit of a queue would else go to consumers as garbage. Each
place is counted and told once, to whoever listens; how many are told is limited, so that a damaged
disk does not fill a log file. What is told and what is counted is forgotten with the process.

The original serves such bytes as they are.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final, NamedTuple

_REMEMBERED: Final = 65_536
"""Places that are known to have been told; beyond that the oldest may be told again."""
_WAITING: Final = 64
"""Places that wait to be told; of more than these only the number is told."""
_AT_ONCE: Final = 10
_TICKS_A_PLACE: Final = 6
"""So many places may be told at once, and one more after so many ticks (of a second)."""


class Damage(NamedTuple):
    """A place without the message that should be there, or with a body that is not its.

    `path` and `position` are the log's file and the place in it, "" and -1 when the log has no such
    offset. `queue` is "topic/queue id" of the unit that names the place and `queue_offset` its
    offset (for a body, of its record); for the index "" and -1. Where it is the index that is
    damaged, `path` and `position` are of its file, and `physical_offset` is -1: messages may be
    missed by queries.
    """

    physical_offset: int
    size_bytes: int
    path: str
    position: int
    queue: str
    queue_offset: int


DamageListener = Callable[[Damage, int], None]
"""Gets a damage, and how many more there were that are not told one by one."""


class DamagedRecords:
    """Counts damages and tells `listeners` of them, when `tick` is called each second."""

    def __init__(self) -> None:
        self.listeners: list[DamageListener] = []
        self.count = 0
        """Places found since the store was opened."""
        self._known: dict[tuple[int, str, int, int], None] = {}
        self._waiting: deque[Damage] = deque()
        self._more = 0
        self._allowed = _AT_ONCE
        self._ticks = 0

    def found(self, damage: Damage) -> None:
        """Takes note of a damage; one that is known costs nothing more."""
        key = damage.physical_offset, damage.queue, damage.queue_offset, damage.position
        if key in self._known:
            return
        if len(self._known) >= _REMEMBERED:
            del self._known[next(iter(self._known))]
        self._known[key] = None
        self.count += 1
        if len(self._waiting) < _WAITING:
            self._waiting.append(damage)
        else:
            self._more += 1

    def tick(self) -> None:
        """Tells of as many damages as may be told now."""
        self._ticks += 1
        if self._ticks % _TICKS_A_PLACE == 0:
            self._allowed = min(self._allowed + 1, _AT_ONCE)
        while self._waiting and self._allowed:
            self._allowed -= 1
            damage = self._waiting.popleft()
            more = 0
            if not self._waiting:
                more, self._more = self._more, 0
            for listener in self.listeners:
                listener(damage, more)
