# SPDX-License-Identifier: Apache-2.0
"""Reading a live cluster through Spark: batch and streams against our own broker."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamReader

from txrocketmq.remoting.codes import STORED
from txrocketmq.remoting.message.message import Message, MessageQueue
from txrocketmq.remoting.protocol.body.stats import ConsumeStats
from txrocketmq.remoting.protocol.operations.admin import (
    GET_CONSUME_STATS,
    GetConsumeStatsRequestHeader,
)
from txrocketmq.remoting.protocol.topic import (
    DELETE_TOPIC_IN_BROKER,
    DELETE_TOPIC_IN_NAMESRV,
    UPDATE_AND_CREATE_TOPIC,
    CreateTopicRequestHeader,
    DeleteTopicFromNamesrvRequestHeader,
    DeleteTopicRequestHeader,
)
from txrocketmq.spark.live.wire.cluster import Cluster
from txrocketmq.spark.live.wire.rpc import connection_to
from txrocketmq.spark.live.wire.send import batch_parcel, start_send
from txrocketmq.testing.server import Server

BROKER = "broker-a"
WAIT_S = 60.0


class Topic:
    """A topic of the server, to which a test sends."""

    def __init__(self, server: Server, name: str, queues: int) -> None:
        self.server = server
        self.name = name
        self.cluster = Cluster(server.namesrv_addr)
        self.sent: dict[int, int] = {}
        self.resize(queues)

    def resize(self, queues: int) -> None:
        """Makes the topic, or gives it more queues; returns when clients know."""
        header = CreateTopicRequestHeader(
            topic=self.name, default_topic="TBW102", read_queue_nums=queues,
            write_queue_nums=queues, perm=6, topic_filter_type="SINGLE_TAG",
        )  # fmt: skip
        connection_to(self.server.broker_addr).ask(UPDATE_AND_CREATE_TOPIC, header)
        wait_for(lambda: len(self.cluster.read_queues(self.name, again=True)) == queues)

    def send(self, queue_id: int, count: int, tags: str = "A") -> None:
        """Messages whose body is "queue/number"; returns when they can be read."""
        first = self.sent.get(queue_id, 0)
        messages = [
            Message(self.name, b"%d/%d" % (queue_id, at), 0, {"TAGS": tags})
            for at in range(first, first + count)
        ]
        queue = MessageQueue(self.name, BROKER, queue_id)
        parcel = batch_parcel(messages)
        start_send(self.cluster, queue, parcel, producer_group="p").wait(STORED)
        self.sent[queue_id] = first + count
        wait_for(lambda: self.cluster.max_offsets([queue])[queue] == first + count)

    def make_anew(self, queues: int) -> None:
        """Deletes the topic with all its messages, and makes it again."""
        broker = DeleteTopicRequestHeader(topic=self.name)
        connection_to(self.server.broker_addr).ask(DELETE_TOPIC_IN_BROKER, broker)
        names = DeleteTopicFromNamesrvRequestHeader(topic=self.name)
        connection_to(self.server.namesrv_addr).ask(DELETE_TOPIC_IN_NAMESRV, names)
        self.sent.clear()
        self.resize(queues)
        places = self.cluster.read_queues(self.name)
        wait_for(lambda: not any(self.cluster.max_offsets(places).values()))

    def bodies(self) -> list[str]:
        """Of all that was sent, sorted."""
        return sorted(f"{queue}/{at}" for queue, count in self.sent.items() for at in range(count))

    def lags(self, group: str) -> dict[int, int]:
        """What a group has not read yet, as mqadmin's consumerProgress sees it, by queue."""
        header = GetConsumeStatsRequestHeader(consumer_group=group, topic=self.name)
        reply = connection_to(self.server.broker_addr).ask(GET_CONSUME_STATS, header)
        table = ConsumeStats.decode(reply.body_bytes).offset_table
        return {
            queue.queue_id: offsets.broker_offset - offsets.consumer_offset
            for queue, offsets in table.items()
        }


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline, "it does not come true"
        time.sleep(0.01)


@pytest.fixture
def topic(rocketmq_server: Server, topic: str) -> Topic:
    """A topic of the test's own, with two queues."""
    return Topic(rocketmq_server, topic, 2)


def batch(spark: SparkSession, topic: Topic, **options: Any) -> DataFrame:
    reader = spark.read.format("rocketmq").option("nameServer", topic.server.namesrv_addr)
    chosen = options if "assign" in options else {"topic": topic.name, **options}
    return reader.options(**chosen).load()


def stream(spark: SparkSession, topic: Topic, **options: Any) -> DataFrame:
    reader: DataStreamReader = spark.readStream.format("rocketmq")
    reader = reader.option("nameServer", topic.server.namesrv_addr).option("topic", topic.name)
    return reader.options(**options).load()


def texts(frame: DataFrame) -> list[str]:
    return sorted(bytes(row.body).decode() for row in frame.select("body").collect())


