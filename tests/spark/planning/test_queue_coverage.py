# SPDX-License-Identifier: Apache-2.0
"""A pushed condition never changes an answer, whatever the queues and the clock went through."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.spark.predicates import COMPARE, holds, where
from tests.spark.stores import LIGHT_LISTS, Draft, StoreWriter
from txrocketmq.remoting.message.flags import MessageSysFlag
from txrocketmq.spark.arrow.errors import SparkSourceError
from txrocketmq.spark.columns.output import Output
from txrocketmq.spark.options.options import SourceOptions
from txrocketmq.spark.options.where import Predicate
from txrocketmq.spark.planning import plan
from txrocketmq.spark.planning import queue_coverage as covered
from txrocketmq.spark.planning.plan import extents_of, splits
from txrocketmq.spark.planning.scan import Scan
from txrocketmq.spark.planning.split import CoveredPicks, LogRange, Split
from txrocketmq.spark.store.files import LocalFiles
from txrocketmq.spark.store.store import Store

Row = dict[str, Any]
COLUMNS = "topic,queueId,queueOffset,tags,storeTimestamp,physicalOffset,brokerName,reconsumeTimes"


@pytest.fixture(autouse=True, scope="module")
def _queues_are_asked_for_little() -> Iterator[None]:
    """However small the logs of these tests are."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plan, "_ASKING_LOCALLY_BYTES", 0)
        yield


def _planned(root: Path, filters: Sequence[Predicate], **options: str) -> tuple[list[Split], Any]:
    given = {**options, **where(filters)}
    asked = {"storePath": str(root), "columns": COLUMNS, "allowUnknownTopics": "true", **given}
    parsed = SourceOptions.of(asked)
    (extent,) = extents_of([Store.open(str(root), broker_name="s")], parsed)
    scan = Scan.of(parsed, Output.of(parsed))
    found = splits(extent, parsed)
    return found, lambda split: [
        row for batch in scan.read(split, extent.wanted) for row in batch.to_pylist()
    ]


def _rows(root: Path, filters: Sequence[Predicate], **options: str) -> list[Row]:
    found, read = _planned(root, filters, **options)
    rows = [row for split in found for row in read(split)]
    return sorted(rows, key=lambda row: (row["physicalOffset"], row["topic"], row["queueOffset"]))


# --- random stores ---

TOPICS = ("Many", "Some", "Few", "Gone")
_TAGS = st.sampled_from(({}, {"TAGS": "A"}, {"TAGS": "B"}))
_PLAIN = st.builds(
    Draft,
    topic=st.sampled_from((*("Many",) * 6, *TOPICS)),
    queue_id=st.integers(0, 1),
    body=st.integers(0, 200).map(bytes),
    properties=_TAGS,
    sys_flag=st.sampled_from((*(0,) * 8, MessageSysFlag.TRANSACTION_PREPARED_TYPE)),
    after_ms=st.sampled_from((*(1,) * 12, 1000, 90_000, -3_600_000, 3_600_000)),
    reconsume_times=st.sampled_from((0, 0, 0, 2)),
)
_INNER = st.builds(
    Draft,
    topic=st.just("Batches"),
    queue_id=st.integers(0, 1),
    inner=st.lists(st.tuples(st.just(b"x"), _TAGS), min_size=1, max_size=4).map(tuple),
)
_LIGHT = st.builds(
    Draft, topic=st.just("Many"), properties=_TAGS, light=st.sampled_from(LIGHT_LISTS)
)
_DRAFTS = st.integers(0, 11).flatmap(lambda kind: {0: _INNER, 1: _LIGHT}.get(kind, _PLAIN))
_DAMAGES = st.lists(
    st.tuples(
        st.sampled_from(("queue", "topic", "file", "zeros", "cut", "noise")),
        st.integers(0, 1 << 16),
        st.binary(min_size=1, max_size=40),
    ),
    max_size=3,
)


