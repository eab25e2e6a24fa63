# SPDX-License-Identifier: Apache-2.0
"""Topics: what is asked of which server."""

from __future__ import annotations

from typing import Any

import pytest

from tests.client.admin.fake_cluster import Cluster, refused
from tests.client.fakes import BROKER_A, BROKER_B, NAME_SERVER, result_of
from txrocketmq.client.admin.topics import attributes_text
from txrocketmq.client.base.errors import AdminRefused, MessageIllegal, NoRoute, NotKept
from txrocketmq.remoting.call import Reply
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.message.message import MessageQueue
from txrocketmq.remoting.protocol import route, topic
from txrocketmq.remoting.protocol.body.route import TopicConfig, TopicConfigSerializeWrapper
from txrocketmq.remoting.protocol.body.stats import TopicOffset, TopicStatsTable
from txrocketmq.remoting.protocol.body.topic import GroupList, TopicList
from txrocketmq.remoting.protocol.operations import admin
from txrocketmq.remoting.protocol.route import GetKVConfigResponseHeader


@pytest.fixture
def cluster() -> Cluster:
    cluster = Cluster()
    cluster.on_both(topic.UPDATE_AND_CREATE_TOPIC, Reply())
    cluster.on_both(topic.DELETE_TOPIC_IN_BROKER, Reply())
    cluster.connections.on(NAME_SERVER, topic.DELETE_TOPIC_IN_NAMESRV, Reply())
    cluster.connections.on(NAME_SERVER, route.GET_KV_CONFIG, refused(ResponseCode.QUERY_NOT_FOUND))
    cluster.connections.on(NAME_SERVER, route.PUT_KV_CONFIG, Reply())
    cluster.connections.on(NAME_SERVER, route.DELETE_KV_CONFIG, Reply())
    config = TopicConfig(topic_name="T", read_queue_nums=4, write_queue_nums=4, topic_sys_flag=1)
    cluster.on_both(topic.GET_TOPIC_CONFIG, Reply(body=config.encode()))
    return cluster


def put(cluster: Cluster) -> list[tuple[str, Any]]:
    return cluster.connections.questions(topic.UPDATE_AND_CREATE_TOPIC)


def test_the_list_is_of_all_or_of_a_cluster(cluster: Cluster) -> None:
    names: Reply[Any] = Reply(body=TopicList(topic_list=("b", "a")).encode())
    cluster.connections.on(NAME_SERVER, topic.GET_ALL_TOPIC_LIST_FROM_NAMESERVER, names)
    cluster.connections.on(NAME_SERVER, topic.GET_TOPICS_BY_CLUSTER, names)
    assert result_of(cluster.admin.topics()) == ["a", "b"]
    assert result_of(cluster.admin.topics("c")) == ["a", "b"]
    ((_, header),) = cluster.connections.questions(topic.GET_TOPICS_BY_CLUSTER)
    assert header.cluster == "c"
    call = topic.GET_ALL_TOPIC_LIST_FROM_NAMESERVER
    cluster.connections.on(NAME_SERVER, call, refused(remark="disable"))
    with pytest.raises(AdminRefused, match="disable"):
        result_of(cluster.admin.topics())


def test_a_topic_is_made_at_all_masters(cluster: Cluster) -> None:
    result_of(cluster.admin.create_topic("N", queues=3, perm=4, attributes={"a": "1", "b": None}))
    assert [address for address, _ in put(cluster)] == [BROKER_A, BROKER_B]
    header = put(cluster)[0][1]
    assert (header.topic, header.read_queue_nums, header.write_queue_nums) == ("N", 3, 3)
    assert (header.perm, header.default_topic, header.attributes) == (4, "TBW102", "+a=1,-b")
    assert cluster.asked(route.PUT_KV_CONFIG) == []


def test_a_topic_in_order_is_told_to_the_name_servers(cluster: Cluster) -> None:
    known = GetKVConfigResponseHeader(value="broker-z:7;broker-a:1")
    cluster.connections.on(NAME_SERVER, route.GET_KV_CONFIG, Reply(known))
    result_of(cluster.admin.create_topic("N", queues=3, order=True))
    ((_, header),) = cluster.connections.questions(route.PUT_KV_CONFIG)
    assert header.value == "broker-a:3;broker-b:3;broker-z:7"
    assert (header.namespace, header.key) == ("ORDER_TOPIC_CONFIG", "N")


