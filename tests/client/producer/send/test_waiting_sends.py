# SPDX-License-Identifier: Apache-2.0
"""Sends wait in their order until there is room, whatever room is; see also the kinds of it."""

from __future__ import annotations

from typing import Any

import pytest
from twisted.internet.task import Clock as ReactorClock
from twisted.python.failure import Failure

from tests.client.fakes import result_of, started
from txrocketmq.client.base.errors import BackpressureTimeout, ClientClosed
from txrocketmq.client.producer.send.waiting_sends import BEHIND, WaitingSends
from txrocketmq.remoting.host.clock import Clock


class Room(WaitingSends):
    """Has room for so many."""

    places = 0

    def late(self, waited_ms: int) -> BackpressureTimeout:
        return BackpressureTimeout(f"after {waited_ms} ms")

    def _has_room(self) -> bool:
        return self.places > 0


class Line:
    """Numbers that wait for room."""

    def __init__(self, count: int) -> None:
        self.time = ReactorClock()
        self.room = Room(Clock(self.time), 1_000)
        self.begun: list[int] = []
        self.errors: dict[int, BaseException] = {}
        self.waiting = [self._wait(number) for number in range(count)]

    def _wait(self, number: int) -> Any:
        def begin(_: Any) -> None:
            self.begun.append(number)
            self.room.places -= 1

        def settle(outcome: Any) -> None:
            assert isinstance(outcome, Failure)
            assert outcome.value is not None
            self.errors[number] = outcome.value

        return self.room.wait(settle, begin)


def test_the_first_comes_first() -> None:
    line = Line(5)
    line.room.places = 2
    line.room.go_on()
    assert line.begun == [0, 1]
    assert line.room.is_full


def test_each_has_its_time() -> None:
    line = Line(2)
    line.time.advance(1)
    assert [str(each) for each in line.errors.values()] == ["after 1000 ms"] * 2


def test_one_that_is_cancelled_loses_its_place() -> None:
    line = Line(3)
    line.waiting[1].cancel()
    line.room.places = 3
    line.room.go_on()
    assert (line.begun, list(line.errors)) == ([0, 2], [1])


def test_callers_wait_while_very_many_wait() -> None:
    line = Line(BEHIND)
    assert line.room.is_behind
    caught_up = started(line.room.caught_up())
    line.room.places = BEHIND // 2
    line.room.go_on()
    line.time.pump([0.0] * 10)
    assert not line.room.is_behind
    assert result_of(caught_up) is None


def test_the_end_ends_all_that_wait() -> None:
    line = Line(2)
    closed = started(line.room.close())
    line.time.pump([0.0] * 3)
    assert result_of(closed) is None
    assert [type(each) for each in line.errors.values()] == [ClientClosed] * 2
    with pytest.raises(ClientClosed):
        line.room.wait(print, print)
