# SPDX-License-Identifier: Apache-2.0
"""A clock that a test can move forward, so that delays, retries and checks are due at once.

Both of its times go on from where they were put. Connections have a clock of their own, which is
not moved, since otherwise each peer would seem to have been silent all that time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from weakref import WeakSet

from twisted.internet.interfaces import IDelayedCall

from txrocketmq.remoting.arguments.arguments import checked
from txrocketmq.remoting.host.clock import Clock


class HurriedClock(Clock):
    """A clock that `advance` moves forward."""

    def __init__(self, reactor: Any = None) -> None:
        super().__init__(reactor)
        self._unhurried = Clock(self.reactor)
        self._ahead_ms = 0
        self._delayed: WeakSet[Any] = WeakSet()

    @property
    def unhurried(self) -> Clock:
        """The clock of connections, which is never moved forward."""
        return self._unhurried

    def now_ms(self) -> int:
        """Returns milliseconds since the epoch, and those by which the clock was moved forward."""
        return super().now_ms() + self._ahead_ms

    def steady_ms(self) -> int:
        """Returns ms since some moment, and those by which the clock was moved forward."""
        return super().steady_ms() + self._ahead_ms

    def later(self, delay_ms: float, call: Callable[..., object], *args: Any) -> IDelayedCall:
        """Calls a function once after a delay, or sooner if the clock is moved meanwhile."""
        delayed = super().later(delay_ms, call, *args)
        self._delayed.add(delayed)
        return delayed

    @checked
    def advance(self, ms: int) -> None:
        """Moves the clock forward; what is due by then happens soon after, each repeated task once.

        Raises ValueError for a negative number: messages may be stored under the later time.
        """
        if ms < 0:
            raise ValueError(f"a clock can only be moved forward, not back: {ms} ms")
        self._ahead_ms += ms
        now_s = self.reactor.seconds()
        for delayed in list(self._delayed):
            if delayed.active():
                delayed.reset(max(0.0, delayed.getTime() - now_s - ms / 1000))
