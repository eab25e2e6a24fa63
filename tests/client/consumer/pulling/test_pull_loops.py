# SPDX-License-Identifier: Apache-2.0
"""The pulls of a push consumer: when they rest, what they do after errors."""

from __future__ import annotations

from typing import Any

import pytest

from tests.client.consumer.fake_broker import QUEUE, Broker, Listener, found
from tests.client.fakes import Scene, a_route, refusal, result_of
from txrocketmq.client.consumer.config import PushConsumerConfig
from txrocketmq.client.consumer.listening.troubles import EXCEPTION_MS
from txrocketmq.client.consumer.pulling.pull_loops import FLOW_CONTROL_MS, SUSPENDED_MS
from txrocketmq.client.consumer.push import PushConsumer
from txrocketmq.remoting.codes import ResponseCode


def started_consumer(scene: Scene, listener: Any, *, orderly: bool = False, **config: Any) -> Any:
    consumer = PushConsumer(
        scene.client, "g", {"T": "*"}, listener, config=PushConsumerConfig(**config),
        orderly=orderly,
    )  # fmt: skip
    result_of(consumer.start())
    return consumer


def test_a_suspended_consumer_pulls_no_more_until_it_is_resumed(
    scene: Scene, broker: Broker
) -> None:
    broker.answers = [found(6, 5)]
    listener = Listener()
    consumer = started_consumer(scene, listener)
    consumer.suspend()
    broker.open[0].resolve(found(7, 6))
    scene.time.advance(SUSPENDED_MS / 1000)
    assert (listener.bodies, len(broker.pulls())) == ([b"m5", b"m6"], 2)
    consumer.resume()
    scene.time.advance(SUSPENDED_MS / 1000)
    assert len(broker.pulls()) == 3
    result_of(consumer.stop())


@pytest.mark.parametrize("orderly", [False, True])
def test_a_topic_that_is_made_anew_is_read_from_its_first_message(
    scene: Scene, broker: Broker, orderly: bool
) -> None:
    """Its offsets begin at 0 again, so going on at 7 would pass over seven messages."""
    broker.answers = [found(7, 5, 6)]
    listener = Listener()
    consumer = started_consumer(scene, listener, orderly=orderly)
    assert listener.bodies == [b"m5", b"m6"]
    broker.open[0].resolve(refusal(ResponseCode.TOPIC_NOT_EXIST))
    broker.earliest_ms = 1_000
    broker.offset = 0
    broker.answers = [found(0, code=ResponseCode.PULL_OFFSET_MOVED), found(2, 0, 1)]
    scene.time.advance(EXCEPTION_MS / 1000)
    assert broker.committed()[-1] == (0, 0)
    scene.time.advance(30)
    assert listener.bodies == [b"m5", b"m6", b"m0", b"m1"]
    result_of(consumer.stop())
    assert broker.committed()[-1] == (0, 2)


def test_limits_for_a_topic_are_shared_by_its_queues(scene: Scene, broker: Broker) -> None:
    scene.routes["T"] = a_route({"broker-a": 2})
    listener = Listener()
    consumer = started_consumer(scene, listener, pull_threshold_for_topic=4)
    listener.answer = scene.client.clock.pause(5_000)
    broker.open[0].resolve(found(8, 5, 6, 7))  # three wait, and two of four are this queue's
    assert len(broker.pulls()) == 2
    scene.time.advance(FLOW_CONTROL_MS / 1000)
    assert len(broker.pulls()) == 2
    result_of(consumer.stop())


@pytest.mark.parametrize(
    "code", [ResponseCode.SUBSCRIPTION_NOT_EXIST, ResponseCode.SUBSCRIPTION_NOT_LATEST]
)
def test_a_broker_that_does_not_know_the_group_hears_of_it_at_once(
    scene: Scene, broker: Broker, code: ResponseCode
) -> None:
    consumer = started_consumer(scene, Listener())
    beats = len(broker.beats())
    broker.open[0].resolve(refusal(code))
    assert len(broker.beats()) == beats + 1
    broker.answers = [refusal(code), found(6, 5)]
    scene.time.advance(EXCEPTION_MS / 1000)
    scene.time.advance(EXCEPTION_MS / 1000)
    assert [header.queue_offset for header in broker.pulls()] == [5, 5, 5, 6]
    result_of(consumer.stop())


def test_in_order_nothing_is_pulled_without_the_lock(scene: Scene, broker: Broker) -> None:
    consumer = started_consumer(scene, Listener(), orderly=True)
    assert consumer.queues == [QUEUE]
    broker.others_have = {QUEUE}
    scene.time.advance(1)  # the lock is asked for again, and refused
    broker.open[0].resolve(found(6, 5))
    assert len(broker.pulls()) == 1
    broker.others_have = set()
    for _ in range(21):
        scene.time.advance(1)
    assert len(broker.pulls()) == 2
    result_of(consumer.stop())


def test_messages_that_come_when_the_queue_is_lost_are_dropped(
    scene: Scene, broker: Broker
) -> None:
    listener = Listener()
    consumer = started_consumer(scene, listener)
    broker.members = ["10.0.0.1@other"]
    scene.client.group_changed("g")
    broker.open[0].resolve(found(6, 5))
    assert (listener.bodies, consumer.queues) == ([], [])
    result_of(consumer.stop())
