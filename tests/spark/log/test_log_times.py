# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from tests.spark.far_files import FarFiles
from tests.spark.stores import START_MS, Draft, StoreWriter
from txrocketmq.spark.log import log_times
from txrocketmq.spark.log.log_times import (
    SLACK_MS,
    last_record,
    mean_record_bytes,
    offset_after,
    offset_before,
)
from txrocketmq.spark.store.store import Store


@pytest.fixture
def writer(tmp_path: Path) -> StoreWriter:
    """A message each 20 seconds, its body full of records that claim to be there."""
    writer = StoreWriter(tmp_path / "s", segment_bytes=4096)
    for number in range(200):
        writer.put(Draft(queue_id=number % 3, fakes=2, after_ms=20_000))
    return writer


@pytest.mark.parametrize("with_queues", [True, False])
def test_no_record_of_the_time_is_cut_off(
    writer: StoreWriter, with_queues: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_times, "_NEAR_ENOUGH_BYTES", 600)
    if not with_queues:
        shutil.rmtree(writer.root / "consumequeue")
    store = Store.open(str(writer.root))
    for moment in range(START_MS - 1000, START_MS + 201 * 20_000, 333_333):
        start = offset_before(store, moment, 0, writer.end)
        end = offset_after(store, moment, 0, writer.end)
        assert 0 <= start <= end <= writer.end
        for stored in writer.stored:
            if stored.store_timestamp >= moment:
                assert stored.physical_offset >= start
            else:
                assert stored.physical_offset < end
        near = [
            each.physical_offset
            for each in writer.stored
            if abs(each.store_timestamp - moment) <= SLACK_MS
        ]
        if near and with_queues:
            assert start >= near[0] - 1500, "within a file the queues tell more"
        assert start == 0 or start in {each.physical_offset for each in writer.stored}


def test_a_step_of_the_clock_is_no_loss(tmp_path: Path) -> None:
    writer = StoreWriter(tmp_path / "s", segment_bytes=1024)
    for number in range(60):
        writer.put(Draft(after_ms=5000 if number % 10 else -20_000))
    store = Store.open(str(writer.root))
    for stored in writer.stored:
        start = offset_before(store, stored.store_timestamp, 0, writer.end)
        assert stored.physical_offset >= start
        assert stored.physical_offset < offset_after(
            store, stored.store_timestamp + 1, 0, writer.end
        )


def test_how_large_records_are(writer: StoreWriter) -> None:
    store = Store.open(str(writer.root))
    sizes = {each.size for each in writer.stored}
    assert min(sizes) <= mean_record_bytes(store, 5000) <= max(sizes)
    assert mean_record_bytes(store, 1 << 40) == 1


def test_the_last_record_of_each_file(writer: StoreWriter) -> None:
    store = Store.open(str(writer.root))
    for segment in store.segments():
        inside = [
            each
            for each in writer.stored
            if segment.first_offset <= each.physical_offset < segment.end
        ]
        found = last_record(store, segment, min(segment.end, writer.end))
        last = inside[-1]
        assert found == (last.physical_offset + last.size, last.store_timestamp)


def test_a_file_without_records_has_no_last_one(tmp_path: Path) -> None:
    writer = StoreWriter(tmp_path / "s")
    writer.segment(0).write_bytes(bytes(4096))
    store = Store.open(str(writer.root))
    assert last_record(store, store.segments()[0], 4096) is None


def test_the_files_of_a_log_are_bisected(tmp_path: Path) -> None:
    writer = StoreWriter(tmp_path / "store", segment_bytes=1024)
    for _ in range(500):
        writer.put(Draft(body=bytes(400), after_ms=120_000))
    far = FarFiles()
    store = replace(Store.open(str(writer.root)), files=far).at_once()
    stored = writer.stored[250]
    start = offset_before(store, stored.store_timestamp, 0, writer.end)
    end = offset_after(store, stored.store_timestamp, 0, writer.end)
    assert start <= stored.physical_offset <= end
    assert end - start <= 4 * 1024
    assert far.counts["read"] <= 2 * 10
    assert far.counts["list"] == 1
