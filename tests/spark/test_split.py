# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pickle
from pathlib import Path

from tests.spark.stores import StoreWriter
from txrocketmq.spark.split import LogRange, QueuePicks
from txrocketmq.spark.store import Store


def test_splits_are_small_when_they_travel(tmp_path: Path) -> None:
    writer = StoreWriter(tmp_path / "s")
    store = Store.open(str(writer.root))
    picks = QueuePicks(store, 0, 1 << 40, (("Orders", 0), ("Orders", 1)))
    for split in (LogRange(store, 0, 1 << 30, first_is_boundary=True), picks):
        data = pickle.dumps(split)
        assert pickle.loads(data) == split  # noqa: S301 - our own
        assert len(data) < 1000
