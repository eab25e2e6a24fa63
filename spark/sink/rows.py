# SPDX-License-Identifier: Apache-2.0
"""Turns rows into messages: the columns that can be written, and their meaning.

The columns are checked on the driver, before a job starts; values are checked as they are written,
and what RocketMQ would not take is an error that names the row. Nothing is left out in silence: a
column that has no meaning here is refused.

Java: common.message.Message, client.Validators.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, tzinfo
from typing import Any, Final, NamedTuple

import pyarrow as pa

from txrocketmq.remoting.message import properties as names
from txrocketmq.remoting.message.message import Message
from txrocketmq.spark.arrow.errors import OptionError, SparkSourceError
from txrocketmq.spark.options.zones import moment_ms

_TEXT: Final = ("string",)
_WHOLE: Final = ("tinyint", "smallint", "int", "bigint")
_MAX_DELAY_LEVEL: Final = 18
_INT32: Final = range(-(1 << 31), 1 << 31)


class SinkColumn(NamedTuple):
    """A column that can be written: its name, the types it may have, what it means."""

    name: str
    types: tuple[str, ...]
    """The types as Spark SQL writes them."""
    doc: str


SINK_COLUMNS: Final = (
    SinkColumn("body", ("binary", *_TEXT), "required; text is written in UTF-8"),
    SinkColumn("topic", _TEXT, "required, unless the option topic is given"),
    SinkColumn("tags", _TEXT, "the one tag that subscriptions filter by"),
    SinkColumn("keys", (*_TEXT, "array<string>"), "keys; a string has blanks between them"),
    SinkColumn("properties", ("map<string,string>",), "the user's own properties"),
    SinkColumn("flag", _WHOLE, "the user's flag, 32 bits"),
    SinkColumn("delayLevel", _WHOLE, f"1 to {_MAX_DELAY_LEVEL}: delivered later; 0 and null: now"),
    SinkColumn(
        "deliverTimestamp", ("timestamp", "timestamp_ntz", "bigint"),
        "delivered at this time (brokers of 5.x), in the session's time zone if it has none; a"
        " number is milliseconds since 1970",
    ),
    SinkColumn("shardingKey", _TEXT, "equal keys go to the same queue, in the order of the rows"),
    SinkColumn("queueId", _WHOLE, "the queue to write to; without it, the queues take turns"),
    SinkColumn("brokerName", _TEXT, "the broker to write to; without it, the brokers take turns"),
)  # fmt: skip
"""All columns that can be written."""

KAFKA_SINK_COLUMNS: Final = (
    SinkColumn("key", ("binary", *_TEXT), "the same as keys"),
    SinkColumn("value", ("binary", *_TEXT), "the same as body"),
    SinkColumn("partition", _WHOLE, "the same as queueId"),
    SinkColumn(
        "headers", ("array<struct<key:string,value:binary>>",),
        "properties, of which TAGS and KEYS are tags and keys; what clients and brokers set is left"
        " out",
    ),
)  # fmt: skip
"""The names that Spark's Kafka source and sink have for some of them."""
_SAME: Final = {"key": "keys", "value": "body", "partition": "queueId"}
_LEFT_OUT_WITH_VALUE: Final = frozenset({"offset", "timestamp", "timestamptype"})
"""Columns of Kafka's source, in lower case, that its sink leaves out."""

_NOT_TRANSACTIONAL: Final = {
    "delaylevel": "half messages are not delayed",
    "delivertimestamp": "half messages are not delayed",
    "shardingkey": "half messages are committed in no order",
}
"""Columns that a transactional write cannot honour, in lower case."""


class Outgoing(NamedTuple):
    """A message, and what its row says about the queue it goes to."""

    row: int
    """The number of the row in the task."""
    message: Message
    sharding_key: str | None
    broker_name: str | None
    queue_id: int | None


