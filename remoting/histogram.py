# SPDX-License-Identifier: Apache-2.0
"""A histogram in Prometheus' sense: the number of values up to each bound, and their sum.

Plain numbers: who counts needs no library, and values of a run are counted together.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import Final

Buckets = list[tuple[str, float]]


class Histogram:
    """Values by `bounds`, which are sorted; a value that is a bound is below it."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: Sequence[int]) -> None:
        self.bounds: Final = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0

    def add(self, value: int, times: int = 1) -> None:
        """Counts a value, or the same one several times."""
        self.counts[bisect_left(self.bounds, value)] += times
        self.total += value * times

    def add_all(self, values: Sequence[int]) -> None:
        """Counts values, which are mostly alike: those of a run."""
        bounds, counts = self.bounds, self.counts
        bucket = bisect_left(bounds, min(values))
        if bucket == len(bounds) or max(values) <= bounds[bucket]:
            counts[bucket] += len(values)
        else:
            for value in values:
                counts[bisect_left(bounds, value)] += 1
        self.total += sum(values)

    def buckets(self) -> Buckets:
        """Bounds and how many values are up to each, the last one "+Inf", with all of them."""
        found: Buckets = []
        count = 0
        for bound, its in zip((*map(float, self.bounds), "+Inf"), self.counts, strict=True):
            count += its
            found.append((str(bound), count))
        return found
