# SPDX-License-Identifier: Apache-2.0
"""`txrocketmq topics` with a client among fakes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.cli.administered import Administered
from tests.client.admin.fake_cluster import refused
from tests.client.fakes import BROKER_A, BROKER_B, NAME_SERVER
from txrocketmq.cli.admin.topics import main
from txrocketmq.remoting.call import Reply
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.message.message import MessageQueue
from txrocketmq.remoting.protocol import pull, route, topic
from txrocketmq.remoting.protocol.body.route import TopicConfig
from txrocketmq.remoting.protocol.body.stats import TopicOffset, TopicStatsTable
from txrocketmq.remoting.protocol.body.topic import TopicList
from txrocketmq.remoting.protocol.operations import admin
from txrocketmq.remoting.protocol.pull import PullMessageResponseHeader


@pytest.fixture
def topics(administered: Administered) -> Administered:
    on, on_both = administered.cluster.connections.on, administered.cluster.on_both
    listed = TopicList(topic_list=("T", "%RETRY%g", "c", "broker-a", "c_REPLY_TOPIC", "TBW102"))
    on(NAME_SERVER, topic.GET_ALL_TOPIC_LIST_FROM_NAMESERVER, Reply(body=listed.encode()))
    on(NAME_SERVER, topic.DELETE_TOPIC_IN_NAMESRV, Reply())
    on(NAME_SERVER, route.GET_KV_CONFIG, refused(ResponseCode.QUERY_NOT_FOUND))
    config = TopicConfig(topic_name="T", perm=4)
    on_both(topic.GET_TOPIC_CONFIG, Reply(body=config.encode()))
    on_both(topic.UPDATE_AND_CREATE_TOPIC, Reply())
    on_both(topic.DELETE_TOPIC_IN_BROKER, Reply())
    for address, name in ((BROKER_A, "broker-a"), (BROKER_B, "broker-b")):
        table = {MessageQueue("T", name, 0): TopicOffset(min_offset=1, max_offset=4)}
        stats: Reply[Any] = Reply(body=TopicStatsTable(offset_table=table).encode())
        on(address, admin.GET_TOPIC_STATS_INFO, stats)
        nothing = PullMessageResponseHeader(
            suggest_which_broker_id=0, next_begin_offset=4, min_offset=1, max_offset=4
        )
        on(address, pull.PULL_MESSAGE, Reply(nothing, code=ResponseCode.PULL_NOT_FOUND))
    return administered


def headers(topics: Administered) -> list[Any]:
    asked = topics.cluster.connections.questions(topic.UPDATE_AND_CREATE_TOPIC)
    return [header for _, header in asked]


def test_the_list_leaves_out_what_is_not_the_programs(topics: Administered) -> None:
    assert topics.run(main, "list", "--names") == 0
    assert topics.out == "T\n"
    topics.run(main, "list", "--all", "--names", "--json")
    names = {json.loads(line)["topic"] for line in topics.out.splitlines()}
    assert len(names) == 6
    assert names > {"T", "%RETRY%g"}


def test_the_list_has_columns(topics: Administered) -> None:
    assert topics.run(main, "list") == 0
    assert topics.lines[0] == "TOPIC QUEUES PERM MESSAGES IN/S ~SIZE LAST MESSAGE".split()
    assert topics.lines[1][:4] == ["T", "2", "rw", "6"]
    topics.run(main, "list", "--all", "--json")
    rows = {row["topic"]: row for row in map(json.loads, topics.out.splitlines())}
    assert (len(rows), rows["T"]["messages"]) == (6, 6)


def test_names_alone_are_asked_of_no_broker(topics: Administered) -> None:
    topics.run(main, "list", "--names")
    assert topics.cluster.asked(admin.GET_TOPIC_STATS_INFO) == []


def test_the_queues(topics: Administered) -> None:
    assert topics.run(main, "show", "T") == 0
    assert topics.lines[1] == ["broker-a", "0", "r", "1", "4", "3", "-"]
    topics.run(main, "show", "T", "--json")
    assert json.loads(topics.out.splitlines()[1])["broker"] == "broker-b"


def test_attributes_are_below_the_queues(topics: Administered) -> None:
    def has(address: str, **attributes: str) -> None:
        config = TopicConfig(topic_name="T", attributes=attributes)
        topics.cluster.connections.on(address, topic.GET_TOPIC_CONFIG, Reply(body=config.encode()))

    topics.run(main, "show", "T")
    assert "Attributes" not in topics.out
    for address in (BROKER_A, BROKER_B):
        has(address, b="2", a="1")
    topics.run(main, "show", "T")
    assert topics.out.splitlines()[-1] == "Attributes: a=1, b=2"
    topics.run(main, "show", "T", "--json")
    rows = [json.loads(line) for line in topics.out.splitlines()]
    assert [row["attributes"] for row in rows] == [{"a": "1", "b": "2"}] * 2
    has(BROKER_B)
    topics.run(main, "show", "T")
    assert topics.out.splitlines()[-2:] == [
        "Attributes at broker-a: a=1, b=2",
        "Attributes at broker-b: none",
    ]


def test_the_route(topics: Administered) -> None:
    assert topics.run(main, "route", "T") == 0
    assert topics.lines[1] == ["broker-a", "c", "2", "2", "rw", BROKER_A]


def test_a_topic_is_created(topics: Administered) -> None:
    words = ["--queues", "3", "--perm", "w", "--attribute", "a=1", "--attribute", "b="]
    assert topics.run(main, "create", "N", *words) == 0
    assert topics.out == "created topic N\n"
    header = headers(topics)[0]
    assert (header.write_queue_nums, header.perm, header.attributes) == (3, 2, "+a=1,-b")
    assert topics.run(main, "create", "N", "--broker", "broker-b") == 0
    assert len(headers(topics)) == 3


@pytest.mark.parametrize(
    "place", [[], ["--cluster", "c"], ["--broker", "broker-a"], ["--broker", BROKER_A]]
)
def test_a_topic_that_exists_keeps_its_queues(topics: Administered, place: list[str]) -> None:
    assert topics.run(main, "create", "T", *place) == 1
    assert topics.out == (
        "txrocketmq topics create: topic T exists already: it has 2 queues at broker-a, not 8;"
        " 'txrocketmq topics update' changes topics\n"
    )
    assert headers(topics) == []
    assert topics.run(main, "create", "T", "--queues", "2", "--broker", "broker-a") == 0
    assert topics.out == "created topic T\n"


def test_a_topic_is_changed(topics: Administered) -> None:
    assert topics.run(main, "update", "T", "--read-queues", "5") == 0
    assert (headers(topics)[0].read_queue_nums, headers(topics)[0].perm) == (5, 4)


def test_a_topic_is_deleted_when_that_is_wanted(topics: Administered) -> None:
    assert topics.run(main, "delete", "T") == 1
    assert "Delete topic T with all its messages?" in topics.err
    assert topics.cluster.asked(topic.DELETE_TOPIC_IN_BROKER) == []
    assert topics.run(main, "delete", "T", "--yes") == 0
    assert topics.cluster.asked(topic.DELETE_TOPIC_IN_BROKER) == [BROKER_A, BROKER_B]


@pytest.mark.parametrize(
    "words", [["create", "N", "--queues", "0"], ["create", "N", "--perm", "x"], ["update"]]
)
def test_wrong_usage(topics: Administered, words: list[str]) -> None:
    assert topics.run(main, *words) == 2
