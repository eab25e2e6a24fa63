# SPDX-License-Identifier: Apache-2.0
"""Streams over stores through Spark: a directory that grows while a query reads it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from tests.spark.stores import Draft, StoreWriter

WAIT_S = 60


@pytest.fixture
def store(tmp_path: Path) -> StoreWriter:
    writer = StoreWriter(tmp_path / "broker-a", segment_bytes=1 << 16)
    fill(writer, 200)
    return writer


def fill(writer: StoreWriter, count: int) -> None:
    begin = len(writer.stored)
    writer.put_all(
        Draft(topic="Orders", queue_id=number % 4, body=b"%d " % number * 100)
        for number in range(begin, begin + count)
    )
    writer.write_config()


def stream(spark: SparkSession, store: StoreWriter, **options: str) -> DataFrame:
    reader = spark.readStream.format("rocketmq").option("storePath", str(store.root))
    reader = reader.option("startingOffsets", "earliest").options(**options)
    return reader.load().select("physicalOffset", "body")


class Table:
    """A table that a query appends to, and the query's checkpoint."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark = spark
        self.path = str(folder / "table")
        self.checkpoint = str(folder / "checkpoint")
        self.fail_after_batches: int | None = None

    def write(self, batch: DataFrame, batch_id: int) -> None:
        """For foreachBatch: a batch that is run again writes the same folder again."""
        batch.write.mode("overwrite").parquet(f"{self.path}/batch={batch_id}")
        if self.fail_after_batches is not None and batch_id >= self.fail_after_batches:
            self.fail_after_batches = None
            raise RuntimeError("killed after the write, before the commit")

    def run(self, frame: DataFrame) -> list[dict[str, Any]]:
        """Reads what is there now; the progress of each batch."""
        writer = frame.writeStream.foreachBatch(self.write)
        writer = writer.option("checkpointLocation", self.checkpoint).trigger(availableNow=True)
        query = writer.start()
        assert query.awaitTermination(WAIT_S)
        return [json.loads(progress.json) for progress in query.recentProgress]

    def places(self) -> list[int]:
        rows = self.spark.read.parquet(self.path).select("physicalOffset").collect()
        return sorted(row[0] for row in rows)


def places(store: StoreWriter) -> list[int]:
    return [stored.physical_offset for stored in store.stored]


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline, "it does not come true"
        time.sleep(0.05)


def test_a_running_query_follows_a_store_that_grows_and_goes_on_after_it_was_stopped(
    spark: SparkSession, store: StoreWriter, tmp_path: Path
) -> None:
    table = str(tmp_path / "table")

    def start() -> Any:
        writer = stream(spark, store).writeStream.format("parquet")
        return writer.option("checkpointLocation", f"{tmp_path}/checkpoint").start(table)

    def seen() -> list[int]:
        return sorted(
            row[0] for row in spark.read.parquet(table).select("physicalOffset").collect()
        )

    query = start()
    try:
        query.processAllAvailable()
        fill(store, 300)
        query.processAllAvailable()
        assert seen() == places(store)
    finally:
        query.stop()
    fill(store, 100)
    query = start()
    try:
        query.processAllAvailable()
        assert seen() == places(store)
        source = json.loads(query.lastProgress.json)["sources"][0]
        assert (
            json.loads(json.dumps(source["endOffset"]))["brokers"]["DefaultCluster/broker-a"]["log"]
            == store.end
        )
    finally:
        query.stop()


def test_available_now_with_a_limit_and_a_query_that_is_killed_between_batches(
    spark: SparkSession, store: StoreWriter, tmp_path: Path
) -> None:
    table = Table(spark, tmp_path)
    options = {"maxBytesPerTrigger": "30000", "minPartitions": "3"}
    table.fail_after_batches = 2
    with pytest.raises(StreamingQueryException, match="killed after the write"):
        table.run(stream(spark, store, **options))
    fill(store, 200)
    progress = table.run(stream(spark, store, startingTimestamp="0", **options))
    assert table.places() == places(store)
    rows = [each["numInputRows"] for each in progress if each["numInputRows"]]
    assert len(rows) > 3
    assert max(rows) * min(stored.size for stored in store.stored) <= 30_000
    fill(store, 5)
    table.run(stream(spark, store, **options))
    assert table.places() == places(store)


def test_data_loss_ends_the_query_with_a_sentence_unless_told_otherwise(
    spark: SparkSession, store: StoreWriter, tmp_path: Path
) -> None:
    table = Table(spark, tmp_path)
    table.run(stream(spark, store, maxBytesPerTrigger="30000", startingOffsets="latest"))
    fill(store, 900)
    for _ in range(4):
        store.delete_segment()
    with pytest.raises(StreamingQueryException, match="retention or somebody has deleted"):
        table.run(stream(spark, store))
    table.run(stream(spark, store, failOnDataLoss="false"))
    least = min(int(each.name) for each in (store.root / "commitlog").iterdir())
    assert table.places() == [place for place in places(store) if place >= least]


def test_wrong_options_end_the_query_before_any_batch(
    spark: SparkSession, store: StoreWriter, tmp_path: Path
) -> None:
    table = Table(spark, tmp_path)
    with pytest.raises(Exception, match="maxOffsetsPerTrigger has no meaning here"):
        table.run(stream(spark, store, maxOffsetsPerTrigger="5"))
