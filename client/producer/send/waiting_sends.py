# SPDX-License-Identifier: Apache-2.0
"""Sends that wait in their order until there is room; each has a limit of time.

A send that waits has neither a parcel nor a timer of its own. What room there is, a subclass says:
backpressure.py counts what no broker has answered for, oneway_room.py what has not left.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Final

from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.interfaces import IDelayedCall
from twisted.python.failure import Failure

from txrocketmq.client.base.errors import BackpressureTimeout, ClientClosed
from txrocketmq.client.thread.pending_calls import Cancellable
from txrocketmq.remoting.host.clock import Clock

AT_ONCE: Final = 256
"""How many sends are taken up, or ended, in one turn of the reactor at most."""
BEHIND: Final = 1_024
"""While so many sends wait, callers that do not wait for results are held up."""


class WaitingSend:
    """A send that waits for room, and afterwards stands for what has begun."""

    __slots__ = ("_begin", "_room", "_running", "_settle", "until_ms")

    def __init__(
        self,
        room: WaitingSends,
        settle: Callable[[Any], None],
        begin: Callable[[Callable[[Any], None]], Cancellable | None],
        until_ms: int,
    ) -> None:
        self._room = room
        self._settle = settle
        self._begin: Callable[[Callable[[Any], None]], Cancellable | None] | None = begin
        self._running: Cancellable | None = None
        self.until_ms = until_ms

    def take_up(self) -> None:
        """Begins the send."""
        begin, self._begin = self._begin, None
        assert begin is not None
        try:
            self._running = begin(self._settle)
        except BaseException:  # noqa: BLE001 - it is raised where somebody waits for it
            self._settle(Failure())

    def end(self, error: Exception) -> None:
        """Ends the send, which has not begun, with an error."""
        self._begin = None
        self._settle(Failure(error))

    def cancel(self) -> None:
        """Gives up its place, or cancels what has begun."""
        if self._begin is not None:
            self._room.forget(self)
            self.end(CancelledError())
        elif self._running is not None:
            self._running.cancel()


class WaitingSends(ABC):
    """The sends of one producer that wait; `go_on` is to be called when there may be room."""

    def __init__(self, clock: Clock, max_block_ms: int) -> None:
        self._clock = clock
        self._max_block_ms = max_block_ms
        self.is_full = False
        """Whether a send has to wait: there is no room, or others wait already."""
        self.is_behind = False
        """Whether so many sends wait that callers should wait as well; any thread may ask."""
        self._waiting: OrderedDict[WaitingSend, None] = OrderedDict()
        self._late: IDelayedCall | None = None
        self._soon: IDelayedCall | None = None
        self._going_on = False
        self._is_closed = False
        self._caught_up: list[Deferred[None]] = []

    @abstractmethod
    def late(self, waited_ms: int) -> BackpressureTimeout:
        """Returns the error of a send that has waited in vain."""

    @abstractmethod
    def _has_room(self) -> bool:
        """Whether a send may be taken up."""

    @property
    def waiting(self) -> int:
        """The number of sends that wait."""
        return len(self._waiting)

    def wait(
        self,
        settle: Callable[[Any], None],
        begin: Callable[[Callable[[Any], None]], Cancellable | None],
    ) -> WaitingSend:
        """Calls `begin` when there is room; `settle` gets the result, as of any `Begin`.

        It fails with BackpressureTimeout after `max_block_ms`. Raises ClientClosed after `close`.
        """
        if self._is_closed:
            raise _closed()
        until_ms = self._clock.steady_ms() + self._max_block_ms
        waiting = WaitingSend(self, settle, begin, until_ms)
        self._waiting[waiting] = None
        self.is_behind = len(self._waiting) >= BEHIND
        if self._late is None:
            self._late = self._clock.later(self._max_block_ms, self._end_late)
        return waiting

    def forget(self, waiting: WaitingSend) -> None:
        """Forgets a send that waits no more."""
        del self._waiting[waiting]
        self._changed()

    def go_on(self) -> None:
        """Takes up sends that wait, as far as there is room."""
        if self._going_on:
            return  # a send that was taken up has failed at once, and the loop below goes on
        self._going_on = True
        left = AT_ONCE
        try:
            while self._waiting and self._has_room():
                if not left:
                    self._go_on_soon()
                    break
                left -= 1
                self._waiting.popitem(last=False)[0].take_up()
        finally:
            self._going_on = False
            self._changed()

    async def caught_up(self) -> None:
        """Waits until fewer sends wait, for callers that do not wait for results."""
        if self.is_behind:
            caught_up: Deferred[None] = Deferred()
            self._caught_up.append(caught_up)
            await caught_up

    async def close(self) -> None:
        """Ends the sends that wait, since the producer is shut down."""
        self._is_closed = True
        while self._waiting:
            for _ in range(min(len(self._waiting), AT_ONCE)):
                self._waiting.popitem(last=False)[0].end(_closed())
            self._changed()
            await self._clock.pause(0)
        for delayed in (self._late, self._soon):
            if delayed is not None and delayed.active():
                delayed.cancel()
        self._late = None

    def _changed(self) -> None:
        waiting = len(self._waiting)
        self.is_full = waiting > 0 or not self._has_room()
        if self.is_behind and waiting <= BEHIND // 2:
            self.is_behind = False
            caught_up, self._caught_up = self._caught_up, []
            for each in caught_up:
                if not each.called:  # otherwise its caller was interrupted
                    each.callback(None)

    def _go_on_soon(self) -> None:
        if self._soon is None:
            self._soon = self._clock.later(0, self._went_on)

    def _went_on(self) -> None:
        self._soon = None
        self.go_on()

    def _end_late(self) -> None:
        """Ends what has waited too long; the first of those that wait came first."""
        self._late = None
        steady_ms = self._clock.steady_ms()
        for _ in range(AT_ONCE):
            first = next(iter(self._waiting), None)
            if first is None or first.until_ms > steady_ms:
                break
            del self._waiting[first]
            first.end(self.late(self._max_block_ms))
        self._changed()
        first = next(iter(self._waiting), None)
        if first is not None and self._late is None:
            self._late = self._clock.later(max(first.until_ms - steady_ms, 0), self._end_late)


def _closed() -> ClientClosed:
    return ClientClosed("the message was not sent: the producer was shut down while it waited")
