# SPDX-License-Identifier: Apache-2.0
"""One-way sends wait while a connection takes no more: nobody answers them, so nothing is counted.

A broker that reads more slowly than a program sends fills the socket, and then the buffers before
it. Without a limit, messages would gather in memory until the connection is given up with all of
them. So once a connection has more than its transport is to hold, further one-way sends of the
producer wait in their order until that has left, or the connection has ended, for `max_block_ms` at
most. Counterpart of the semaphore of NettyRemotingAbstract.invokeOnewayImpl, which gives a permit
back when a request has been written.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from txrocketmq.client.base.errors import BackpressureTimeout
from txrocketmq.client.producer.send.waiting_sends import WaitingSends
from txrocketmq.remoting.host.clock import Clock

MOST_PREPARED: Final = 128
"""How many one-way sends may ask for the route of their topic at a time."""


class OnewayRoom(WaitingSends):
    """Where one-way sends of one producer wait for connections that take no more.

    `when_free` calls a function when the connection to an address takes more.
    """

    def __init__(
        self, clock: Clock, when_free: Callable[[str, Callable[[], None]], None], max_block_ms: int
    ) -> None:
        super().__init__(clock, max_block_ms)
        self._when_free = when_free
        self._prepared = 0
        self._full: set[str] = set()
        """The addresses of brokers to which connections take no more."""

    def filled(self, address: str) -> None:
        """Has the next sends wait until the connection to an address takes more."""
        if address not in self._full:
            self._full.add(address)
            self.is_full = True
            self._when_free(address, partial(self._freed, address))

    def begin_preparation(self) -> None:
        """Counts a send that has to ask for a route or an address first."""
        self._prepared += 1
        if self._prepared >= MOST_PREPARED:
            self.is_full = True

    def end_preparation(self) -> None:
        """Counts that such a send has left, or has failed."""
        self._prepared -= 1
        self.go_on()

    def late(self, waited_ms: int) -> BackpressureTimeout:
        """Returns the error of a send that has waited in vain."""
        slow = f"the connection to {', '.join(sorted(self._full))}" if self._full else "a route"
        return BackpressureTimeout(
            f"the one-way message was not sent: it waited for {slow} for {waited_ms} ms, and"
            f" {self.waiting} others waited too; send more slowly, or see max_block_ms"
        )

    def _has_room(self) -> bool:
        return not self._full and self._prepared < MOST_PREPARED

    def _freed(self, address: str) -> None:
        self._full.discard(address)
        self.go_on()
