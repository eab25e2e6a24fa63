# SPDX-License-Identifier: Apache-2.0
"""Waiting at several places for something to pop."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock as ReactorClock

from tests.client.fakes import started
from txrocketmq.client.consumer.popping.pop_waiting import PopPlace, PopWaiting
from txrocketmq.remoting.errors import ConnectError
from txrocketmq.remoting.host.clock import Clock

A, B = PopPlace("T", "a"), PopPlace("T", "b")


class Scene:
    def __init__(self) -> None:
        self.time = ReactorClock()
        self.asked: list[tuple[PopPlace, int]] = []
        self.answers: dict[PopPlace, Deferred[bool]] = {}
        self.waiting = PopWaiting(Clock(self.time), self._ask, 1_000)

    async def _ask(self, place: PopPlace, timeout_ms: int) -> bool:
        self.asked.append((place, timeout_ms))
        self.answers[place] = Deferred()
        return await self.answers[place]

    def wait(self, timeout_ms: int = 5_000) -> list[Any]:
        done: list[Any] = []
        started(self.waiting.wait([A, B], timeout_ms)).addBoth(done.append)
        return done


def test_the_first_place_that_has_something_ends_the_wait() -> None:
    scene = Scene()
    done = scene.wait()
    assert scene.asked == [(A, 5_000), (B, 5_000)]
    scene.answers[B].callback(True)
    scene.time.advance(0)
    assert done == [None]


def test_a_question_that_is_open_is_not_asked_again() -> None:
    scene = Scene()
    scene.wait()
    scene.answers[B].callback(True)
    scene.time.advance(0)
    done = scene.wait(1_000)
    assert [place for place, _ in scene.asked] == [A, B, B]
    scene.answers[A].callback(True)
    scene.time.advance(0)
    assert done == [None]
    assert scene.waiting._waiters == []


def test_nothing_anywhere_is_waited_for_as_long_as_it_may_be() -> None:
    scene = Scene()
    done = scene.wait(5_000)
    scene.answers[A].callback(False)
    scene.time.advance(4.9)
    assert done == []
    scene.time.advance(0.2)
    assert done == [None]


def test_a_place_that_cannot_be_asked_rests() -> None:
    scene = Scene()
    scene.wait(500)
    scene.answers[A].errback(ConnectError("nobody there"))
    scene.time.advance(0.5)
    done = scene.wait(5_000)
    assert [place for place, _ in scene.asked] == [A, B]
    scene.time.advance(0.6)
    scene.wait(5_000)
    assert [place for place, _ in scene.asked] == [A, B, A]
    scene.answers[B].callback(True)
    scene.time.advance(0)
    assert done == [None]


def test_the_end_lets_everybody_go_and_leaves_nothing() -> None:
    scene = Scene()
    done = scene.wait()
    scene.waiting.stop()
    assert done == [None]
    assert scene.time.getDelayedCalls() == []


def test_who_is_cancelled_waits_no_more() -> None:
    scene = Scene()
    waiting = started(scene.waiting.wait([A, B], 5_000))
    waiting.addErrback(lambda _: None)
    waiting.cancel()
    assert scene.waiting._waiters == []
    scene.answers[A].callback(True)
    scene.waiting.stop()
    assert scene.time.getDelayedCalls() == []
