# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from txrocketmq.broker.store.get.jumps import DELAYS, GROUP, KINDS, Jump, Jumps


def test_each_jump_is_told_once_and_its_messages_are_counted() -> None:
    jumps = Jumps()
    told: list[tuple[Jump, int]] = []
    jumps.listeners.append(lambda *what: told.append(what))
    first = Jump(GROUP, "T", 0, 3, 10, 7, "g")
    for each in (first, first, first._replace(group="h"), Jump(DELAYS, "S", 1, 0, 2, 2)):
        jumps.found(each)
    jumps.found(Jump(DELAYS, "S", 1, 2, 4, 0))  # all of them were finished
    jumps.tick()
    jumps.tick()
    assert [each.group for each, _ in told] == ["g", "h", ""]
    assert {kind: jumps.messages[kind] for kind in KINDS if jumps.messages[kind]} == {
        GROUP: 14,
        DELAYS: 2,
    }
