# SPDX-License-Identifier: Apache-2.0
"""Calls that are handed to another thread, which is the test's own here."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from txrocketmq.client.thread.handover import AT_ONCE, Handover


class Other:
    """A thread that runs what it was woken for when the test says so."""

    def __init__(self) -> None:
        self.woken: list[Callable[[], None]] = []
        self.said: list[str] = []
        self.handover = Handover(self.woken.append)

    def run(self) -> None:
        woken, self.woken[:] = list(self.woken), []
        for each in woken:
            each()


def test_many_calls_wake_once_and_run_in_their_order() -> None:
    other = Other()
    for text in "abc":
        other.handover.call(other.said.append, text)
    assert (len(other.woken), other.said) == (1, [])
    assert other.handover.waiting == 3
    other.run()
    assert other.handover.waiting == 0
    other.handover.call(other.said.append, "d")
    assert len(other.woken) == 1
    other.run()
    assert other.said == ["a", "b", "c", "d"]


def test_a_great_many_calls_take_several_turns() -> None:
    other = Other()
    for _ in range(2 * AT_ONCE + 1):
        other.handover.call(other.said.append, "x")
    turns = []
    while other.woken:
        assert len(other.woken) == 1
        before = len(other.said)
        other.run()
        turns.append(len(other.said) - before)
    assert turns == [AT_ONCE, AT_ONCE, 1]


def test_a_thread_that_has_ended_is_not_woken() -> None:
    other = Other()
    other.handover.call(other.said.append, "a")
    other.handover.close()
    other.run()
    for text in "bc":
        other.handover.call(other.said.append, text)
    assert (other.woken, other.said, other.handover.waiting) == ([], [], 0)


def test_a_call_that_comes_while_others_run_wakes_again() -> None:
    other = Other()
    other.handover.call(lambda: other.handover.call(other.said.append, "later"))
    other.run()
    assert (len(other.woken), other.said) == (1, [])
    other.run()
    assert other.said == ["later"]


def test_a_call_that_fails_does_not_keep_others_from_running() -> None:
    other = Other()
    other.handover.call(lambda: other.said.remove("missing"))
    other.handover.call(other.said.append, "next")
    other.run()
    assert other.said == ["next"]


def test_who_cannot_be_woken_is_told_each_time() -> None:
    def closed(_: Callable[[], None]) -> None:
        raise RuntimeError("Event loop is closed")

    handover = Handover(closed)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="closed"):
            handover.call(print)


def test_who_is_interrupted_while_he_wakes_has_woken_for_others() -> None:
    woken: list[Callable[[], None]] = []
    said: list[str] = []

    def wake(run: Callable[[], None]) -> None:
        if "b" not in said:
            said.append("b")
            handover.call(said.append, "c")  # another thread: somebody wakes already
            raise KeyboardInterrupt
        woken.append(run)

    handover = Handover(wake)
    with pytest.raises(KeyboardInterrupt):
        handover.call(said.append, "a")
    for each in woken:
        each()
    assert said == ["b", "a", "c"]
    handover.call(said.append, "d")
    woken[-1]()
    assert said[-1] == "d"


def test_who_is_woken_at_once_waits_for_no_lock() -> None:
    said: list[str] = []

    def wake(run: Callable[[], None]) -> None:
        thread = threading.Thread(target=run)
        thread.start()
        thread.join(30)
        assert not thread.is_alive()

    handover = Handover(wake)
    handover.call(said.append, "x")
    assert said == ["x"]


def test_no_call_of_many_threads_is_lost() -> None:
    other = Other()

    def call_often() -> None:
        for _ in range(1_000):
            other.handover.call(other.said.append, "x")

    threads = [threading.Thread(target=call_often) for _ in range(4)]
    for each in threads:
        each.start()
    while any(each.is_alive() for each in threads) or other.woken:
        other.run()
    assert len(other.said) == 4_000
