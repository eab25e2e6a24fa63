# SPDX-License-Identifier: Apache-2.0
"""One send, step by step: what is waited for, what is told, and when it is given up."""

from __future__ import annotations

from typing import Any

import pytest
from twisted.internet.defer import CancelledError
from twisted.python.failure import Failure

from tests.client.fakes import BROKER_A, BROKER_B, NAME_SERVER, Scene, a_route, refusal, result_of
from txrocketmq.client.base.config import ProducerConfig
from txrocketmq.client.base.errors import MQBrokerError, NoRoute, SendFailed
from txrocketmq.client.producer.hooks import SendContext
from txrocketmq.client.producer.producer import Producer
from txrocketmq.client.producer.send.selectors import by_hash
from txrocketmq.client.producer.send_result import SendResult, SendStatus
from txrocketmq.client.thread.coroutine import Course
from txrocketmq.remoting.call import PendingReply, Reply
from txrocketmq.remoting.errors import ConnectError, RequestTimeout
from txrocketmq.remoting.message.message import Message, MessageQueue
from txrocketmq.remoting.protocol import send
from txrocketmq.remoting.protocol.route import GET_ROUTEINFO_BY_TOPIC
from txrocketmq.remoting.protocol.send import SendMessageResponseHeader

STORED = Reply(SendMessageResponseHeader(msg_id="O", queue_id=0, queue_offset=7))
QUEUE = MessageQueue("T", "broker-a", 0)


@pytest.fixture
def two(scene: Scene) -> Scene:
    """Two brokers with a queue each, whose route is known."""
    scene.routes["T"] = a_route({"broker-a": 1, "broker-b": 1})
    for address in (BROKER_A, BROKER_B):
        scene.connections.on(address, send.SEND_MESSAGE_V2, STORED)
    result_of(scene.client.refresh("T"))
    return scene


class Outcomes(list[Any]):
    """What a send has told; it is told once."""

    def __call__(self, outcome: Any) -> None:
        assert not self
        self.append(outcome)

    @property
    def error(self) -> Any:
        (failure,) = self
        assert isinstance(failure, Failure)
        return failure.value


def begin(producer: Producer, outcomes: Outcomes, **named: Any) -> Any:
    return producer._begin_send(outcomes, Message("T", b"x"), **named)


def waits_for_answers(scene: Scene) -> list[PendingReply]:
    """From now on brokers answer when the test does."""
    pending: list[PendingReply] = []

    def ask(*_: Any) -> PendingReply:
        pending.append(PendingReply())
        return pending[-1]

    for address in (BROKER_A, BROKER_B):
        scene.connections.on(address, send.SEND_MESSAGE_V2, ask)
    return pending


def no_course(*_: Any) -> Any:
    raise AssertionError("it makes a coroutine")


@pytest.mark.parametrize("named", [{}, {"queue": QUEUE}, {"selector": by_hash, "key": "k"}])
def test_the_usual_way_takes_no_coroutine(
    two: Scene, monkeypatch: pytest.MonkeyPatch, named: dict[str, Any]
) -> None:
    pending, outcomes = waits_for_answers(two), Outcomes()
    monkeypatch.setattr(Course, "__init__", no_course)
    begin(Producer(two.client, "g"), outcomes, **named)
    assert outcomes == []
    pending[0].resolve(STORED)
    (result,) = outcomes
    assert isinstance(result, SendResult)
    assert (result.status, result.queue_offset) == (SendStatus.SEND_OK, 7)


def test_an_unknown_route_is_asked_for(scene: Scene) -> None:
    outcomes = Outcomes()
    begin(Producer(scene.client, "g"), outcomes)
    assert isinstance(outcomes.error, NoRoute)
    scene.routes["T"] = a_route({"broker-a": 1})
    scene.connections.on(BROKER_A, send.SEND_MESSAGE_V2, STORED)
    for named in ({}, {"selector": by_hash, "key": "k"}):
        outcomes = Outcomes()
        begin(Producer(scene.client, "g"), outcomes, **named)
        assert outcomes[0].queue_offset == 7


def test_a_broker_without_address_is_passed_over(two: Scene) -> None:
    two.client.brokers.keep([])
    two.client.brokers.update(two.routes["T"].broker_datas[1:])
    two.routes["T"] = a_route({"broker-b": 1})
    for _ in range(2):
        outcomes = Outcomes()
        begin(Producer(two.client, "g"), outcomes)
        assert outcomes[0].queue.broker_name == "broker-b"


@pytest.mark.parametrize("first", [refusal(2), RequestTimeout("late"), ConnectError("refused")])
def test_another_broker_is_asked_when_the_answer_has_come(two: Scene, first: Any) -> None:
    pending, outcomes = waits_for_answers(two), Outcomes()
    begin(Producer(two.client, "g"), outcomes)
    pending[0].resolve(first)
    assert outcomes == []
    one, other = (each[0] for each in two.connections.asked if each[1] is send.SEND_MESSAGE_V2)
    assert one != other
    pending[1].resolve(STORED)
    assert outcomes[0].queue_offset == 7


