# SPDX-License-Identifier: Apache-2.0
"""Which brokers are passed over for a while, because they were slow or could not be reached.

How long depends on how long the last answer took, by a table. A broker that could not be reached
counts as slow as ten seconds; with the detector on, it stays unreachable until it is seen to answer
again. Pure: the times come in. Counterpart of MQFaultStrategy and LatencyFaultToleranceImpl.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

ISOLATED_MS: Final = 10_000
LATENCY_MAX_MS: Final = (50, 100, 550, 1_800, 3_000, 5_000, 15_000)
NOT_AVAILABLE_MS: Final = (0, 0, 2_000, 5_000, 6_000, 10_000, 30_000)
"""For how long a broker is passed over, by the latencies of LATENCY_MAX_MS."""
MAX_BROKERS: Final = 4_096


def not_available_ms(latency_ms: int) -> int:
    """Returns for how long a broker is passed over after an answer that took `latency_ms`."""
    for limit_ms, pause_ms in zip(
        reversed(LATENCY_MAX_MS), reversed(NOT_AVAILABLE_MS), strict=True
    ):
        if latency_ms >= limit_ms:
            return pause_ms
    return 0


class _Item:
    __slots__ = ("available_from_ms", "check_ms", "is_reachable")

    def __init__(self) -> None:
        self.available_from_ms = 0
        self.check_ms = 0
        self.is_reachable = True


class LatencyFaults:
    """The brokers that were slow or failed, by name."""

    def __init__(self) -> None:
        self._items: dict[str, _Item] = {}

    def update(
        self, broker: str, latency_ms: int, now_ms: int, *, isolate: bool, reachable: bool
    ) -> None:
        """Notes how long a broker took to answer, or that it did not (`isolate`)."""
        item = self._items.get(broker)
        if item is None:
            if len(self._items) >= MAX_BROKERS:
                self._items.clear()
            item = self._items[broker] = _Item()
        pause_ms = not_available_ms(ISOLATED_MS if isolate else latency_ms)
        if pause_ms:
            item.available_from_ms = max(item.available_from_ms, now_ms + pause_ms)
        item.is_reachable = reachable

    def is_available(self, broker: str, now_ms: int) -> bool:
        """Whether the broker is not passed over."""
        item = self._items.get(broker)
        return item is None or now_ms >= item.available_from_ms

    def is_reachable(self, broker: str) -> bool:
        """Whether the broker answered the last time, or has been seen to answer since."""
        item = self._items.get(broker)
        return item is None or item.is_reachable

    def to_detect(self, now_ms: int, interval_ms: int) -> Iterator[str]:
        """Returns the brokers that are due for a check."""
        for broker, item in list(self._items.items()):
            if now_ms >= item.check_ms:
                item.check_ms = now_ms + interval_ms
                yield broker

    def seen(self, broker: str) -> None:
        """Notes that a broker answered a check."""
        item = self._items.get(broker)
        if item is not None:
            item.is_reachable = True

    def remove(self, broker: str) -> None:
        """Forgets a broker that has no address any more."""
        self._items.pop(broker, None)