class Table:
    """Where a query writes: a folder for each micro-batch, so that a replay writes it again."""

    def __init__(self, folder: Path, spark: SparkSession) -> None:
        self.folder = folder
        self.spark = spark
        self.fail_at: int | None = None

    def write(self, frame: DataFrame, batch_id: int) -> None:
        frame.select("body").write.mode("overwrite").parquet(str(self.folder / f"n={batch_id}"))
        if batch_id == self.fail_at:
            self.fail_at = None
            raise RuntimeError("the test ends the query here")

    def start(self, frame: DataFrame, **trigger: Any) -> StreamingQuery:
        writer = frame.writeStream.foreachBatch(self.write)
        writer = writer.option("checkpointLocation", str(self.folder.with_suffix(".checkpoint")))
        return (writer.trigger(**trigger) if trigger else writer).start()

    def run(self, frame: DataFrame) -> StreamingQuery:
        """Up to what is there now."""
        query = self.start(frame, availableNow=True)
        assert query.awaitTermination(60)
        return query

    def texts(self) -> list[str]:
        return texts(self.spark.read.parquet(str(self.folder)))

    def sizes(self) -> list[int]:
        rows = self.spark.read.parquet(str(self.folder)).groupBy("n").count().orderBy("n")
        return [row["count"] for row in rows.collect()]


@pytest.fixture
def table(tmp_path: Path, spark: SparkSession) -> Table:
    return Table(tmp_path / "table", spark)


def test_a_batch(spark: SparkSession, topic: Topic) -> None:
    topic.send(0, 300)
    topic.send(1, 40, tags="B")
    assert texts(batch(spark, topic)) == topic.bodies()
    tagged = batch(spark, topic, subExpression="B", minPartitions="4")
    assert tagged.select("tags", "brokerName").collect() == 40 * [("B", BROKER)]
    chosen = batch(spark, topic, sqlExpression="TAGS <> 'A' AND UNIQ_KEY IS NULL")
    assert chosen.select("tags").collect() == 40 * [("B",)]
    with pytest.raises(Exception, match="sqlExpression: broker .* cannot read it: Invalid Mess"):
        batch(spark, topic, sqlExpression="TAGS <> AND").collect()
    some = json.dumps({topic.name: {BROKER: {"0": 290, "1": -1}}})
    offsets = batch(spark, topic, startingOffsets=some, kafkaNames="true", columns="offset")
    assert [row.offset for row in offsets.orderBy("offset").collect()] == list(range(290, 300))


def test_errors_come_before_any_job(spark: SparkSession, topic: Topic) -> None:
    gone = batch(spark, topic).union(batch(spark, topic, assign='{"gone": [0]}'))
    with pytest.raises(PySparkException, match="topic gone is not known at 127"):
        gone.count()
    with pytest.raises(PySparkException, match="option nameServer='nowhere' is not valid"):
        batch(spark, topic, nameServer="nowhere").count()


def test_a_stream_that_is_ended_and_goes_on(
    spark: SparkSession, topic: Topic, table: Table
) -> None:
    topic.send(0, 50)
    topic.send(1, 10)
    options = {"startingOffsets": "earliest", "maxOffsetsPerTrigger": "24"}
    table.run(stream(spark, topic, **options))
    assert table.texts() == topic.bodies()
    assert table.sizes() == [24, 24, 12]
    topic.resize(3)
    topic.send(2, 7)
    topic.send(0, 30)
    table.fail_at = 4
    with pytest.raises(PySparkException, match="the test ends the query here"):
        table.run(stream(spark, topic, **options))
    topic.send(1, 3)
    table.run(stream(spark, topic, **options))
    assert table.texts() == topic.bodies(), "nothing lost, nothing twice"
    assert table.sizes() == [24, 24, 12, 24, 13, 3]


def test_a_stream_that_runs_while_messages_come(
    spark: SparkSession, topic: Topic, table: Table
) -> None:
    topic.send(0, 5)
    query = table.start(
        stream(spark, topic, group="g-running", commitGroupOffsets="true", columns="body")
    )
    try:
        wait_for(lambda: query.lastProgress is not None)
        for _ in range(2):
            topic.send(0, 20)
            topic.send(1, 1)
            query.processAllAvailable()
        wait_for(lambda: topic.lags("g-running") == {0: 0, 1: 0})
    finally:
        query.stop()
    assert len(table.texts()) == 42, "a stream begins at the end"
    topic.send(1, 4)
    assert topic.lags("g-running") == {0: 0, 1: 4}
    table.run(stream(spark, topic, group="g-running", commitGroupOffsets="true", columns="body"))
    assert topic.lags("g-running") == {0: 0, 1: 0}
    assert len(table.texts()) == 46


def test_a_topic_that_was_deleted_and_made_again(
    spark: SparkSession, topic: Topic, table: Table
) -> None:
    topic.send(0, 10)
    table.run(stream(spark, topic, startingOffsets="earliest"))
    sent = topic.bodies()
    for count in (3, 20):  # it ends before the place where the stream is, and after it
        topic.make_anew(2)
        topic.send(0, count)
        with pytest.raises(PySparkException, match="the topic was made anew"):
            table.run(stream(spark, topic))
        table.run(stream(spark, topic, failOnDataLoss="false"))
        sent += topic.bodies()
        assert table.texts() == sorted(sent), "all of the new one is read"
