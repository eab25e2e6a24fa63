# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from txrocketmq.broker.store.log.packed_run import PackedRun
from txrocketmq.broker.store.queues.units import UNIT


def test_it_knows_the_sizes_of_its_messages() -> None:
    run = PackedRun(100, 150, 1_000, [("queue", 2, 50)])
    data = UNIT.pack(100, 20, 7) + UNIT.pack(120, 30, 8)
    run.units.append(("queue", 4, (100, data, 150)))
    assert list(run.sizes()) == [("queue", [20, 30])]
    assert (run.start_offset, run.end_offset, run.stored_ms) == (100, 150, 1_000)
    assert not run.copies
