# SPDX-License-Identifier: Apache-2.0
"""Routes and clusters as clients get them."""

from __future__ import annotations

import pytest

from tests.fakes import NOW_MS, FakePeer, refused
from tests.namesrv.conftest import MakeNames, Names, registration
from txrocketmq.namesrv.kv_config import ORDER_TOPIC_CONFIG
from txrocketmq.remoting.codes import MQVersion, ResponseCode
from txrocketmq.remoting.header import NoHeader
from txrocketmq.remoting.protocol import route
from txrocketmq.remoting.protocol.body.route import TopicRouteData
from txrocketmq.remoting.protocol.route import GetRouteInfoRequestHeader

QUEUES = (
    b'"queueDatas":[{"brokerName":"broker-a","perm":6,"readQueueNums":4,"topicSysFlag":0,'
    b'"writeQueueNums":4}]'
)
BARE = (
    b'{"brokerDatas":[{"brokerAddrs":{0:"10.0.0.1:10911"},"brokerName":"broker-a",'
    b'"cluster":"c1","enableActingMaster":false}],"filterServerTable":{},' + QUEUES + b"}"
)
STANDARD = BARE.replace(b"{0:", b'{"0":')


def registered(names: Names) -> Names:
    names.table.register(registration(), FakePeer(), NOW_MS)
    return names


@pytest.mark.parametrize(
    ("version", "asked", "body"),
    [
        (MQVersion.V4_9_3, None, BARE),
        (MQVersion.V4_9_3, False, BARE),
        (MQVersion.V4_9_3, True, STANDARD),
        (MQVersion.V4_9_4, None, STANDARD),
        (MQVersion.V5_4_0, False, STANDARD),
    ],
)
def test_ids_are_quoted_for_those_who_want_it(
    names: Names, version: int, asked: bool | None, body: bytes
) -> None:
    header = GetRouteInfoRequestHeader(topic="T1", accept_standard_json_only=asked)
    reply = registered(names).ask(route.GET_ROUTEINFO_BY_TOPIC, header, version=version)
    assert reply.body == body


def test_an_unknown_topic(names: Names) -> None:
    with refused(
        ResponseCode.TOPIC_NOT_EXIST, "No topic route info in name server for the topic: T9\nSee "
    ):
        registered(names).ask(route.GET_ROUTEINFO_BY_TOPIC, GetRouteInfoRequestHeader(topic="T9"))


def test_the_order_of_a_topic_is_told_where_it_is_wanted(make_names: MakeNames) -> None:
    for enabled, order in (("false", None), ("true", "broker-a:4")):
        names = registered(make_names(orderMessageEnable=enabled))
        names.kv.put(ORDER_TOPIC_CONFIG, "T1", "broker-a:4")
        header = GetRouteInfoRequestHeader(topic="T1")
        reply = names.ask(route.GET_ROUTEINFO_BY_TOPIC, header)
        assert TopicRouteData.decode(reply.body).order_topic_conf == order
        header = GetRouteInfoRequestHeader(topic="T2")
        reply = names.ask(route.GET_ROUTEINFO_BY_TOPIC, header)
        assert TopicRouteData.decode(reply.body).order_topic_conf is None


def test_routes_wait_for_brokers_where_that_is_wanted(make_names: MakeNames) -> None:
    names = registered(make_names(needWaitForService="true", waitSecondsForService="3"))
    header = GetRouteInfoRequestHeader(topic="T1")
    with refused(ResponseCode.SYSTEM_ERROR, "name server not ready"):
        names.ask(route.GET_ROUTEINFO_BY_TOPIC, header, now_ms=NOW_MS + 2_999)
    assert names.ask(route.GET_ROUTEINFO_BY_TOPIC, header, now_ms=NOW_MS + 3_000).body


@pytest.mark.parametrize(
    ("fields", "brokers"),
    [
        ({"__ZONE_MODE": "true", "__ZONE_NAME": "north"}, {"broker-n"}),
        ({"__ZONE_MODE": "false", "__ZONE_NAME": "north"}, {"broker-n", "broker-s"}),
        ({"__ZONE_NAME": "north"}, {"broker-n", "broker-s"}),
        ({"__ZONE_MODE": "true", "__ZONE_NAME": " "}, {"broker-n", "broker-s"}),
    ],
)
def test_a_zone_is_told_by_the_request(
    names: Names, fields: dict[str, str], brokers: set[str]
) -> None:
    names.table.register(registration(name="broker-n", zone="north"), "n", NOW_MS)
    names.table.register(registration(name="broker-s", zone="south", port=20911), "s", NOW_MS)
    header = GetRouteInfoRequestHeader(topic="T1")
    reply = names.ask(route.GET_ROUTEINFO_BY_TOPIC, header, ext_fields=fields)
    found = TopicRouteData.decode(reply.body)
    assert {broker.broker_name for broker in found.broker_datas} == brokers


def test_clusters(names: Names) -> None:
    assert names.ask(route.GET_BROKER_CLUSTER_INFO, NoHeader()).body == (
        b'{"brokerAddrTable":{},"clusterAddrTable":{}}'
    )
    assert registered(names).ask(route.GET_BROKER_CLUSTER_INFO, NoHeader()).body == (
        b'{"brokerAddrTable":{"broker-a":{"brokerAddrs":{0:"10.0.0.1:10911"},'
        b'"brokerName":"broker-a","cluster":"c1","enableActingMaster":false}},'
        b'"clusterAddrTable":{"c1":["broker-a"]}}'
    )
