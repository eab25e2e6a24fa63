# SPDX-License-Identifier: Apache-2.0
"""The push consumer in order: its locks while the group changes, and at the end."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import Deferred

from tests.client.consumer.fake_broker import QUEUE, Broker, Listener, found
from tests.client.fakes import BROKER_A, Scene, a_route, result_of
from txrocketmq.client.consumer.config import PushConsumerConfig
from txrocketmq.client.consumer.push import PushConsumer
from txrocketmq.remoting.call import Reply
from txrocketmq.remoting.message.message import MessageQueue
from txrocketmq.remoting.protocol import heartbeat


def in_order(scene: Scene, listener: Any = None, **config: Any) -> PushConsumer:
    return PushConsumer(
        scene.client,
        "g",
        {"T": "*"},
        listener or Listener(),
        config=PushConsumerConfig(**config),
        orderly=True,
    )


def test_in_order_queues_are_locked_before_they_are_read(scene: Scene, broker: Broker) -> None:
    scene.routes["T"] = a_route({"broker-a": 2})
    broker.others_have = {QUEUE}
    consumer = in_order(scene)
    result_of(consumer.start())
    assert [each.queue_id for each in consumer.queues] == [1]
    assert [header.queue_id for header in broker.pulls()] == [1]
    broker.others_have = set()
    scene.time.advance(0.5)
    assert [each.queue_id for each in consumer.queues] == [0, 1]
    locks = len(broker.locks())
    scene.time.advance(0.5)
    assert len(broker.locks()) == locks + 1  # renewed a second after the start
    scene.time.advance(19.9)
    assert len(broker.locks()) == locks + 1
    scene.time.advance(0.1)
    assert broker.locks()[-1] == set(consumer.queues)
    result_of(consumer.stop())
    assert broker.unlocks()[0] == {QUEUE, MessageQueue("T", "broker-a", 1)}


def test_offsets_are_told_before_the_locks_are_given_back(scene: Scene, broker: Broker) -> None:
    order: list[str] = []
    on = scene.connections.on

    def unlocked(*_: Any) -> Reply[Any]:
        order.append(str(broker.committed()))
        return Reply()

    on(BROKER_A, heartbeat.UNLOCK_BATCH_MQ, unlocked)
    broker.answers = [found(6, 5)]
    consumer = in_order(scene)
    result_of(consumer.start())
    result_of(consumer.stop())
    assert order == ["[(0, 6)]"]


def test_a_queue_that_is_lost_is_unlocked_when_its_listener_is_done(
    scene: Scene, broker: Broker
) -> None:
    listener = Listener()
    waiting: Deferred[None] = Deferred()
    listener.answer = waiting
    broker.answers = [found(6, 5)]
    consumer = in_order(scene, listener)
    result_of(consumer.start())
    broker.members = ["10.0.0.1@other"]
    scene.client.group_changed("g")
    assert (consumer.queues, broker.unlocks()) == ([], [])
    waiting.callback(None)
    assert broker.unlocks() == [{QUEUE}]
    assert broker.committed() == []
    result_of(consumer.stop())


def test_a_listener_that_takes_too_long_does_not_keep_the_lock(
    scene: Scene, broker: Broker
) -> None:
    listener = Listener()
    listener.answer = Deferred()
    broker.answers = [found(6, 5)]
    consumer = in_order(scene, listener)
    result_of(consumer.start())
    broker.members = ["10.0.0.1@other"]
    scene.client.group_changed("g")
    scene.time.advance(19.9)
    assert broker.unlocks() == []
    scene.time.advance(0.1)
    assert broker.unlocks() == [{QUEUE}]
    result_of(consumer.stop())


def test_a_queue_comes_back_only_when_its_listener_is_done(scene: Scene, broker: Broker) -> None:
    listener = Listener()
    waiting: Deferred[None] = Deferred()
    listener.answer = waiting
    broker.answers = [found(6, 5)]
    consumer = in_order(scene, listener)
    result_of(consumer.start())
    own, broker.members = broker.members, ["10.0.0.1@other"]
    scene.client.group_changed("g")
    broker.members = own
    scene.client.group_changed("g")
    assert consumer.queues == []
    waiting.callback(None)
    scene.time.advance(1)
    assert consumer.queues == [QUEUE]
    result_of(consumer.stop())