class RowMessages:
    """Makes messages of the batches of one table.

    `fields` are the names and types of its columns, with types as Spark SQL writes them. `topic`
    overrides the column of that name. Raises OptionError if these are not columns of messages.
    """

    def __init__(self, fields: Sequence[tuple[str, str]], topic: str | None) -> None:
        self._topic = topic
        self._places: dict[str, int] = {}
        by_name = {column.name.lower(): column for column in (*SINK_COLUMNS, *KAFKA_SINK_COLUMNS)}
        is_of_kafka = "value" in {name.lower() for name, _ in fields}
        for place, (name, type_) in enumerate(fields):
            if is_of_kafka and name.lower() in _LEFT_OUT_WITH_VALUE:
                continue
            column = by_name.get(name.lower())
            if column is None:
                known = ", ".join(each.name for each in SINK_COLUMNS)
                raise OptionError(
                    f"the column {name} cannot be written to RocketMQ; select some of: {known}"
                )
            own_name = _SAME.get(column.name, column.name)
            if own_name in self._places:
                raise OptionError(f"the column {own_name} occurs twice")
            if _plain_type(type_) not in column.types:
                allowed = " or ".join(column.types)
                raise OptionError(f"the column {name} is {type_}; it must be {allowed}")
            self._places[own_name] = place
        if "body" not in self._places:
            raise OptionError("a column body (or value) is needed to write to RocketMQ")
        if topic is None and "topic" not in self._places:
            raise OptionError("a column topic, or the option topic, is needed to write to RocketMQ")

    def messages(
        self, batch: pa.RecordBatch, first_row: int = 0, zone: tzinfo = UTC
    ) -> Iterator[Outgoing]:
        """Yields the messages of a batch, without unique keys; errors count rows from `first_row`.

        Times without a time zone are in `zone`. Raises SparkSourceError when a row has a value that
        cannot be written.
        """
        columns: dict[str, Iterable[Any]] = {
            name: _values(batch.column(place), zone) for name, place in self._places.items()
        }
        for row, values in enumerate(zip(*columns.values(), strict=True), first_row):
            try:
                yield self._outgoing(row, dict(zip(columns, values, strict=True)))
            except ValueError as error:
                raise unwritable(row, error) from None

    def _outgoing(self, number: int, row: Mapping[str, Any]) -> Outgoing:
        topic = self._topic or row["topic"]
        body = row["body"]
        if not topic:
            raise ValueError("it has no topic")
        if not body:
            raise ValueError("its body is empty, which RocketMQ does not allow")
        if isinstance(body, str):
            body = body.encode()
        message = Message(topic, body, _whole(row, "flag", _INT32) or 0)
        for name, value in row.get("properties") or ():
            if not value or value.isspace():
                raise ValueError(f"its property {name!r} is empty, which RocketMQ does not allow")
            message.set_user_property(name, value)
        headers = row.get("headers")
        if headers:
            row = {**row, **_of_headers(message, headers, row)}
        self._set_own_properties(message.properties, row)
        return Outgoing(
            number,
            message,
            row.get("shardingKey"),
            row.get("brokerName"),
            _whole(row, "queueId", range(_INT32.stop)),
        )

    def _set_own_properties(self, properties: dict[str, str], row: Mapping[str, Any]) -> None:
        level = _whole(row, "delayLevel", range(_MAX_DELAY_LEVEL + 1))
        deliver_ms = row.get("deliverTimestamp")
        if level and deliver_ms is not None:
            raise ValueError("it has both a delayLevel and a deliverTimestamp")
        keys = row.get("keys")
        if isinstance(keys, list):
            keys = _joined([key for key in keys if key])
        elif isinstance(keys, bytes):
            keys = _text(keys, "its key is")
        for name, value in (
            (names.TAGS, row.get("tags")),
            (names.KEYS, keys),
            (names.SHARDING_KEY, row.get("shardingKey")),
        ):
            if value:
                if names.NAME_VALUE_SEPARATOR in value or names.PROPERTY_SEPARATOR in value:
                    raise ValueError(f"its {name} hold a separator, \\x01 or \\x02: {value!r:.100}")
                properties[name] = value
        if level:
            properties[names.DELAY] = str(level)
        if deliver_ms is not None:
            properties[names.TIMER_DELIVER_MS] = str(deliver_ms)


def check_transactional(fields: Sequence[tuple[str, str]]) -> None:
    """Raises OptionError if there is a column that would have no effect on half messages.

    The original's producer silently clears the delay level of half messages.
    """
    for name, _ in fields:
        reason = _NOT_TRANSACTIONAL.get(name.lower())
        if reason is not None:
            raise OptionError(
                f"the column {name} cannot be written with transactional=true: {reason}"
            )


def unwritable(row: int, reason: ValueError) -> SparkSourceError:
    """Returns the error for a row that RocketMQ would not take."""
    return SparkSourceError(f"row {row} of the task cannot be written: {reason}")


def _of_headers(
    message: Message, headers: Iterable[Mapping[str, Any]], row: Mapping[str, Any]
) -> dict[str, Any]:
    """Sets headers as properties of the message; returns tags and keys that have no column."""
    own: dict[str, Any] = {}
    for header in headers:
        name, value = header["key"], header["value"] or b""
        text = _text(value, f"its header {name!r} is")
        if name in names.SYSTEM_PROPERTIES:
            column = _COLUMNS_OF_HEADERS.get(name)
            if column is not None and not row.get(column):
                own[column] = text
            continue
        if not text or text.isspace():
            raise ValueError(f"its header {name!r} is empty, which RocketMQ does not allow")
        message.set_user_property(name, text)
    return own


_COLUMNS_OF_HEADERS: Final = {names.TAGS: "tags", names.KEYS: "keys"}


def _text(value: bytes, what: str) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise ValueError(f"{what} not text in UTF-8: {value!r:.100}") from None


def _joined(keys: Sequence[str]) -> str:
    for key in keys:
        if names.KEY_SEPARATOR in key:
            raise ValueError(f"its key {key!r:.100} holds a blank, which would make two keys of it")
    return names.KEY_SEPARATOR.join(keys)


def _plain_type(type_: str) -> str:
    """Returns the type without collation, and without the length of char or varchar."""
    lower = type_.lower().replace(" ", "")
    return "string" if lower.startswith(("stringcollate", "varchar(", "char(")) else lower


def _values(column: pa.Array, zone: tzinfo) -> Iterable[Any]:
    if pa.types.is_timestamp(column.type) and column.type.tz is None:
        local = column.to_pylist()
        return [None if each is None else moment_ms(each, zone) for each in local]
    if pa.types.is_timestamp(column.type):
        in_ms = column.cast(pa.timestamp("ms", column.type.tz), safe=False)
        return in_ms.cast(pa.int64()).to_pylist()  # type: ignore[no-any-return]
    return column.to_pylist()  # type: ignore[no-any-return]


def _whole(row: Mapping[str, Any], name: str, valid: range) -> int | None:
    value = row.get(name)
    if value is not None and value not in valid:
        raise ValueError(f"its {name} is {value}; valid: {valid.start} to {valid.stop - 1}")
    return value
