# SPDX-License-Identifier: Apache-2.0
"""Plans that are used again: they give what a new plan gives."""

from __future__ import annotations

import logging
import pickle
import shutil
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.spark.deletions import delete_topic
from tests.spark.stores import Draft, StoreWriter
from txrocketmq.spark.arrow.errors import DataLossError
from txrocketmq.spark.columns.output import Output
from txrocketmq.spark.log import log_end
from txrocketmq.spark.options.options import SourceOptions
from txrocketmq.spark.planning import reading
from txrocketmq.spark.planning.reading import Reading

COLUMNS = "topic,queueId,queueOffset,physicalOffset"
LIGHT = "%LMQ%a"


@pytest.fixture(autouse=True, scope="module")
def _in_a_later_execution() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading, "is_later", lambda _: True)
        yield


class Plan:
    """A reading with its parts, as Spark keeps them."""

    def __init__(self, root: Path, **options: str) -> None:
        parsed = SourceOptions.of(
            {"storePath": str(root), "columns": COLUMNS, "allowUnknownTopics": "true", **options}
        )
        made = Reading(parsed, Output.of(parsed))
        self._reading = pickle.dumps(made)
        self._parts = pickle.dumps(made.parts())

    def rows(self) -> list[Any]:
        """What tasks read now, in processes that know nothing yet."""
        log_end._known.clear()
        made = pickle.loads(self._reading)  # noqa: S301 - our own
        rows = [
            tuple(row.values())
            for part in pickle.loads(self._parts)  # noqa: S301 - our own
            for batch in made.batches(part)
            for row in batch.to_pylist()
        ]
        return sorted(rows, key=lambda row: (row[3], row[0], row[2]))


OPTIONS: tuple[dict[str, str], ...] = (
    {},
    {"minPartitions": "5"},
    {"topic": "Few"},
    {"topic": "Few,New"},
    {"topic": f"Few,{LIGHT}"},
    {"topic": LIGHT},
    {"topicPattern": "%LMQ%.*"},
    {"topicPattern": "[FN].*"},
    {"where": "topic = 'Few' AND queueOffset >= 2"},
    {"topic": "Few,Many", "where": "topic = 'Few' AND queueId = 0"},
    {"subExpression": "A"},
    {"startingOffsets": "latest"},
    {"startingOffsets": '{"Few": {"s": {"0": -2}}}'},
    {"startingTimestamp": "1763000030000"},
    {"endingTimestamp": "1763000040000"},
    {"view": "physical"},
)
_DRAFTS = st.lists(
    st.builds(
        Draft,
        topic=st.sampled_from(("Many", "Many", "Many", "Few")),
        queue_id=st.integers(0, 1),
        body=st.integers(0, 200).map(bytes),
        properties=st.sampled_from(({}, {"TAGS": "A"})),
        light=st.sampled_from(((), (), (LIGHT,), ("%LMQ%b",))),
        after_ms=st.just(1000),
    ),
    min_size=4,
    max_size=30,
)


@settings(max_examples=examples(40), deadline=None)
@given(data=st.data())
def test_an_old_plan_gives_what_a_new_one_gives(data: st.DataObject) -> None:
    with TemporaryDirectory() as name:
        writer = StoreWriter(Path(name) / "s", segment_bytes=2048, queue_units=10)
        writer.put_all(data.draw(_DRAFTS))
        writer.put(Draft("Few", 0))
        options = data.draw(st.sampled_from(OPTIONS))
        plan = Plan(writer.root, **options)
        assert plan.rows() == Plan(writer.root, **options).rows()
        for _ in range(data.draw(st.integers(1, 3))):
            if data.draw(st.booleans()) and "startingOffsets" not in options:
                delete_topic(writer, "Few")
            if data.draw(st.booleans()):
                delete_topic(writer, LIGHT)
            writer.put_all(data.draw(_DRAFTS))
            writer.put(Draft("New", 0, bytes(9)))
            if data.draw(st.booleans()) and len(list((writer.root / "commitlog").iterdir())) > 1:
                writer.delete_segment()
            assert plan.rows() == Plan(writer.root, **options).rows()


