# SPDX-License-Identifier: Apache-2.0
"""Statistics: the offsets of topics and groups, and counters.

Java: remoting.protocol.admin; ConsumeStatsList, BrokerStatsData in remoting.protocol.body.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from txrocketmq.remoting.message.message import MessageQueue
from txrocketmq.remoting.protocol.body.base import Body, body, member


@body("org.apache.rocketmq.remoting.protocol.admin.TopicOffset")
class TopicOffset(Body):
    """The offset of the first message of a queue, and the offset after its last message.

    `last_update_timestamp` is the store time of the last message in ms.
    """

    min_offset: int = 0
    max_offset: int = 0
    last_update_timestamp: int = 0


@body("org.apache.rocketmq.remoting.protocol.admin.TopicStatsTable")
class TopicStatsTable(Body):
    """The offsets of a topic's queues, and the messages that are stored per second."""

    offset_table: Mapping[MessageQueue, TopicOffset] = member(default_factory=dict)
    topic_put_tps: float = 0.0


@body("org.apache.rocketmq.remoting.protocol.admin.OffsetWrapper")
class OffsetWrapper(Body):
    """How far a group has come in a queue.

    `last_timestamp` is the store time in ms of the last message that it consumed.
    """

    broker_offset: int = 0
    consumer_offset: int = 0
    pull_offset: int = 0
    last_timestamp: int = 0


@body("org.apache.rocketmq.remoting.protocol.admin.ConsumeStats")
class ConsumeStats(Body):
    """How far a group has come in its queues, and the messages that it consumes per second."""

    offset_table: Mapping[MessageQueue, OffsetWrapper] = member(default_factory=dict)
    consume_tps: float = 0.0


@body("org.apache.rocketmq.remoting.protocol.body.ConsumeStatsList")
class ConsumeStatsList(Body):
    """How far all groups of a broker have come.

    The list has a map for each group, from its name to its statistics in each topic. `total_diff`
    is the number of messages that are yet to be consumed.
    """

    consume_stats_list: Sequence[Mapping[str, Sequence[ConsumeStats]]] = ()
    broker_addr: str | None = None
    total_diff: int = 0
    total_inflight_diff: int = 0


@body("org.apache.rocketmq.remoting.protocol.admin.RollbackStats")
class RollbackStats(Body):
    """What the reset of an offset did to one queue."""

    broker_name: str | None = None
    queue_id: int = 0
    broker_offset: int = 0
    consumer_offset: int = 0
    timestamp_offset: int = 0
    rollback_offset: int = 0


@body("org.apache.rocketmq.remoting.protocol.body.BrokerStatsItem")
class BrokerStatsItem(Body):
    """A counter in a span of time: its sum, its rate per second, and the average per call."""

    sum: int = 0
    tps: float = 0.0
    avgpt: float = 0.0


@body("org.apache.rocketmq.remoting.protocol.body.BrokerStatsData")
class BrokerStatsData(Body):
    """A counter over the last minute, hour and day."""

    stats_minute: BrokerStatsItem | None = None
    stats_hour: BrokerStatsItem | None = None
    stats_day: BrokerStatsItem | None = None
