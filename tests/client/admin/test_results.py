# SPDX-License-Identifier: Apache-2.0
"""What is counted of what servers say."""

from __future__ import annotations

from txrocketmq.client.admin.results import (
    BrokerInfo,
    GroupProgress,
    QueueProgress,
    QueueStats,
    TopicStats,
)
from txrocketmq.remoting.message.message import MessageQueue


def progress(topic: str, broker: int, consumer: int, pull: int) -> QueueProgress:
    return QueueProgress(
        queue=MessageQueue(topic, "b", 0),
        broker_offset=broker,
        consumer_offset=consumer,
        pull_offset=pull,
        last_timestamp=0,
    )


def test_lag_is_what_is_not_consumed_and_never_negative() -> None:
    queues = (progress("T", 10, 4, 6), progress("%RETRY%g", 3, 3, 0), progress("T", 1, 5, 5))
    group = GroupProgress(group="g", queues=queues)
    assert [each.lag for each in queues] == [6, 0, 0]
    assert [each.in_flight for each in queues] == [2, 0, 0]
    assert (group.lag, group.in_flight) == (6, 2)
    assert group.lag_by_topic == {"T": 6, "%RETRY%g": 0}


def test_messages_are_between_the_bounds() -> None:
    queue = MessageQueue("T", "b", 0)
    stats = QueueStats(queue=queue, min_offset=2, max_offset=5, last_update_timestamp=1)
    assert TopicStats(topic="T", queues=(stats, stats)).messages == 6


def test_a_master_has_the_id_zero() -> None:
    master = BrokerInfo(cluster="c", name="a", broker_id=0, address="h:1")
    assert master.is_master
    assert str(master) == "a (h:1)"
    assert not BrokerInfo(cluster="c", name="a", broker_id=1, address="h:2").is_master
