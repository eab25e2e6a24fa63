# SPDX-License-Identifier: Apache-2.0
"""Every processor of a broker, each with the parts it uses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from txrocketmq.broker.processors.admin_config import AdminConfigProcessor
from txrocketmq.broker.processors.admin_group import AdminGroupProcessor
from txrocketmq.broker.processors.admin_offset import AdminOffsetProcessor
from txrocketmq.broker.processors.admin_progress import AdminProgressProcessor
from txrocketmq.broker.processors.admin_stats import AdminStatsProcessor
from txrocketmq.broker.processors.admin_topic import AdminTopicProcessor
from txrocketmq.broker.processors.assignment import AssignmentProcessor
from txrocketmq.broker.processors.call_client import CallClientProcessor
from txrocketmq.broker.processors.heartbeat import HeartbeatProcessor
from txrocketmq.broker.processors.offset import OffsetProcessor
from txrocketmq.broker.processors.pull_message import PullMessageProcessor
from txrocketmq.broker.processors.query_message import QueryMessageProcessor
from txrocketmq.broker.processors.queue_lock import QueueLockProcessor
from txrocketmq.broker.processors.send_back import SendBackProcessor
from txrocketmq.broker.processors.send_many import SendManyProcessor
from txrocketmq.broker.processors.send_message import SendMessageProcessor
from txrocketmq.broker.processors.send_plain import SendPlainProcessor
from txrocketmq.remoting.codes import SerializeType

if TYPE_CHECKING:
    from txrocketmq.broker.service import Broker


def all_processors(broker: Broker) -> list[object]:
    """What answers requests to a broker, joined with its parts."""
    send = SendMessageProcessor(
        broker.config,
        broker.topics,
        broker.groups,
        broker.locks,
        broker.delay_levels,
        broker.store,
        broker.stats,
        broker.store_host,
        broker.unique_keys,
    )
    # The short way writes its answers as JSON.
    short_way: list[object] = []
    if broker.serialize_type == SerializeType.JSON:
        many = SendManyProcessor(send)
        short_way = [many, SendPlainProcessor(send, many)]
    return [
        send,
        *short_way,
        PullMessageProcessor(
            broker.config,
            broker.topics,
            broker.groups,
            broker.consumers,
            broker.offsets,
            broker.store,
            broker.stats,
            broker.polling,
        ),
        OffsetProcessor(
            broker.offsets, broker.groups, broker.topics, broker.store, broker.schedule
        ),
        HeartbeatProcessor(broker.topics, broker.groups, broker.consumers, broker.producers),
        QueueLockProcessor(broker.locks),
        QueryMessageProcessor(broker.store, broker.consumers),
        SendBackProcessor(
            broker.config,
            broker.topics,
            broker.groups,
            broker.delay_levels,
            broker.store,
            broker.stats,
            broker.store_host,
        ),
        AssignmentProcessor(
            broker.config,
            broker.topics,
            broker.groups,
            broker.consumers,
            broker.routes,
            broker.modes,
        ),
        CallClientProcessor(
            broker.config, broker.topics, broker.groups, broker.consumers, broker.store
        ),
        *_admin_processors(broker),
    ]


def _admin_processors(broker: Broker) -> list[object]:
    return [
        AdminTopicProcessor(
            broker.config,
            broker.topics,
            broker.offsets,
            broker.store,
            broker.stats,
            broker.polling,
        ),
        AdminGroupProcessor(
            broker.config, broker.groups, broker.consumers, broker.offsets, broker.address
        ),
        AdminOffsetProcessor(
            broker.config,
            broker.topics,
            broker.groups,
            broker.consumers,
            broker.offsets,
            broker.store,
            broker.polling,
        ),
        AdminProgressProcessor(
            broker.config,
            broker.topics,
            broker.groups,
            broker.consumers,
            broker.offsets,
            broker.store,
            broker.stats,
            broker.address,
        ),
        AdminStatsProcessor(
            broker.config,
            broker.consumers,
            broker.producers,
            broker.store,
            broker.schedule,
            broker.stats,
        ),
        AdminConfigProcessor(
            broker.config,
            broker.configuration,
            broker.topics,
            broker.store,
            lambda: broker.register(force=True),
            broker.clock.now_ms(),
        ),
    ]
