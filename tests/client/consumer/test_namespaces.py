# SPDX-License-Identifier: Apache-2.0
"""Consumers in a namespace: brokers know the long names, the program the short ones."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import pytest

from tests.client.consumer.fake_broker import Broker, Listener
from tests.client.consumer.group.test_shares import assigned
from tests.client.consumer.test_pop import popped
from tests.client.fakes import BROKER_A, NAME_SERVER, Scene, a_route, result_of
from txrocketmq.client.base.config import ClientConfig
from txrocketmq.client.consumer.config import PushConsumerConfig
from txrocketmq.client.consumer.listening.listener import ConsumeStatus
from txrocketmq.client.consumer.lite_pull import LitePullConsumer
from txrocketmq.client.consumer.pop import PopConsumer
from txrocketmq.client.consumer.push import PushConsumer
from txrocketmq.client.core.instance import ClientInstance
from txrocketmq.remoting.call import PendingReply, Reply
from txrocketmq.remoting.host.clock import Clock
from txrocketmq.remoting.message.message import MessageExt, MessageQueue, encode_message
from txrocketmq.remoting.protocol import heartbeat, pop, pull, send
from txrocketmq.remoting.protocol.pull import PullMessageResponseHeader
from txrocketmq.remoting.transport.client import Connections

OURS = MessageQueue("ns%T", "broker-a", 0)


@pytest.fixture
def broker(scene: Scene) -> Iterator[Broker]:
    """A broker with the topic of the namespace, and a client that is in it."""
    scene.routes["ns%T"] = scene.routes["%RETRY%ns%g"] = a_route({"broker-a": 1})
    config = ClientConfig(namesrv_addr=NAME_SERVER, client_ip="10.0.0.9", namespace="ns")
    connections = cast(Connections, scene.connections)
    scene.client = ClientInstance(config, Clock(scene.time), connections)
    scene.client.start()
    yield Broker(scene)
    result_of(scene.client.stop())


def pulled(topic: str, **properties: str) -> Reply[Any]:
    body = encode_message(MessageExt(topic, b"x", queue_offset=5, properties=properties))
    header = PullMessageResponseHeader(
        suggest_which_broker_id=0, next_begin_offset=6, min_offset=0, max_offset=100
    )
    return Reply(header, body)


class Topics(Listener):
    """Remembers the topics of messages."""

    def __init__(self, answer: Any = None) -> None:
        super().__init__()
        self.topics: list[str] = []
        self.answer = answer

    def __call__(self, messages: list[MessageExt], context: Any) -> Any:
        self.topics += [each.topic for each in messages]
        return self.answer


def subscribed(broker: Broker) -> tuple[str, set[str]]:
    (data,) = broker.beats()[-1].consumer_data_set
    return data.group_name, {each.topic for each in data.subscription_data_set}


def test_a_push_consumer(scene: Scene, broker: Broker) -> None:
    listener = Topics(ConsumeStatus.RECONSUME_LATER)
    broker.answers = [pulled("ns%T")]
    consumer = PushConsumer(scene.client, "g", {"T": "*"}, listener)
    result_of(consumer.start())
    assert listener.topics == ["T"]
    assert subscribed(broker) == ("ns%g", {"ns%T", "%RETRY%ns%g"})
    assert {header.consumer_group for header in broker.pulls()} == {"ns%g"}
    ((_, back),) = scene.connections.questions(send.CONSUMER_SEND_MSG_BACK)
    assert (back.group, back.origin_topic) == ("ns%g", "ns%T")
    members = scene.connections.questions(heartbeat.GET_CONSUMER_LIST_BY_GROUP)
    assert {header.consumer_group for _, header in members} == {"ns%g"}
    result_of(consumer.unsubscribe("T"))
    assert OURS not in consumer.queues
    result_of(consumer.subscribe("T"))
    assert OURS in consumer.queues
    result_of(consumer.stop())


def test_a_message_that_comes_again_has_its_topic(scene: Scene, broker: Broker) -> None:
    listener = Topics()
    scene.connections.on(
        BROKER_A,
        pull.PULL_MESSAGE,
        lambda _, header, __: (
            pulled("%RETRY%ns%g", RETRY_TOPIC="ns%T")
            if header.topic.startswith("%RETRY%") and header.queue_offset == 5
            else broker._pull()
        ),
    )
    consumer = PushConsumer(scene.client, "g", {"T": "*"}, listener)
    result_of(consumer.start())
    assert listener.topics == ["T"]
    result_of(consumer.stop())


def pops(scene: Scene) -> None:
    on = scene.connections.on
    answers = [popped(3)]
    on(BROKER_A, pop.POP_MESSAGE, lambda *_: answers.pop() if answers else PendingReply())
    on(BROKER_A, pop.ACK_MESSAGE, Reply())


def test_a_push_consumer_that_pops(scene: Scene, broker: Broker) -> None:
    pops(scene)
    queue = MessageQueue("ns%T", "broker-a", -1)
    scene.connections.on(
        BROKER_A,
        pull.QUERY_ASSIGNMENT,
        lambda _, __, body: assigned((queue, "POP")) if b'"ns%T"' in body else assigned(),
    )
    listener = Topics()
    config = PushConsumerConfig(client_rebalance=False)
    consumer = PushConsumer(scene.client, "g", {"T": "*"}, listener, config=config)
    result_of(consumer.start())
    assert listener.topics == ["T"]
    ((_, ack),) = scene.connections.questions(pop.ACK_MESSAGE)
    assert (ack.topic, ack.consumer_group) == ("ns%T", "ns%g")
    result_of(consumer.stop())


def test_a_pop_consumer(scene: Scene, broker: Broker) -> None:
    pops(scene)
    consumer = PopConsumer(scene.client, "g", {"T": "*"})
    result_of(consumer.start())
    (message,) = result_of(consumer.receive())
    assert message.topic == "T"
    result_of(consumer.ack(message))
    ((_, ack),) = scene.connections.questions(pop.ACK_MESSAGE)
    assert (ack.topic, ack.consumer_group) == ("ns%T", "ns%g")
    assert subscribed(broker) == ("ns%g", {"ns%T"})
    result_of(consumer.stop())


def test_a_lite_pull_consumer(scene: Scene, broker: Broker) -> None:
    broker.answers = [pulled("ns%T")]
    consumer = LitePullConsumer(scene.client, "g")
    result_of(consumer.subscribe("T"))
    result_of(consumer.start())
    (message,) = result_of(consumer.poll())
    assert (message.topic, consumer.assignment) == ("T", [OURS])
    for queue in (OURS, MessageQueue("T", "broker-a", 0)):  # as brokers and as programs know it
        result_of(consumer.seek_to_begin(queue))
        consumer.pause([queue])
        assert result_of(consumer.offset_for_timestamp(queue, 77)) == 77
        assert result_of(consumer.committed(queue)) == 5
    assert result_of(consumer.fetch_queues("T")) == [OURS]
    result_of(consumer.unsubscribe("T"))
    assert consumer.assignment == []
    result_of(consumer.stop())


def test_queues_that_are_assigned(scene: Scene, broker: Broker) -> None:
    consumer = LitePullConsumer(scene.client, "g")
    consumer.assign([MessageQueue("T", "broker-a", 0)])
    assert consumer.assignment == [OURS]
