# SPDX-License-Identifier: Apache-2.0
"""Listeners: what they answer with, how they are marked, where they are called."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock as ReactorClock
from twisted.logger import capturedLogs

from txrocketmq.client.consumer.listening.listener import (
    Calls,
    ConsumeContext,
    ConsumeOrderlyContext,
    ConsumeOrderlyStatus,
    ConsumeStatus,
    is_coroutine,
    is_orderly,
    orderly,
    tell,
)
from txrocketmq.remoting.host.clock import Clock
from txrocketmq.remoting.message.message import MessageExt, MessageQueue

QUEUE = MessageQueue("T", "broker-a", 0)


def test_a_context_says_that_all_succeeded_until_it_is_changed() -> None:
    context = ConsumeContext(QUEUE)
    assert (context.delay_level, context.ack_index) == (0, None)
    in_order = ConsumeOrderlyContext(QUEUE)
    assert (in_order.auto_commit, in_order.suspend_ms) == (True, -1)


def test_statuses_have_the_names_of_java() -> None:
    assert [each.name for each in ConsumeStatus] == ["CONSUME_SUCCESS", "RECONSUME_LATER"]
    assert {each.name for each in ConsumeOrderlyStatus} == {
        "SUCCESS", "ROLLBACK", "COMMIT", "SUSPEND_CURRENT_QUEUE_A_MOMENT",
    }  # fmt: skip


def test_a_decorator_marks_what_wants_an_order() -> None:
    @orderly
    def listen(messages: list[MessageExt], context: ConsumeOrderlyContext) -> None:
        """Anything."""

    assert is_orderly(listen)
    assert not is_orderly(lambda *_: None)


def test_one_that_only_hears_may_answer_later_or_fail() -> None:
    heard: list[Any] = []
    later: Deferred[None] = Deferred()

    async def listen(*news: Any) -> None:
        heard.append(news)
        await later
        heard.append("later")

    def fail(*_: Any) -> None:
        raise LookupError("no such thing")

    tell(listen, "T", 1)
    assert heard == [("T", 1)]
    later.callback(None)
    assert heard == [("T", 1), "later"]
    with capturedLogs() as logged:
        tell(fail, "T")
    assert [event["log_failure"].type for event in logged] == [LookupError]


class Awaiting:
    """An object that is called as a coroutine function."""

    async def __call__(self, messages: list[MessageExt], context: ConsumeContext) -> None:
        """Anything."""


def test_what_only_waits_is_known() -> None:
    async def listen(*_: Any) -> None:
        """Anything."""

    assert is_coroutine(listen)
    assert is_coroutine(Awaiting())
    assert not is_coroutine(lambda *_: None)


class Reactor(ReactorClock):
    """One that remembers what its thread is asked to do, and who asked."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[Any] = []
        self.came = threading.Event()

    def callFromThread(self, call: Any, *arguments: Any, **named: Any) -> None:  # noqa: N802
        self.asked.append(lambda: call(*arguments, **named))
        self.came.set()

    def callInThread(self, call: Any, *arguments: Any) -> None:  # noqa: N802
        call(*arguments)


@pytest.mark.parametrize("fails", [False, True])
def test_what_may_block_is_called_in_a_thread(fails: bool) -> None:
    reactor = Reactor()
    names: list[str] = []

    def listen(*_: Any) -> ConsumeStatus:
        names.append(threading.current_thread().name)
        if fails:
            raise OSError("no disk")
        return ConsumeStatus.RECONSUME_LATER

    calls = Calls(Clock(reactor), listen, 2)
    calls.start()
    answer: Deferred[Any] = calls.call([], ConsumeContext(QUEUE))
    outcomes: list[Any] = []
    answer.addBoth(outcomes.append)
    assert reactor.came.wait(60)
    reactor.asked[0]()
    if fails:
        assert isinstance(outcomes[0].value, OSError)
    else:
        assert outcomes == [ConsumeStatus.RECONSUME_LATER]
    assert names != [threading.current_thread().name]
    calls.stop()


def test_threads_make_up_a_crew() -> None:
    reactor = Reactor()
    clock = Clock(reactor)
    ended: list[Any] = []
    calls = Calls(clock, lambda messages, _: len(messages), 2)
    crew = calls.crew(2, ended.extend)
    assert crew is not None
    calls.start()
    errand = Errand()
    crew.take(lambda _: errand, [0])
    assert reactor.came.wait(60)
    reactor.asked[0]()
    assert (ended, errand.answer) == ([errand], 3)
    calls.stop()
    assert Calls(clock, print, 0).crew(2, ended.extend) is None


class Errand:
    """Three messages."""

    arguments = ([1, 2, 3], None)
    answer: Any = None
    error: Exception | None = None
    ended_ms = 0

    def begin(self, steady_ms: int) -> bool:
        return True


def test_what_only_waits_needs_no_thread() -> None:
    calls = Calls(Clock(ReactorClock()), Awaiting(), 2)
    calls.start()
    coroutine = calls.call([], ConsumeContext(QUEUE))
    coroutine.close()
    calls.stop()
