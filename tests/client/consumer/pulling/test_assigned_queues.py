# SPDX-License-Identifier: Apache-2.0
"""The queues of a lite pull consumer: what is pulled after errors, and what nobody gets."""

from __future__ import annotations

from typing import Any

import pytest

from tests.client.consumer.fake_broker import QUEUE, Broker, found
from tests.client.fakes import BROKER_A, Scene, refusal, result_of
from txrocketmq.client.consumer.config import LitePullConsumerConfig
from txrocketmq.client.consumer.pulling.assigned_queues import (
    BROKER_FLOW_CONTROL_MS,
    EXCEPTION_MS,
    NO_OFFSET_MS,
    AssignedQueues,
)
from txrocketmq.client.consumer.queue.offset_store import BrokerOffsets
from txrocketmq.remoting.call import Reply
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.message.tags import build_subscription_data
from txrocketmq.remoting.protocol import offset
from txrocketmq.remoting.protocol.offset import QueryConsumerOffsetResponseHeader


@pytest.fixture
def assigned(scene: Scene, broker: Broker) -> AssignedQueues:
    """Queues that are pulled as soon as there are any."""
    queues = AssignedQueues(
        scene.client,
        "g",
        LitePullConsumerConfig(),
        BrokerOffsets(scene.client, "g"),
        lambda topic: build_subscription_data(topic, "*"),
    )
    queues.start()
    return queues


@pytest.mark.parametrize(
    ("answer", "pause_ms"),
    [
        (refusal(ResponseCode.FLOW_CONTROL), BROKER_FLOW_CONTROL_MS),
        (refusal(ResponseCode.SYSTEM_BUSY), EXCEPTION_MS),
    ],
)
def test_after_an_error_it_tries_again(
    scene: Scene, broker: Broker, assigned: AssignedQueues, answer: Any, pause_ms: int
) -> None:
    broker.answers = [answer, found(6, 5)]
    assigned.add([QUEUE])
    assert len(broker.pulls()) == 1
    scene.time.advance(pause_ms / 1000)
    given = assigned.next()
    assert given is not None
    assert (given[0], [each.queue_offset for each in given[1]]) == (QUEUE, [5])
    assigned.stop()


def test_without_a_place_to_begin_it_waits_for_three_seconds(
    scene: Scene, broker: Broker, assigned: AssignedQueues
) -> None:
    on = scene.connections.on
    on(BROKER_A, offset.QUERY_CONSUMER_OFFSET, refusal(ResponseCode.SYSTEM_ERROR))
    assigned.add([QUEUE])
    on(BROKER_A, offset.QUERY_CONSUMER_OFFSET, Reply(QueryConsumerOffsetResponseHeader(offset=9)))
    scene.time.advance(NO_OFFSET_MS / 1000 - 0.01)
    assert broker.pulls() == []
    scene.time.advance(0.01)
    assert [header.queue_offset for header in broker.pulls()] == [9]
    assigned.stop()


def test_an_offset_that_the_queue_does_not_have_is_corrected(
    broker: Broker, assigned: AssignedQueues
) -> None:
    broker.answers = [found(50, code=ResponseCode.PULL_OFFSET_MOVED)]
    assigned.add([QUEUE])
    assert [header.queue_offset for header in broker.pulls()] == [5, 50]
    assigned.stop()


def test_nobody_gets_messages_of_a_queue_that_is_gone(
    broker: Broker, assigned: AssignedQueues
) -> None:
    broker.answers = [found(6, 5)]
    assigned.add([QUEUE])
    assigned.remove([QUEUE])
    assert (assigned.next(), QUEUE in assigned, assigned.get(QUEUE)) == (None, False, None)
    broker.open[0].resolve(found(7, 6))
    assert assigned.next() is None
    assigned.stop()


def test_an_empty_queue_is_not_asked_again_in_the_same_turn(
    scene: Scene, broker: Broker, assigned: AssignedQueues
) -> None:
    broker.answers = [found(5, code=ResponseCode.PULL_NOT_FOUND)]
    assigned.add([QUEUE])
    assert len(broker.pulls()) == 1
    scene.time.advance(0)
    assert len(broker.pulls()) == 2
    arrival = assigned.arrival(1_000)
    assigned.stop()
    result_of(arrival)
