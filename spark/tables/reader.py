# SPDX-License-Identifier: Apache-2.0
"""Spark's reader of the tables besides `messages`, and the list of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from txrocketmq.spark.errors import OptionError
from txrocketmq.spark.options import SourceOptions
from txrocketmq.spark.schema import (
    Column,
    arrow_schema,
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
    """Reads the table that the options name, with the columns of a schema."""

    def __init__(self, options: SourceOptions, fields: Sequence[tuple[str, str]]) -> None:
        self._options = options
        columns = columns_named(
            [name for name, _ in fields], TABLES[options.table].columns, "schema"
        )
        for column, (name, kind) in zip(columns, fields, strict=True):
            if kind.replace(" ", "").lower() != column.type:
                raise OptionError(f"the schema says {name} {kind}, but it is {column.type}")
        self._columns: list[Column] = columns
        self._schema = pa.schema(
            [
                each.with_name(name)
                for each, (name, _) in zip(arrow_schema(columns), fields, strict=True)
            ]
        )
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
