# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from txrocketmq.broker.store.formats.damage import Damage, DamagedRecords


def test_each_place_counts_once() -> None:
    damaged = DamagedRecords()
    place = Damage(7, 100, "/log/0", 7, "T/0", 3)
    assert [damaged.found(each) for each in (place, place, place._replace(queue="L/0"))] == [
        True, False, True,
    ]  # fmt: skip
    assert damaged.count == 2
