# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.datasource import InputPartition

from tests.spark.live.fakes import BORN_MS, NAME_SERVER, FakeBroker, World
from txrocketmq.spark.arrow.errors import ClusterError, DataLossError, OptionError
from txrocketmq.spark.columns.output import Output
from txrocketmq.spark.live import batch as live_batch
from txrocketmq.spark.live import bounds, task
from txrocketmq.spark.live.batch import LiveReader
from txrocketmq.spark.options.option import Use
from txrocketmq.spark.options.options import SourceOptions

MakeWorld = Callable[..., World]


@pytest.fixture
def brokers() -> tuple[FakeBroker, FakeBroker]:
    a, b = FakeBroker("a"), FakeBroker("b")
    a.fill("t", [10, 0], first=3)
    b.fill("t", [5])
    return a, b


@pytest.fixture
def reader(
    world: MakeWorld, brokers: tuple[FakeBroker, FakeBroker], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., LiveReader]:
    made = world(*brokers)
    monkeypatch.setattr(bounds, "Cluster", lambda _, **more: made.cluster())
    monkeypatch.setattr(task, "_known_cluster", lambda *_: made.cluster())

    def make(**given: str) -> LiveReader:
        options = SourceOptions.of({"nameServer": NAME_SERVER, "topic": "t", **given})
        options.check(Use.LIVE_BATCH)
        return LiveReader(options, Output.of(options))

    return make


MakeReader = Callable[..., LiveReader]


def rows(
    reader: LiveReader, partitions: Sequence[InputPartition] | None = None
) -> list[tuple[str, int, int]]:
    """Broker, queue and offset of each row, read as Spark does: pickled before it reads."""
    ours = pickle.loads(pickle.dumps(reader))  # noqa: S301 - our own
    planned = reader.partitions() if partitions is None else partitions
    found: list[Any] = []
    for partition in pickle.loads(pickle.dumps(planned)):  # noqa: S301 - our own
        for batch in ours.read(partition):
            columns = ("brokerName", "queueId", "queueOffset")
            found += zip(*(batch.column(name).to_pylist() for name in columns), strict=True)
    return sorted(found)


def expected(*ranges: tuple[str, int, int, int]) -> list[tuple[str, int, int]]:
    return [(broker, queue, at) for broker, queue, low, high in ranges for at in range(low, high)]


def test_everything(reader: MakeReader) -> None:
    assert rows(reader()) == expected(("a", 0, 3, 13), ("b", 0, 0, 5))
    ((first, second),) = (task.value.ranges for task in reader().partitions())
    assert (first.queue.broker_name, second.queue.broker_name) == ("a", "b"), "no empty queue"


@pytest.mark.parametrize(
    "given", [{"minPartitions": "7"}, {"maxRecordsPerPartition": "2"}, {"pullBatchSize": "1"}]
)
def test_however_it_is_cut(reader: MakeReader, given: dict[str, str]) -> None:
    assert rows(reader(**given)) == rows(reader())


def test_between_offsets(reader: MakeReader) -> None:
    given = {
        "startingOffsets": '{"t": {"a": {"0": 5}, "b": {"0": -2}}}',
        "endingOffsets": '{"t": {"a": {"0": 7}, "b": {"0": 2}}}',
    }
    assert rows(reader(**given)) == expected(("a", 0, 5, 7), ("b", 0, 0, 2))


def test_between_times(reader: MakeReader) -> None:
    given = {"startingTimestamp": str(BORN_MS + 3500), "endingTimestamp": str(BORN_MS + 6000)}
    assert rows(reader(**given)) == expected(("a", 0, 4, 6), ("b", 0, 4, 5))


def test_assigned_queues(reader: MakeReader) -> None:
    options = SourceOptions.of({"nameServer": NAME_SERVER, "assign": '{"t": {"b": [0]}}'})
    assert rows(LiveReader(options, Output.of(options))) == expected(("b", 0, 0, 5))


def test_nothing(reader: MakeReader) -> None:
    ours = reader(startingOffsets="latest")
    (one,) = ours.partitions()
    assert list(ours.read(one)) == [], "it is for what comes later"
    assert list(ours.read(InputPartition(None))) == [], "as Spark does then"
    assert list(ours.read(None)) == [], "and PySpark 4.0"


