# SPDX-License-Identifier: Apache-2.0
"""A push consumer whose broker lets it pop, and pull again: what it asks for, and when it rests."""

from __future__ import annotations

from typing import Any

import pytest
from twisted.internet.defer import Deferred

from tests.client.consumer.fake_broker import QUEUE, Broker, Listener, found
from tests.client.consumer.group.test_shares import ANY, assigned
from tests.client.consumer.test_pop import EMPTY, popped
from tests.client.fakes import BROKER_A, Scene, a_route, refusal, result_of
from txrocketmq.client.consumer.config import ConsumeFrom, MessageModel, PushConsumerConfig
from txrocketmq.client.consumer.listening.listener import ConsumeStatus
from txrocketmq.client.consumer.listening.troubles import EXCEPTION_MS
from txrocketmq.client.consumer.pulling.pull_loops import FLOW_CONTROL_MS, SUSPENDED_MS
from txrocketmq.client.consumer.push import PushConsumer
from txrocketmq.client.consumer.queue.process_queue import PULL_MAX_IDLE_MS
from txrocketmq.remoting.call import PendingReply, Reply
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.errors import ConnectError
from txrocketmq.remoting.message.message import MessageQueue
from txrocketmq.remoting.protocol import pop, pull
from txrocketmq.remoting.protocol.body.pop import (
    QueryAssignmentRequestBody,
    QueryAssignmentResponseBody,
)
from txrocketmq.remoting.protocol.pop import ChangeInvisibleTimeResponseHeader

AGAIN = "%RETRY%g_T"


def queue_of(topic: str) -> MessageQueue:
    return MessageQueue(topic, "broker-a", 0)


class Group:
    """A member of a group that pops T; `answers` are those of pops, which wait otherwise."""

    def __init__(self, scene: Scene, broker: Broker, **config: Any) -> None:
        self.scene = scene
        self.broker = broker
        self.mode = "POP"
        self.answers: list[Any] = []
        self.open: list[PendingReply] = []
        self.listener = Listener()
        self.news: list[list[Any]] = []
        self.orderly: bool | None = None
        scene.routes[AGAIN] = scene.routes["%RETRY%g"] = a_route({"broker-a": 1})
        on = scene.connections.on
        on(BROKER_A, pull.QUERY_ASSIGNMENT, self._assign)
        on(BROKER_A, pop.POP_MESSAGE, self._pop)
        on(BROKER_A, pop.ACK_MESSAGE, Reply())
        on(BROKER_A, pop.BATCH_ACK_MESSAGE, Reply())
        hidden = ChangeInvisibleTimeResponseHeader(pop_time=2, invisible_time=5, revive_qid=1)
        on(BROKER_A, pop.CHANGE_MESSAGE_INVISIBLETIME, Reply(hidden))
        self.config = PushConsumerConfig(**{"client_rebalance": False, **config})

    def start(self) -> PushConsumer:
        self.consumer = PushConsumer(
            self.scene.client, "g", {"T": "*"}, self.listener, config=self.config,
            orderly=self.orderly, queues_changed=lambda *news: self.news.append([*news]),
        )  # fmt: skip
        result_of(self.consumer.start())
        return self.consumer

    def switch(self, mode: str) -> None:
        """An administrator sets the mode, and members hear that something has changed."""
        self.mode = mode
        self.scene.client.group_changed("g")

    def _assign(self, _: Any, __: Any, body: bytes) -> Reply[Any]:
        topic = QueryAssignmentRequestBody.decode(body).topic
        if topic == "T" and self.mode == "POP":
            return assigned((ANY, "POP"))
        return assigned((queue_of(topic or ""), "PULL"))

    def _pop(self, *_: Any) -> Any:
        if self.answers:
            return self.answers.pop(0)
        self.open.append(PendingReply())
        return self.open[-1]

    def asked(self, call: Any) -> list[Any]:
        return [header for _, header in self.scene.connections.questions(call)]

    def pulled_topics(self) -> set[str]:
        return {header.topic for header in self.broker.pulls()}

    def subscribed(self) -> set[str]:
        (data,) = self.broker.beats()[-1].consumer_data_set
        return {each.topic for each in data.subscription_data_set}


@pytest.fixture
def group(scene: Scene, broker: Broker) -> Group:
    return Group(scene, broker)


