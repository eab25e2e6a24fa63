# SPDX-License-Identifier: Apache-2.0
"""The one holder of the reactor: what time it is, what happens later, what happens in a thread.

Everything else takes `now_ms` as an argument or one of these objects, so that a test advances time
instead of sleeping: `Clock(twisted.internet.task.Clock())` counts from zero, as that clock does.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, TypeVar

from twisted.internet import reactor as _global_reactor
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall
from twisted.internet.task import Clock as TestClock
from twisted.internet.threads import deferToThreadPool
from twisted.logger import Logger

T = TypeVar("T")
log = Logger()


class Repeating:
    """A call that comes again and again until `cancel`; a failure is logged and not its end."""

    def __init__(
        self, clock: Clock, period_ms: Callable[[], int], call: Callable[[], object]
    ) -> None:
        self._clock = clock
        self._period_ms = period_ms
        self._call = call
        self._is_over = False
        self._delayed: IDelayedCall | None = None

    def start(self, first_ms: int) -> None:
        """Calls for the first time after `first_ms`."""
        self._delayed = self._clock.later(first_ms, self._run)

    def _run(self) -> None:
        self._delayed = None
        try:
            self._call()
        except Exception:  # noqa: BLE001 - the next time may go well
            log.failure("a repeated task failed")
        if not self._is_over:
            self._delayed = self._clock.later(self._period_ms(), self._run)

    def cancel(self) -> None:
        """Ends it."""
        self._is_over = True
        if self._delayed is not None and self._delayed.active():
            self._delayed.cancel()


class Clock:
    """Time and deferred work of one service; `stop` cancels all that repeats."""

    def __init__(self, reactor: Any = None) -> None:
        self.reactor: Any = reactor if reactor is not None else _global_reactor
        self._repeating: list[Repeating] = []
        self._simulated = isinstance(self.reactor, TestClock)

    @property
    def steady(self) -> Clock:
        """The clock of connections; a test that hurries delays does not hurry this one."""
        return self

    def now_ms(self) -> int:
        """Milliseconds since the epoch, or since the start of a test clock."""
        if self._simulated:
            return int(self.reactor.seconds() * 1000)
        return time.time_ns() // 1_000_000

    def later(self, delay_ms: float, call: Callable[..., object], *args: Any) -> IDelayedCall:
        """Calls once after a delay; the result cancels."""
        delayed: IDelayedCall = self.reactor.callLater(delay_ms / 1000, call, *args)
        return delayed

    def pause(self, delay_ms: float) -> Deferred[None]:
        """Fires after a delay: for coroutines; cancelling it ends the wait."""
        done: Deferred[None] = Deferred(lambda _: delayed.cancel())
        delayed = self.later(delay_ms, done.callback, None)
        return done

    def every(
        self,
        period_ms: int | Callable[[], int],
        call: Callable[[], object],
        *,
        first_ms: int | None = None,
    ) -> Repeating:
        """Calls again and again, the first time after `first_ms` (a period unless told).

        A period that may change is a function, asked each time.
        """
        period = period_ms if callable(period_ms) else lambda: period_ms
        repeating = Repeating(self, period, call)
        self._repeating.append(repeating)
        repeating.start(period() if first_ms is None else first_ms)
        return repeating

    def in_thread(self, work: Callable[[], T]) -> Deferred[T]:
        """Runs blocking work (an fsync) beside the reactor; at once with a test clock."""
        if self._simulated:
            from twisted.internet.defer import maybeDeferred  # noqa: PLC0415 - tests only

            return maybeDeferred(work)
        return deferToThreadPool(self.reactor, self.reactor.getThreadPool(), work)

    def stop(self) -> None:
        """Ends all that repeats."""
        for repeating in self._repeating:
            repeating.cancel()
        self._repeating.clear()
