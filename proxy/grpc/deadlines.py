# SPDX-License-Identifier: Apache-2.0
"""The deadlines of calls: adding and removing one costs the same however many there are.

Calls are kept by the tenth of a second in which they are due; no timer is started for one of them.
Most calls end long before.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import lru_cache
from typing import Final

STEP_MS: Final = 100
_UNITS: Final = {
    "H": (3_600_000, 1), "M": (60_000, 1), "S": (1_000, 1), "m": (1, 1), "u": (1, 1_000),
    "n": (1, 1_000_000),
}  # fmt: skip
"""How many ms a unit has, as a fraction."""
_MOST_DIGITS: Final = 8

Due = Callable[[], object]


@lru_cache(maxsize=256)  # a client has few, which come with every call
def timeout_ms(text: str) -> int:
    """Returns the time of a `grpc-timeout` in ms, rounded up. Raises ValueError."""
    digits, unit = text[:-1], _UNITS.get(text[-1:])
    if unit is None or len(digits) > _MOST_DIGITS or not (digits.isdigit() and digits.isascii()):
        raise ValueError(f"grpc-timeout is {text[:32]!r}, not a number and one of H, M, S, m, u, n")
    return -(-int(digits) * unit[0] // unit[1])


class Deadlines:
    """Calls `due` functions when their times have come; `tick` is to be called every STEP_MS."""

    def __init__(self) -> None:
        self._steps: dict[int, dict[Hashable, Due]] = {}
        self._done = -1

    def add(self, deadline_ms: int, key: Hashable, due: Due) -> None:
        """Has a function called when a time is over, unless the key is removed before."""
        step = deadline_ms // STEP_MS + 1
        its = self._steps.get(step)
        if its is None:
            its = self._steps[step] = {}
        its[key] = due

    def remove(self, deadline_ms: int, key: Hashable) -> None:
        """Forgets a key, if it is there."""
        step = deadline_ms // STEP_MS + 1
        its = self._steps.get(step)
        if its is not None and its.pop(key, None) is not None and not its:
            del self._steps[step]

    def tick(self, steady_ms: int) -> None:
        """Calls those that are due."""
        now = steady_ms // STEP_MS
        first, self._done = self._done + 1, now
        if now - first > len(self._steps):
            passed = [step for step in self._steps if step <= now]
        else:
            passed = [step for step in range(first, now + 1) if step in self._steps]
        for step in passed:
            for due in list(self._steps.pop(step).values()):
                due()
