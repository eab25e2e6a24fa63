# SPDX-License-Identifier: Apache-2.0
"""Servers that go away and come back: clients go on by themselves, and do little meanwhile."""

from __future__ import annotations

from typing import Any

import pytest
from twisted.internet.defer import Deferred

from tests.client.consumer.fake_broker import Broker, Listener, found
from tests.client.consumer.group.test_shares import ANY, assigned
from tests.client.consumer.test_pop import popped
from tests.client.fakes import BROKER_A, BROKER_B, Scene, a_route, result_of
from txrocketmq.client.base.config import ProducerConfig
from txrocketmq.client.base.errors import NoRoute
from txrocketmq.client.consumer.config import LitePullConsumerConfig, PushConsumerConfig
from txrocketmq.client.consumer.lite_pull import LitePullConsumer
from txrocketmq.client.consumer.push import PushConsumer
from txrocketmq.client.producer.producer import Producer
from txrocketmq.remoting.call import Reply
from txrocketmq.remoting.errors import RequestTimeout
from txrocketmq.remoting.message.message import Message
from txrocketmq.remoting.protocol import offset, pop, pull, send
from txrocketmq.remoting.protocol.send import SendMessageResponseHeader

STEP_S = 0.05
AWAY_S = 30
RETRY = "%RETRY%g"
MOST_REQUESTS = 10 * AWAY_S
"""Two queues are asked for once a second, and so is who else is in the group and where."""


class Outage:
    """All servers are away from `begin` to `end`; who asks is refused the connection."""

    def __init__(self, scene: Scene) -> None:
        self._connections = scene.connections
        self._scene = scene
        self._answers: dict[Any, Any] = {}

    def begin(self, broker: Broker, error: Exception) -> None:
        """What waits for an answer fails."""
        self._answers, self._connections._answers = self._connections._answers, {}
        waiting, broker.open = broker.open, []
        for each in waiting:
            each.resolve(error)

    def end(self) -> None:
        self._connections._answers = self._answers

    def requests(self, seconds: float) -> int:
        """How many are made while time goes by."""
        before = len(self._connections.asked)
        pass_s(self._scene, seconds)
        return len(self._connections.asked) - before


def pass_s(scene: Scene, seconds: float) -> None:
    for _ in range(int(seconds / STEP_S)):
        scene.time.advance(STEP_S)


@pytest.mark.parametrize("kind", ["push", "orderly", "lite"])
def test_after_thirty_seconds_without_any_server_it_goes_on_where_it_was(
    scene: Scene, broker: Broker, kind: str
) -> None:
    scene.routes[RETRY] = a_route({"broker-a": 1})
    listener, polled = Listener(), list[bytes]()
    broker.answers = [found(6, 5)]
    if kind == "lite":
        lite = LitePullConsumer(scene.client, "g", config=LitePullConsumerConfig())
        result_of(lite.subscribe("T"))
        consumer: Any = lite
    else:
        consumer = PushConsumer(scene.client, "g", {"T": "*"}, listener, orderly=kind == "orderly")
    result_of(consumer.start())
    pass_s(scene, 1)

    def bodies() -> list[bytes]:
        if kind == "lite":
            polled.extend(each.body for each in result_of(consumer.poll(0)))
            return polled
        return listener.bodies

    assert bodies() == [b"m5"]
    outage = Outage(scene)
    outage.begin(broker, RequestTimeout("no answer"))
    asked = outage.requests(2)
    timers = len(scene.time.getDelayedCalls())
    asked += outage.requests(AWAY_S - 2)
    assert 10 < asked < MOST_REQUESTS
    assert len(scene.time.getDelayedCalls()) <= timers + 2
    outage.end()
    before = len(broker.pulls())
    broker.answers = [found(7, 6)]
    pass_s(scene, 5)
    again = [header for header in broker.pulls()[before:] if header.topic == "T"]
    assert [header.queue_offset for header in again[:2]] == [6, 7]
    assert bodies() == [b"m5", b"m6"]
    pass_s(scene, 6)
    bodies()
    pass_s(scene, 6)
    assert (0, 7) in broker.committed()
    result_of(consumer.stop())


