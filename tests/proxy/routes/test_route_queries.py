# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from typing import Any

import pytest

from tests.proxy.scene import ProxyScene, a_route
from txrocketmq.proxy.routes.route_queries import IN_A_TURN
from txrocketmq.proxy.schema.codes import Code
from txrocketmq.remoting.protocol.body.topic import SubscriptionGroupConfig

ENDPOINTS = {"scheme": 1, "addresses": [{"host": "proxy", "port": 18_081}]}
REQUEST: dict[str, Any] = {"topic": {"name": "T"}, "endpoints": ENDPOINTS}


def test_a_route_has_all_queues_and_the_types_of_the_topic(scene: ProxyScene) -> None:
    scene.types["T"] = "FIFO"
    outcome = scene.call("QueryRoute", REQUEST)
    assert outcome.code is Code.OK
    assert len(outcome.answer.message_queues) == 4
    for queue in outcome.answer.message_queues:
        assert list(queue.accept_message_types) == [2]
        assert queue.broker.endpoints.addresses[0].port == 18_081


def test_the_order_of_a_group_decides_what_is_assigned(scene: ProxyScene) -> None:
    request = {**REQUEST, "group": {"name": "G"}}
    outcome = scene.call("QueryAssignment", request)
    assert [each.message_queue.id for each in outcome.answer.assignments] == [-1, -1]
    scene.groups["H"] = SubscriptionGroupConfig(group_name="H", consume_message_orderly=True)
    outcome = scene.call("QueryAssignment", {**request, "group": {"name": "H"}})
    assert [each.message_queue.id for each in outcome.answer.assignments] == [0, 1, 0, 1]


@pytest.mark.parametrize("method", ["QueryRoute", "QueryAssignment"])
@pytest.mark.parametrize(
    ("fields", "client_id", "code"),
    [
        ({"topic": {"name": "unknown"}}, "c", Code.TOPIC_NOT_FOUND),
        ({"topic": {"name": "a b"}}, "c", Code.ILLEGAL_TOPIC),
        ({"endpoints": {"addresses": [{"host": "h"}]}}, "c", Code.ILLEGAL_ACCESS_POINT),
        ({}, "", Code.CLIENT_ID_REQUIRED),
    ],
)
def test_bad_input_has_its_code(
    scene: ProxyScene, method: str, fields: dict[str, Any], client_id: str, code: Code
) -> None:
    request = {**REQUEST, **fields}
    if method == "QueryAssignment":
        request["group"] = {"name": "G"}
    assert scene.call(method, request, client_id=client_id).code is code


def test_a_group_that_cannot_be_and_a_topic_that_cannot_be_read(scene: ProxyScene) -> None:
    request = {**REQUEST, "group": {"name": "a b"}}
    assert scene.call("QueryAssignment", request).code is Code.ILLEGAL_CONSUMER_GROUP
    scene.routes["W"] = a_route({"broker-a": 1}, perm=2)
    request = {**REQUEST, "topic": {"name": "W"}, "group": {"name": "G"}}
    assert scene.call("QueryAssignment", request).code is Code.FORBIDDEN


def test_many_queues_are_answered_in_turns(scene: ProxyScene) -> None:
    scene.routes["T"] = a_route({"broker-a": 2 * IN_A_TURN})
    outcome = scene.call("QueryRoute", REQUEST)
    assert not outcome.answers
    scene.advance(300)
    assert len(outcome.answer.message_queues) == 2 * IN_A_TURN
