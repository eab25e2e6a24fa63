# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import BinaryType, StringType, StructField, StructType

from tests.spark.live.fakes import lost_connection
from tests.spark.sink.conftest import HALF_BYTES, SENDS, StoringWorld
from txrocketmq.remoting.call import Reply
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.message.message import Message
from txrocketmq.remoting.protocol.transaction import END_TRANSACTION
from txrocketmq.spark.arrow.errors import ClusterError, OptionError, SparkSourceError
from txrocketmq.spark.live.wire.transaction import Decision
from txrocketmq.spark.options.options import SourceOptions
from txrocketmq.spark.sink.sender import HALF_IN_FLIGHT
from txrocketmq.spark.sink.stream_writer import StreamWriter
from txrocketmq.spark.sink.writer import BatchWriter, Sink, Written

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


def test_writers_write(world: StoringWorld) -> None:
    given = SourceOptions.of({"nameServer": "10.0.0.1:9876", "topic": "T"})
    for writer in (BatchWriter, StreamWriter):
        made = writer(given, SCHEMA, overwrite=False)
        assert made.write(batches(*BODIES)) == Written(10, 0)
    assert sorted(world.bodies) == sorted(BODIES * 2)


def test_half_messages_are_seen_when_the_driver_commits(world: StoringWorld) -> None:
    ours = sink(world, transactional="true", group="g")
    written = [ours.write(batches(*BODIES), 0), ours.write(batches(b"x"), 1)]
    assert not world.bodies
    assert [each.sent for each in written] == [10, 1]
    assert len(world.halves) == 11, "each by itself"
    travelled = pickle.loads(pickle.dumps(written))  # noqa: S301 - as they come to the driver
    ours.end(travelled, Decision.COMMIT)
    assert sorted(world.bodies) == sorted((*BODIES, b"x"))
    assert all(message.properties["PGROUP"] == "g" for message in arrived(world))


def test_half_messages_of_an_aborted_write_are_never_seen(world: StoringWorld) -> None:
    ours = sink(world, transactional="true")
    ours.end([ours.write(batches(*BODIES), 0), None], Decision.ROLLBACK)
    assert sorted(world.ended) == [(number, 12) for number in range(10)]
    assert not world.bodies


def test_a_task_that_fails_rolls_back_what_it_has_sent(world: StoringWorld) -> None:
    ours = sink(world, transactional="true", maxMessageBytes="1k")
    bad = (*[b"x"] * 30, bytes(1025))
    with pytest.raises(SparkSourceError, match="row 30 .* more than maxMessageBytes"):
        ours.write(batches(*bad), 0)
    assert len(world.ended) >= len(world.halves) - HALF_IN_FLIGHT > 0
    assert {decision for _, decision in world.ended} == {12}


def test_a_broker_without_transactions_fails_the_first_message(world: StoringWorld) -> None:
    remark = "the broker[10.0.1.1] sending transaction message is forbidden"
    refusal = Reply[Any](code=ResponseCode.NO_PERMISSION, remark=remark)
    world.fail = lambda at, call, header: refusal if call in SENDS else None
    ours = sink(world, transactional="true", sendRetries="0")
    with pytest.raises(ClusterError, match="sending transaction message is forbidden"):
        ours.write(batches(*BODIES), 0)
    assert not world.halves


def test_a_half_message_that_is_not_safe_fails_the_task(world: StoringWorld) -> None:
    answer = world.answer

    def unsafe(address: str, call: Any, header: Any, body: bytes) -> Any:
        outcome: Any = answer(address, call, header, body)
        if call in SENDS and len(world.halves) == 3:
            return Reply(outcome.header, code=ResponseCode.FLUSH_DISK_TIMEOUT)
        return outcome

    world.answer = unsafe  # type: ignore[method-assign]  # of this one world
    with pytest.raises(ClusterError, match=r"stored by \w, but not yet .*: FLUSH_DISK_TIMEOUT"):
        sink(world, transactional="true").write(batches(*BODIES), 0)
    assert (2, 12) in world.ended


def test_a_replay_of_a_commit_in_part_sends_the_rest(world: StoringWorld) -> None:
    ours = sink(world, transactional="true", batchKey="query/7", sendRetries="0")
    world.fail = lambda at, call, header: (
        lost_connection()
        if call is END_TRANSACTION and header.commit_log_offset >= 6 * HALF_BYTES
        else None
    )
    with pytest.raises(ClusterError, match="6 of 10 messages were committed"):
        ours.end([ours.write(batches(*BODIES), 0)], Decision.COMMIT)
    world.fail = lambda *_: None
    again = ours.write(batches(*BODIES), 0)
    assert (again.sent, again.sent_before) == (4, 6)
    ours.end([again], Decision.COMMIT)
    assert sorted(world.bodies) == sorted(BODIES)


def test_a_replay_of_what_was_not_committed_sends_all(world: StoringWorld) -> None:
    ours = sink(world, transactional="true", batchKey="query/7")
    ours.write(batches(*BODIES), 0)
    again = ours.write(batches(*BODIES), 0)
    assert (again.sent, again.sent_before) == (10, 0)


def test_writers_end_what_tasks_have_sent(world: StoringWorld) -> None:
    given = SourceOptions.of({"nameServer": "10.0.0.1:9876", "topic": "T", "transactional": "true"})
    batch = BatchWriter(given, SCHEMA, overwrite=False)
    stream = StreamWriter(given, SCHEMA, overwrite=False)
    batch.abort([batch.write(batches(b"no")), None])
    stream.abort([stream.write(batches(b"no"))], 0)
    assert not world.bodies
    batch.commit([batch.write(batches(b"1"))])
    stream.commit([stream.write(batches(b"2"))], 1)
    assert world.bodies == [b"1", b"2"]


def test_a_write_without_transactions_has_nothing_to_end(world: StoringWorld) -> None:
    ours = sink(world)
    written = ours.write(batches(*BODIES), 0)
    ours.end([written, None], Decision.ROLLBACK)
    ours.end([written], Decision.COMMIT)
    assert not world.ended
    assert tuple(world.bodies) == BODIES


@pytest.mark.parametrize("column", ["delayLevel", "DELIVERTIMESTAMP", "shardingKey"])
def test_what_half_messages_cannot_have_is_an_error_before_a_job(column: str) -> None:
    given = {"nameServer": "localhost:9876", "topic": "T", "transactional": "true"}
    with pytest.raises(OptionError, match=f"column {column} cannot be written with transactional"):
        Sink.of(SourceOptions.of(given), [*FIELDS, (column, "int")])
