# SPDX-License-Identifier: Apache-2.0
"""What one thread waits for and another one brings."""

from __future__ import annotations

import threading
import weakref

import pytest
from twisted.python.failure import Failure

from txrocketmq.client.thread.promise import Awaited


def test_who_waits_gets_what_comes() -> None:
    awaited = Awaited()
    timer = threading.Timer(0.01, awaited.settle, ["x"])
    timer.start()
    assert awaited.result() == "x"
    timer.join()


def test_a_failure_is_raised_and_holds_nothing() -> None:
    class Wrong(Exception):
        pass

    awaited, error = Awaited(), Wrong("y")
    awaited.settle(Failure(error))
    with pytest.raises(Wrong, match="y") as raised:
        awaited.result()
    gone = weakref.ref(error)
    del awaited, error, raised
    assert gone() is None


def test_who_was_interrupted_waits_for_so_long() -> None:
    awaited = Awaited()
    assert not awaited.wait(0.01)
    awaited.settle(None)
    assert awaited.wait(30)
    assert awaited.wait(30)  # even if it had come when he was interrupted


def test_a_failure_without_an_error_is_one_as_well() -> None:
    awaited = Awaited()
    failure = Failure(ValueError())
    failure.value = None
    awaited.settle(failure)
    with pytest.raises(RuntimeError, match="without an error"):
        awaited.result()
