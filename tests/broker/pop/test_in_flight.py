# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from txrocketmq.broker.pop.in_flight import InFlight


def test_counts() -> None:
    counts = InFlight()
    assert counts.get("T", "g", 0) == 0
    counts.add("T", "g", 0, 5)
    counts.add("T", "g", 1, 1)
    counts.add("T", "g", 0, -2)
    assert (counts.get("T", "g", 0), counts.get("T", "g", 1)) == (3, 1)
    counts.clear("T", "g", 1)
    assert counts.get("T", "g", 1) == 0


def test_it_never_falls_below_nothing() -> None:
    """What was popped before the start is not counted, but acknowledged."""
    counts = InFlight()
    counts.add("T", "g", 0, -7)
    counts.add("T", "g", 0, 2)
    assert counts.get("T", "g", 0) == 2
    counts.add("T", "g", 0, -7)
    assert counts.get("T", "g", 0) == 0
