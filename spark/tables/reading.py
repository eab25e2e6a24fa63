# SPDX-License-Identifier: Apache-2.0
"""Reads the tables besides `messages` in parts, and lists them. Needs no pyspark."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import pyarrow as pa

from txrocketmq.spark.arrow.schema import Column, arrow_schema, columns_named, default_columns
from txrocketmq.spark.options.options import SourceOptions
from txrocketmq.spark.planning.execution import is_later, now_ms
from txrocketmq.spark.planning.known_names import check_queues, check_topics
from txrocketmq.spark.planning.plan import stores_of
from txrocketmq.spark.store.broker_names import check_brokers
from txrocketmq.spark.store.store import Store
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


class TablePart(NamedTuple):
    """What one task reads of a store's table."""

    store: Store
    pieces: tuple[Any, ...]
    """One piece, or none."""
    planned: Sequence[Any] | None = None
    """In the last part of a store, all pieces of the plan: in later executions
    (`spark.execution`), what has come since is read after them."""


def table_columns(options: SourceOptions) -> list[Column]:
    """Returns the columns that the options ask for in their table, or its default columns."""
    columns = TABLES[options.table].columns
    if options.columns is not None:
        return columns_named(options.columns, columns)
    return default_columns(columns)


class TableReading:
    """Reads some columns of the table that the options name, under the names of a schema."""

    def __init__(
        self, options: SourceOptions, columns: Sequence[Column], schema: pa.Schema | None = None
    ) -> None:
        self._planned_ms = now_ms()
        TABLES[options.table].check(options.given)
        self._options = options
        self._columns = list(columns)
        self.schema: pa.Schema = arrow_schema(columns) if schema is None else schema
        self._stores = stores_of(options)
        check_brokers(self._stores, options)
        check_queues(self._stores, options)
        check_topics(self._stores, options)

    def parts(self) -> list[TablePart]:
        """Returns the parts, which can be read in any order and in any process."""
        table = TABLES[self._options.table]
        found: list[TablePart] = []
        for store in self._stores:
            pieces = table.pieces(Request(store.at_once(), self._options))
            parts = [TablePart(store, (piece,)) for piece in pieces]
            if table.since is not None:
                last = parts.pop() if parts else TablePart(store, ())
                parts.append(last._replace(planned=pieces))
            found += parts
        return found

    def batches(self, part: TablePart) -> Iterator[pa.RecordBatch]:
        """Yields the rows of a part."""
        is_old = is_later(self._planned_ms)
        request = Request(part.store.at_once(), self._options, is_old)
        table = TABLES[self._options.table]
        pieces: list[Any] = list(part.pieces)
        if is_old and part.planned is not None and table.since is not None:
            pieces += table.since(request, part.planned)
        for piece in pieces:
            yield from table.batches(request, piece, self._columns, self.schema)
