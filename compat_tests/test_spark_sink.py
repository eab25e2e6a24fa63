# SPDX-License-Identifier: Apache-2.0
"""Transactional writes of the Spark sink to our broker, and to official ones of both releases.

The writer is called as Spark calls it, without a session: `write` as tasks do, `commit` and `abort`
as the driver does. What is in the topics is read by the official Java client.
"""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql.types import BinaryType, StringType, StructField, StructType

from compat_tests.engine import Engine
from compat_tests.jars import RELEASES
from compat_tests.java_client import ClientJvm, body
from compat_tests.peers import Broker, NameServer, Original, Ours, running
from compat_tests.scene import Scene, poll
from txrocketmq.remoting.message.message import MessageQueue
from txrocketmq.spark.arrow.errors import ClusterError
from txrocketmq.spark.live.wire.cluster import Cluster
from txrocketmq.spark.options.options import SourceOptions
from txrocketmq.spark.sink.stream_writer import StreamWriter
from txrocketmq.spark.sink.writer import BatchWriter, Written

HALF_TOPIC = "RMQ_SYS_TRANS_HALF_TOPIC"
ROWS = 200
SCHEMA = StructType([StructField("body", BinaryType()), StructField("tags", StringType())])


@pytest.fixture(scope="module", params=["ours", *RELEASES])
def asked_broker(
    request: pytest.FixtureRequest, engine: Engine, work_folder: Path
) -> Iterator[Broker]:
    """A broker that does not ask producers back while a test runs."""
    name: str = request.param
    origin = Ours() if name == "ours" else Original(name, engine)
    names = NameServer(origin, work_folder / f"sink-namesrv-{name}")
    settings = {"transactionCheckInterval": "600000"}
    broker = Broker(origin, work_folder / f"sink-broker-{name}", names, "broker-a", settings)
    with running(names, broker):
        yield broker


@pytest.fixture
def scene(first_jvm: ClientJvm, asked_broker: Broker) -> Iterator[Scene]:
    """A Java client that looks at the broker."""
    made = Scene(first_jvm, asked_broker)
    yield made
    made.close()


def options(scene: Scene, topic: str, **more: str) -> SourceOptions:
    """Of a transactional write to a topic."""
    own = {"nameServer": scene.namesrv, "topic": topic, "transactional": "true"}
    return SourceOptions.of(own | more)


def batches(word: str) -> Iterator[pa.RecordBatch]:
    """Rows of a task."""
    bodies = [f"{word} {number}".encode() for number in range(ROWS)]
    columns = [pa.array(bodies, pa.binary()), pa.array(["A"] * ROWS)]
    yield pa.RecordBatch.from_arrays(columns, names=SCHEMA.names)


def travelled(written: Written) -> Written:
    """As it comes to the driver."""
    came = pickle.loads(pickle.dumps(written))  # noqa: S301 - our own
    assert isinstance(came, Written)
    return came


def count(scene: Scene, topic: str) -> int:
    """Messages of all queues of a topic."""
    cluster = Cluster(scene.namesrv)
    return sum(cluster.max_offsets(cluster.read_queues(topic)).values())


def half_count(scene: Scene, topic: str) -> int:
    """Half messages of the broker that has the topic; 4.9 registers their topic only at a check."""
    cluster = Cluster(scene.namesrv)
    cluster.route(topic)
    return sum(cluster.max_offsets([MessageQueue(HALF_TOPIC, scene.broker.name, 0)]).values())


def test_rows_are_visible_after_the_commit_and_not_before(scene: Scene) -> None:
    topic = scene.topic("committed")
    halves = half_count(scene, topic)
    writer = BatchWriter(options(scene, topic), SCHEMA, overwrite=False)
    written = [travelled(writer.write(batches(word))) for word in ("first", "second")]
    assert [task.sent for task in written] == [ROWS, ROWS]
    poll(lambda: half_count(scene, topic) >= halves + 2 * ROWS, "the half messages are there")
    assert count(scene, topic) == 0
    writer.commit([*written])
    found = scene.read(topic, 2 * ROWS)
    assert Counter(body(item) for item in found) == Counter(
        f"{word} {number}".encode() for word in ("first", "second") for number in range(ROWS)
    )
    assert {item["tags"] for item in found} == {"A"}
    assert len({item["properties"]["UNIQ_KEY"] for item in found}) == 2 * ROWS
    assert len({item["queue_id"] for item in found}) == 4
    writer.abort([*written])  # as Spark does when another commit fails: it takes nothing back
    assert count(scene, topic) == 2 * ROWS


def test_rows_of_an_aborted_write_are_never_visible(scene: Scene) -> None:
    topic = scene.topic("aborted")
    halves = half_count(scene, topic)
    stream = StreamWriter(options(scene, topic), SCHEMA, overwrite=False)
    stream.abort([travelled(stream.write(batches("no"))), None], 0)
    poll(lambda: half_count(scene, topic) >= halves + ROWS, "the half messages are there")
    stream.commit([travelled(stream.write(batches("yes")))], 1)
    bodies = {body(item) for item in scene.read(topic, ROWS)}
    assert bodies == {f"yes {number}".encode() for number in range(ROWS)}
    assert count(scene, topic) == ROWS


def test_a_broker_that_does_not_know_the_transaction_says_so(scene: Scene) -> None:
    topic = scene.topic("foreign")
    ours = BatchWriter(options(scene, topic), SCHEMA, overwrite=False)
    foreign = BatchWriter(
        options(scene, topic, group="other", sendRetries="0"), SCHEMA, overwrite=False
    )
    written = ours.write(batches("x"))
    with pytest.raises(ClusterError, match=f"0 of {ROWS} messages were committed.*group wrong"):
        foreign.commit([written])
    assert count(scene, topic) == 0


def test_a_replay_sends_what_was_not_committed(scene: Scene) -> None:
    topic = scene.topic("replayed")
    key = {"batchKey": f"{topic}/7"}
    writer = BatchWriter(options(scene, topic, **key), SCHEMA, overwrite=False)
    killed = writer.write(batches("x"))
    assert (killed.sent, killed.sent_before) == (ROWS, 0)
    again = writer.write(batches("x"))
    assert (again.sent, again.sent_before) == (ROWS, 0)
    writer.commit([again])

    def is_all_found() -> bool:
        replay = writer.write(batches("x"))
        writer.abort([replay])
        return (replay.sent, replay.sent_before) == (0, ROWS)

    poll(is_all_found, "the index has all")
    assert count(scene, topic) == ROWS


def test_a_broker_that_rejects_half_messages_gets_nothing(
    first_jvm: ClientJvm, test_folder: Path
) -> None:
    names = NameServer(Ours(), test_folder / "sink-namesrv-rejecting")
    settings = {"rejectTransactionMessage": "true"}
    broker = Broker(Ours(), test_folder / "sink-broker-rejecting", names, "broker-a", settings)
    with running(names, broker):
        scene = Scene(first_jvm, broker)
        topic = scene.topic("refused")
        writer = BatchWriter(options(scene, topic, sendRetries="0"), SCHEMA, overwrite=False)
        with pytest.raises(ClusterError, match="sending transaction message is forbidden"):
            writer.write(batches("x"))
        assert count(scene, topic) == 0
