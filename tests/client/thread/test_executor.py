# SPDX-License-Identifier: Apache-2.0
"""Crews: who calls when, what is told, what is forgotten. Threads are the test's own mostly."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from twisted.internet.defer import Deferred, succeed
from twisted.internet.task import Clock as Time
from twisted.logger import capturedLogs

from txrocketmq.client.thread.executor import (
    LOOK_MS,
    QUICK_CALLS,
    Elsewhere,
    Ending,
    Outbox,
    ThreadCrew,
)
from txrocketmq.remoting.host.clock import Clock


class Errand:
    """A call with a number; `wanted` tells whether it is still to be made."""

    def __init__(self, number: int, *, wanted: bool = True) -> None:
        self.arguments = (number,)
        self.wanted = wanted
        self.answer: Any = None
        self.error: Exception | None = None
        self.begun_ms = -1
        self.ended_ms = -1

    def begin(self, steady_ms: int) -> bool:
        self.begun_ms = steady_ms
        return self.wanted


def as_it_is(errand: Errand) -> Errand:
    """For errands that the test has made."""
    return errand


class SteadyClock(Clock):
    """Time goes on as the test says."""

    def __init__(self) -> None:
        self.time = Time()
        super().__init__(self.time)

    def steady_ms(self) -> int:
        return round(self.time.seconds() * 1000)

    def pass_ms(self, ms: int = LOOK_MS) -> None:
        self.time.advance(ms / 1000)


class Scene:
    """A crew whose members work when the test says so."""

    def __init__(self, most: int = 2) -> None:
        self.members: list[Callable[[], None]] = []
        self.woken: list[Callable[[], None]] = []
        self.called: list[int] = []
        self.told: list[list[int]] = []
        self.clock = SteadyClock()
        self.during: Callable[[int], Any] = lambda number: -number
        self.ending = Ending()
        outbox = Outbox(self.woken.append, self._ended)
        self.crew = ThreadCrew(
            self._function, most, self.members.append, outbox, self.clock, self.ending
        )

    def _function(self, number: int) -> Any:
        self.called.append(number)
        return self.during(number)

    def _ended(self, errands: Sequence[Errand]) -> None:
        self.told.append([each.arguments[0] for each in errands])

    def wake(self) -> None:
        woken, self.woken[:] = list(self.woken), []
        for each in woken:
            each()


def test_one_member_makes_all_calls_in_a_row_and_tells_once() -> None:
    scene = Scene()
    errands = [Errand(n) for n in range(5)]

    def in_a_millisecond(number: int) -> int:
        scene.clock.pass_ms(1)
        return -number

    scene.during = in_a_millisecond
    scene.crew.take(as_it_is, errands)
    assert (len(scene.members), scene.called) == (1, [])
    scene.members[0]()
    assert (scene.called, len(scene.woken), scene.told) == ([0, 1, 2, 3, 4], 1, [])
    scene.wake()
    assert scene.told == [[0, 1, 2, 3, 4]]
    assert [each.answer for each in errands] == [0, -1, -2, -3, -4]
    assert all(each.ended_ms > each.begun_ms >= 0 for each in errands)


def test_other_members_are_asked_for_while_slow_calls_wait_and_no_more_than_wanted() -> None:
    scene = Scene(most=3)
    scene.crew.take(Errand, range(4))
    begun: list[int] = []

    def blocks(number: int) -> None:
        begun.append(number)
        if number == 0:  # while this one is called, others come and do the rest
            assert len(scene.members) == 1
            scene.clock.pass_ms()
            assert len(scene.members) == 2
            scene.clock.pass_ms()
            assert len(scene.members) == 3
            scene.clock.pass_ms()
            scene.members[1]()
            scene.members[2]()

    scene.during = blocks
    scene.members[0]()
    assert (begun, len(scene.members)) == ([0, 1, 2, 3], 3)
    scene.crew.take(Errand, [4])
    assert len(scene.members) == 4  # all had gone


def test_quick_calls_are_made_by_one_member_in_their_order() -> None:
    scene = Scene()
    count = 3 * QUICK_CALLS

    def at_times(number: int) -> None:
        if number and number % QUICK_CALLS == 0:
            scene.clock.pass_ms()

    scene.during = at_times
    scene.crew.take(Errand, range(count))
    scene.members[0]()
    assert (scene.called, len(scene.members)) == (list(range(count)), 1)


def test_calls_are_not_quick_because_a_look_comes_late() -> None:
    scene = Scene()
    scene.crew.take(Errand, range(QUICK_CALLS + 2))

    def late(number: int) -> None:
        if number == QUICK_CALLS:
            scene.clock.pass_ms(2 * LOOK_MS)

    scene.during = late
    scene.members[0]()
    assert len(scene.members) == 2


def test_nobody_looks_while_nothing_waits() -> None:
    scene = Scene()
    scene.crew.take(Errand, [0])
    scene.members[0]()
    scene.clock.pass_ms()
    assert (scene.clock.time.getDelayedCalls(), len(scene.members)) == ([], 1)


def test_calls_that_come_while_all_members_work_wait_for_them() -> None:
    scene = Scene(most=1)

    def more_comes(number: int) -> None:
        if number == 0:
            scene.crew.take(Errand, [1])

    scene.during = more_comes
    scene.crew.take(Errand, [0])
    scene.members[0]()
    assert (len(scene.members), scene.called) == (1, [0, 1])


def test_a_member_that_has_gone_is_replaced_by_one_that_comes_with_new_calls() -> None:
    scene = Scene(most=1)
    for number in range(3):
        scene.crew.take(Errand, [number])
        scene.members.pop()()
    scene.wake()
    assert scene.told == [[0, 1, 2]]


def test_what_is_raised_is_the_errands_and_what_is_not_wanted_is_not_called() -> None:
    scene = Scene()
    scene.during = lambda number: 1 // number
    failing, unwanted = Errand(0), Errand(1, wanted=False)
    scene.crew.take(as_it_is, [failing, unwanted])
    scene.members[0]()
    scene.wake()
    assert isinstance(failing.error, ZeroDivisionError)
    assert (scene.called, scene.told, unwanted.ended_ms) == ([0], [[0, 1]], -1)


def test_a_function_that_wants_to_exit_ends_its_call_only() -> None:
    def leave(number: int) -> None:
        raise SystemExit(number)

    scene = Scene(most=1)
    scene.during = leave
    errands = [Errand(1), Errand(2)]
    scene.crew.take(as_it_is, errands)
    scene.members[0]()
    assert [str(each.error) for each in errands] == [
        "the function raised SystemExit(1)",
        "the function raised SystemExit(2)",
    ]


def test_what_has_not_begun_can_be_forgotten() -> None:
    scene = Scene()
    scene.crew.take(Errand, range(3))
    assert [each.arguments[0] for each in scene.crew.clear()] == [0, 1, 2]
    assert scene.crew.clear() == []
    scene.members[0]()
    assert (scene.called, scene.woken) == ([], [])


def test_when_the_program_ends_the_call_that_is_made_ends_and_no_other_begins() -> None:
    scene = Scene()

    def end(_: int) -> None:
        scene.ending.has_begun = True

    scene.during = end
    scene.crew.take(Errand, range(3))
    scene.members.pop()()
    scene.wake()
    assert (scene.called, scene.told) == ([0], [[0]])
    scene.crew.take(Errand, [3])
    scene.clock.pass_ms()
    assert (scene.members, scene.called) == ([], [0])
    assert [each.arguments[0] for each in scene.crew.clear()] == [1, 2, 3]


def test_nobody_is_asked_for_any_more_when_the_program_ends() -> None:
    scene = Scene()
    scene.ending.has_begun = True
    scene.crew.take(Errand, [1])
    scene.clock.pass_ms()
    assert scene.members == []


def test_an_errand_is_made_when_it_is_called() -> None:
    scene = Scene(most=1)
    made: list[int] = []

    def make(number: int) -> Errand:
        made.append(number)
        return Errand(number)

    scene.during = lambda number: made.append(-number)
    scene.crew.take(make, [1, 2])
    scene.crew.take(make, [3])
    assert made == []
    scene.members[0]()
    assert made == [1, -1, 2, -2, 3, -3]


def test_nobody_else_is_asked_for_while_the_last_call_takes_long() -> None:
    scene = Scene()
    scene.during = lambda _: scene.clock.pass_ms(3 * LOOK_MS)
    scene.crew.take(Errand, [0])
    scene.members[0]()
    assert (scene.called, len(scene.members)) == ([0], 1)


def test_a_member_that_fails_is_replaced_and_the_other_calls_are_made() -> None:
    def make(number: int) -> Errand:
        if number == 1:
            raise MemoryError
        return Errand(number)

    scene = Scene(most=1)
    scene.crew.take(make, range(4))
    with capturedLogs() as logs:
        scene.members[0]()
    assert [each["log_failure"].type for each in logs] == [MemoryError]
    assert len(scene.members) == 2
    scene.members[1]()
    scene.crew.take(make, [4])
    scene.members[2]()
    assert scene.called == [0, 2, 3, 4]


def test_where_no_thread_can_be_had_somebody_is_told_unless_others_work() -> None:
    def refuse(_: Callable[[], None]) -> None:
        raise RuntimeError("can't start new thread")

    crew = ThreadCrew(print, 2, refuse, Outbox(print, print), SteadyClock())
    for _ in range(2):  # asked for anew each time
        with pytest.raises(RuntimeError, match="new thread"):
            crew.take(Errand, [1])


def test_calls_that_block_are_made_at_the_same_time() -> None:
    most = 4
    meeting = threading.Barrier(most, timeout=60)
    done: list[int] = []
    all_done = threading.Event()

    def ended(errands: Sequence[Errand]) -> None:
        done.extend(each.arguments[0] for each in errands if each.error is None)
        if len(done) == 2 * most:
            all_done.set()

    lock = threading.Lock()

    def wake(call: Callable[[], None]) -> None:
        with lock:
            call()

    with ThreadPoolExecutor(8) as pool:
        outbox = Outbox(wake, ended)
        clock = SteadyClock()
        crew = ThreadCrew(lambda _: meeting.wait(), most, pool.submit, outbox, clock)
        crew.take(Errand, range(2 * most))
        clock.pass_ms()
        clock.pass_ms()
        assert all_done.wait(60)
    assert sorted(done) == list(range(2 * most))


def test_no_errand_is_lost_or_called_twice() -> None:
    told: list[int] = []
    lock = threading.Lock()
    finished = threading.Event()

    def ended(errands: Sequence[Errand]) -> None:
        told.extend(each.arguments[0] for each in errands)
        if len(told) == 4_000:
            finished.set()

    def wake(call: Callable[[], None]) -> None:
        with lock:
            call()

    clock = SteadyClock()
    with ThreadPoolExecutor(8) as pool:
        crew = ThreadCrew(abs, 3, pool.submit, Outbox(wake, ended), clock)
        for start in range(0, 4_000, 4):
            crew.take(Errand, range(start, start + 4))
            clock.pass_ms()
        assert finished.wait(60)
    assert sorted(told) == list(range(4_000))


def test_a_function_that_runs_elsewhere_is_still_called_like_one() -> None:
    called: list[Any] = []

    def call(*arguments: Any) -> Deferred[Any]:
        called.append(arguments)
        return succeed(3)

    def no_crew(*_: Any) -> Any:
        """Nobody asks for it here."""

    answer: list[int] = []
    Elsewhere(call, no_crew)(1, 2).addCallback(answer.append)
    assert (called, answer) == ([(1, 2)], [3])
