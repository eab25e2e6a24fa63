# SPDX-License-Identifier: Apache-2.0
"""A histogram in Prometheus' sense: the number of values up to each bound, and their sum.

It consists of plain numbers, so that counting needs no library, and the values of a run can be
counted together.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import Final

Buckets = list[tuple[str, float]]


class Histogram:
    """Counts values by `bounds`, which are sorted; a value equal to a bound counts as up to it."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: Sequence[int]) -> None:
        self.bounds: Final = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0

    def add(self, value: int, times: int = 1) -> None:
        """Counts a value, `times` times."""
        self.counts[bisect_left(self.bounds, value)] += times
        self.total += value * times

    def add_all(self, values: Sequence[int]) -> None:
        """Counts the values of a run, at once if all of them are between the same bounds."""
        bounds, counts = self.bounds, self.counts
        bucket = bisect_left(bounds, min(values))
        if bucket == len(bounds) or max(values) <= bounds[bucket]:
            counts[bucket] += len(values)
        else:
            for value in values:
                counts[bisect_left(bounds, value)] += 1
        self.total += sum(values)

    def buckets(self) -> Buckets:
        """Returns each bound and how many values are up to it; the last one, "+Inf", has all."""
        found: Buckets = []
        count = 0
        for bound, its in zip((*map(float, self.bounds), "+Inf"), self.counts, strict=True):
            count += its
            found.append((str(bound), count))
        return found
