# SPDX-License-Identifier: Apache-2.0
"""Whom an administrator asks, and what becomes of refusals."""

from __future__ import annotations

import pytest

from tests.client.admin.fake_cluster import SLAVE, Cluster, refused
from tests.client.fakes import BROKER_A, BROKER_B, NAME_SERVER, result_of
from txrocketmq.client.admin.admin import Admin
from txrocketmq.client.base.config import ClientConfig
from txrocketmq.client.base.errors import (
    AdminRefused,
    BrokerNotExist,
    NoRoute,
    PartlyFailed,
)
from txrocketmq.client.core.instance import ClientInstance
from txrocketmq.remoting.call import Reply
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.errors import ConnectError
from txrocketmq.remoting.protocol import route, topic
from txrocketmq.remoting.protocol.operations import admin


def test_a_broker_is_found_by_name_or_address() -> None:
    cluster = Cluster()
    find = cluster.destinations.masters
    assert [each.address for each in result_of(find())] == [BROKER_A, BROKER_B]
    assert [each.address for each in result_of(find(broker="broker-a"))] == [BROKER_A]
    assert [each.broker_id for each in result_of(find(broker=SLAVE))] == [1]
    assert [each.address for each in result_of(find(broker="h:5"))] == ["h:5"]
    with pytest.raises(BrokerNotExist, match="no broker x; .*: broker-a, broker-b"):
        result_of(find(broker="x"))
    with pytest.raises(BrokerNotExist, match="cluster x has no master; .*: c"):
        result_of(find("x"))
    with pytest.raises(ValueError, match="not both"):
        result_of(find("c", "broker-a"))


def test_of_several_clusters_one_is_to_be_named() -> None:
    cluster = Cluster(c=["broker-a"], d=["broker-b"])
    with pytest.raises(ValueError, match="say which of c, d"):
        result_of(cluster.destinations.masters_to_change())
    (only,) = result_of(cluster.destinations.masters_to_change("d"))
    assert only.address == BROKER_B


def test_a_group_without_a_retry_topic_is_asked_for_everywhere() -> None:
    cluster = Cluster()
    found = result_of(cluster.destinations.brokers_of_group("g"))
    assert [each.address for each in found] == [BROKER_A, BROKER_B]
    cluster.routes["%RETRY%g"] = cluster.routes["T"].from_json(
        {
            **cluster.routes["T"].to_json(),
            "brokerDatas": cluster.routes["T"].to_json()["brokerDatas"][1:],
        }
    )
    assert [each.address for each in result_of(cluster.destinations.brokers_of_group("g"))] == [
        BROKER_B
    ]


def test_a_refusal_says_what_was_refused_and_what_to_do() -> None:
    cluster = Cluster()
    cluster.on_both(admin.GET_TOPIC_STATS_INFO, refused(ResponseCode.TOPIC_NOT_EXIST, "gone"))
    cluster.routes["T"] = cluster.routes["T"].from_json(
        {
            **cluster.routes["T"].to_json(),
            "brokerDatas": cluster.routes["T"].to_json()["brokerDatas"][:1],
        }
    )
    with pytest.raises(AdminRefused) as error:
        result_of(cluster.admin.topic_stats("T"))
    assert error.value.code == ResponseCode.TOPIC_NOT_EXIST
    said = str(error.value)
    for part in ("topic T", BROKER_A, "TOPIC_NOT_EXIST (17)", "gone", "create it first"):
        assert part in said


def test_what_one_of_several_refuses_does_not_stop_the_others() -> None:
    cluster = Cluster()
    cluster.connections.on(BROKER_A, topic.DELETE_TOPIC_IN_BROKER, ConnectError("gone"))
    cluster.connections.on(BROKER_B, topic.DELETE_TOPIC_IN_BROKER, Reply())
    with pytest.raises(PartlyFailed, match=r"topic T failed at 1 of 2 servers: broker-a") as error:
        result_of(cluster.admin.delete_topic("T"))
    assert error.value.done == 1
    assert isinstance(error.value.failures[0][1], ConnectError)
    assert cluster.asked(topic.DELETE_TOPIC_IN_BROKER) == [BROKER_A, BROKER_B]
    assert cluster.asked(topic.DELETE_TOPIC_IN_NAMESRV) == []


def test_a_topic_that_nobody_has() -> None:
    with pytest.raises(NoRoute, match="check its spelling"):
        result_of(Cluster().admin.topic_route("Z"))


def test_a_name_server_that_refuses() -> None:
    cluster = Cluster()
    cluster.connections.on(NAME_SERVER, route.GET_BROKER_CLUSTER_INFO, refused())
    with pytest.raises(AdminRefused, match="asking for the brokers"):
        result_of(cluster.admin.brokers())


def test_a_namespace_is_refused() -> None:
    cluster = Cluster()
    config = ClientConfig(namesrv_addr=NAME_SERVER, client_ip="10.0.0.9", namespace="n")
    instance = ClientInstance(config, cluster.client.clock, cluster.client._connections)
    with pytest.raises(ValueError, match="leave namespace out, and write n%TOPIC"):
        Admin(instance)
