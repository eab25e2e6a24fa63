# SPDX-License-Identifier: Apache-2.0
"""Makes the reports of stores: reads what their queries need, once, and runs the queries.

DuckDB does it in this process; where spark-submit started this program, Spark's workers do.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Protocol

import pyarrow as pa

from txrocketmq.spark.arrow.errors import RunFailed, SparkSourceError, UnsupportedLayout, cause
from txrocketmq.spark.columns.output import Output
from txrocketmq.spark.ingest.runners.process_runner import process_runner
from txrocketmq.spark.ingest.runners.runner import Runner, run_here
from txrocketmq.spark.options.options import SourceOptions
from txrocketmq.spark.planning.reading import Reading
from txrocketmq.spark.reports.duck import database
from txrocketmq.spark.reports.frames import asked
from txrocketmq.spark.reports.report import Report, Result, run_all
from txrocketmq.spark.session import is_submitted, session
from txrocketmq.spark.store.store import Store
from txrocketmq.spark.tables.reading import TableReading, table_columns

AnyReading = Reading | TableReading

_PART_BYTES: Final = 64 << 20
"""The log that one task reads, in bytes; progress is told after each task."""
_IN_PROCESS_BYTES: Final = 1 << 30
"""A larger log, in bytes, is read by a process for each core."""


class ReportListener(Protocol):
    """Is told about the progress of the work."""

    def reading(self, done: int, of: int) -> None:
        """So many of the parts are read."""

    def asking(self, done: int, of: int) -> None:
        """So many of the reports are made."""


@dataclass(frozen=True)
class ReportJob:
    """Which reports to make, and of which stores."""

    stores: Sequence[Store]
    options: Mapping[str, str]
    """The checked options of `format("rocketmq")`, which name the stores."""
    reports: Sequence[Report]
    values: Mapping[str, Any]
    """The values of the queries' parameters."""

    def results(self, listener: ReportListener) -> list[Result]:
        """Makes the reports. Raises SparkSourceError if they cannot be made."""
        return self._of_spark(listener) if is_submitted() else self._of_duck(listener)

    def _of_spark(self, listener: ReportListener) -> list[Result]:
        from pyspark.errors import PySparkException  # noqa: PLC0415 - DuckDB needs none of it

        from txrocketmq.spark.reports import views  # noqa: PLC0415 - likewise

        try:
            with session("txrocketmq report") as spark:
                options = _divided(self.options, spark.sparkContext.defaultParallelism)
                path = options.pop("storePath")
                views.register_views(spark, path, reports=self.reports, **options)
                return run_all(
                    partial(views.run, spark), self.reports, self.values, listener.asking
                )
        except PySparkException as error:
            raise SparkSourceError(cause(error)) from error

    def _of_duck(self, listener: ReportListener) -> list[Result]:
        log_bytes = sum(segment.size for store in self.stores for segment in store.segments())
        options = _divided(self.options, max(1, log_bytes // _PART_BYTES))
        planned: dict[str, tuple[AnyReading, Sequence[Any]]] = {}
        with ExitStack() as open_until_end:
            made = open_until_end.enter_context(database())
            for name, own in asked(options, self.reports).items():
                try:
                    reading = reading_of(own)
                    planned[name] = reading, reading.parts()
                except UnsupportedLayout as error:
                    made.lack(name, error)
            total = sum(len(parts) for _, parts in planned.values())
            runner: Runner = run_here
            if log_bytes > _IN_PROCESS_BYTES:
                runner = open_until_end.enter_context(process_runner())
            done = itertools.count(1)
            listener.reading(0, total)
            for name, (reading, parts) in planned.items():
                batches = _read(reading, parts, runner, lambda: listener.reading(next(done), total))
                made.load(name, reading.schema, batches)
            made.load_messages(self.options)
            return run_all(made.run, self.reports, self.values, listener.asking)


def reading_of(options: Mapping[str, str]) -> AnyReading:
    """Returns the reading of a store that `format("rocketmq")` makes with these options."""
    parsed = SourceOptions.of(options)
    if parsed.table == "messages":
        return Reading(parsed, Output.of(parsed))
    return TableReading(parsed, table_columns(parsed))


def _read_part(reading: AnyReading, part: Any) -> list[pa.RecordBatch]:
    return list(reading.batches(part))


def _read(
    reading: AnyReading, parts: Sequence[Any], runner: Runner, part_done: Callable[[], None]
) -> Iterator[pa.RecordBatch]:
    """Reads parts of a reading; yields their rows."""
    try:
        for _, outcome in runner([partial(_read_part, reading, part) for part in parts]):
            yield from outcome.result()
            part_done()
    except RunFailed as error:  # its advice about a next run is for an ingest
        why = str(error).partition(";")[0]
        raise SparkSourceError(f"the stores were not read: {why}") from error


def _divided(options: Mapping[str, str], parts: int) -> dict[str, str]:
    """Returns the options with this number of parts, unless they have one."""
    if any(name.lower() == "minpartitions" for name in options):
        return dict(options)
    return {**options, "minPartitions": str(parts)}