def _damage(root: Path, kind: str, number: int, noise: bytes) -> None:
    """Something that happened to the consume queues."""
    files = sorted(path for path in root.glob("*consumequeue/**/*") if path.is_file())
    files = [path for path in files if path.stat().st_size]
    if not files:
        return
    path = files[number % len(files)]
    data = bytearray(path.read_bytes())
    at = number * 7 % len(data)
    match kind:
        case "queue":
            shutil.rmtree(path.parent)
        case "topic":
            shutil.rmtree(path.parent.parent)
        case "file":
            path.unlink()
        case "cut":
            unit_bytes = 46 if "batchconsumequeue" in str(path) else 20
            path.write_bytes(data[: at // unit_bytes * unit_bytes])
        case "zeros":
            path.write_bytes(data[:at] + bytes(len(data) - at))
        case "noise":
            path.write_bytes((data[:at] + noise + data[at + len(noise) :])[: len(data)])


@st.composite
def _filters(draw: st.DrawFn, writer: StoreWriter) -> list[Predicate]:
    def one() -> Predicate:
        stored = draw(st.sampled_from(writer.stored))
        compare = draw(st.sampled_from(sorted(COMPARE)))
        kind = draw(st.integers(0, 6))
        if kind == 0:
            topics = (*TOPICS, "Batches", "%LMQ%a", "Never")
            return Predicate("topic", compare, (draw(st.sampled_from(topics)),))
        if kind == 1:
            few = draw(st.sampled_from((("Few", "Gone"), ("Some",))))
            return Predicate("topic", "IN", few)
        if kind == 2:
            operator = draw(st.sampled_from(("=", "!=", "IS NULL", "IS NOT NULL")))
            literal = () if "NULL" in operator else (draw(st.sampled_from("AB")),)
            return Predicate("tags", operator, literal)
        if kind == 3:
            return Predicate("storeTimestamp", compare, (stored.store_timestamp,))
        if kind == 4:
            pattern = draw(st.sampled_from(("F%", "%e", "So_e", "%LMQ%", "Gone", "_any%")))
            return Predicate("topic", "LIKE", (pattern,))
        column = draw(st.sampled_from(("queueId", "queueOffset", "physicalOffset")))
        value = {
            "queueId": stored.draft.queue_id,
            "queueOffset": stored.queue_offset,
            "physicalOffset": stored.physical_offset + draw(st.integers(-1, 1)),
        }[column]
        return Predicate(column, compare, (value,))

    return [one() for _ in range(draw(st.integers(1, 3)))]


OPTIONS: tuple[dict[str, str], ...] = (
    {},
    {},
    {"view": "physical"},
    {"minPartitions": "5"},
    {"maxRecordsPerPartition": "3"},
    {"topic": "Few,Gone"},
    {"topic": "Many,Gone"},
    {"topic": "Batches,Gone"},
    {"topic": "%LMQ%a,Some"},
    {"topic": "Few,Gone", "view": "physical"},
    {"topicPattern": "[FG].*"},
    {"subExpression": "A"},
    {"startingOffsets": '{"log": {"s": 300}}'},
)


@settings(max_examples=examples(60))
@given(data=st.data())
def test_a_condition_gives_the_rows_that_fulfil_it_whatever_is_skipped(data: st.DataObject) -> None:
    with TemporaryDirectory() as name:
        root = Path(name) / "s"
        writer = StoreWriter(root, segment_bytes=data.draw(st.sampled_from((2048, 1 << 20))),
                             queue_units=10)  # fmt: skip
        writer.put_all(data.draw(st.lists(_DRAFTS, min_size=1, max_size=60)))
        if data.draw(st.booleans()):  # deleted, and perhaps made again by those who send
            shutil.rmtree(root / "consumequeue/Gone", ignore_errors=True)
            for queue_id in (0, 1):
                writer._next["Gone", queue_id] = 0
            writer.put_all(data.draw(st.lists(_DRAFTS, max_size=30)))
        options = data.draw(st.sampled_from(OPTIONS))
        damages = data.draw(_DAMAGES)
        if {"topic", "topicPattern", "subExpression"} & options.keys():
            # These go by the queues, as bad as they are: what a filter sees of them is up to luck.
            damages = [each for each in damages if each[0] not in ("zeros", "cut", "noise")]
        for damage in damages:
            _damage(root, *damage)
        filters = data.draw(_filters(writer))
        try:
            everything = _rows(root, [], **options)
        except SparkSourceError:
            return
        expected = [row for row in everything if all(holds(each, row) for each in filters)]
        assert _rows(root, filters, **options) == expected


# --- single cases ---


@pytest.fixture
def writer(tmp_path: Path) -> StoreWriter:
    """A log of several files; one message in eight is of Few, one is of Gone, which was deleted."""
    writer = StoreWriter(tmp_path / "s", segment_bytes=8192)
    for number in range(400):
        topic = {0: "Few", 4: "Gone" if number > 300 else "Few"}.get(number % 8, "Many")
        writer.put(
            Draft(topic, body=b"x" * 60, properties={"TAGS": "A"} if topic != "Many" else {})
        )
    shutil.rmtree(writer.root / "consumequeue/Gone")
    return writer


def _stored(writer: StoreWriter, *topics: str) -> list[int]:
    return [each.physical_offset for each in writer.stored if each.draft.topic in topics]


def test_a_deleted_topic_is_found_in_the_log(writer: StoreWriter) -> None:
    for condition, topics in (
        (Predicate("topic", "=", ("Gone",)), ("Gone",)),
        (Predicate("tags", "=", ("A",)), ("Gone", "Few")),
    ):
        found, _ = _planned(writer.root, [condition])
        assert {type(each) for each in found} == {CoveredPicks}
        rows = _rows(writer.root, [condition])
        assert [row["physicalOffset"] for row in rows] == _stored(writer, *topics)
        assert rows


def test_only_what_no_queue_accounts_for_is_read_of_the_log(
    writer: StoreWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(covered, "_NEAR_BYTES", 0)
    monkeypatch.setattr(covered, "_REGION_BYTES", 1000)
    condition = Predicate("topic", "=", ("Few",))
    ((split,), _) = _planned(writer.root, [condition])
    assert isinstance(split, CoveredPicks)
    wanted = _planned_filter(writer.root, condition)
    pieces = list(covered._pieces(split, wanted))
    assert pieces[0].start == 0
    assert [piece.start for piece in pieces[1:]] == [piece.end for piece in pieces[:-1]]
    assert pieces[-1].end == writer.end
    by_log = [(piece.start, piece.end) for piece in pieces if piece.units is None]
    for gone in _stored(writer, "Gone"):
        assert any(start < gone < end for start, end in by_log), "and the record before it"
    assert sum(end - start for start, end in by_log) < writer.end // 8


def test_a_queue_is_read_on_from_where_it_was_left(
    writer: StoreWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(covered, "_REGION_BYTES", 1000)
    monkeypatch.setattr(covered, "_MOST_AHEAD", 1)
    monkeypatch.setattr(covered, "_FEWEST_UNITS", 8)
    reads: list[tuple[str, int, int]] = []
    read_into = LocalFiles.read_into

    def counted(self: LocalFiles, path: str, offset: int, view: memoryview) -> int:
        if "consumequeue" in path and len(view) == 8 * 20:
            reads.append((path, offset, len(view)))
        return read_into(self, path, offset, view)

    found, read = _planned(writer.root, [Predicate("topic", "=", ("Few",))])
    monkeypatch.setattr(LocalFiles, "read_into", counted)
    rows = [row for split in found for row in read(split)]
    assert [row["physicalOffset"] for row in rows] == _stored(writer, "Few")
    assert len(reads) == len(set(reads)) == sum(units // 8 for units in _units_by_file(writer))


def _units_by_file(writer: StoreWriter) -> list[int]:
    """How many units the files of the queues hold."""
    per_file = 50
    counts = Counter(
        (each.draft.topic, each.queue_offset // per_file)
        for each in writer.stored
        if each.draft.topic != "Gone"
    )
    return list(counts.values())


def test_many_queues_are_not_asked_for_a_small_log(
    writer: StoreWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    for bytes_a_queue, kind in ((writer.end // 5, CoveredPicks), (writer.end // 3, LogRange)):
        monkeypatch.setattr(plan, "_ASKING_LOCALLY_BYTES", bytes_a_queue)  # of two queues
        found, _ = _planned(writer.root, [], topic="Few", view="physical")
        assert {type(each) for each in found} == {kind}


def _planned_filter(root: Path, condition: Predicate) -> Any:
    parsed = SourceOptions.of({"storePath": str(root), **where([condition])})
    (extent,) = extents_of([Store.open(str(root), broker_name="s")], parsed)
    return extent.wanted


def test_a_unit_that_hides_records_is_not_believed(writer: StoreWriter) -> None:
    """Its record is said to be so long that it takes in most of the one of Gone after it."""
    gone = next(each for each in writer.stored if each.draft.topic == "Gone")
    before = writer.stored[writer.stored.index(gone) - 1]
    path = writer.root / "consumequeue/Many/0"
    at = before.queue_offset * 20
    file = path / f"{at // 1000 * 1000:020d}"
    data = bytearray(file.read_bytes())
    place = at % 1000 + 8
    data[place : place + 4] = (before.size + gone.size - 9).to_bytes(4, "big")
    file.write_bytes(data)
    rows = _rows(writer.root, [Predicate("topic", "=", ("Gone",))])
    assert [row["physicalOffset"] for row in rows] == _stored(writer, "Gone")


def test_times_choose_files_only_by_a_clock_that_is_vouched_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("txrocketmq.spark.planning.split.TOGETHER_BYTES", 0)
    writer = StoreWriter(tmp_path / "s", segment_bytes=4096)
    for number in range(300):
        writer.put(Draft(body=bytes(100), after_ms=-3_600_000 if number == 200 else 1000))
    moment = writer.stored[30].store_timestamp
    condition = Predicate("storeTimestamp", "<", (moment,))
    late = [each for each in writer.stored[200:] if each.store_timestamp < moment]
    assert late
    assert len(_rows(writer.root, [condition])) == 30 + len(late)
    everything, _ = _planned(writer.root, [])
    vouched, _ = _planned(writer.root, [condition], clockStepMs="3600000")
    assert vouched == everything, "the step was an hour"
    early = Predicate("storeTimestamp", "<", (writer.stored[0].store_timestamp,))
    trusted, _ = _planned(tmp_path / "s", [early], clockStepMs="0")
    assert len(trusted) < len(everything)
    assert all(isinstance(each, LogRange) for each in trusted)


def test_light_queues_bring_no_message_twice(tmp_path: Path) -> None:
    """Their units name messages of other topics once more; a message is of its own topic only."""
    writer = StoreWriter(tmp_path / "s")
    for number in range(400):
        rare = number % 40 == 0
        writer.put(Draft("Few" if rare else "Many", 0, b"x" * 200, {"TAGS": "R" if rare else "M"}))
    writer.write_config()
    queues = writer.root / "consumequeue"
    shutil.copytree(queues / "Few", queues / "%LMQ%a")
    chosen = [
        {"subExpression": "R"}, {"topic": "Few"}, {"topicPattern": ".*"}, {"topic": "Few,%LMQ%b"},
    ]  # fmt: skip
    counts = [len(_rows(writer.root, (), **each)) for each in chosen]
    assert counts == [10, 10, 400, 10]
    assert len(_rows(writer.root, [Predicate("tags", "=", ("R",))])) == 10
    assert len(_rows(writer.root, (), topic="Few,%LMQ%a")) == 20, "chosen twice"
