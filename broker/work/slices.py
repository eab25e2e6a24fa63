# SPDX-License-Identifier: Apache-2.0
"""Long work, done a slice at a time, between which the reactor does everything else.

When the work has to read something from the disk first, a thread reads it, and then the work goes
on.

Java: has no counterpart; each such work has a thread there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

from txrocketmq.broker.work.patience import Reading

SLICE_MS: Final = 5
"""How long a slice takes, in ms."""


class Sliced(Protocol):
    """Work that is done in slices."""

    @property
    def reading(self) -> Reading:
        """The reads and pauses that the work waits for."""

    @property
    def is_behind(self) -> bool:
        """Whether there is more to do at once."""

    def tick(
        self, now_ms: int, steady_ms: int, is_time_up: Callable[[], bool] = lambda: False
    ) -> object:
        """Begins or continues the work, until it is done or the time is up at the latest."""


class Slices:
    """Runs the slices of some work; `call_soon` calls a function in a later turn of the reactor."""

    def __init__(
        self,
        work: Sliced,
        clock: Callable[[], int],
        steady_clock: Callable[[], int],
        call_soon: Callable[[Callable[[], None]], object],
    ) -> None:
        self._work = work
        self._now_ms = clock
        self._steady_ms = steady_clock
        self._call_soon = call_soon
        self._is_waiting = False
        work.reading.on_end.append(self.begin)

    def begin(self) -> None:
        """Runs a slice, unless the next one is already due; to be called again and again."""
        if not self._is_waiting:
            self._slice()

    def _slice(self) -> None:
        self._is_waiting = False
        end_ms = self._steady_ms() + SLICE_MS

        def is_time_up() -> bool:
            return self._steady_ms() >= end_ms

        while True:
            self._work.tick(self._now_ms(), self._steady_ms(), is_time_up)
            if not self._work.is_behind:
                return
            if is_time_up():
                break
        self._is_waiting = True
        self._call_soon(self._slice)
