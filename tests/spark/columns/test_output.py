# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from txrocketmq.spark.arrow.errors import OptionError
from txrocketmq.spark.arrow.schema import MESSAGES, arrow_schema, default_columns
from txrocketmq.spark.columns.output import Output
from txrocketmq.spark.options.options import SourceOptions

KAFKA = StructType(
    [
        StructField("key", BinaryType()),
        StructField("value", BinaryType()),
        StructField("topic", StringType()),
        StructField("partition", IntegerType()),
        StructField("offset", LongType()),
        StructField("timestamp", TimestampType()),
        StructField("timestampType", IntegerType()),
        StructField(
            "headers",
            ArrayType(
                StructType([StructField("key", StringType()), StructField("value", BinaryType())])
            ),
        ),
    ]
)
"""As docs/streaming/structured-streaming-kafka-integration.md of Spark has it."""


def _options(**options: str) -> SourceOptions:
    return SourceOptions.of({"storePath": "/s", **options})


def _decoded(output: Output, **values: Any) -> pa.RecordBatch:
    columns = [column for column in MESSAGES if column.name in output.decoded]
    return pa.RecordBatch.from_pylist([values], schema=arrow_schema(columns))


def test_all_but_those_on_demand_by_default() -> None:
    output = Output.of(_options())
    assert output.schema == arrow_schema(default_columns(MESSAGES))
    assert output.decoded == tuple(output.schema.names)


def test_columns_in_the_order_asked_for() -> None:
    output = Output.of(_options(columns="body,topic"))
    assert output.spark_schema() == StructType(
        [StructField("body", BinaryType(), False), StructField("topic", StringType(), False)]
    )
    decoded = _decoded(output, topic="t", body=b"b")
    assert output.batch(decoded).to_pylist() == [{"body": b"b", "topic": "t"}]
    with pytest.raises(OptionError, match="columns='bodi'"):
        Output.of(_options(columns="bodi"))


@pytest.mark.parametrize("values_may_be_null", [False, True])
def test_values_of_properties_are_never_null(values_may_be_null: bool) -> None:
    output = Output.of(_options(columns="tags,properties"))
    declared = output.spark_schema()
    assert declared["tags"].nullable
    assert declared["properties"] == StructField(
        "properties", MapType(StringType(), StringType(), False), False
    )
    asked = MapType(StringType(), StringType(), values_may_be_null)
    of_spark = StructType([declared["tags"], StructField("properties", asked)])
    output = replace(output, schema=to_arrow_schema(of_spark, timezone="UTC"))
    rows = output.batch(_decoded(output, tags=None, properties=[("a", "b")]))
    assert rows.schema == output.schema
    assert rows.to_pylist() == [{"tags": None, "properties": [("a", "b")]}]


def test_the_names_of_a_schema_are_kept() -> None:
    output = Output.of_schema(_options(), [("TOPIC", "string"), ("QueueId", "int")])
    assert output.decoded == ("topic", "queueId")
    assert output.batch(_decoded(output, topic="t", queueId=1)).schema.names == ["TOPIC", "QueueId"]


@pytest.mark.parametrize(
    ("field", "why"),
    [
        (("topic", "binary"), "says topic binary, but topic is string"),
        (("properties", "string"), "propertiesFormat"),
        (("value", "binary"), "option schema='value'"),
    ],
)
def test_a_schema_of_other_names_or_types_is_refused(field: tuple[str, str], why: str) -> None:
    with pytest.raises(OptionError, match=why):
        Output.of_schema(_options(), [field])


def test_properties_as_text() -> None:
    output = Output.of_schema(_options(propertiesFormat="json"), [("properties", "string")])
    assert output.schema.types == [pa.string()]


def test_the_columns_of_kafka() -> None:
    names = ",".join(KAFKA.fieldNames())
    output = Output.of(_options(kafkaNames="true", columns=names))
    assert output.schema == to_arrow_schema(KAFKA, timezone="UTC")
    fields = [(field.name, field.dataType.simpleString()) for field in KAFKA]
    assert Output.of_schema(_options(kafkaNames="true"), fields).schema == output.schema
    moment = datetime(2026, 1, 2, tzinfo=UTC)
    row = {
        "keys": "k", "body": b"b", "topic": "t", "queueId": 1, "queueOffset": 2,
        "storeTimestamp": moment, "properties": [("a", "1")],
    }  # fmt: skip
    assert output.batch(_decoded(output, **row)).to_pylist() == [
        {
            "key": b"k", "value": b"b", "topic": "t", "partition": 1, "offset": 2,
            "timestamp": moment, "timestampType": 1, "headers": [{"key": "a", "value": b"1"}],
        }
    ]  # fmt: skip


def test_headers_of_a_slice_and_of_missing_properties() -> None:
    output = Output.of(_options(kafkaNames="true", columns="headers"))
    rows = [{"properties": value} for value in ([("x", "0")], [], None, [("a", "1"), ("b", "2")])]
    decoded = pa.RecordBatch.from_pylist(
        rows, schema=arrow_schema([column for column in MESSAGES if column.name == "properties"])
    )
    shown = output.batch(decoded.slice(1)).column("headers").to_pylist()
    assert shown[0] == []
    assert shown[2] == [{"key": "a", "value": b"1"}, {"key": "b", "value": b"2"}]


def test_kafka_names_come_first_and_then_what_makes_their_key_unique() -> None:
    names = ["key", "value", "topic", "partition", "offset", "timestamp", "timestampType"]
    plain = Output.of(_options(kafkaNames="true"))
    assert plain.schema.names == [*names, "brokerName"]
    with_headers = Output.of(_options(kafkaNames="true", includeHeaders="true"))
    assert with_headers.schema.names == [*names, "headers", "brokerName"]


def test_kafka_names_leave_the_other_columns_on_demand() -> None:
    assert "tags" not in Output.of(_options(kafkaNames="true")).schema.names
    output = Output.of(_options(kafkaNames="true", columns="offset,brokerName,timestampType"))
    assert output.decoded == ("queueOffset", "brokerName")


def test_a_constant_alone_has_as_many_rows() -> None:
    output = Output.of(_options(kafkaNames="true", columns="timestampType"))
    assert output.batch(_decoded(output, queueId=3)).to_pylist() == [{"timestampType": 1}]
