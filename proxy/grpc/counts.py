# SPDX-License-Identifier: Apache-2.0
"""What is counted about calls: how many there were of each method, how they ended, how long they
took. The original counts nothing of this.
"""

from __future__ import annotations

from typing import Final

from txrocketmq.proxy.grpc.status import GrpcStatus
from txrocketmq.remoting.process.histogram import Histogram

_BOUNDS_MS: Final = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 20_000, 60_000)
OTHER: Final = "other"
"""The method of calls to what is not served, whose names are foreign."""


class CallCounts:
    """The numbers of one method."""

    __slots__ = ("_ended", "open", "received", "sent", "times")

    def __init__(self) -> None:
        self.open = 0
        """How many calls are open."""
        self.received = self.sent = 0
        """How many messages have come and gone."""
        self._ended = [0] * len(GrpcStatus)
        self.times = Histogram(_BOUNDS_MS)
        """How many ms calls took; those with messages both ways are not counted."""

    def end(self, status: GrpcStatus) -> None:
        """Counts a call that has ended."""
        self._ended[status] += 1

    @property
    def ended(self) -> dict[GrpcStatus, int]:
        """How many calls have ended, by status, without those that there were not."""
        return {status: self._ended[status] for status in GrpcStatus if self._ended[status]}


class Counts:
    """The numbers of all methods of a server, by name."""

    def __init__(self) -> None:
        self.methods: dict[str, CallCounts] = {}

    def of(self, method: str) -> CallCounts:
        """Returns the numbers of a method that is served, or of all others."""
        if method not in self.methods:
            self.methods[method] = CallCounts()
        return self.methods[method]
