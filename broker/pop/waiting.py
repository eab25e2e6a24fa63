# SPDX-License-Identifier: Apache-2.0
"""Check points that wait until their time is over, by queue and in the order in which they are due.

Java: has no counterpart; PopReviveService reads them anew from the revive topic.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import Final

from txrocketmq.broker.pop.records import ACK_INTERVAL_MS, Acks, MergeKey, PopCheckPoint

DELIVERED_MS: Final = 3_000
"""How long a check point waits at least after a timer has delivered it, in ms."""
_SECOND_MS: Final = 1_000


class Waiting:
    """A check point whose time is not over; `left` are the distances not acknowledged."""

    __slots__ = ("due_ms", "left", "offset", "point", "queue_id")

    def __init__(self, point: PopCheckPoint, queue_id: int, offset: int, stored_ms: int) -> None:
        self.point = point
        self.queue_id = queue_id
        self.offset = offset
        self.left = set(point.distances())
        visible_ms = point.pop_time + point.invisible_time
        self.due_ms = visible_ms + ACK_INTERVAL_MS
        if stored_ms >= visible_ms - ACK_INTERVAL_MS:
            self.due_ms = max(self.due_ms, stored_ms + DELIVERED_MS)


class ReviveQueue:
    """A queue of the revive topic: how far it is read, and its waiting check points."""

    def __init__(self, queue_id: int, kept: int) -> None:
        self.queue_id = queue_id
        self.kept = kept
        """The offset of the last finished record, as consumerOffset.json has it."""
        self.next_offset = kept + 1
        self.waiting: dict[MergeKey, Waiting] = {}
        """The waiting check points, in the order of their records."""

    @property
    def done_offset(self) -> int:
        """The offset of the last record such that nothing waits at it or before it."""
        first = next(iter(self.waiting.values()), None)
        return (self.next_offset if first is None else first.offset) - 1

    def acknowledged(self, acks: Acks) -> Waiting | None:
        """Notes acknowledgements; returns the check point that is done with them, if one is."""
        waiting = self.waiting.get(acks.key)
        if waiting is None:
            return None
        waiting.left.difference_update(each - acks.key.start_offset for each in acks.offsets)
        return None if waiting.left else waiting


class ByTime:
    """Waiting check points by the second in which they are due.

    Removing one leaves nothing behind that would add up.
    """

    def __init__(self) -> None:
        self._seconds: dict[int, dict[Waiting, None]] = {}
        self._heap: list[int] = []

    def add(self, waiting: Waiting) -> None:
        second = waiting.due_ms // _SECOND_MS
        found = self._seconds.get(second)
        if found is None:
            found = self._seconds[second] = {}
            heappush(self._heap, second)
            if len(self._heap) > 2 * len(self._seconds) + 1_000:
                self._heap = list(self._seconds)
                heapify(self._heap)
        found[waiting] = None

    def remove(self, waiting: Waiting) -> None:
        second = waiting.due_ms // _SECOND_MS
        found = self._seconds.get(second)
        if found is not None and waiting in found:
            del found[waiting]
            if not found:
                del self._seconds[second]

    def first(self, now_ms: int) -> Waiting | None:
        """Returns a check point that is due; None if none is."""
        while self._heap and self._heap[0] <= now_ms // _SECOND_MS:
            second = self._heap[0]
            found = self._seconds.get(second)
            if found is None:
                heappop(self._heap)
                continue
            if second < now_ms // _SECOND_MS:
                return next(iter(found))
            return next((each for each in found if each.due_ms <= now_ms), None)
        return None
