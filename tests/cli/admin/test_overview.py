# SPDX-License-Identifier: Apache-2.0
"""What is found out about a cluster, and what is warned of."""

from __future__ import annotations

from typing import Any

import pytest

from tests.client.admin.fake_cluster import QUEUE, Cluster, refused
from tests.client.fakes import BROKER_A, BROKER_B, NAME_SERVER, a_route, result_of
from txrocketmq.cli.admin import overview as module
from txrocketmq.cli.admin.overview import Overview, overview, warnings
from txrocketmq.remoting.call import Reply
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.errors import ConnectError
from txrocketmq.remoting.message.message import MessageQueue
from txrocketmq.remoting.protocol import topic
from txrocketmq.remoting.protocol.body.route import KVTable
from txrocketmq.remoting.protocol.body.stats import (
    ConsumeStats,
    OffsetWrapper,
    TopicOffset,
    TopicStatsTable,
)
from txrocketmq.remoting.protocol.body.topic import TopicList
from txrocketmq.remoting.protocol.operations import admin

STATS = {
    "brokerVersionDesc": "V5_4_0", "putTps": "1.5 1.0 0.5", "getTransferredTps": "2.0",
    "commitLogDiskRatio": "0.5",
}  # fmt: skip


@pytest.fixture
def cluster() -> Cluster:
    """T has a message, the group g is 3 behind without a consumer, and has a dead letter."""
    made = Cluster()
    names = TopicList(topic_list=("T", "%DLQ%g", "broker-a"))
    made.connections.on(
        NAME_SERVER, topic.GET_ALL_TOPIC_LIST_FROM_NAMESERVER, Reply(body=names.encode())
    )
    made.on_both(admin.GET_BROKER_RUNTIME_INFO, Reply(body=KVTable(table=STATS).encode()))
    made.connections.on("10.0.1.3:10911", admin.GET_BROKER_RUNTIME_INFO, ConnectError("gone"))
    made.on_both(admin.GET_CONSUMER_CONNECTION_LIST, refused(ResponseCode.CONSUMER_NOT_ONLINE))
    for name in ("T", "%DLQ%g", "%RETRY%g", "%RETRY%CID_RMQ_SYS_x"):
        made.routes[name] = a_route({"broker-a": 1})
    made.know("g")
    made.know("CID_RMQ_SYS_x")

    def stats(_: str, header: Any, __: bytes) -> Reply[Any]:
        queue = MessageQueue(header.topic, "broker-a", 0)
        table = {queue: TopicOffset(min_offset=0, max_offset=1, last_update_timestamp=5)}
        return Reply(body=TopicStatsTable(offset_table=table).encode())

    wrapper = OffsetWrapper(broker_offset=10, consumer_offset=7, pull_offset=7)
    consumed = ConsumeStats(offset_table={QUEUE: wrapper}).encode()
    made.on_both(admin.GET_TOPIC_STATS_INFO, stats)
    made.on_both(admin.GET_CONSUME_STATS, Reply(body=consumed))
    return made


def found(cluster: Cluster) -> Overview:
    return result_of(overview(cluster.client))


def test_brokers_topics_and_groups(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    async def no_size(*_: Any) -> None:
        return None

    monkeypatch.setattr("txrocketmq.cli.admin.topic_rows._mean_bytes", no_size)
    it = found(cluster)
    assert [(each["broker"], each["brokerId"], each["putTps"]) for each in it.brokers] == [
        ("broker-a", 0, 1.5), ("broker-a", 1, None), ("broker-b", 0, 1.5)
    ]  # fmt: skip
    assert [(each["topic"], each["messages"]) for each in it.topics] == [("T", 1)]
    assert [(each["group"], each["lag"]) for each in it.groups] == [("g", 3)]
    assert it.warnings == [
        "Broker broker-a does not answer: gone.",
        "Group g is 3 messages behind, and no consumer of it is connected.",
        "Group g has 1 dead letter: see 'txrocketmq dead-letters list g'.",
    ]


def test_a_cluster_may_have_any_number_of_topics_and_groups(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_TOPICS", 2)
    monkeypatch.setattr(module, "MOST_GROUPS", 1)
    names = TopicList(topic_list=tuple(f"T{n}" for n in range(5)))
    cluster.connections.on(
        NAME_SERVER, topic.GET_ALL_TOPIC_LIST_FROM_NAMESERVER, Reply(body=names.encode())
    )
    cluster.know("h")
    it = found(cluster)
    assert (len(it.topics), it.more_topics, it.more_groups) == (2, 3, 1)
    assert "No broker answers for topics T0, T1." in it.warnings


def test_brokers_that_are_away_do_not_hide_the_rest(cluster: Cluster) -> None:
    for address in (BROKER_A, BROKER_B):
        for call in (topic.GET_ALL_SUBSCRIPTIONGROUP_CONFIG, admin.GET_BROKER_RUNTIME_INFO,
                     admin.GET_TOPIC_STATS_INFO):  # fmt: skip
            cluster.connections.on(address, call, ConnectError("refused"))
    it = found(cluster)
    assert [each["topic"] for each in it.topics] == ["T"]
    assert "No broker answers for topic T." in it.warnings


BROKER = {"broker": "b", "problem": None, "diskRatio": 0.2}
GROUP = {"group": "g", "lag": 0, "consumers": 0}


@pytest.mark.parametrize(
    ("brokers", "groups", "warned"),
    [
        ([BROKER], [GROUP], []),
        ([], [], ["No broker is registered, so nothing can be sent: start one."]),
        ([{**BROKER, "diskRatio": 0.75}], [], ["The disk of broker b is 75% full"]),
        ([{**BROKER, "diskRatio": None}], [], []),
        ([BROKER], [{**GROUP, "lag": 1}], ["Group g is 1 message behind"]),
        ([BROKER], [{**GROUP, "lag": 9, "consumers": 1}], []),
    ],
)
def test_warnings(
    brokers: list[dict[str, Any]], groups: list[dict[str, Any]], warned: list[str]
) -> None:
    said = warnings(brokers, [{"topic": "T", "messages": 1}], groups, [])
    assert len(said) == len(warned)
    assert all(text.startswith(start) for text, start in zip(said, warned, strict=True))


def test_many_topics_without_an_answer_are_counted() -> None:
    topics = [{"topic": f"T{n}"} for n in range(9)]
    (said,) = warnings([BROKER], topics, [], [])
    assert said == "No broker answers for topics T0, T1, T2, T3, T4 and 4 more."
