# SPDX-License-Identifier: Apache-2.0
"""How much a producer has on its way: messages and bytes that no broker has answered for yet.

Who would exceed a limit waits, in the order of coming. A message that alone is longer than the
limit of bytes leaves when nothing else is on its way. Counterpart of the two semaphores of
DefaultMQProducerImpl (enableBackpressureForAsyncMode).
"""

from __future__ import annotations

from collections import deque
from typing import Final

from twisted.internet.defer import Deferred, succeed

MIN_SEND_NUM: Final = 10
MIN_SEND_SIZE: Final = 1024 * 1024


class Backpressure:
    """See the module; limits below the original's smallest are raised to these."""

    def __init__(self, max_count: int, max_bytes: int) -> None:
        self._max_count = max(max_count, MIN_SEND_NUM)
        self._max_bytes = max(max_bytes, MIN_SEND_SIZE)
        self.count = 0
        self.size_bytes = 0
        self._waiting: deque[tuple[int, Deferred[None]]] = deque()

    @property
    def waiting(self) -> int:
        """The number of messages that wait to be sent."""
        return len(self._waiting)

    def enter(self, size_bytes: int) -> Deferred[None]:
        """Fires when a message of this size may be sent; cancelling it gives up its place."""
        if not self._waiting and self._fits(size_bytes):
            self._take(size_bytes)
            return succeed(None)
        entry: Deferred[None] = Deferred(lambda _: self._waiting.remove(mine))
        mine = (size_bytes, entry)
        self._waiting.append(mine)
        return entry

    def leave(self, size_bytes: int) -> None:
        """Notes that a message of this size was answered."""
        self.count -= 1
        self.size_bytes -= size_bytes
        while self._waiting and self._fits(self._waiting[0][0]):
            wanted_bytes, entry = self._waiting.popleft()
            self._take(wanted_bytes)
            entry.callback(None)

    def _fits(self, size_bytes: int) -> bool:
        if not self.count:
            return True
        return self.count < self._max_count and self.size_bytes + size_bytes <= self._max_bytes

    def _take(self, size_bytes: int) -> None:
        self.count += 1
        self.size_bytes += size_bytes
