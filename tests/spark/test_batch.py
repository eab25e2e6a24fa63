# SPDX-License-Identifier: Apache-2.0
"""The reader as Spark's processes use it: made, asked, pickled, then read from. No JVM."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.datasource import DataSourceReader, InputPartition

from tests.spark.stores import Draft, StoreWriter
from txrocketmq.spark.arrow.errors import OptionError
from txrocketmq.spark.batch import StoreReader
from txrocketmq.spark.columns.output import Output
from txrocketmq.spark.options.options import SourceOptions


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for broker in ("a", "b"):
        writer = StoreWriter(tmp_path / broker)
        writer.put_all(Draft("Few" if number % 10 == 0 else "Many") for number in range(50))
    return tmp_path


def _rows(reader: StoreReader) -> list[dict[str, Any]]:
    """As the planner does: the reader is pickled before it is asked for partitions."""
    data = pickle.dumps(reader)
    partitions = pickle.loads(pickle.dumps(reader.partitions()))  # noqa: S301 - as Spark does
    rows: list[dict[str, Any]] = []
    for partition in partitions:
        for batch in pickle.loads(data).read(partition):  # noqa: S301 - as Spark does
            rows += batch.to_pylist()
    return rows


def _options(root: Path, **options: str) -> tuple[SourceOptions, Output]:
    parsed = SourceOptions.of(
        {"path": f"{root}/*", "columns": "brokerName,topic,queueOffset", **options}
    )
    return parsed, Output.of(parsed)


def test_stores_of_several_brokers(root: Path) -> None:
    rows = _rows(StoreReader(*_options(root)))
    assert len(rows) == 100
    assert {row["brokerName"] for row in rows} == {"a", "b"}


def test_offsets_are_those_of_their_broker(root: Path) -> None:
    offsets = '{"Few": {"a": {"0": 4}, "b": {"0": -1}}}'
    rows = _rows(StoreReader(*_options(root, topic="Few", startingOffsets=offsets)))
    assert [tuple(row.values()) for row in rows] == [("a", "Few", 4)]
    with pytest.raises(OptionError, match="names the broker c"):
        StoreReader(*_options(root, startingOffsets='{"log": {"c": 0}}'))


def test_conditions_are_those_of_the_load(root: Path) -> None:
    few = StoreReader(*_options(root, where="topic LIKE 'F%'"))
    assert [row["topic"] for row in _rows(few)] == ["Few"] * 10
    of_b = StoreReader(*_options(root, where="brokerName = 'b' AND queueOffset < 2"))
    assert [tuple(row.values()) for row in _rows(of_b)] == [
        ("b", "Few", 0), ("b", "Many", 0), ("b", "Many", 1), ("b", "Few", 1),
    ]  # fmt: skip


def test_the_reader_takes_no_conditions_of_queries() -> None:
    """What one query pushed would take effect in others, as Spark keeps one reader for a load."""
    assert StoreReader.pushFilters is DataSourceReader.pushFilters


def test_an_empty_store_has_one_partition_and_no_rows(tmp_path: Path) -> None:
    StoreWriter(tmp_path / "a")
    reader = StoreReader(*_options(tmp_path))
    assert len(reader.partitions()) == 1, "for what comes later"
    assert _rows(reader) == []


def test_no_partitions_means_no_rows(tmp_path: Path) -> None:
    StoreWriter(tmp_path / "a")
    reader = StoreReader(*_options(tmp_path, where="brokerName = 'b'"))
    assert reader.partitions() == []
    assert list(reader.read(InputPartition(None))) == []
    assert list(reader.read(None)) == [], "as PySpark 4.0 calls it"