def test_a_consumer_that_pops_goes_on_as_well(scene: Scene, broker: Broker) -> None:
    listener, answers = Listener(), [popped(3)]
    on = scene.connections.on
    on(BROKER_A, pull.QUERY_ASSIGNMENT, lambda _, __, body: assigned((ANY, "POP")))
    on(BROKER_A, pop.POP_MESSAGE, lambda *_: answers.pop() if answers else broker._pull())
    on(BROKER_A, pop.ACK_MESSAGE, Reply())
    config = PushConsumerConfig(client_rebalance=False)
    consumer = PushConsumer(scene.client, "g", {"T": "*"}, listener, config=config)
    result_of(consumer.start())
    outage = Outage(scene)
    outage.begin(broker, RequestTimeout("no answer"))
    assert 10 < outage.requests(AWAY_S) < MOST_REQUESTS
    answers.append(popped(4))
    outage.end()
    pass_s(scene, 5)
    assert listener.bodies == [b"m3", b"m4"]
    acked = [header.offset for _, header in scene.connections.questions(pop.ACK_MESSAGE)]
    assert acked == [3, 4]
    result_of(consumer.stop())


def test_messages_of_a_slave_are_consumed_while_there_is_no_master(
    scene: Scene, broker: Broker
) -> None:
    """Nobody can send then, and the master hears how far the group is when it is back."""
    both = {"broker-a": {0: BROKER_A, 1: BROKER_B}}
    scene.routes["T"] = a_route({"broker-a": 1}, addresses=both)
    listener = Listener()
    consumer = PushConsumer(scene.client, "g", {"T": "*"}, listener)
    producer = Producer(scene.client, "p", ProducerConfig(retry_times=0))
    result_of(producer.start())
    result_of(consumer.start())
    outage = Outage(scene)
    scene.routes["T"] = a_route({"broker-a": 1}, addresses={"broker-a": {1: BROKER_B}})
    answers = scene.connections._answers
    for (address, code), answer in list(answers.items()):
        if address == BROKER_A:  # the slave has what the master had, which is there no more
            answers[BROKER_B, code] = answer
            del answers[address, code]
    waiting, broker.open = broker.open, []
    broker.answers = [found(6, 5)]
    waiting[0].resolve(RequestTimeout("no answer"))
    requests = outage.requests(AWAY_S + 5)
    assert requests < MOST_REQUESTS
    assert listener.bodies == [b"m5"]
    last = scene.connections.questions(pull.PULL_MESSAGE)[-1]
    assert (last[0], last[1].queue_offset) == (BROKER_B, 6)
    with pytest.raises(NoRoute, match="no master is registered for broker-a"):
        result_of(producer.send(Message("T", b"x")))

    scene.routes["T"] = a_route({"broker-a": 1}, addresses=both)
    for (address, code), answer in list(answers.items()):
        if address == BROKER_B:
            answers[BROKER_A, code] = answer
    stored = Reply(SendMessageResponseHeader(msg_id="O", queue_id=0, queue_offset=7))
    scene.connections.on(BROKER_A, send.SEND_MESSAGE_V2, stored)
    broker.open[0].resolve(found(7, 6))
    pass_s(scene, AWAY_S + 5)
    told = [
        header.commit_offset
        for address, call, header, _ in scene.connections.told
        if call is offset.UPDATE_CONSUMER_OFFSET and address == BROKER_A
    ]
    assert told[-1] == 7
    assert listener.bodies == [b"m5", b"m6"]
    sending = Deferred.fromCoroutine(producer.send(Message("T", b"x")))
    assert result_of(sending).queue_offset == 7
    result_of(consumer.stop())
    result_of(producer.shutdown())