def test_what_the_broker_lets_it_pop_is_popped_and_acknowledged(group: Group) -> None:
    group.answers = [popped(3, 4)]
    consumer = group.start()
    assert consumer.queues == [queue_of("%RETRY%g"), ANY]
    assert group.pulled_topics() == {"%RETRY%g"}
    assert group.listener.bodies == [b"m3", b"m4"]
    first, second = group.asked(pop.POP_MESSAGE)
    assert (first.queue_id, first.invisible_time, first.max_msg_nums) == (-1, 60_000, 32)
    assert (first.poll_time, first.init_mode, second.exp) == (15_000, 1, "*")
    assert len(group.asked(pop.BATCH_ACK_MESSAGE)) == 1
    assert group.news[0][0] == "T"
    assert group.news[0][2] == [ANY]
    assert group.broker.committed() == []
    result_of(consumer.stop())


def test_what_fails_is_hidden(group: Group) -> None:
    group.listener.answer = ConsumeStatus.RECONSUME_LATER
    group.answers = [popped(3)]
    consumer = group.start()
    (header,) = group.asked(pop.CHANGE_MESSAGE_INVISIBLETIME)
    assert (header.offset, header.invisible_time) == (3, 10_000)
    assert group.asked(pop.ACK_MESSAGE) == []
    result_of(consumer.stop())


def test_from_the_first_message_on(scene: Scene, broker: Broker) -> None:
    group = Group(scene, broker, consume_from=ConsumeFrom.FIRST_OFFSET)
    consumer = group.start()
    assert [header.init_mode for header in group.asked(pop.POP_MESSAGE)] == [0]
    result_of(consumer.stop())


def test_no_more_is_popped_while_too_many_wait_to_be_acknowledged(
    scene: Scene, broker: Broker
) -> None:
    group = Group(scene, broker, pop_threshold_for_queue=1)
    group.listener.answer = waiting = Deferred[None]()
    group.answers = [popped(3, 4)]
    consumer = group.start()
    scene.time.advance(FLOW_CONTROL_MS / 1_000)
    assert len(group.asked(pop.POP_MESSAGE)) == 1
    waiting.callback(None)
    scene.time.advance(FLOW_CONTROL_MS / 1_000)
    assert len(group.asked(pop.POP_MESSAGE)) == 2
    result_of(consumer.stop())


def test_a_suspended_consumer_pops_no_more_until_it_is_resumed(scene: Scene, group: Group) -> None:
    consumer = group.start()
    consumer.suspend()
    group.open[0].resolve(popped(3))
    scene.time.advance(SUSPENDED_MS / 1_000)
    assert (group.listener.bodies, len(group.asked(pop.POP_MESSAGE))) == ([b"m3"], 1)
    consumer.resume()
    scene.time.advance(SUSPENDED_MS / 1_000)
    assert len(group.asked(pop.POP_MESSAGE)) == 2
    result_of(consumer.stop())


@pytest.mark.parametrize(
    "answer", [ConnectError("nobody there"), refusal(ResponseCode.SYSTEM_ERROR)]
)
def test_a_pop_that_fails_is_tried_again_after_a_second(
    scene: Scene, group: Group, answer: Any
) -> None:
    group.answers = [answer, answer, popped(3)]
    consumer = group.start()
    scene.time.advance(EXCEPTION_MS / 1_000 - 0.001)
    assert len(group.asked(pop.POP_MESSAGE)) == 1
    scene.time.advance(0.001)
    scene.time.advance(EXCEPTION_MS / 1_000)
    assert (group.listener.bodies, len(group.asked(pop.POP_MESSAGE))) == ([b"m3"], 4)
    result_of(consumer.stop())


def test_empty_answers_that_come_at_once_leave_the_reactor_its_turns(
    scene: Scene, group: Group
) -> None:
    group.answers = [EMPTY] * 5
    consumer = group.start()
    assert len(group.asked(pop.POP_MESSAGE)) == 1
    for _ in range(5):
        scene.time.advance(0)
    assert len(group.asked(pop.POP_MESSAGE)) == 6
    result_of(consumer.stop())


def test_when_it_is_to_pull_again_it_pulls_what_was_popped_and_not_acknowledged_too(
    scene: Scene, group: Group
) -> None:
    consumer = group.start()
    group.switch("PULL")
    assert consumer.queues == [queue_of(topic) for topic in ("%RETRY%g", AGAIN, "T")]
    assert group.pulled_topics() == {"T", "%RETRY%g", AGAIN}
    assert group.subscribed() == {"T", "%RETRY%g", AGAIN}
    group.open[0].resolve(popped(3))  # too late: it comes again in the retry topic
    assert group.listener.bodies == []
    group.switch("POP")
    assert consumer.queues == [queue_of("%RETRY%g"), ANY]
    assert (0, 5) not in group.broker.committed()
    assert group.subscribed() == {"T", "%RETRY%g"}
    assert len(group.asked(pop.POP_MESSAGE)) == 2
    result_of(consumer.stop())


