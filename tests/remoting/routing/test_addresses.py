# SPDX-License-Identifier: Apache-2.0
"""The addresses of brokers, and which of them is chosen."""

from __future__ import annotations

from tests.client.fakes import BROKER_A, BROKER_B, a_route
from txrocketmq.remoting.protocol.body.route import BrokerData
from txrocketmq.remoting.routing.addresses import BrokerAddresses


def test_addresses_by_broker_and_role() -> None:
    brokers = BrokerAddresses()
    addresses = {"broker-a": {0: BROKER_A, 1: "slave:1", 2: "slave:2"}, "broker-b": {1: BROKER_B}}
    brokers.update(a_route({"broker-a": 1, "broker-b": 1}, addresses=addresses).broker_datas)
    assert brokers.to_publish("broker-a") == BROKER_A
    assert brokers.to_publish("broker-b") is None
    assert brokers.to_subscribe("broker-a") == BROKER_A
    assert brokers.to_subscribe("broker-a", 2) == "slave:2"
    assert brokers.to_subscribe("broker-a", 9) == BROKER_A
    assert brokers.to_subscribe("broker-b") == BROKER_B
    assert brokers.to_subscribe("broker-c") is None
    assert brokers.masters() == [BROKER_A]
    assert (brokers.name_of("slave:2"), brokers.name_of("other:1")) == ("broker-a", None)
    assert sorted(brokers.all()) == sorted([BROKER_A, "slave:1", "slave:2", BROKER_B])


def test_a_slave_that_is_gone_is_replaced_by_the_next() -> None:
    brokers = BrokerAddresses()
    addresses = {"broker-a": {0: BROKER_A, 2: "slave:2"}}
    brokers.update(a_route({"broker-a": 1}, addresses=addresses).broker_datas)
    assert brokers.to_subscribe("broker-a", 1) == "slave:2"


def test_brokers_that_no_route_names_are_forgotten() -> None:
    brokers = BrokerAddresses()
    brokers.update(a_route({"broker-a": 1, "broker-b": 1}).broker_datas)
    brokers.keep(a_route({"broker-b": 1}).broker_datas)
    assert brokers.masters() == [BROKER_B]


def test_attempts_go_from_the_master_to_the_slaves() -> None:
    brokers = BrokerAddresses()
    brokers.update(
        [
            BrokerData(cluster="c", broker_name="a", broker_addrs={2: "two", 0: "zero", 1: "one"}),
            BrokerData(broker_name="b", broker_addrs={}),
        ]
    )
    assert [brokers.in_turn("a", n) for n in range(5)] == ["zero", "one", "two", "two", "two"]
    assert [brokers.in_turn("b", 0), brokers.in_turn("c", 0)] == [None, None]
    assert [brokers.cluster_of(name) for name in "abc"] == ["c", None, None]
