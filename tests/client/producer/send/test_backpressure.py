# SPDX-License-Identifier: Apache-2.0
"""How much is on its way, and who waits until there is room."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from twisted.internet.defer import CancelledError
from twisted.internet.task import Clock as ReactorClock
from twisted.python.failure import Failure

from tests.client.fakes import result_of, started
from txrocketmq.client.base.config import ProducerConfig
from txrocketmq.client.base.errors import BackpressureTimeout, ClientClosed
from txrocketmq.client.producer.send.backpressure import (
    FIRST_COUNT,
    LEAST_COUNT,
    MIN_SEND_NUM,
    MIN_SEND_SIZE,
    Backpressure,
)
from txrocketmq.client.producer.send.waiting_sends import AT_ONCE, BEHIND
from txrocketmq.remoting.host.clock import Clock


class Sends:
    """Sends of numbers: those that have begun, and what each was told in the end."""

    def __init__(self, **settings: Any) -> None:
        self.time = ReactorClock()
        self.room = Backpressure(Clock(self.time), ProducerConfig(**settings))
        self.begun: list[int] = []
        self.told: dict[int, Any] = {}
        self.cancelled: list[int] = []

    def send(self, number: int, size_bytes: int = 1) -> Any:
        """Begins a send, now or when there is room."""

        def begin(_: Any) -> Any:
            self.begun.append(number)
            if size_bytes < 0:
                raise ValueError("it cannot be sent")
            self.room.count += 1
            self.room.size_bytes += size_bytes
            full = self.room.count >= self.room.max_count
            if full or self.room.size_bytes >= self.room.max_bytes:
                self.room.is_full = True
            return self

        if self.room.is_full:
            return self.room.wait(lambda outcome: self.told.update({number: outcome}), begin)
        return begin(None)

    def cancel(self) -> None:
        """Called for a send that had to wait and has begun."""
        self.cancelled.append(self.begun[-1])

    def answered(self, size_bytes: int = 1, took_ms: int = 0) -> None:
        """Ends a send that had three seconds."""
        self.room.count -= 1
        self.room.size_bytes -= size_bytes
        if self.room.is_full:
            now_ms = int(self.time.seconds() * 1000)
            self.room.left(now_ms + 3_000 - took_ms, 3_000)

    def error(self, number: int) -> Any:
        """Returns the error of a send, which has ended with one."""
        assert isinstance(self.told[number], Failure)
        return self.told[number].value


def test_so_many_messages_and_no_more() -> None:
    sends = Sends(max_in_flight=3)
    for number in range(5):
        sends.send(number)
    assert sends.begun == [0, 1, 2]
    assert sends.room.waiting == 2
    sends.answered()
    assert sends.begun == [0, 1, 2, 3]
    sends.answered()
    sends.answered()
    assert sends.begun == [0, 1, 2, 3, 4]
    assert not sends.room.is_full


def test_so_many_bytes_and_no_more() -> None:
    sends = Sends(max_in_flight_bytes=10)
    for number, size_bytes in enumerate((9, 1, 1)):
        sends.send(number, size_bytes)
    assert sends.begun == [0, 1]
    sends.answered(9)
    assert sends.begun == [0, 1, 2]
    assert sends.room.size_bytes == 2


def test_one_that_is_too_large_leaves_and_others_wait_for_it() -> None:
    sends = Sends(max_in_flight_bytes=10)
    sends.send(0, 1_000)
    sends.send(1)
    assert sends.begun == [0]
    sends.answered(1_000)
    assert sends.begun == [0, 1]


def test_the_original_has_other_limits() -> None:
    room = Sends(backpressure_enable=True, backpressure_send_num=1, backpressure_send_size=1).room
    assert (room.max_count, room.max_bytes) == (MIN_SEND_NUM, MIN_SEND_SIZE)
    room = Sends(backpressure_enable=True, max_in_flight=3).room
    assert (room.max_count, room.max_bytes) == (1_024, 100 << 20)


def test_the_limit_grows_with_early_answers_and_shrinks_with_late_ones() -> None:
    sends = Sends(max_in_flight=200)
    room = sends.room
    for number in range(2_000):
        sends.send(number)
    assert (room.count, room.max_count) == (FIRST_COUNT, FIRST_COUNT)
    for _ in range(150):
        sends.answered(took_ms=10)
    assert (room.count, room.max_count) == (200, 200)
    for _ in range(50):
        sends.answered(took_ms=800)
    assert room.max_count == 200
    for _ in range(300):
        sends.answered(took_ms=1_500)
    assert (room.count, room.max_count) == (LEAST_COUNT, LEAST_COUNT)
    before = room.waiting
    sends.answered(took_ms=10)
    assert (room.count, room.waiting) == (LEAST_COUNT + 1, before - 2)


def test_as_long_as_nobody_waits_the_limit_stays() -> None:
    sends = Sends(max_in_flight=200)
    for number in range(FIRST_COUNT):
        sends.send(number)
    sends.answered(took_ms=2_900)
    assert sends.room.max_count == FIRST_COUNT


def test_who_waits_has_a_limit_of_time_of_his_own() -> None:
    sends = Sends(max_in_flight=1, max_block_ms=1_000)
    for number in range(2):
        sends.send(number)
    sends.time.advance(0.5)
    sends.send(2)
    sends.time.advance(0.5)
    assert list(sends.told) == [1]
    error = sends.error(1)
    assert isinstance(error, BackpressureTimeout)
    assert "waited for 1000 ms while 1 messages of 1 bytes were on their way" in str(error)
    sends.answered()
    assert sends.begun == [0, 2]
    sends.time.advance(5)
    assert list(sends.told) == [1], "it began in time"
    sends.send(3)
    sends.time.advance(1)
    assert list(sends.told) == [1, 3]


def test_who_gives_up_leaves_nothing_behind() -> None:
    sends = Sends(max_in_flight=1)
    sends.send(0)
    given_up, _ = sends.send(1), sends.send(2)
    given_up.cancel()
    assert isinstance(sends.error(1), CancelledError)
    assert sends.room.waiting == 1
    given_up.cancel()
    sends.answered()
    assert sends.begun == [0, 2]
    assert sends.cancelled == []


def test_who_has_begun_after_waiting_is_cancelled_as_any_other() -> None:
    sends = Sends(max_in_flight=1)
    sends.send(0)
    waited = sends.send(1)
    sends.answered()
    waited.cancel()
    assert sends.cancelled == [1]


def test_who_fails_at_once_makes_room_for_the_next() -> None:
    sends = Sends(max_in_flight=1)
    sends.send(0)
    sends.send(1, -1)
    sends.send(2)
    sends.answered()
    assert isinstance(sends.error(1), ValueError)
    assert sends.begun == [0, 1, 2]


def test_not_all_are_taken_up_in_one_turn() -> None:
    sends = Sends(max_in_flight=1)
    sends.send(0)
    count = 2 * AT_ONCE + 10
    for number in range(1, count):
        sends.send(number, -1)
    sends.answered()
    assert len(sends.begun) == 1 + AT_ONCE
    assert sends.room.is_full, "others still wait, and come first"
    sends.time.advance(0)
    assert sends.begun == list(range(count))


def test_not_all_that_are_late_end_in_one_turn() -> None:
    sends = Sends(max_in_flight=1, max_block_ms=1_000)
    for number in range(2 * AT_ONCE):
        sends.send(number)
    turns: list[int] = []
    ending = sends.room._end_late

    def end_late() -> None:
        before = len(sends.told)
        ending()
        turns.append(len(sends.told) - before)

    sends.room._end_late = end_late  # type: ignore[method-assign]
    sends.time.advance(1)
    assert len(sends.told) == 2 * AT_ONCE - 1
    assert max(turns) <= AT_ONCE


def test_a_shutdown_ends_those_that_wait() -> None:
    sends = Sends(max_in_flight=1)
    for number in range(AT_ONCE + 10):
        sends.send(number)
    closing = started(sends.room.close())
    assert len(sends.told) == AT_ONCE
    sends.time.advance(0)
    sends.time.advance(0)
    result_of(closing)
    assert isinstance(sends.error(AT_ONCE), ClientClosed)
    assert "the producer was shut down while it waited" in str(sends.error(1))
    assert sends.time.getDelayedCalls() == []
    with pytest.raises(ClientClosed):
        sends.send(0)


def test_callers_are_held_up_while_very_many_wait() -> None:
    sends = Sends(max_in_flight=1)
    for number in range(BEHIND):
        sends.send(number)
    assert not sends.room.is_behind
    result_of(sends.room.caught_up())
    sends.send(BEHIND)
    assert sends.room.is_behind
    held_up, interrupted = started(sends.room.caught_up()), started(sends.room.caught_up())
    interrupted.addErrback(lambda failure: failure.trap(CancelledError))
    interrupted.cancel()
    for _ in range(BEHIND // 2 - 1):
        sends.answered()
    assert not held_up.called
    sends.answered()
    assert held_up.called
    assert not sends.room.is_behind


@given(st.lists(st.sampled_from(["send", "answer", "cancel", "wait"]), max_size=60), st.data())
def test_counts_and_order_are_right_whatever_happens(steps: list[str], data: st.DataObject) -> None:
    sends = Sends(max_in_flight=2, max_in_flight_bytes=5, max_block_ms=100)
    sizes: dict[int, int] = {}
    waiting: dict[int, Any] = {}
    flying: list[int] = []
    for number, step in enumerate(steps):
        if step == "send":
            sizes[number] = data.draw(st.integers(1, 6))
            waiting[number] = sends.send(number, sizes[number])
        elif step == "answer" and flying:
            sends.answered(sizes[flying.pop(0)])
        elif step == "cancel" and waiting:
            waiting.pop(min(waiting)).cancel()
        elif step == "wait":
            sends.time.advance(0.06)
        flying += [each for each in sends.begun if each in waiting]
        waiting = {n: its for n, its in waiting.items() if n not in flying and n not in sends.told}
        room = sends.room
        assert sends.begun == sorted(sends.begun)
        assert room.waiting == len(waiting)
        assert (room.count, room.size_bytes) == (len(flying), sum(sizes[n] for n in flying))
        assert len(flying) <= 2
        assert room.is_full == (bool(waiting) or len(flying) == 2 or room.size_bytes >= 5)
