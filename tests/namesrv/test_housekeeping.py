# SPDX-License-Identifier: Apache-2.0
"""In a whole name server, with brokers that connect to it: test_service.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from twisted.logger import capturedLogs, formatEvent

from tests.fakes import NOW_MS, FakePeer
from tests.namesrv.conftest import registration
from txrocketmq.namesrv.config import NamesrvConfig
from txrocketmq.namesrv.housekeeping import FIRST_SCAN_MS, TWO_MS, BrokerHousekeeping
from txrocketmq.namesrv.routes.brokers import BROKER_EXPIRED_MS
from txrocketmq.namesrv.routes.route_table import RouteTable
from txrocketmq.namesrv.turns import Turns
from txrocketmq.remoting.host.life import Life, Tick
from txrocketmq.remoting.settings.config_file import Configuration


class Scene:
    """A table with its housekeeping; `told` are the addresses of brokers that were notified."""

    def __init__(self) -> None:
        config = NamesrvConfig(notify_min_broker_id_changed=True)
        configuration = Configuration((config,), {})
        self.table = RouteTable(configuration)
        self.told: list[str] = []
        self.connects = 0
        self.is_closed = False
        self.now_ms = NOW_MS
        self.later: list[Callable[[], None]] = []
        turns = Turns(self.later.append, lambda: 0.0)
        self.brokers = BrokerHousekeeping(
            self.table, configuration, lambda: self.now_ms, turns, self._connect
        )

    def _connect(self) -> Any:
        self.connects += 1
        return self

    def invoke_oneway(self, address: str, *_: object) -> None:
        self.told.append(address)

    def close(self) -> None:
        self.is_closed = True

    def life(self) -> Life:
        return self.brokers.life()

    def register(self, peer: object, **about: Any) -> None:
        self.table.register(registration(**about), peer, self.now_ms)
        self.brokers.tell()

    def lines(self, work: Callable[[], object]) -> list[str]:
        """What is logged by some work, and in the turns after it."""
        with capturedLogs() as events:
            work()
            while self.later:
                self.later.pop(0)()
        return [formatEvent(event) for event in events]


@pytest.fixture
def scene() -> Scene:
    return Scene()


def test_silent_brokers_are_looked_for(scene: Scene) -> None:
    scene.register(FakePeer())
    (scan,) = scene.life().beats
    assert isinstance(scan, Tick)
    assert (scan.period_ms, scan.first_ms) == (5_000, FIRST_SCAN_MS)
    assert scene.lines(lambda: scan.tick(0, NOW_MS + BROKER_EXPIRED_MS)) == []
    (line,) = scene.lines(lambda: scan.tick(0, NOW_MS + BROKER_EXPIRED_MS + 1))
    assert line.endswith(f"left: it was silent for {BROKER_EXPIRED_MS} ms")
    assert scene.table.live_brokers == 0


def test_a_broker_goes_with_its_connection(scene: Scene) -> None:
    first, second = FakePeer(), FakePeer()
    scene.register(first)
    scene.register(second, name="broker-b", port=20_911)
    forgets = scene.life().forgets
    assert forgets is not None
    (line,) = scene.lines(lambda: forgets(first, NOW_MS))
    assert line.endswith("left: its connection ended")
    assert scene.table.live_brokers == 1


def test_those_left_of_a_name_are_told_on_connections_that_are_closed_at_the_end(
    scene: Scene,
) -> None:
    master, slave = FakePeer(), FakePeer()
    scene.register(master, acting_master=True)
    scene.register(slave, port=20_911, broker_id=1, acting_master=True)
    life = scene.life()
    assert life.forgets is not None
    assert scene.connects == 0, "most name servers never connect to anybody"
    life.forgets(master, NOW_MS)
    assert (scene.connects, scene.told) == (1, ["10.0.0.1:20911"])
    for _, work in life.stops():
        work(NOW_MS)
    assert scene.is_closed


def test_one_that_told_nobody_has_nothing_to_close(scene: Scene) -> None:
    for _, work in scene.life().stops():
        work(NOW_MS)
    assert not scene.is_closed


def test_two_brokers_of_one_name_are_told_of_every_ten_minutes(scene: Scene) -> None:
    def both() -> None:
        scene.register("a")
        scene.register("b", port=20_911)

    assert sum("two brokers register as" in line for line in scene.lines(both)) == 1
    assert not any("two brokers" in line for line in scene.lines(both))
    scene.now_ms += TWO_MS
    assert sum("two brokers" in line for line in scene.lines(both)) == 1


def test_what_is_left_when_many_leave_is_told_in_turns(scene: Scene) -> None:
    peer = FakePeer()
    for number in range(40):
        scene.register(peer, name=f"b{number}", port=20_000 + number)
    forgets = scene.life().forgets
    assert forgets is not None
    with capturedLogs() as events:
        forgets(peer, NOW_MS)
    at_once = len(events)
    assert 0 < at_once < 40
    assert at_once + len(scene.lines(lambda: None)) == 40
    assert scene.table.live_brokers == 0
