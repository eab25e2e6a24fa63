# SPDX-License-Identifier: Apache-2.0
"""Sends wait while the connection with their broker takes no more.

A broker that reads more slowly than clients send fills the socket, and then the buffers before it,
until the connection is given up with all that is on its way for everybody. So once a connection has
more than its transport is to hold, further sends to that broker wait in their order until that has
left, for the time of a request at most. What waits is held for its callers (held_bytes.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from txrocketmq.client.base.errors import BackpressureTimeout
from txrocketmq.client.producer.send.waiting_sends import WaitingSend, WaitingSends
from txrocketmq.client.thread.pending_calls import Cancellable
from txrocketmq.proxy.cluster.cluster import TIMEOUT_MS, Cluster


class BrokerRoom(WaitingSends):
    """Where sends to the broker at an address wait."""

    def __init__(self, cluster: Cluster, address: str) -> None:
        super().__init__(cluster.clock, TIMEOUT_MS)
        self._cluster = cluster
        self._address = address
        self._listens = False

    @property
    def takes_one(self) -> bool:
        """Whether a send can leave; if not, it is to wait."""
        return not self._waiting and self._has_room()

    def wait(
        self,
        settle: Callable[[Any], None],
        begin: Callable[[Callable[[Any], None]], Cancellable | None],
    ) -> WaitingSend:
        waiting = super().wait(settle, begin)
        self._listen()
        return waiting

    def late(self, waited_ms: int) -> BackpressureTimeout:
        """Returns the error of a send that has waited in vain."""
        return BackpressureTimeout(
            f"the connection with the broker at {self._address} took no more for {waited_ms} ms,"
            f" and {self.waiting} others waited too"
        )

    def _has_room(self) -> bool:
        return self._cluster.takes_more(self._address)

    def _changed(self) -> None:
        super()._changed()
        self._listen()

    def _listen(self) -> None:
        if self._waiting and not self._listens and not self._has_room():
            self._listens = True
            self._cluster.when_free(self._address, self._freed)

    def _freed(self) -> None:
        self._listens = False
        self.go_on()
