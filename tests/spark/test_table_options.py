# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from pyspark.sql.types import LongType, StringType, StructField, StructType

from txrocketmq.spark.table_options import options_in, with_options


def test_options_travel_in_the_schema() -> None:
    schema = StructType(
        [StructField("topic", StringType(), nullable=False), StructField("queueOffset", LongType())]
    )
    assert options_in(schema) == {}
    kept = with_options(schema, {"storepath": "/s", "topic": "Ünï 'x'"})
    assert kept.simpleString() == schema.simpleString()
    assert [field.nullable for field in kept.fields] == [False, True]
    again = StructType.fromJson(kept.jsonValue())
    assert options_in(again) == {"storepath": "/s", "topic": "Ünï 'x'"}
