# SPDX-License-Identifier: Apache-2.0
"""The requests of POP as a push consumer makes them; those of the pop consumer are in test_pop."""

from __future__ import annotations

from typing import Any

import pytest
from twisted.internet.defer import Deferred

from tests.client.consumer.test_pop import EMPTY, popped
from tests.client.fakes import BROKER_A, Scene, a_route, refusal, result_of
from txrocketmq.client.consumer.group.subscription import Subscriptions
from txrocketmq.client.consumer.popping.pop_requests import PAUSE_MS, Popper
from txrocketmq.remoting.call import Reply
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.message.message import MessageExt, MessageQueue
from txrocketmq.remoting.protocol import pop

QUEUE = MessageQueue("T", "broker-a", 1)


@pytest.fixture
def pops() -> tuple[Scene, Popper]:
    """A client that pops, from the last message on."""
    scene = Scene()
    scene.routes["T"] = a_route({"broker-a": 2})
    on = scene.connections.on
    on(BROKER_A, pop.POP_MESSAGE, popped(3, 4))
    on(BROKER_A, pop.ACK_MESSAGE, Reply())
    on(BROKER_A, pop.BATCH_ACK_MESSAGE, Reply())
    result_of(scene.client.refresh("T"))
    return scene, Popper(scene.client, "g", Subscriptions({"T": "a"}, 0), is_from_last=True)


def taken(popper: Popper) -> list[MessageExt]:
    return result_of(popper.pop(QUEUE, 32, 60_000, 15_000))


def test_one_queue_is_popped_for_which_the_broker_may_wait(pops: tuple[Scene, Popper]) -> None:
    scene, popper = pops
    assert [each.queue_offset for each in taken(popper)] == [3, 4]
    ((_, _call, header, _, timeout_ms),) = [
        each for each in scene.connections.asked if each[1] is pop.POP_MESSAGE
    ]
    assert (header.queue_id, header.init_mode, header.order) == (1, 1, False)
    assert (header.max_msg_nums, header.poll_time, timeout_ms) == (32, 15_000, 25_000)


def test_where_too_many_wait_already_the_next_pop_comes_later(pops: tuple[Scene, Popper]) -> None:
    scene, popper = pops
    assert EMPTY.header is not None
    full: Reply[Any] = Reply(EMPTY.header, code=ResponseCode.POLLING_FULL)
    scene.connections.on(BROKER_A, pop.POP_MESSAGE, full)
    outcome = Deferred.fromCoroutine(popper.pop(QUEUE, 32, 60_000, 15_000))
    assert not outcome.called
    scene.time.advance(PAUSE_MS / 1_000)
    assert result_of(outcome) == []


def test_a_broker_without_acks_of_many_is_told_of_each_and_not_asked_again(
    pops: tuple[Scene, Popper],
) -> None:
    scene, popper = pops
    unknown = refusal(ResponseCode.REQUEST_CODE_NOT_SUPPORTED)
    scene.connections.on(BROKER_A, pop.BATCH_ACK_MESSAGE, unknown)
    for _ in range(2):
        result_of(popper.ack_quietly(taken(popper)))
    asked = scene.connections.questions
    assert len(asked(pop.BATCH_ACK_MESSAGE)) == 1
    assert [header.offset for _, header in asked(pop.ACK_MESSAGE)] == [3, 4, 3, 4]


def test_an_ack_that_fails_is_no_error(pops: tuple[Scene, Popper]) -> None:
    scene, popper = pops
    scene.connections.on(BROKER_A, pop.BATCH_ACK_MESSAGE, refusal(ResponseCode.SYSTEM_ERROR))
    result_of(popper.ack_quietly(taken(popper)))
    assert scene.connections.questions(pop.ACK_MESSAGE) == []
