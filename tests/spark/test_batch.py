# SPDX-License-Identifier: Apache-2.0
"""The reader as Spark's processes use it: made, asked, pickled, then read from. No JVM."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.datasource import EqualTo, Filter, InputPartition, IsNotNull

from tests.spark.stores import Draft, StoreWriter
from txrocketmq.spark.batch import PushdownStoreReader, StoreReader
from txrocketmq.spark.errors import OptionError
from txrocketmq.spark.options import SourceOptions
from txrocketmq.spark.output import Output


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


def test_conditions_only_narrow(root: Path) -> None:
    reader = PushdownStoreReader(*_options(root))
    filters: list[Filter] = [IsNotNull(("topic",)), EqualTo(("topic",), "Few")]
    assert list(reader.pushFilters(filters)) == filters, "Spark checks them all again"
    assert [row["topic"] for row in _rows(reader)] == ["Few"] * 10
    reader.pushFilters([EqualTo(("brokerName",), "b")])
    assert {(row["brokerName"], row["topic"]) for row in _rows(reader)} == {
        ("b", "Few"), ("b", "Many"),
    }  # fmt: skip


def test_the_plain_reader_takes_no_conditions(root: Path) -> None:
    """Spark looks whether the method is overridden, and where push-down is off it refuses then."""
    assert "pushFilters" not in vars(StoreReader)
    assert "pushFilters" in vars(PushdownStoreReader)


def test_no_partitions_means_no_rows(tmp_path: Path) -> None:
    StoreWriter(tmp_path / "a")
    reader = StoreReader(*_options(tmp_path))
    assert reader.partitions() == []
    assert list(reader.read(InputPartition(None))) == []
    assert list(reader.read(None)) == [], "as PySpark 4.0 calls it"
