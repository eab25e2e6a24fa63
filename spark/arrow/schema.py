# SPDX-License-Identifier: Apache-2.0
"""The columns of `format("rocketmq")`, declared once.

The schema of Spark, the Arrow schema of the batches and the tables of the documentation are taken
from here. The nine columns of rocketmq-spark come first, so that its users find what they know.
Imports neither pyspark nor a server.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import pyarrow as pa

from txrocketmq.spark.arrow.errors import OptionError

_ARROW_BY_TYPE: Final = {
    "string": pa.string(),
    "binary": pa.binary(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "double": pa.float64(),
    "timestamp": pa.timestamp("us", "UTC"),
    "map<string,string>": pa.map_(pa.string(), pa.string()),
    "array<struct<key:string,value:binary>>": pa.list_(
        pa.field("element", pa.struct([("key", pa.string()), ("value", pa.binary())]))
    ),
}


class Column(NamedTuple):
    """A column of a table: its name, its type as Spark SQL writes it, what it holds."""

    name: str
    type: str
    doc: str
    on_demand: bool = False
    """Whether the column is only there when the option `columns` or a schema asks for it."""
    nullable: bool = True
    """Whether Spark has to look for nulls, which it does for each value."""

    @property
    def arrow(self) -> pa.Field:
        return pa.field(self.name, _ARROW_BY_TYPE[self.type])


def _always(name: str, type: str, doc: str, *, on_demand: bool = False) -> Column:  # noqa: A002
    """Makes a column that is never null."""
    return Column(name, type, doc, on_demand, nullable=False)


MESSAGES: Final = (
    _always("topic", "string", "as stored: a delayed message has SCHEDULE_TOPIC_XXXX"),
    _always("queueId", "int", "number of the queue, on its broker"),
    _always("queueOffset", "bigint", "offset in the queue"),
    _always("body", "binary", "decompressed, unless decompress=false"),
    _always("properties", "map<string,string>", "all properties; see propertiesFormat"),
    _always("brokerName", "string", "name of the broker that has the message"),
    _always("flag", "int", "the user's flag"),
    Column("bornTimestamp", "timestamp", "by the producer's clock"),
    Column("storeTimestamp", "timestamp", "by the broker's clock"),
    Column("tags", "string", "property TAGS"),
    Column("keys", "string", "the property KEYS: keys, separated by blanks"),
    Column("uniqKey", "string", "the property UNIQ_KEY: the message id that the producer made"),
    _always("bornHost", "string", "address:port of the producer"),
    _always("storeHost", "string", "address:port of the broker"),
    _always("physicalOffset", "bigint", "byte offset in the broker's commit log"),
    _always("storeSize", "int", "bytes of the whole record; of an inner batch, a part of them"),
    _always("bodySize", "int", "bytes of the body as it was stored, compressed or not"),
    _always("bodyCRC", "int", "CRC-32 of the body as stored, without the sign bit"),
    _always("sysFlag", "int", "compression, transaction and address bits"),
    _always("reconsumeTimes", "int", "how often it was delivered again"),
    _always("preparedTransactionOffset", "bigint", "offset of the half message in its queue"),
    _always(
        "msgId", "string", "store host and physical offset, as clients print it", on_demand=True
    ),
    _always("crcOk", "boolean", "whether bodyCRC is the body's", on_demand=True),
    _always("transactionState", "string", "none, prepared, commit or rollback", on_demand=True),
    _always("compression", "string", "none, zlib, lz4 or zstd", on_demand=True),
    Column("cluster", "string", "name of the broker's cluster", on_demand=True),
)
"""The columns of the table `messages`, in order."""

KAFKA_NAMES: Final = {
    "keys": "key",
    "body": "value",
    "topic": "topic",
    "queueId": "partition",
    "queueOffset": "offset",
    "storeTimestamp": "timestamp",
}
"""The names that columns have in Spark's Kafka source, used with kafkaNames=true."""

PROPERTIES_TYPES: Final = {"map": "map<string,string>", "json": "string", "raw": "string"}
"""The type of the column `properties` for each value of the option propertiesFormat."""


def columns_named(
    names: Sequence[str], available: Sequence[Column], option: str = "columns"
) -> list[Column]:
    """Returns the columns with these names, in order. Raises OptionError for an unknown one."""
    by_name = {column.name.lower(): column for column in available}
    chosen: list[Column] = []
    for name in names:
        column = by_name.get(name.strip().lower())
        if column is None:
            raise OptionError.of(option, name, [each.name for each in available])
        if column in chosen:
            raise OptionError(f"option {option} names the column {column.name} twice")
        chosen.append(column)
    if not chosen:
        raise OptionError(f"option {option} does not name a column")
    return chosen


def default_columns(available: Sequence[Column]) -> list[Column]:
    """Returns all columns that are not on demand."""
    return [column for column in available if not column.on_demand]


def arrow_schema(columns: Sequence[Column]) -> pa.Schema:
    """Returns the exact schema that Spark expects of batches of these columns."""
    return pa.schema([column.arrow for column in columns])
