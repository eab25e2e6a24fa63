# SPDX-License-Identifier: Apache-2.0
"""Tables without Spark. What each of them has is in the tests of its module."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.spark.stores import Draft, write_store
from txrocketmq.spark.errors import OptionError
from txrocketmq.spark.options import SourceOptions
from txrocketmq.spark.tables.reading import TableReading, table_columns


def test_the_columns_that_are_asked_for(tmp_path: Path) -> None:
    write_store(tmp_path / "a", [Draft(topic="Orders")])
    options = SourceOptions.of(
        {"storePath": str(tmp_path / "a"), "table": "queues", "columns": "maxOffset,topic"}
    )
    reading = TableReading(options, table_columns(options))
    rows = [r for part in reading.parts() for b in reading.batches(part) for r in b.to_pylist()]
    assert rows == [{"maxOffset": 1, "topic": "Orders"}]
    assert reading.schema.names == ["maxOffset", "topic"]


def test_an_option_without_meaning(tmp_path: Path) -> None:
    write_store(tmp_path / "a", [])
    options = SourceOptions.of({"storePath": str(tmp_path), "table": "index", "topic": "a"})
    with pytest.raises(OptionError, match="topic has no meaning for table=index"):
        TableReading(options, table_columns(options))
