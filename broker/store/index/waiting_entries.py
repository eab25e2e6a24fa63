# SPDX-License-Identifier: Apache-2.0
"""Entries that wait to be written to the index, in the order of the log.

Most come a few at a time and are kept in one list. Those of a long batch come as a sequence that
makes them when they are asked for; then whatever comes later waits behind it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Final

from txrocketmq.broker.store.index.index_rows import IndexEntry

MANY: Final = 4096
"""More entries than this are kept as the sequence that they came in."""


class WaitingEntries:
    """The entries."""

    def __init__(self) -> None:
        self.count = 0
        """How many there are: not its length, since it is asked for with each message."""
        self._first: list[IndexEntry] = []
        self._later: deque[Sequence[IndexEntry]] = deque()
        """What comes behind them, in the order of the log."""
        self._taken = 0
        """How many of the first of these sequences were moved to the list."""

    def add(self, entries: Sequence[IndexEntry]) -> None:
        """Adds entries behind all others."""
        count = len(entries)
        self.count += count
        if count <= MANY and not self._later:
            self._first += entries
        elif count:
            self._later.append(entries)

    def next(self, count: int) -> list[IndexEntry]:
        """Returns the first of the entries, so many at most; some if there are any."""
        if not self._first and self._later:
            taken = self._later[0][self._taken : self._taken + count]
            self._first += taken
            self._taken += len(taken)
            if self._taken == len(self._later[0]):
                self._later.popleft()
                self._taken = 0
        return self._first[:count]

    def drop(self, count: int) -> None:
        """Forgets so many of the entries that `next` has returned."""
        self.count -= min(count, len(self._first))
        del self._first[:count]
