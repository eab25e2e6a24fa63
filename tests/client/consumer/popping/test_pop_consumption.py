# SPDX-License-Identifier: Apache-2.0
"""Popped messages: what is acknowledged, hidden for how long, and what becomes a dead letter."""

from __future__ import annotations

from typing import Any, cast

import pytest
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock as ReactorClock

from txrocketmq.client.base.errors import MQClientError
from txrocketmq.client.consumer.config import PushConsumerConfig
from txrocketmq.client.consumer.listening.listener import Calls, ConsumeContext, ConsumeStatus
from txrocketmq.client.consumer.listening.statistics import ConsumerStatistics
from txrocketmq.client.consumer.popping.pop_consumption import DEAD, DELAYS_S, PopConsumption
from txrocketmq.client.consumer.popping.pop_queue import PoppedBatch, PopProcessQueue
from txrocketmq.client.consumer.popping.pop_requests import Popper
from txrocketmq.remoting.host.clock import Clock
from txrocketmq.remoting.message.message import MessageExt, MessageQueue

QUEUE = MessageQueue("T", "broker-a", -1)
LATER = ConsumeStatus.RECONSUME_LATER
INVISIBLE_MS = 60_000


class Scene:
    """One queue that is popped; `answer` is the listener's, `acked` what the broker heard."""

    def __init__(self, **config: Any) -> None:
        self.time = ReactorClock()
        self.queue = PopProcessQueue(QUEUE, 0)
        self.calls: list[list[int]] = []
        self.acked: list[list[int]] = []
        self.hidden: list[tuple[int, int]] = []
        self.dead: list[tuple[int, int]] = []
        self.answer: Any = None
        self.acking: Any = None
        self.hiding: Any = None
        self.takes_dead = True
        clock = Clock(self.time)
        self.consumption = PopConsumption(
            clock,
            PushConsumerConfig(**config),
            Calls(clock, self._listen, 0),
            cast(Popper, self),
            self._send_back,
            ConsumerStatistics(),
        )

    def _listen(self, messages: list[MessageExt], context: ConsumeContext) -> Any:
        self.calls.append([each.queue_offset for each in messages])
        return self.answer(messages, context) if callable(self.answer) else self.answer

    async def ack_quietly(self, messages: list[MessageExt]) -> None:
        self.acked.append([each.queue_offset for each in messages])
        if self.acking is not None:
            await self.acking

    async def change_invisible_time(self, message: MessageExt, invisible_ms: int) -> None:
        self.hidden.append((message.queue_offset, invisible_ms))
        if self.hiding is not None:
            raise self.hiding

    async def _send_back(self, message: MessageExt, delay_level: int) -> bool:
        self.dead.append((message.queue_offset, delay_level))
        return self.takes_dead

    def pop(self, *offsets: int, times: int = 0) -> None:
        messages = [
            MessageExt("T", b"x", queue_offset=offset, reconsume_times=times) for offset in offsets
        ]
        until_ms = int(self.time.seconds() * 1_000) + INVISIBLE_MS
        self.consumption.put(PoppedBatch(self.queue, len(messages), until_ms), messages)
        self.time.advance(0)


def test_what_one_pop_has_brought_is_acknowledged_together() -> None:
    scene = Scene()
    scene.pop(1, 2)
    scene.pop(7)
    assert (scene.calls, scene.acked, scene.queue.waiting) == ([[1], [2], [7]], [[1, 2], [7]], 0)


def test_messages_wait_until_the_broker_knows() -> None:
    scene = Scene()
    scene.acking = Deferred()
    scene.pop(1, 2)
    assert (scene.acked, scene.queue.waiting) == ([[1, 2]], 2)
    ends: list[None] = []
    scene.consumption.when_idle().addCallback(ends.append)
    assert ends == []
    scene.acking.callback(None)
    assert (scene.queue.waiting, ends) == (0, [None])


@pytest.mark.parametrize(("times", "seconds"), [(0, 10), (1, 30), (15, 7_200)])
def test_what_fails_is_hidden_for_longer_each_time(times: int, seconds: int) -> None:
    scene = Scene()
    scene.answer = LATER
    scene.pop(1, times=times)
    assert (scene.hidden, scene.acked, scene.queue.waiting) == ([(1, seconds * 1_000)], [], 0)


def test_the_listener_says_how_many_succeeded_and_when_the_others_come_again() -> None:
    def first_only(_: list[MessageExt], context: ConsumeContext) -> None:
        context.ack_index, context.delay_level = 0, 4

    scene = Scene(consume_message_batch_max_size=3)
    scene.answer = first_only
    scene.pop(1, 2, 3)
    delay_ms = DELAYS_S[4] * 1_000
    assert (scene.acked, scene.hidden) == ([[1]], [(2, delay_ms), (3, delay_ms)])
    assert scene.queue.waiting == 0


def never(_: list[MessageExt], context: ConsumeContext) -> ConsumeStatus:
    context.delay_level = DEAD
    return LATER


@pytest.mark.parametrize(("answer", "times"), [(never, 0), (LATER, 2)])
def test_what_is_not_to_come_again_becomes_a_dead_letter(answer: Any, times: int) -> None:
    scene = Scene(max_reconsume_times=2)
    scene.answer = answer
    scene.pop(1, times=times)
    assert (scene.dead, scene.acked, scene.hidden) == ([(1, DEAD)], [[1]], [])


def test_what_cannot_become_a_dead_letter_comes_again() -> None:
    scene = Scene(max_reconsume_times=2)
    scene.answer, scene.takes_dead = LATER, False
    scene.pop(1, times=2)
    assert (scene.acked, scene.hidden) == ([], [(1, 60_000)])


def test_what_came_too_often_without_an_answer_is_not_consumed_once_more() -> None:
    scene = Scene(max_reconsume_times=2)
    scene.pop(1, 2, times=3)
    assert (scene.calls, scene.dead, scene.acked) == ([], [(1, DEAD), (2, DEAD)], [[1], [2]])
    assert scene.queue.waiting == 0


def test_nothing_is_said_of_messages_whose_time_is_over() -> None:
    scene = Scene(consume_concurrency=1)
    scene.answer = waiting = Deferred[None]()
    scene.pop(1, 2)
    scene.time.advance(INVISIBLE_MS / 1_000)
    scene.answer = None
    waiting.callback(None)
    scene.time.advance(0)
    assert (scene.calls, scene.acked, scene.hidden) == ([[1]], [], [])
    assert scene.queue.waiting == 0


def test_nothing_is_said_of_messages_of_a_queue_that_was_dropped() -> None:
    scene = Scene()
    scene.answer = waiting = Deferred[None]()
    scene.pop(1)
    scene.queue.dropped = True
    waiting.callback(None)
    scene.pop(2)
    assert (scene.calls, scene.acked, scene.hidden) == ([[1]], [], [])


def test_what_cannot_be_hidden_comes_again_by_itself() -> None:
    scene = Scene()
    scene.answer, scene.hiding = LATER, MQClientError("gone")
    scene.pop(1, 2)
    assert ([offset for offset, _ in scene.hidden], scene.queue.waiting) == ([1, 2], 0)
