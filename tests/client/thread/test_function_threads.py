# SPDX-License-Identifier: Apache-2.0
"""Threads for functions of the program: how many there are, and who waits for them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from txrocketmq.client.thread import function_threads
from txrocketmq.client.thread.function_threads import FunctionThreads


@pytest.fixture
def threads() -> Iterator[FunctionThreads]:
    made = FunctionThreads(3, "function")
    yield made
    made.shutdown()
    assert made.wait(30)


def test_calls_have_results_and_errors(threads: FunctionThreads) -> None:
    def fail() -> None:
        raise LookupError("x")

    assert threads.submit(divmod, 7, 2).result(30) == (3, 1)
    with pytest.raises(LookupError):
        threads.submit(fail).result(30)
    assert threads.submit(lambda: threading.current_thread().name).result(30) == "function_0"


def test_so_many_threads_and_no_more(threads: FunctionThreads) -> None:
    barrier, held = threading.Barrier(4), threading.Event()

    def meet() -> str:
        barrier.wait(30)
        held.wait(30)
        return threading.current_thread().name

    futures = [threads.submit(meet) for _ in range(3)]
    barrier.wait(30)
    assert threads.running == 3
    waiting = threads.submit(threading.current_thread)
    assert not waiting.running()
    held.set()
    assert len({each.result(30) for each in futures}) == 3
    assert waiting.result(30).daemon
    assert threads.wait(30)


def test_a_thread_that_is_idle_is_used_again(threads: FunctionThreads) -> None:
    idents = set()
    for _ in range(20):
        idents.add(threads.submit(threading.get_ident).result(30))
        assert threads.wait(30)
    assert len(idents) == 1


def test_after_the_shutdown_no_call_begins_but_those_that_were_there() -> None:
    threads = FunctionThreads(1, "function")
    held = threading.Event()
    futures = [threads.submit(held.wait, 30), threads.submit(int)]
    threads.shutdown()
    with pytest.raises(RuntimeError, match="shut down"):
        threads.submit(int)
    held.set()
    assert [each.result(30) for each in futures] == [True, 0]
    assert threads.wait(30)


def test_without_a_thread_nothing_is_left_behind(
    threads: FunctionThreads, monkeypatch: pytest.MonkeyPatch
) -> None:
    def start(_: Any) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as context:
        context.setattr(threading.Thread, "start", start)
        with pytest.raises(RuntimeError, match="can't start"):
            threads.submit(int)
    assert threads.submit(int).result(30) == 0


def test_a_call_may_be_cancelled_before_it_begins(threads: FunctionThreads) -> None:
    held = threading.Event()
    for _ in range(3):
        threads.submit(held.wait, 30)
    waiting = threads.submit(int)
    assert waiting.cancel()
    held.set()
    assert threads.submit(int).result(30) == 0


def test_the_end_of_the_program_waits_for_calls_but_not_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(FunctionThreads, "_all", set())
    threads = FunctionThreads(1, "function")
    held = threading.Event()
    threads.submit(held.wait, 30)
    monkeypatch.setattr(function_threads, "END_S", 0.01)
    said: list[str] = []
    monkeypatch.setattr(function_threads.log, "warn", lambda text, **_: said.append(text))
    FunctionThreads.end_program()
    threads.shutdown()
    FunctionThreads.end_program()
    assert len(said) == 2
    held.set()
    assert threads.wait(30)
    FunctionThreads.end_program()
    assert len(said) == 2
    FunctionThreads.forget()
    assert not FunctionThreads._all


def test_idle_threads_leave_each_other_alone(
    threads: FunctionThreads, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each waits again only after it was woken for a call."""
    waits = 0
    has_work: Any = threads._has_work
    wait = has_work.wait

    def counted() -> None:
        nonlocal waits
        waits += 1
        wait()

    monkeypatch.setattr(has_work, "wait", counted)
    barrier = threading.Barrier(4)
    for _ in range(3):
        threads.submit(barrier.wait, 30)
    barrier.wait(30)
    assert threads.wait(30)
    for _ in range(200):
        threads.submit(int).result(30)
    assert threads.wait(30)
    assert waits <= 3 + 200
