# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.spark.stores import Draft, StoreWriter
from tests.spark.tables.rows import rows_of


def _moment(ms: int) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=ms)


@pytest.fixture
def writer(tmp_path: Path) -> StoreWriter:
    writer = StoreWriter(tmp_path / "broker-a", segment_bytes=4096)
    keys = {"KEYS": "k"}
    writer.put_all(Draft(body=b"x" * 100, fakes=1, properties=keys) for _ in range(60))
    writer.write_config()
    return writer


def test_segments(writer: StoreWriter) -> None:
    rows = rows_of(writer.root, "segments")
    assert [row["firstOffset"] for row in rows] == list(range(0, writer.end, 4096))
    for row in rows:
        first = row["firstOffset"]
        inside = [s for s in writer.stored if first <= s.physical_offset < first + 4096]
        assert row["file"] == str(writer.segment(first))
        assert row["usedBytes"] == inside[-1].physical_offset + inside[-1].size - first
        assert row["firstTimestamp"] == _moment(inside[0].store_timestamp)
        assert row["lastTimestamp"] == _moment(inside[-1].store_timestamp)


def test_checkpoint(writer: StoreWriter) -> None:
    (row,) = rows_of(writer.root, "checkpoint")
    assert row["physicMsgTimestamp"] == _moment(writer.stored[-1].store_timestamp)
    assert row["indexMsgTimestamp"] is None
    assert (row["minOffset"], row["endOfLog"], row["abort"]) == (0, writer.end, True)
    (writer.root / "checkpoint").unlink()
    writer.close()
    (writer.root / "checkpoint").unlink()
    (row,) = rows_of(writer.root, "checkpoint")
    assert row["physicMsgTimestamp"] is None
    assert not row["abort"]


def test_damaged_records(writer: StoreWriter) -> None:
    assert rows_of(writer.root, "quarantine", verify="crc") == []
    magic, crc = writer.stored[3], writer.stored[30]
    for stored, place in ((magic, 4), (crc, 90)):
        path = writer.segment(stored.physical_offset // 4096 * 4096)
        data = bytearray(path.read_bytes())
        data[stored.physical_offset % 4096 + place] ^= 1
        path.write_bytes(data)
    (row,) = rows_of(writer.root, "quarantine")
    assert (row["physicalOffset"], row["reason"]) == (magic.physical_offset, "magic")
    assert row["length"] == magic.size
    rows = rows_of(writer.root, "quarantine", verify="crc", minPartitions="5")
    assert [(row["physicalOffset"], row["reason"]) for row in rows] == [
        (magic.physical_offset, "magic"), (crc.physical_offset, "crc"),
    ]  # fmt: skip
    assert rows[1]["file"] == str(writer.segment(crc.physical_offset // 4096 * 4096))


def test_what_queues_and_index_name_wrongly(writer: StoreWriter) -> None:
    path = min((writer.root / "consumequeue" / "Topic" / "0").iterdir())
    data = bytearray(path.read_bytes())
    data[20 * 7 + 7] ^= 1  # the physical offset of the eighth unit
    path.write_bytes(data)
    assert rows_of(writer.root, "quarantine", verify="crc") == []
    (row,) = rows_of(writer.root, "quarantine", verify="store")
    assert (row["physicalOffset"], row["reason"]) == (writer.stored[7].physical_offset, "queue")
    path = min((writer.root / "index").iterdir())
    data = bytearray(path.read_bytes())
    data[40 + 4 * 32 + 20 * 5 + 4 + 7] ^= 1
    path.write_bytes(data)
    rows = rows_of(writer.root, "quarantine", verify="store")
    assert [row["reason"] for row in rows] == ["queue", "index"]


def test_what_is_gone(writer: StoreWriter) -> None:
    assert rows_of(writer.root, "dataloss") == []
    writer.delete_segment()
    writer.segment(8192).unlink()
    rows = rows_of(writer.root, "dataloss")
    assert [tuple(row.values())[1:-1] for row in rows] == [
        (None, None, 0, 4096, "deleted"), (None, None, 8192, 12288, "missing"),
    ]  # fmt: skip


def test_what_is_gone_from_an_offset_on(writer: StoreWriter) -> None:
    writer.delete_segment()
    first = min(s.queue_offset for s in writer.stored if s.physical_offset >= 4096)
    rows = rows_of(writer.root, "dataloss", startingOffsets='{"log": {"broker-a": 1000}}')
    assert [(row["fromOffset"], row["toOffset"]) for row in rows] == [(1000, 4096)]
    later = '{"log": {"broker-a": 5000}}'
    assert rows_of(writer.root, "dataloss", startingOffsets=later) == []
    queue = '{"Topic": {"broker-a": {"0": 2}}}'
    rows = rows_of(writer.root, "dataloss", startingOffsets=queue)
    assert [tuple(row.values())[1:-1] for row in rows] == [
        (None, None, 0, 4096, "deleted"), ("Topic", 0, 2, first, "deleted"),
    ]  # fmt: skip
