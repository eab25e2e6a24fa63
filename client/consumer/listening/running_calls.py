# SPDX-License-Identifier: Apache-2.0
"""The running calls of listeners: their number is limited, and a shutdown waits for their end.

Java: the thread pool of a ConsumeMessageService.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from twisted.internet.defer import CancelledError, Deferred
from twisted.logger import Logger

from txrocketmq.remoting.host.clock import Clock

log = Logger()


class AtWork:
    """The running calls; `go_on` is called when one has ended and others may begin."""

    def __init__(self, clock: Clock, most: int, go_on: Callable[[], None]) -> None:
        self._clock = clock
        self._most = most
        self._go_on = go_on
        self._running = 0
        self._idle: list[Deferred[None]] = []
        self.stopped = False
        """Whether a shutdown has begun, so that nothing new may begin."""

    @property
    def has_room(self) -> bool:
        """Whether one more call may begin."""
        return self._running < self._most

    def begin(self, work: Coroutine[Deferred[Any], Any, None]) -> None:
        """Begins a call and counts it while it runs; an error is logged."""
        self._running += 1
        ending = Deferred.fromCoroutine(work)
        ending.addErrback(lambda failure: log.failure("consuming failed", failure))
        ending.addBoth(lambda _: self._ended())

    def add(self, count: int) -> None:
        """Counts further calls that have begun; `done` must be called when they have ended."""
        self._running += count

    def done(self, count: int) -> None:
        """Notes that as many of the calls counted by `add` have ended."""
        self._running -= count
        self._tell_idle()

    def stop(self) -> Deferred[None]:
        """Begins the shutdown; fires when no call is running any more."""
        self.stopped = True
        idle: Deferred[None] = Deferred()
        if self._running:
            self._idle.append(idle)
        else:
            idle.callback(None)
        return idle

    def _ended(self) -> None:
        self._running -= 1
        # In a separate turn, because a listener that answers at once would make the stack grow.
        self._clock.later(0, self._go_on)
        self._tell_idle()

    def _tell_idle(self) -> None:
        if not self._running:
            idle, self._idle = self._idle, []
            for each in idle:
                each.callback(None)


async def no_longer_than(clock: Clock, done: Deferred[None], timeout_ms: int) -> None:
    """Returns when `done` has fired, but after `timeout_ms` at the latest."""
    timeout = clock.pause(timeout_ms)
    timeout.addErrback(lambda failure: failure.trap(CancelledError))
    both: Deferred[None] = Deferred()

    def first(_: object) -> None:
        if not both.called:
            both.callback(None)

    done.addBoth(first)
    timeout.addBoth(first)
    await both
    timeout.cancel()
