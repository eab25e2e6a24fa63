# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.spark.deletions import delete_topic
from tests.spark.far_files import FarFiles
from tests.spark.stores import Draft, StoreWriter
from txrocketmq.spark.columns.output import Output
from txrocketmq.spark.options.options import SourceOptions
from txrocketmq.spark.planning import plan
from txrocketmq.spark.planning.plan import extents_of, splits, stores_of, stream_splits
from txrocketmq.spark.planning.scan import Scan
from txrocketmq.spark.planning.split import CoveredPicks, LogRange, QueuePicks
from txrocketmq.spark.store.deleted_topics import (
    EVERYTHING,
    DeletedTopics,
    all_known_from,
    known_from,
)
from txrocketmq.spark.store.store import Store

TOPICS = ("A", "B", "Many")


@pytest.fixture(autouse=True, params=[0, plan._ASKING_LOCALLY_BYTES])
def _asking(request: pytest.FixtureRequest) -> Iterator[None]:
    """However large a log is: small logs are read whole, and of large ones queues are asked."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plan, "_ASKING_LOCALLY_BYTES", request.param)
        yield


def places(root: Path, **options: str) -> list[tuple[str, int]]:
    """Topic and physical offset of the rows of a batch."""
    return _places(root, options, streamed=False)


def streamed_places(root: Path, **options: str) -> list[tuple[str, int]]:
    """The same of a micro-batch of a stream."""
    return _places(root, options, streamed=True)


def _places(root: Path, options: dict[str, str], *, streamed: bool) -> list[tuple[str, int]]:
    parsed = SourceOptions.of(
        {
            "storePath": str(root),
            "columns": "topic,physicalOffset",
            "allowUnknownTopics": "true",
            **options,
        }
    )
    (extent,) = extents_of(stores_of(parsed), parsed)
    scan = Scan.of(parsed, Output.of(parsed))
    found: list[LogRange | QueuePicks | CoveredPicks] = (
        [*stream_splits(extent, parsed)] if streamed else splits(extent, parsed)
    )
    rows = (
        row for split in found for batch in scan.read(split, extent.wanted)
        for row in batch.to_pylist()
    )  # fmt: skip
    return sorted((row["topic"], row["physicalOffset"]) for row in rows)


_STEPS = st.lists(
    st.sampled_from((*("Many",) * 6, "A", "A", "B"))
    .flatmap(lambda topic: st.tuples(st.just(topic), st.integers(0, 2)))
    .map(lambda put: Draft(put[0], put[1], b"x" * 40, {"TAGS": "T"}))
    | st.sampled_from(("delete A", "delete B")),
    max_size=60,
)


@settings(max_examples=examples(20))
@given(_STEPS)
def test_rows_are_the_same_whatever_else_is_asked_for(
    tmp_path_factory: pytest.TempPathFactory, steps: list[Draft | str]
) -> None:
    root = tmp_path_factory.mktemp("s") / "broker-a"
    writer = StoreWriter(root, segment_bytes=1024)
    for step in [*steps, Draft("Many", properties={"TAGS": "T"})]:
        if isinstance(step, Draft):
            writer.put(step)
        else:
            delete_topic(writer, step.removeprefix("delete "))
    writer.write_config()
    for topics in ({"A"}, {"B"}, {"A", "B"}, {"A", "B", "Many"}):
        wanted = sorted(
            (each.draft.topic, each.physical_offset)
            for each in writer.stored
            if each.draft.topic in topics
        )
        named = ",".join(sorted(topics))
        pattern = named.replace(",", "|")
        assert places(root, topic=named) == wanted
        assert places(root, topicPattern=pattern) == wanted
        assert places(root, topic=named, subExpression="T") == wanted
        assert places(root, topic=named, view="physical") == wanted
        assert streamed_places(root, topic=named) == wanted
        assert places(root, topic=named, verify="store", badRecords="fail") == wanted
        names = ", ".join(f"'{topic}'" for topic in sorted(topics))
        by_where = f"topic IN ({names})"
        every: list[dict[str, str]] = [
            {"where": by_where},
            {"where": f"{by_where} AND tags = 'T' AND queueId IN (0, 1, 2)"},
            {"where": by_where, "topicPattern": f"{pattern}|Other"},
            {"where": by_where, "topic": "A,B,Many"},
            {"where": by_where, "subExpression": "T"},
            {"where": by_where, "view": "physical"},
            {"topicPattern": pattern},
        ]
        checked = {"verify": "store", "badRecords": "fail"}
        for options in every:
            assert places(root, **options) == wanted, options
            assert streamed_places(root, **options) == wanted, options
            assert places(root, **checked, **options) == wanted, options
        if len(topics) == 3:
            assert places(root) == wanted
            assert places(root, subExpression="T") == wanted


_LIGHT_STEPS = st.lists(
    st.builds(
        Draft,
        topic=st.sampled_from((*"ABMM", "%LMQ%a")),
        body=st.just(b"x" * 90),
        properties=st.just({"TAGS": "T"}),
        light=st.sampled_from(((), (), (), ("%LMQ%b",), ("%LMQ%b", "%LMQ%c"))),
    )
    | st.sampled_from(("delete A", "delete %LMQ%a", "delete %LMQ%b")),
    max_size=30,
)


@settings(max_examples=examples(20))
@given(_LIGHT_STEPS)
def test_rows_of_light_queues_are_the_same_too(
    tmp_path_factory: pytest.TempPathFactory, steps: list[Draft | str]
) -> None:
    root = tmp_path_factory.mktemp("s") / "broker-a"
    writer = StoreWriter(root, segment_bytes=1024)
    for step in [*steps, Draft("M", properties={"TAGS": "T"})]:
        if isinstance(step, Draft):
            writer.put(step)
        else:
            delete_topic(writer, step.removeprefix("delete "))
    writer.write_config()
    for topics in ({"%LMQ%a"}, {"%LMQ%b"}, {"%LMQ%b", "%LMQ%c"}, {"A", "%LMQ%b"}, {"A", "M"}):
        wanted = sorted(
            (topic, each.physical_offset)
            for each in writer.stored
            for topic in topics
            if topic in (each.draft.topic, *each.draft.light)
        )
        named = ",".join(sorted(topics))
        every: list[dict[str, str]] = [
            {"topic": named},
            {"topic": named, "subExpression": "T"},
            {"topic": named, "maxRecordsPerPartition": "2"},
            {"topic": f"{named},B", "where": "topic <> 'B'"},
        ]
        if all(topic.startswith("%LMQ%") for topic in topics):
            every.append({"topicPattern": named.replace(",", "|")})
        for options in every:
            assert places(root, **options) == wanted, options
            assert streamed_places(root, **options) == wanted, options


@pytest.fixture
def writer(tmp_path: Path) -> StoreWriter:
    writer = StoreWriter(tmp_path / "broker-a", segment_bytes=4096)
    writer.put_all(Draft(TOPICS[number % 3], number % 2) for number in range(30))
    return writer


def test_what_queues_know(writer: StoreWriter) -> None:
    store = Store.open(str(writer.root))
    assert known_from(store.queues_of("B")) == writer.stored[1].physical_offset
    delete_topic(writer, "B")
    assert known_from(store.queues_of("B")) == EVERYTHING
    writer.put_all([Draft("B", 1), Draft("B", 0)])
    assert known_from(store.queues_of("B")) == writer.stored[30].physical_offset


def test_of_many_queues_no_more_are_asked_than_it_takes(writer: StoreWriter) -> None:
    far = FarFiles()
    store = replace(Store.open(str(writer.root)), files=far).at_once()
    topics = [store.queues_of(topic) for topic in TOPICS]
    newest, later = (writer.stored[number].physical_offset for number in (2, 5))
    assert all_known_from(topics, later) <= later
    assert far.counts["read"] == 3, "one of each topic"
    assert all_known_from(topics) == newest
    assert all_known_from([*topics, []]) == all_known_from([*topics, []], later) == EVERYTHING
    assert far.counts["read"] == 6


@pytest.mark.parametrize("noted", [False, True])
def test_until_where_a_topic_was_deleted(writer: StoreWriter, noted: bool) -> None:
    writer.write_config()
    store = Store.open(str(writer.root))
    assert DeletedTopics(store).until("A") == writer.stored[0].physical_offset
    delete_topic(writer, "B", noted=noted)
    assert DeletedTopics(store).until("B") == EVERYTHING
    deleted_at = writer.end
    writer._topics["B"] = 4
    writer.write_config()
    assert DeletedTopics(store).until("B") == (deleted_at if noted else 0), "made again"
    writer.put(Draft("A"))
    new = writer.put(Draft("B", 1))
    assert DeletedTopics(store).until("B") == new.physical_offset
    assert DeletedTopics(store).until("A") == writer.stored[0].physical_offset


def test_a_queue_that_lost_its_first_file_was_not_deleted(tmp_path: Path) -> None:
    writer = StoreWriter(tmp_path / "broker-a", queue_units=5)
    writer.put_all(Draft("A") for _ in range(12))
    writer.write_config()
    min((writer.root / "consumequeue" / "A" / "0").iterdir()).unlink()
    store = Store.open(str(writer.root))
    assert DeletedTopics(store).until("A") == 0
    assert known_from(store.queues_of("A")) == writer.stored[5].physical_offset
    counts = Counter(topic for topic, _ in places(writer.root, topic="A"))
    assert counts == {"A": 12}, "the log has what the queue lacks"
