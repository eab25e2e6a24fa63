# SPDX-License-Identifier: Apache-2.0
"""How much is on its way."""

from __future__ import annotations

from twisted.internet.defer import CancelledError, Deferred

from txrocketmq.client.producer.send.backpressure import MIN_SEND_NUM, MIN_SEND_SIZE, Backpressure


def entered(each: Deferred[None]) -> bool:
    return each.called


def test_so_many_messages_and_no_more() -> None:
    gate = Backpressure(12, 1 << 30)
    first = [gate.enter(1) for _ in range(14)]
    assert [entered(each) for each in first] == [True] * 12 + [False] * 2
    gate.leave(1)
    assert [entered(each) for each in first[12:]] == [True, False]
    assert (gate.count, gate.waiting) == (12, 1)


def test_so_many_bytes_and_no_more() -> None:
    gate = Backpressure(1_000, 2 << 20)
    assert entered(gate.enter(1 << 20))
    assert entered(gate.enter(1 << 20))
    waiting = gate.enter(1)
    assert not entered(waiting)
    gate.leave(1 << 20)
    assert entered(waiting)
    assert gate.size_bytes == (1 << 20) + 1


def test_one_that_is_too_large_goes_alone() -> None:
    gate = Backpressure(1_000, MIN_SEND_SIZE)
    assert entered(gate.enter(5 * MIN_SEND_SIZE))
    assert not entered(gate.enter(1))


def test_limits_have_the_smallest_of_the_original() -> None:
    gate = Backpressure(1, 1)
    assert all(entered(gate.enter(1)) for _ in range(MIN_SEND_NUM))
    assert not entered(gate.enter(1))


def test_who_gives_up_leaves_his_place() -> None:
    gate = Backpressure(10, 1 << 30)
    for _ in range(10):
        gate.enter(1)
    given_up, next_one = gate.enter(1), gate.enter(1)
    given_up.addErrback(lambda failure: failure.trap(CancelledError))
    given_up.cancel()
    gate.leave(1)
    assert entered(next_one)
    assert gate.waiting == 0
