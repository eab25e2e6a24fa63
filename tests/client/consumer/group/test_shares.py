# SPDX-License-Identifier: Apache-2.0
"""Who says which queues are a member's own: the member itself, or a broker of 5.x."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from tests.client.consumer.fake_broker import QUEUE, Broker
from tests.client.fakes import BROKER_A, Scene, refusal, result_of
from txrocketmq.client.base.errors import MQBrokerError
from txrocketmq.client.consumer.group.shares import ByBroker, ByStrategy, Everything, Own, share_of
from txrocketmq.remoting.call import Reply
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.message.allocation import averagely, averagely_by_circle
from txrocketmq.remoting.message.message import MessageQueue
from txrocketmq.remoting.protocol import heartbeat, pull
from txrocketmq.remoting.protocol.body.pop import (
    MessageQueueAssignment,
    QueryAssignmentRequestBody,
    QueryAssignmentResponseBody,
)

ANY = MessageQueue("T", "broker-a", -1)


def assigned(*pairs: tuple[MessageQueue | None, str]) -> Reply[Any]:
    """A broker's answer: queues, and how they are to be read."""
    its = [MessageQueueAssignment(message_queue=queue, mode=mode) for queue, mode in pairs]
    return Reply(body=QueryAssignmentResponseBody(message_queue_assignments=its).encode())


def own_by_broker(scene: Scene, queues: Sequence[MessageQueue] = (QUEUE,)) -> Own | None:
    result_of(scene.client.refresh("T"))
    return result_of(ByBroker(scene.client, "g", averagely_by_circle).own("T", queues))


def test_the_broker_says_which_queues_are_pulled_and_which_are_popped(
    scene: Scene, broker: Broker
) -> None:
    answer = assigned((ANY, "POP"), (QUEUE, "PULL"), (None, "PULL"))
    scene.connections.on(BROKER_A, pull.QUERY_ASSIGNMENT, answer)
    assert own_by_broker(scene) == Own(frozenset({QUEUE}), frozenset({ANY}))
    (body,) = [
        QueryAssignmentRequestBody.decode(body)
        for _, call, _, body, _ in scene.connections.asked
        if call is pull.QUERY_ASSIGNMENT
    ]
    assert (body.topic, body.consumer_group, body.client_id, body.strategy_name) == (
        "T", "g", scene.client.client_id, "AVG_BY_CIRCLE",
    )  # fmt: skip
    assert body.message_model == "CLUSTERING"


def test_without_an_answer_it_stays_as_it_is(scene: Scene, broker: Broker) -> None:
    nothing: Reply[Any] = Reply(
        body=QueryAssignmentResponseBody(message_queue_assignments=None).encode()
    )
    scene.connections.on(BROKER_A, pull.QUERY_ASSIGNMENT, nothing)
    assert own_by_broker(scene) is None


def test_with_a_broker_of_4_x_the_members_share_the_queues_from_then_on(
    scene: Scene, broker: Broker
) -> None:
    unknown = refusal(ResponseCode.REQUEST_CODE_NOT_SUPPORTED)
    scene.connections.on(BROKER_A, pull.QUERY_ASSIGNMENT, unknown)
    result_of(scene.client.refresh("T"))
    share = ByBroker(scene.client, "g", averagely)
    for _ in range(2):
        assert result_of(share.own("T", [QUEUE])) == Own(frozenset({QUEUE}))
    asked = scene.connections.questions
    assert len(asked(pull.QUERY_ASSIGNMENT)) == 1
    assert len(asked(heartbeat.GET_CONSUMER_LIST_BY_GROUP)) == 2


def test_a_refusal_that_may_pass_is_no_reason_to_share_otherwise(
    scene: Scene, broker: Broker
) -> None:
    busy = refusal(ResponseCode.SYSTEM_BUSY)
    scene.connections.on(BROKER_A, pull.QUERY_ASSIGNMENT, busy)
    with pytest.raises(MQBrokerError):
        own_by_broker(scene)


def test_brokers_do_not_know_strategies_of_the_program(scene: Scene) -> None:
    with pytest.raises(ValueError, match="have the strategies averagely"):
        ByBroker(scene.client, "g", lambda *_: [])


@pytest.mark.parametrize(
    ("is_shared", "by_broker", "way"),
    [(False, True, Everything), (True, True, ByBroker), (True, False, ByStrategy)],
)
def test_each_consumer_has_one_way(
    scene: Scene, broker: Broker, is_shared: bool, by_broker: bool, way: type
) -> None:
    share = share_of(scene.client, "g", averagely, is_shared=is_shared, by_broker=by_broker)
    assert type(share) is way
    if way is Everything:
        assert result_of(share.own("T", [QUEUE, ANY])) == Own(frozenset({QUEUE, ANY}))
