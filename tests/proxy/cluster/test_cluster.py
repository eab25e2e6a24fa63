# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest

from tests.client.fakes import result_of
from tests.proxy.scene import BROKER_A, BROKER_B, ProxyScene, a_route
from txrocketmq.client.base.errors import NoRoute
from txrocketmq.remoting.protocol.route import GET_ROUTEINFO_BY_TOPIC


def test_a_route_is_asked_for_once_and_again_after_a_while(scene: ProxyScene) -> None:
    cluster = scene.messaging.cluster
    route = result_of(cluster.route("T"))
    assert [(each.broker_name, each.queue_id) for each in route.writable] == [
        ("broker-a", 0), ("broker-a", 1), ("broker-b", 0), ("broker-b", 1),
    ]  # fmt: skip
    result_of(cluster.route("T"))
    assert len(scene.asked(GET_ROUTEINFO_BY_TOPIC)) == 1
    scene.routes["T"] = a_route({"broker-b": 1})
    scene.advance(20_000)
    result_of(cluster.route("T"))
    assert list(result_of(cluster.route("T")).brokers) == ["broker-b"]


def test_a_topic_that_nobody_has_has_no_route(scene: ProxyScene) -> None:
    with pytest.raises(NoRoute, match="no broker"):
        result_of(scene.messaging.cluster.route("unknown"))


def test_addresses_are_those_of_the_routes(scene: ProxyScene) -> None:
    cluster = scene.messaging.cluster
    assert result_of(cluster.address("broker-b", "T")) == BROKER_B
    assert result_of(cluster.address("gone", "T")) is None
    assert cluster.master("broker-a") == BROKER_A
    assert (cluster.name_of(BROKER_A), cluster.name_of("1.1.1.1:1")) == ("broker-a", None)
    slave = {"broker-a": {1: "10.0.1.9:10911"}}
    scene.routes["S"] = a_route({"broker-a": 1}, addresses=slave)
    assert result_of(cluster.address("broker-a", "S")) == "10.0.1.9:10911"
    assert cluster.master("broker-a") is None


def test_some_broker_is_one_of_the_topic_or_any(scene: ProxyScene) -> None:
    cluster = scene.messaging.cluster
    assert cluster.some_broker(None, min) is None
    scene.routes["B"] = a_route({"broker-b": 1})
    route = result_of(cluster.route("B"))
    assert cluster.some_broker(route, min) == BROKER_B
    result_of(cluster.route("T"))
    assert cluster.some_broker(None, min) == BROKER_A


def test_a_route_that_leads_nowhere_is_asked_for_again(scene: ProxyScene) -> None:
    cluster = scene.messaging.cluster
    result_of(cluster.route("T"))
    scene.advance(1_000)
    cluster.ask_again("T")
    result_of(cluster.route("T"))
    assert len(scene.asked(GET_ROUTEINFO_BY_TOPIC)) == 2
