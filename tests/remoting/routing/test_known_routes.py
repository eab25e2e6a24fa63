# SPDX-License-Identifier: Apache-2.0
"""Routes that are known, and what follows from them."""

from __future__ import annotations

from tests.client.fakes import BROKER_A, BROKER_B, a_route
from txrocketmq.remoting.message.message import MessageQueue
from txrocketmq.remoting.routing.known_routes import KnownRoutes

QUEUE = MessageQueue("T", "broker-a", 0)


def test_nothing_is_known_before_it_is_told() -> None:
    routes = KnownRoutes()
    assert "T" not in routes
    assert (routes.get("T"), routes.publish_info("T"), routes.subscribe_queues("T")) == (None,) * 3


def test_a_route_is_taken_and_a_change_is_told() -> None:
    routes = KnownRoutes()
    route = a_route({"broker-a": 1})
    assert routes.take("T", route)
    assert [*routes] == ["T"]
    info = routes.publish_info("T")
    assert info is not None
    assert info.queues == (QUEUE,)
    assert routes.subscribe_queues("T") == [QUEUE]
    assert not routes.take("T", a_route({"broker-a": 1}))
    assert routes.publish_info("T") is info, "it goes on where it was among the queues"
    assert routes.take("T", a_route({"broker-a": 1}, perm=4))
    assert routes.publish_info("T") is None
    assert routes.subscribe_queues("T") == [QUEUE]


def test_addresses_outlast_their_route_until_they_are_forgotten() -> None:
    routes = KnownRoutes()
    routes.take("T", a_route({"broker-a": 1}))
    routes.take("U", a_route({"broker-b": 1}))
    routes.forget("T")
    routes.forget("unknown")
    assert "T" not in routes
    assert routes.publish_info("T") is None
    assert routes.brokers.masters() == [BROKER_A, BROKER_B]
    routes.forget_unnamed()
    assert routes.brokers.masters() == [BROKER_B]
