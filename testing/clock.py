# SPDX-License-Identifier: Apache-2.0
"""A clock that a test can move forward, so that delays, retries and checks are due at once.

Both of its times continue from where they were set. Connections have a clock of their own, so that
no peer seems to have been silent.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from weakref import WeakSet

from twisted.internet.interfaces import IDelayedCall

from txrocketmq.remoting.transport.clock import Clock


class HurriedClock(Clock):
    """A clock with `advance`."""

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
        """Milliseconds since the epoch, and as many more as the clock was put forward."""
        return super().now_ms() + self._ahead_ms

    def steady_ms(self) -> int:
        """Milliseconds since some moment, and as many more as the clock was put forward."""
        return super().steady_ms() + self._ahead_ms

    def later(self, delay_ms: float, call: Callable[..., object], *args: Any) -> IDelayedCall:
        """Calls once after a delay, or sooner if the clock is moved forward meanwhile."""
        delayed = super().later(delay_ms, call, *args)
        self._delayed.add(delayed)
        return delayed

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
