# SPDX-License-Identifier: Apache-2.0
"""A clock that goes on only when somebody sleeps."""

from __future__ import annotations


class Clock:
    """Seconds since the start, and the list of all sleeps."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    def now(self) -> float:
        return sum(self.slept)

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
