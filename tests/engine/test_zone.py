# SPDX-License-Identifier: Apache-2.0
"""Times without a zone are those of the session's clocks, whenever its zone was set."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession, functions

from tests.spark.stores import Draft, StoreWriter
from txrocketmq.spark import register
from txrocketmq.testing.server import Server

ZONE = "spark.sql.session.timeZone"
HOURS = 48


@pytest.fixture(scope="module")
def writer(tmp_path_factory: pytest.TempPathFactory) -> StoreWriter:
    """A message an hour."""
    writer = StoreWriter(tmp_path_factory.mktemp("zone") / "broker-a")
    writer.put_all(Draft("Orders", after_ms=3_600_000) for _ in range(HOURS))
    writer.close()
    return writer


@pytest.fixture
def in_zone(spark: SparkSession) -> Iterator[SparkSession]:
    """A session whose zone the test may set."""
    yield spark
    spark.conf.set(ZONE, "UTC")
    register(spark)


@pytest.mark.parametrize("zone", ["UTC", "Asia/Tokyo", "America/St_Johns", "+14:00"])
def test_a_batch_goes_by_the_zone_that_the_session_has_now(
    in_zone: SparkSession, writer: StoreWriter, zone: str
) -> None:
    spark = in_zone
    spark.conf.set(ZONE, zone)  # after register(spark)
    tz = ZoneInfo(zone) if "/" in zone else UTC
    shift = timedelta(hours=14) if zone == "+14:00" else timedelta()
    moment = datetime.fromtimestamp(writer.stored[20].store_timestamp / 1000, tz) + shift
    local, later = (
        f"{each.replace(tzinfo=None)}" for each in (moment, moment + timedelta(hours=5))
    )
    frame = (
        spark.read.format("rocketmq").option("storePath", str(writer.root))
        .option("startingTimestamp", local).option("endingTimestamp", later)
        .option("columns", "queueOffset,storeTimestamp").load()
    )  # fmt: skip
    assert sorted(row.queueOffset for row in frame.collect()) == list(range(20, 25))
    same = frame.where(functions.col("storeTimestamp") >= functions.lit(local).cast("timestamp"))
    assert same.count() == 5, "as Spark itself reads the text"
    conditions = f"storeTimestamp >= '{local}' AND storeTimestamp < '{later}'"
    chosen = (
        spark.read.format("rocketmq")
        .option("storePath", str(writer.root))
        .option("columns", "queueOffset")
    )
    by_where = chosen.option("where", conditions).load()
    assert sorted(row.queueOffset for row in by_where.collect()) == list(range(20, 25))


def test_a_session_without_a_setting_has_the_zone_of_its_machine(
    in_zone: SparkSession, writer: StoreWriter
) -> None:
    """Spark says nothing of a zone to the tasks then."""
    spark = in_zone
    jvm = spark.sparkContext._jvm
    assert jvm is not None
    zones = jvm.java.util.TimeZone
    before = zones.getDefault()
    try:
        zones.setDefault(zones.getTimeZone("Asia/Tokyo"))
        spark.conf.unset(ZONE)
        register(spark)
        assert spark.conf.get(ZONE) == "Asia/Tokyo"
        load = spark.read.format("rocketmq").option("columns", "queueOffset,storeTimestamp")
        tokyo = datetime.fromtimestamp(
            writer.stored[20].store_timestamp / 1000, ZoneInfo("Asia/Tokyo")
        )
        local = f"{tokyo.replace(tzinfo=None)}"
        condition = f"storeTimestamp >= '{local}'"
        frames = (
            load.load(str(writer.root)).where(condition),
            load.option("where", condition).load(str(writer.root)),
            load.option("startingTimestamp", local).load(str(writer.root)),
        )
        assert [each.count() for each in frames] == [HOURS - 20] * 3
    finally:
        zones.setDefault(before)


def test_a_stream_that_cannot_know_the_zone_says_so(
    in_zone: SparkSession, writer: StoreWriter, tmp_path: Path
) -> None:
    spark = in_zone

    def rows() -> int:
        moment = datetime.fromtimestamp(writer.stored[20].store_timestamp / 1000, UTC)
        stream = (
            spark.readStream.format("rocketmq").option("storePath", str(writer.root))
            .option("columns", "queueOffset")
            .option("startingTimestamp", f"{moment.replace(tzinfo=None)}").load()
        )  # fmt: skip
        path = tmp_path / str(len(list(tmp_path.iterdir())))
        query = stream.writeStream.format("noop").option("checkpointLocation", str(path))
        running = query.trigger(availableNow=True).start()
        running.awaitTermination()
        return sum(each["numInputRows"] for each in running.recentProgress)

    assert rows() == HOURS - 20
    spark.conf.set(ZONE, "Asia/Tokyo")
    with pytest.raises(PySparkException, match="is Asia/Tokyo, but was UTC when register"):
        rows()


def test_a_read_of_a_cluster_that_cannot_know_the_zone_says_so(
    in_zone: SparkSession, rocketmq: Server, topic: str
) -> None:
    spark = in_zone
    rows = spark.createDataFrame([("a",)], "body string").write.format("rocketmq")
    rows.option("nameServer", rocketmq.namesrv_addr).option("topic", topic).mode("append").save()
    live = spark.read.format("rocketmq").option("nameServer", rocketmq.namesrv_addr)
    live = live.option("topic", topic).option("columns", "body")
    since = live.option("startingTimestamp", "2020-01-01T00:00:00")
    assert since.load().count() == 1
    spark.conf.set(ZONE, "Asia/Tokyo")
    with pytest.raises(PySparkException, match="is Asia/Tokyo, but was UTC when register"):
        since.load().count()
    register(spark)
    assert since.load().count() == 1


def test_rows_with_a_time_of_delivery_without_a_zone(
    in_zone: SparkSession, rocketmq: Server, topic: str
) -> None:
    """A message that is due now by the clocks of Honolulu would be late by ten hours in UTC."""
    spark = in_zone
    spark.conf.set(ZONE, "Pacific/Honolulu")
    due = datetime.now(ZoneInfo("Pacific/Honolulu")) + timedelta(seconds=90)
    text = f"{due.replace(tzinfo=None, microsecond=0)}"
    rows = spark.sql(f"SELECT 'a' AS body, TIMESTAMP_NTZ '{text}' AS deliverTimestamp")
    writer = rows.write.format("rocketmq").option("nameServer", rocketmq.namesrv_addr)
    writer.option("topic", topic).mode("append").save()
    waiting = spark.read.format("rocketmq").option("nameServer", rocketmq.namesrv_addr)
    frame = waiting.option("topic", "rmq_sys_wheel_timer").option("columns", "properties").load()
    (found,) = (
        row.properties["TIMER_OUT_MS"]
        for row in frame.collect()
        if row.properties["REAL_TOPIC"] == topic
    )
    assert abs(int(found) - int(due.timestamp() * 1000)) < 2000
