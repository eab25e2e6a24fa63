# SPDX-License-Identifier: Apache-2.0
"""Lists of topics, deleting, permissions."""

from __future__ import annotations

from typing import Any

import pytest

from tests.fakes import NOW_MS, refused
from tests.namesrv.conftest import MakeNames, Names, registration, topics
from txrocketmq.remoting.call import Call
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.errors import HeaderError
from txrocketmq.remoting.header import Header, NoHeader
from txrocketmq.remoting.protocol import route, topic
from txrocketmq.remoting.protocol.body.route import QueueData, TopicRouteData
from txrocketmq.remoting.protocol.body.topic import TopicList
from txrocketmq.remoting.protocol.route import (
    AddWritePermOfBrokerRequestHeader,
    WipeWritePermOfBrokerRequestHeader,
)
from txrocketmq.remoting.protocol.topic import (
    DeleteTopicFromNamesrvRequestHeader,
    GetTopicsByClusterRequestHeader,
    RegisterTopicRequestHeader,
)

LISTS = [
    (topic.GET_TOPICS_BY_CLUSTER, GetTopicsByClusterRequestHeader(cluster="c1"), "PUSB"),
    (topic.GET_UNIT_TOPIC_LIST, NoHeader(), "UB"),
    (topic.GET_HAS_UNIT_SUB_TOPIC_LIST, NoHeader(), "SB"),
    (topic.GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST, NoHeader(), "S"),
]


def filled(names: Names) -> Names:
    """Topics P, U, S, B: plain, of a unit, subscribed to by units, both."""
    having = (
        topics("P") | topics("U", sys_flag=1) | topics("S", sys_flag=2) | topics("B", sys_flag=3)
    )
    names.table.register(registration(having=having), "a", NOW_MS)
    return names


def listed(names: Names, call: Call[Any, Any], header: Header) -> TopicList:
    return TopicList.decode(names.ask(call, header).body)


@pytest.mark.parametrize(("call", "header", "wanted"), LISTS)
def test_lists(names: Names, call: Call[Any, Any], header: Header, wanted: str) -> None:
    assert "".join(listed(filled(names), call, header).topic_list) == wanted


@pytest.mark.parametrize(("call", "header", "wanted"), LISTS)
def test_lists_may_be_withheld(
    make_names: MakeNames, call: Call[Any, Any], header: Header, wanted: str
) -> None:
    names = filled(make_names(enableTopicList="false"))
    with refused(ResponseCode.SYSTEM_ERROR, "disable"):
        names.ask(call, header)
    assert listed(names, topic.GET_ALL_TOPIC_LIST_FROM_NAMESERVER, NoHeader()).topic_list


def test_the_list_of_all_may_be_withheld(make_names: MakeNames) -> None:
    names = filled(make_names(enableAllTopicList="false"))
    with refused(ResponseCode.SYSTEM_ERROR, "disable"):
        names.ask(topic.GET_ALL_TOPIC_LIST_FROM_NAMESERVER, NoHeader())


def test_all_topics(names: Names) -> None:
    reply = filled(names).ask(topic.GET_ALL_TOPIC_LIST_FROM_NAMESERVER, NoHeader())
    assert reply.body == b'{"topicList":["P","U","S","B"]}'


def test_system_topics(names: Names) -> None:
    reply = filled(names).ask(topic.GET_SYSTEM_TOPIC_LIST_FROM_NS, NoHeader())
    assert reply.body == b'{"brokerAddr":"10.0.0.1:10911","topicList":["c1","broker-a"]}'


def test_deleting_a_topic(names: Names) -> None:
    filled(names)
    names.table.register(registration(name="b", port=2, cluster="c2"), "b", NOW_MS)
    for cluster, left in (("c2", ["P"]), (None, [])):
        header = DeleteTopicFromNamesrvRequestHeader(topic="T1", cluster_name=cluster)
        names.ask(topic.DELETE_TOPIC_IN_NAMESRV, header)
        header = DeleteTopicFromNamesrvRequestHeader(topic="P", cluster_name=cluster)
        names.ask(topic.DELETE_TOPIC_IN_NAMESRV, header)
        assert [it for it in names.table.topics().topic_list if it in ("T1", "P")] == left
    header = DeleteTopicFromNamesrvRequestHeader(topic="U", cluster_name="")
    names.ask(topic.DELETE_TOPIC_IN_NAMESRV, header)
    assert names.table.route("U") is None
    assert names.notes[0] == "127.0.0.1:50000 deleted the topic T1 in cluster c2"
    assert names.notes[-1] == "127.0.0.1:50000 deleted the topic U in all clusters"


def test_registering_one_topic(names: Names) -> None:
    queue = QueueData(broker_name="broker-a", read_queue_nums=2, write_queue_nums=3, perm=6)
    body = TopicRouteData(queue_datas=(queue,)).encode()
    header = RegisterTopicRequestHeader(topic="T9")
    filled(names).ask(topic.REGISTER_TOPIC_IN_NAMESRV, header, body)
    found = names.table.route("T9")
    assert found is not None
    assert found.queue_datas == (queue,)


def test_registering_nothing(names: Names) -> None:
    header = RegisterTopicRequestHeader(topic="T9")
    for body in (b"", b"{}"):
        filled(names).ask(topic.REGISTER_TOPIC_IN_NAMESRV, header, body)
    with pytest.raises(HeaderError):
        names.ask(topic.REGISTER_TOPIC_IN_NAMESRV, header, b'{"queueDatas":[{"perm":6}]}')
    assert names.table.route("T9") is None


def test_write_permission(names: Names) -> None:
    filled(names)
    wipe = WipeWritePermOfBrokerRequestHeader(broker_name="broker-a")
    assert names.ask(route.WIPE_WRITE_PERM_OF_BROKER, wipe).header.wipe_topic_count == 4
    found = names.table.route("P")
    assert found is not None
    assert found.queue_datas[0].perm == 4
    add = AddWritePermOfBrokerRequestHeader(broker_name="broker-a")
    assert names.ask(route.ADD_WRITE_PERM_OF_BROKER, add).header.add_topic_count == 4
    assert names.notes == [
        "127.0.0.1:50000 made 4 topics of broker-a read-only",
        "127.0.0.1:50000 made 4 topics of broker-a writable",
    ]
