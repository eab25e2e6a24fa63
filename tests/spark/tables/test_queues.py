# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.spark.store_index import key_hash
from tests.spark.stores import Draft, StoreWriter
from tests.spark.tables.rows import rows_of
from txrocketmq.remoting.message.tags import java_string_hash
from txrocketmq.spark.store import queue_files
from txrocketmq.spark.store.store import Store


def _moment(ms: int) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=ms)


@pytest.fixture
def writer(tmp_path: Path) -> StoreWriter:
    writer = StoreWriter(tmp_path / "broker-a", segment_bytes=4096, queue_units=10)
    for number in range(60):
        tags = {"TAGS": "A", "KEYS": f"k{number}"}
        writer.put(Draft(f"T{number % 2}", number % 4, properties=tags, after_ms=1000))
    writer.put(Draft("B", inner=((b"a", {}), (b"b", {}))))
    return writer


def test_queues(writer: StoreWriter, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue_files, "_STEP_UNITS", 4)
    writer.delete_segment()
    rows = {(row["topic"], row["queueId"]): row for row in rows_of(writer.root, "queues")}
    assert set(rows) == {("T0", 0), ("T0", 2), ("T1", 1), ("T1", 3), ("B", 0)}
    left = [
        each
        for each in writer.stored
        if each.draft.topic == "T0" and each.draft.queue_id == 2 and each.physical_offset >= 4096
    ]
    assert rows["T0", 2] == {
        "brokerName": "broker-a", "cluster": "DefaultCluster", "topic": "T0", "queueId": 2,
        "minOffset": left[0].queue_offset, "maxOffset": 15, "messages": len(left),
        "bytes": sum(each.size for each in left),
        "firstTimestamp": _moment(left[0].store_timestamp),
        "lastTimestamp": _moment(left[-1].store_timestamp),
    }  # fmt: skip
    assert rows["B", 0]["messages"] == 2


def test_units_of_queues(writer: StoreWriter, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue_files, "_STEP_UNITS", 4)
    rows = rows_of(writer.root, "consumequeue", topic="T1")
    assert sorted(row["physicalOffset"] for row in rows) == [
        each.physical_offset for each in writer.stored if each.draft.topic == "T1"
    ]
    by_place = {each.physical_offset: each for each in writer.stored}
    for row in rows:
        stored = by_place[row["physicalOffset"]]
        assert row["queueOffset"] == stored.queue_offset
        assert row["size"] == stored.size
        assert row["tagsCode"] == java_string_hash("A")
        assert row["messages"] == 1


@pytest.mark.parametrize("step", [1, 2, 7])
def test_a_batch_over_a_step_counts_once(
    tmp_path: Path, step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue_files, "_STEP_UNITS", step)
    writer = StoreWriter(tmp_path / "broker-a")
    inner: tuple[tuple[bytes, dict[str, str]], ...] = ((b"a", {}),) * 5
    stored = writer.put_all(Draft("B", inner=inner) for _ in range(4))
    (row,) = rows_of(writer.root, "queues")
    assert (row["messages"], row["bytes"]) == (20, sum(each.size for each in stored))
    rows = rows_of(writer.root, "consumequeue")
    assert [row["queueOffset"] for row in rows] == [0, 5, 10, 15]


def test_items_of_the_index(writer: StoreWriter) -> None:
    rows = rows_of(writer.root, "index")
    assert len(rows) == 60
    assert [row["physicalOffset"] for row in rows] == [
        each.physical_offset for each in writer.stored[:60]
    ]
    assert rows[7]["keyHash"] == key_hash("T1", "k7")


def test_an_index_file_that_goes_has_no_items(
    writer: StoreWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = Store.open(str(writer.root)).index_files()
    monkeypatch.setattr(Store, "index_files", lambda _: listed)
    there = rows_of(writer.root, "index")
    Path(listed[0].path).unlink()
    rows = rows_of(writer.root, "index")
    assert rows == [row for row in there if row["file"] != listed[0].name]
    assert len(rows) < len(there)
