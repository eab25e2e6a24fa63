# SPDX-License-Identifier: Apache-2.0
"""The only holder of the reactor: the time, calls that are made later, work in threads.

There are two times. `now_ms` is the wall clock's: it stamps messages and data versions, and is
compared with such stamps only, because an administrator or NTP may set it back or forward at any
moment. `steady_ms` only ever runs on, at one pace: every age, timeout and period is measured by it.

Everything else takes these times as arguments, or one of these objects, so that a test advances
time instead of sleeping: `Clock(twisted.internet.task.Clock())` counts from zero, as that clock
does.

Java: ServiceThread, ScheduledExecutorService and the timers, each with threads of its own.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from twisted.internet.defer import Deferred, fail
from twisted.internet.interfaces import IDelayedCall
from twisted.internet.task import Clock as TestClock
from twisted.internet.threads import deferToThreadPool
from twisted.logger import Logger
from twisted.python.runtime import seconds as wall_seconds

T = TypeVar("T")
log = Logger()


class Repeating:
    """A call that is repeated until `cancel`; a failure is logged and does not end it."""

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
        """Ends the repetition."""
        self._is_over = True
        if self._delayed is not None and self._delayed.active():
            self._delayed.cancel()


def make_steady(reactor: Any) -> None:
    """Makes a reactor use the monotonic clock instead of the wall clock, which is the default.

    Otherwise no delayed call would happen for an hour after the clock was set back by an hour. The
    reactor's time continues from where it was, so that calls which are due stay due.
    """
    if reactor.seconds is wall_seconds:
        ahead_s = wall_seconds() - time.monotonic()
        reactor.seconds = lambda: time.monotonic() + ahead_s


class Clock:
    """The time and the delayed work of one service; `stop` cancels all that repeats."""

    def __init__(self, reactor: Any = None) -> None:
        if reactor is None:
            # The import installs a reactor, which a client with a reactor of its own must not do.
            from twisted.internet import reactor  # noqa: PLC0415
        self.reactor: Any = reactor
        self._repeating: list[Repeating] = []
        self._simulated = isinstance(self.reactor, TestClock)
        self.at_end_of_turn: Callable[[Callable[[], object]], object] = getattr(
            self.reactor, "at_end_of_turn", partial(self.later, 0)
        )
        """Called with a function, which is called once when the reactor has done all that is due,
        before it waits again."""
        self.timer: Callable[[], float] = (
            self.reactor.seconds if self._simulated else time.monotonic
        )
        """Returns the seconds of a clock that nobody sets, for durations within the process."""
        if not self._simulated:
            make_steady(self.reactor)

    @property
    def unhurried(self) -> Clock:
        """The clock of connections: if a test moves its clock forward, this one is not moved."""
        return self

    def now_ms(self) -> int:
        """Returns the wall clock's time: ms since the epoch, or since the start of a test clock."""
        if self._simulated:
            return int(self.reactor.seconds() * 1000)
        return time.time_ns() // 1_000_000

    def steady_ms(self) -> int:
        """Returns milliseconds since some moment in the past; never less than before."""
        return int(self.reactor.seconds() * 1000)

    def later(self, delay_ms: float, call: Callable[..., object], *args: Any) -> IDelayedCall:
        """Calls a function once after a delay; what is returned can cancel that."""
        delayed: IDelayedCall = self.reactor.callLater(delay_ms / 1000, call, *args)
        return delayed

    def pause(self, delay_ms: float) -> Deferred[None]:
        """Returns a Deferred, for coroutines, that fires after a delay; cancelling it ends that."""
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
        """Calls a function again and again, the first time after `first_ms` (by default a period).

        A period that may change is given as a function, which is called each time.
        """
        period = period_ms if callable(period_ms) else lambda: period_ms
        repeating = Repeating(self, period, call)
        self._repeating.append(repeating)
        repeating.start(period() if first_ms is None else first_ms)
        return repeating

    def in_thread(self, work: Callable[[], T]) -> Deferred[T]:
        """Runs blocking work, such as an fsync, in a thread; with a test clock, at once and here.

        Fires with the result. Fails with RuntimeError if no thread can be had; then nothing was
        done.
        """
        if self._simulated:
            from twisted.internet.defer import maybeDeferred  # noqa: PLC0415 - tests only

            return maybeDeferred(work)
        pool = self.reactor.getThreadPool()
        if not pool.started and not pool.joined:
            # Its threads come with the reactor's start. What waits for that in the pool itself is
            # forgotten if no thread can be had then.
            done: Deferred[T] = Deferred()
            self.later(0, lambda: self._in_started_pool(pool, work).chainDeferred(done))
            return done
        return self._in_started_pool(pool, work)

    def _in_started_pool(self, pool: Any, work: Callable[[], T]) -> Deferred[T]:
        try:
            return deferToThreadPool(self.reactor, pool, work)
        except RuntimeError as error:  # the system has no thread for it
            _forget_unstarted(pool)
            return fail(error)

    def stop(self) -> None:
        """Cancels all that repeats."""
        if not self._simulated:
            _forget_unstarted(self.reactor.getThreadPool())
        for repeating in self._repeating:
            repeating.cancel()
        self._repeating.clear()


def _forget_unstarted(pool: Any) -> None:
    """Forgets threads that could not be started, as Twisted would wait for their end for ever."""
    pool.threads[:] = [thread for thread in pool.threads if thread.ident is not None]
