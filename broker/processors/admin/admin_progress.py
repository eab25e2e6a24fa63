# SPDX-License-Identifier: Apache-2.0
"""How far groups have come: GET_CONSUME_STATS, GET_BROKER_CONSUME_STATS, QUERY_CONSUME_TIME_SPAN.

208 looks at the queues that are read, 303 and 317 at those that are written, as the original does.
Topics that a group's consumers no longer subscribe to are left out while it has consumers. Beside
the committed offset is the one up to which messages were pulled, as in 5.x; the broker does not
keep it in files, so that it is the committed one until the group pulls again. Java:
AdminBrokerProcessor.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from txrocketmq.broker.settings.config import BrokerConfig
from txrocketmq.broker.store.disk.steps import Steps, when_in_memory
from txrocketmq.broker.store.message_store import MessageStore
from txrocketmq.broker.tables.clients import Consumers
from txrocketmq.broker.tables.offset import ConsumerOffsets
from txrocketmq.broker.tables.stats import BrokerStats
from txrocketmq.broker.tables.subscription import SubscriptionGroups
from txrocketmq.broker.tables.topic import Topics
from txrocketmq.broker.work.walks import BodyPieces, Pieces, Walk, Walks
from txrocketmq.remoting.call import PendingReply, Reply, Request
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.dispatch import serves
from txrocketmq.remoting.errors import ResponseError
from txrocketmq.remoting.header import NoHeader
from txrocketmq.remoting.message.message import MessageQueue
from txrocketmq.remoting.protocol.body.offset import QueryConsumeTimeSpanBody, QueueTimeSpan
from txrocketmq.remoting.protocol.body.route import TopicConfig
from txrocketmq.remoting.protocol.body.stats import ConsumeStats, ConsumeStatsList, OffsetWrapper
from txrocketmq.remoting.protocol.operations import admin
from txrocketmq.remoting.protocol.operations.admin import (
    GetConsumeStatsInBrokerHeader,
    GetConsumeStatsRequestHeader,
    QueryConsumeTimeSpanRequestHeader,
)
from txrocketmq.remoting.serialize.json import (
    HOLE,
    encode_around,
    encode_body,
    encode_member,
)


class AdminProgressProcessor:
    """Compares offsets of groups with the ends of queues."""

    def __init__(
        self,
        config: BrokerConfig,
        topics: Topics,
        groups: SubscriptionGroups,
        consumers: Consumers,
        offsets: ConsumerOffsets,
        store: MessageStore,
        stats: BrokerStats,
        broker_address: str,
        walks: Walks,
    ) -> None:
        self._config = config
        self._topics = topics
        self._groups = groups
        self._consumers = consumers
        self._offsets = offsets
        self._store = store
        self._stats = stats
        self._broker_address = broker_address
        self._walks = walks

    @serves(admin.GET_CONSUME_STATS)
    def group(
        self, request: Request[GetConsumeStatsRequestHeader]
    ) -> Reply[NoHeader] | PendingReply:
        """Returns the progress of a group in one topic, in some, or in all it has offsets of."""
        return self._walks.answer(self._group(request.header))

    def _group(self, header: GetConsumeStatsRequestHeader) -> Walk:
        group = header.consumer_group
        listed = list(filter(None, (header.topic_list or "").split(";")))
        known = [header.topic] if header.topic else sorted(self._offsets.topics_of(group))
        found: dict[str, TopicConfig] = {}
        tps = 0.0
        for name in listed or known:
            topic = self._topics.get(name)
            if topic is not None and (listed or self._may_consume(group, name)):
                found[name] = topic
                tps += self._stats.group_get_tps(group, name)
            yield
        body = BodyPieces({**ConsumeStats(consume_tps=tps).to_json(), "offsetTable": HOLE}, "{}")
        for name, topic in found.items():
            pulled = self._offsets.pulled_of(group, name)
            for queue_id in range(topic.read_queue_nums):
                progress = yield from self._progress(group, name, queue_id, pulled)
                body.add(encode_member(self._queue(name, queue_id), progress.to_json()))
                yield
        return Reply(body=body.end())

    @serves(admin.GET_BROKER_CONSUME_STATS)
    def everything(
        self, request: Request[GetConsumeStatsInBrokerHeader]
    ) -> Reply[NoHeader] | PendingReply:
        """Returns the progress of all groups in all or in order topics, and the total lag."""
        return self._walks.answer(self._everything(only_order=request.header.is_order))

    def _everything(self, *, only_order: bool) -> Walk:
        pieces, lag = Pieces(), 0
        for number, group in enumerate(self._groups.all()):
            pieces.add((b",{%b:[" if number else b"{%b:[") % encode_body(group))
            is_first = True
            for name in sorted(self._offsets.topics_of(group)):
                yield
                topic = self._topics.get(name)
                if topic is None or (only_order and not topic.order):
                    continue
                if not self._may_consume(group, name):
                    continue
                stats = ConsumeStats(consume_tps=self._stats.group_get_tps(group, name)).to_json()
                table = BodyPieces({**stats, "offsetTable": HOLE}, "{}")
                pulled = self._offsets.pulled_of(group, name)
                for queue_id in range(topic.write_queue_nums):
                    progress = yield from self._progress(group, name, queue_id, pulled)
                    lag += progress.broker_offset - progress.consumer_offset
                    table.add(encode_member(self._queue(name, queue_id), progress.to_json()))
                    yield
                if not is_first:
                    pieces.add(b",")
                is_first = False
                for piece in table.end():
                    pieces.add(piece)
            pieces.add(b"]}")
            yield
        content = ConsumeStatsList(broker_addr=self._broker_address, total_diff=lag).to_json()
        before, after = encode_around({**content, "consumeStatsList": HOLE})
        return Reply(body=[before, b"[", *pieces.end(), b"]", after])

    @serves(admin.QUERY_CONSUME_TIME_SPAN)
    def time_span(
        self, request: Request[QueryConsumeTimeSpanRequestHeader]
    ) -> Reply[NoHeader] | PendingReply:
        """Returns when the messages of a topic were stored, and those a group has reached."""
        return self._walks.answer(self._time_span(request.header, request.now_ms))

    def _time_span(self, header: QueryConsumeTimeSpanRequestHeader, now_ms: int) -> Walk:
        name = header.topic
        topic = self._topics.get(name)
        if topic is None:
            raise ResponseError(ResponseCode.TOPIC_NOT_EXIST, f"topic[{name}] not exist")
        empty = QueryConsumeTimeSpanBody().to_json()
        body = BodyPieces({**empty, "consumeTimeSpanSet": HOLE}, "[]")
        for queue_id in range(topic.write_queue_nums):
            span = yield from when_in_memory(
                partial(self._span, name, header.group, queue_id, now_ms)
            )
            body.add(span.encode())
            yield
        return Reply(body=body.end())

    def _span(self, topic: str, group: str, queue_id: int, now_ms: int) -> QueueTimeSpan:
        store = self._store
        stored_ms = partial(store.store_time_at, topic, queue_id)
        top = store.max_offset(topic, queue_id)
        first_ms = stored_ms(store.min_offset(topic, queue_id))
        offset = self._offsets.query(group, topic, queue_id)
        delay_ms = 0
        if offset < top:
            delay_ms = now_ms - stored_ms(max(offset, 0))
        return QueueTimeSpan(
            message_queue=self._queue(topic, queue_id),
            min_time_stamp=first_ms,
            max_time_stamp=stored_ms(top - 1),
            consume_time_stamp=stored_ms(offset - 1) if offset > 0 else first_ms,
            delay_time=delay_ms,
        )

    def _may_consume(self, group: str, topic: str) -> bool:
        """Returns False when the group has consumers, and they subscribe to other topics only."""
        found = self._consumers.group(group)
        return found is None or not found.subscriptions or topic in found.subscriptions

    def _queue(self, topic: str, queue_id: int) -> MessageQueue:
        return MessageQueue(topic, self._config.broker_name, queue_id)

    def _progress(
        self, group: str, topic: str, queue_id: int, pulled: Mapping[int, int]
    ) -> Steps[OffsetWrapper]:
        offset = max(self._offsets.query(group, topic, queue_id), 0)
        last_ms = 0
        if offset:
            last_ms = yield from when_in_memory(
                partial(self._store.store_time_at, topic, queue_id, offset - 1)
            )
        return OffsetWrapper(
            broker_offset=self._store.max_offset(topic, queue_id),
            consumer_offset=offset,
            pull_offset=max(offset, pulled.get(queue_id, 0)),
            last_timestamp=max(last_ms, 0),
        )
