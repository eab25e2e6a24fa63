# SPDX-License-Identifier: Apache-2.0
"""All transforms of a broker, in the original's order.

Java: SendMessageProcessor.sendMessage, BrokerController.registerMessageStoreHook.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from txrocketmq.broker.intake.inner_message import InnerMessage
from txrocketmq.broker.intake.transform import Transform, Transforms
from txrocketmq.broker.intake.transforms.delay import Delay
from txrocketmq.broker.intake.transforms.inner_batch import InnerBatch
from txrocketmq.broker.intake.transforms.multi_dispatch import MultiDispatch
from txrocketmq.broker.intake.transforms.other_check_points import OtherCheckPoints
from txrocketmq.broker.intake.transforms.own_properties import OwnProperties
from txrocketmq.broker.intake.transforms.pop_check_point import PopCheckPointProperty
from txrocketmq.broker.intake.transforms.priority import Priority
from txrocketmq.broker.intake.transforms.retry import Retry
from txrocketmq.broker.intake.transforms.timer import Timer
from txrocketmq.broker.intake.transforms.transaction import Transaction, TransactionBatch
from txrocketmq.broker.settings.config import BrokerConfig
from txrocketmq.broker.store.formats.config import StoreConfig
from txrocketmq.broker.store.formats.delay_levels import DelayLevels
from txrocketmq.broker.store.formats.put_message import PutStatus
from txrocketmq.broker.store.queues.light_queues import is_served
from txrocketmq.broker.tables.queue_locks import QueueLocks
from txrocketmq.broker.tables.subscription import SubscriptionGroups
from txrocketmq.broker.tables.topic import Topics


class Others(NamedTuple):
    """Functions of other parts that transforms call."""

    opened: Callable[[str, int], None]
    """Called with the topic of each half message, and 1."""
    died: Callable[[str, str], None]
    """Called with the group and the topic of each dead letter."""
    timers_rejected: Callable[[int], PutStatus | None]
    """Returns whether too many timer messages are due at a time, which is in ms."""
    is_taken: Callable[[InnerMessage], bool]
    """Returns whether a message is a check point, or an acknowledgement, of another broker, and
    there is room for it."""


def all_transforms(
    config: BrokerConfig,
    topics: Topics,
    groups: SubscriptionGroups,
    locks: QueueLocks,
    store_config: StoreConfig,
    delay_levels: DelayLevels,
    steady_clock: Callable[[], int],
    others: Others,
) -> Transforms:
    """Makes all transforms of a broker.

    `steady_clock` is the clock by which locks of queues end.
    """

    def write_queues_of(name: str) -> int:
        topic = topics.expected(name)
        return 1 if topic is None else topic.write_queue_nums

    transforms: tuple[Transform, ...] = (
        OwnProperties(),
        OtherCheckPoints(config.broker_cluster_name, others.is_taken),
        PopCheckPointProperty(),
        Retry(topics, groups, locks, steady_clock, others.died),
        Transaction(config, others.opened),
        InnerBatch(topics.attributes_of),
        Priority(write_queues_of),
        TransactionBatch(),
        Timer(store_config, others.timers_rejected),
        Delay(delay_levels),
    )
    if is_served(store_config):
        transforms += (MultiDispatch(),)
    return Transforms(transforms, topics.attributes_of)
