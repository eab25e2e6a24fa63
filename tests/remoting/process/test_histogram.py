# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from bisect import bisect_left

from hypothesis import given
from hypothesis import strategies as st

from txrocketmq.remoting.process.histogram import Histogram

BOUNDS = (10, 100)


def test_values_are_counted_up_to_their_bounds() -> None:
    histogram = Histogram(BOUNDS)
    for value in (0, 10, 11, 100, 101):
        histogram.add(value)
    histogram.add(50, times=3)
    assert histogram.buckets() == [("10.0", 2), ("100.0", 7), ("+Inf", 8)]
    assert histogram.total == 0 + 10 + 11 + 100 + 101 + 150


@given(st.lists(st.integers(0, 200), min_size=1))
def test_values_together_are_counted_as_one_by_one(values: list[int]) -> None:
    together = Histogram(BOUNDS)
    together.add_all(values)
    assert together.total == sum(values)
    counts = [0, 0, 0]
    for value in values:
        counts[bisect_left(BOUNDS, value)] += 1
    assert together.counts == counts
