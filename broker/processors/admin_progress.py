# SPDX-License-Identifier: Apache-2.0
"""How far groups have come: GET_CONSUME_STATS, GET_BROKER_CONSUME_STATS, QUERY_CONSUME_TIME_SPAN.

208 looks at the queues that are read, 303 and 317 at those that are written, as the original does.
Topics that a group's consumers no longer subscribe to are left out while it has consumers. The pull
offset, which 5.x shows beside the committed one, is not kept: it is shown as the same. Java:
AdminBrokerProcessor.
"""

from __future__ import annotations

from collections.abc import Iterable

from txrocketmq.broker.clients import Consumers
from txrocketmq.broker.config import BrokerConfig
from txrocketmq.broker.offset import ConsumerOffsets
from txrocketmq.broker.stats import BrokerStats
from txrocketmq.broker.store.message_store import MessageStore
from txrocketmq.broker.subscription import SubscriptionGroups
from txrocketmq.broker.topic import Topics
from txrocketmq.remoting.call import Reply, Request
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.dispatch import serves
from txrocketmq.remoting.errors import ResponseError
from txrocketmq.remoting.header import NoHeader
from txrocketmq.remoting.message.message import MessageQueue
from txrocketmq.remoting.protocol import admin
from txrocketmq.remoting.protocol.admin import (
    GetConsumeStatsInBrokerHeader,
    GetConsumeStatsRequestHeader,
    QueryConsumeTimeSpanRequestHeader,
)
from txrocketmq.remoting.protocol.body.offset import QueryConsumeTimeSpanBody, QueueTimeSpan
from txrocketmq.remoting.protocol.body.stats import ConsumeStats, ConsumeStatsList, OffsetWrapper


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
    ) -> None:
        self._config = config
        self._topics = topics
        self._groups = groups
        self._consumers = consumers
        self._offsets = offsets
        self._store = store
        self._stats = stats
        self._broker_address = broker_address

    @serves(admin.GET_CONSUME_STATS)
    def group(self, request: Request[GetConsumeStatsRequestHeader]) -> Reply[NoHeader]:
        """One group, in one topic, in some, or in all that it has offsets of."""
        header = request.header
        group = header.consumer_group
        listed = [name for name in (header.topic_list or "").split(";") if name]
        if not listed:
            known = [header.topic] if header.topic else sorted(self._offsets.topics_of(group))
            listed = [name for name in known if self._may_consume(group, name)]
        table: dict[MessageQueue, OffsetWrapper] = {}
        tps = 0.0
        for name in listed:
            topic = self._topics.get(name)
            if topic is not None:
                table |= self._progress(group, name, range(topic.read_queue_nums))
                tps += self._stats.group_get_tps(group, name)
        return Reply(body=ConsumeStats(offset_table=table, consume_tps=tps).encode())

    @serves(admin.GET_BROKER_CONSUME_STATS)
    def everything(self, request: Request[GetConsumeStatsInBrokerHeader]) -> Reply[NoHeader]:
        """All groups in all their topics, or only in order topics; and the sum of what they lag."""
        listed: list[dict[str, list[ConsumeStats]]] = []
        lag = 0
        for group in self._groups.all():
            topics: list[ConsumeStats] = []
            for name in sorted(self._offsets.topics_of(group)):
                topic = self._topics.get(name)
                if topic is None or (request.header.is_order and not topic.order):
                    continue
                if not self._may_consume(group, name):
                    continue
                table = self._progress(group, name, range(topic.write_queue_nums))
                lag += sum(each.broker_offset - each.consumer_offset for each in table.values())
                topics.append(
                    ConsumeStats(
                        offset_table=table, consume_tps=self._stats.group_get_tps(group, name)
                    )
                )
            listed.append({group: topics})
        return Reply(
            body=ConsumeStatsList(
                consume_stats_list=listed, broker_addr=self._broker_address, total_diff=lag
            ).encode()
        )

    @serves(admin.QUERY_CONSUME_TIME_SPAN)
    def time_span(self, request: Request[QueryConsumeTimeSpanRequestHeader]) -> Reply[NoHeader]:
        """When the messages of a topic's queues were stored, and those that a group is at."""
        name, group = request.header.topic, request.header.group
        topic = self._topics.get(name)
        if topic is None:
            raise ResponseError(ResponseCode.TOPIC_NOT_EXIST, f"topic[{name}] not exist")
        spans = [
            self._span(name, group, queue_id, request.now_ms)
            for queue_id in range(topic.write_queue_nums)
        ]
        return Reply(body=QueryConsumeTimeSpanBody(consume_time_span_set=spans).encode())

    def _span(self, topic: str, group: str, queue_id: int, now_ms: int) -> QueueTimeSpan:
        store = self._store
        top = store.max_offset(topic, queue_id)
        first_ms = store.earliest_store_time(topic, queue_id)
        offset = self._offsets.query(group, topic, queue_id)
        delay_ms = 0
        if offset < top:
            delay_ms = now_ms - store.store_time_at(topic, queue_id, max(offset, 0))
        return QueueTimeSpan(
            message_queue=MessageQueue(topic, self._config.broker_name, queue_id),
            min_time_stamp=first_ms,
            max_time_stamp=store.store_time_at(topic, queue_id, top - 1),
            consume_time_stamp=(
                store.store_time_at(topic, queue_id, offset - 1) if offset > 0 else first_ms
            ),
            delay_time=delay_ms,
        )

    def _may_consume(self, group: str, topic: str) -> bool:
        """False when the group has consumers, and they want other topics only."""
        found = self._consumers.group(group)
        return found is None or not found.subscriptions or topic in found.subscriptions

    def _progress(
        self, group: str, topic: str, queue_ids: Iterable[int]
    ) -> dict[MessageQueue, OffsetWrapper]:
        table: dict[MessageQueue, OffsetWrapper] = {}
        for queue_id in queue_ids:
            offset = max(self._offsets.query(group, topic, queue_id), 0)
            last_ms = self._store.store_time_at(topic, queue_id, offset - 1) if offset else 0
            table[MessageQueue(topic, self._config.broker_name, queue_id)] = OffsetWrapper(
                broker_offset=self._store.max_offset(topic, queue_id),
                consumer_offset=offset,
                pull_offset=offset,
                last_timestamp=max(last_ms, 0),
            )
        return table
