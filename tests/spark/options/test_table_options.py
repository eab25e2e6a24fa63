# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql.types import DataType, LongType, StringType, StructField, StructType

from txrocketmq.spark.arrow.errors import OptionError
from txrocketmq.spark.options.table_options import options_in, with_options


def test_options_travel_in_the_schema() -> None:
    schema = StructType(
        [StructField("topic", StringType(), nullable=False), StructField("queueOffset", LongType())]
    )
    assert options_in(schema) == {}
    kept = with_options(schema, {"storepath": "/s", "topic": "Ünï 'x'"})
    assert kept.simpleString() == schema.simpleString()
    assert [field.nullable for field in kept.fields] == [False, True]
    again = StructType.fromJson(kept.jsonValue())
    assert options_in(again) == {"storepath": "/s", "topic": "Ünï 'x'"}


@pytest.mark.parametrize(
    "changes",
    [
        {"metadata": {"comment": "c"}},
        {"metadata": {"CURRENT_DEFAULT": "4", "EXISTS_DEFAULT": "4"}},
        {"nullable": False},
    ],
)
@pytest.mark.parametrize("at", [0, 1])
def test_comments_defaults_and_not_null_are_changes_too(at: int, changes: dict[str, Any]) -> None:
    fields = [StructField("topic", StringType()), StructField("queueOffset", LongType())]
    kept = StructType.fromJson(with_options(StructType(fields), {"topic": "T"}).jsonValue())
    assert options_in(kept) == {"topic": "T"}
    field = kept.fields[at]
    field.nullable = changes.get("nullable", field.nullable)
    field.metadata = {**(field.metadata or {}), **changes.get("metadata", {})}
    with pytest.raises(OptionError, match="changed by ALTER TABLE"):
        options_in(kept)


@pytest.mark.parametrize(
    "columns",
    [
        [("topic", StringType()), ("queueOffset", LongType()), ("tags", StringType())],
        [("topic", StringType())],
        [("name", StringType()), ("queueOffset", LongType())],
        [("topic", StringType()), ("queueOffset", StringType())],
    ],
)
def test_a_table_that_was_altered_is_refused(columns: list[tuple[str, DataType]]) -> None:
    """Spark keeps the metadata of a column that is renamed, and asks no source about any of it."""
    fields = [StructField("topic", StringType()), StructField("queueOffset", LongType())]
    kept = with_options(StructType(fields), {"topic": "T"})
    altered = StructType([StructField(name, kind) for name, kind in columns])
    altered.fields[0].metadata = kept.fields[0].metadata
    with pytest.raises(
        OptionError, match="changed by ALTER TABLE, .* create it with other options"
    ):
        options_in(altered)