def test_a_broker_that_knows_no_attributes_is_not_changed(cluster: Cluster) -> None:
    unknown = refused(ResponseCode.REQUEST_CODE_NOT_SUPPORTED)
    cluster.connections.on(BROKER_B, topic.GET_TOPIC_CONFIG, unknown)
    with pytest.raises(NotKept, match=r"broker-b .* keeps no attributes"):
        result_of(cluster.admin.create_topic("N", attributes={"a": "1"}))
    assert put(cluster) == []


def test_only_what_is_given_is_changed(cluster: Cluster) -> None:
    result_of(cluster.admin.update_topic("T", write_queues=2))
    header = put(cluster)[1][1]
    assert (header.read_queue_nums, header.write_queue_nums, header.topic_sys_flag) == (4, 2, 1)
    assert header.attributes is None
    result_of(cluster.admin.update_topic("T", perm=2, broker="broker-b"))
    assert [address for address, _ in put(cluster)] == [BROKER_A, BROKER_B, BROKER_B]
    with pytest.raises(NoRoute, match="broker x does not have it"):
        result_of(cluster.admin.update_topic("T", perm=2, broker="x"))


def test_a_topic_that_its_brokers_do_not_have_is_not_changed(cluster: Cluster) -> None:
    """It was deleted there, and the name server has not heard of it yet."""
    cluster.on_both(topic.GET_TOPIC_CONFIG, refused(ResponseCode.TOPIC_NOT_EXIST))
    with pytest.raises(NoRoute, match="topic T .* do not have it"):
        result_of(cluster.admin.update_topic("T", write_queues=2))
    assert put(cluster) == []


def test_a_broker_of_4_tells_all_topics(cluster: Cluster) -> None:
    cluster.on_both(topic.GET_TOPIC_CONFIG, refused(ResponseCode.REQUEST_CODE_NOT_SUPPORTED))
    table = TopicConfigSerializeWrapper(
        topic_config_table={"T": TopicConfig(topic_name="T", perm=2)}
    )
    cluster.on_both(topic.GET_ALL_TOPIC_CONFIG, Reply(body=table.encode()))
    configs = result_of(cluster.admin.topic_configs("T"))
    assert {name: its.perm for name, its in configs.items()} == {"broker-a": 2, "broker-b": 2}


def test_a_topic_ends_at_brokers_and_name_servers(cluster: Cluster) -> None:
    cluster.connections.on(
        NAME_SERVER, route.GET_KV_CONFIG, Reply(GetKVConfigResponseHeader(value="broker-a:1"))
    )
    result_of(cluster.admin.delete_topic("T"))
    assert cluster.asked(topic.DELETE_TOPIC_IN_BROKER) == [BROKER_A, BROKER_B]
    assert cluster.asked(topic.DELETE_TOPIC_IN_NAMESRV) == [NAME_SERVER]
    assert cluster.asked(route.DELETE_KV_CONFIG) == [NAME_SERVER]
    with pytest.raises(NoRoute):
        result_of(cluster.admin.delete_topic("unknown"))


def test_the_queues_of_all_brokers(cluster: Cluster) -> None:
    def stats(name: str, count: int) -> Reply[Any]:
        table = {MessageQueue("T", name, 0): TopicOffset(min_offset=1, max_offset=count)}
        return Reply(body=TopicStatsTable(offset_table=table, topic_put_tps=1.5).encode())

    cluster.connections.on(BROKER_A, admin.GET_TOPIC_STATS_INFO, stats("broker-a", 5))
    cluster.connections.on(BROKER_B, admin.GET_TOPIC_STATS_INFO, stats("broker-b", 3))
    found = result_of(cluster.admin.topic_stats("T"))
    assert [(each.queue.broker_name, each.messages) for each in found.queues] == [
        ("broker-a", 4), ("broker-b", 2),
    ]  # fmt: skip
    assert (found.messages, found.put_tps) == (6, 3.0)


def test_the_groups_of_all_brokers(cluster: Cluster) -> None:
    call = topic.QUERY_TOPIC_CONSUME_BY_WHO
    cluster.connections.on(BROKER_A, call, Reply(body=GroupList(group_list=("y", "x")).encode()))
    cluster.connections.on(BROKER_B, call, Reply(body=GroupList(group_list=("x",)).encode()))
    assert result_of(cluster.admin.topic_groups("T")) == ["x", "y"]


def test_a_name_that_no_topic_can_have(cluster: Cluster) -> None:
    with pytest.raises(MessageIllegal, match="illegal"):
        result_of(cluster.admin.create_topic("no spaces"))


def test_no_attributes_are_no_field() -> None:
    assert attributes_text({}) is None
