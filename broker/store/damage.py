# SPDX-License-Identifier: Apache-2.0
"""Places to which a queue or the index points in the log and where there is no message.

Damaged places of the index itself are among them. A list of its own has messages whose bodies do
not have the CRC that they were stored with: they are served all the same, since consumers check the
CRC. Without this, a zeroed page of the log or a damaged unit of a queue would go to consumers as
garbage. Each place is counted and reported once to the listeners; the number of reports is limited,
so that a damaged disk does not fill a log file. All of this is forgotten with the process.

The original serves such bytes as they are.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final, NamedTuple

_REMEMBERED: Final = 65_536
"""How many reported places are remembered; beyond that the oldest may be reported again."""
_WAITING: Final = 64
"""How many places may wait to be reported; of further ones only the number is reported."""
_AT_ONCE: Final = 10
_TICKS_A_PLACE: Final = 6
"""How many places may be reported at once; one more is allowed after this many ticks (of a
second)."""


class Damage(NamedTuple):
    """A place without the message that should be there, or with a body that is not its own.

    `path` and `position` are the log's file and the position in it, "" and -1 when the log has no
    such offset. `queue` is "topic/queue id" of the unit that names the place and `queue_offset` its
    offset (for a body, that of its record); for the index they are "" and -1. If the index itself
    is damaged, `path` and `position` are of its file and `physical_offset` is -1: queries may miss
    messages.
    """

    physical_offset: int
    size_bytes: int
    path: str
    position: int
    queue: str
    queue_offset: int


DamageListener = Callable[[Damage, int], None]
"""Called with a damage, and the number of further damages that are not reported singly."""


class DamagedRecords:
    """Counts damages, and reports them to `listeners` when `tick` is called each second."""

    def __init__(self) -> None:
        self.listeners: list[DamageListener] = []
        self.count = 0
        """How many places were found since the store was opened."""
        self._known: dict[tuple[int, str, int, int], None] = {}
        self._waiting: deque[Damage] = deque()
        self._more = 0
        self._allowed = _AT_ONCE
        self._ticks = 0

    def found(self, damage: Damage) -> None:
        """Notes a damage; one that is known already is ignored."""
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
        """Reports as many damages as the limit allows now."""
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
