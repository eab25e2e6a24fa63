# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from typing import Any

import pytest

from tests.proxy.scene import a_route
from txrocketmq.proxy.base.statuses import Refused
from txrocketmq.proxy.cluster.cluster import TopicRoute
from txrocketmq.proxy.routes.queues import QueueView, checked_endpoints, readable_brokers
from txrocketmq.proxy.schema.codes import Code
from txrocketmq.proxy.schema.enums import AddressScheme, MessageType, Permission
from txrocketmq.proxy.schema.messages import message_type
from txrocketmq.remoting.protocol.body.route import QueueData, TopicRouteData

ENDPOINTS = message_type("Endpoints")(scheme=1, addresses=[{"host": "proxy", "port": 18_081}])
TOPIC = message_type("Resource")(resource_namespace="N", name="T")


def view(route: TopicRouteData) -> QueueView:
    return QueueView(TopicRoute("T", route), TOPIC, ENDPOINTS, [MessageType.FIFO])


def of_one_broker(reads: int, writes: int, perm: int) -> TopicRouteData:
    data = QueueData(
        broker_name="broker-a", read_queue_nums=reads, write_queue_nums=writes, perm=perm
    )
    return TopicRouteData(queue_datas=(data,), broker_datas=a_route({"broker-a": 1}).broker_datas)


@pytest.mark.parametrize(
    ("reads", "writes", "perm", "expected"),
    [
        (2, 2, 6, "READ_WRITE READ_WRITE"),
        (3, 1, 6, "READ READ READ_WRITE"),
        (1, 3, 6, "WRITE WRITE READ_WRITE"),
        (2, 2, 4, "READ READ"),
        (2, 1, 2, "WRITE"),
        (2, 1, 0, "NONE NONE"),
        (0, 0, 0, "NONE"),
    ],
)
def test_queues_by_permission(reads: int, writes: int, perm: int, expected: str) -> None:
    queues = list(view(of_one_broker(reads, writes, perm)).all())
    assert [Permission(each.permission).name for each in queues] == expected.split()
    assert [each.id for each in queues] == list(range(len(queues)))


def test_every_broker_is_at_the_endpoints_of_the_request() -> None:
    addresses = {"broker-a": {0: "10.0.0.1:1", 1: "10.0.0.2:1"}}
    queues = list(view(a_route({"broker-a": 2}, addresses=addresses)).all())
    assert [(each.broker.name, each.broker.id, each.id) for each in queues] == [
        ("broker-a", 0, 0), ("broker-a", 0, 1), ("broker-a", 1, 0), ("broker-a", 1, 1),
    ]  # fmt: skip
    for each in queues:
        assert each.broker.endpoints == ENDPOINTS
        assert each.topic == TOPIC
        assert list(each.accept_message_types) == [MessageType.FIFO]


def test_a_consumer_receives_from_brokers_or_in_order_from_queues() -> None:
    its = view(a_route({"broker-b": 2, "broker-a": 1}))
    assert [(each.broker.name, each.id) for each in its.assigned(is_orderly=False)] == [
        ("broker-a", -1),
        ("broker-b", -1),
    ]
    assert [(each.broker.name, each.id) for each in its.assigned(is_orderly=True)] == [
        ("broker-a", 0),
        ("broker-b", 0),
        ("broker-b", 1),
    ]
    assert list(view(a_route({"broker-a": 1}, perm=2)).assigned(is_orderly=False)) == []


def test_brokers_that_can_be_read() -> None:
    assert readable_brokers(TopicRoute("T", a_route({"broker-a": 1, "broker-b": 0}))) == [
        "broker-a"
    ]


@pytest.mark.parametrize(
    "fields",
    [
        {"addresses": [{"host": "h", "port": 1}]},
        {"scheme": 1, "addresses": [{"host": "", "port": 1}]},
        {"scheme": 1, "addresses": [{"host": "h", "port": 0}]},
        {"scheme": 1, "addresses": [{"host": "h", "port": 65_536}]},
        {"scheme": 1, "addresses": [{"host": "h" * 254, "port": 1}]},
        {"scheme": 1, "addresses": [{"host": "h", "port": 1}] * 17},
    ],
)
def test_endpoints_that_cannot_be(fields: dict[str, Any]) -> None:
    with pytest.raises(Refused) as refused:
        checked_endpoints(message_type("Endpoints")(**fields), "127.0.0.1:8081")
    assert refused.value.code is Code.ILLEGAL_ACCESS_POINT


def test_a_request_without_endpoints_has_those_of_its_call() -> None:
    nothing = message_type("Endpoints")()
    found = checked_endpoints(nothing, "10.0.0.9:8081")
    assert (found.scheme, found.addresses[0].host) == (AddressScheme.IPv4, "10.0.0.9")
    found = checked_endpoints(nothing, "[::1]:8081")
    assert (found.scheme, found.addresses[0].host, found.addresses[0].port) == (2, "::1", 8_081)
