# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from twisted.internet.defer import CancelledError
from twisted.internet.task import Clock as TaskClock
from twisted.logger import capturedLogs
from twisted.python.runtime import seconds as wall_seconds
from twisted.python.threadpool import ThreadPool

from txrocketmq.remoting.host.clock import Clock


@pytest.fixture
def reactor() -> Any:
    return TaskClock()


@pytest.fixture
def clock(reactor: Any) -> Clock:
    return Clock(reactor)


def test_what_time_it_is(reactor: Any, clock: Clock) -> None:
    assert clock.now_ms() == 0
    reactor.advance(1.2345)
    assert clock.now_ms() == 1_234
    assert clock.steady_ms() == 1_234
    assert clock.unhurried is clock


def test_the_real_time_is_since_the_epoch() -> None:
    before_ms = time.time_ns() // 1_000_000
    assert before_ms <= Clock().now_ms() <= time.time_ns() // 1_000_000


class WallReactor:
    """A reactor that goes by the wall clock, as those of Twisted do."""

    def __init__(self) -> None:
        self.seconds: Callable[[], float] = wall_seconds


def test_a_reactor_goes_by_the_steady_clock_from_where_it_was(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reactor = WallReactor()
    before = time.time()
    clock = Clock(reactor)
    steady = reactor.seconds
    assert before <= steady() <= time.time()
    start_ms = clock.steady_ms()
    monkeypatch.setattr(time, "time_ns", lambda: 5_000_000)
    monkeypatch.setattr(time, "time", lambda: 0.005)
    monkeypatch.setattr(time, "monotonic", lambda real=time.monotonic: real() + 10)
    assert clock.now_ms() == 5, "the wall clock was set back"
    assert 10_000 <= clock.steady_ms() - start_ms < 15_000
    Clock(reactor)
    assert reactor.seconds is steady, "once"


def test_the_reactor_of_this_process_goes_by_the_steady_clock() -> None:
    assert Clock().reactor.seconds is not wall_seconds


def test_later(reactor: Any, clock: Clock) -> None:
    called: list[int] = []
    clock.later(100, called.append, 1)
    clock.later(100, called.append, 2).cancel()
    reactor.advance(0.099)
    assert called == []
    reactor.advance(0.001)
    assert called == [1]


def test_every(reactor: Any, clock: Clock) -> None:
    times: list[int] = []
    repeating = clock.every(250, lambda: times.append(clock.now_ms()))
    early: list[int] = []
    clock.every(250, lambda: early.append(clock.now_ms()), first_ms=0)
    for _ in range(5):
        reactor.advance(0.125)
    assert times == [250, 500]
    assert early == [125, 375, 625]
    repeating.cancel()
    repeating.cancel()
    reactor.advance(1)
    assert len(times) == 2


def test_a_period_may_change(reactor: Any, clock: Clock) -> None:
    times: list[int] = []
    periods = iter([100, 300, 100, 100, 100])
    clock.every(lambda: next(periods), lambda: times.append(clock.now_ms()))
    for _ in range(6):
        reactor.advance(0.1)
    assert times[:3] == [100, 400, 500]


def test_a_failure_is_logged_and_not_the_end(reactor: Any, clock: Clock) -> None:
    calls: list[int] = []

    def fail() -> None:
        calls.append(1)
        raise ValueError("oh")

    clock.every(100, fail)
    with capturedLogs() as events:
        reactor.advance(0.1)
        reactor.advance(0.1)
    assert len(calls) == len(events) == 2
    assert isinstance(events[0]["log_failure"].value, ValueError)


def test_a_task_may_end_itself(reactor: Any, clock: Clock) -> None:
    calls: list[int] = []

    def once() -> None:
        calls.append(1)
        repeating.cancel()

    repeating = clock.every(100, once)
    reactor.advance(0.1)
    reactor.advance(0.1)
    assert calls == [1]
    assert not reactor.getDelayedCalls()


def test_stop_ends_all_that_repeats(reactor: Any, clock: Clock) -> None:
    calls: list[int] = []
    clock.every(100, lambda: calls.append(1))
    clock.every(200, lambda: calls.append(2))
    clock.stop()
    reactor.advance(1)
    assert calls == []
    assert not reactor.getDelayedCalls()


def test_a_pause(reactor: Any, clock: Clock) -> None:
    over: list[Any] = []
    clock.pause(100).addBoth(over.append)
    reactor.advance(0.099)
    assert over == []
    reactor.advance(0.001)
    assert over == [None]


def test_a_pause_that_is_cancelled(reactor: Any, clock: Clock) -> None:
    over: list[Any] = []
    pause = clock.pause(100)
    pause.addErrback(lambda failure: over.append(failure.type))
    pause.cancel()
    assert over == [CancelledError]
    assert not reactor.getDelayedCalls()


def test_work_in_a_thread_is_done_at_once_in_a_test(clock: Clock) -> None:
    done: list[Any] = []
    clock.in_thread(lambda: 5).addCallback(done.append)
    clock.in_thread(lambda: 1 // 0).addErrback(lambda failure: done.append(failure.type))
    assert done == [5, ZeroDivisionError]


class NoThread(threading.Thread):
    def start(self) -> None:
        raise RuntimeError("can't start new thread")


def test_work_that_gets_no_thread_fails_and_leaves_no_thread_to_wait_for() -> None:
    pool = ThreadPool(0, 2)
    pool.threadFactory = NoThread
    pool.start()

    class Reactor:
        seconds = time.monotonic

        def getThreadPool(self) -> ThreadPool:  # noqa: N802 - Twisted's name
            return pool

    clock, failures = Clock(Reactor()), list[Any]()
    clock.in_thread(lambda: 5).addErrback(failures.append)
    assert failures[0].getErrorMessage() == "can't start new thread"
    assert pool.threads == []
    with pytest.raises(RuntimeError):
        pool.startAWorker()  # as Twisted's resolver of names may
    clock.stop()
    pool.stop()


def test_work_that_comes_before_the_threads_waits_for_the_reactors_start() -> None:
    pool, later, done = ThreadPool(0, 2), list[Any](), list[Any]()
    pool.threadFactory = NoThread

    class Reactor:
        seconds = time.monotonic

        def getThreadPool(self) -> ThreadPool:  # noqa: N802 - Twisted's name
            return pool

        def callLater(self, _: float, call: Any) -> None:
            later.append(call)

    Clock(Reactor()).in_thread(lambda: 5).addErrback(done.append)
    pool.start()
    assert done == [], "nothing of it waits in the pool, which would fail its start"
    (begin,) = later
    begin()
    assert done[0].getErrorMessage() == "can't start new thread"
    pool.stop()
