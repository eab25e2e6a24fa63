# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import logging
import pickle
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.spark.clock import Clock
from tests.spark.stores import Draft, Stored, StoreWriter, drafts
from txrocketmq.remoting.message.compression import CompressionType
from txrocketmq.remoting.message.flags import transaction_type
from txrocketmq.spark.arrow.errors import BadRecordError, DataLossError, OptionError
from txrocketmq.spark.columns.output import Output
from txrocketmq.spark.options.options import SourceOptions
from txrocketmq.spark.options.pace import Pace
from txrocketmq.spark.planning import plan
from txrocketmq.spark.planning.plan import extents_of, splits, stores_of
from txrocketmq.spark.planning.scan import Scan
from txrocketmq.spark.planning.split import QueuePicks
from txrocketmq.spark.store.store import Store


def _read(writer: StoreWriter, **given_options: str) -> list[dict[str, Any]]:
    options = SourceOptions.of(
        {
            "storePath": str(writer.root),
            "brokerName": "a",
            "columns": "physicalOffset",
            **given_options,
        }
    )
    (extent,) = extents_of(stores_of(options), options)
    output = Output.of(options)
    scan = pickle.loads(pickle.dumps(Scan.of(options, output)))  # noqa: S301 - as it travels
    rows: list[dict[str, Any]] = []
    for split in splits(extent, options):
        for batch in scan.read(split, extent.wanted):
            assert batch.schema == output.schema
            assert len(batch)
            rows += batch.to_pylist()
    return rows


def _places(rows: list[dict[str, Any]]) -> list[int]:
    return [row["physicalOffset"] for row in rows]


def _visible(stored: Stored) -> bool:
    return transaction_type(stored.draft.sys_flag) in (0, 8)


def _messages(stored: list[Stored]) -> list[int]:
    """Of each message the offset of its record; an inner batch has several messages."""
    return [s.physical_offset for s in stored for _ in range(len(s.draft.inner) or 1)]


