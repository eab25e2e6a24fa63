# SPDX-License-Identifier: Apache-2.0
"""Limits how fast a task reads a log, to spare a broker that uses the same disk."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Final

STEPS_A_SECOND: Final = 8
"""The bytes of one second are read in so many steps, not all at once."""
MIN_STEP_BYTES: Final = 64 << 10


class Pace:
    """Limits reading to about `bytes_per_second`; at any time one read may come on top of it.

    Time in which nothing is read is not made up for later.
    """

    def __init__(
        self,
        bytes_per_second: int,
        *,
        now: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._bytes_per_second = bytes_per_second
        self._now = now
        self._sleep = sleep
        self._free_at = 0.0

    @classmethod
    def of(cls, bytes_per_second: int | None) -> Pace | None:
        """Returns a pace for one task; None when there is no limit."""
        return None if bytes_per_second is None else cls(bytes_per_second)

    def steps(self, byte_count: int) -> Iterator[tuple[int, int]]:
        """Cuts so many bytes into steps; yields start and end of each step when it may be read."""
        step = max(self._bytes_per_second // STEPS_A_SECOND, MIN_STEP_BYTES)
        for start in range(0, byte_count, step):
            end = min(start + step, byte_count)
            self.wait(end - start)
            yield start, end

    def wait(self, byte_count: int) -> None:
        """Sleeps until so many bytes may be read."""
        now = self._now()
        if now < self._free_at:
            self._sleep(self._free_at - now)
        self._free_at = max(now, self._free_at) + byte_count / self._bytes_per_second
