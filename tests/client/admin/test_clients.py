# SPDX-License-Identifier: Apache-2.0
"""Who is connected, and who is asked for it."""

from __future__ import annotations

import pytest

from tests.client.admin.fake_cluster import CONNECTIONS, QUEUE, Cluster, refused
from tests.client.fakes import BROKER_A, BROKER_B, result_of
from txrocketmq.client.base.errors import AdminRefused, GroupOffline
from txrocketmq.remoting.call import Reply
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.protocol import offset
from txrocketmq.remoting.protocol.body.client import (
    ClientConnection,
    ConsumerRunningInfo,
    ProducerConnection,
    ProducerInfo,
    ProducerTableInfo,
)
from txrocketmq.remoting.protocol.body.offset import GetConsumerStatusBody
from txrocketmq.remoting.protocol.operations import admin

OFFLINE = refused(ResponseCode.CONSUMER_NOT_ONLINE)


def test_the_first_broker_that_knows_consumers_is_believed() -> None:
    cluster = Cluster()
    cluster.connections.on(BROKER_A, admin.GET_CONSUMER_CONNECTION_LIST, OFFLINE)
    cluster.connections.on(BROKER_B, admin.GET_CONSUMER_CONNECTION_LIST, Reply(body=CONNECTIONS))
    (only,) = result_of(cluster.admin.consumer_connections("g")).connection_set
    assert (only.client_id, only.language) == ("c1", "JAVA")


def test_a_group_is_offline_when_no_broker_knows_any() -> None:
    cluster = Cluster()
    cluster.on_both(admin.GET_CONSUMER_CONNECTION_LIST, OFFLINE)
    for asked in (
        cluster.admin.consumer_connections("g"),
        cluster.admin.consumer_running_info("g", "c1"),
    ):
        with pytest.raises(GroupOffline, match="group g"):
            result_of(asked)
    cluster.on_both(admin.GET_CONSUMER_CONNECTION_LIST, refused(ResponseCode.NO_PERMISSION))
    with pytest.raises(AdminRefused, match="may lack the right"):
        result_of(cluster.admin.consumer_connections("g"))


def test_producers_of_all_brokers_once_each() -> None:
    cluster = Cluster()
    body = ProducerConnection(
        connection_set=(ClientConnection(client_id="p1", language="GO"),)
    ).encode()
    cluster.on_both(admin.GET_PRODUCER_CONNECTION_LIST, Reply(body=body))
    (only,) = result_of(cluster.admin.producer_connections("p", "T"))
    assert only.client_id == "p1"
    cluster.on_both(admin.GET_PRODUCER_CONNECTION_LIST, refused(remark="not exist"))
    assert result_of(cluster.admin.producer_connections("p", "T")) == []


def test_all_producers_of_a_broker() -> None:
    cluster = Cluster()
    table = ProducerTableInfo(data={"p": (ProducerInfo(client_id="p1"),)})
    cluster.connections.on(BROKER_B, admin.GET_ALL_PRODUCER_INFO, Reply(body=table.encode()))
    found = result_of(cluster.admin.producers("broker-b"))
    assert [(group, its[0].client_id) for group, its in found.items()] == [("p", "p1")]


def test_a_consumer_is_asked_where_it_is_connected() -> None:
    cluster = Cluster()
    cluster.connections.on(BROKER_A, admin.GET_CONSUMER_CONNECTION_LIST, OFFLINE)
    cluster.connections.on(BROKER_B, admin.GET_CONSUMER_CONNECTION_LIST, Reply(body=CONNECTIONS))
    info = ConsumerRunningInfo(properties={"a": "b"})
    cluster.connections.on(BROKER_B, admin.GET_CONSUMER_RUNNING_INFO, Reply(body=info.encode()))
    found = result_of(cluster.admin.consumer_running_info("g", "c1", with_stacks=True))
    assert found.properties == {"a": "b"}
    ((_, header),) = cluster.connections.questions(admin.GET_CONSUMER_RUNNING_INFO)
    assert header.jstack_enable


def test_what_consumers_say_of_themselves_is_put_together() -> None:
    cluster = Cluster()
    body = GetConsumerStatusBody(consumer_table={"c1": {QUEUE: 5}}).encode()
    cluster.on_both(offset.INVOKE_BROKER_TO_GET_CONSUMER_STATUS, Reply(body=body))
    assert result_of(cluster.admin.consumer_status("g", "T")) == {"c1": {QUEUE: 5}}
