# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxBytes, ReadMaxRows

from tests.examples import examples
from tests.spark.stores import START_MS, Draft, StoreWriter, drafts
from tests.spark.streaming import Query, read, reader, through_json
from txrocketmq.spark.arrow.errors import DataLossError, OptionError, SparkSourceError
from txrocketmq.spark.log import log_reader
from txrocketmq.spark.log.log_position import of_offset
from txrocketmq.spark.planning import plan
from txrocketmq.spark.planning import queue_coverage as covered
from txrocketmq.spark.planning.split import CoveredPicks, LogRange
from txrocketmq.spark.store.files import LocalFiles, Piece


@pytest.fixture
def store(tmp_path: Path) -> StoreWriter:
    """Twenty messages in segments of 4 KiB, of a broker that runs."""
    writer = StoreWriter(tmp_path / "broker-a", segment_bytes=4096)
    fill(writer, 20)
    return writer


def fill(writer: StoreWriter, count: int, topic: str = "Topic") -> None:
    begin = len(writer.stored)
    writer.put_all(
        Draft(topic=topic, queue_id=number % 3, body=b"%d " % number * 100)
        for number in range(begin, begin + count)
    )
    writer.write_config()


def places(writer: StoreWriter, first: int = 0) -> list[int]:
    return [stored.physical_offset for stored in writer.stored[first:]]


def log_of(offset: dict[str, Any], broker: str = "broker-a") -> int:
    return of_offset(offset)[f"DefaultCluster/{broker}"].log


def test_a_new_stream_begins_at_the_end_of_the_log(store: StoreWriter) -> None:
    query = Query().run(reader(store.root))
    assert query.places == []
    assert log_of(query.offsets[0]) == store.end
    fill(store, 3)
    assert query.run(reader(store.root)).places == places(store, 20)
    assert len(query.batches) == 1


def test_what_grows_is_read_once_by_one_reader(store: StoreWriter) -> None:
    stream = reader(store.root, startingOffsets="earliest")
    query = Query()
    for count in (0, 1, 7, 0, 30):
        fill(store, count)
        query.run(stream)
        assert query.places == places(store)
    assert query.rows[25]["body"] == store.stored[25].plain_body
    latest = stream.reportLatestOffset()
    assert latest is not None
    assert log_of(latest) == store.end


def test_nothing_new_is_no_batch(store: StoreWriter) -> None:
    stream = reader(store.root)
    start = stream.initialOffset()
    assert stream.latestOffset(start, ReadAllAvailable()) is start
    assert list(stream.partitions(start, start)) == []


@settings(max_examples=examples(20))
@given(
    puts=st.lists(st.lists(drafts(), max_size=12), min_size=1, max_size=5),
    most_bytes=st.sampled_from((1, 300, 2000, 10_000)),
    kill=st.lists(st.booleans(), min_size=5, max_size=5),
    parts=st.sampled_from((1, 5)),
    topic=st.sampled_from((None, None, "Orders", "Batches")),
    option=st.sampled_from(("topic", "where")),
)
def test_killed_anywhere_nothing_is_lost_and_nothing_comes_twice(
    tmp_path_factory: pytest.TempPathFactory,
    puts: list[list[Draft]],
    most_bytes: int,
    kill: list[bool],
    parts: int,
    topic: str | None,
    option: str,
) -> None:
    root = tmp_path_factory.mktemp("stores") / "broker-a"
    writer = StoreWriter(root, segment_bytes=8192)
    options = {
        "startingOffsets": "earliest", "view": "physical", "columns": "physicalOffset",
        "maxBytesPerTrigger": str(most_bytes), "minPartitions": str(parts),
    }  # fmt: skip
    if topic:
        options[option] = topic if option == "topic" else f"topic = '{topic}'"
    query = Query()
    stream = reader(root, **options)
    for some, killed in zip(puts, kill, strict=False):
        writer.put_all(some)
        query.run(stream, most_batches=2)
        if killed:
            query.plan(stream)
            stream = reader(root, **options)
    # A last record that ends with zeros could be half written: it counts when another follows.
    writer.put(Draft())
    query.run(reader(root, **options))
    expected = [
        stored.physical_offset
        for stored in writer.stored
        for _ in stored.draft.inner or (0,)
        if topic in (None, stored.draft.topic)
    ]
    assert query.places == expected


