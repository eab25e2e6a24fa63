# SPDX-License-Identifier: Apache-2.0
"""Every processor of a broker, each with the parts it uses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from txrocketmq.broker.processors.heartbeat import HeartbeatProcessor
from txrocketmq.broker.processors.offset import OffsetProcessor
from txrocketmq.broker.processors.pull_message import PullMessageProcessor
from txrocketmq.broker.processors.queue_lock import QueueLockProcessor
from txrocketmq.broker.processors.send_many import SendManyProcessor
from txrocketmq.broker.processors.send_message import SendMessageProcessor

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
    return [
        send,
        SendManyProcessor(send),
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
    ]
