# SPDX-License-Identifier: Apache-2.0
"""The tables besides messages, through Spark; and the source found without being registered."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from tests.spark.stores import Draft, StoreWriter
from txrocketmq.spark.options.options import TABLES

ROOT = Path(__file__).resolve().parent.parent.parent
PROGRAM = """
import sys
from pyspark.sql import SparkSession
spark = (SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
         .config("spark.driver.bindAddress", "127.0.0.1").config("spark.driver.host", "127.0.0.1")
         .getOrCreate())
frame = spark.read.format("rocketmq").load(sys.argv[1]).where("topic = 'Topic'")
print("found", frame.count())
"""


def _table(spark: SparkSession, path: Path, table: str, **options: str) -> DataFrame:
    return spark.read.format("rocketmq").option("table", table).options(**options).load(str(path))


@pytest.mark.parametrize("table", [name for name in TABLES if name != "messages"])
def test_every_table_of_a_golden_store(
    spark: SparkSession, golden_store: Callable[[str], Path], table: str
) -> None:
    """Spark compares the batches with the schema, so reading says that all types are right."""
    rows = _table(spark, golden_store("5.4.0") / "crashed", table).collect()
    assert bool(rows) == (table not in ("quarantine", "dataloss"))


def test_tables_have_columns_and_conditions_as_others(
    spark: SparkSession, golden_store: Callable[[str], Path]
) -> None:
    path = golden_store("4.9.7") / "clean"
    frame = _table(spark, path, "queues", columns="topic,messages", topicPattern="Orders|Plain")
    rows = {row["topic"]: row[1] for row in frame.groupBy("topic").sum("messages").collect()}
    assert rows == {"Orders": 30, "Plain": 41}
    schema = "LAG bigint, `group` string NOT NULL"
    frame = spark.read.format("rocketmq").schema(schema).option("table", "offsets").load(str(path))
    assert frame.where("group = 'golden_retry'").agg({"LAG": "sum"}).collect()[0][0] == 0


def test_tables_refuse_what_has_no_meaning(spark: SparkSession, tmp_path: Path) -> None:
    StoreWriter(tmp_path / "s")
    with pytest.raises(PySparkException, match="option kafkaNames has no meaning here .tables."):
        _table(spark, tmp_path / "s", "queues", kafkaNames="true").count()
    with pytest.raises(PySparkException, match="table='lag' is not valid; valid: messages, queues"):
        _table(spark, tmp_path / "s", "lag")


def test_spark_finds_the_source_by_itself(tmp_path: Path) -> None:
    """As in an environment where the wheel is installed: the package is on the workers' path."""
    writer = StoreWriter(tmp_path / "store")
    writer.put_all(Draft() for _ in range(3))
    packages = tmp_path / "packages"
    packages.mkdir()
    (packages / "pyspark_rocketmq").symlink_to(ROOT / "spark" / "pyspark_rocketmq")
    environment = {**os.environ, "PYTHONPATH": str(packages), "PYSPARK_PYTHON": sys.executable}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(writer.root)],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "found 3" in done.stdout, done.stderr
