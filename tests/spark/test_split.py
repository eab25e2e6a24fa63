# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pickle
from itertools import pairwise
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from tests.spark.stores import StoreWriter
from txrocketmq.spark.split import LogRange, QueuePicks, even_parts
from txrocketmq.spark.store import Store


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
