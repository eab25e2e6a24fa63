# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from txrocketmq.broker.work.mishap import Mishap, tell


def test_all_listeners_are_told_of_a_mishap() -> None:
    told: list[Mishap] = []
    tell([told.append, told.append], Mishap(2, topic="T"))
    tell([], Mishap(1))
    assert told == 2 * [Mishap(2, 0, -1, "T", "", "")]
