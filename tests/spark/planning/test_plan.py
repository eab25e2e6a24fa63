# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import logging
import pickle
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from threading import Barrier

import pytest

from tests.spark.far_files import FarFiles
from tests.spark.stores import START_MS, Draft, StoreWriter
from txrocketmq.remoting.message.flags import MessageSysFlag
from txrocketmq.spark.arrow.errors import DataLossError, OptionError, UnsupportedLayout
from txrocketmq.spark.columns.output import Output
from txrocketmq.spark.log import log_end
from txrocketmq.spark.options.options import SourceOptions
from txrocketmq.spark.planning import plan, queue_amounts, reading
from txrocketmq.spark.planning.plan import Extent, extents_of, splits
from txrocketmq.spark.planning.split import FILE_BYTES, CoveredPicks, LogRange, QueuePicks, Split
from txrocketmq.spark.store.queue_files import Queue
from txrocketmq.spark.store.store import Store

SEGMENT_BYTES = 8192


@pytest.fixture
def writer(tmp_path: Path) -> StoreWriter:
    """A log of several files; one message in eight is of the topic Few."""
    writer = StoreWriter(tmp_path / "broker-a", segment_bytes=SEGMENT_BYTES)
    for number in range(160):
        topic = "Few" if number % 8 == 0 else "Many"
        tags = {"TAGS": "Odd" if number % 16 == 8 else "Even"}
        writer.put(Draft(topic, number % 2 if topic == "Many" else 0, b"x" * 60, tags))
    writer.write_config()
    return writer


