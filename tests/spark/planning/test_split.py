# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pickle
from itertools import pairwise
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from tests.spark.stores import StoreWriter
from txrocketmq.spark.planning.split import (
    FILE_BYTES,
    TOGETHER_BYTES,
    LogRange,
    QueuePicks,
    even_parts,
    joined,
)
from txrocketmq.spark.store.store import Store


def test_splits_are_small_when_they_travel(tmp_path: Path) -> None:
    writer = StoreWriter(tmp_path / "s")
    store = Store.open(str(writer.root))
    picks = QueuePicks(store, 0, 1 << 40, (("Orders", 0), ("Orders", 1)))
    for split in (LogRange(store, 0, 1 << 30, first_is_boundary=True), picks):
        data = pickle.dumps(split)
        assert pickle.loads(data) == split  # noqa: S301 - our own
        assert len(data) < 1000


@given(st.integers(0, 1 << 62), st.integers(0, 1 << 40), st.integers(1, 50))
def test_even_parts_make_the_range(start: int, size: int, count: int) -> None:
    parts = even_parts(start, start + size, count)
    assert len(parts) == min(size, count)
    edges = [start, *(high for _, high in parts)]
    assert parts == list(pairwise(edges))
    assert edges[-1] == start + size
    lengths = {high - low for low, high in parts}
    assert max(lengths, default=0) - min(lengths, default=0) <= 1


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(1, 300)), max_size=30),
    st.none() | st.integers(1, 400),
)
def test_small_files_are_joined(files: list[tuple[int, int]], most_units: int | None) -> None:
    """Files lie end to end, but for gaps where some were deleted; sizes in units of 1 MiB."""
    unit, at = 1 << 20, 0
    ranges = []
    for gap, size in files:
        ranges.append((at + gap // 3 * unit, at + gap // 3 * unit + size * unit))
        at = ranges[-1][1]
    most = None if most_units is None else most_units * unit
    found = list(joined(ranges, most))
    edges = {start for start, _ in ranges}
    assert {start for start, _ in found} <= edges
    inside = [each for each in ranges if any(low <= each[0] < high for low, high in found)]
    assert inside == ranges
    assert sum(high - low for low, high in found) == sum(high - low for low, high in ranges)
    for low, high in found:
        limit = TOGETHER_BYTES if most is None else min(most, TOGETHER_BYTES)
        assert high - low <= limit or (low, high) in ranges
    for before, after in pairwise(found):
        next_size = next(end - start for start, end in ranges if start == after[0])
        assert before[1] != after[0] or before[1] - before[0] + next_size > limit


def test_a_file_has_its_price() -> None:
    files = [(at, at + 10) for at in range(0, 5000, 10)]
    found = list(joined(files))
    assert [high - low for low, high in found] == [2560, 2440]
    assert TOGETHER_BYTES // FILE_BYTES == 256
    assert list(joined([])) == []
