# SPDX-License-Identifier: Apache-2.0
"""The columns of `messages` as Spark gets them, with their names and types.

The decoder gives columns of schema.MESSAGES; here they get the order, the names and, with
kafkaNames, the types of Spark's Kafka source.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from txrocketmq.spark.arrow.arrays import of_numbers
from txrocketmq.spark.arrow.errors import OptionError
from txrocketmq.spark.arrow.schema import (
    KAFKA_NAMES,
    MESSAGES,
    PROPERTIES_TYPES,
    Column,
    arrow_schema,
    columns_named,
    default_columns,
)
from txrocketmq.spark.options.options import SourceOptions

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

LOG_APPEND_TIME: Final = 1
"""The timestampType of Kafka that says that the broker's clock was used, not the producer's."""

KAFKA_COLUMNS: Final = (
    Column("key", "binary", "keys, in UTF-8"),
    Column("value", "binary", "body", nullable=False),
    Column("topic", "string", "topic", nullable=False),
    Column("partition", "int", "queueId: see brokerName", nullable=False),
    Column("offset", "bigint", "queueOffset", nullable=False),
    Column("timestamp", "timestamp", "storeTimestamp"),
    Column("timestampType", "int", "always 1: the broker's clock", nullable=False),
    Column(
        "headers",
        "array<struct<key:string,value:binary>>",
        "properties, with includeHeaders",
        on_demand=True,
        nullable=False,
    ),
    Column(
        "brokerName",
        "string",
        "with topic, partition and offset the key of a message: each broker has its partition 0",
        nullable=False,
    ),
)
"""Columns with kafkaNames=true, as in Spark's Kafka source, and the name of the broker.

All others come after, on demand.
"""
_HEADERS: Final = "headers"
_KIND_OF_HEADERS: Final = next(each for each in KAFKA_COLUMNS if each.name == _HEADERS).arrow.type

_NEVER_NULL: Final = {
    "map<string,string>": pa.map_(pa.string(), pa.field("value", pa.string(), nullable=False))
}
"""Arrow types of columns that are never null, where nulls make a difference to the type."""

_DECODED: Final = {name: column for column, name in KAFKA_NAMES.items()} | {
    "headers": "properties",
    "timestampType": None,
}
"""The decoder's column that each of Kafka's columns is made from; None for a constant."""


@dataclass(frozen=True)
class Output:
    """The columns of the rows, in order."""

    schema: pa.Schema
    """The schema that the batches must have."""
    columns: tuple[Column, ...]
    """The declaration of each column, with the declared spelling of its name."""
    kafka_names: bool
    properties_format: str

    @classmethod
    def of(cls, options: SourceOptions) -> Output:
        """Returns the columns that the options ask for. Raises OptionError for unknown ones."""
        available = available_columns(options)
        chosen = default_columns(available)
        if options.columns is not None:
            chosen = columns_named(options.columns, available)
        return cls._of(options, chosen, arrow_schema(chosen))

    @classmethod
    def of_schema(cls, options: SourceOptions, fields: Sequence[tuple[str, str]]) -> Output:
        """Returns the columns of a schema: names, and types as Spark's simpleString writes them.

        Raises OptionError for an unknown name or another type.
        """
        available = available_columns(options)
        chosen = columns_named([name for name, _ in fields], available, "schema")
        for column, (name, kind) in zip(chosen, fields, strict=True):
            if kind.replace(" ", "").lower() != column.type:
                raise OptionError(
                    f"the schema says {name} {kind}, but {column.name} is {column.type}"
                    + (" (see propertiesFormat)" if column.name == "properties" else "")
                )
        names = [name for name, _ in fields]
        return cls._of(options, chosen, _renamed(arrow_schema(chosen), names))

    @classmethod
    def _of(cls, options: SourceOptions, chosen: Sequence[Column], schema: pa.Schema) -> Output:
        return cls(schema, tuple(chosen), options.kafka_names, options.properties_format)

    @property
    def decoded(self) -> tuple[str, ...]:
        """The columns of schema.MESSAGES that the decoder has to give."""
        names = [self._source(column) for column in self.columns]
        found = tuple(dict.fromkeys(name for name in names if name is not None))
        return found or ("queueId",)  # the rows have to be counted, whatever columns they have

    def spark_schema(self) -> StructType:
        """Returns the schema for DataSource.schema()."""
        return spark_struct(self.columns)

    def batch(self, decoded: pa.RecordBatch) -> pa.RecordBatch:
        """Makes a batch for Spark from a batch that has at least the columns `decoded`."""
        made = []
        for column in self.columns:
            source = self._source(column)
            if source is None:
                made.append(of_numbers(np.full(len(decoded), LOG_APPEND_TIME, np.int32)))
                continue
            array = decoded.column(source)
            make = _OF_KAFKA.get(column.name) if self.kafka_names else None
            array = make(array) if make else array
            if pa.types.is_map(array.type):
                # Whether values may be null is part of the type: the cast copies nothing.
                array = array.cast(self.schema.field(len(made)).type)
            made.append(array)
        return pa.RecordBatch.from_arrays(made, schema=self.schema)

    def _source(self, column: Column) -> str | None:
        return _DECODED.get(column.name, column.name) if self.kafka_names else column.name


def spark_struct(columns: Sequence[Column]) -> StructType:
    """Returns Spark's schema of the columns, in which columns that are never null are declared so.

    This includes the values of their maps, for which a schema in text form has no words.
    """
    from pyspark.sql.pandas.types import from_arrow_schema  # noqa: PLC0415 - only Spark asks

    fields = [
        pa.field(column.name, _NEVER_NULL.get(column.type, column.arrow.type), nullable=False)
        if not column.nullable
        else column.arrow
        for column in columns
    ]
    return from_arrow_schema(pa.schema(fields))


def arrow_schema_of(schema: StructType) -> pa.Schema:
    """Returns the schema that Spark expects of batches, with times in UTC."""
    from pyspark.sql.pandas.types import to_arrow_schema  # noqa: PLC0415 - only Spark asks

    if "timezone" not in inspect.signature(to_arrow_schema).parameters:  # before PySpark 4.1
        return to_arrow_schema(schema)
    return to_arrow_schema(schema, timezone="UTC")


def available_columns(options: SourceOptions) -> list[Column]:
    """Returns all columns that may be asked for, given propertiesFormat and kafkaNames."""
    kind = PROPERTIES_TYPES[options.properties_format]
    messages = [
        column._replace(type=kind) if column.name == "properties" else column for column in MESSAGES
    ]
    if not options.kafka_names:
        return messages
    own = {column.name for column in KAFKA_COLUMNS} | KAFKA_NAMES.keys()
    others = [column for column in messages if column.name not in own]
    columns = (
        column._replace(on_demand=not options.include_headers)
        if column.name == _HEADERS
        else column
        for column in KAFKA_COLUMNS
    )
    return [*columns, *(column._replace(on_demand=True) for column in others)]


def _headers(properties: pa.MapArray) -> pa.ListArray:
    pairs = pa.StructArray.from_arrays(
        [properties.keys, properties.items.cast(pa.binary())], ["key", "value"]
    )
    kind = _KIND_OF_HEADERS
    return pa.ListArray.from_arrays(properties.offsets, pairs).cast(kind)


_OF_KAFKA: Final[dict[str, Callable[[Any], pa.Array]]] = {
    "key": lambda keys: keys.cast(pa.binary()),
    "headers": _headers,
}


def _renamed(schema: pa.Schema, names: Sequence[str]) -> pa.Schema:
    return pa.schema([each.with_name(name) for each, name in zip(schema, names, strict=True)])
