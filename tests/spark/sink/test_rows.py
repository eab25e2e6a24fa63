# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

from txrocketmq.remoting.message.message import Message
from txrocketmq.spark.arrow.errors import OptionError, SparkSourceError
from txrocketmq.spark.options.zones import zone_named
from txrocketmq.spark.sink.rows import SINK_COLUMNS, Outgoing, RowMessages

_ARROW = {
    "string": pa.string(),
    "binary": pa.binary(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "timestamp": pa.timestamp("us", "UTC"),
    "array<string>": pa.list_(pa.string()),
    "map<string,string>": pa.map_(pa.string(), pa.string()),
    "timestamp_ntz": pa.timestamp("us"),
    "array<struct<key:string,value:binary>>": pa.list_(
        pa.struct([("key", pa.string()), ("value", pa.binary())])
    ),
}


def messages(
    types: dict[str, str], *rows: dict[str, Any], topic: str | None = "T"
) -> list[Outgoing]:
    """What comes of rows, of which each has values for some of the columns."""
    arrays = [
        pa.array([row.get(name) for row in rows], _ARROW[kind]) for name, kind in types.items()
    ]
    batch = pa.RecordBatch.from_arrays(arrays, names=list(types))
    return list(RowMessages(list(types.items()), topic).messages(batch, 10))


def test_a_row_with_everything() -> None:
    types = {
        "Body": "binary", "topic": "string", "tags": "string", "KEYS": "string",
        "properties": "map<string,string>", "flag": "int", "delayLevel": "int",
        "shardingKey": "string", "queueId": "int", "brokerName": "string",
    }  # fmt: skip
    row = {
        "Body": b"\x00\xff", "topic": "Orders", "tags": "A", "KEYS": "k1 k2",
        "properties": [("color", "blue")], "flag": -7, "delayLevel": 3, "shardingKey": "s",
        "queueId": 2, "brokerName": "a",
    }  # fmt: skip
    expected = Message(
        "Orders", b"\x00\xff", -7,
        {"color": "blue", "TAGS": "A", "KEYS": "k1 k2", "__SHARDINGKEY": "s", "DELAY": "3"},
    )  # fmt: skip
    assert messages(types, row, topic=None) == [Outgoing(10, expected, "s", "a", 2)]


KAFKA = {
    "key": "binary", "value": "binary", "topic": "string", "partition": "int", "offset": "bigint",
    "timestamp": "timestamp", "timestampType": "int",
    "headers": "array<struct<key:string,value:binary>>", "brokerName": "string",
}  # fmt: skip
"""The columns that a read with kafkaNames and includeHeaders has."""


def test_a_row_with_the_names_of_kafka() -> None:
    headers = {"color": b"blue", "TAGS": b"A", "KEYS": b"other", "UNIQ_KEY": b"1", "WAIT": b"true"}
    row = {
        "key": "k ü".encode(), "value": b"v", "topic": "Orders", "partition": 3, "offset": 9,
        "timestampType": 1, "brokerName": "a",
        "headers": [{"key": name, "value": value} for name, value in headers.items()],
    }  # fmt: skip
    properties = {"color": "blue", "TAGS": "A", "KEYS": "k ü"}
    expected = Message("Orders", b"v", 0, properties)
    assert messages(KAFKA, row, topic=None) == [Outgoing(10, expected, None, "a", 3)]
    (other,) = messages(KAFKA, {**row, "key": None}, topic=None)
    assert other.message.properties["KEYS"] == "other", "a header, where no column says it"


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"key": b"\xff"}, "its key is not text in UTF-8"),
        ({"headers": [{"key": "a", "value": b"\xff"}]}, "its header 'a' is not text"),
        ({"headers": [{"key": "a", "value": b" "}]}, "its header 'a' is empty"),
        ({"headers": [{"key": "a", "value": None}]}, "its header 'a' is empty"),
    ],
)
def test_values_of_kafka_that_cannot_be_written(row: dict[str, Any], said: str) -> None:
    with pytest.raises(SparkSourceError, match=f"row 10 of the task .*{said}"):
        messages(KAFKA, {"value": b"v", "topic": "T", **row})


def test_what_kafkas_sink_leaves_out_is_refused_without_its_value() -> None:
    with pytest.raises(OptionError, match="the column offset cannot be written"):
        messages({"body": "binary", "offset": "bigint"})
    with pytest.raises(OptionError, match="the column body occurs twice"):
        messages({"body": "binary", "value": "binary"})


