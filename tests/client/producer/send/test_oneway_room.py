# SPDX-License-Identifier: Apache-2.0
"""One-way sends wait while connections take no more, and while very many ask for routes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twisted.internet.task import Clock as ReactorClock
from twisted.python.failure import Failure

from txrocketmq.client.base.errors import BackpressureTimeout
from txrocketmq.client.producer.send.oneway_room import MOST_PREPARED, OnewayRoom
from txrocketmq.client.producer.send.waiting_sends import AT_ONCE
from txrocketmq.remoting.host.clock import Clock


class Tells:
    """One-way sends of numbers to connections that take a few of them at a time."""

    def __init__(self, takes: int = 10) -> None:
        self.time = ReactorClock()
        self.freed: dict[str, Callable[[], None]] = {}
        self.room = OnewayRoom(Clock(self.time), self.freed.__setitem__, 60_000)
        self.takes = self.left = takes
        self.told: list[int] = []
        self.outcomes: list[Any] = []

    def tell(self, number: int, address: str = "a:1") -> None:
        def begin(settle: Callable[[Any], None]) -> None:
            self.told.append(number)
            self.left -= 1
            if self.left <= 0:
                self.room.filled(address)
            settle(None)

        if self.room.is_full:
            self.room.wait(self.outcomes.append, begin)
        else:
            begin(self.outcomes.append)

    def free(self, address: str = "a:1") -> None:
        self.left = self.takes
        self.freed.pop(address)()


def test_a_connection_that_takes_no_more_holds_up_what_follows() -> None:
    tells = Tells(takes=10)
    for number in range(25):
        tells.tell(number)
    assert tells.told == list(range(10))
    tells.free()
    assert tells.told == list(range(20))
    tells.free()
    assert tells.told == list(range(25))
    assert not tells.room.is_full
    assert tells.outcomes == [None] * 25


def test_all_connections_have_to_take_more() -> None:
    tells = Tells()
    tells.room.filled("a:1")
    tells.room.filled("b:2")
    tells.tell(1)
    tells.free("a:1")
    assert tells.told == []
    tells.free("b:2")
    assert tells.told == [1]


def test_very_many_are_taken_up_in_turns() -> None:
    tells = Tells(takes=10_000)
    tells.room.filled("a:1")
    for number in range(3 * AT_ONCE):
        tells.tell(number)
    tells.free()
    assert len(tells.told) == AT_ONCE
    tells.time.pump([0.0] * 3)
    assert tells.told == list(range(3 * AT_ONCE))


def test_the_wait_has_an_end() -> None:
    tells = Tells()
    tells.room.filled("10.0.0.1:10911")
    tells.tell(1)
    tells.tell(2)
    tells.time.advance(60)
    first, second = tells.outcomes
    assert isinstance(first, Failure)
    assert isinstance(second.value, BackpressureTimeout)
    assert str(first.value) == (
        "the one-way message was not sent: it waited for the connection to 10.0.0.1:10911 for"
        " 60000 ms, and 1 others waited too; send more slowly, or see max_block_ms"
    )


def test_few_ask_for_a_route_at_a_time() -> None:
    room = Tells().room
    for _ in range(MOST_PREPARED - 1):
        room.begin_preparation()
    assert not room.is_full
    room.begin_preparation()
    assert room.is_full
    room.end_preparation()
    assert not room.is_full
