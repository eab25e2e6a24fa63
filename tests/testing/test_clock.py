# SPDX-License-Identifier: Apache-2.0
"""A clock that is put forward."""

from __future__ import annotations

import gc

import pytest
from twisted.internet.task import Clock as ReactorClock

from txrocketmq.testing.clock import HurriedClock


@pytest.fixture
def reactor() -> ReactorClock:
    return ReactorClock()


@pytest.fixture
def clock(reactor: ReactorClock) -> HurriedClock:
    return HurriedClock(reactor)


def test_time_runs_on_from_where_it_was_put(reactor: ReactorClock, clock: HurriedClock) -> None:
    reactor.advance(1)
    clock.advance(10_000)
    assert clock.now_ms() == 11_000
    reactor.advance(1)
    clock.advance(5)
    assert clock.now_ms() == clock.steady_ms() == 12_005


def test_connections_keep_their_time(reactor: ReactorClock, clock: HurriedClock) -> None:
    called: list[int] = []
    clock.unhurried.later(1_000, called.append, 1)
    clock.advance(3_600_000)
    reactor.advance(0.5)
    assert clock.unhurried.now_ms() == clock.unhurried.steady_ms() == 500
    assert called == []
    assert clock.unhurried is clock.unhurried


def test_what_is_due_by_then_happens_soon(reactor: ReactorClock, clock: HurriedClock) -> None:
    called: list[str] = []
    clock.later(10_000, called.append, "due")
    clock.later(10_001, called.append, "almost")
    clock.advance(10_000)
    assert called == []
    reactor.advance(0)
    assert called == ["due"]
    reactor.advance(0.001)
    assert called == ["due", "almost"]


def test_what_repeats_happens_once_and_goes_on(reactor: ReactorClock, clock: HurriedClock) -> None:
    ticks: list[int] = []
    clock.every(1_000, lambda: ticks.append(clock.now_ms()))
    clock.advance(60_000)
    reactor.advance(0)
    assert ticks == [60_000]
    reactor.advance(1)
    assert ticks == [60_000, 61_000]
    clock.stop()
    clock.advance(60_000)
    reactor.advance(10)
    assert len(ticks) == 2


def test_what_was_cancelled_stays_so(reactor: ReactorClock, clock: HurriedClock) -> None:
    called: list[int] = []
    delayed = clock.later(10, called.append, 1)
    delayed.cancel()
    clock.advance(10)
    reactor.advance(1)
    assert called == []


def test_what_is_over_is_forgotten(reactor: ReactorClock, clock: HurriedClock) -> None:
    for _ in range(100):
        clock.later(1, lambda: None)
    reactor.advance(1)
    gc.collect()
    assert len(clock._delayed) == 0


def test_time_does_not_go_back(clock: HurriedClock) -> None:
    with pytest.raises(ValueError, match="forward, not back"):
        clock.advance(-1)
