# SPDX-License-Identifier: Apache-2.0
"""Topics as rows."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cli.stored import Stored
from tests.client.admin.fake_cluster import Cluster, refused
from tests.client.fakes import BROKER_A, result_of
from txrocketmq.cli.admin.topic_rows import SAMPLES, OwnTopics, topic_rows
from txrocketmq.remoting.call import Reply
from txrocketmq.remoting.message.message import MessageQueue
from txrocketmq.remoting.protocol.body.stats import TopicOffset, TopicStatsTable
from txrocketmq.remoting.protocol.operations import admin


class Topics(Stored):
    """Topics whose brokers say how many messages they have."""

    def __init__(self) -> None:
        self.cluster = Cluster()
        super().__init__(self.cluster, at_once=SAMPLES)
        self.put_tps = 1.5
        self.cluster.connections.on(BROKER_A, admin.GET_TOPIC_STATS_INFO, self._stats)

    def _stats(self, _: str, header: Any, __: bytes) -> Reply[Any]:
        table = {
            MessageQueue(topic, "broker-a", queue_id): TopicOffset(
                min_offset=0,
                max_offset=len(messages),
                last_update_timestamp=max((m.store_timestamp for m in messages), default=0),
            )
            for (topic, queue_id), messages in self.queues.items()
            if topic == header.topic
        }
        body = TopicStatsTable(offset_table=table, topic_put_tps=self.put_tps).encode()
        return Reply(body=body)


@pytest.fixture
def topics() -> Topics:
    return Topics()


def rows(topics: Topics, *names: str) -> list[dict[str, Any]]:
    return result_of(topic_rows(topics.cluster.client, names))


def test_what_a_row_says(topics: Topics) -> None:
    topics.topic("Orders", 3)
    for n in range(5):
        topics.put("Orders", 1, b"x" * 100, 1_000 + n)
    (row,) = rows(topics, "Orders")
    assert (row["topic"], row["queues"], row["perm"], row["messages"]) == ("Orders", 3, "rw", 5)
    assert (row["putTps"], row["lastUpdateTimestamp"]) == (1.5, 1_004)
    assert 5 * 100 < row["estimatedBytes"] < 5 * 300
    assert row["size"].endswith("B")


def test_the_size_is_estimated_from_both_ends_of_the_fullest_queue(topics: Topics) -> None:
    topics.topic("Orders", 2)
    topics.put("Orders", 0, b"x" * 9_000, 1)
    for n in range(100):
        topics.put("Orders", 1, b"x" * (0 if n < SAMPLES else 1_000), n)
    (row,) = rows(topics, "Orders")
    assert topics.pulls == 2
    assert 101 * 500 < row["estimatedBytes"] < 101 * 700


def test_an_empty_topic_has_no_size(topics: Topics) -> None:
    topics.topic("Empty", 1)
    (row,) = rows(topics, "Empty")
    assert (row["messages"], row["size"], row["lastUpdate"]) == (0, None, None)


def test_a_topic_that_fails_stops_no_other(topics: Topics) -> None:
    topics.topic("Orders", 1)
    found = rows(topics, "Gone", "Orders")
    assert found[0] == {"topic": "Gone"}
    assert found[1]["messages"] == 0
    topics.cluster.connections.on(BROKER_A, admin.GET_TOPIC_STATS_INFO, refused())
    assert rows(topics, "Orders") == [{"topic": "Orders"}]


def test_each_is_told_to_whoever_waits(topics: Topics) -> None:
    topics.topic("Orders", 1)
    steps: list[int] = []
    result_of(topic_rows(topics.cluster.client, ["Orders", "Gone"], steps.append))
    assert steps == [1, 1]


@pytest.mark.parametrize(
    "name", ["c", "broker-a", "c_REPLY_TOPIC", "TBW102", "%RETRY%g", "%DLQ%g", "rmq_sys_x"]
)
def test_topics_of_the_system(topics: Topics, name: str) -> None:
    own = result_of(OwnTopics.of(topics.cluster.admin))
    assert name in own
    assert "Orders" not in own
