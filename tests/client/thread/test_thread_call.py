# SPDX-License-Identifier: Apache-2.0
"""What one thread waits for and another one begins."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable
from typing import Any

import pytest
from twisted.internet.defer import CancelledError
from twisted.python.failure import Failure

from txrocketmq.client.thread.handover import Handover
from txrocketmq.client.thread.thread_call import ThreadCall


class Work:
    """Begins when it is called, and ends when the test says so."""

    def __init__(self) -> None:
        self.settle: Callable[[Any], None] = print

    def begin(self, settle: Callable[[Any], None], *arguments: Any, **named: Any) -> Work:
        self.settle = settle
        return self

    def cancel(self) -> None:
        self.settle(Failure(CancelledError()))


def begun(work: Work, settle: Callable[[Any], None] | None = None) -> ThreadCall:
    call = ThreadCall(Handover(lambda run: run()), is_awaited=settle is None)
    call.begin(work.begin, settle, (), {})
    return call


def test_who_waits_gets_what_comes() -> None:
    work = Work()
    call = begun(work)
    timer = threading.Timer(0.01, work.settle, ["x"])
    timer.start()
    assert call.result() == "x"
    timer.join()


def test_a_failure_is_raised_and_holds_nothing() -> None:
    class Wrong(Exception):
        pass

    work, error = Work(), Wrong("y")
    call = begun(work)
    work.settle(Failure(error))
    with pytest.raises(Wrong, match="y") as raised:
        call.result()
    gone = weakref.ref(error)
    del call, work, error, raised
    assert gone() is None


def test_what_is_over_is_no_circle_that_only_a_collection_frees() -> None:
    gc.disable()
    try:
        work = Work()
        gone = weakref.ref(work)
        call = begun(work)
        work.settle("x")
        assert call.result() == "x"
        del work, call
        assert gone() is None
    finally:
        gc.enable()


def test_who_was_interrupted_waits_for_so_long() -> None:
    work = Work()
    call = begun(work)
    assert not call.wait(0.01)
    work.settle(None)
    assert call.wait(30)
    assert call.wait(30)  # even if it had come when he was interrupted


def test_a_failure_without_an_error_is_one_as_well() -> None:
    work = Work()
    call = begun(work)
    failure = Failure(ValueError())
    failure.value = None
    work.settle(failure)
    with pytest.raises(RuntimeError, match="without an error"):
        call.result()


def test_what_cannot_begin_fails_where_it_is_waited_for() -> None:
    def fails(settle: object) -> None:
        raise ValueError("negative")

    call = ThreadCall(Handover(lambda run: run()), is_awaited=True)
    call.begin(fails, None, (), {})
    with pytest.raises(ValueError, match="negative"):
        call.result()


def test_a_call_can_be_cancelled_once() -> None:
    work, outcomes = Work(), list[Any]()
    call = begun(work, outcomes.append)
    call.cancel()
    assert [type(each.value) for each in outcomes] == [CancelledError]
    awaited = begun(work)
    awaited.cancel()
    awaited.cancel()
    with pytest.raises(CancelledError):
        awaited.result()
