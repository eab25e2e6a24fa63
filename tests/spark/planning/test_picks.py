# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from pathlib import Path

import pytest

from tests.spark.stores import SCHEDULE_TOPIC, Draft, StoreWriter
from txrocketmq.remoting.message import properties as names
from txrocketmq.spark.arrow.errors import DataLossError
from txrocketmq.spark.columns.selection import RecordFilter, Selection
from txrocketmq.spark.options.conditions import Bounds
from txrocketmq.spark.planning import picks
from txrocketmq.spark.planning.split import QueuePicks
from txrocketmq.spark.store.store import Store


def _places(store: Store, wanted: RecordFilter, *queues: tuple[str, int], end: int) -> list[int]:
    split = QueuePicks(store, 0, end, queues)
    pieces = list(picks.units_of(split, wanted, fail_on_data_loss=True))
    places = [place for piece in pieces for place in piece["physical_offset"].tolist()]
    assert places == sorted(places)
    return places


@pytest.mark.parametrize("ext", [False, True])
def test_units_of_queues_in_the_order_of_the_log(tmp_path: Path, ext: bool) -> None:
    writer = StoreWriter(tmp_path / "s", segment_bytes=4096, queue_units=10, ext=ext)
    for number in range(60):
        tags = {"TAGS": f"T{number % 4}"}
        writer.put(Draft(f"Topic{number % 3}", number % 2, properties=tags))
    store = Store.open(str(writer.root))
    chosen = [each for each in writer.stored if each.draft.topic != "Topic2"]
    queues = [("Topic0", 0), ("Topic0", 1), ("Topic1", 0), ("Topic1", 1)]
    found = _places(store, Selection().on("s"), *queues, end=writer.end)
    assert found == [each.physical_offset for each in chosen]
    tagged = [e.physical_offset for e in chosen if e.draft.properties["TAGS"] in ("T1", "T2")]
    wanted = Selection(tags=frozenset({"T1", "T2"})).on("s")
    assert _places(store, wanted, *queues, end=writer.end) == tagged
    bounds = {("Topic0", 0): Bounds(2, 5), ("Topic0", 1): Bounds(high=0)}
    bounded = [
        each.physical_offset
        for each in chosen
        if each.draft.topic == "Topic0" and each.draft.queue_id == 0 and 2 <= each.queue_offset < 5
    ]
    wanted = Selection().on("s", bounds)
    assert _places(store, wanted, *queues[:2], end=writer.end) == bounded


def test_every_record_is_in_the_split_in_which_it_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(picks, "_MOST_UNITS", 7)
    writer = StoreWriter(tmp_path / "s", segment_bytes=4096)
    writer.put_all(Draft() for _ in range(50))
    store = Store.open(str(writer.root))
    for cut in range(0, writer.end, 77):
        found = []
        for start, end in ((0, cut), (cut, writer.end)):
            split = QueuePicks(store, start, end, (("Topic", 0),))
            for units in picks.units_of(split, Selection().on("s"), fail_on_data_loss=True):
                found += units["physical_offset"].tolist()
        assert found == [each.physical_offset for each in writer.stored]


def test_times_of_delayed_messages_are_no_hashes_of_tags(tmp_path: Path) -> None:
    writer = StoreWriter(tmp_path / "s")
    writer.put(Draft(SCHEDULE_TOPIC, 0, properties={"TAGS": "A", names.DELAY: "1"}))
    wanted = Selection(tags=frozenset({"A"})).on("s")
    store = Store.open(str(writer.root))
    assert _places(store, wanted, (SCHEDULE_TOPIC, 0), end=writer.end) == [0]


def test_a_queue_that_is_gone_meanwhile_is_a_loss(tmp_path: Path) -> None:
    writer = StoreWriter(tmp_path / "s")
    writer.put(Draft())
    split = QueuePicks(Store.open(str(writer.root)), 0, writer.end, (("Gone", 0),))
    wanted = Selection().on("s")
    with pytest.raises(DataLossError, match="queue 0 of Gone .* has just been deleted"):
        list(picks.units_of(split, wanted, fail_on_data_loss=True))
    assert list(picks.units_of(split, wanted, fail_on_data_loss=False)) == []


def test_how_far_queues_know_the_log(tmp_path: Path) -> None:
    writer = StoreWriter(tmp_path / "s")
    assert picks.dispatched(Store.open(str(writer.root))) == 0
    writer.put_all([Draft("A"), Draft("B")])
    end = writer.end
    writer.put(Draft("A"), dispatch=False)
    assert picks.dispatched(Store.open(str(writer.root))) == end


@pytest.mark.parametrize("inner", [(), ((b"a", {}), (b"b", {}))])
def test_units_that_are_missing_in_between_are_a_loss(
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    inner: tuple[tuple[bytes, dict[str, str]], ...],
) -> None:
    each = len(inner) or 1
    writer = StoreWriter(tmp_path / "s", queue_units=10)
    writer.put_all(Draft(inner=inner) for _ in range(50))
    store = Store.open(str(writer.root))
    split = QueuePicks(store, 0, writer.end, (("Topic", 0),))
    wanted = Selection().on("s")
    (found,) = picks.units_of(split, wanted, fail_on_data_loss=True)
    assert len(found) == 50
    file = f"batchconsumequeue/Topic/0/{920:020d}" if inner else f"consumequeue/Topic/0/{400:020d}"
    (writer.root / file).unlink()
    text = f"has no units of {10 * each} messages from 0 up to {50 * each}"
    with pytest.raises(DataLossError, match=text):
        list(picks.units_of(split, wanted, fail_on_data_loss=True))
    (found,) = picks.units_of(split, wanted, fail_on_data_loss=False)
    assert len(found) == 40
    assert text in caplog.text
    bounded = Selection().on("s", {("Topic", 0): Bounds(1, 20 * each - 1)})
    assert len(*picks.units_of(split, bounded, fail_on_data_loss=True)) == 20 - (each == 1) * 2


def test_what_retention_takes_after_the_plan_is_a_loss(tmp_path: Path) -> None:
    writer = StoreWriter(tmp_path / "s", segment_bytes=4096, queue_units=10)
    writer.put_all(Draft() for _ in range(100))
    store = Store.open(str(writer.root))
    split = QueuePicks(store, 0, writer.end, (("Topic", 0),))
    writer.delete_segment()
    for number in range(4):  # all their messages were in that file of the log
        (tmp_path / "s/consumequeue/Topic/0" / f"{number * 200:020d}").unlink()
    with pytest.raises(DataLossError, match="no bytes from 0 to 4096"):
        list(picks.units_of(split, Selection().on("s"), fail_on_data_loss=True))
    (found,) = picks.units_of(split, Selection().on("s"), fail_on_data_loss=False)
    assert found["queue_offset"][0] == 40