@pytest.fixture
def files_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each file of the log is read by another task, however small it is."""
    monkeypatch.setattr("txrocketmq.spark.planning.split.TOGETHER_BYTES", 0)


def _options(writer: StoreWriter, **options: str) -> SourceOptions:
    return SourceOptions.of({"storePath": str(writer.root), **options})


def _extent(writer: StoreWriter, **options: str) -> Extent:
    store = Store.open(str(writer.root), broker_name="broker-a")
    return extents_of([store], _options(writer, **options))[0]


def _splits(writer: StoreWriter, **options: str) -> list[Split]:
    found = splits(_extent(writer, **options), _options(writer, **options))
    return pickle.loads(pickle.dumps(found))  # type: ignore[no-any-return]  # noqa: S301


@pytest.mark.usefixtures("files_apart")
def test_whole_files_of_the_log(writer: StoreWriter) -> None:
    found = _splits(writer)
    assert [(split.start, split.end) for split in found] == [
        (at, min(at + SEGMENT_BYTES, writer.end)) for at in range(0, writer.end, SEGMENT_BYTES)
    ]
    assert all(isinstance(split, LogRange) and split.first_is_boundary for split in found)


@pytest.mark.parametrize("count", [1, 2, 7, 40])
@pytest.mark.usefixtures("files_apart")
def test_more_partitions_when_asked_for(writer: StoreWriter, count: int) -> None:
    found = _splits(writer, minPartitions=str(count))
    assert len(found) >= max(count, writer.end // SEGMENT_BYTES)
    assert found[0].start == 0
    assert [split.start for split in found[1:]] == [split.end for split in found[:-1]]
    assert found[-1].end == writer.end
    for split in found:
        assert isinstance(split, LogRange)
        assert split.first_is_boundary == (split.start % SEGMENT_BYTES == 0)


def test_brokers_are_looked_at_all_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ["a", "b", "c"]
    for name in names:
        StoreWriter(tmp_path / name).put(Draft())
    together = Barrier(len(names), timeout=30)
    for module, step in ((plan, "extent_of"), (reading, "splits")):
        plain = getattr(module, step)

        def waiting(*given: object, plain: Callable[..., object] = plain) -> object:
            together.wait()  # nobody goes on alone
            return plain(*given)

        monkeypatch.setattr(module, step, waiting)
    options = SourceOptions.of({"storePath": f"{tmp_path}/*"})
    parts = reading.Reading(options, Output.of(options)).parts()
    found = [part.split.store.uri for part in parts if part.split is not None]
    assert found == [str(tmp_path / name) for name in names]


def test_small_files_are_read_together(
    writer: StoreWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = _splits(writer)
    assert [(split.start, split.end) for split in whole] == [(0, writer.end)]
    monkeypatch.setattr("txrocketmq.spark.planning.split.TOGETHER_BYTES", 2 * FILE_BYTES)
    by_price = [split.start for split in _splits(writer)]
    assert by_price == list(range(0, writer.end, 2 * SEGMENT_BYTES)), "each file has its price"
    monkeypatch.setattr("txrocketmq.spark.planning.split.FILE_BYTES", 0)
    assert len(_splits(writer)) == 1
    monkeypatch.setattr("txrocketmq.spark.planning.split.TOGETHER_BYTES", 2 * SEGMENT_BYTES)
    found = _splits(writer)
    assert [split.start for split in found] == list(range(0, writer.end, 2 * SEGMENT_BYTES))
    assert [split.start for split in found[1:]] == [split.end for split in found[:-1]]
    assert all(isinstance(split, LogRange) and split.first_is_boundary for split in found)
    assert len(_splits(writer, minPartitions="3")) >= 3
    (writer.root / "commitlog" / f"{SEGMENT_BYTES:020d}").unlink()
    assert [(split.start, split.end) for split in _splits(writer, failOnDataLoss="false")] == [
        (0, SEGMENT_BYTES), (2 * SEGMENT_BYTES, writer.end),
    ], "what is gone is in none of them"  # fmt: skip


def test_a_topic_with_much_data_in_one_file_is_read_by_several_tasks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = StoreWriter(tmp_path / "broker-a", segment_bytes=1 << 20)
    writer.put_all(Draft("Few" if n % 4 == 0 else "Many", body=bytes(400)) for n in range(400))
    (split,) = _splits(writer, topic="Few")
    monkeypatch.setattr(plan, "_PICKS_BYTES", 10_000)
    found = _splits(writer, topic="Few")
    assert len(found) == 5
    assert {type(each) for each in found} == {QueuePicks}
    assert (found[0].start, found[-1].end) == (split.start, split.end)


def test_fewer_records_in_a_partition(writer: StoreWriter) -> None:
    found = _splits(writer, maxRecordsPerPartition="10")
    for split in found:
        starts = [s for s in writer.stored if split.start <= s.physical_offset < split.end]
        assert len(starts) <= 12, "about ten"
    assert 16 <= len(found) <= 32


def test_partitions_are_not_without_number(
    writer: StoreWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan, "MOST_PARTITIONS", 30)
    for topic in ("Few", "Many"):
        options = {"topic": topic, "maxRecordsPerPartition": "1"}
        count = len(_splits(writer, **options))
        assert 15 < count <= 30 + writer.end // SEGMENT_BYTES


def test_a_small_topic_by_its_queue(writer: StoreWriter) -> None:
    (split,) = _splits(writer, topic="Few")
    assert isinstance(split, QueuePicks)
    assert split.queues == (("Few", 0),)
    assert (split.start, split.end) == (0, writer.end)


def test_a_small_topic_of_large_batches_by_its_queue(writer: StoreWriter) -> None:
    """A tenth of the log, in batches of fifty messages."""
    for _ in range(10):
        writer.put(Draft("Batches", inner=((b"x", {}),) * 50))
        writer.put_all(Draft("Many", body=bytes(900)) for _ in range(15))
    *before, split = _splits(writer, topic="Batches")
    assert isinstance(split, QueuePicks)
    assert {type(each) for each in before} == {LogRange}, "there may have been an earlier topic"
    assert before[-1].end == split.start == writer.stored[160].physical_offset


def test_a_large_topic_by_the_log(writer: StoreWriter) -> None:
    assert all(isinstance(split, LogRange) for split in _splits(writer, topic="Many"))


def test_a_rare_tag_by_queues_that_prove_it(
    writer: StoreWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan, "_ASKING_LOCALLY_BYTES", 0)
    assert {type(split) for split in _splits(writer, subExpression="Odd")} == {CoveredPicks}
    assert {type(split) for split in _splits(writer, topicPattern="F.*")} == {CoveredPicks}
    assert {type(split) for split in _splits(writer, subExpression="Even")} == {LogRange}


def test_what_queues_do_not_show_needs_the_log(writer: StoreWriter) -> None:
    assert {type(s) for s in _splits(writer, topic="Few", view="physical")} == {LogRange}


def test_what_is_not_dispatched_yet_is_read_from_the_log(writer: StoreWriter) -> None:
    dispatched = writer.end
    for _ in range(3):
        writer.put(Draft("Few", 0), dispatch=False)
    picks, *rest = _splits(writer, topic="Few")
    assert isinstance(picks, QueuePicks)
    assert picks.end == dispatched
    assert rest
    assert rest[0].start == dispatched
    assert rest[-1].end == writer.end
    assert all(isinstance(split, LogRange) for split in rest)


def test_a_queue_that_comes_while_the_read_is_planned(
    writer: StoreWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    late = [writer.put(Draft(topic), dispatch=False) for topic in ("New", "Many")]
    extent = _extent(writer, topic="New")

    def queues_of(_: Store, topic: str) -> list[Queue]:
        assert topic == "New"
        for each in late:
            writer.dispatch(each)
        return []

    monkeypatch.setattr(Store, "queues_of", queues_of)  # listed just before it was there
    found = splits(extent, _options(writer, topic="New"))
    assert {type(split) for split in found} == {LogRange}
    assert any(split.start <= late[0].physical_offset < split.end for split in found)


def test_a_topic_that_is_not_there_may_have_been_deleted(
    writer: StoreWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = _splits(writer, topic="Nothing", allowUnknownTopics="true")
    assert {type(split) for split in found} == {LogRange}
    assert (found[0].start, found[-1].end) == (0, writer.end)
    monkeypatch.setattr(plan, "_ASKING_LOCALLY_BYTES", 0)
    (split,) = _splits(writer, topic="Few,Nothing", allowUnknownTopics="true")
    assert isinstance(split, CoveredPicks)
    assert (split.start, split.end) == (0, writer.end)


def test_an_empty_store_reads_nothing(tmp_path: Path) -> None:
    writer = StoreWriter(tmp_path / "empty")
    assert _splits(writer) == []
    assert _splits(writer, topic="Few") == []


@pytest.mark.usefixtures("files_apart")
def test_times_choose_files(tmp_path: Path) -> None:
    writer = StoreWriter(tmp_path / "s", segment_bytes=SEGMENT_BYTES)
    for _ in range(300):
        writer.put(Draft(body=b"x" * 100, after_ms=10_000))
    first = START_MS + 10_000 * 150
    for options in (
        {"startingTimestamp": str(first), "endingTimestamp": str(first + 50_000)},
        {"startingTimestamp": str(first)},
        {"endingTimestamp": str(first)},
    ):
        found = _splits(writer, **options)
        wanted = [
            stored
            for stored in writer.stored
            if int(options.get("startingTimestamp", 0)) <= stored.store_timestamp
            and stored.store_timestamp < int(options.get("endingTimestamp", 1 << 60))
        ]
        for stored in wanted:
            assert any(s.start <= stored.physical_offset < s.end for s in found)
        assert wanted
        assert len(found) <= len(_splits(writer)) - 2


def test_conditions_choose_files(writer: StoreWriter) -> None:
    low = SEGMENT_BYTES * 2 + 5
    assert _splits(writer, where=f"physicalOffset >= {low}")[0].start == low
    assert _splits(writer, where="brokerName = 'broker-b'") == []


@pytest.mark.usefixtures("files_apart")
def test_bytes_of_the_log_from_and_to(writer: StoreWriter) -> None:
    found = _splits(
        writer,
        startingOffsets='{"log": {"broker-a": 100}}',
        endingOffsets='{"log": {"broker-a": 9000}}',
    )
    assert [(s.start, s.end) for s in found] == [(100, SEGMENT_BYTES), (SEGMENT_BYTES, 9000)]
    assert _splits(writer, startingOffsets="latest") == []
    assert _splits(writer, startingOffsets='{"log": {"broker-a": -1}}') == []


def test_offsets_of_queues_become_bounds(writer: StoreWriter) -> None:
    extent = _extent(
        writer,
        topic="Few,Many",
        startingOffsets='{"Few": {"broker-a": {"0": 3}}, "Many": {"broker-a": {"1": -1}}}',
        endingOffsets='{"Few": {"broker-a": {"0": 5}}}',
    )
    few = extent.wanted.offsets("Few", 0)
    assert (few.low, few.high) == (3, 5)
    assert extent.wanted.offsets("Many", 1).low == 80, "the next message to come"
    assert extent.wanted.offsets("Many", 0).low < 0


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"startingOffsets": '{"log": {"broker-b": 1}}'}, "names the broker broker-b; .*broker-a"),
        ({"assign": '{"Few": {"broker-b": [0]}}'}, "option assign names the broker broker-b"),
        ({"startingOffsets": '{"log": {"broker-a": 99999999}}'}, "before 99999999"),
        ({"startingOffsets": '{"Few": {"broker-a": {"7": 1}}}'}, "queue 7 of Few on broker-a"),
        ({"startingOffsets": '{"Few": {"broker-a": {"0": 99}}}'}, "ends at 20, before 99"),
    ],
)
def test_offsets_that_make_no_sense(writer: StoreWriter, options: dict[str, str], why: str) -> None:
    with pytest.raises(OptionError, match=why):
        _extent(writer, **options)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"startingOffsets": '{"log": {"broker-a": 0}}'}, "no bytes from 0 to 8192"),
        ({"startingOffsets": '{"Few": {"broker-a": {"0": 0}}}'}, "the messages from 0 on are gone"),
        ({"endingOffsets": '{"log": {"broker-a": 99999999}}'}, "before 99999999"),
        ({"endingOffsets": '{"Few": {"broker-a": {"0": 99}}}'}, "ends at 20, before 99"),
    ],
)
def test_what_was_asked_for_and_is_gone(
    writer: StoreWriter, options: dict[str, str], why: str, caplog: pytest.LogCaptureFixture
) -> None:
    writer.delete_segment()
    with pytest.raises(DataLossError, match=f"{why}.*failOnDataLoss=false"):
        _extent(writer, **options)
    with caplog.at_level(logging.WARNING, "txrocketmq.spark"):
        extent = _extent(writer, failOnDataLoss="false", **options)
    assert len(caplog.records) == 1
    assert extent.start == SEGMENT_BYTES
    assert extent.end == writer.end


def test_the_first_that_is_still_there_is_not_gone(writer: StoreWriter) -> None:
    writer.delete_segment()
    left = [each for each in writer.stored if each.physical_offset >= SEGMENT_BYTES]
    first = next(each.queue_offset for each in left if each.draft.topic == "Few")
    assert first
    extent = _extent(writer, startingOffsets=f'{{"Few": {{"broker-a": {{"0": {first}}}}}}}')
    assert extent.wanted.offsets("Few", 0).low == first
    assert _extent(writer, startingOffsets=f'{{"log": {{"broker-a": {SEGMENT_BYTES}}}}}').start
    end = _extent(writer, endingOffsets='{"Few": {"broker-a": {"0": 20}}}')
    assert end.wanted.offsets("Few", 0).high == 20, "the next message to come"


def test_queues_that_are_not_there_are_compared_with_nothing(
    writer: StoreWriter, tmp_path: Path
) -> None:
    shutil.rmtree(writer.root / "consumequeue")
    with pytest.raises(UnsupportedLayout, match="verify=store needs consume queue files.*verify="):
        _extent(writer, verify="store")
    empty = StoreWriter(tmp_path / "empty")
    assert _splits(empty, verify="store") == []


def test_a_file_that_is_missing_in_between(writer: StoreWriter) -> None:
    writer.segment(SEGMENT_BYTES).unlink()
    with pytest.raises(DataLossError, match="no bytes from 8192 to 16384"):
        _splits(writer)
    found = _splits(writer, failOnDataLoss="false")
    assert [split.start for split in found][:2] == [0, 2 * SEGMENT_BYTES]


def test_prepared_records_are_in_no_queue(tmp_path: Path) -> None:
    writer = StoreWriter(tmp_path / "s")
    writer.put(Draft("Half", sys_flag=MessageSysFlag.TRANSACTION_PREPARED_TYPE))
    writer.put(Draft("Other"))
    assert len(_splits(writer, topic="Half")) == 1, "they look like those of a deleted topic"
    assert len(_splits(writer, topic="Half", view="physical")) == 1


@pytest.mark.parametrize("queues", [40, 400])
def test_a_plan_asks_a_remote_store_no_more_than_so_often(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, queues: int
) -> None:
    """However many queues it has; folders are listed all at once."""
    writer = StoreWriter(tmp_path / "broker-a", queue_units=500)
    writer.put_all(Draft(f"T{number % 4}", number // 4 % (queues // 4)) for number in range(1200))
    writer.write_config()
    monkeypatch.setattr(queue_amounts, "_MOST_REMOTE", 20)
    for options in ({}, {"topic": "T0"}, {"topic": "T0,T1,T2"}, {"topicPattern": "T[0-2]"}):
        monkeypatch.setattr(log_end, "_known", {})
        far = FarFiles()
        chosen = _options(writer, **options)
        store = replace(Store.open(str(writer.root)), files=far)
        (extent,) = extents_of([store], chosen)
        assert splits(extent, chosen)
        assert far.counts["list"] + far.counts["tree"] <= 6
        assert far.counts["read"] <= 160
