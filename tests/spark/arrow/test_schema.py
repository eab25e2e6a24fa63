# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructField, StructType

from tests.spark.tables.rows import SPARK_TYPES
from txrocketmq.spark.arrow import schema
from txrocketmq.spark.arrow.errors import OptionError


def test_the_columns_of_rocketmq_spark_come_first() -> None:
    names = [column.name for column in schema.MESSAGES]
    assert names[:9] == [
        "topic", "queueId", "queueOffset", "body", "properties", "brokerName", "flag",
        "bornTimestamp", "storeTimestamp",
    ]  # fmt: skip
    assert len(set(map(str.lower, names))) == len(names)


def test_the_arrow_schema_is_the_one_that_spark_demands() -> None:
    of_spark = StructType(
        [StructField(column.name, SPARK_TYPES[column.type]) for column in schema.MESSAGES]
    )
    assert schema.arrow_schema(schema.MESSAGES) == to_arrow_schema(of_spark, timezone="UTC")


def test_columns_are_chosen_by_name_in_the_order_asked_for() -> None:
    chosen = schema.columns_named(["BODY", " topic "], schema.MESSAGES)
    assert [column.name for column in chosen] == ["body", "topic"]
    assert schema.arrow_schema(chosen).types == [pa.binary(), pa.string()]


@pytest.mark.parametrize("names", [["bodi"], ["body", "Body"], []])
def test_names_that_make_no_sense_are_refused(names: list[str]) -> None:
    with pytest.raises(OptionError, match="columns"):
        schema.columns_named(names, schema.MESSAGES)


def test_columns_on_demand_are_left_out() -> None:
    names = {column.name for column in schema.default_columns(schema.MESSAGES)}
    assert "properties" in names
    assert not names & {"msgId", "crcOk", "transactionState", "compression", "cluster"}
