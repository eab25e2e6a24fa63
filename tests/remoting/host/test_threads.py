# SPDX-License-Identifier: Apache-2.0
"""Work in threads: what follows it, what it raises, and what is done without a thread."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from twisted.internet.defer import Deferred, fail
from twisted.internet.task import Clock as ReactorClock
from twisted.logger import capturedLogs, formatEvent

from txrocketmq.remoting.host.clock import Clock
from txrocketmq.remoting.host.threads import Threads


class Slow(Clock):
    """Its threads do work when the test says so; `has_none`: no thread can be had."""

    def __init__(self) -> None:
        super().__init__(ReactorClock())
        self.has_none = False
        self.given: list[tuple[Callable[[], Any], Deferred[Any]]] = []

    def in_thread(self, work: Callable[[], Any]) -> Deferred[Any]:
        if self.has_none:
            return fail(RuntimeError("can't start new thread"))
        done: Deferred[Any] = Deferred()
        self.given.append((work, done))
        return done

    def work(self) -> None:
        for work, done in self.given:
            try:
                done.callback(work())
            except (OSError, RuntimeError) as error:
                done.errback(error)
        self.given.clear()


@pytest.fixture
def clock() -> Slow:
    return Slow()


def boom() -> None:
    raise OSError("no room")


def test_what_follows_gets_what_was_raised(clock: Slow) -> None:
    threads = Threads(clock)
    outcomes: list[Exception | None] = []
    threads.run(lambda: None, outcomes.append)
    threads.run(boom, outcomes.append)
    assert (outcomes, len(threads.running)) == ([], 2)
    clock.work()
    assert outcomes[0] is None
    assert str(outcomes[1]) == "no room"
    assert threads.running == []


def test_without_a_thread_it_fails_or_is_done_here(clock: Slow) -> None:
    threads = Threads(clock)
    done: list[str] = []
    outcomes: list[Exception | None] = []
    clock.has_none = True
    threads.run(lambda: done.append("first"), outcomes.append)
    threads.run_or_do(lambda: done.append("second"), outcomes.append)
    threads.run_or_do(boom, outcomes.append)
    assert done == ["second"]
    assert isinstance(outcomes[0], RuntimeError)
    assert outcomes[1] is None
    assert isinstance(outcomes[2], OSError)


def test_what_a_thread_has_begun_is_not_done_again(clock: Slow) -> None:
    threads = Threads(clock)
    begun: list[str] = []
    outcomes: list[Exception | None] = []

    def changed_meanwhile() -> None:
        begun.append("once")
        raise RuntimeError("dictionary changed size during iteration")

    threads.run_or_do(changed_meanwhile, outcomes.append)
    clock.work()
    assert begun == ["once"]
    assert str(outcomes[0]) == "dictionary changed size during iteration"


def test_at_the_end_what_no_thread_has_done_is_done_here(clock: Slow) -> None:
    threads = Threads(clock)
    done: list[str] = []
    outcomes: list[Exception | None] = []
    threads.run(lambda: done.append("slow"), outcomes.append)
    threads.do_here()
    assert (done, outcomes, threads.running) == (["slow"], [None], [])
    clock.work()  # the thread comes to it at last
    assert outcomes == [None]


def test_the_end_waits_for_all_work_and_for_others(clock: Slow) -> None:
    threads = Threads(clock)
    ended: list[object] = []
    other: Deferred[None] = Deferred()
    threads.run(lambda: None, lambda _: None)
    threads.end([other], 10_000).addCallback(ended.append)
    clock.work()
    assert ended == []
    other.errback(OSError("gone"))
    assert ended == [None]
    assert clock.reactor.getDelayedCalls() == []


def test_the_end_does_not_wait_for_ever(clock: Slow) -> None:
    threads = Threads(clock)
    done: list[str] = []
    ended: list[object] = []
    never: Deferred[None] = Deferred()
    threads.run(lambda: done.append("slow"), lambda _: None)
    threads.end([never], 10_000).addCallback(ended.append)
    clock.reactor.advance(9.9)
    assert (done, ended) == ([], [])
    clock.reactor.advance(0.1)
    assert (done, ended, never.called) == (["slow"], [None], True)


def test_a_read_ahead_that_fails_is_logged(clock: Slow) -> None:
    outcomes: list[Exception | None] = []
    with capturedLogs() as events:
        Threads(clock).read_ahead(lambda: None, outcomes.append)
        Threads(clock).read_ahead(boom, outcomes.append)
        clock.work()
    assert [formatEvent(event) for event in events] == ["reading ahead failed: no room"]
    assert [str(each) for each in outcomes] == ["None", "no room"]
