# SPDX-License-Identifier: Apache-2.0
"""Spark's reader of the tables besides `messages`, and the list of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from txrocketmq.spark.errors import OptionError
from txrocketmq.spark.options import SourceOptions
from txrocketmq.spark.schema import (
    Column,
    columns_named,
    default_columns,
    spark_schema,
)
from txrocketmq.spark.store import Store, resolve
from txrocketmq.spark.tables import backlogs, config, log, queues
from txrocketmq.spark.tables.table import Request, Table

TABLES: Final[dict[str, Table]] = {
    table.name: table
    for table in (
        queues.QUEUES, queues.CONSUME_QUEUE, queues.INDEX, config.TOPICS, config.GROUPS,
        config.OFFSETS, config.DELAY_OFFSETS, backlogs.DELAY, backlogs.TRANSACTIONS,
        log.CHECKPOINT, log.SEGMENTS, log.QUARANTINE, log.DATALOSS,
    )
}  # fmt: skip


class Part(NamedTuple):
    """What a task reads: a piece of the table of a store."""

    store: Store
    piece: Any


def table_schema(options: SourceOptions) -> str:
    """The schema of the table that the options name, as Spark SQL writes it."""
    columns = TABLES[options.table].columns
    if options.columns is not None:
        return spark_schema(columns_named(options.columns, columns))
    return spark_schema(default_columns(columns))


class TableReader(DataSourceReader):
    """Reads the table that the options name, with the columns of a schema.

    OptionError for columns that it does not have.
    """

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        table = TABLES[options.table]
        table.check(options.given)
        self._options = options
        available = table.columns
        columns = columns_named(schema.names, available, "schema")
        for column, field in zip(columns, schema.fields, strict=True):
            kind = field.dataType.simpleString()
            if kind != column.type:
                raise OptionError(f"the schema says {field.name} {kind}, but it is {column.type}")
        self._columns: list[Column] = columns
        self._schema = to_arrow_schema(schema, timezone="UTC")
        self._stores = resolve(
            options.store_path or "", broker_name=options.broker_name, cluster=options.cluster
        )

    def partitions(self) -> list[InputPartition]:
        table = TABLES[self._options.table]
        return [
            InputPartition(Part(store, piece))
            for store in self._stores
            for piece in table.pieces(Request(store, self._options))
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        part = partition.value
        if part is None:  # Spark's own, when there are no partitions
            return
        request = Request(part.store, self._options)
        table = TABLES[self._options.table]
        yield from table.batches(request, part.piece, self._columns, self._schema)
