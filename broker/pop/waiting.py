# SPDX-License-Identifier: Apache-2.0
"""Check points that wait until their time is over, by queue and in the order in which they are due;
and the messages that are brought back for them.

Java: has no counterpart; PopReviveService reads them anew from the revive topic.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from heapq import heapify, heappop, heappush
from typing import Final, NamedTuple, Protocol

from txrocketmq.broker.intake.inner_message import InnerMessage, Way
from txrocketmq.broker.pop.messages import KnownBatches, in_record
from txrocketmq.broker.pop.records import (
    ACK_INTERVAL_MS,
    Acks,
    MergeKey,
    PopCheckPoint,
    ReviveTopic,
    check_point,
)
from txrocketmq.broker.pop.replaced_check_points import Replaced
from txrocketmq.broker.settings.config import BrokerConfig
from txrocketmq.broker.store.get.jumps import POPPED, Jump
from txrocketmq.broker.store.message_store import MessageStore
from txrocketmq.broker.tables.offset import NOT_FOUND, ConsumerOffsets
from txrocketmq.broker.tables.subscription import SubscriptionGroups
from txrocketmq.broker.tables.topic import Topics
from txrocketmq.remoting.message import properties as names
from txrocketmq.remoting.message.message import MessageDecodeError, MessageExt
from txrocketmq.remoting.message.pop import normal_topic, retry_topic
from txrocketmq.remoting.message.topics import RETRY_PREFIX

MAX_BATCH: Final = 32
"""How many messages are put in one write, or twice as many. A check point of an original broker may
stand for records with far more messages; these are put in several writes."""
MAX_FETCHES: Final = 16
"""Of so many check points of other brokers the messages are fetched at once, some of each."""
MOST_OTHERS: Final = 50_000
"""While so many check points of other brokers wait, further ones are refused: there has to be room
for own ones."""
_END: Final = (1 << 63) - 1
RETRY_QUEUES: Final = 1

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

    __slots__ = ("begun", "due_ms", "is_elsewhere", "left", "offset", "point", "queue_id")

    def __init__(
        self,
        point: PopCheckPoint,
        queue_id: int,
        offset: int,
        stored_ms: int,
        *,
        is_elsewhere: bool = False,
    ) -> None:
        self.point = point
        self.is_elsewhere = is_elsewhere
        """Whether another broker has the messages."""
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

    def longer(self) -> PopCheckPoint:
        """Makes a check point of what is left, with the time that is longer by another attempt. It
        keeps its name, so that acknowledgements that are still to come find it.
        """
        point, times = self.point, self.point.times_put_again()
        left = sorted(self.left)
        invisible_ms = point.invisible_time + REPUT_S[min(times, len(REPUT_S) - 1)] * _SECOND_MS
        return replace(
            point,
            diffs=left,
            count=len(left),
            bit_map=0,
            invisible_time=invisible_ms,
            revive_time=point.pop_time + invisible_ms,
            reput_times=str(times + 1),
        )


class Revival(NamedTuple):
    """A check point that is due, and what is put for it: messages, with their distances."""

    waiting: Waiting
    messages: list[tuple[int, InnerMessage]]
    is_by_record: bool
    """Whether the distances of the check point are those of records, which may be batches."""
    rest: tuple[int, int] | None
    """The record, by its distance, and the number in it of the message that is next, if any is."""

    def left_of(self, failed: set[int]) -> set[int]:
        """The distances that are left when these could not be put."""
        if self.rest is None:
            return failed
        return failed | {each for each in self.waiting.left if each >= self.rest[0]}


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
        self._count = 0

    def __len__(self) -> int:
        """How many they are."""
        return self._count

    def add(self, waiting: Waiting) -> None:
        second = waiting.due_ms // _SECOND_MS
        found = self._seconds.get(second)
        if found is None:
            found = self._seconds[second] = OrderedDict()
            heappush(self._heap, second)
            if len(self._heap) > 2 * len(self._seconds) + 1_000:
                self._heap = list(self._seconds)
                heapify(self._heap)
        self._count += waiting not in found
        found[waiting] = None

    def remove(self, waiting: Waiting) -> None:
        second = waiting.due_ms // _SECOND_MS
        found = self._seconds.get(second)
        if found is not None and waiting in found:
            del found[waiting]
            self._count -= 1
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


class Fetched(NamedTuple):
    """Records of a queue of another broker, which can be decoded, by their offsets."""

    records: Mapping[int, memoryview]
    end: int
    """Those from this offset on were not fetched yet; those before it that are missing are gone."""


class Revivals:
    """Makes what is put for check points that are due."""

    def __init__(
        self,
        config: BrokerConfig,
        store: MessageStore,
        topics: Topics,
        groups: SubscriptionGroups,
        offsets: ConsumerOffsets,
        revive_topic: ReviveTopic,
        replaced: Replaced,
    ) -> None:
        self._config = config
        self._store = store
        self._topics = topics
        self._groups = groups
        self._offsets = offsets
        self._topic = revive_topic
        self._replaced = replaced
        self._batches = KnownBatches()

    def is_wanted(self, point: PopCheckPoint) -> bool:
        """Whether its topic and its group exist: if not, its messages do not come back."""
        topic, group = point.topic or "", point.group or ""
        is_known = self._topics.get(normal_topic(topic, group)) is not None
        return is_known and self._groups.find(group) is not None

    def of(self, waiting: Waiting) -> Revival:
        """Makes what is put for a check point now: messages that still exist."""
        point = waiting.point
        topic, group = point.topic or "", point.group or ""
        if not self.is_wanted(point):
            return Revival(waiting, [], is_by_record=False, rest=None)
        is_by_record = not point.is_by_message and self._store.has_batches(topic)
        found: list[tuple[int, InnerMessage]] = []
        lost: list[int] = []
        rest = None
        for distance in sorted(self._replaced.left(point.key, waiting.left)):
            offset = point.start_offset + distance
            begin = waiting.begun[1] if distance == waiting.begun[0] else 0
            stored = self._stored(point, topic, offset, begin, MAX_BATCH - len(found))
            for each in stored:
                own = each.queue_offset - point.start_offset if is_by_record else distance
                found.append((own, self._revived(each, point, topic, group)))
            if is_by_record and len(found) == MAX_BATCH:
                rest = distance, begin + len(stored)
                break
            if not (stored or begin) and offset < self._store.max_offset(topic, point.queue_id):
                lost.append(offset)
        if lost:
            place = topic, point.queue_id, lost[0], lost[-1] + 1
            self._store.jumps.found(Jump(POPPED, *place, len(lost), group))
        return Revival(waiting, found, is_by_record, rest)

    def of_fetched(self, waiting: Waiting, fetched: Fetched) -> Revival:
        """Makes what is put for a check point of another broker: what is not acknowledged yet of
        the messages that were fetched. Raises NotYet while a long batch is looked through.
        """
        point = waiting.point
        topic, group = point.topic or "", point.group or ""
        found: list[tuple[int, InnerMessage]] = []
        rest = None
        for distance in sorted(waiting.left):
            offset = point.start_offset + distance
            begin = waiting.begun[1] if distance == waiting.begun[0] else 0
            if offset >= fetched.end or len(found) >= MAX_BATCH:
                rest = distance, begin
                break
            record = fetched.records.get(offset)
            if record is None:
                continue
            stored = in_record(record, self._batches, begin=begin, most=MAX_BATCH)
            found += [(distance, self._revived(each, point, topic, group)) for each in stored]
            if len(stored) == MAX_BATCH:
                rest = distance, begin + MAX_BATCH
                break
        return Revival(waiting, found, is_by_record=False, rest=rest)

    def _stored(
        self, point: PopCheckPoint, topic: str, offset: int, begin: int, most: int
    ) -> list[MessageExt]:
        """Returns the message at an offset, or some of a record that the check point names."""
        units = self._store.queue_units(topic, point.queue_id, offset, 1)
        for physical_offset, size, _ in units:
            record = self._store.message_at(physical_offset, size)
            try:
                if record is not None:
                    is_one = point.is_by_message and self._store.has_batches(topic)
                    wanted = offset if is_one else None
                    return in_record(record, self._batches, wanted, begin=begin, most=most)
            except MessageDecodeError:
                pass
        return []

    def _revived(
        self, stored: MessageExt, point: PopCheckPoint, topic: str, group: str
    ) -> InnerMessage:
        if not topic.startswith(RETRY_PREFIX):
            topic = retry_topic(topic, group, v2=self._config.enable_retry_topic_v2)
        host = self._topic.store_host()
        message = InnerMessage.of_stored(stored, topic, 0, host, Way.REVIVE)
        message.born_host = host
        if not point.suspend:
            message.reconsume_times += 1
        if not stored.reconsume_times or names.FIRST_POP_TIME not in message.properties:
            message.properties[names.FIRST_POP_TIME] = str(point.pop_time)
        message.properties[names.ORIGIN_GROUP] = group
        return message

    def make_topic(self, back: Revival) -> None:
        """Makes the topic that the messages go to, if it is not there."""
        name, group = back.messages[0][1].topic, back.waiting.point.group or ""
        if self._topics.get(name) is None:
            self._topics.create_in_send_back(name, RETRY_QUEUES)
            if self._offsets.query(group, name, 0) == NOT_FOUND:
                self._offsets.commit(group, name, 0, 0)


class FetchesMessages(Protocol):
    """Gets messages from other brokers (broker/replication/popped_elsewhere.py)."""

    def fetch(
        self, point: PopCheckPoint, offsets: Sequence[int], then: Callable[[Fetched | None], None]
    ) -> None:
        """Gets some messages of the check point's queue, by the offsets in their order; `then` gets
        them, or None when nobody can be asked for them.
        """


class ForeignCheckPoints:
    """The check points that other brokers have sent, and what is fetched for them."""

    def __init__(self, revivals: Revivals) -> None:
        self._revivals = revivals
        self.elsewhere: FetchesMessages | None = None
        """Where messages are fetched."""
        self.forget()

    def forget(self) -> None:
        """Forgets all of them."""
        self.by_time = ByTime()
        """Those whose messages are not being fetched."""
        self._fetching: set[Waiting] = set()
        self._fetched: dict[Waiting, Fetched | None] = {}

    @property
    def is_full(self) -> bool:
        """Whether too many wait."""
        return len(self.by_time) >= MOST_OTHERS

    def remove(self, waiting: Waiting) -> None:
        """Forgets a check point that is done with."""
        self.by_time.remove(waiting)
        self._fetching.discard(waiting)
        self._fetched.pop(waiting, None)

    def fetch(self, now_ms: int) -> None:
        """Has the messages fetched of those that are due."""
        if self.elsewhere is None:
            return
        while len(self._fetching) + len(self._fetched) < MAX_FETCHES:
            waiting = self.by_time.first(now_ms)
            if waiting is None:
                return
            self.by_time.remove(waiting)
            point = waiting.point
            if not self._revivals.is_wanted(point):
                self._fetched[waiting] = Fetched({}, _END)
                continue
            self._fetching.add(waiting)
            offsets = sorted(point.start_offset + each for each in waiting.left)
            self.elsewhere.fetch(point, offsets, partial(self._has, waiting))

    def _has(self, waiting: Waiting, found: Fetched | None) -> None:
        if waiting in self._fetching:
            self._fetching.discard(waiting)
            self._fetched[waiting] = found

    def take(self) -> tuple[Waiting, Revival | None] | None:
        """Returns a check point whose messages were fetched, and what is put for it, which is None
        if nobody has them; None if there is no such check point.
        """
        for waiting, found in self._fetched.items():
            back = None if found is None else self._revivals.of_fetched(waiting, found)
            del self._fetched[waiting]
            return waiting, back
        return None
