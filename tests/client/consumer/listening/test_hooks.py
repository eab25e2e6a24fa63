# SPDX-License-Identifier: Apache-2.0
"""Hooks around the calls of listeners: what they see, whatever way a listener ends."""

from __future__ import annotations

from typing import Any

import pytest
from twisted.internet.defer import Deferred

from tests.client.consumer.fake_broker import QUEUE, Broker, Listener, found
from tests.client.fakes import Scene, result_of
from txrocketmq.client.consumer.config import LitePullConsumerConfig, PushConsumerConfig
from txrocketmq.client.consumer.listening.hooks import ConsumeHookContext, ConsumeReturnType
from txrocketmq.client.consumer.listening.listener import ConsumeOrderlyStatus, ConsumeStatus
from txrocketmq.client.consumer.lite_pull import LitePullConsumer
from txrocketmq.client.consumer.push import PushConsumer
from txrocketmq.remoting.message.message import MessageExt


class Hook:
    """Remembers what it saw, and fails if it is told to."""

    def __init__(self) -> None:
        self.before: list[list[bytes]] = []
        self.after: list[tuple[Any, Any, Any]] = []
        self.context: ConsumeHookContext | None = None
        self.fails = False

    def before_consume(self, context: ConsumeHookContext) -> None:
        self.before.append([each.body for each in context.messages])
        self.context = context
        if self.fails:
            raise RuntimeError("boom")

    def after_consume(self, context: ConsumeHookContext) -> None:
        assert context is self.context
        assert context.return_type is not None
        self.after.append((context.success, context.status, context.return_type))


def consumer_with(
    scene: Scene, hook: Hook, listener: Any, *, orderly: bool = False, **config: Any
) -> PushConsumer:
    consumer = PushConsumer(
        scene.client, "g", {"T": "*"}, listener, orderly=orderly,
        config=PushConsumerConfig(**config),
    )  # fmt: skip
    consumer.add_consume_hook(hook)
    result_of(consumer.start())
    return consumer


def boom(*_: Any) -> None:
    raise ValueError("no")


async def later(*_: Any) -> ConsumeStatus:
    return ConsumeStatus.RECONSUME_LATER


async def boom_later(*_: Any) -> None:
    raise ValueError("no")


@pytest.mark.parametrize(
    ("listener", "success", "status", "return_type"),
    [
        (Listener(), True, None, ConsumeReturnType.SUCCESS),
        (boom, False, None, ConsumeReturnType.EXCEPTION),
        (boom_later, False, None, ConsumeReturnType.EXCEPTION),
        (later, False, ConsumeStatus.RECONSUME_LATER, ConsumeReturnType.FAILED),
        (lambda *_: True, False, True, ConsumeReturnType.FAILED),
        (lambda *_: ["done"], False, ["done"], ConsumeReturnType.FAILED),
    ],
)
def test_a_hook_sees_how_a_listener_ends(
    scene: Scene, broker: Broker, listener: Any, success: bool, status: Any, return_type: Any
) -> None:
    hook = Hook()
    broker.answers = [found(6, 5)]
    consumer = consumer_with(scene, hook, listener)
    assert (hook.before, hook.after) == ([[b"m5"]], [(success, status, return_type)])
    assert hook.context is not None
    assert (hook.context.group, hook.context.queue) == ("g", QUEUE)
    assert (hook.context.error is None) == (return_type is not ConsumeReturnType.EXCEPTION)
    assert broker.pulls()[-1].queue_offset == 6
    result_of(consumer.stop())


def test_a_listener_that_took_too_long_is_told_as_such(scene: Scene, broker: Broker) -> None:
    hook, listener = Hook(), Listener()
    listener.answer = waiting = Deferred[None]()
    broker.answers = [found(6, 5)]
    consumer = consumer_with(scene, hook, listener, consume_timeout_ms=2_000)
    scene.time.advance(2)
    waiting.callback(None)
    assert hook.after == [(True, None, ConsumeReturnType.TIME_OUT)]
    result_of(consumer.stop())


def test_in_order(scene: Scene, broker: Broker) -> None:
    hook, listener = Hook(), Listener()
    listener.answer = ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT
    broker.answers = [found(6, 5)]
    consumer = consumer_with(scene, hook, listener, orderly=True)
    assert hook.after == [(False, listener.answer, ConsumeReturnType.FAILED)]
    result_of(consumer.stop())


def test_a_hook_that_fails_changes_nothing(scene: Scene, broker: Broker) -> None:
    hook, listener = Hook(), Listener()
    hook.fails = True
    broker.answers = [found(6, 5)]
    consumer = consumer_with(scene, hook, listener)
    assert (listener.bodies, len(hook.after)) == ([b"m5"], 1)
    result_of(consumer.stop())


def test_what_an_administrator_gives_is_not_seen(scene: Scene, broker: Broker) -> None:
    hook, listener = Hook(), Listener()
    consumer = consumer_with(scene, hook, listener)
    result_of(consumer.consume_directly(MessageExt("T", b"x"), "broker-a"))
    assert (listener.bodies, hook.before) == ([b"x"], [])
    result_of(consumer.stop())


def test_what_a_poll_gives_is_consumed_with_that(scene: Scene, broker: Broker) -> None:
    hook = Hook()
    hook.fails = True  # which changes nothing
    broker.answers = [found(7, 5, 6)]
    consumer = LitePullConsumer(
        scene.client, "g", {"T": "*"}, config=LitePullConsumerConfig(auto_commit=False)
    )
    consumer.add_consume_hook(hook)
    result_of(consumer.start())
    assert (hook.before, hook.after) == ([], [])
    assert len(result_of(consumer.poll())) == 2
    assert result_of(consumer.poll(0)) == []
    success = (True, ConsumeStatus.CONSUME_SUCCESS, ConsumeReturnType.SUCCESS)
    assert (hook.before, hook.after) == ([[b"m5", b"m6"]], [success])
    assert hook.context is not None
    assert (hook.context.group, hook.context.queue) == ("g", QUEUE)
    result_of(consumer.stop())
