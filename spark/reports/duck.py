# SPDX-License-Identifier: Apache-2.0
"""Reports made by DuckDB, in this process: no JVM, no pyspark.

The contents of the stores go as Arrow batches into a database file that is deleted at the end. The
queries use a few functions of Spark that DuckDB lacks; they are defined here by its own functions.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import duckdb
import pyarrow as pa

from txrocketmq.spark.arrow.errors import SparkSourceError, UnsupportedLayout
from txrocketmq.spark.reports.frames import MESSAGES, OPTIONAL, messages_sql
from txrocketmq.spark.reports.report import PARAMETERS, Report, Result

_SETTINGS: Final = """\
SET TimeZone = 'UTC';
SET default_null_order = 'nulls_first_on_asc_last_on_desc';
SET preserve_insertion_order = false;
SET enable_progress_bar = false;
SET autoinstall_known_extensions = false;
"""
FUNCTIONS: Final = """\
CREATE MACRO startswith(text, beginning) AS starts_with(text, beginning);
CREATE MACRO explode(list) AS unnest(list);
CREATE MACRO sequence(first, last, step) AS generate_series(first, last, step);
CREATE MACRO unix_millis(time) AS epoch_ms(time);
CREATE MACRO unix_seconds(time) AS CAST(floor(epoch_us(time) / 1000000) AS BIGINT);
CREATE MACRO timestamp_millis(ms) AS make_timestamptz(CAST(ms AS BIGINT) * 1000);
CREATE MACRO timestamp_seconds(s) AS make_timestamptz(CAST(s AS BIGINT) * 1000000);
CREATE MACRO try_divide(a, b) AS a / nullif(b, 0);
"""
"""Functions of Spark SQL that the queries use and that have other names in DuckDB."""
_PARAMETER: Final = re.compile(rf":({'|'.join(PARAMETERS)})\b")


@contextmanager
def database() -> Iterator[Database]:
    """Opens an empty database in TMPDIR, which is deleted at the end."""
    with TemporaryDirectory(prefix="txrocketmq-report-") as folder:
        connection = duckdb.connect(str(Path(folder) / "report.duckdb"))
        try:
            connection.execute(_SETTINGS + FUNCTIONS)
            yield Database(connection)
        finally:
            connection.close()


class Database:
    """The frames, and the queries that use them."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection
        self._problems: dict[str, str] = {}
        """Why the stores cannot give a frame, by frame."""
        self._frames: set[str] = set()

    def load(self, name: str, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
        """Makes a frame of the batches.

        An UnsupportedLayout becomes a problem of the frame; other SparkSourceErrors are raised.
        """
        raised: list[Exception] = []

        def noting() -> Iterator[pa.RecordBatch]:
            try:
                yield from batches
            except Exception as error:  # through DuckDB it would arrive as a text
                raised.append(error)
                raise

        reader = pa.RecordBatchReader.from_batches(schema, noting())
        try:
            self._connection.register("batches", reader)
            self._connection.execute(f"CREATE TABLE {name} AS SELECT * FROM batches")  # noqa: S608 - names of ours
        except duckdb.Error as error:
            if not raised:
                raise SparkSourceError(f"the stores were not read: {error}") from error
        finally:
            self._connection.unregister("batches")
        if raised:
            if not isinstance(raised[0], UnsupportedLayout):
                raise raised[0]
            if name in OPTIONAL:
                self.load(name, schema, ())
            else:
                self.lack(name, raised[0])
        else:
            self._frames.add(name)

    def lack(self, name: str, error: UnsupportedLayout) -> None:
        """Notes that the stores cannot give a frame."""
        self._problems[name] = str(error)

    def load_messages(self, options: Mapping[str, str]) -> None:
        """Makes `messages` from `records`, with these options of the source."""
        if "records" in self._problems:
            self._problems[MESSAGES] = self._problems["records"]
        elif "records" in self._frames:
            self._connection.execute(f"CREATE VIEW {MESSAGES} AS {messages_sql(options)}")

    def run(self, report: Report, values: Mapping[str, Any]) -> Result:
        """Returns the rows of a report; times have the time zone UTC."""
        problems = [self._problems[name] for name in sorted(report.frames & set(self._problems))]
        if problems:
            return Result(report, [], [], problems[0])
        query = _PARAMETER.sub(r"$\1", report.query())
        used = {name: values[name] for name in report.parameters}
        try:
            table = self._connection.sql(query, params=used).to_arrow_table()
        except duckdb.Error as error:
            raise SparkSourceError(
                f"the report {report.title} could not be made: {error}"
            ) from error
        return Result(report, table.column_names, _plain(table).to_pylist())


def _plain(table: pa.Table) -> pa.Table:
    """Returns the table with 64-bit numbers where DuckDB has wider ones, such as sums."""
    fields = [
        field.with_type(pa.float64() if field.type.scale else pa.int64())
        if pa.types.is_decimal(field.type)
        else field
        for field in table.schema
    ]
    return table.cast(pa.schema(fields))
