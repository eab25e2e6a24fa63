# SPDX-License-Identifier: Apache-2.0
"""Lets the broker's own work wait for a read of what is not in memory, or for a failure to end.

Timers, delay levels, the check of transactions and the revival of popped messages have one each.

Java: has no counterpart; its threads wait.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from txrocketmq.broker.store.disk.in_memory import ColdRead
from txrocketmq.broker.work.cold_reads import InThread

RETRY_MS: Final = 10_000
"""How long such work pauses after a failure, in ms."""


class Reading:
    """Waits for reads, which `in_thread` runs. Each function in `on_end` is called after a read."""

    def __init__(self, in_thread: InThread) -> None:
        self._in_thread = in_thread
        self._is_reading = False
        self._paused_until_ms: int | None = None
        self._has_failed = False
        self.on_end: list[Callable[[], None]] = []

    def is_busy(self, steady_ms: int) -> bool:
        """Whether the work has to wait now, for a read or for the end of a pause."""
        if self._has_failed:
            self._has_failed = False
            self.pause(steady_ms)
        if self._paused_until_ms is not None and steady_ms >= self._paused_until_ms:
            self._paused_until_ms = None
        return self._is_reading or self._paused_until_ms is not None

    def pause(self, steady_ms: int) -> None:
        """Pauses the work for RETRY_MS."""
        self._paused_until_ms = steady_ms + RETRY_MS

    def begin(self, read: ColdRead) -> None:
        """Begins a read; the work waits until it is done."""
        self._is_reading = True
        self._in_thread(read.run, lambda: self._ended(read))

    def _ended(self, read: ColdRead) -> None:
        read.finish()
        self._is_reading = False
        self._has_failed = read.error is not None
        for heard in self.on_end:
            heard()