@pytest.fixture(autouse=True, scope="module")
def _queues_are_asked_for_little() -> Iterator[None]:
    """However small the logs of these tests are."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plan, "_ASKING_LOCALLY_BYTES", 0)
        yield


@pytest.mark.parametrize("chosen", [{"topic": "Few"}, {"where": "topic = 'Few'"}])
def test_a_small_topic_is_read_by_its_queues_and_by_the_log_alike(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chosen: dict[str, str]
) -> None:
    writer = StoreWriter(tmp_path / "broker-a", segment_bytes=8192)
    rare = [
        writer.put(Draft("Gone" if number % 20 == 10 else "Many", body=bytes(90)))
        if number % 10
        else writer.put(Draft("Few", queue_id=number // 10 % 2, body=b"x" * 60))
        for number in range(300)
    ]
    expected = [each.physical_offset for each in rare if each.draft.topic == "Few"]
    shutil.rmtree(writer.root / "consumequeue/Few/1")  # what it knew stands in the log only
    read_bytes = 0
    read_into, read_pieces = LocalFiles.read_into, LocalFiles.read_pieces

    def into(self: LocalFiles, path: str, offset: int, view: memoryview) -> int:
        nonlocal read_bytes
        read_bytes += len(view) if "commitlog" in path and len(view) > 100 else 0
        return read_into(self, path, offset, view)

    def pieces(self: LocalFiles, path: str, pieces: Sequence[Piece], view: memoryview) -> int:
        nonlocal read_bytes
        read_bytes += len(view)
        return read_pieces(self, path, pieces, view)

    monkeypatch.setattr(LocalFiles, "read_into", into)
    monkeypatch.setattr(LocalFiles, "read_pieces", pieces)
    monkeypatch.setattr(log_reader, "_GAP_BYTES", 0)
    monkeypatch.setattr(log_reader, "_SLACK_BYTES", 0)
    monkeypatch.setattr(covered, "_NEAR_BYTES", 0)
    stream = reader(writer.root, startingOffsets="earliest", **chosen)
    start = stream.initialOffset()
    end = stream.latestOffset(start, ReadAllAvailable())
    kinds = []
    for bytes_a_queue in (0, 1 << 30):
        monkeypatch.setattr(plan, "_ASKING_LOCALLY_BYTES", bytes_a_queue)
        parts = stream.partitions(start, end)
        read_bytes = 0
        rows = [row for part in parts for batch in stream.read(part) for row in batch.to_pylist()]
        assert [row["physicalOffset"] for row in rows] == expected
        kinds.append({type(part.value.split) for part in parts})
        kinds.append({part.value.split[1:4] for part in parts})
        if not bytes_a_queue:
            assert 0 < read_bytes < writer.end // 3
    assert kinds[0] == {CoveredPicks}
    assert kinds[2] == {LogRange}
    assert kinds[1] == kinds[3], "a batch that is planned again has the same partitions"


def test_a_batch_that_is_planned_again_has_the_same_partitions(store: StoreWriter) -> None:
    options = {"startingOffsets": "earliest", "minPartitions": "4", "topic": "Topic"}
    query = Query()
    stream = reader(store.root, **options)
    query.offsets.append(stream.initialOffset())
    assert query.plan(stream)
    before = [part.value.split for part in stream.partitions(*query.offsets)]
    fill(store, 40, "Other")
    again = [part.value.split for part in reader(store.root, **options).partitions(*query.offsets)]
    assert [split[1:] for split in before] == [split[1:] for split in again]
    assert len(before) >= 4


def test_max_bytes_per_trigger_is_kept_to_the_record(store: StoreWriter) -> None:
    stream = reader(store.root, startingOffsets="earliest", maxBytesPerTrigger="1000")
    assert stream.getDefaultReadLimit() == ReadMaxBytes(1000)
    query = Query().run(stream)
    assert query.places == places(store)
    sizes = {stored.physical_offset: stored.size for stored in store.stored}
    for number, following in enumerate(query.batches[1:], 1):
        start, end = (log_of(offset) for offset in query.offsets[number - 1 : number + 1])
        next_place = following[0]["physicalOffset"]
        assert end - start <= 1000 < next_place + sizes[next_place] - start
    assert max(len(batch) for batch in query.batches) > 1


def test_a_record_larger_than_the_limit_is_a_batch(store: StoreWriter) -> None:
    query = Query().run(reader(store.root, startingOffsets="earliest", maxBytesPerTrigger="1"))
    assert [len(batch) for batch in query.batches] == [1] * 20


def test_the_limit_is_for_all_brokers_and_none_starves(tmp_path: Path) -> None:
    writers = [StoreWriter(tmp_path / name, segment_bytes=1 << 16) for name in ("a", "b")]
    fill(writers[0], 90)
    fill(writers[1], 10)
    stream = reader(f"{tmp_path}/*", startingOffsets="earliest", maxBytesPerTrigger="4000")
    query = Query().run(stream)
    assert sorted(query.places) == sorted(places(writers[0]) + places(writers[1]))
    for start, end in zip(query.offsets, query.offsets[1:], strict=False):
        moved = {name: log_of(end, name) - log_of(start, name) for name in ("a", "b")}
        assert sum(moved.values()) <= 4000
    assert log_of(query.offsets[1], "b") > log_of(query.offsets[0], "b")


def test_a_limit_of_another_kind_is_refused(store: StoreWriter) -> None:
    stream = reader(store.root, startingOffsets="earliest")
    with pytest.raises(SparkSourceError, match="does not support the limit ReadMaxRows"):
        stream.latestOffset(stream.initialOffset(), ReadMaxRows(5))


def test_read_all_available_goes_before_the_option(store: StoreWriter) -> None:
    stream = reader(store.root, startingOffsets="earliest", maxBytesPerTrigger="1")
    assert log_of(stream.latestOffset(stream.initialOffset(), ReadAllAvailable())) == store.end


def test_available_now_ends_where_the_log_ended_then(store: StoreWriter) -> None:
    options = {"startingOffsets": "earliest", "maxBytesPerTrigger": "3000"}
    stream = reader(store.root, **options)
    query = Query()
    query.run(stream, all_now=True, most_batches=1)
    fill(store, 10)
    query.run(stream)
    assert query.places == places(store)[:20]
    query.run(reader(store.root, **options), all_now=True)
    assert query.places == places(store)


def test_a_resumed_stream_does_not_ask_the_options_where_to_start(store: StoreWriter) -> None:
    query = Query().run(reader(store.root, startingOffsets="earliest"))
    fill(store, 5)
    later = str(START_MS + 10_000_000)
    query.run(reader(store.root, startingTimestamp=later), most_batches=1)
    fill(store, 5)
    query.run(reader(store.root, startingOffsets="latest"))
    assert query.places == places(store)


@pytest.mark.parametrize("first", [0, 1, 7, 19])
def test_a_stream_begins_with_a_time(store: StoreWriter, first: int) -> None:
    time = str(store.stored[first].store_timestamp)
    query = Query().run(reader(store.root, startingTimestamp=time, startingOffsets="latest"))
    assert query.places == places(store, first)


def test_a_session_with_another_zone_than_the_times_is_told(
    store: StoreWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = reader(store.root, startingTimestamp="2025-11-01T00:00:00")
    monkeypatch.setattr(stream, "_options", stream._options.in_zone("UTC"))
    monkeypatch.setattr("txrocketmq.spark.options.zones.zone_of_task", lambda: "Asia/Tokyo")
    with pytest.raises(OptionError, match="timeZone is Asia/Tokyo, but was UTC when register"):
        Query().run(stream)


def test_a_time_that_is_to_come_is_waited_for(store: StoreWriter) -> None:
    time = str(store.stored[-1].store_timestamp + 3)
    query = Query().run(reader(store.root, startingTimestamp=time))
    fill(store, 5)
    query.run(reader(store.root, startingTimestamp="0"))
    assert query.places == places(store, 22)


def test_a_stream_begins_with_bytes_of_the_log(store: StoreWriter) -> None:
    inside = store.stored[3].physical_offset + 1
    offsets = '{"log": {"broker-a": %d}}'
    query = Query().run(reader(store.root, startingOffsets=offsets % inside))
    assert query.places == places(store, 4)
    with pytest.raises(OptionError, match="ends at"):
        reader(store.root, startingOffsets=offsets % (store.end + 1)).initialOffset()


def test_a_stream_begins_with_offsets_of_queues(store: StoreWriter) -> None:
    offsets = '{"Topic": {"broker-a": {"0": 3, "1": -1, "2": 6}}}'
    stream = reader(store.root, startingOffsets=offsets, maxBytesPerTrigger="1000", topic="Topic")
    query = Query().run(stream, most_batches=2)
    assert log_of(query.offsets[0]) == next(
        stored.physical_offset
        for stored in store.stored
        if (stored.draft.queue_id, stored.queue_offset) == (0, 3)
    )
    fill(store, 6)
    query.run(reader(store.root, startingOffsets="latest", topic="Topic"))
    first = {0: 3, 1: 7, 2: 6}
    assert query.places == [
        stored.physical_offset
        for stored in store.stored
        if stored.queue_offset >= first[stored.draft.queue_id]
    ]
    assert "first" not in query.offsets[-1]["brokers"]["DefaultCluster/broker-a"], (
        "no longer needed"
    )


def test_topics_are_selected(store: StoreWriter) -> None:
    fill(store, 4, "Other")
    query = Query().run(reader(store.root, startingOffsets="earliest", topic="Other"))
    assert query.places == places(store, 20)
    assert len(query.batches) == 1


def test_a_broker_that_appears_is_read_from_its_start(tmp_path: Path) -> None:
    first = StoreWriter(tmp_path / "a", segment_bytes=4096)
    fill(first, 3)
    pattern = f"{tmp_path}/*"
    stream = reader(pattern, startingOffsets="earliest")
    query = Query().run(stream)
    second = StoreWriter(tmp_path / "b", segment_bytes=4096, first_offset=8192)
    query.run(stream)
    assert len(query.batches) == 1, "it is empty"
    fill(second, 30)
    query.plan(stream)
    second.delete_segment()
    with pytest.raises(DataLossError, match="from 8192 to 12288"):
        query.run(reader(pattern))
    query.run(reader(pattern, failOnDataLoss="false"))
    kept = [place for place in places(second) if place >= 12_288]
    assert query.places == places(first) + kept


def test_a_directory_that_is_no_store_yet_is_waited_for(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    first = StoreWriter(tmp_path / "a", segment_bytes=4096)
    fill(first, 3)
    stream = reader(f"{tmp_path}/*", startingOffsets="earliest")
    query = Query().run(stream)
    (tmp_path / "b").mkdir()
    fill(first, 2)
    query.run(stream)
    assert query.places == places(first)
    assert "b is not a store: it has no directory commitlog/" in caplog.text
    (tmp_path / "b").rmdir()
    second = StoreWriter(tmp_path / "b", segment_bytes=4096)
    fill(second, 4)
    query.run(stream)
    assert query.places == places(first) + places(second)


def test_a_broker_that_disappears_is_data_loss(tmp_path: Path) -> None:
    writers = [StoreWriter(tmp_path / name, segment_bytes=4096) for name in ("a", "b")]
    for writer in writers:
        fill(writer, 3)
    pattern = f"{tmp_path}/*"
    query = Query().run(reader(pattern))
    shutil.rmtree(tmp_path / "a")
    fill(writers[1], 2)
    with pytest.raises(
        DataLossError,
        match=r"has read DefaultCluster/a up to .* of \['DefaultCluster/b'\].*brokerName",
    ):
        query.run(reader(pattern))
    query.run(reader(pattern, failOnDataLoss="false"))
    assert query.places == places(writers[1], 3)
    assert log_of(query.offsets[-1], "a") == log_of(query.offsets[0], "a")


def test_deleted_segments_are_data_loss(
    store: StoreWriter, caplog: pytest.LogCaptureFixture
) -> None:
    query = Query().run(
        reader(store.root, startingOffsets="earliest", maxBytesPerTrigger="700"), most_batches=1
    )
    store.delete_segment()
    gone = f"has no bytes from {log_of(query.offsets[1])} to 4096"
    with pytest.raises(DataLossError, match=gone):
        query.run(reader(store.root))
    query.run(reader(store.root, failOnDataLoss="false"))
    done = query.batches[0]
    later = [place for place in places(store) if place >= 4096]
    assert query.places == [row["physicalOffset"] for row in done] + later
    assert gone in caplog.text


def test_a_segment_that_goes_after_the_batch_was_planned_is_data_loss(store: StoreWriter) -> None:
    stream = reader(store.root, startingOffsets="earliest")
    start = stream.initialOffset()
    end = stream.latestOffset(start, ReadAllAvailable())
    parts = list(stream.partitions(start, end))
    store.delete_segment()
    with pytest.raises(DataLossError, match="has no bytes from 0"):
        list(stream.read(parts[0]))
    with pytest.raises(DataLossError, match="has no bytes from 0"):
        stream.partitions(start, end)
    tolerant = reader(store.root, failOnDataLoss="false")
    rows = read(tolerant, start, end)
    assert [row["physicalOffset"] for row in rows] == [p for p in places(store) if p >= 4096]


def rewrite(store: StoreWriter, keep: int, count: int) -> StoreWriter:
    """The store of a master that had only the first messages, and then took other ones."""
    root = store.root
    shutil.rmtree(root)
    writer = StoreWriter(root, segment_bytes=4096)
    fill(writer, keep)
    writer.put_all(
        Draft(queue_id=number % 3, body=b"%d?" % number * 100, after_ms=5)
        for number in range(keep, keep + count)
    )
    return writer


@pytest.mark.parametrize("count", [3, 20])
@pytest.mark.parametrize("start", ["earliest", "latest", '{"Topic": {"broker-a": {"0": 5}}}'])
@pytest.mark.parametrize("has_read", [False, True])
def test_a_topic_that_was_deleted_and_made_again(
    tmp_path: Path, count: int, start: str, *, has_read: bool
) -> None:
    """Its new offsets begin at 0, which does not matter to a position in the log."""
    store = StoreWriter(tmp_path / "broker-a")
    store.put_all([Draft("Topic")] * 10)
    options = {"topic": "Topic", "startingOffsets": start}
    query = Query([through_json(reader(store.root, **options).initialOffset())])
    if has_read:
        query.run(reader(store.root, **options))
    first = {"earliest": 0, "latest": 10}.get(start, 5)
    shutil.rmtree(store.root / "consumequeue/Topic")
    store._next["Topic", 0] = 0
    store.put_all([Draft("Topic")] * count)
    query.run(reader(store.root, **options))
    assert query.places == places(store, first)


def test_a_log_that_was_written_anew_is_data_loss(store: StoreWriter) -> None:
    query = Query().run(reader(store.root, startingOffsets="earliest"))
    new = rewrite(store, 15, 10)
    with pytest.raises(DataLossError, match="is not what it was when the stream read it up to"):
        query.run(reader(store.root))
    read_before = len(query.places)
    query.run(reader(store.root, failOnDataLoss="false"))
    at = log_of(query.offsets[1])
    assert query.places[read_before:] == [place for place in places(new) if place >= at]


def test_a_log_that_was_written_anew_after_planning_is_data_loss(store: StoreWriter) -> None:
    query = Query().run(reader(store.root))
    fill(store, 4)
    query.plan(reader(store.root))
    rewrite(store, 15, 20)
    with pytest.raises(DataLossError, match="is not what it was"):
        query.run(reader(store.root))


def test_a_log_that_ends_earlier_is_data_loss(store: StoreWriter) -> None:
    query = Query().run(reader(store.root, startingOffsets="earliest"))
    new = rewrite(store, 10, 2)
    with pytest.raises(DataLossError, match="it was cut off"):
        query.run(reader(store.root))
    query.run(reader(store.root, failOnDataLoss="false"))
    assert log_of(query.offsets[-1]) == new.end
    read_before = len(query.places)
    fill(new, 3)
    query.run(reader(store.root, failOnDataLoss="false"))
    assert query.places[read_before:] == places(new, 12)


def test_a_message_that_is_half_written_waits(store: StoreWriter) -> None:
    query = Query().run(reader(store.root))
    whole = store.put(Draft(body=b"x" * 500), dispatch=False)
    at = whole.physical_offset
    segment = store.segment(at - at % 4096)
    with segment.open("r+b") as file:
        file.seek(at % 4096 + 300)
        file.write(bytes(whole.size - 300))
    assert query.run(reader(store.root)).places == []
    with segment.open("r+b") as file:
        file.seek(at % 4096)
        file.write(whole.data)
    assert query.run(reader(store.root)).places == [at]


def test_a_checkpoint_of_another_kind_is_refused(store: StoreWriter) -> None:
    stream = reader(store.root)
    with pytest.raises(SparkSourceError, match="new checkpointLocation"):
        stream.latestOffset({"v": 1, "topics": {}}, ReadAllAvailable())
    with pytest.raises(SparkSourceError, match="version 2"):
        stream.latestOffset({"v": 2, "brokers": {}}, ReadAllAvailable())
