# SPDX-License-Identifier: Apache-2.0
"""Brokers and name servers: what they are asked, and what their answers mean."""

from __future__ import annotations

from typing import Any

import pytest

from tests.client.admin.fake_cluster import Cluster, refused
from tests.client.fakes import BROKER_A, BROKER_B, NAME_SERVER, result_of
from txrocketmq.client.base.errors import AdminRefused, PartlyFailed
from txrocketmq.remoting.call import Reply
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.protocol import route
from txrocketmq.remoting.protocol.body.ha import HARuntimeInfo
from txrocketmq.remoting.protocol.body.route import KVTable
from txrocketmq.remoting.protocol.body.stats import BrokerStatsData, BrokerStatsItem
from txrocketmq.remoting.protocol.operations import admin
from txrocketmq.remoting.protocol.operations.admin import GetBrokerConfigResponseHeader
from txrocketmq.remoting.protocol.operations.ha import GET_BROKER_HA_STATUS
from txrocketmq.remoting.protocol.route import (
    AddWritePermOfBrokerResponseHeader,
    GetKVConfigResponseHeader,
    WipeWritePermOfBrokerResponseHeader,
)


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


def bodies(cluster: Cluster, call: Any) -> list[bytes]:
    return [body for _, its, _, body, _ in cluster.connections.asked if its is call]


def test_brokers_and_clusters(cluster: Cluster) -> None:
    found = result_of(cluster.admin.brokers("c"))
    assert [(each.name, each.broker_id) for each in found] == [
        ("broker-a", 0), ("broker-a", 1), ("broker-b", 0),
    ]  # fmt: skip
    assert result_of(cluster.admin.brokers("x")) == []
    assert result_of(cluster.admin.clusters()) == ["c"]


def test_what_a_broker_tells_of_itself(cluster: Cluster) -> None:
    table: Reply[Any] = Reply(body=KVTable(table={"b": "2", "a": "1"}).encode())
    cluster.connections.on(BROKER_B, admin.GET_BROKER_RUNTIME_INFO, table)
    assert list(result_of(cluster.admin.broker_stats("broker-b")).items()) == [
        ("a", "1"), ("b", "2"),
    ]  # fmt: skip
    timers = b'{"dataVersion":{},"timingCount":{"T":{"count":3,"timeStamp":1}}}'
    cluster.connections.on(BROKER_A, admin.GET_TIMER_METRICS, Reply(body=timers))
    assert result_of(cluster.admin.timer_stats("broker-a")) == {"T": 3}
    state = HARuntimeInfo(master=True, master_commit_log_max_offset=7)
    cluster.connections.on(BROKER_A, GET_BROKER_HA_STATUS, Reply(body=state.encode()))
    assert result_of(cluster.admin.replication("broker-a")) == state


def test_a_counter_that_a_broker_does_not_have(cluster: Cluster) -> None:
    data = BrokerStatsData(stats_minute=BrokerStatsItem(sum=5))
    cluster.connections.on(BROKER_A, admin.VIEW_BROKER_STATS_DATA, Reply(body=data.encode()))
    found = result_of(cluster.admin.broker_counter("broker-a", "TOPIC_PUT_NUMS", "T"))
    assert found is not None
    assert found.stats_minute is not None
    assert found.stats_minute.sum == 5
    cluster.connections.on(BROKER_A, admin.VIEW_BROKER_STATS_DATA, refused())
    assert result_of(cluster.admin.broker_counter("broker-a", "X", "T")) is None


def test_settings_of_a_broker(cluster: Cluster) -> None:
    answer = Reply(GetBrokerConfigResponseHeader(version="{}"), body=b"a=1\nb=x\\ty\n")
    cluster.connections.on(BROKER_A, admin.GET_BROKER_CONFIG, answer)
    assert result_of(cluster.admin.broker_config("broker-a")) == {"a": "1", "b": "x\ty"}
    cluster.connections.on(BROKER_A, admin.UPDATE_BROKER_CONFIG, Reply())
    result_of(cluster.admin.update_broker_config("broker-a", {"a": "2"}))
    assert bodies(cluster, admin.UPDATE_BROKER_CONFIG) == [b"a=2\n"]
    cluster.connections.on(
        BROKER_A, admin.UPDATE_BROKER_CONFIG, refused(ResponseCode.NO_PERMISSION)
    )
    with pytest.raises(AdminRefused, match="changing settings of broker broker-a failed"):
        result_of(cluster.admin.update_broker_config("broker-a", {"brokerConfigPath": "x"}))


