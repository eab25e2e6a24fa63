# SPDX-License-Identifier: Apache-2.0
"""All rows of a table, as Spark would get them, without Spark."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    DataType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from txrocketmq.spark.options.options import SourceOptions
from txrocketmq.spark.tables.reader import TableReader
from txrocketmq.spark.tables.reading import TABLES

SPARK_TYPES: dict[str, DataType] = {
    "string": StringType(),
    "binary": BinaryType(),
    "boolean": BooleanType(),
    "int": IntegerType(),
    "bigint": LongType(),
    "timestamp": TimestampType(),
    "map<string,string>": MapType(StringType(), StringType()),
}


def schema_of(table: str) -> StructType:
    """Returns the schema of all columns of the table."""
    columns = TABLES[table].columns
    return StructType([StructField(column.name, SPARK_TYPES[column.type]) for column in columns])


def rows_of(root: Path | str, table: str, **options: str) -> list[dict[str, Any]]:
    """Returns the rows; checks that each batch has the schema that Spark demands."""
    parsed = SourceOptions.of({"storePath": str(root), "table": table, **options})
    parsed.check(parsed.use(stream=False))
    schema = schema_of(table)
    reader = TableReader(parsed, schema)
    data = pickle.dumps(reader)
    rows: list[dict[str, Any]] = []
    for partition in reader.partitions():
        for batch in pickle.loads(data).read(partition):  # noqa: S301 - as Spark does
            assert batch.schema == to_arrow_schema(schema, timezone="UTC")
            rows += batch.to_pylist()
    return rows
