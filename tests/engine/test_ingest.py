# SPDX-License-Identifier: Apache-2.0
"""Ingest on Spark's workers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from tests.spark.ingest.stores_and_tables import (
    SETTINGS,
    job_of,
    keys,
    keys_of,
    put_some,
    quarantined,
    rows,
    store_of,
)
from txrocketmq.spark.arrow.errors import DataLossError, RunFailed
from txrocketmq.spark.ingest.copy_plan import IngestSplit, Plan
from txrocketmq.spark.ingest.job import IngestJob
from txrocketmq.spark.ingest.runners.runner import Outcome, Task, run_here
from txrocketmq.spark.ingest.runners.spark_runner import spark_runner
from txrocketmq.spark.ingest.verification import verify


def test_spark_writes_the_same_table(spark: SparkSession, tmp_path: Path) -> None:
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
    expected = keys_of(store)
    damaged = store.stored[9]
    expected.remove((damaged.draft.topic, damaged.draft.queue_id, damaged.queue_offset))
    assert keys(table) == expected
    (row,) = quarantined(table)
    assert row["physicalOffset"] == damaged.physical_offset
    here = tmp_path / "here"
    list(job_of([store.root], here).run())
    assert sorted(map(str, rows(here))) == sorted(map(str, rows(table))), "as without Spark"
    assert verify(job.table, job.stores, spark_runner(spark)).is_good
    read = spark.read.parquet(*DeltaTable(table).file_uris())
    assert dict(read.dtypes)["properties"] == "map<string,string>"
    assert dict(read.dtypes)["storeTimestamp"] == "timestamp"
    assert read.count() == len(expected)


def test_errors_of_tasks_come_back_as_they_are(spark: SparkSession, tmp_path: Path) -> None:
    store = store_of(tmp_path / "broker-a")
    job = replace(job_of([store.root], tmp_path / "t"), start_runner=lambda: spark_runner(spark))
    (store.root / "commitlog" / f"{4096:020d}").unlink()
    with pytest.raises(DataLossError, match="from 4096 to 8192.*with --allow-data-loss"):
        list(job.run())


def test_errors_of_workers_are_told_in_a_line(spark: SparkSession, tmp_path: Path) -> None:
    store = store_of(tmp_path / "broker-a", 5)
    table = tmp_path / "table"
    job = replace(job_of([store.root], table), start_runner=lambda: spark_runner(spark))
    job.table.create(SETTINGS)
    log = table / "_delta_log"
    table.rename(tmp_path / "moved")
    table.write_text("a file where a folder was")

    def moved_back(tasks: Sequence[Task]) -> Iterator[tuple[int, Outcome]]:
        try:
            yield from spark_runner(spark)(tasks)
        finally:
            table.unlink()
            (tmp_path / "moved").rename(table)

    tasks = job._tasks(plan_of(job))
    with pytest.raises(RunFailed, match=r"^Spark gave the run up: \w+Error: "):
        list(moved_back(tasks))
    assert log.is_dir()
    (commit,) = replace(job, start_runner=lambda: run_here).run()
    assert commit.rows == 5


def plan_of(job: IngestJob) -> Plan:
    return Plan(
        tuple(
            IngestSplit("DefaultCluster/broker-a", 0, 100, first_is_boundary=True) for _ in range(1)
        )
    )
