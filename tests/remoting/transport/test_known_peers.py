# SPDX-License-Identifier: Apache-2.0
"""Peers that are known for reads that cost little: they come before others with little."""

from __future__ import annotations

import pytest

from tests.remoting.transport.test_turns import ALONE, COST_S, Scene, requests
from txrocketmq.remoting.command import RemotingCommand
from txrocketmq.remoting.transport.peer_state import OPEN
from txrocketmq.remoting.transport.turns import (
    HEAVY_READ,
    LIGHT_READS,
    MOST_LIGHT_READS,
    SHARE_S,
    TURN_S,
)


def test_one_known_for_little_does_not_wait_for_a_hundred_that_are_new() -> None:
    """Each of them sends little, which costs much."""
    scene = Scene(cost_s=SHARE_S / 2)
    known, heavy = scene.connect(), scene.connect()
    for opaque in range(10):
        known.tell(RemotingCommand(ALONE.code, {}, opaque=opaque))
        heavy.tell(*requests(3))
        scene.all_turns()
    crowd = [scene.connect() for _ in range(100)]
    for each in crowd:
        each.tell(*requests(8))
    before_s = scene.now_s
    for each in (heavy, known):
        each.tell(RemotingCommand(ALONE.code, {}, opaque=7))
    while not known.heard():
        assert scene.turn() <= TURN_S + 3 * SHARE_S
    assert scene.now_s - before_s <= 2 * TURN_S
    assert (heavy.protocol, 7) not in scene.served
    scene.all_turns()
    assert len(scene.served) == 10 + 30 + 800 + 2


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
                each.protocol._light_reads = LIGHT_READS
                each.tell(*requests(1))
        scene.turn()
        if new.heard():
            break
    else:
        pytest.fail("the new one is never served")


def test_a_long_read_now_and_then_changes_nothing() -> None:
    scene = Scene()
    peer = scene.connect()
    assert not peer.protocol.is_known()
    for _ in range(10_000):
        peer.protocol._light_reads += 1
    for wanted in (True, False):
        for _ in range((MOST_LIGHT_READS - LIGHT_READS) // HEAVY_READ if wanted else 1):
            scene.cost_s = 2 * SHARE_S
            assert peer.protocol.is_known()
            peer.tell(*requests(1))
            scene.all_turns()
        assert peer.protocol.is_known() is wanted
    scene.cost_s = COST_S
    for _ in range(HEAVY_READ):
        peer.tell(*requests(1))
        scene.all_turns()
    assert peer.protocol.is_known()
