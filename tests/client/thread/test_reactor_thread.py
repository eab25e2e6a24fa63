# SPDX-License-Identifier: Apache-2.0
"""A reactor of the client's own, in a thread."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from twisted.internet.defer import Deferred, fail, succeed
from twisted.logger import Logger

from txrocketmq.client.thread.reactor_thread import ReactorThread
from txrocketmq.remoting.host.clock import Clock
from txrocketmq.remoting.host.reactor.own_reactor import Waker


@pytest.fixture
def thread() -> Iterator[ReactorThread]:
    taken = ReactorThread.take()
    yield taken
    taken.leave()


def test_all_share_one_and_the_last_ends_it() -> None:
    one, two = ReactorThread.take(), ReactorThread.take()
    assert one is two
    one.leave()
    assert one.is_alive
    two.leave()
    assert not one.is_alive
    assert ReactorThread.take().ask(lambda: 5) == 5
    ReactorThread.take().leave()
    assert ReactorThread._shared is not None
    ReactorThread._shared.leave()


OPEN = Path("/proc/self/fd")


@pytest.mark.skipif(not OPEN.is_dir(), reason="only Linux tells what is open")
def test_what_it_has_open_ends_with_it() -> None:
    before = len(list(OPEN.iterdir()))
    for _ in range(3):
        taken = ReactorThread.take()
        assert taken.ask(lambda: 1) == 1
        assert len(list(OPEN.iterdir())) > before
        taken.leave()
        taken.call_there(pytest.fail, "it has ended")
    assert len(list(OPEN.iterdir())) <= before


def test_who_still_wakes_it_when_it_has_ended_finds_that_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    taken = ReactorThread.take()
    waker = taken.reactor.waker
    is_open: list[bool] = []
    wake_up = type(waker).wakeUp

    def slowly(self: Waker) -> None:
        if taken.is_current or is_open:
            wake_up(self)
            return
        is_open.append(False)
        wake_up(self)
        taken._thread.join(30)
        wake_up(self)
        is_open[0] = not taken._thread.is_alive()

    monkeypatch.setattr(type(waker), "wakeUp", slowly)
    del waker
    taken.leave()
    assert is_open == [True]


def test_what_is_handed_over_is_called_there(thread: ReactorThread) -> None:
    called = threading.Event()
    thread.call_there(called.set)
    assert called.wait(30)


def test_work_is_done_there(thread: ReactorThread) -> None:
    async def waits() -> str:
        await succeed(None)
        return threading.current_thread().name

    assert thread.ask(lambda: threading.current_thread().name) == "txrocketmq-reactor"
    assert thread.ask(waits) == "txrocketmq-reactor"
    assert thread.ask(lambda: succeed(3)) == 3
    with pytest.raises(KeyError):
        thread.ask(lambda: fail(KeyError("x")))
    with pytest.raises(ZeroDivisionError):
        thread.ask(lambda: 1 // 0)


def test_who_would_wait_for_himself_is_told(thread: ReactorThread) -> None:
    with pytest.raises(RuntimeError, match="would wait for itself"):
        thread.ask(lambda: thread.ask(lambda: 1))


def test_functions_of_the_program_run_beside(thread: ReactorThread) -> None:
    def names() -> str:
        return threading.current_thread().name

    assert thread.ask(lambda: thread.call_beside(names)).startswith("txrocketmq-function")
    with pytest.raises(ZeroDivisionError):
        thread.ask(lambda: thread.call_beside(lambda: 1 // 0))


def test_when_the_program_ends_no_more_calls_of_its_functions_begin(
    thread: ReactorThread,
) -> None:
    called: list[int] = []
    ended = threading.Event()

    class Errand:
        arguments = (1,)
        answer: object = None
        error: Exception | None = None
        ended_ms = 0

        def begin(self, _: int) -> bool:
            return True

    crew = thread.crew(called.append, 1, lambda _: ended.set(), Clock(thread.reactor))
    thread.ask(lambda: crew.take(lambda _: Errand(), [0]))
    assert ended.wait(30)
    ReactorThread.end_calls()
    thread.ask(lambda: crew.take(lambda _: Errand(), [0]))
    assert len(thread.ask(crew.clear)) == 1
    beside = thread.ask(lambda: [thread.call_beside(called.append, 2)])
    assert (called, beside[0].called) == ([1], False)


def test_the_end_of_the_program_is_nothing_to_whom_there_is_no_thread() -> None:
    ReactorThread.end_calls()
    assert ReactorThread._shared is None


def test_begun_work_can_be_cancelled(thread: ReactorThread) -> None:
    ended = threading.Event()
    waiting: Deferred[None] = Deferred()
    thread.begin(lambda: waiting, lambda outcome: ended.set()).cancel()
    assert ended.wait(30)


def test_after_a_fork_it_is_said_to_be_gone(thread: ReactorThread) -> None:
    assert thread.is_alive
    shared = ReactorThread._shared
    ReactorThread.forget()
    assert (ReactorThread._shared, thread.is_alive) == (None, False)
    with pytest.raises(RuntimeError, match=r"since it was created before os\.fork\(\): create"):
        thread.begin(lambda: None, lambda outcome: None)
    ReactorThread._shared, thread._gone = shared, ""  # as they are in the parent


def test_after_a_shutdown_nobody_speaks_of_forks(thread: ReactorThread) -> None:
    other = ReactorThread()
    other._counted().leave()
    with pytest.raises(RuntimeError, match="since it was shut down: create a new one"):
        other.begin(lambda: None, lambda outcome: None)


def test_the_log_is_pythons(thread: ReactorThread, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "txrocketmq"):
        Logger("txrocketmq.client.x").info("it {what}", what="works")
        Logger("somebody.else").info("not ours")
    assert [record.getMessage() for record in caplog.records] == ["it works"]
