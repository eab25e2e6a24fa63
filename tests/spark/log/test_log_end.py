# SPDX-License-Identifier: Apache-2.0
"""Where a log ends; torn tails and growing logs are in test_log_reader.py, too."""

from __future__ import annotations

import os
import shutil
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.spark.far_files import FarFiles
from tests.spark.stores import Draft, StoreWriter
from txrocketmq.spark.log import log_end
from txrocketmq.spark.log.log_end import end_of_log
from txrocketmq.spark.store.store import Store

_SEGMENT_BYTES = 4096


@pytest.fixture(autouse=True)
def _forgotten() -> None:
    log_end._known.clear()


@pytest.fixture
def writer(tmp_path: Path) -> StoreWriter:
    writer = StoreWriter(tmp_path / "store", segment_bytes=_SEGMENT_BYTES)
    writer.put_all(Draft(body=b"b" * 300, queue_id=n % 4) for n in range(30))
    return writer


def _overwrite(writer: StoreWriter, offset: int, data: bytes) -> None:
    first = offset - offset % _SEGMENT_BYTES
    with writer.segment(first).open("r+b") as file:
        file.seek(offset - first)
        file.write(data)


def _end(writer: StoreWriter) -> int:
    return end_of_log(Store.open(str(writer.root)))


def test_no_log(tmp_path: Path) -> None:
    (tmp_path / "commitlog").mkdir()
    assert end_of_log(Store.open(str(tmp_path))) == 0


@pytest.mark.parametrize("first_offset", [0, 5 * _SEGMENT_BYTES])
def test_nothing_written(tmp_path: Path, first_offset: int) -> None:
    path = tmp_path / "commitlog" / f"{first_offset:020d}"
    path.parent.mkdir()
    path.write_bytes(bytes(_SEGMENT_BYTES))
    assert end_of_log(Store.open(str(tmp_path))) == first_offset


