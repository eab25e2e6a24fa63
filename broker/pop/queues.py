# SPDX-License-Identifier: Apache-2.0
"""Popping: takes messages from the queues of a topic and of its retry topic for a group.

A pop of all queues begins with a random one, so that none is preferred. It is random, too, whether
the retry topic comes first; otherwise it comes last, if there is room. A pop of a topic of the type
PRIORITY begins with the queue of the highest number, and messages that come back are last, unless
popFromRetryProbabilityForPriority says otherwise; the group's priority.factor tells how many of its
pops do so. A pop that is not in order is remembered by a check point for each queue that it took
messages from, and the group's offset follows later; the check points of a step are written
together. A pop in order closes the queue until the messages are acknowledged, and the offset moves
then.

Java: PopMessageProcessor.popMsgFromTopic, popMsgFromQueue, getPopOffset, getInitOffset.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import Final, NamedTuple

from txrocketmq.broker.pop.check_points import CheckPoints, Taken
from txrocketmq.broker.pop.in_flight import InFlight
from txrocketmq.broker.pop.messages import KnownBatches, offsets_of, one_by_one, records_of
from txrocketmq.broker.pop.order_info import OrderInfos
from txrocketmq.broker.pop.records import MergeKey
from txrocketmq.broker.pulls.message_filter import MessageFilter
from txrocketmq.broker.settings.config import BrokerConfig
from txrocketmq.broker.store.disk.steps import Steps, as_far_as_in_memory
from txrocketmq.broker.store.get.jumps import GROUP, Jump
from txrocketmq.broker.store.message_store import GetMessageStatus, GetResult, MessageStore
from txrocketmq.broker.tables.attributes import has_priorities
from txrocketmq.broker.tables.offset import ConsumerOffsets
from txrocketmq.broker.tables.stats import BrokerStats
from txrocketmq.broker.tables.topic import Topics
from txrocketmq.remoting.call import Buffer
from txrocketmq.remoting.errors import ResponseError
from txrocketmq.remoting.formats import MAX_BODY_BYTES
from txrocketmq.remoting.message import properties as names
from txrocketmq.remoting.message.message import (
    MessageDecodeError,
    MessageEncodeError,
    decode_message,
    encode_message,
)
from txrocketmq.remoting.message.pop import (
    ORDER_REVIVE_QUEUE,
    ReceiptHandle,
    msg_offset_info,
    retry_flag,
    retry_topic,
    retry_topic_v1,
    start_offset_info,
)
from txrocketmq.remoting.message.topics import RETRY_PREFIX
from txrocketmq.remoting.protocol.body.route import TopicConfig

INIT_MIN: Final = 0
"""With this init mode a group without an offset begins with the first message
(ConsumeInitMode.MIN); otherwise it begins near the last one."""
_ROOM_BYTES: Final = 128 * 1024
"""How much larger than maxMessageSize a record may be, with its topic and properties."""
_PERCENT: Final = 100
_QUEUES_A_STEP: Final = 16
"""How many queues are passed in one step at most, when nothing is read."""
_READ_AS_PASSED: Final = 4
"""As how many such queues one counts that is read, if that is little work: the hashes of tags are
compared, and no batch is taken apart."""
_MOVED: Final = (
    GetMessageStatus.OFFSET_TOO_SMALL,
    GetMessageStatus.OFFSET_OVERFLOW_BADLY,
    GetMessageStatus.OFFSET_FOUND_NULL,
)
"""The offset was wrong: the group's offset is corrected, and the queue is read again."""
_PASSED: Final = (
    GetMessageStatus.NO_MATCHED_MESSAGE,
    GetMessageStatus.OFFSET_FOUND_NULL,
    GetMessageStatus.MESSAGE_WAS_REMOVING,
)
"""The messages that were looked at are for nobody of the group, or are gone."""


class Wanted(NamedTuple):
    """What a pop asks for; a `queue_id` of -1 means any queue.

    Of 100 pops of a topic with priorities, `priority_factor` go by them.
    """

    topic: str
    group: str
    queue_id: int
    max_count: int
    invisible_ms: int
    init_mode: int
    is_order: bool
    attempt_id: str | None
    filter: MessageFilter
    priority_factor: int = 100