@pytest.fixture
def writer(tmp_path: Path) -> StoreWriter:
    writer = StoreWriter(tmp_path / "s", segment_bytes=4096)
    writer.put_all(
        Draft("Few" if number % 9 == 0 else "Many", body=bytes(80)) for number in range(90)
    )
    return writer


def test_a_first_execution_keeps_to_its_plan(
    writer: StoreWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So the parts of one query see the same messages, and a task that is repeated does too."""
    monkeypatch.setattr(reading, "is_later", lambda _: False)
    plan = Plan(writer.root)
    writer.put(Draft())
    assert len(plan.rows()) == 90
    writer.delete_segment()
    with pytest.raises(DataLossError, match="has no bytes from 0 to 4096"):
        plan.rows()


@pytest.mark.parametrize("options", [{}, {"topic": "Few"}, {"where": "topic = 'Few'"}])
def test_what_retention_has_deleted_since_is_left_out_and_told(
    writer: StoreWriter, options: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    plan = Plan(writer.root, **options)
    writer.delete_segment()
    with caplog.at_level(logging.WARNING):
        rows = plan.rows()
    assert rows
    assert rows[0][3] >= 4096
    assert "has no bytes from 0 to 4096" in caplog.text


@pytest.mark.parametrize(
    "start", ['{"log": {"s": 0}}', '{"Few": {"s": {"0": 0}}}'], ids=["log", "queue"]
)
def test_offsets_that_were_asked_for_are_missed(writer: StoreWriter, start: str) -> None:
    plan = Plan(writer.root, startingOffsets=start)
    writer.delete_segment()
    with pytest.raises(DataLossError):
        plan.rows()


def test_a_file_in_between_is_missed(writer: StoreWriter) -> None:
    plan = Plan(writer.root)
    (writer.root / f"commitlog/{4096:020d}").unlink()
    with pytest.raises(DataLossError, match="from 4096 to 8192"):
        plan.rows()


@pytest.mark.parametrize("options", [{}, {"topic": "Few"}, {"where": "topic = 'Few'"}])
def test_another_store_in_the_same_place(
    writer: StoreWriter, tmp_path: Path, options: dict[str, str]
) -> None:
    plan = Plan(writer.root, **options)
    for count in (3, 20, 200):
        shutil.rmtree(writer.root)
        other = StoreWriter(tmp_path / "s", segment_bytes=4096)
        other.put_all(Draft("Few", body=bytes(number % 70)) for number in range(count))
        assert plan.rows() == Plan(writer.root, **options).rows()
        assert len(plan.rows()) == count


def test_a_topic_that_was_deleted_since(writer: StoreWriter) -> None:
    plan = Plan(writer.root, topic="Few")
    assert len(plan.rows()) == 10
    before = plan.rows()
    shutil.rmtree(writer.root / "consumequeue/Few")
    assert plan.rows() == Plan(writer.root, topic="Few").rows() == before, "the log has them"


@pytest.mark.parametrize("made_again", [False, True])
def test_a_light_queue_that_was_deleted_since(tmp_path: Path, made_again: bool) -> None:
    writer = StoreWriter(tmp_path / "s", segment_bytes=4096)
    light = Draft("Many", body=bytes(80), light=(LIGHT,))
    writer.put_all([light, *[Draft("Many", body=bytes(80))] * 9] * 4)
    plan = Plan(writer.root, topic=LIGHT)
    before = plan.rows()
    assert len(before) == 4
    delete_topic(writer, LIGHT)
    if made_again:
        writer.put(light)
    assert plan.rows()[:4] == before, "the log has them"


@pytest.mark.parametrize("is_later", [False, True])
@pytest.mark.parametrize("options", [{}, {"startingOffsets": '{"log": {"s": 0}}'}], ids=str)
def test_a_topic_that_was_deleted_since_and_made_again(
    writer: StoreWriter, options: dict[str, str], is_later: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also in a first execution, since a task may run hours after its plan was made."""
    monkeypatch.setattr(reading, "is_later", lambda _: is_later)
    plan = Plan(writer.root, topic="Few", **options)
    before = plan.rows()
    delete_topic(writer, "Few")
    writer.put_all([Draft("Few"), Draft("Few", 1)])
    assert plan.rows()[:10] == before
    assert len(plan.rows()) == (12 if is_later else 10)
