# SPDX-License-Identifier: Apache-2.0
"""Check points that wait until their time is over, by queue and in the order in which they are due.

Java: has no counterpart; PopReviveService reads them anew from the revive topic.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import replace
from heapq import heapify, heappop, heappush
from typing import Final, NamedTuple

from txrocketmq.broker.intake.inner_message import InnerMessage
from txrocketmq.broker.pop.records import (
    ACK_INTERVAL_MS,
    Acks,
    MergeKey,
    PopCheckPoint,
    check_point,
)

DELIVERED_MS: Final = 3_000
"""How long a check point waits at least after a timer has delivered it, in ms."""
REPUT_S: Final = (
    10, 20, 30, 60, 120, 180, 240, 300, 360, 420, 480, 540, 600, 1200, 1800, 3600, 7200,
)  # fmt: skip
"""By how many seconds more each failure hides a message (ckRewriteIntervalsInSeconds)."""
_SECOND_MS: Final = 1_000


class Waiting:
    """A check point whose time is not over; `left` are the distances not acknowledged.

    Of the record at the first part of `begun`, a distance, the messages before the number that is
    the second part are brought back already.
    """

    __slots__ = ("begun", "due_ms", "left", "offset", "point", "queue_id")

    def __init__(self, point: PopCheckPoint, queue_id: int, offset: int, stored_ms: int) -> None:
        self.point = point
        self.queue_id = queue_id
        self.offset = offset
        self.left = set(point.distances())
        self.begun = 0, 0
        visible_ms = point.pop_time + point.invisible_time
        self.due_ms = visible_ms + ACK_INTERVAL_MS
        if stored_ms >= visible_ms - ACK_INTERVAL_MS:
            self.due_ms = max(self.due_ms, stored_ms + DELIVERED_MS)

    def go_on_at(self, distance: int, number: int) -> None:
        """Notes that everything before a message of the record at a distance is brought back."""
        self.left = {each for each in self.left if each >= distance}
        self.begun = distance, number

    def again(self, distance: int, *, is_by_message: bool | None) -> PopCheckPoint:
        """Makes the check point of one message that could not be brought back now; `is_by_message`
        if its distance is that of a message, though those of this check point are not.
        """
        point = self.point
        times = point.times_put_again()
        key = point.key._replace(start_offset=point.start_offset + distance)
        longer_ms = REPUT_S[min(times, len(REPUT_S) - 1)] * _SECOND_MS
        return replace(
            check_point(key, point.invisible_time + longer_ms, (0,)),
            reput_times=str(times + 1),
            is_by_message=is_by_message or point.is_by_message,
            suspend=point.suspend,
        )


class Revival(NamedTuple):
    """A check point that is due, and what is put for it: messages, with their distances."""

    waiting: Waiting
    messages: list[tuple[int, InnerMessage]]
    is_by_record: bool
    """Whether the distances of the check point are those of records, which may be batches."""
    rest: tuple[int, int] | None
    """The record, by its distance, and the number in it of the message that is next, if any is."""


class ReviveQueue:
    """A queue of the revive topic: how far it is read, and its waiting check points."""

    def __init__(self, queue_id: int, kept: int) -> None:
        self.queue_id = queue_id
        self.kept = kept
        """The offset of the last finished record, as consumerOffset.json has it."""
        self.next_offset = kept + 1
        self.waiting: OrderedDict[MergeKey, Waiting] = OrderedDict()
        """The waiting check points, in the order of their records. The first one is asked for again
        and again while those in front go, which takes a plain dictionary long."""

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
        self._seconds: dict[int, OrderedDict[Waiting, None]] = {}
        self._heap: list[int] = []

    def add(self, waiting: Waiting) -> None:
        second = waiting.due_ms // _SECOND_MS
        found = self._seconds.get(second)
        if found is None:
            found = self._seconds[second] = OrderedDict()
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
