# SPDX-License-Identifier: Apache-2.0
"""Limits log lines about events that may happen a thousand times a second to a few a minute.

Suppressed lines are counted, and the next line says how many they were.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final

MINUTE_MS: Final = 60_000
MAX_KINDS: Final = 1_024
"""How many kinds are remembered at a time. If there are more, all are forgotten and may be logged
again at once."""


class Seldom:
    """Decides whether to log an event; the time is an argument, from the steady clock."""

    def __init__(self, times: int, period_ms: int = MINUTE_MS) -> None:
        self._times = times
        self._period_ms = period_ms
        self._kinds: dict[Hashable, list[int]] = {}
        """By kind: when its period began, how many events were logged in it, and how many were
        suppressed since the last that was logged."""

    def more(self, steady_ms: int, kind: Hashable = None) -> int | None:
        """Returns how many events were suppressed before this one; None suppresses it as well."""
        known = self._kinds.get(kind)
        if known is None:
            if len(self._kinds) >= MAX_KINDS:
                self._kinds.clear()
            known = self._kinds[kind] = [steady_ms, 0, 0]
        if steady_ms - known[0] >= self._period_ms:
            known[0], known[1] = steady_ms, 0
        if known[1] >= self._times:
            known[2] += 1
            return None
        known[1] += 1
        missed, known[2] = known[2], 0
        return missed


def and_more(count: int) -> str:
    """Returns what a log line adds about suppressed events; "" if there are none."""
    return f" (and {count} more that were not logged)" if count else ""