class Popped:
    """What a pop has taken so far."""

    def __init__(self, pop_time: int, revive_queue_id: int) -> None:
        self.pop_time = pop_time
        self.revive_queue_id = revive_queue_id
        self.unwritten: list[tuple[Taken, GetResult, list[int]]] = []
        """What is handed out when its check points are written: with the result, and offsets."""
        self.buffers: list[Buffer] = []
        self.size_bytes = 0
        self.count = 0
        self.has_passed = False
        """Whether the pop went past messages that are for nobody of the group."""
        self.rest = 0
        """How many messages are left in the queues, whoever they are for."""
        self.start_offsets: list[str] = []
        self.msg_offsets: list[str] = []
        self.order_counts: list[str] = []


class PopQueues:
    """Takes messages. `chance` returns a random number from 0 to before its argument."""

    def __init__(
        self,
        config: BrokerConfig,
        topics: Topics,
        offsets: ConsumerOffsets,
        store: MessageStore,
        stats: BrokerStats,
        check_points: CheckPoints,
        orders: OrderInfos,
        in_flight: InFlight,
        chance: Callable[[int], int],
    ) -> None:
        self._config = config
        self._topics = topics
        self._offsets = offsets
        self._store = store
        self._stats = stats
        self._check_points = check_points
        self._orders = orders
        self._in_flight = in_flight
        self._chance = chance
        self._turn = 0
        self._batches = KnownBatches()

    def pop(self, wanted: Wanted, topic: TopicConfig, now_ms: int) -> Steps[Popped]:
        """Takes messages for a pop, in steps of some queues.

        Raises NotInMemory when the first messages have to be read from the disk, and ResponseError
        when they are in a long batch and too many of these wait.
        """
        revive_queue_id = ORDER_REVIVE_QUEUE
        if not wanted.is_order:
            revive_queue_id = self._turn % self._config.revive_queue_num
            self._turn += 1
        popped = Popped(now_ms, revive_queue_id)
        first = self._chance(_PERCENT)
        retry = None if wanted.is_order else self._retry_topic(wanted, first)
        is_retry_first = first < self._config.pop_from_retry_probability
        may_have_priorities = not wanted.is_order and first < wanted.priority_factor
        if may_have_priorities and has_priorities(topic.attributes):
            is_retry_first = first < self._config.pop_from_retry_probability_for_priority
            first = 0
        own = self._in_turn(topic, first) if wanted.queue_id < 0 else (wanted.queue_id,)
        rows: list[tuple[str, Iterable[int]]] = [(wanted.topic, own)]
        if retry is not None:
            row = retry.topic_name or "", self._in_turn(retry, first)
            rows.insert(0 if is_retry_first else 1, row)
        steps = self._pop_rows(wanted, rows, popped)
        try:
            yield from as_far_as_in_memory(steps, lambda: popped.count)
        except ResponseError:
            if not popped.count:
                raise
        return popped

    def offset(self, topic: str, group: str, queue_id: int) -> int:
        """The offset at which the group goes on with a queue, the first one of a new queue."""
        offset = self._offsets.query(group, topic, queue_id)
        if offset < 0:
            offset = self._store.min_offset(topic, queue_id)
        return max(offset, self._check_points.latest_offset(topic, group, queue_id))

    # ------------------------------------------------------------------ parts

    def _retry_topic(self, wanted: Wanted, chance: int) -> TopicConfig | None:
        config = self._config
        v2 = config.enable_retry_topic_v2
        name = retry_topic(wanted.topic, wanted.group, v2=v2)
        if v2 and config.retrieve_message_from_pop_retry_topic_v1 and chance % 2 == 0:
            name = retry_topic_v1(wanted.topic, wanted.group)
        return self._topics.get(name)

    def _in_turn(self, topic: TopicConfig, first: int) -> Iterable[int]:
        """The queues of a topic in the order of this pop."""
        count = topic.read_queue_nums
        first = first % count if count > 0 else 0
        if self._config.priority_order_asc:
            return chain(range(first - 1, -1, -1), range(count - 1, first - 1, -1))
        return chain(range(first, count), range(first))

    def _pop_rows(
        self, wanted: Wanted, rows: Sequence[tuple[str, Iterable[int]]], popped: Popped
    ) -> Steps[None]:
        """Goes through the queues of the topic and of its retry topic, which is left alone when it
        is last and there is no room.
        """
        passed = 0
        try:
            for topic, queue_ids in rows:
                if topic != wanted.topic and popped.count >= wanted.max_count:
                    continue
                is_work = wanted.filter.by_properties is not None or self._store.has_batches(topic)
                read_as = _QUEUES_A_STEP if is_work else _READ_AS_PASSED
                for queue_id in queue_ids:
                    is_read = self._pop_queue(wanted, topic, queue_id, popped)
                    passed += read_as if is_read else 1
                    if passed >= _QUEUES_A_STEP:
                        passed = 0
                        self._remember(wanted, popped)
                        yield
        finally:  # a queue may have to wait for the disk, while those before it have given messages
            self._remember(wanted, popped)

    def _pop_queue(self, wanted: Wanted, topic: str, queue_id: int, popped: Popped) -> bool:
        """Takes messages of a queue; returns whether it looked at any."""
        group, config = wanted.group, self._config
        if wanted.max_count <= 0 or (
            config.enable_pop_message_threshold
            and self._in_flight.get(topic, group, queue_id) > config.pop_inflight_message_threshold
        ):
            return False
        offset = self._begin(wanted, topic, queue_id)
        if wanted.is_order:
            if self._orders.is_blocked(
                wanted.attempt_id, topic, group, queue_id, wanted.invisible_ms
            ):
                return False
            self._in_flight.clear(topic, group, queue_id)
        if popped.count >= wanted.max_count or self._is_full(popped):
            popped.rest += max(self._store.max_offset(topic, queue_id) - offset, 0)
            return False
        result = self._get(wanted, topic, queue_id, offset, popped)
        if result.status in _MOVED:
            if result.status is GetMessageStatus.OFFSET_TOO_SMALL:
                self._jumped(topic, group, queue_id, offset, result.next_begin_offset)
            offset = result.next_begin_offset
            self._offsets.commit(group, topic, queue_id, offset)
            self._check_points.clear(topic, group, queue_id)
            result = self._get(wanted, topic, queue_id, offset, popped)
        if result.count:
            self._take(wanted, topic, queue_id, offset, result, popped)
            return True
        if result.status in _PASSED and result.next_begin_offset > offset:
            self._pass_over(wanted, topic, queue_id, offset, result, popped)
        popped.rest += max(result.max_offset - result.next_begin_offset, 0)
        return True

    def _is_full(self, popped: Popped) -> bool:
        """Whether one more message, the least that a queue gives, might not fit in a frame."""
        largest_bytes = self._store.config.max_message_size + _ROOM_BYTES
        return popped.count > 0 and popped.size_bytes + largest_bytes > MAX_BODY_BYTES

    def _jumped(
        self, topic: str, group: str, queue_id: int, at: int, to: int, *, is_known: bool = True
    ) -> None:
        self._store.jumps.found(Jump(GROUP, topic, queue_id, at, to, to - at, group, is_known))

    def _begin(self, wanted: Wanted, topic: str, queue_id: int) -> int:
        """The offset to begin with; it is also stored when the group is new to the queue."""
        group = wanted.group
        reset = self._offsets.take_reset(group, topic, queue_id)
        if reset is not None:
            self._orders.clear(topic, group, queue_id)
            self._check_points.clear(topic, group, queue_id)
            self._in_flight.clear(topic, group, queue_id)
            self._offsets.commit(group, topic, queue_id, reset)
            return reset
        offset = self._offsets.query(group, topic, queue_id)
        if offset < 0:
            offset = self._first(topic, queue_id, wanted.init_mode)
            if topic.startswith(RETRY_PREFIX):
                self._jumped(topic, group, queue_id, 0, offset, is_known=False)
            self._offsets.commit(group, topic, queue_id, offset)
        return max(offset, self._check_points.latest_offset(topic, group, queue_id))

    def _first(self, topic: str, queue_id: int, init_mode: int) -> int:
        store = self._store
        if init_mode == INIT_MIN or topic.startswith(RETRY_PREFIX):
            return store.min_offset(topic, queue_id)
        if (
            self._config.init_pop_offset_by_check_msg_in_mem
            and store.min_offset(topic, queue_id) <= 0
            and store.is_recent(topic, queue_id, 0)
        ):
            return 0
        return max(store.max_offset(topic, queue_id) - 1, 0)

    def _get(
        self,
        wanted: Wanted,
        topic: str,
        queue_id: int,
        offset: int,
        popped: Popped,
    ) -> GetResult:
        count = wanted.max_count - popped.count
        got = self._store.get(
            topic, queue_id, offset, count, MAX_BODY_BYTES - popped.size_bytes,
            wanted.filter.tag_codes, wanted.filter.by_properties, wanted.filter.wants_ext,
        )  # fmt: skip
        return self.one_by_one(got, topic, offset, count)

    def one_by_one(self, got: GetResult, topic: str, offset: int, most: int) -> GetResult:
        """Limits a result to `most` messages, each of them by itself. Raises as `pop` does."""
        if not self._store.has_batches(topic):
            return got
        return one_by_one(got, offset, most, self._batches)

    def _take(
        self,
        wanted: Wanted,
        topic: str,
        queue_id: int,
        offset: int,
        result: GetResult,
        popped: Popped,
    ) -> None:
        """Takes the messages that were found; they are handed out when that is remembered."""
        group = wanted.group
        offsets = offsets_of(topic, result.buffers)
        popped.count += result.count
        popped.size_bytes += result.size_bytes
        key = MergeKey(topic, group, queue_id, offset, popped.pop_time, self._config.broker_name)
        if wanted.is_order:
            popped.order_counts += self._orders.popped(
                wanted.attempt_id, topic, group, queue_id, popped.pop_time, wanted.invisible_ms,
                offsets,
            )  # fmt: skip
            self._offsets.commit(group, topic, queue_id, offset)
            self._hand_out(wanted, key, result, offsets, popped)
            return
        distances = [each - offset for each in offsets]
        taken = Taken(key, distances, result.next_begin_offset)
        popped.unwritten.append((taken, result, offsets))

    def _remember(self, wanted: Wanted, popped: Popped) -> None:
        """Adds the check points of what was taken, and hands out what is remembered by them."""
        unwritten = popped.unwritten
        if not unwritten:
            return
        popped.unwritten = []
        are_kept = self._check_points.add(
            [taken for taken, _, _ in unwritten], wanted.invisible_ms, popped.revive_queue_id,
            popped.pop_time,
        )  # fmt: skip
        for is_kept, (taken, result, offsets) in zip(are_kept, unwritten, strict=True):
            if is_kept:
                self._hand_out(wanted, taken.key, result, offsets, popped)
            else:
                popped.count -= result.count
                popped.size_bytes -= result.size_bytes

    def _hand_out(
        self,
        wanted: Wanted,
        key: MergeKey,
        result: GetResult,
        offsets: list[int],
        popped: Popped,
    ) -> None:
        topic, group, queue_id, offset = key[:4]
        popped.rest += max(result.max_offset - result.next_begin_offset, 0)
        popped.start_offsets.append(start_offset_info(topic, queue_id, offset))
        popped.msg_offsets.append(msg_offset_info(topic, queue_id, offsets))
        buffers: Sequence[Buffer] = result.buffers
        if topic != wanted.topic and not self._config.pop_response_return_actual_retry_topic:
            buffers = self._as_original(wanted, topic, offset, result, popped)
        popped.buffers += buffers
        self._in_flight.add(topic, group, queue_id, result.count)
        self._stats.got(group, topic, result.count, result.size_bytes)

    def _as_original(
        self, wanted: Wanted, topic: str, offset: int, result: GetResult, popped: Popped
    ) -> list[Buffer]:
        """Rewrites messages of a retry topic as if they came from the topic, with their handles."""
        made: list[Buffer] = []
        for record in records_of(result.buffers):
            try:
                message = decode_message(record, decompress_body=False)[0]
                handle = ReceiptHandle(
                    offset, popped.pop_time, wanted.invisible_ms, popped.revive_queue_id,
                    retry_flag(topic), self._config.broker_name, message.queue_id,
                    message.queue_offset,
                )  # fmt: skip
                message.properties.setdefault(names.POP_CK, str(handle))
                message.topic = wanted.topic
                made.append(encode_message(message))
            except (MessageDecodeError, MessageEncodeError):
                made.append(record)
        return made

    def _pass_over(
        self,
        wanted: Wanted,
        topic: str,
        queue_id: int,
        offset: int,
        result: GetResult,
        popped: Popped,
    ) -> None:
        group = wanted.group
        popped.has_passed = True
        if wanted.is_order:
            self._offsets.commit(group, topic, queue_id, result.next_begin_offset)
            return
        key = MergeKey(topic, group, queue_id, offset, popped.pop_time, self._config.broker_name)
        self._check_points.pass_over(key, result.next_begin_offset)
