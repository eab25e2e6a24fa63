# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.spark.stores import Draft, StoreWriter
from txrocketmq.spark.log import boundaries
from txrocketmq.spark.log.boundaries import Boundaries, next_record
from txrocketmq.spark.log.resync import LONGEST_RECORD_BYTES
from txrocketmq.spark.store.store import Store


@pytest.fixture
def writer(tmp_path: Path) -> StoreWriter:
    writer = StoreWriter(tmp_path / "store", segment_bytes=8192)
    writer.put_all(Draft(queue_id=n % 3, body=b"b" * n, fakes=n % 2) for n in range(40))
    return writer


def test_after_a_damaged_record_comes_its_end(writer: StoreWriter) -> None:
    store = Store.open(str(writer.root))
    for each in writer.stored:
        assert Boundaries(store).after(each.physical_offset) == each.physical_offset + each.size
    known = Boundaries(store)
    for each in writer.stored:
        assert known.after(each.physical_offset) == each.physical_offset + each.size


def test_between_records_the_next_one_counts(writer: StoreWriter) -> None:
    known = Boundaries(Store.open(str(writer.root)))
    for before, each in zip(writer.stored, writer.stored[1:], strict=False):
        assert known.after(before.physical_offset + 1) == each.physical_offset
    assert known.after(writer.end) is None


def test_regions_follow_each_other(writer: StoreWriter, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boundaries, "_REGION_BYTES", 500)
    test_after_a_damaged_record_comes_its_end(writer)
    test_between_records_the_next_one_counts(writer)


def test_before_is_a_whole_record(writer: StoreWriter, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boundaries, "_NEAR_BYTES", 0)
    store = Store.open(str(writer.root))
    for before, each in zip(writer.stored, writer.stored[1:], strict=False):
        assert Boundaries(store).before(each.physical_offset) == before.physical_offset
    assert Boundaries(store).before(0) is None
    last = writer.stored[-1]
    with writer.segment(last.physical_offset // 8192 * 8192).open("r+b") as file:
        file.seek(last.physical_offset % 8192 + 4)
        file.write(b"\0")
    found = Boundaries(store).before(writer.end)
    assert found is not None
    assert found < last.physical_offset


def test_a_store_without_queues_knows_nothing(writer: StoreWriter) -> None:
    shutil.rmtree(writer.root / "consumequeue")
    known = Boundaries(Store.open(str(writer.root)))
    assert known.after(0) is None
    assert known.before(writer.end) is None


def test_the_next_record_without_queues(tmp_path: Path) -> None:
    # The second record is found in a window after the first: behind more than one search.
    writer = StoreWriter(tmp_path / "store", segment_bytes=LONGEST_RECORD_BYTES * 6)
    stored = writer.put_all(
        Draft(body=bytes([number + 1]) * size)
        for number, size in enumerate((10, LONGEST_RECORD_BYTES * 9 // 2, 30, 40))
    )
    with writer.segment(0).open("r+b") as file:
        file.seek(stored[1].physical_offset)
        file.write(b"\xff" * 100)
    store = Store.open(str(writer.root))
    (segment,) = store.segments()
    assert next_record(store, segment, stored[1].physical_offset) == stored[2].physical_offset
    assert next_record(store, segment, writer.end) is None
    writer.segment(0).unlink()
    assert next_record(store, segment, stored[1].physical_offset) is None
