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
    """The bounds of a queue; the time is that of its last message, in ms."""

    min_offset: int = 0
    max_offset: int = 0
    last_update_timestamp: int = 0


@body("org.apache.rocketmq.remoting.protocol.admin.TopicStatsTable")
class TopicStatsTable(Body):
    """The bounds of a topic's queues, and messages per second."""

    offset_table: Mapping[MessageQueue, TopicOffset] = member(default_factory=dict)
    topic_put_tps: float = 0.0


@body("org.apache.rocketmq.remoting.protocol.admin.OffsetWrapper")
class OffsetWrapper(Body):
    """How far a group has come in a queue; the time is that of the last consumed message, in ms."""

    broker_offset: int = 0
    consumer_offset: int = 0
    pull_offset: int = 0
    last_timestamp: int = 0


@body("org.apache.rocketmq.remoting.protocol.admin.ConsumeStats")
class ConsumeStats(Body):
    """How far a group has come, and messages per second."""

    offset_table: Mapping[MessageQueue, OffsetWrapper] = member(default_factory=dict)
    consume_tps: float = 0.0


@body("org.apache.rocketmq.remoting.protocol.body.ConsumeStatsList")
class ConsumeStatsList(Body):
    """All groups of a broker: a list of maps from a group to its statistics by topic."""

    consume_stats_list: Sequence[Mapping[str, Sequence[ConsumeStats]]] = ()
    broker_addr: str | None = None
    total_diff: int = 0
    total_inflight_diff: int = 0


@body("org.apache.rocketmq.remoting.protocol.admin.RollbackStats")
class RollbackStats(Body):
    """What the reset of a queue's offset has done."""

    broker_name: str | None = None
    queue_id: int = 0
    broker_offset: int = 0
    consumer_offset: int = 0
    timestamp_offset: int = 0
    rollback_offset: int = 0


@body("org.apache.rocketmq.remoting.protocol.body.BrokerStatsItem")
class BrokerStatsItem(Body):
    """A counter's sum, per second, and average of what each call added."""

    sum: int = 0
    tps: float = 0.0
    avgpt: float = 0.0


@body("org.apache.rocketmq.remoting.protocol.body.BrokerStatsData")
class BrokerStatsData(Body):
    """A counter over a minute, an hour, a day."""

    stats_minute: BrokerStatsItem | None = None
    stats_hour: BrokerStatsItem | None = None
    stats_day: BrokerStatsItem | None = None