@settings(max_examples=examples(25))
@given(data=st.data())
def test_every_message_once_however_it_is_chosen(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    writer = StoreWriter(tmp_path_factory.mktemp("s") / "a", segment_bytes=32_768)
    writer.put_all(data.draw(st.lists(drafts(), min_size=1, max_size=25)))
    writer.put(Draft())  # surely whole, whatever the texts of the one before
    count = str(data.draw(st.integers(1, 9)))
    visible = [each for each in writer.stored if _visible(each)]
    assert _places(_read(writer, minPartitions=count)) == _messages(visible)
    everything = _read(writer, minPartitions=count, view="physical")
    assert _places(everything) == _messages(writer.stored)
    topic = data.draw(st.sampled_from([each.draft.topic for each in writer.stored]))
    chosen = [each for each in visible if each.draft.topic == topic]
    assert sorted(_places(_read(writer, topic=topic))) == _messages(chosen)


def test_tags_are_compared_as_texts(tmp_path: Path) -> None:
    """Aa and BB have the same hash."""
    writer = StoreWriter(tmp_path / "a")
    tags = ("Aa", "BB", None, "Aa", "C", "Aa ")
    writer.put_all(Draft("Rare", properties={} if tag is None else {"TAGS": tag}) for tag in tags)
    writer.put_all(Draft("Other", body=b"x" * 500) for _ in range(20))
    rows = _read(writer, subExpression="Aa || D", columns="tags,physicalOffset")
    assert [row["tags"] for row in rows] == ["Aa", "Aa"]
    log = _read(writer, subExpression="Aa || D", columns="tags", view="physical")
    assert [row["tags"] for row in log] == ["Aa", "Aa"], "from the log, too"
    assert len(_read(writer, subExpression="BB")) == 1, "the column is not needed for it"


def test_offsets_reach_into_inner_batches(tmp_path: Path) -> None:
    writer = StoreWriter(tmp_path / "a")
    inner: tuple[tuple[bytes, dict[str, str]], ...] = tuple(
        (b"%d" % number, {}) for number in range(5)
    )
    writer.put(Draft("Batches", inner=inner))
    writer.put(Draft("Batches", inner=inner))
    rows = _read(
        writer,
        topic="Batches",
        columns="queueOffset,body",
        startingOffsets='{"Batches": {"a": {"0": 3}}}',
        endingOffsets='{"Batches": {"a": {"0": 7}}}',
    )
    assert [(row["queueOffset"], row["body"]) for row in rows] == [
        (3, b"3"), (4, b"4"), (5, b"0"), (6, b"1"),
    ]  # fmt: skip


def _damaged(tmp_path: Path) -> tuple[StoreWriter, Stored]:
    writer = StoreWriter(tmp_path / "a")
    stored = writer.put_all(Draft(body=b"body %d" % number) for number in range(5))
    data = bytearray(writer.segment(0).read_bytes())
    data[stored[2].physical_offset + 88] ^= 1
    writer.segment(0).write_bytes(data)
    return writer, stored[2]


def test_damage_fails_or_is_left_out_and_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    writer, bad = _damaged(tmp_path)
    assert len(_read(writer)) == 5, "a body is not compared with its CRC unless asked to"
    with pytest.raises(BadRecordError, match=f"commitlog/0+ at physical offset {bad[1]} .*crc"):
        _read(writer, verify="crc")
    with caplog.at_level(logging.WARNING, "txrocketmq.spark"):
        rows = _read(writer, verify="crc", badRecords="skip")
    assert bad.physical_offset not in _places(rows)
    assert len(rows) == 4
    assert "left out: 1 crc" in caplog.text


@pytest.mark.parametrize(
    ("topic", "columns", "why"),
    [
        ("Large", "physicalOffset,body", "length: no record has this size"),
        ("Packed", "physicalOffset,body", "decompress: ZLIB body is larger than"),
        (None, "physicalOffset", "length: a record of 6.* at most, see maxRecordBytes"),
    ],
)
def test_large_records_are_read_by_option(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, topic: str | None, columns: str, why: str
) -> None:
    """By the log and by queues; what such a body is when it is decompressed counts as well."""
    writer = StoreWriter(tmp_path / "s", segment_bytes=80 << 20)
    writer.put(Draft())
    writer.put(Draft("Packed", body=bytes(65 << 20), compression=CompressionType.ZLIB))
    writer.put(Draft("Large", body=bytes(65 << 20)))
    writer.put(Draft("Other", body=bytes(9 << 20)))
    monkeypatch.setattr(plan, "_is_little", lambda _amount, _extent: True)
    chosen = {"columns": columns} | ({"topic": topic} if topic else {})
    with pytest.raises(BadRecordError, match=why):
        _read(writer, **chosen)
    places = [each.physical_offset for each in writer.stored if topic in (None, each.draft.topic)]
    rows = _read(writer, maxRecordBytes="66m", **chosen)
    assert _places(rows) == places
    assert topic is None or len(rows[0]["body"]) == 65 << 20


def test_damage_is_put_aside(tmp_path: Path) -> None:
    writer, bad = _damaged(tmp_path)
    aside = tmp_path / "aside"
    assert len(_read(writer, verify="crc", badRecords=f"quarantine={aside}")) == 4
    (row,) = pq.read_table(aside).to_pylist()
    assert row["physicalOffset"] == bad.physical_offset
    assert row["reason"] == "crc"
    assert row["file"] == str(writer.segment(0))
    assert row["data"][:4] == bad.data[:4]


def test_a_quarantine_nobody_can_write_to_is_refused_before_anything_is_read() -> None:
    options = SourceOptions.of({"storePath": "/s", "badRecords": "quarantine=ftp://host/aside"})
    with pytest.raises(OptionError, match="option badRecords=quarantine='ftp://host/aside'"):
        Scan.of(options, Output.of(options))


def test_a_file_that_goes_after_planning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("txrocketmq.spark.planning.split.TOGETHER_BYTES", 0)
    writer = StoreWriter(tmp_path / "a", segment_bytes=4096)
    writer.put_all(Draft(body=b"x" * 100) for _ in range(60))
    for fail in ("true", "false"):
        options = SourceOptions.of({"storePath": str(writer.root), "failOnDataLoss": fail})
        (extent,) = extents_of([Store.open(str(writer.root))], options)
        planned = splits(extent, options)
        writer.delete_segment()
        scan = Scan.of(options, Output.of(options))
        if fail == "true":
            with pytest.raises(DataLossError, match="failOnDataLoss=false"):
                list(scan.read(planned[0], extent.wanted))
        else:
            with caplog.at_level(logging.WARNING, "txrocketmq.spark"):
                assert list(scan.read(planned[0], extent.wanted)) == []
            assert "no bytes from 4096 to 8192" in caplog.text


def test_batches_are_about_as_large_as_asked(tmp_path: Path) -> None:
    writer = StoreWriter(tmp_path / "a", segment_bytes=1 << 20)
    writer.put_all(Draft(body=b"x" * 900) for _ in range(300))
    options = SourceOptions.of({"storePath": str(writer.root), "batchBytes": "10000"})
    (extent,) = extents_of([Store.open(str(writer.root))], options)
    (split,) = splits(extent, options)
    scan = Scan.of(options, Output.of(options))
    sizes = [len(batch) for batch in scan.read(split, extent.wanted)]
    assert sum(sizes) == 300
    assert max(sizes) * writer.stored[0].size <= 10_000
    assert max(sizes) >= 8


def test_verified_stores_agree(tmp_path: Path) -> None:
    writer = StoreWriter(tmp_path / "a")
    writer.put_all(Draft(properties={"KEYS": f"k{number}"}) for number in range(9))
    writer.put(Draft(), dispatch=False)
    assert len(_read(writer, verify="store", topic="Topic")) == 10
    path = writer.root / "consumequeue" / "Topic" / "0" / f"{0:020d}"
    data = bytearray(path.read_bytes())
    data[3 * 20 + 7] ^= 1
    path.write_bytes(data)
    with pytest.raises(BadRecordError, match="queue: queue 0 of Topic does not name"):
        _read(writer, verify="store")


def test_a_small_topic_is_read_by_its_queue(tmp_path: Path) -> None:
    writer = StoreWriter(tmp_path / "a")
    writer.put_all(Draft("Few" if number % 10 == 0 else "Many") for number in range(100))
    options = SourceOptions.of({"storePath": str(writer.root), "topic": "Few"})
    (extent,) = extents_of([Store.open(str(writer.root))], options)
    assert isinstance(splits(extent, options)[0], QueuePicks)
    assert len(_read(writer, topic="Few")) == 10


@pytest.mark.parametrize("topic", [{}, {"topic": "Rare"}])
def test_a_log_is_read_no_faster_than_is_allowed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, topic: dict[str, str]
) -> None:
    writer = StoreWriter(tmp_path / "broker-a", segment_bytes=1 << 20)
    drafts = [Draft(topic="Often", body=bytes(9000)) for _ in range(100)]
    for at in range(0, 100, 10):  # farther from each other than is worth reading over
        drafts[at] = Draft(topic="Rare", body=bytes(9000))
    writer.put_all(drafts)
    clock = Clock()
    monkeypatch.setattr(Pace, "of", lambda rate: Pace(rate, now=clock.now, sleep=clock.sleep))
    rows = _read(writer, maxBytesPerSecond="64k", **topic)
    assert len(rows) == (10 if topic else 100)
    seconds = len(rows) * 9000 / 65536
    assert 0.9 * (seconds - 1) < clock.now() < 1.5 * seconds, "of the rare topic its messages alone"
    clock.slept.clear()
    assert len(_read(writer, maxBytesPerSecond="1g", **topic)) == len(rows)
    assert clock.now() < 0.01
