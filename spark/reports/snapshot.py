# SPDX-License-Identifier: Apache-2.0
"""What reports read, taken from the stores into Parquet files that Spark reads many times.

The readers are those of `format("rocketmq")`, called here instead of by Spark: so reading needs no
JVM and goes on while one starts, and no row passes from Python into the JVM. Small stores are read
in this process, others by one for each core.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema

from txrocketmq.spark.batch import StoreReader
from txrocketmq.spark.errors import SparkSourceError, UnsupportedLayout
from txrocketmq.spark.ingest.errors import RunFailed
from txrocketmq.spark.ingest.runner import Outcome, Runner, run_here
from txrocketmq.spark.options import SourceOptions
from txrocketmq.spark.output import Output
from txrocketmq.spark.reports.frames import logical, views
from txrocketmq.spark.reports.report import Report
from txrocketmq.spark.schema import arrow_schema, default_columns
from txrocketmq.spark.tables.reader import TABLES, TableReader

Tell = Callable[[int, int], bool]
"""Told how many parts of the stores are read, of how many; says whether to go on."""

ONE_TASK_ROWS: Final = 4 << 20
"""A frame of up to so many rows is one partition: queries over it need no shuffle."""
_ROWS_OF_GROUP: Final = 256 << 10
_PLAIN: Final = frozenset({"keys", "bornTimestamp", "storeTimestamp", "storeSize", "bodySize"})
"""Columns whose values hardly repeat: no dictionary is tried."""


@dataclass
class Snapshot:
    """What was taken: a folder for each frame."""

    folder: Path
    schemas: dict[str, pa.Schema] = field(default_factory=dict)
    rows: dict[str, int] = field(default_factory=dict)
    problems: dict[str, str] = field(default_factory=dict)
    """By frame: why the stores have not what it is made of."""

    def problem(self, report: Report) -> str | None:
        """Why there is nothing that this report could read, if there is not."""
        made_of = {"records" if name == "messages" else name for name in report.frames}
        return next(
            (self.problems[name] for name in sorted(made_of) if name in self.problems), None
        )

    @contextmanager
    def frames(
        self, spark: SparkSession, options: Mapping[str, str]
    ) -> Iterator[dict[str, DataFrame]]:
        """The DataFrames over what was taken, by name; queries find them."""
        made = {name: self._frame(spark, name) for name in self.schemas}
        if "records" in made:
            made["messages"] = logical(made["records"], options)
        with views(spark, made):
            yield made

    def _frame(self, spark: SparkSession, name: str) -> DataFrame:
        reader = spark.read.schema(from_arrow_schema(self.schemas[name]))
        frame = reader.parquet(f"file://{self.folder / name}")
        return frame.coalesce(1) if self.rows[name] <= ONE_TASK_ROWS else frame


@dataclass(frozen=True)
class TakeTask:
    """Takes one partition into a file; picklable. Gives the number of rows."""

    reader: DataSourceReader
    partition: InputPartition
    schema: pa.Schema
    file: Path

    def __call__(self) -> bytes:
        rows = 0
        batches: Iterator[Any] = iter(self.reader.read(self.partition))
        dictionaries: Any = [name for name in self.schema.names if name not in _PLAIN]
        with pq.ParquetWriter(self.file, self.schema, use_dictionary=dictionaries) as writer:
            for table in _row_groups(batches, self.schema):
                writer.write_table(table)
                rows += len(table)
        return str(rows).encode()


def _row_groups(batches: Iterator[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.Table]:
    """The batches in tables of about as many rows as a row group of the file is to have."""
    pending: list[pa.RecordBatch] = []
    for batch in batches:
        pending.append(batch)
        if sum(map(len, pending)) >= _ROWS_OF_GROUP:
            yield pa.Table.from_batches(pending, schema)
            pending = []
    if pending:
        yield pa.Table.from_batches(pending, schema)


def reader_of(options: Mapping[str, str]) -> tuple[DataSourceReader, pa.Schema]:
    """The reader of `format("rocketmq")` for these options of a store, and the rows it gives."""
    parsed = SourceOptions.of(options)
    if parsed.table == "messages":
        output = Output.of(parsed)
        return StoreReader(parsed, output), output.schema
    schema = arrow_schema(default_columns(TABLES[parsed.table].columns))
    return TableReader(parsed, from_arrow_schema(schema)), schema


def take(
    asked: Mapping[str, Mapping[str, str]],
    folder: Path,
    *,
    runner: Runner = run_here,
    at_once: int = 1,
    tell: Tell = lambda *_: True,
) -> Snapshot:
    """Takes the frames, by name the options that make each, into an empty folder.

    `runner` gets so many tasks `at_once`; between these `tell` may end the taking. An
    UnsupportedLayout is a problem of its frame; other errors of ours are raised.
    """
    made = Snapshot(folder)
    tasks: list[TakeTask] = []
    for name, options in asked.items():
        try:
            reader, schema = reader_of(options)
            partitions = reader.partitions()
        except UnsupportedLayout as error:
            made.problems[name] = str(error)
            continue
        made.schemas[name], made.rows[name] = schema, 0
        (folder / name).mkdir()
        for number, partition in enumerate(partitions):
            tasks.append(TakeTask(reader, partition, schema, folder / name / f"{number}.parquet"))
    for done in range(0, len(tasks), at_once):
        if not tell(done, len(tasks)):
            return made
        run = tasks[done : done + at_once]
        for task, outcome in zip(run, _outcomes(runner, run), strict=True):
            _add(made, task.file.parent.name, outcome)
    tell(len(tasks), len(tasks))
    return made


def _outcomes(runner: Runner, tasks: Sequence[TakeTask]) -> list[Outcome]:
    try:
        return runner(tasks)
    except RunFailed as error:  # what it says of a next run is of ingest
        raise SparkSourceError(
            f"the stores were not read: {str(error).partition(';')[0]}"
        ) from error
    except pa.ArrowException as error:
        raise SparkSourceError(f"the stores were not read: {error}") from error


def _add(made: Snapshot, name: str, outcome: Outcome) -> None:
    if isinstance(outcome.error, UnsupportedLayout):
        made.problems[name] = str(outcome.error)
        made.schemas.pop(name, None)
    elif outcome.error is not None:
        raise outcome.error
    elif name in made.rows:
        made.rows[name] += int(outcome.given or b"0")
