# SPDX-License-Identifier: Apache-2.0
"""The definition of a table: its columns, and a function that returns its rows for a store."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

import pyarrow as pa

from txrocketmq.spark.arrow.errors import OptionError, UnsupportedLayout
from txrocketmq.spark.arrow.schema import Column, arrow_schema
from txrocketmq.spark.columns.decode import BadRecord
from txrocketmq.spark.columns.selection import RecordFilter, Selection
from txrocketmq.spark.log.damage import Damage
from txrocketmq.spark.log.log_reader import LostBytes
from txrocketmq.spark.log.losses import is_outside, lose, loss_text, names_all
from txrocketmq.spark.options.options import SourceOptions
from txrocketmq.spark.options.pace import Pace
from txrocketmq.spark.store.store import Store

Row = tuple[Any, ...]
"""The values of a row, in the order of its columns, but those of the store; times are in ms."""
ColumnValues = Mapping[str, Any]
"""Rows by column: a sequence or numpy array of values, or one value for all; times are in ms."""

OF_EVERY_TABLE: Final = frozenset({"storePath", "table", "columns", "brokerName", "cluster"})
CHOOSING_QUEUES: Final = frozenset({"topic", "topicPattern", "assign", "allowUnknownTopics"})
READING_PICKS: Final = frozenset({"badRecords", "failOnDataLoss", "maxBytesPerSecond"})
"""The options of tables that read messages named by the consume queues."""

BROKER_NAME: Final = Column("brokerName", "string", "name of the broker")
CLUSTER: Final = Column("cluster", "string", "name of the broker's cluster", on_demand=True)
_OF_STORE: Final = frozenset({BROKER_NAME.name, CLUSTER.name})
"""Columns whose value is the same for all rows of a store."""
_ROWS_OF_TUPLES: Final = 10_000


@dataclass(frozen=True)
class Request:
    """A question to a table about one store."""

    store: Store
    options: SourceOptions
    is_old: bool = False
    """Whether the plan is of an earlier execution; it may miss what a new plan would not have."""

    @property
    def wanted(self) -> RecordFilter:
        """The filter for topics and queues; system topics are included."""
        chosen = replace(Selection.of(self.options), logical=False)
        return chosen.on(self.store.broker_name, key=self.store.key)

    @cached_property
    def pace(self) -> Pace | None:
        """How fast this task may read the log; None: no limit."""
        return Pace.of(self.options.max_bytes_per_second)

    @cached_property
    def damage(self) -> Damage:
        """What happens to damaged records that this task finds."""
        return Damage(self.options.bad_records, self.store)

    def tell(self, found: BadRecord | LostBytes) -> None:
        """Treats lost or damaged records as failOnDataLoss and badRecords say."""
        if isinstance(found, BadRecord):
            self.damage.add(found)
        else:
            is_excused = self.is_old and not names_all(
                self.options, self.store.broker_name, self.store.key
            )
            is_excused = is_excused and is_outside(self.store, found.start, found.end)
            text = loss_text(self.store, found.start, found.end)
            lose(text, fail=self.options.fail_on_data_loss and not is_excused)

    def check_queue_files(self) -> None:
        """Raises UnsupportedLayout if the consume queues are in RocksDB."""
        if self.store.queue_kind == "rocksdb":
            raise UnsupportedLayout(
                f"table={self.options.table} needs consume queue files; those of {self.store.uri}"
                " are in RocksDB"
            )


@dataclass(frozen=True)
class Table:
    """A table: `rows(request, piece)` gives the rows of each of `pieces(request)`."""

    name: str
    doc: str
    columns: tuple[Column, ...]
    rows: Callable[[Request, Any], Iterable[Row | ColumnValues]]
    pieces: Callable[[Request], Sequence[Any]] = lambda _: [None]
    """Returns what each task reads, small and picklable; by default there is one task per store."""
    since: Callable[[Request, Sequence[Any]], Sequence[Any]] | None = None
    """Returns, for the pieces of a plan, pieces with what has come since; None where a piece is
    always all that is there."""
    options: frozenset[str] = frozenset()
    """Names of options that choose or treat the rows, besides those of every table."""

    def check(self, given: frozenset[str]) -> None:
        """Raises OptionError if an option was given that means nothing to this table."""
        for name in sorted(given - self.options - OF_EVERY_TABLE):
            takes = ", ".join(sorted(self.options)) or "none of its own"
            raise OptionError(
                f"option {name} has no meaning for table={self.name}; options that it takes:"
                f" {takes}"
            )

    def batches(
        self, request: Request, piece: Any, columns: Sequence[Column], schema: pa.Schema
    ) -> Iterator[pa.RecordBatch]:
        """Yields the rows of a piece, with some of the columns, in the order of the schema."""
        for rows in gathered(self.columns, self.rows(request, piece)):
            count = _count(rows)
            values = {
                **rows,
                BROKER_NAME.name: request.store.broker_name,
                CLUSTER.name: request.store.cluster,
            }
            arrays = [_array(values[column.name], column, count) for column in columns]
            if count:
                yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def gathered(
    columns: Sequence[Column], found: Iterable[Row | ColumnValues]
) -> Iterator[ColumnValues]:
    """Joins single rows into groups; passes on rows that come in groups."""
    names = [column.name for column in columns if column.name not in _OF_STORE]
    pending: list[Row] = []
    for each in found:
        if not isinstance(each, tuple):
            yield each
            continue
        pending.append(each)
        if len(pending) == _ROWS_OF_TUPLES:
            yield dict(zip(names, zip(*pending, strict=True), strict=True))
            pending = []
    if pending:
        yield dict(zip(names, zip(*pending, strict=True), strict=True))


def _count(rows: ColumnValues) -> int:
    return max((len(values) for values in rows.values() if _is_column(values)), default=0)


def _is_column(values: Any) -> bool:
    return hasattr(values, "__len__") and not isinstance(values, str | bytes | dict)


def _array(values: Any, column: Column, count: int) -> pa.Array:
    kind = arrow_schema([column]).types[0]
    stored = pa.timestamp("ms", "UTC") if column.type == "timestamp" else kind
    array = pa.array(values, stored) if _is_column(values) else _repeated(values, stored, count)
    return array.cast(kind) if stored != kind else array


def _repeated(value: Any, kind: pa.DataType, count: int) -> pa.Array:
    return pa.repeat(pa.scalar(value, kind), count)