def test_what_was_pulled_is_committed_before_the_first_pop(scene: Scene, group: Group) -> None:
    group.mode = "PULL"
    group.broker.answers = [found(7, 5, 6)]
    told: list[int] = []
    on = scene.connections.on

    def nothing(*_: Any) -> PendingReply:
        told.append(len(group.broker.committed()))
        return PendingReply()

    on(BROKER_A, pop.POP_MESSAGE, nothing)
    consumer = group.start()
    group.switch("POP")
    assert told[0] >= 1
    result_of(consumer.stop())


def test_a_queue_whose_loop_was_lost_is_begun_anew(scene: Scene, group: Group) -> None:
    consumer = group.start()
    scene.time.advance(PULL_MAX_IDLE_MS / 1_000)  # no answer, and no time-out of fakes
    scene.time.advance(20)
    assert len(group.asked(pop.POP_MESSAGE)) == 2
    result_of(consumer.stop())


def test_without_an_answer_its_queues_stay(scene: Scene, group: Group) -> None:
    consumer = group.start()
    nothing = QueryAssignmentResponseBody(message_queue_assignments=None).encode()
    scene.connections.on(BROKER_A, pull.QUERY_ASSIGNMENT, Reply(body=nothing))
    scene.client.group_changed("g")
    assert ANY in consumer.queues
    asked = len(group.asked(pull.QUERY_ASSIGNMENT))
    scene.time.advance(1)
    assert len(group.asked(pull.QUERY_ASSIGNMENT)) > asked
    result_of(consumer.stop())


def test_a_topic_that_is_not_wanted_any_more_is_popped_no_more(scene: Scene, group: Group) -> None:
    consumer = group.start()
    result_of(consumer.unsubscribe("T"))
    assert ANY not in consumer.queues
    group.open[0].resolve(popped(3))
    assert (group.listener.bodies, len(group.asked(pop.POP_MESSAGE))) == ([], 1)
    result_of(consumer.stop())


def test_a_topic_that_is_given_up_while_a_broker_is_asked_is_not_popped(
    scene: Scene, group: Group
) -> None:
    consumer = group.start()
    result_of(consumer.unsubscribe("T"))
    answer = PendingReply()
    scene.connections.on(BROKER_A, pull.QUERY_ASSIGNMENT, answer)
    result_of(consumer.subscribe("T"))
    result_of(consumer.unsubscribe("T"))
    answer.resolve(assigned((ANY, "POP")))
    assert (ANY in consumer.queues, len(group.asked(pop.POP_MESSAGE))) == (False, 1)
    result_of(consumer.stop())


def test_at_the_end_it_waits_for_listeners_and_acknowledges(scene: Scene, broker: Broker) -> None:
    group = Group(scene, broker, await_termination_ms=5_000)
    group.listener.answer = waiting = Deferred[None]()
    group.answers = [popped(3)]
    consumer = group.start()
    stopping = Deferred.fromCoroutine(consumer.stop())
    scene.time.advance(1)
    assert not stopping.called
    waiting.callback(None)
    scene.time.advance(0)
    assert stopping.called
    assert [header.offset for header in group.asked(pop.ACK_MESSAGE)] == [3]


@pytest.mark.parametrize("way", ["orderly", "broadcasting", "among themselves"])
def test_others_share_their_queues_among_themselves(
    scene: Scene, broker: Broker, tmp_path: Any, way: str
) -> None:
    config: dict[str, Any] = {}
    if way == "broadcasting":
        config = {
            "message_model": MessageModel.BROADCASTING, "local_offset_store_dir": tmp_path,
        }  # fmt: skip
    elif way == "among themselves":
        config = {"client_rebalance": True}
    group = Group(scene, broker, **config)
    group.orderly = way == "orderly"
    consumer = group.start()
    assert (group.asked(pull.QUERY_ASSIGNMENT), group.asked(pop.POP_MESSAGE)) == ([], [])
    assert QUEUE in consumer.queues
    assert AGAIN not in consumer.subscriptions
    result_of(consumer.stop())


def test_administrators_are_told_what_waits(group: Group) -> None:
    group.listener.answer = Deferred()
    group.answers = [popped(3, 4)]
    consumer = group.start()
    told = consumer.running_info(with_stacks=False)
    assert {queue: its.wait_ack_count for queue, its in told.mq_pop_table.items()} == {ANY: 2}
    assert told.properties["popBatchNums"] == "32"
    result_of(consumer.stop())
