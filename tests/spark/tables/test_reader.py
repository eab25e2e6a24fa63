# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import BooleanType, LongType, StringType, StructField, StructType

from tests.spark.stores import StoreWriter
from tests.spark.tables.rows import rows_of, schema_of
from txrocketmq.spark.arrow.errors import OptionError
from txrocketmq.spark.options import options as declared
from txrocketmq.spark.options.option import Use
from txrocketmq.spark.options.options import SourceOptions
from txrocketmq.spark.tables.reader import TableReader, table_schema
from txrocketmq.spark.tables.reading import TABLES
from txrocketmq.spark.tables.table import OF_EVERY_TABLE, Table


def _options(path: Path, **options: str) -> SourceOptions:
    return SourceOptions.of({"storePath": str(path), **options})


def test_the_option_names_the_tables_that_there_are() -> None:
    assert set(declared.TABLES) == {"messages", *TABLES}


def test_columns_have_names_of_their_own() -> None:
    for table in TABLES.values():
        names = [column.name.lower() for column in table.columns]
        assert len(set(names)) == len(names)


@pytest.mark.parametrize("table", TABLES)
def test_an_empty_store_has_every_table(tmp_path: Path, table: str) -> None:
    StoreWriter(tmp_path / "a")
    StoreWriter(tmp_path / "b")
    rows = rows_of(f"{tmp_path}/*", table)
    assert {row["brokerName"] for row in rows} == ({"a", "b"} if table == "checkpoint" else set())


def test_some_columns_in_another_order(tmp_path: Path) -> None:
    StoreWriter(tmp_path / "a")
    options = _options(tmp_path / "a", table="checkpoint", columns="abort,minOffset")
    assert table_schema(options) == StructType(
        [StructField("abort", BooleanType()), StructField("minOffset", LongType())]
    )
    schema = StructType([StructField("ABORT", schema_of("checkpoint")["abort"].dataType)])
    (batch,) = TableReader(options, schema).read(TableReader(options, schema).partitions()[0])
    assert batch.to_pylist() == [{"ABORT": True}]


@pytest.mark.parametrize(
    ("field", "why"),
    [
        (StructField("level", LongType()), "the schema says level bigint, but it is int"),
        (StructField("lvl", StringType()), "option schema='lvl'"),
    ],
)
def test_a_schema_that_the_table_does_not_have(
    tmp_path: Path, field: StructField, why: str
) -> None:
    StoreWriter(tmp_path / "a")
    with pytest.raises(OptionError, match=why):
        TableReader(_options(tmp_path / "a", table="delayoffsets"), StructType([field]))


def test_no_partitions_means_no_rows(tmp_path: Path) -> None:
    StoreWriter(tmp_path / "a")
    reader = TableReader(_options(tmp_path / "a", table="queues"), schema_of("queues"))
    (one,) = reader.partitions()
    assert list(reader.read(one)) == [], "it is for what comes later"
    assert list(reader.read(InputPartition(None))) == []
    assert list(reader.read(None)) == [], "as PySpark 4.0 calls it"


@pytest.mark.parametrize(
    ("table", "options", "takes"),
    [
        ("index", {"topic": "Orders"}, "none of its own"),
        ("quarantine", {"topic": "Orders"}, "batchBytes, failOnDataLoss, .*verify"),
        (
            "queues",
            {"columns": "topic", "verify": "crc"},
            "allowUnknownTopics, assign, topic, topicPattern",
        ),
    ],
)
def test_an_option_without_meaning_for_the_table(
    tmp_path: Path, table: str, options: dict[str, str], takes: str
) -> None:
    StoreWriter(tmp_path / "a")
    why = f"option {list(options)[-1]} has no meaning for table={table}; .* takes: {takes}"
    with pytest.raises(OptionError, match=why):
        TableReader(_options(tmp_path / "a", table=table, **options), schema_of(table))


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_tables_take_options_that_there_are(table: Table) -> None:
    of_tables = {o.name for o in declared.declared_options().values() if Use.TABLE in o.uses}
    assert table.options | OF_EVERY_TABLE <= of_tables
