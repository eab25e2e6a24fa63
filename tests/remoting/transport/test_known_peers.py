# SPDX-License-Identifier: Apache-2.0
"""Peers that are known for reads that cost little: they come before others with little."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.remoting.transport.test_turns import ALONE, COST_S, Scene, requests
from txrocketmq.remoting.command import RemotingCommand
from txrocketmq.remoting.transport.peer_state import OPEN
from txrocketmq.remoting.transport.turns import (
    LIGHT_READS,
    LONG_TURN,
    MOST_LIGHT_READS,
    SHARE_S,
    TURN_S,
    Turns,
)


def test_one_known_for_little_does_not_wait_for_a_hundred_that_are_new() -> None:
    """Each of them sends little, which costs much."""
    scene = Scene(cost_s=SHARE_S / 2)
    known, heavy = scene.connect(), scene.connect()
    for opaque in range(10):
        known.tell(RemotingCommand(ALONE.code, {}, opaque=opaque))
        heavy.tell(*requests(30))
        scene.all_turns()
    crowd = [scene.connect() for _ in range(100)]
    for each in crowd:
        each.tell(*requests(8))
    before_s = scene.now_s
    for each in (heavy, known):
        each.tell(RemotingCommand(ALONE.code, {}, opaque=99))
    while not known.heard():
        assert scene.turn() <= TURN_S + 3 * SHARE_S
    assert scene.now_s - before_s <= 2 * TURN_S
    assert (heavy.protocol, 99) not in scene.served
    scene.all_turns()
    assert len(scene.served) == 10 + 300 + 800 + 2


@pytest.mark.parametrize("cost_s", [COST_S, 2 * TURN_S])
def test_new_ones_are_served_however_many_known_ones_come(cost_s: float) -> None:
    scene = Scene()
    crowd = [scene.connect() for _ in range(200)]
    for each in crowd:
        for _ in range(LIGHT_READS):
            each.tell(*requests(1))
            scene.all_turns()
    scene.cost_s = cost_s
    scene.turns.spent_s = TURN_S
    new = scene.connect()
    new.tell(*requests(1))
    for _ in range(3):
        for each in crowd:
            if each.protocol.state is OPEN:
                each.protocol._reads = LIGHT_READS
                each.tell(*requests(1))
        scene.turn()
        if new.heard():
            break
    else:
        pytest.fail("the new one is never served")


def test_a_long_turn_now_and_then_changes_nothing() -> None:
    scene = Scene()
    peer = scene.connect()
    assert not peer.protocol.is_known()
    for _ in range(10 * MOST_LIGHT_READS):
        peer.tell(*requests(1))
        scene.all_turns()
    scene.cost_s = 2 * SHARE_S
    long_turns = 0
    while peer.protocol.is_known():
        scene.turns.spent_s = 0.0
        peer.tell(*requests(4))
        scene.all_turns()
        long_turns += 1
    assert long_turns > MOST_LIGHT_READS // LONG_TURN
    scene.cost_s = COST_S
    reads = 0
    while not peer.protocol.is_known():
        peer.tell(*requests(1))
        scene.all_turns()
        reads += 1
    assert 0 < reads <= LONG_TURN


def test_long_turns_are_those_that_had_the_processor_for_long() -> None:
    class Waiting:
        took_long_times = 0

        def take_turn(self) -> None:
            now["wall"] += 1.0
            now["cpu"] += now["cost"]

        def took_long(self) -> None:
            self.took_long_times += 1

        def give_up(self) -> None:
            pytest.fail("nothing has failed")

    now = {"wall": 0.0, "cpu": 0.0, "cost": 0.0}
    later: list[Callable[[], None]] = []
    turns = Turns(lambda: now["wall"], later.append, pytest.fail, lambda: now["cpu"])  # type: ignore[arg-type]
    one = Waiting()
    for now["cost"], times in ((SHARE_S / 2, 0), (SHARE_S * 2, 1)):
        turns.join(one, 1)
        later.pop(0)()
        assert one.took_long_times == times
