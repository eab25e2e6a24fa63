# SPDX-License-Identifier: Apache-2.0
"""Waits until one of several topics at brokers may have something to pop.

A pop that waits hides the messages that it returns. If there are several places, each of them is
therefore asked to notify the client when it has messages, and then one of them is popped. A
question that is still open when another place was faster is kept for the next time: at most one is
open for each place.

Java: NotificationProcessor is what answers; the proxy asks it for its simple consumers.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable
from typing import Any, NamedTuple

from twisted.internet.defer import CancelledError, Deferred
from twisted.logger import Logger

from txrocketmq.client.base.errors import MQClientError
from txrocketmq.remoting.errors import RemotingError
from txrocketmq.remoting.host.clock import Clock

log = Logger()


class PopPlace(NamedTuple):
    """What one pop can ask for: a topic at a broker."""

    topic: str
    broker_name: str


Ask = Callable[[PopPlace, int], Coroutine[Deferred[Any], Any, bool]]
"""Asks a place whether it has something, for which it may wait some milliseconds."""


class PopWaiting:
    """Waits for the first of several places."""

    def __init__(self, clock: Clock, ask: Ask, pause_ms: int) -> None:
        """`pause_ms` is how long a place rests after an error."""
        self._clock = clock
        self._ask = ask
        self._pause_ms = pause_ms
        self._open: dict[PopPlace, Deferred[None]] = {}
        self._waiters: list[Deferred[None]] = []

    async def wait(self, places: Iterable[PopPlace], timeout_ms: int) -> None:
        """Returns when one of the places has something, or after `timeout_ms`."""
        waiter: Deferred[None] = Deferred()
        self._waiters.append(waiter)
        for place in places:
            if place not in self._open:
                asking = self._open[place] = Deferred.fromCoroutine(self._watch(place, timeout_ms))
                asking.addErrback(lambda failure: failure.trap(CancelledError))
        late = self._clock.later(timeout_ms, self._wake, waiter)
        try:
            await waiter
        finally:
            if late.active():
                late.cancel()
            if waiter in self._waiters:  # it was cancelled
                self._waiters.remove(waiter)

    def stop(self) -> None:
        """Cancels the requests, and lets those return who wait."""
        open_, self._open = self._open, {}
        for each in open_.values():
            each.cancel()
        for waiter in tuple(self._waiters):
            self._wake(waiter)

    async def _watch(self, place: PopPlace, timeout_ms: int) -> None:
        try:
            if await self._ask(place, timeout_ms):
                for waiter in tuple(self._waiters):
                    self._clock.later(0, self._wake, waiter)
        except (MQClientError, RemotingError) as error:
            log.debug("{place} does not answer: {error}", place=place, error=error)
            await self._clock.pause(self._pause_ms)
        finally:
            self._open.pop(place, None)

    def _wake(self, waiter: Deferred[None]) -> None:
        if waiter in self._waiters:
            self._waiters.remove(waiter)
            waiter.callback(None)
