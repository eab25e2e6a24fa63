# SPDX-License-Identifier: Apache-2.0
"""Concurrent consumption: how many at once, what is sent back, what may be committed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from twisted.internet.defer import Deferred, succeed
from twisted.internet.task import Clock as ReactorClock
from twisted.logger import LogLevel, capturedLogs, formatEvent

from txrocketmq.client.consumer.config import MessageModel, PushConsumerConfig
from txrocketmq.client.consumer.listening.concurrent import (
    EXPIRED_DELAY_LEVEL,
    RETRY_MS,
    ConcurrentConsumption,
)
from txrocketmq.client.consumer.listening.listener import (
    Calls,
    ConsumeContext,
    ConsumeOrderlyStatus,
    ConsumeStatus,
)
from txrocketmq.client.consumer.listening.statistics import ConsumerStatistics
from txrocketmq.client.consumer.queue.process_queue import ProcessQueue
from txrocketmq.client.thread.executor import Elsewhere, Ended, Outbox, ThreadCrew
from txrocketmq.remoting.host.clock import Clock
from txrocketmq.remoting.message.message import MessageExt, MessageQueue

QUEUE = MessageQueue("T", "broker-a", 0)
LATER = ConsumeStatus.RECONSUME_LATER


class Scene:
    """One queue that is consumed; `answer` is the listener's, `took_back` the broker's."""

    def __init__(self, **config: Any) -> None:
        self.time = ReactorClock()
        self.at_hand = ProcessQueue(QUEUE, 0)
        self.calls: list[list[int]] = []
        self.topics: list[str] = []
        self.sent_back: list[tuple[int, int]] = []
        self.noted: list[int] = []
        self.answer: Any = None
        self.took_back = True
        self.listener_calls = Calls(Clock(self.time), self.make_listener(), 0, group="g")
        self.consumption = ConcurrentConsumption(
            Clock(self.time),
            PushConsumerConfig(**config),
            self.listener_calls,
            self._send_back,
            lambda queue, offset: self.noted.append(offset),
            ConsumerStatistics(),
        )

    def make_listener(self) -> Any:
        return self._listen

    def _listen(self, messages: list[MessageExt], context: ConsumeContext) -> Any:
        self.calls.append([each.queue_offset for each in messages])
        self.topics += [each.topic for each in messages]
        return self.answer(messages, context) if callable(self.answer) else self.answer

    async def _send_back(self, message: MessageExt, delay_level: int) -> bool:
        self.sent_back.append((message.queue_offset, delay_level))
        return self.took_back

    def pull(self, *offsets: int) -> None:
        messages = [MessageExt("T", b"x", queue_offset=offset) for offset in offsets]
        self.consumption.put(self.at_hand, self.at_hand.put(messages))
        self.time.advance(0)


def test_what_succeeds_may_be_committed() -> None:
    scene = Scene()
    scene.pull(1, 2)
    assert (scene.calls, scene.noted, scene.at_hand.count) == ([[1], [2]], [3], 0)


def test_batches_are_no_larger_than_wanted() -> None:
    scene = Scene(consume_message_batch_max_size=2)
    scene.pull(1, 2, 3)
    assert scene.calls == [[1, 2], [3]]


def test_no_more_are_consumed_at_once_than_wanted() -> None:
    waiting: list[Deferred[None]] = [Deferred(), Deferred(), Deferred()]
    answers = iter(waiting)
    scene = Scene(consume_concurrency=2)
    scene.answer = lambda *_: next(answers)
    scene.pull(1, 2, 3)
    assert scene.calls == [[1], [2]]
    waiting[1].callback(None)
    scene.time.advance(0)
    assert scene.calls == [[1], [2], [3]]
    assert scene.noted == [1]  # the first still holds the offset back


def boom(*_: Any) -> None:
    raise RuntimeError("boom")


async def later(*_: Any) -> ConsumeStatus:
    return LATER


async def true(*_: Any) -> bool:
    return True


@pytest.mark.parametrize("answer", [True, ["done"], true, ConsumeOrderlyStatus.SUCCESS])
def test_what_is_no_status_comes_again_and_is_logged_once(answer: Any) -> None:
    scene = Scene()
    scene.answer = answer
    with capturedLogs() as logged:
        scene.pull(1, 2)
    assert (scene.sent_back, scene.noted) == ([(1, 0), (2, 0)], [2, 3])
    (event,) = logged
    assert event["log_level"] is LogLevel.error
    assert "the listener Scene._listen of group g returned " in formatEvent(event)
    assert "ConsumeStatus.CONSUME_SUCCESS, ConsumeStatus.RECONSUME_LATER" in formatEvent(event)


@pytest.mark.parametrize("answer", [LATER, boom, later])
def test_what_fails_is_sent_back_and_then_done(answer: Any) -> None:
    scene = Scene()
    scene.answer = answer
    scene.pull(1)
    assert (scene.sent_back, scene.noted, scene.at_hand.count) == ([(1, 0)], [2], 0)


async def boom_later(*_: Any) -> None:
    raise RuntimeError("boom")


@pytest.mark.parametrize("answer", [boom, boom_later])
@pytest.mark.parametrize(
    ("setting", "fate"),
    [
        ({}, "will be delivered again"),
        ({"max_reconsume_times": 0}, "will be a dead letter in the topic %DLQ%g"),
        ({"message_model": MessageModel.BROADCASTING}, "will not be delivered again"),
    ],
)
def test_an_error_says_what_becomes_of_the_message(
    answer: Any, setting: dict[str, Any], fate: str
) -> None:
    scene = Scene(**setting)
    scene.answer = answer
    with capturedLogs() as logged:
        scene.pull(1)
    assert f"attempt 1, which {fate}" in formatEvent(logged[0])


def test_a_listener_that_gives_a_message_up_is_told_that_it_is_a_dead_letter() -> None:
    def give_up(_: list[MessageExt], context: ConsumeContext) -> None:
        context.delay_level = -1
        raise RuntimeError("boom")

    scene = Scene()
    scene.answer = give_up
    with capturedLogs() as logged:
        scene.pull(1)
    assert scene.sent_back == [(1, -1)]
    assert "which will be a dead letter in the topic %DLQ%g: " in formatEvent(logged[0])


def test_the_listener_says_how_many_succeeded_and_when_the_others_come_again() -> None:
    def first_only(_: list[MessageExt], context: ConsumeContext) -> None:
        context.ack_index, context.delay_level = 0, 4

    scene = Scene(consume_message_batch_max_size=3)
    scene.answer = first_only
    scene.pull(1, 2, 3)
    assert scene.sent_back == [(2, 4), (3, 4)]


def test_what_nobody_takes_back_is_consumed_here_again() -> None:
    scene = Scene()
    scene.answer, scene.took_back = LATER, False
    scene.pull(1)
    assert (scene.noted, scene.at_hand.count) == ([1], 1)
    scene.answer = None
    scene.time.advance(RETRY_MS / 1000)
    assert (scene.calls, scene.noted, scene.at_hand.count) == ([[1], [1]], [1, 2], 0)


def test_messages_of_a_queue_that_was_given_up_are_left_alone() -> None:
    scene = Scene(consume_concurrency=1)
    waiting: Deferred[None] = Deferred()
    scene.answer = waiting
    scene.pull(1, 2)
    scene.at_hand.dropped = True
    waiting.callback(None)
    scene.time.advance(0)
    assert (scene.calls, scene.noted, scene.sent_back) == ([[1]], [], [])


def test_at_the_end_what_is_at_work_is_waited_for_and_nothing_is_begun() -> None:
    scene = Scene(consume_concurrency=1)
    waiting: Deferred[None] = Deferred()
    scene.answer = waiting
    scene.pull(1, 2)
    idle = scene.consumption.when_idle()
    assert not idle.called
    waiting.callback(None)
    scene.time.advance(0)
    assert idle.called
    assert scene.calls == [[1]]
    assert scene.consumption.when_idle().called


def test_what_takes_too_long_is_sent_back() -> None:
    scene = Scene(consume_timeout_ms=1_000)
    scene.answer = Deferred()
    scene.pull(1)
    scene.time.advance(1.5)
    Deferred.fromCoroutine(scene.consumption.send_back_expired(scene.at_hand))
    assert (scene.sent_back, scene.noted) == ([(1, EXPIRED_DELAY_LEVEL)], [2])


def test_a_message_that_comes_again_has_its_first_topic() -> None:
    scene = Scene()
    scene.at_hand = ProcessQueue(MessageQueue("%RETRY%g", "broker-a", 0), 0)
    message = MessageExt("%RETRY%g", b"x", properties={"RETRY_TOPIC": "T"})
    scene.consumption.put(scene.at_hand, scene.at_hand.put([message]))
    assert scene.topics == ["T"]


def test_listeners_that_answer_at_once_leave_the_reactor_its_turns() -> None:
    scene = Scene()

    def slow(*_: Any) -> None:
        scene.time.rightNow += 0.009  # it blocks so long

    scene.answer = slow
    scene.consumption.put(
        scene.at_hand,
        scene.at_hand.put([MessageExt("T", b"x", queue_offset=each) for each in range(7)]),
    )
    assert (len(scene.calls), scene.noted) == (3, [3])
    for _ in range(3):
        scene.time.advance(0)
    assert (len(scene.calls), scene.noted) == (7, [3, 6, 7])


def test_what_is_consumed_of_several_queues_is_done_in_each() -> None:
    scene = Scene(consume_concurrency=1)
    other = ProcessQueue(MessageQueue("T", "broker-a", 1), 0)
    waiting: Deferred[None] = Deferred()
    scene.answer = waiting
    scene.pull(1)
    scene.pull(2)
    scene.consumption.put(other, other.put([MessageExt("T", b"x", queue_offset=9)]))
    scene.answer = None
    waiting.callback(None)
    scene.time.advance(0)
    assert (scene.noted, scene.at_hand.count, other.count) == ([2, 3, 10], 0, 0)


class CrewScene(Scene):
    """The listener is called by a crew, whose one member comes when the test says so."""

    def __init__(self, **config: Any) -> None:
        self.members: list[Callable[[], None]] = []
        super().__init__(**config)

    def make_listener(self) -> Any:
        def crew(most: int, ended: Ended, clock: Clock) -> ThreadCrew:
            outbox = Outbox(lambda call: self.time.callLater(0, call), ended)
            return ThreadCrew(self._listen, most, self.submit, outbox, clock)

        return Elsewhere(lambda *arguments: succeed(self._listen(*arguments)), crew)

    def submit(self, member: Callable[[], None]) -> None:
        self.members.append(member)

    def work(self) -> None:
        members, self.members[:] = list(self.members), []
        for each in members:
            each()
        self.time.advance(0)


def test_a_crew_gets_all_that_is_at_hand_and_what_succeeds_is_done_together() -> None:
    scene = CrewScene()
    scene.pull(1, 2, 3)
    assert (scene.calls, scene.noted, scene.at_hand.count) == ([], [], 3)
    scene.work()
    assert (scene.calls, scene.noted, scene.at_hand.count) == ([[1], [2], [3]], [4], 0)


@pytest.mark.parametrize("answer", [LATER, boom, later])
def test_what_fails_with_a_crew_is_sent_back_and_then_done(answer: Any) -> None:
    scene = CrewScene()
    scene.answer = lambda messages, context: (
        None if messages[0].queue_offset == 2 else answer(messages, context)
        if callable(answer) else answer
    )  # fmt: skip
    scene.pull(1, 2)
    scene.work()
    assert (scene.calls, scene.sent_back, scene.at_hand.count) == ([[1], [2]], [(1, 0)], 0)
    assert scene.noted[-1] == 3


def test_what_is_no_status_comes_again_with_a_crew_and_is_logged_once() -> None:
    scene = CrewScene()
    scene.answer = True
    with capturedLogs() as logged:
        scene.pull(1, 2)
        scene.work()
    assert scene.sent_back == [(1, 0), (2, 0)]
    assert [event["log_level"] for event in logged] == [LogLevel.error]


def test_with_a_crew_the_listener_says_how_many_succeeded() -> None:
    def first_only(_: list[MessageExt], context: ConsumeContext) -> None:
        context.ack_index, context.delay_level = 0, 4

    scene = CrewScene(consume_message_batch_max_size=3)
    scene.answer = first_only
    scene.pull(1, 2, 3)
    scene.work()
    assert scene.sent_back == [(2, 4), (3, 4)]


def test_a_crew_does_not_begin_messages_of_a_queue_that_was_given_up() -> None:
    scene = CrewScene()
    scene.pull(1)
    scene.at_hand.dropped = True
    scene.work()
    assert (scene.calls, scene.noted) == ([], [])
    assert scene.consumption.when_idle().called


def test_at_the_end_what_a_crew_has_not_begun_is_forgotten() -> None:
    scene = CrewScene()
    idle: list[Deferred[None]] = []

    def stop_once(*_: Any) -> None:
        if not idle:
            idle.append(scene.consumption.when_idle())
            assert not idle[0].called

    scene.answer = stop_once
    scene.pull(1, 2)
    scene.work()
    assert scene.calls == [[1]]
    assert idle[0].called
    scene.pull(3)
    scene.work()
    assert scene.calls == [[1]]


def test_the_time_of_a_message_begins_when_a_crew_calls_the_listener() -> None:
    scene = CrewScene()
    scene.pull(1)
    scene.time.advance(60)
    assert scene.at_hand.begun_before(10**9, 16) == []
    looked: list[list[MessageExt]] = []
    scene.answer = lambda *_: looked.append(scene.at_hand.begun_before(10**9, 16))
    scene.work()
    assert [each.queue_offset for each in looked[0]] == [1]


def test_what_no_crew_can_take_comes_again_here() -> None:
    """As what the executor of the original rejects: others of the group have no threads either."""

    class Nobody(CrewScene):
        has_threads = False

        def submit(self, member: Callable[[], None]) -> None:
            if not self.has_threads:
                raise RuntimeError("can't start new thread")
            super().submit(member)

    scene = Nobody()
    scene.pull(1, 2)
    assert (scene.calls, scene.sent_back, scene.noted) == ([], [], [])
    scene.time.advance(RETRY_MS / 1000)
    assert scene.calls == []
    scene.has_threads = True
    scene.time.advance(RETRY_MS / 1000)
    scene.work()
    assert (scene.calls, scene.sent_back, scene.noted[-1]) == ([[1], [2]], [], 3)
    assert scene.consumption.when_idle().called


def test_what_no_crew_could_take_is_left_alone_after_the_end() -> None:
    class Nobody(CrewScene):
        def submit(self, member: Callable[[], None]) -> None:
            raise RuntimeError("can't start new thread")

    scene = Nobody()
    scene.pull(1, 2)
    assert scene.consumption.when_idle().called
    scene.time.advance(RETRY_MS / 1000)
    assert (scene.calls, scene.time.getDelayedCalls()) == ([], [])


def test_hooks_see_the_calls_on_the_thread_of_the_client() -> None:
    scene = CrewScene()
    seen: list[int] = []

    def around(call: Callable[[], Any], messages: list[MessageExt], _: MessageQueue) -> Any:
        seen.append(messages[0].queue_offset)
        return call()

    scene.listener_calls.around = around
    scene.pull(1)
    assert (scene.members, seen, scene.calls, scene.noted) == ([], [1], [[1]], [2])
