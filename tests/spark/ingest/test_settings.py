# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from txrocketmq.spark.arrow import schema
from txrocketmq.spark.arrow.errors import OptionError, TableError
from txrocketmq.spark.ingest.settings import (
    PLACE_COLUMNS,
    TableSettings,
    chosen_columns,
    partition_columns,
)

SETTINGS = TableSettings(
    columns=chosen_columns(("body", "tags")),
    partition_by=("dt",),
    source=(("topic", "订单"), ("view", "logical")),
)


def test_columns_in_the_order_of_the_schema_with_the_place_of_each_message() -> None:
    assert chosen_columns(None) == tuple(
        column.name
        for column in schema.MESSAGES
        if not column.on_demand or column.name == "cluster"
    )
    assert chosen_columns(("crcOk", "BODY")) == (
        "topic", "queueId", "queueOffset", "body", "brokerName", "storeTimestamp",
        "physicalOffset", "storeSize", "crcOk", "cluster",
    )  # fmt: skip
    assert set(PLACE_COLUMNS) <= set(chosen_columns(("tags",)))
    with pytest.raises(OptionError, match="columns"):
        chosen_columns(("nothing",))


def test_partitioning() -> None:
    assert partition_columns("topic,dt") == ("topic", "dt")
    assert partition_columns("dt, topic") == ("dt", "topic")
    assert partition_columns("none") == ()
    for wrong in ("day", "topic,topic", "", "none,dt"):
        with pytest.raises(OptionError, match="partition-by"):
            partition_columns(wrong)


def test_the_schema_has_the_day_when_the_table_is_partitioned_by_it() -> None:
    assert SETTINGS.schema.names == [*SETTINGS.columns, "dt"]
    assert replace(SETTINGS, partition_by=("topic",)).schema.names == list(SETTINGS.columns)
    table = TableSettings(columns=("properties",), source=(("propertiesFormat", "json"),))
    assert table.schema.field("properties").type == pa.string()


def test_a_run_must_want_the_table_that_is_there() -> None:
    SETTINGS.check_equal(SETTINGS, "/t")
    other = TableSettings(columns=SETTINGS.columns, source=SETTINGS.source)
    with pytest.raises(TableError, match=r"with partition-by=dt, not with partition-by=topic,dt"):
        SETTINGS.check_equal(other, "/t")
    with pytest.raises(TableError, match=r"/t was made with topic=订单, not without topic"):
        SETTINGS.check_equal(TableSettings(columns=SETTINGS.columns, partition_by=("dt",)), "/t")