def test_a_time_of_delivery_without_a_zone_is_in_that_of_the_session() -> None:
    types = {"body": "string", "deliverTimestamp": "timestamp_ntz"}
    row = {"body": "b", "deliverTimestamp": datetime(2026, 11, 20, 8)}
    arrays = [pa.array([row[name]], _ARROW[kind]) for name, kind in types.items()]
    batch = pa.RecordBatch.from_arrays(arrays, names=list(types))
    for zone, at in (("UTC", 8), ("Asia/Tokyo", -1), ("-03:00", 11)):
        made = RowMessages(list(types.items()), "T").messages(batch, zone=zone_named(zone))
        moment = datetime(2026, 11, 20, tzinfo=UTC) + timedelta(hours=at)
        (only,) = made
        assert only.message.properties["TIMER_DELIVER_MS"] == str(int(moment.timestamp() * 1000))


def test_the_option_goes_before_the_column_topic() -> None:
    (only,) = messages({"body": "string", "topic": "string"}, {"body": "ü", "topic": "Other"})
    assert (only.message.topic, only.message.body) == ("T", "ü".encode())


def test_what_is_null_is_not_there() -> None:
    types = {
        "body": "string", "tags": "string", "keys": "array<string>", "flag": "bigint",
        "properties": "map<string,string>", "deliverTimestamp": "bigint", "delayLevel": "int",
    }  # fmt: skip
    first, second = messages(types, {"body": "b"}, {"body": "b", "keys": ["a", None, "b"]})
    assert first == Outgoing(10, Message("T", b"b", 0, {}), None, None, None)
    assert (second.row, second.message.properties) == (11, {"KEYS": "a b"})


@pytest.mark.parametrize("kind", ["timestamp", "bigint"])
def test_a_time_of_delivery_is_in_milliseconds(kind: str) -> None:
    at: Any = datetime(2026, 11, 20, 8, 0, 0, 123_456, UTC)
    at = at if kind == "timestamp" else 1_795_161_600_123
    types = {"body": "string", "deliverTimestamp": kind}
    (only,) = messages(types, {"body": "b", "deliverTimestamp": at})
    assert only.message.properties == {"TIMER_DELIVER_MS": "1795161600123"}


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"body": None}, "body is empty"),
        ({"body": ""}, "body is empty"),
        ({"flag": 1 << 31}, "flag is 2147483648"),
        ({"delayLevel": 19}, "delayLevel is 19; valid: 0 to 18"),
        ({"delayLevel": 1, "deliverTimestamp": 1}, "both a delayLevel and a deliverTimestamp"),
        ({"queueId": -1}, "queueId is -1"),
        ({"tags": "a\x01b"}, "TAGS hold a separator"),
        ({"properties": [("UNIQ_KEY", "x")]}, "UNIQ_KEY> is used by system"),
        ({"properties": [("", "x")]}, "can not be null or blank"),
        ({"properties": [("a", None)]}, "property 'a' is empty"),
        ({"properties": [("a", "x"), ("b", " ")]}, "property 'b' is empty"),
        ({"keys": ["one", "t wo"]}, "its key 't wo' holds a blank"),
    ],
)
def test_a_value_that_cannot_be_written_is_an_error_of_its_row(
    row: dict[str, Any], reason: str
) -> None:
    types = {
        "body": "string", "flag": "bigint", "delayLevel": "int", "deliverTimestamp": "bigint",
        "queueId": "int", "tags": "string", "properties": "map<string,string>",
        "keys": "array<string>",
    }  # fmt: skip
    with pytest.raises(SparkSourceError, match="row 11 of the task cannot be written") as raised:
        messages(types, {"body": "fine"}, {"body": "b"} | row)
    assert reason in str(raised.value)


def test_a_row_without_topic_is_an_error() -> None:
    types = {"body": "string", "topic": "string"}
    with pytest.raises(SparkSourceError, match="row 10 .*no topic"):
        messages(types, {"body": "b"}, topic=None)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ([("topic", "string")], "a column body .or value. is needed"),
        ([("body", "binary")], "a column topic, or the option topic, is needed"),
        ([("body", "int"), ("topic", "string")], "column body is int; it must be binary or string"),
        (
            [("body", "binary"), ("offset", "bigint")],
            "column offset cannot be written.*shardingKey",
        ),
        ([("body", "binary"), ("BODY", "binary")], "body occurs twice"),
    ],
)
def test_columns_that_make_no_message_are_errors_before_a_job(
    fields: list[tuple[str, str]], reason: str
) -> None:
    with pytest.raises(OptionError, match=reason):
        RowMessages(fields, None)


def test_texts_of_any_kind_are_texts() -> None:
    RowMessages(
        [("body", "string collate UTF8_LCASE"), ("tags", "varchar(5)"), ("topic", "char(3)")], None
    )


def test_each_column_is_documented() -> None:
    assert all(column.doc and column.types for column in SINK_COLUMNS)
