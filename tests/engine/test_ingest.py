# SPDX-License-Identifier: Apache-2.0
"""Ingest on Spark's workers, and its tables as Spark reads them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.spark.ingest.tables import SETTINGS, job_of, keys_of, put_some, store_of
from txrocketmq.spark.errors import DataLossError
from txrocketmq.spark.ingest.errors import RunFailed
from txrocketmq.spark.ingest.runner import run_here
from txrocketmq.spark.ingest.spark_runner import spark_runner
from txrocketmq.spark.ingest.verify import verify


def test_a_table_is_read_by_spark_with_its_partitions(spark: SparkSession, tmp_path: Path) -> None:
    store = store_of(tmp_path / "broker-a")
    with store.segment(0).open("r+b") as file:
        file.seek(store.stored[9].physical_offset + 4)
        file.write(b"oops")
    table = tmp_path / "table"
    job = replace(job_of([store.root], table), start_runner=lambda: spark_runner(spark))
    (commit,) = job.run()
    put_some(store, 10)
    (later,) = job.run()
    assert (commit.rows, later.rows) == (59, 10)
    read = spark.read.parquet(str(table))
    assert dict(read.dtypes)["dt"] == "date"
    assert dict(read.dtypes)["properties"] == "map<string,string>"
    assert dict(read.dtypes)["storeTimestamp"] == "timestamp"
    found = read.select("topic", "queueId", "queueOffset").collect()
    expected = keys_of(store)
    damaged = store.stored[9]
    expected.remove((damaged.draft.topic, damaged.draft.queue_id, damaged.queue_offset))
    assert sorted(map(tuple, found)) == expected
    quarantine = spark.read.parquet(f"{table}/_quarantine").collect()
    assert [row["physicalOffset"] for row in quarantine] == [damaged.physical_offset]
    manifest = spark.read.json(f"{table}/_manifest").selectExpr("run", "explode(parts.path) path")
    named = {f"{table}/{row['path']}" for row in manifest.where("run = 1").collect()}
    snapshot = spark.read.option("basePath", str(table)).parquet(*named)
    assert snapshot.where("topic = '%RETRY%group'").count() == 20 - (damaged.draft.topic[0] == "%")
    assert snapshot.count() == 59
    assert verify(job.ledger, job.stores, spark_runner(spark)).is_good


def test_errors_of_tasks_come_back_as_they_are(spark: SparkSession, tmp_path: Path) -> None:
    store = store_of(tmp_path / "broker-a")
    job = replace(job_of([store.root], tmp_path / "t"), start_runner=lambda: spark_runner(spark))
    bounds = job.dry_run()
    assert bounds[1] is not None
    (store.root / "commitlog" / f"{4096:020d}").unlink()
    with pytest.raises(DataLossError, match="from 4096 to 8192.*--allow-data-loss goes on"):
        list(job.run())


def test_errors_of_workers_are_told_in_a_line(spark: SparkSession, tmp_path: Path) -> None:
    store = store_of(tmp_path / "broker-a", 5)
    table = tmp_path / "table"
    job = replace(job_of([store.root], table), start_runner=lambda: spark_runner(spark))
    job.ledger.create_table(SETTINGS)
    (table / "topic=Orders").write_text("a file where a folder is to be")
    with pytest.raises(RunFailed, match=r"^Spark gave the run up: \w+Error: .*topic=Orders"):
        list(job.run())
    (table / "topic=Orders").unlink()
    (commit,) = replace(job, start_runner=lambda: run_here).run()
    assert commit.rows == 5


def test_unpartitioned_tables_are_for_spark_too(spark: SparkSession, tmp_path: Path) -> None:
    store = store_of(tmp_path / "broker-a", 12)
    settings = replace(SETTINGS, partition_by=())
    list(job_of([store.root], tmp_path / "table", settings=settings).run())
    read = spark.read.parquet(str(tmp_path / "table"))
    assert sorted(map(tuple, read.select("topic", "queueId", "queueOffset").collect())) == keys_of(
        store
    )
    assert read.columns == list(SETTINGS.columns)