def test_a_read_that_ends_before_it_begins(reader: MakeReader) -> None:
    given = {"startingOffsets": "latest", "endingOffsets": '{"t": {"a": {"0": 7}}}'}
    with pytest.raises(OptionError, match="queue 0 of topic t on a: the read begins at 13 and "):
        reader(**given).partitions()


def test_what_is_wrong_is_said_when_it_is_planned(reader: MakeReader) -> None:
    with pytest.raises(ClusterError, match="topic u is not known"):
        reader(topic="u").partitions()
    with pytest.raises(DataLossError, match="offset 1 of queue 0 of topic t on a is asked for"):
        reader(startingOffsets='{"t": {"a": {"0": 1}}}').partitions()


def test_batches_have_the_schema_of_the_output(reader: MakeReader) -> None:
    ours = reader(kafkaNames="true")
    (first, *_) = (batch for part in ours.partitions() for batch in ours.read(part))
    options = SourceOptions.of({"nameServer": NAME_SERVER, "topic": "t", "kafkaNames": "true"})
    assert first.schema == Output.of(options).schema
    assert isinstance(first, pa.RecordBatch)


def test_a_plan_that_is_used_again_gives_what_a_new_one_gives(
    reader: MakeReader, brokers: tuple[FakeBroker, FakeBroker], monkeypatch: pytest.MonkeyPatch
) -> None:
    plans = [
        (given, reader(**given), reader(**given).partitions())
        for given in ({}, {"startingOffsets": "latest"}, {"minPartitions": "7"})
    ]
    a, b = brokers
    a.add("t", 1, 4)
    a.add("t", 0, 2)
    b.add("t", 3, 1)  # a queue that is new
    _, ours, partitions = plans[0]
    assert rows(ours, partitions) == expected(("a", 0, 3, 13), ("b", 0, 0, 5)), "the first use"
    monkeypatch.setattr(live_batch, "is_later", lambda _: True)
    for given, ours, partitions in plans:
        assert rows(ours, partitions) == rows(reader(**given)), given
    for queue in (a.queues["t", 0], b.queues["t", 0]):  # retention has come by
        del queue.messages[:4]
        queue.first += 4
    for given, ours, partitions in plans:
        assert rows(ours, partitions) == rows(reader(**given)), given


@pytest.mark.parametrize("count", [1, 3, 8, 40])
@pytest.mark.parametrize("given", [{}, {"startingOffsets": "latest"}, {"minPartitions": "7"}])
def test_an_old_plan_of_a_topic_that_was_made_anew(
    reader: MakeReader,
    brokers: tuple[FakeBroker, FakeBroker],
    given: dict[str, str],
    count: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The queues begin at 0 again, before the plan, and may end anywhere."""
    monkeypatch.setattr(live_batch, "is_later", lambda _: True)
    ours = reader(**given)
    partitions = ours.partitions()
    brokers[0].fill("t", [count, 2], life_ms=1_000_000)
    assert rows(ours, partitions) == rows(reader(**given))


def test_an_old_plan_of_a_topic_that_was_deleted(
    world: MakeWorld,
    brokers: tuple[FakeBroker, FakeBroker],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(live_batch, "is_later", lambda _: True)
    a, _ = brokers
    a.fill("other", [4])
    made = world(*brokers)
    monkeypatch.setattr(bounds, "Cluster", lambda _, **more: made.cluster())
    known = made.cluster()
    monkeypatch.setattr(task, "_known_cluster", lambda *_: known)
    options = SourceOptions.of({"nameServer": NAME_SERVER, "topicPattern": "t|other"})
    ours = LiveReader(options, Output.of(options))
    partitions = ours.partitions()
    assert len(rows(ours, partitions)) == 19
    del a.queues["other", 0]
    assert rows(ours, partitions) == rows(LiveReader(options, Output.of(options)))
    assert "topic other has been deleted" in caplog.text


def test_offsets_that_were_asked_for_are_missed_in_an_old_plan(
    reader: MakeReader, brokers: tuple[FakeBroker, FakeBroker], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_batch, "is_later", lambda _: True)
    ours = reader(startingOffsets='{"t": {"a": {"0": 5}}}')
    partitions = ours.partitions()
    queue = brokers[0].queues["t", 0]
    del queue.messages[:4]
    queue.first += 4
    with pytest.raises(DataLossError, match="messages 5 to 6 of queue 0"):
        rows(ours, partitions)
