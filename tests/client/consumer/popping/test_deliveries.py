# SPDX-License-Identifier: Apache-2.0
"""What hooks hear of messages that were popped: each ends once, whatever becomes of it."""

from __future__ import annotations

from typing import Any

import pytest
from twisted.internet.task import Clock as ReactorClock

from txrocketmq.client.consumer.listening.hooks import (
    ConsumeHookContext,
    ConsumeHooks,
    ConsumeReturnType,
)
from txrocketmq.client.consumer.popping import deliveries as pop_given
from txrocketmq.client.consumer.popping.deliveries import LOOK_MS, GivenMessages
from txrocketmq.remoting.host.clock import Clock
from txrocketmq.remoting.message.message import MessageExt, MessageQueue


class Hook:
    """What it saw, by the bodies of messages."""

    def __init__(self) -> None:
        self.before: list[bytes] = []
        self.after: list[tuple[bytes, bool, ConsumeReturnType | None]] = []

    def before_consume(self, context: ConsumeHookContext) -> None:
        (message,) = context.messages
        assert context.queue == MessageQueue("T", "broker-a", 3)
        self.before.append(message.body)

    def after_consume(self, context: ConsumeHookContext) -> None:
        (message,) = context.messages
        self.after.append((message.body, context.success, context.return_type))


def message(number: int) -> MessageExt:
    return MessageExt(
        "T", b"m%d" % number, queue_id=3, broker_name="broker-a",
        properties={"POP_CK": f"handle {number}"},
    )  # fmt: skip


@pytest.fixture
def reactor() -> ReactorClock:
    return ReactorClock()


@pytest.fixture
def hook() -> Hook:
    return Hook()


@pytest.fixture
def given(reactor: ReactorClock, hook: Hook) -> GivenMessages:
    clock = Clock(reactor)
    hooks = ConsumeHooks(clock, "g")
    hooks.add(hook)
    return GivenMessages(clock, hooks)


def test_what_is_acknowledged_is_consumed(given: GivenMessages, hook: Hook) -> None:
    first, second = message(1), message(2)
    given.begin([first, second], 60_000)
    assert (hook.before, hook.after, len(given)) == ([b"m1", b"m2"], [], 2)
    given.acknowledged([first])
    given.acknowledged([first])
    assert hook.after == [(b"m1", True, ConsumeReturnType.SUCCESS)]
    given.stop()
    assert hook.after[1:] == [(b"m2", False, ConsumeReturnType.FAILED)]
    assert len(given) == 0


def test_what_is_hidden_no_more_was_not_consumed_in_time(
    given: GivenMessages, hook: Hook, reactor: ReactorClock
) -> None:
    given.begin([message(1)], 3_000)
    given.begin([message(2)], 60_000)
    reactor.pump([0.5] * 5)
    assert hook.after == []
    reactor.pump([LOOK_MS / 1000] * 2)
    assert hook.after == [(b"m1", False, ConsumeReturnType.TIME_OUT)]
    given.acknowledged([message(1)])  # too late
    assert len(hook.after) == 1
    given.stop()
    assert reactor.getDelayedCalls() == []


def test_another_time_and_another_handle(
    given: GivenMessages, hook: Hook, reactor: ReactorClock
) -> None:
    popped = message(1)
    given.begin([popped], 2_000)
    popped.properties["POP_CK"] = "another"
    given.hidden("handle 1", popped, 60_000)
    reactor.pump([1.0] * 5)
    assert hook.after == []
    given.acknowledged([popped])
    assert hook.after == [(b"m1", True, ConsumeReturnType.SUCCESS)]
    given.hidden("nothing", message(2), 60_000)
    assert len(given) == 0
    given.stop()


def test_the_oldest_make_way(
    given: GivenMessages, hook: Hook, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pop_given, "MAX_OPEN", 2)
    given.begin([message(1), message(2), message(3)], 60_000)
    assert (len(hook.before), len(given)) == (3, 2)
    given.acknowledged([message(1), message(2), message(3)])
    assert [body for body, *_ in hook.after] == [b"m2", b"m3"]
    given.stop()


def test_without_hooks_nothing_is_kept(reactor: ReactorClock) -> None:
    clock: Any = Clock(reactor)
    given = GivenMessages(clock, ConsumeHooks(clock, "g"))
    given.begin([message(1)], 60_000)
    assert (len(given), reactor.getDelayedCalls()) == (0, [])
    given.stop()
