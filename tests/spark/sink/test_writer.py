# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import BinaryType, StringType, StructField, StructType

from tests.spark.sink.conftest import StoringWorld
from txrocketmq.remoting.message.message import Message
from txrocketmq.spark.errors import ClusterError, OptionError, SparkSourceError
from txrocketmq.spark.options import SourceOptions
from txrocketmq.spark.sink.writer import BatchWriter, Sink, StreamWriter, Written

FIELDS = [("body", "binary"), ("tags", "string")]
SCHEMA = StructType([StructField("body", BinaryType()), StructField("tags", StringType())])


def sink(world: StoringWorld, **options: str) -> Sink:
    given = {"nameServer": "10.0.0.1:9876", "topic": "T", **options}
    return replace(Sink.of(SourceOptions.of(given), FIELDS), cluster=world.cluster(attempts=1))


def batches(*bodies: bytes, rows: int = 4) -> Iterator[pa.RecordBatch]:
    for start in range(0, len(bodies), rows):
        some = bodies[start : start + rows]
        yield pa.RecordBatch.from_arrays(
            [pa.array(some, pa.binary()), pa.array(["A"] * len(some))], names=["body", "tags"]
        )


def arrived(world: StoringWorld) -> list[Message]:
    return [message for request in world.requests for message in request[-1]]


BODIES = tuple(b"body %d" % number for number in range(10))


def test_all_rows_are_sent_in_order_each_with_a_key_of_its_own(world: StoringWorld) -> None:
    assert sink(world).write(batches(*BODIES), 0) == Written(sent=10, sent_before=0)
    assert tuple(world.bodies) == BODIES
    assert len(world.requests) == 1, "they fit in a batch"
    assert len({message.unique_key for message in arrived(world)}) == 10
    assert all(message.tags == "A" for message in arrived(world))


def test_a_task_without_rows_asks_nobody(world: StoringWorld) -> None:
    assert sink(world).write(batches(), 0) == Written(0, 0)
    assert not world.asked


def test_a_replay_sends_only_what_is_missing(world: StoringWorld) -> None:
    ours = sink(world, batchKey="query/7", maxMessageBytes="1k", sendRetries="0")
    bodies = tuple(body * 50 for body in BODIES)

    def fail_later(at: str, call: Any, header: Any) -> Any:
        return ConnectionError("gone") if len(world.requests) >= 4 and header else None

    world.fail = fail_later
    with pytest.raises(ClusterError, match="gone"):
        ours.write(batches(*bodies), 3)
    assert 0 < len(world.bodies) < 10
    sent_before = len(world.bodies)
    world.fail = lambda *_: None
    assert ours.write(batches(*bodies), 3) == Written(10 - sent_before, sent_before)
    assert sorted(world.bodies) == sorted(bodies)
    assert ours.write(batches(*bodies), 3) == Written(0, 10)
    assert ours.write(batches(*bodies), 4) == Written(10, 0), "another partition has other keys"


def test_rows_that_cannot_be_written_are_named(world: StoringWorld) -> None:
    with pytest.raises(SparkSourceError, match="row 5 .* more than maxMessageBytes"):
        sink(world, maxMessageBytes="1k").write(batches(*[b"x"] * 5, bytes(1025)), 0)


def test_a_sink_travels_to_the_tasks(world: StoringWorld) -> None:
    travelled = pickle.loads(pickle.dumps(Sink.of(sink(world).options, FIELDS)))  # noqa: S301
    assert travelled.rows.messages(next(batches(b"x")))


@pytest.mark.parametrize("writer", [BatchWriter, StreamWriter])
@pytest.mark.parametrize(
    ("options", "overwrite", "reason"),
    [
        ({}, True, "messages are appended"),
        ({"topic": "A,B"}, False, "option topic names several topics"),
        ({"nameServer": "nowhere"}, False, "nameServer"),
        ({"startingOffsets": "latest"}, False, "startingOffsets has no meaning here"),
    ],
)
def test_what_makes_no_sense_is_an_error_before_a_job(
    writer: Any, options: dict[str, str], overwrite: bool, reason: str
) -> None:
    given = SourceOptions.of({"nameServer": "localhost:9876", "topic": "T", **options})
    with pytest.raises(OptionError, match=reason):
        writer(given, SCHEMA, overwrite=overwrite)


def test_a_stream_has_no_batch_key() -> None:
    given = {"nameServer": "localhost:9876", "topic": "T", "batchKey": "q"}
    with pytest.raises(OptionError, match="foreachBatch"):
        StreamWriter(SourceOptions.of(given), SCHEMA, overwrite=False)


def test_writers_write(world: StoringWorld) -> None:
    given = SourceOptions.of({"nameServer": "10.0.0.1:9876", "topic": "T"})
    for writer in (BatchWriter, StreamWriter):
        made = writer(given, SCHEMA, overwrite=False)
        assert made.write(batches(*BODIES)) == Written(10, 0)
    assert sorted(world.bodies) == sorted(BODIES * 2)
