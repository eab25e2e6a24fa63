# SPDX-License-Identifier: Apache-2.0
"""Writing through Spark to our own broker, and reading it back."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession, functions

from tests.spark.stores import Draft, StoreWriter
from txrocketmq.spark.sink.replay import rocketmq_batch
from txrocketmq.testing.server import Server

WAIT_S = 60


def sent(spark: SparkSession, server: Server, topic: str, count: int) -> DataFrame:
    """What is in the topic, once that are so many messages."""
    reader = spark.read.format("rocketmq").option("nameServer", server.namesrv_addr)
    frame = reader.option("topic", topic).option("columns", ",".join(COLUMNS)).load()
    wait_for(lambda: frame.count() >= count)
    return frame


COLUMNS = ("body", "tags", "keys", "uniqKey", "properties", "flag", "queueId", "queueOffset")


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline, "it does not come true"
        time.sleep(0.05)


def write(frame: DataFrame, server: Server, **options: str) -> None:
    writer = frame.write.format("rocketmq").mode("append")
    writer.option("nameServer", server.namesrv_addr).options(**options).save()


def test_rows_arrive_as_messages_in_order_of_their_sharding_key(
    spark: SparkSession, rocketmq_server: Server, topic: str
) -> None:
    rows = spark.range(0, 500, numPartitions=2).select(
        functions.concat(functions.lit("body "), "id").cast("binary").alias("body"),
        functions.lit(topic).alias("topic"),
        functions.when(functions.col("id") % 2 == 0, "even").alias("tags"),
        functions.concat(functions.lit("key-"), "id").alias("keys"),
        functions.create_map(functions.lit("number"), functions.col("id").cast("string")).alias(
            "properties"
        ),
        (functions.col("id") % 7).cast("int").alias("flag"),
        (functions.col("id") % 5).cast("string").alias("shardingKey"),
    )
    write(rows, rocketmq_server)
    found = sent(spark, rocketmq_server, topic, 500).collect()
    assert len(found) == 500
    assert len({row.uniqKey for row in found}) == 500
    last: dict[tuple[str, bool], tuple[int, int]] = {}
    queues: dict[str, int] = {}
    for row in sorted(found, key=lambda each: each.queueOffset):
        number = int(row.properties["number"])
        assert bytes(row.body) == b"body %d" % number
        assert (row.tags, row.keys) == ("even" if number % 2 == 0 else None, f"key-{number}")
        assert row.flag == number % 7
        key = row.properties["__SHARDINGKEY"]
        assert queues.setdefault(key, row.queueId) == row.queueId
        of_task = key, number < 250
        assert number > last.get(of_task, (-1, 0))[0]
        last[of_task] = number, row.queueOffset
    assert len(last) == 10


def test_what_was_read_with_the_names_of_kafka_is_written(
    spark: SparkSession, rocketmq_server: Server, topic: str
) -> None:
    """Only the topic differs; unique keys are new."""
    rows = spark.range(20).selectExpr(
        "concat('body ', id) AS body", "concat('k', id) AS keys", "'A' AS tags",
        "map('color', concat('c', id)) AS properties",
    )  # fmt: skip
    write(rows, rocketmq_server, topic=topic)
    live = spark.read.format("rocketmq").option("nameServer", rocketmq_server.namesrv_addr)
    kafka = live.options(kafkaNames="true", includeHeaders="true").option("topic", topic).load()
    copy = topic.replace("what", "copy")
    write(kafka, rocketmq_server, topic=copy)
    first, second = (
        {
            (bytes(row.body), row.keys, row.tags, row.properties["color"], row.queueId)
            for row in sent(spark, rocketmq_server, name, 20).collect()
        }
        for name in (topic, copy)
    )
    assert first == second
    assert len(first) == 20


def test_a_message_with_a_delay_comes_later(
    spark: SparkSession, rocketmq: Server, topic: str
) -> None:
    rows = spark.createDataFrame([("now", 0), ("later", 3)], "body string, delayLevel int")
    write(rows.coalesce(1), rocketmq, topic=topic)
    assert [bytes(row.body) for row in sent(spark, rocketmq, topic, 1).collect()] == [b"now"]
    rocketmq.advance(10_000)
    bodies = sorted(bytes(row.body) for row in sent(spark, rocketmq, topic, 2).collect())
    assert bodies == [b"later", b"now"]


def test_errors_come_before_any_job(spark: SparkSession, rocketmq_server: Server) -> None:
    rows = spark.range(1).select(functions.lit("x").alias("body"), functions.lit(1).alias("price"))
    with pytest.raises(PySparkException, match="the column price cannot be written"):
        write(rows, rocketmq_server, topic="T")
    with pytest.raises(PySparkException, match="a column topic, or the option topic, is needed"):
        write(rows.select("body"), rocketmq_server)
    with pytest.raises(PySparkException, match="option nameServer is needed to write"):
        rows.select("body").write.format("rocketmq").mode("append").save()


@pytest.mark.rocketmq(rejectTransactionMessage=True)
def test_a_broker_without_transactions_gets_nothing_of_a_transactional_write(
    spark: SparkSession, rocketmq: Server, topic: str
) -> None:
    rows = spark.range(0, 20).selectExpr("'x' AS body", "id % 3 AS delayLevel")
    options = {"topic": topic, "transactional": "true", "sendRetries": "0"}
    with pytest.raises(PySparkException, match="delayLevel cannot be written with transactional"):
        write(rows, rocketmq, **options)
    with pytest.raises(PySparkException, match="sending transaction message is forbidden"):
        write(rows.select("body"), rocketmq, **options)
    write(rows.select("body").limit(1), rocketmq, topic=topic)
    assert sent(spark, rocketmq, topic, 1).count() == 1


def test_a_transactional_write_is_seen_as_a_whole(
    spark: SparkSession, rocketmq_server: Server, topic: str
) -> None:
    rows = spark.range(0, 20).selectExpr("CAST(id AS STRING) AS body")
    write(rows, rocketmq_server, topic=topic, transactional="true")
    found = sent(spark, rocketmq_server, topic, 20).collect()
    assert sorted(int(bytes(row.body)) for row in found) == list(range(20))


def test_a_stream_of_messages_goes_to_another_topic(
    spark: SparkSession, rocketmq_server: Server, topic: str, tmp_path: Path
) -> None:
    store = filled(tmp_path, 50)
    frame = stream(spark, store).select("body", "tags")
    writer = frame.writeStream.format("rocketmq").option("topic", topic)
    writer = writer.option("nameServer", rocketmq_server.namesrv_addr)
    writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
    for _ in range(2):
        query = writer.trigger(availableNow=True).start()
        assert query.awaitTermination(WAIT_S)
        store.put_all(Draft(topic="In", body=b"more", properties={"TAGS": "B"}) for _ in range(9))
    found = sent(spark, rocketmq_server, topic, 59).collect()
    assert sorted(bytes(row.body) for row in found) == sorted(
        [b"%d" % number for number in range(50)] + [b"more"] * 9
    )


def test_a_batch_that_is_replayed_sends_nothing_twice(
    spark: SparkSession, rocketmq_server: Server, topic: str, tmp_path: Path
) -> None:
    store = filled(tmp_path, 200)
    write_batch = rocketmq_batch(
        topic, {"nameServer": rocketmq_server.namesrv_addr, "topic": topic}
    )
    killed: list[int] = []

    def write_and_die(rows: DataFrame, batch_id: int) -> None:
        if not killed:
            # The task is killed in the middle: half of the rows of each partition are sent.
            half = rows.where("queueOffset < 25").select("body")
            write_batch(half, batch_id)
            killed.append(batch_id)
            raise RuntimeError("killed")
        write_batch(rows.select("body"), batch_id)
        write_batch(rows.select("body"), batch_id)

    def run() -> None:
        frame = stream(spark, store, columns="body,queueOffset").coalesce(2)
        query: Any = frame.writeStream.foreachBatch(write_and_die)
        query = query.option("checkpointLocation", str(tmp_path / "checkpoint"))
        assert query.trigger(availableNow=True).start().awaitTermination(WAIT_S)

    with pytest.raises(PySparkException, match="killed"):
        run()
    run()
    store.put_all(Draft(topic="In", body=b"more") for _ in range(3))
    run()
    found = sent(spark, rocketmq_server, topic, 203).collect()
    assert sorted(bytes(row.body) for row in found) == sorted(
        [b"%d" % number for number in range(200)] + [b"more"] * 3
    )


def filled(folder: Path, count: int) -> StoreWriter:
    """A store with messages in the order of their offsets: the first of a batch come first."""
    store = StoreWriter(folder / "broker-a")
    store.put_all(
        Draft(topic="In", queue_id=number % 4, body=b"%d" % number, properties={"TAGS": "A"})
        for number in range(count)
    )
    return store


def stream(spark: SparkSession, store: StoreWriter, **options: str) -> DataFrame:
    reader = spark.readStream.format("rocketmq").option("storePath", str(store.root))
    return reader.option("startingOffsets", "earliest").options(**options).load()
