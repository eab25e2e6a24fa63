# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.spark.stores import Draft, StoreWriter
from txrocketmq.spark.arrow.records import Records
from txrocketmq.spark.columns.decode import BadRecord
from txrocketmq.spark.log.log_end import end_of_log
from txrocketmq.spark.log.log_reader import read_log
from txrocketmq.spark.planning.split import LogRange
from txrocketmq.spark.planning.store_verification import StoreCheck
from txrocketmq.spark.store.store import Store


def _found(root: Path) -> list[BadRecord]:
    store = Store.open(str(root))
    split = LogRange(store, store.min_offset(), end_of_log(store), first_is_boundary=True)
    check = StoreCheck(split)
    found: list[BadRecord] = []
    for records in read_log(store, split.start, split.end, first_is_boundary=True):
        assert isinstance(records, Records)
        found += check.queues(records)
    return [*found, *check.index()]


@pytest.fixture
def writer(tmp_path: Path) -> StoreWriter:
    writer = StoreWriter(tmp_path / "s", segment_bytes=8192)
    for number in range(60):
        writer.put(Draft(f"T{number % 2}", number % 3, properties={"KEYS": f"k{number} k"}))
    writer.put(Draft("Batches", inner=((b"a", {}), (b"b", {}))))
    writer.put(Draft("Half", sys_flag=4))
    writer.write_config()
    return writer


def test_sound_stores_agree(writer: StoreWriter) -> None:
    assert _found(writer.root) == []


def test_golden_stores_agree(golden_version: str, golden_store: Callable[[str], Path]) -> None:
    for kind in ("clean", "crashed"):
        assert _found(golden_store(golden_version) / kind) == []


@pytest.mark.parametrize("place", [0, 8, 20 * 4 + 7, 20 * 9 + 10])
def test_a_unit_that_was_changed(writer: StoreWriter, place: int) -> None:
    path = writer.root / "consumequeue" / "T1" / "2" / f"{0:020d}"
    data = bytearray(path.read_bytes())
    data[place] ^= 0x10
    path.write_bytes(data)
    (bad,) = _found(writer.root)
    assert bad.reason == "queue"
    assert bad.detail.startswith("queue 2 of T1 does not name the record at its queue offset")
    (stored,) = (s for s in writer.stored if s.physical_offset == bad.physical_offset)
    assert (stored.draft.topic, stored.queue_offset) == ("T1", place // 20)


def test_a_queue_without_files(writer: StoreWriter) -> None:
    (writer.root / "consumequeue" / "T0" / "0" / f"{0:020d}").unlink()
    (writer.root / "consumequeue" / "T0" / "0").rmdir()
    found = _found(writer.root)
    assert {bad.detail.split(" (")[0] for bad in found} == {"queue 0 of T0 has no files"}
    assert len(found) == 9, "the first message of the topic could be of one that was deleted"


def test_a_topic_that_was_deleted_is_no_damage(writer: StoreWriter) -> None:
    (writer.root / "config" / "topics.json").write_text("{}")
    for number in range(3):
        (writer.root / "consumequeue" / "T0" / str(number) / f"{0:020d}").unlink()
        (writer.root / "consumequeue" / "T0" / str(number)).rmdir()
    assert _found(writer.root) == []


def test_an_index_that_names_no_record(writer: StoreWriter) -> None:
    path = next((writer.root / "index").iterdir())
    data = bytearray(path.read_bytes())
    offset = 40 + 4 * 32 + 20 * 5 + 4
    data[offset + 7] ^= 1
    path.write_bytes(data)
    (bad,) = _found(writer.root)
    assert bad.reason == "index"
    assert bad.detail.startswith(str(path))


def test_an_index_file_that_goes_is_no_damage(
    writer: StoreWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = Store.open(str(writer.root)).index_files()
    monkeypatch.setattr(Store, "index_files", lambda _: listed)
    assert listed
    Path(listed[0].path).unlink()
    assert _found(writer.root) == []


def test_offsets_that_make_no_sense_do_not_fill_memory(tmp_path: Path) -> None:
    writer = StoreWriter(tmp_path / "s")
    writer.put_all([Draft(), Draft(), Draft("Other")])
    data = bytearray(writer.segment(0).read_bytes())
    data[writer.stored[1].physical_offset + 20] = 0x70
    writer.segment(0).write_bytes(data)
    found = _found(writer.root)
    assert writer.stored[1].physical_offset in {bad.physical_offset for bad in found}
