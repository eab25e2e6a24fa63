# SPDX-License-Identifier: Apache-2.0
"""Findings that are reported once, a few at a time: damages, and readers that had to jump.

Each finding is counted and reported once to the listeners. The number of reports is limited, so
that a damaged disk does not fill a log file. All of this is forgotten with the process.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable
from typing import Final, Generic, TypeVar

from txrocketmq.remoting.primitives.fifo_cache import FifoCache

Finding = TypeVar("Finding", bound=Hashable)

_REMEMBERED: Final = 65_536
"""How many reported findings are remembered; beyond that the oldest may be reported again."""
_WAITING: Final = 64
"""How many findings may wait to be reported; of further ones only the number is reported."""
_AT_ONCE: Final = 10
_TICKS_EACH: Final = 6
"""How many findings may be reported at once; one more may be after as many seconds."""


class Reports(Generic[Finding]):
    """Counts findings, and reports them to `listeners` when `tick` is called each second."""

    def __init__(self) -> None:
        self.listeners: list[Callable[[Finding, int], None]] = []
        """Called with a finding, and the number of further ones that are not reported singly."""
        self.count = 0
        """How many were found since the store was opened."""
        self._known = FifoCache[Finding, None](_REMEMBERED)
        self._waiting: deque[Finding] = deque()
        self._more = 0
        self._allowed = _AT_ONCE
        self._ticks = 0

    def found(self, finding: Finding) -> bool:
        """Notes a finding; returns False for one that is known already, which is ignored."""
        if finding in self._known:
            return False
        self._known.keep(finding, None)
        self.count += 1
        if len(self._waiting) < _WAITING:
            self._waiting.append(finding)
        else:
            self._more += 1
        return True

    def tick(self) -> None:
        """Reports as many findings as the limit allows now."""
        self._ticks += 1
        if self._ticks % _TICKS_EACH == 0:
            self._allowed = min(self._allowed + 1, _AT_ONCE)
        while self._waiting and self._allowed:
            self._allowed -= 1
            finding = self._waiting.popleft()
            more = 0
            if not self._waiting:
                more, self._more = self._more, 0
            for listener in self.listeners:
                listener(finding, more)