@pytest.mark.parametrize("has_queues", [True, False])
def test_the_next_file_is_made_ahead_of_time(writer: StoreWriter, has_queues: bool) -> None:
    last = (writer.end // _SEGMENT_BYTES + 1) * _SEGMENT_BYTES
    writer.segment(last).write_bytes(bytes(_SEGMENT_BYTES))
    if not has_queues:
        shutil.rmtree(writer.root / "consumequeue")
    assert _end(writer) == writer.end


def test_records_that_are_not_dispatched_count(writer: StoreWriter) -> None:
    for _ in range(40):
        writer.put(Draft(body=b"c" * 200), dispatch=False)
        assert _end(writer) == writer.end
    log_end._known.clear()
    assert _end(writer) == writer.end


def test_a_log_that_was_cut_off_and_written_anew(writer: StoreWriter) -> None:
    assert _end(writer) == writer.end
    cut = writer.stored[20]
    other = StoreWriter(writer.root.parent / "other", segment_bytes=_SEGMENT_BYTES)
    other.put_all(each.draft for each in writer.stored[:20])
    other.put_all(Draft(body=b"d" * 100) for _ in range(3))
    shutil.rmtree(writer.root)
    other.root.rename(writer.root)
    assert cut.physical_offset < _end(writer) == other.end < writer.end


def test_what_a_queue_knows_is_in_the_log_even_damaged(writer: StoreWriter) -> None:
    last = writer.stored[-1]
    for at, data in ((4, b"\0"), (84, b"\x7f"), (92, b"?")):  # magic, body length, body
        _overwrite(writer, last.physical_offset + at, data)
        assert _end(writer) == writer.end
        log_end._known.clear()
        _overwrite(writer, last.physical_offset, last.data)
    assert _end(writer) == writer.end
    _overwrite(writer, last.physical_offset + 4, b"\0")  # now that it is known
    assert _end(writer) == writer.end


def test_a_queue_that_is_ahead_of_the_log(writer: StoreWriter) -> None:
    """After a power failure: the queue's page was written, the log's was not."""
    lost = writer.stored[-2:]
    for each in lost:
        _overwrite(writer, each.physical_offset, bytes(each.size))
    assert _end(writer) == lost[0].physical_offset


def test_undispatched_records_behind_damage_would_be_cut_off_by_the_broker(
    writer: StoreWriter,
) -> None:
    end = writer.end
    damaged = writer.put(Draft(), dispatch=False)
    writer.put(Draft(), dispatch=False)
    _overwrite(writer, damaged.physical_offset + 4, b"\0")
    assert _end(writer) == end


@pytest.mark.parametrize("damage", [(4, b"\0"), (0, b"\x00\x00\x20\x00"), (0, b"\x7f")])
def test_without_queues_records_behind_damage_count(
    writer: StoreWriter, damage: tuple[int, bytes]
) -> None:
    at, data = damage  # of the magic, or of the size: then it goes beyond the file
    _overwrite(writer, writer.stored[-3].physical_offset + at, data)
    shutil.rmtree(writer.root / "consumequeue")
    assert _end(writer) == writer.end


def test_a_copy_that_ends_in_the_middle_of_a_record(writer: StoreWriter) -> None:
    """Without queues what is in its body counts for nothing."""
    last = writer.put(Draft(fakes=4))
    shutil.rmtree(writer.root / "consumequeue")
    path = writer.segment(last.physical_offset // _SEGMENT_BYTES * _SEGMENT_BYTES)
    os.truncate(path, last.physical_offset % _SEGMENT_BYTES + last.size - 10)
    assert _end(writer) == last.physical_offset


def test_a_size_that_makes_no_sense_costs_no_memory(tmp_path: Path) -> None:
    writer = StoreWriter(tmp_path / "store", segment_bytes=1 << 30)
    writer.put(Draft())
    torn = writer.put(Draft(), dispatch=False)
    with writer.segment(0).open("r+b") as file:
        file.seek(torn.physical_offset)
        file.write((900 << 20).to_bytes(4, "big"))
    tracemalloc.start()
    try:
        assert _end(writer) == torn.physical_offset
        assert tracemalloc.get_traced_memory()[1] < 64 << 20
    finally:
        tracemalloc.stop()


def test_a_file_that_is_cut_short_while_it_is_read(
    writer: StoreWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.rmtree(writer.root / "consumequeue")
    store = Store.open(str(writer.root))
    listed = store.segments()
    os.truncate(listed[-1].path, writer.stored[-1].physical_offset % _SEGMENT_BYTES + 30)
    monkeypatch.setattr(Store, "segments", lambda _: listed)
    assert end_of_log(store) == writer.stored[-1].physical_offset


def test_a_text_that_ends_with_zeros(writer: StoreWriter) -> None:
    """Told from a torn one by the queue, or by a broker that has ended."""
    end = writer.end
    stored = writer.put(Draft(raw_properties=b"a\x01b\0\0"), dispatch=False)
    assert _end(writer) == end
    writer.dispatch(stored)
    assert _end(writer) == writer.end
    log_end._known.clear()
    shutil.rmtree(writer.root / "consumequeue")
    assert _end(writer) == end
    writer.close()
    assert _end(writer) == writer.end


def test_golden_stores(
    golden_store: Callable[[str], Path],
    golden_messages: Callable[[str], list[dict[str, Any]]],
    golden_version: str,
) -> None:
    messages = golden_messages(golden_version)
    last = max(each["commitLogOffset"] + each["storeSize"] for each in messages)
    for kind in ("clean", "crashed"):
        store = Store.open(str(golden_store(golden_version) / kind))
        end = end_of_log(store)
        assert end >= last
        assert not any(store.read(end, 1 << 20))


def test_a_log_far_away_ends_where_it_does_and_little_is_read(tmp_path: Path) -> None:
    """Of 40 topics all but one have ended when the log was young."""
    writer = StoreWriter(tmp_path / "store", segment_bytes=4 << 20, queue_units=30_000)
    for number in range(1200):
        writer.put(Draft(f"T{number % 40 if number < 200 else 33}", body=bytes([1]) * 5000))
    far = FarFiles()
    store = replace(Store.open(str(writer.root)), files=far)
    assert end_of_log(store) == writer.end
    assert far.counts["tree"] == 1
    assert far.counts["list"] <= 4, "one for each folder"
    assert far.counts["read"] <= 60 + 3 * 40
    assert far.counts["bytes"] < 2 << 20
    for _ in range(3):
        writer.put(Draft(body=bytes(100)), dispatch=False)
    assert end_of_log(store) == writer.end