def test_all_attempts_count(two: Scene) -> None:
    pending, outcomes = waits_for_answers(two), Outcomes()
    begin(Producer(two.client, "g", ProducerConfig(retry_times=2)), outcomes)
    for index in range(3):
        assert outcomes == []
        assert len(pending) == index + 1
        pending[index].resolve(refusal(2))
    assert isinstance(outcomes.error, SendFailed)
    assert len(outcomes.error.attempts) == 3


def test_to_a_given_queue_there_is_one_attempt(two: Scene) -> None:
    pending, outcomes = waits_for_answers(two), Outcomes()
    begin(Producer(two.client, "g"), outcomes, queue=QUEUE)
    pending[0].resolve(refusal(2))
    assert isinstance(outcomes.error, MQBrokerError)
    assert len(pending) == 1


def test_what_is_not_safe_is_sent_again_where_that_is_wanted(two: Scene) -> None:
    pending, outcomes = waits_for_answers(two), Outcomes()
    config = ProducerConfig(retry_another_broker_when_not_store_ok=True)
    begin(Producer(two.client, "g", config), outcomes)
    pending[0].resolve(refusal(10))
    assert (len(pending), outcomes) == (2, [])
    pending[1].resolve(refusal(13))  # which no other broker would take either
    assert outcomes[0].status is SendStatus.FLUSH_DISK_TIMEOUT


def test_what_is_stored_counts_also_if_the_topic_has_no_queue_any_more(two: Scene) -> None:
    pending, outcomes = waits_for_answers(two), Outcomes()
    config = ProducerConfig(retry_another_broker_when_not_store_ok=True)
    begin(Producer(two.client, "g", config), outcomes)
    two.client.routes.forget("T")
    del two.routes["T"]
    pending[0].resolve(refusal(10))
    assert outcomes[0].status is SendStatus.FLUSH_DISK_TIMEOUT


def test_the_last_attempt_waits_for_a_broker_that_is_left_alone(two: Scene) -> None:
    pending, outcomes = waits_for_answers(two), Outcomes()
    begin(Producer(two.client, "g"), outcomes, queue=QUEUE)
    pending[0].resolve(ConnectError("refused", 500))
    assert len(pending) == 1
    two.time.advance(0.5)
    pending[1].resolve(STORED)
    assert outcomes[0].queue_offset == 7


def test_an_attempt_may_have_less_time_than_the_send(two: Scene) -> None:
    config = ProducerConfig(send_max_timeout_per_request_ms=200)
    for timeout_ms in (100, 3_000):
        begin(Producer(two.client, "g", config), Outcomes(), timeout_ms=timeout_ms)
    limits = [ms for _, call, _, _, ms in two.connections.asked if call is send.SEND_MESSAGE_V2]
    assert limits == [100, 200]


def test_the_time_begins_when_the_route_is_known(two: Scene) -> None:
    route, outcomes = PendingReply(), Outcomes()
    two.connections.on(NAME_SERVER, GET_ROUTEINFO_BY_TOPIC, route)
    producer = Producer(two.client, "g")
    producer._begin_send(outcomes, Message("U", b"x"))
    two.time.advance(2.9)
    route.resolve(Reply(body=a_route({"broker-a": 1}).encode()))
    assert outcomes[0].queue_offset == 7
    assert two.connections.asked[-1][-1] == 3_000


def test_without_time_nothing_leaves(two: Scene) -> None:
    outcomes = Outcomes()
    begin(Producer(two.client, "g"), outcomes, timeout_ms=-1)
    assert str(outcomes.error) == (
        "sending to topic T failed: the timeout of -1 ms expired before the message was sent"
    )
    assert (outcomes.error.attempts, outcomes.error.code) == ((), 10002)


class Seen:
    """A hook."""

    def __init__(self) -> None:
        self.errors: list[Exception | None] = []

    def before_send(self, context: SendContext) -> None:
        """Nothing yet."""

    def after_send(self, context: SendContext) -> None:
        self.errors.append(context.error)


def test_it_can_be_cancelled_while_an_answer_is_waited_for(two: Scene) -> None:
    pending, outcomes, seen = waits_for_answers(two), Outcomes(), Seen()
    producer = Producer(two.client, "g")
    producer.add_send_hook(seen)
    sending = begin(producer, outcomes)
    sending.cancel()
    sending.cancel()
    assert isinstance(outcomes.error, CancelledError)
    assert [type(each) for each in seen.errors] == [CancelledError]
    pending[0].resolve(STORED)  # too late
    assert len(outcomes) == len(pending) == len(seen.errors) == 1


def test_it_can_be_cancelled_in_a_later_attempt(two: Scene) -> None:
    pending, outcomes = waits_for_answers(two), Outcomes()
    sending = begin(Producer(two.client, "g"), outcomes)
    pending[0].resolve(refusal(2))
    sending.cancel()
    assert isinstance(outcomes.error, CancelledError)
    pending[1].resolve(STORED)
    assert len(outcomes) == 1


def test_cancelling_what_is_over_changes_nothing(two: Scene) -> None:
    outcomes = Outcomes()
    sending = begin(Producer(two.client, "g"), outcomes)
    sending.cancel()
    assert outcomes[0].queue_offset == 7
