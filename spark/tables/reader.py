# SPDX-License-Identifier: Apache-2.0
"""Spark's reader of the tables besides `messages`."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from txrocketmq.spark.arrow.errors import OptionError
from txrocketmq.spark.arrow.schema import columns_named
from txrocketmq.spark.columns.output import arrow_schema_of, spark_struct
from txrocketmq.spark.options.options import SourceOptions
from txrocketmq.spark.tables.reading import TABLES, TableReading, table_columns


def table_schema(options: SourceOptions) -> StructType:
    """Returns the schema of the table that the options name."""
    return spark_struct(table_columns(options))


class TableReader(DataSourceReader):
    """Reads the table that the options name, with the columns of a schema.

    Raises OptionError for columns that the table does not have.
    """

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        columns = columns_named(schema.names, TABLES[options.table].columns, "schema")
        for column, field in zip(columns, schema.fields, strict=True):
            kind = field.dataType.simpleString()
            if kind != column.type:
                raise OptionError(f"the schema says {field.name} {kind}, but it is {column.type}")
        self._reading = TableReading(options, columns, arrow_schema_of(schema))

    def partitions(self) -> list[InputPartition]:
        return [InputPartition(part) for part in self._reading.parts()]

    def read(self, partition: InputPartition | None) -> Iterator[pa.RecordBatch]:
        if partition is not None and partition.value is not None:  # Spark's own, when there is none
            yield from self._reading.batches(partition.value)