def test_settings_of_all_name_servers(cluster: Cluster) -> None:
    other = "10.0.0.2:9876"
    cluster.client.name_servers.update([NAME_SERVER, other])
    for address in (NAME_SERVER, other):
        cluster.connections.on(address, admin.GET_NAMESRV_CONFIG, Reply(body=b"a=1\n"))
    assert result_of(cluster.admin.namesrv_config()) == {
        NAME_SERVER: {"a": "1"}, other: {"a": "1"},
    }  # fmt: skip
    cluster.connections.on(NAME_SERVER, admin.UPDATE_NAMESRV_CONFIG, Reply())
    with pytest.raises(PartlyFailed, match=f"1 of 2 servers: .*{other}"):
        result_of(cluster.admin.update_namesrv_config({"a": "2"}))


def test_values_that_name_servers_keep(cluster: Cluster) -> None:
    on = cluster.connections.on
    on(NAME_SERVER, route.GET_KV_CONFIG, Reply(GetKVConfigResponseHeader(value="v")))
    on(NAME_SERVER, route.GET_KVLIST_BY_NAMESPACE, Reply(body=KVTable(table={"k": "v"}).encode()))
    on(NAME_SERVER, route.PUT_KV_CONFIG, Reply())
    on(NAME_SERVER, route.DELETE_KV_CONFIG, Reply())
    assert result_of(cluster.admin.kv_config("n", "k")) == "v"
    assert result_of(cluster.admin.kv_configs("n")) == {"k": "v"}
    result_of(cluster.admin.put_kv_config("n", "k", "w"))
    result_of(cluster.admin.delete_kv_config("n", "k"))
    ((_, header),) = cluster.connections.questions(route.PUT_KV_CONFIG)
    assert (header.namespace, header.key, header.value) == ("n", "k", "w")
    missing = refused(ResponseCode.QUERY_NOT_FOUND)
    on(NAME_SERVER, route.GET_KV_CONFIG, missing)
    on(NAME_SERVER, route.GET_KVLIST_BY_NAMESPACE, missing)
    assert result_of(cluster.admin.kv_config("n", "k")) is None
    assert result_of(cluster.admin.kv_configs("n")) == {}
    on(NAME_SERVER, route.GET_KV_CONFIG, refused())
    on(NAME_SERVER, route.GET_KVLIST_BY_NAMESPACE, refused())
    for asked in (cluster.admin.kv_config("n", "k"), cluster.admin.kv_configs("n")):
        with pytest.raises(AdminRefused):
            result_of(asked)


def test_a_broker_that_is_to_be_stopped(cluster: Cluster) -> None:
    on = cluster.connections.on
    wiped = Reply(WipeWritePermOfBrokerResponseHeader(wipe_topic_count=4))
    on(NAME_SERVER, route.WIPE_WRITE_PERM_OF_BROKER, wiped)
    added = Reply(AddWritePermOfBrokerResponseHeader(add_topic_count=3))
    on(NAME_SERVER, route.ADD_WRITE_PERM_OF_BROKER, added)
    assert result_of(cluster.admin.wipe_write_perm("broker-a")) == 4
    assert result_of(cluster.admin.add_write_perm("broker-a")) == 3


def test_cleaning(cluster: Cluster) -> None:
    for call, asked in (
        (admin.CLEAN_UNUSED_TOPIC, cluster.admin.clean_unused_topics),
        (admin.CLEAN_EXPIRED_CONSUMEQUEUE, cluster.admin.clean_expired_queues),
        (admin.DELETE_EXPIRED_COMMITLOG, cluster.admin.delete_expired_commit_log),
    ):
        cluster.connections.on(BROKER_A, call, Reply())
        result_of(asked("broker-a"))
        assert cluster.asked(call) == [BROKER_A]
