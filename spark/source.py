# SPDX-License-Identifier: Apache-2.0
"""`format("rocketmq")`: the class from which Spark gets readers and writers.

Options are parsed, and stores are looked at, when `load()` or `save()` is called, so that mistakes
are reported before any job starts. Readers and writers have modules of their own, imported when
they are needed: those of batches and tables use only what PySpark 4.0 has, those of streams need
more. This module itself imports no package but PySpark. So it can say in a sentence what is
missing, and Spark, which imports all packages called `pyspark_*`, finds other sources even where
this one cannot work.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from pyspark.sql.datasource import DataSource, DataSourceReader
from pyspark.sql.types import StructType

from txrocketmq.spark.arrow.errors import OptionError
from txrocketmq.spark.options.needs import (
    STREAM_READER,
    STREAM_WRITER,
    check_packages,
    check_pyspark,
)
from txrocketmq.spark.options.option import Use
from txrocketmq.spark.options.options import SourceOptions, of_table
from txrocketmq.spark.options.table_options import check_not_changed, options_in, with_options
from txrocketmq.spark.options.zones import UNKNOWN_ZONE

if TYPE_CHECKING:
    from pyspark.sql.datasource import (
        DataSourceArrowWriter,
        DataSourceStreamArrowWriter,  # PySpark 4.1
        DataSourceStreamReader,
    )

    from txrocketmq.spark.columns.output import Output

log = logging.getLogger("txrocketmq.spark")
NAME = "rocketmq"
OLD_NAME = "org.apache.spark.sql.rocketmq.RocketMQSourceProvider"
"""The name of rocketmq-spark in the programs of its users."""


class RocketMQSource(DataSource):
    """RocketMQ stores and clusters as tables and streams.

    `register` makes it known, and Spark also finds it in an installed `pyspark_rocketmq`.
    """

    session_zone: ClassVar[str | None] = None
    """The time zone that the session had when the class was registered: see of_session."""

    @classmethod
    def name(cls) -> str:
        return NAME

    def __init__(self, options: Mapping[str, str]) -> None:
        check_packages()
        super().__init__(dict(options))
        self.parsed = SourceOptions.of(options)
        self._of_table = of_table(options)

    def schema(self) -> StructType:
        """Returns the schema that the options give; also checks that the stores exist."""
        options = self.parsed
        if self._of_table is not None:
            options.check(options.use(stream=False))
            options.check_table()
            return with_options(self._schema(), self._of_table)
        return self._schema()

    def _schema(self) -> StructType:
        options = self.parsed
        use = options.use(stream=False)
        if use in Use.STORE_BATCH | Use.TABLE:
            from txrocketmq.spark.planning.plan import stores_of  # noqa: PLC0415 - stores only

            stores_of(options)
        if use == Use.TABLE:
            from txrocketmq.spark.tables.reader import table_schema  # noqa: PLC0415 - tables only

            return table_schema(options)
        from txrocketmq.spark.columns.output import Output  # noqa: PLC0415 - needs Arrow

        return Output.of(options).spark_schema()

    def reader(self, schema: StructType) -> DataSourceReader:
        options = self._options_with(schema)
        use = options.use(stream=False)
        options.check(use)
        if use == Use.STORE_BATCH:
            options = replace(options, tasks_know_zone=True, registered_zone=self.session_zone)
        else:
            options = self._in_session_zone(options)
        _check_columns(options, schema)
        if use == Use.TABLE:
            from txrocketmq.spark.tables.reader import TableReader  # noqa: PLC0415

            return TableReader(options, schema)
        _warn_of_columns(options, schema)
        output = _output(options, schema)
        if use == Use.LIVE_BATCH:
            from txrocketmq.spark.live.batch import LiveReader  # noqa: PLC0415 - only what is used

            return LiveReader(options, output)
        from txrocketmq.spark.batch import StoreReader  # noqa: PLC0415 - likewise

        return StoreReader(options, output)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's
        check_pyspark("reading a stream", STREAM_READER)
        options = self._options_with(schema)
        use = options.use(stream=True)
        options.check(use)
        options = self._in_session_zone(options)
        _check_columns(options, schema)
        output = _output(options, schema)
        if use == Use.LIVE_STREAM:
            from txrocketmq.spark.live.stream import LiveStreamReader  # noqa: PLC0415

            return LiveStreamReader(options, output)
        from txrocketmq.spark.stream import StoreStreamReader  # noqa: PLC0415

        return StoreStreamReader(options, output)

    def _in_session_zone(self, options: SourceOptions) -> SourceOptions:
        if not options.local_times:
            return options
        if self.session_zone is None:
            raise OptionError(UNKNOWN_ZONE)
        return options.in_zone(self.session_zone)

    def _options_with(self, schema: StructType) -> SourceOptions:
        """Returns the options, or those of the permanent table that is read."""
        kept = options_in(schema)
        if not kept:
            return self.parsed
        check_not_changed(kept, self.options)
        return SourceOptions.of(kept)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:  # noqa: FBT001
        self.parsed.check(Use.SINK)
        from txrocketmq.spark.sink.writer import BatchWriter  # noqa: PLC0415 - only what is used

        options = replace(self.parsed, registered_zone=self.session_zone)
        return BatchWriter(options, schema, overwrite=overwrite)

    def streamWriter(  # noqa: N802 - Spark's
        self,
        schema: StructType,
        overwrite: bool,  # noqa: FBT001 - Spark's
    ) -> DataSourceStreamArrowWriter:
        check_pyspark("writing a stream", STREAM_WRITER)
        self.parsed.check(Use.SINK)
        from txrocketmq.spark.sink.stream_writer import (  # noqa: PLC0415 - only what is used
            StreamWriter,
        )

        options = replace(self.parsed, registered_zone=self.session_zone)
        return StreamWriter(options, schema, overwrite=overwrite)


class OldNameSource(RocketMQSource):
    """The same source under the name that programs for rocketmq-spark use."""

    @classmethod
    def name(cls) -> str:
        return OLD_NAME


def of_session(source: type[RocketMQSource], zone: str) -> type[RocketMQSource]:
    """Returns the source for a session with this time zone.

    Spark tells it to tasks alone, so all other places go by what it was at this time.
    """
    return type(source.__name__, (source,), {"session_zone": zone, "__doc__": source.__doc__})


def _check_columns(options: SourceOptions, schema: StructType) -> None:
    """Raises OptionError if the user's schema and the option `columns` differ."""
    names = [name.lower() for name in schema.names]
    if options.columns is not None and [name.lower() for name in options.columns] != names:
        raise OptionError("option columns and the schema name different columns: give only one")


def _warn_of_columns(options: SourceOptions, schema: StructType) -> None:
    """Warns of the map of properties, the most expensive column, if nobody asked for it by name."""
    if "columns" in options.given or options.kafka_names:
        return
    names = [name.lower() for name in schema.names]
    if {"body", "properties", "storetimestamp", "physicaloffset"} <= set(names):
        log.warning(
            "all %d columns are decoded, since Spark does not say which ones the query needs: name"
            " them by the option columns, or say columns=* if all are needed",
            len(names),
        )


def _output(options: SourceOptions, schema: StructType) -> Output:
    from txrocketmq.spark.columns.output import Output, arrow_schema_of  # noqa: PLC0415 - needs Arrow

    fields = [(field.name, field.dataType.simpleString()) for field in schema.fields]
    output = Output.of_schema(options, fields)
    for column, field in zip(output.columns, schema.fields, strict=True):
        if column.nullable and not field.nullable:
            raise OptionError(
                f"the schema says {field.name} NOT NULL, but {column.name} is null where a message"
                " has none"
            )
    return replace(output, schema=arrow_schema_of(schema))  # with its NOT NULLs
