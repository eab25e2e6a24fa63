# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock as Reactor

from txrocketmq.client.consumer.listening.running_calls import AtWork
from txrocketmq.remoting.host.clock import Clock


class Scene:
    """Two may be at work; `ends` lets each end."""

    def __init__(self) -> None:
        self.reactor = Reactor()
        self.went_on = 0
        self.at_work = AtWork(Clock(self.reactor), 2, self._go_on)
        self.ends: list[Deferred[None]] = []

    def _go_on(self) -> None:
        self.went_on += 1

    def begin(self) -> None:
        end: Deferred[None] = Deferred()
        self.ends.append(end)

        async def work() -> None:
            await end

        self.at_work.begin(work())


def test_a_limited_number_is_at_work() -> None:
    scene = Scene()
    scene.begin()
    assert scene.at_work.has_room
    scene.begin()
    assert not scene.at_work.has_room
    scene.ends[0].callback(None)
    assert scene.at_work.has_room
    assert scene.went_on == 0, "in a turn of its own"
    scene.reactor.advance(0)
    assert scene.went_on == 1


def test_a_stop_waits_for_those_at_work() -> None:
    scene = Scene()
    scene.begin()
    scene.begin()
    stops = [scene.at_work.stop(), scene.at_work.stop()]
    assert scene.at_work.stopped
    scene.ends[0].callback(None)
    assert not any(each.called for each in stops)
    scene.ends[1].callback(None)
    assert all(each.called for each in stops)
    assert scene.at_work.stop().called, "nothing is at work"


@pytest.mark.filterwarnings("error")
def test_a_failure_ends_its_own_work_only() -> None:
    scene = Scene()
    scene.begin()
    scene.begin()
    scene.ends[0].errback(ValueError("a fault of ours"))
    assert scene.at_work.has_room
    stop = scene.at_work.stop()
    scene.ends[1].callback(None)
    assert stop.called


def test_what_others_do_counts_until_they_say_that_it_is_done() -> None:
    scene = Scene()
    scene.at_work.add(3)
    stopped = scene.at_work.stop()
    scene.at_work.done(2)
    assert not stopped.called
    scene.at_work.done(1)
    assert stopped.called
