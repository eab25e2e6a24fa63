# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.spark.stores import Draft, StoreWriter
from txrocketmq.spark.arrow.errors import UnsupportedLayout
from txrocketmq.spark.arrow.schema import Column, arrow_schema
from txrocketmq.spark.options.options import SourceOptions
from txrocketmq.spark.store.store import Store
from txrocketmq.spark.tables.table import BROKER_NAME, Request, Table, gathered

COLUMNS = (BROKER_NAME, Column("n", "int", ""), Column("at", "timestamp", ""))


def _request(tmp_path: Path, **options: str) -> Request:
    writer = StoreWriter(tmp_path / "broker-a")
    parsed = SourceOptions.of({"storePath": str(writer.root), "table": "queues", **options})
    return Request(Store.open(str(writer.root)), parsed)


def _batches(request: Request, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    table = Table("t", "", COLUMNS, lambda _, piece: rows)
    found = table.batches(request, None, COLUMNS, arrow_schema(COLUMNS))
    return [row for batch in found for row in batch.to_pylist()]


def test_columns_of_any_kind_and_single_values(tmp_path: Path) -> None:
    rows = [{"n": np.array([1, 2]), "at": (1500, None)}, {"n": [3], "at": 0}, {"n": [], "at": 0}]
    assert [tuple(row.values()) for row in _batches(_request(tmp_path), rows)] == [
        ("broker-a", 1, datetime(1970, 1, 1, 0, 0, 1, 500_000, UTC)),
        ("broker-a", 2, None),
        ("broker-a", 3, datetime(1970, 1, 1, tzinfo=UTC)),
    ]


def test_tuples_come_in_handy_numbers() -> None:
    found = list(gathered(COLUMNS, ((number, 0) for number in range(25_000))))
    assert [len(each["n"]) for each in found] == [10_000, 10_000, 5000]
    assert list(gathered(COLUMNS, [])) == []


def test_system_topics_are_as_good_as_others(tmp_path: Path) -> None:
    assert _request(tmp_path).wanted.wants_topic("SCHEDULE_TOPIC_XXXX")
    assert not _request(tmp_path / "x", topic="a").wanted.wants_topic("SCHEDULE_TOPIC_XXXX")


def test_tables_of_queues_need_their_files(tmp_path: Path) -> None:
    request = _request(tmp_path)
    request.check_queue_files()
    queues = tmp_path / "broker-a" / "consumequeue_r"
    queues.mkdir()
    (queues / "CURRENT").write_text("MANIFEST")
    rocksdb = Request(Store.open(str(tmp_path / "broker-a")), request.options)
    with pytest.raises(UnsupportedLayout, match="table=queues .* RocksDB"):
        rocksdb.check_queue_files()


def test_a_request_has_one_pace(tmp_path: Path) -> None:
    StoreWriter(tmp_path / "broker-a").put_all([Draft()])
    given = {"storePath": str(tmp_path / "broker-a"), "table": "quarantine"}
    request = Request(
        Store.open(given["storePath"]), SourceOptions.of({**given, "maxBytesPerSecond": "1m"})
    )
    assert request.pace is request.pace is not None
    assert next(request.pace.steps(32 << 20)) == (0, (1 << 20) // 8)
    assert replace(request, options=SourceOptions.of(given)).pace is None
