# SPDX-License-Identifier: Apache-2.0
"""Consumption in order: turns, locks, what comes again, what is committed together."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock as ReactorClock
from twisted.logger import LogLevel, capturedLogs, formatEvent

from txrocketmq.client.consumer.config import MessageModel, PushConsumerConfig
from txrocketmq.client.consumer.listening.listener import (
    Calls,
    ConsumeOrderlyContext,
    ConsumeOrderlyStatus,
    ConsumeStatus,
)
from txrocketmq.client.consumer.listening.orderly import (
    FIRST_LOCK_MS,
    FOR_EVER,
    LOCK_SOON_MS,
    MAX_CONTINUOUSLY_MS,
    NOT_LOCKED_MS,
    OrderlyConsumption,
)
from txrocketmq.client.consumer.listening.statistics import ConsumerStatistics
from txrocketmq.client.consumer.queue.process_queue import LOCK_MAX_LIVE_MS, ProcessQueue
from txrocketmq.remoting.host.clock import Clock
from txrocketmq.remoting.message.message import MessageExt, MessageQueue

QUEUE = MessageQueue("T", "broker-a", 0)
SUSPEND = ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT


class Scene:
    """One queue; `answer` is the listener's, `grants` the broker's when asked for the lock."""

    def __init__(self, *, locked: bool = True, **config: Any) -> None:
        self.time = ReactorClock()
        self.clock = Clock(self.time)
        self.at_hand = ProcessQueue(QUEUE, 0)
        self.at_hand.locked = locked
        self.calls: list[list[int]] = []
        self.sent: list[tuple[int, int]] = []
        self.noted: list[int] = []
        self.asked = 0
        self.grants = True
        self.answer: Any = None
        self.statistics = ConsumerStatistics()
        self.consumption = OrderlyConsumption(
            self.clock,
            PushConsumerConfig(**config),
            Calls(self.clock, self._listen, 0),
            self._send,
            lambda queue, offset: self.noted.append(offset),
            self._lock,
            self.statistics,
        )

    def _listen(self, messages: list[MessageExt], context: ConsumeOrderlyContext) -> Any:
        self.calls.append([each.queue_offset for each in messages])
        return self.answer(messages, context) if callable(self.answer) else self.answer

    async def _send(self, message: MessageExt, most: int) -> bool:
        self.sent.append((message.queue_offset, most))
        return True

    async def _lock(self, process_queue: ProcessQueue) -> bool:
        self.asked += 1
        if self.grants:
            process_queue.locked = True
            process_queue.last_lock_ms = self.clock.steady_ms()
        return self.grants

    def pull(self, *offsets: int) -> None:
        messages = [MessageExt("T", b"x", queue_offset=offset) for offset in offsets]
        self.consumption.put(self.at_hand, self.at_hand.put(messages))

    def pass_ms(self, ms: float) -> None:
        self.time.advance(ms / 1000)


def test_messages_come_one_after_the_other() -> None:
    scene = Scene()
    answers: list[Deferred[None]] = []

    def wait(*_: Any) -> Deferred[None]:
        answers.append(Deferred())
        return answers[-1]

    scene.answer = wait
    scene.pull(1, 2)
    scene.pull(3)
    assert scene.calls == [[1]]
    answers[0].callback(None)
    assert (scene.calls, scene.noted) == ([[1], [2]], [2])
    answers[1].callback(None)
    answers[2].callback(None)
    assert (scene.calls, scene.noted, scene.at_hand.consuming) == (
        [[1], [2], [3]],
        [2, 3, 4],
        False,
    )
    scene.answer = None
    scene.pull(4)
    scene.pass_ms(0)
    assert scene.calls[-1] == [4]


def test_what_fails_comes_again_after_a_moment_and_before_the_next() -> None:
    scene = Scene(suspend_current_queue_ms=500)
    scene.answer = SUSPEND
    scene.pull(1, 2)
    assert (scene.calls, scene.noted) == ([[1]], [])
    scene.pass_ms(499)
    assert scene.calls == [[1]]
    scene.answer = None
    scene.pass_ms(1)
    assert (scene.calls, scene.noted) == ([[1], [1], [2]], [2, 3])


@pytest.mark.parametrize(("wanted_ms", "waits_ms"), [(1, 10), (99_000, 30_000), (-1, 1_000)])
def test_the_listener_may_say_how_long_the_queue_rests(wanted_ms: int, waits_ms: int) -> None:
    scene = Scene()

    def fail(_: Any, context: ConsumeOrderlyContext) -> ConsumeOrderlyStatus:
        context.suspend_ms = wanted_ms
        return SUSPEND

    scene.answer = fail
    scene.pull(1)
    scene.pass_ms(waits_ms - 2)
    assert len(scene.calls) == 1
    scene.at_hand.last_lock_ms = scene.clock.steady_ms()
    scene.pass_ms(2)
    assert len(scene.calls) == 2


def test_an_error_of_the_listener_is_a_failure() -> None:
    scene = Scene()

    def fail(*_: Any) -> None:
        raise OSError("no disk")

    scene.answer = fail
    scene.pull(1)
    assert (scene.calls, scene.noted, scene.at_hand.waiting) == ([[1]], [], 1)


def test_what_is_no_status_is_a_failure_and_logged_once() -> None:
    scene = Scene()
    scene.answer = ConsumeStatus.CONSUME_SUCCESS
    with capturedLogs() as logged:
        scene.pull(1)
        scene.time.advance(1)
    assert scene.calls == [[1], [1]]
    assert scene.noted == []
    (event,) = logged
    assert event["log_level"] is LogLevel.error
    assert "ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT" in formatEvent(event)


def test_what_fails_too_often_goes_to_the_retry_topic() -> None:
    scene = Scene(max_reconsume_times=1)
    scene.answer = SUSPEND
    scene.pull(1)
    scene.pass_ms(1_000)
    assert (scene.calls, scene.sent, scene.noted) == ([[1], [1]], [(1, 1)], [2])


@pytest.mark.parametrize(
    ("most", "fate"), [(-1, "be delivered again"), (0, "be a dead letter in the topic %DLQ%")]
)
def test_an_error_says_what_becomes_of_the_message(most: int, fate: str) -> None:
    scene = Scene(max_reconsume_times=most)

    def fail(*_: Any) -> None:
        raise OSError("no disk")

    scene.answer = fail
    with capturedLogs() as logged:
        scene.pull(1)
    assert f"attempt 1, which will {fate}" in formatEvent(logged[0])
    assert scene.sent == ([] if most < 0 else [(1, 0)])


def test_without_a_limit_it_comes_again_for_ever() -> None:
    scene = Scene()
    scene.answer = SUSPEND
    scene.pull(1)
    for _ in range(20):
        scene.at_hand.last_lock_ms = scene.clock.steady_ms()
        scene.pass_ms(1_000)
    assert (len(scene.calls), scene.sent) == (21, [])
    assert FOR_EVER == 2**31 - 1


def commits_every(count: int) -> Any:
    def listen(messages: list[MessageExt], context: ConsumeOrderlyContext) -> ConsumeOrderlyStatus:
        context.auto_commit = False
        is_last = messages[-1].queue_offset % count == count - 1
        return ConsumeOrderlyStatus.COMMIT if is_last else ConsumeOrderlyStatus.SUCCESS

    return listen


def test_a_listener_may_commit_several_batches_together() -> None:
    scene = Scene()
    scene.answer = commits_every(3)
    scene.pull(0, 1, 2, 3, 4)
    assert (scene.noted, scene.at_hand.count) == ([3], 2)


def test_a_listener_may_roll_back_what_it_has_not_committed() -> None:
    scene = Scene()

    def listen(messages: list[MessageExt], context: ConsumeOrderlyContext) -> ConsumeOrderlyStatus:
        context.auto_commit = False
        fails = messages[0].queue_offset == 2 and len(scene.calls) < 4
        return ConsumeOrderlyStatus.ROLLBACK if fails else ConsumeOrderlyStatus.SUCCESS

    scene.answer = listen
    scene.pull(0, 1, 2)
    assert (scene.calls, scene.at_hand.waiting) == ([[0], [1], [2]], 3)
    scene.pass_ms(1_000)
    assert scene.calls == [[0], [1], [2], [0], [1], [2]]
    assert scene.noted == []


@pytest.mark.parametrize("status", [ConsumeOrderlyStatus.COMMIT, ConsumeOrderlyStatus.ROLLBACK])
def test_commit_and_rollback_are_success_for_a_listener_that_commits_each(status: Any) -> None:
    scene = Scene()
    scene.answer = status
    scene.pull(1)
    assert scene.noted == [2]


def test_without_the_lock_nothing_is_consumed() -> None:
    scene = Scene(locked=False)
    scene.grants = False
    scene.pull(1)
    scene.pass_ms(FIRST_LOCK_MS)
    assert (scene.asked, scene.calls) == (1, [])
    scene.grants = True
    scene.pass_ms(NOT_LOCKED_MS)
    scene.pass_ms(FIRST_LOCK_MS)
    assert (scene.asked, scene.calls) == (2, [])
    scene.pass_ms(LOCK_SOON_MS)
    assert scene.calls == [[1]]


def test_a_lock_that_expires_meanwhile_is_asked_for_again() -> None:
    scene = Scene()
    waiting: Deferred[None] = Deferred()
    scene.answer = lambda *_: waiting
    scene.pull(1, 2)
    scene.pass_ms(LOCK_MAX_LIVE_MS + 1)
    scene.answer = None
    waiting.callback(None)
    assert (scene.calls, scene.noted, scene.asked) == ([[1]], [2], 0)
    scene.pass_ms(LOCK_SOON_MS)
    scene.pass_ms(LOCK_SOON_MS)
    assert (scene.calls, scene.asked) == ([[1], [2]], 1)


def test_in_broadcasting_nothing_is_locked() -> None:
    scene = Scene(locked=False, message_model=MessageModel.BROADCASTING)
    scene.pull(1)
    assert (scene.calls, scene.asked) == ([[1]], 0)


def test_after_a_minute_others_get_their_turn() -> None:
    scene = Scene(consume_concurrency=1)
    other = ProcessQueue(MessageQueue("T", "broker-a", 1), 0)
    other.locked = True

    def slow(*_: Any) -> Deferred[None]:
        scene.at_hand.last_lock_ms = other.last_lock_ms = scene.clock.steady_ms() + 20_001
        return scene.clock.pause(20_001)

    scene.answer = slow
    scene.pull(*range(9))
    scene.consumption.put(other, other.put([MessageExt("T", b"x", queue_offset=77)]))
    for _ in range(MAX_CONTINUOUSLY_MS // 20_001 + 1):
        scene.pass_ms(20_001)
    scene.pass_ms(0)
    assert scene.calls == [[0], [1], [2], [77]]


def test_a_dropped_queue_is_consumed_no_further_and_commits_nothing() -> None:
    scene = Scene()
    waiting: Deferred[None] = Deferred()
    scene.answer = lambda *_: waiting
    scene.pull(1, 2)
    scene.at_hand.dropped = True
    left = scene.consumption.when_left(scene.at_hand)
    assert not left.called
    waiting.callback(None)
    assert left.called
    assert (scene.calls, scene.noted) == ([[1]], [])
    assert scene.consumption.when_left(scene.at_hand).called


def test_the_end_waits_for_the_listener_and_begins_nothing() -> None:
    scene = Scene()
    waiting: Deferred[None] = Deferred()
    scene.answer = lambda *_: waiting
    scene.pull(1, 2)
    idle = scene.consumption.when_idle()
    assert not idle.called
    waiting.callback(None)
    assert idle.called
    assert (scene.calls, scene.noted) == ([[1]], [2])


def test_what_was_consumed_and_what_failed_is_counted() -> None:
    scene = Scene()
    scene.answer = SUSPEND
    scene.pull(1)
    scene.answer = None
    scene.pass_ms(1_000)
    scene.statistics.sample(10_000)
    status = scene.statistics.status("T")
    assert (status.consume_ok_tps, status.consume_failed_tps) == (0.1, 0.1)


@given(st.lists(st.sampled_from(["ok", "suspend", "raise"]), max_size=30), st.integers(1, 3))
def test_whatever_fails_each_message_is_consumed_in_its_order(plan: list[str], size: int) -> None:
    scene = Scene(consume_message_batch_max_size=size, suspend_current_queue_ms=10)
    steps = iter(plan)
    consumed: list[int] = []

    def listen(messages: list[MessageExt], _: Any) -> Any:
        step = next(steps, "ok")
        if step == "raise":
            raise OSError
        if step == "suspend":
            return SUSPEND
        consumed.extend(each.queue_offset for each in messages)
        return None

    scene.answer = listen
    scene.pull(*range(12))
    for _ in range(len(plan) + 1):
        scene.pass_ms(10)
    assert consumed == list(range(12))
    assert (scene.noted[-1], scene.at_hand.count, scene.at_hand.size_bytes) == (12, 0, 0)
