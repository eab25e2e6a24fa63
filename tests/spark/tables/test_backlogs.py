# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.spark.stores import SCHEDULE_TOPIC, START_MS, Draft, StoreWriter
from tests.spark.tables.rows import rows_of
from txrocketmq.broker.store.formats import formats
from txrocketmq.remoting.message import properties as names
from txrocketmq.remoting.message.topics import TIMER_TOPIC, TRANS_HALF_TOPIC, TRANS_OP_TOPIC
from txrocketmq.spark.arrow.errors import BadRecordError
from txrocketmq.spark.tables.backlogs import TRANSACTION_GROUP


def _delayed(topic: str, level: int, **more: str) -> Draft:
    properties = {names.REAL_TOPIC: topic, names.REAL_QID: "3", names.DELAY: str(level), **more}
    return Draft(SCHEDULE_TOPIC, level - 1, properties=properties)


def _moment(ms: int) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=ms)


def test_messages_that_wait_by_level(tmp_path: Path) -> None:
    writer = StoreWriter(tmp_path / "s")
    writer.put_all([_delayed("Orders", 3), _delayed("Orders", 3, KEYS="k"), _delayed("Pay", 5)])
    writer.write_config(delay_offsets={3: 1})
    rows = rows_of(writer.root, "delay")
    assert [(r["topic"], r["queueId"], r["delayLevel"], r["queueOffset"]) for r in rows] == [
        ("Orders", 3, 3, 1), ("Pay", 3, 5, 0),
    ]  # fmt: skip
    assert rows[0]["keys"] == "k"
    assert rows[0]["deliverTimestamp"] == _moment(writer.stored[1].store_timestamp + 3000)
    assert [row["topic"] for row in rows_of(writer.root, "delay", topic="Pay")] == ["Pay"]


def _timed(due_ms: int, key: str, **more: str) -> Draft:
    properties = {
        names.REAL_TOPIC: "Orders", names.REAL_QID: "0", names.UNIQ_KEY: key,
        names.TIMER_OUT_MS: str(due_ms), **more,
    }  # fmt: skip
    return Draft(TIMER_TOPIC, 0, properties=properties)


def test_messages_that_wait_for_a_time_of_their_own(tmp_path: Path) -> None:
    writer = StoreWriter(tmp_path / "s")
    writer.put_all(
        [
            _timed(START_MS + 5, "delivered"),
            _timed(START_MS + 9000, "rolled"),
            _timed(START_MS + 8000, "cancelled"),
            _timed(START_MS + 9000, "rolled"),
            _timed(START_MS + 1, "c", **{names.TIMER_DEL_UNIQKEY: "Orders+cancelled"}),
        ]
    )
    writer.write_config()
    check = dict.fromkeys([each.name for each in formats.TIMER_CHECK.subcons], 0)
    check["last_read_time_ms"] = START_MS + 1000
    data = formats.TIMER_CHECK.build(check)
    (writer.root / "config" / "timercheck").write_bytes(data.ljust(4096, b"\0"))
    (row,) = rows_of(writer.root, "delay")
    assert row["uniqKey"] == "rolled"
    assert row["queueOffset"] == 3, "the newest copy counts"
    assert row["deliverTimestamp"] == _moment(START_MS + 9000)
    assert row["delayLevel"] is None


def test_a_time_that_cannot_be_is_null(tmp_path: Path) -> None:
    writer = StoreWriter(tmp_path / "s")
    writer.put_all([_timed((1 << 63) - 1, "late"), _timed(1 << 80, "later")])
    writer.write_config()
    rows = rows_of(writer.root, "delay")
    assert [(row["uniqKey"], row["deliverTimestamp"]) for row in rows] == [
        ("late", None), ("later", None),
    ]  # fmt: skip


def test_a_time_in_an_ext_unit_that_is_gone_is_null(
    golden_store: Callable[[str], Path], tmp_path: Path
) -> None:
    whole = golden_store("5.4.0") / "clean"
    for name in ("commitlog", "consumequeue"):
        shutil.copytree(whole / name, tmp_path / name)
    rows = rows_of(tmp_path, "delay")
    assert rows
    assert any(row["deliverTimestamp"] is None for row in rows)


def _half(key: str, **more: str) -> Draft:
    properties = {
        names.REAL_TOPIC: "Orders", names.REAL_QID: "1", names.PGROUP: "pg",
        names.UNIQ_KEY: key, **more,
    }  # fmt: skip
    return Draft(TRANS_HALF_TOPIC, 0, properties=properties)


def test_transactions_without_an_end(tmp_path: Path) -> None:
    writer = StoreWriter(tmp_path / "s")
    checked = _half("checked", **{names.TRANSACTION_CHECK_TIMES: "2"})
    writer.put_all([*(_half(f"m{number}") for number in range(5)), checked])
    ops = (b"0", b"2,3,", b"4", b"odd")
    writer.put_all(Draft(TRANS_OP_TOPIC, 0, body, {"TAGS": "d"}) for body in ops)
    writer.write_config()
    rows = rows_of(writer.root, "transactions")
    assert [row["uniqKey"] for row in rows] == ["checked", "m1"]
    assert [(r["topic"], r["queueId"], r["producerGroup"], r["checkTimes"]) for r in rows] == [
        ("Orders", 1, "pg", 2), ("Orders", 1, "pg", 0),
    ]  # fmt: skip
    half, op = (f"{topic}@{TRANSACTION_GROUP}" for topic in (TRANS_HALF_TOPIC, TRANS_OP_TOPIC))
    writer.write_config(offsets={half: {0: 2}, op: {0: 1}})
    rows = rows_of(writer.root, "transactions")
    assert [row["uniqKey"] for row in rows] == ["checked"], "what was put back counts as seen"
    assert rows_of(writer.root, "transactions", topic="Other") == []


def _copy(half: Draft, **more: str) -> Draft:
    return replace(half, properties={**half.properties, **more})


def test_a_message_counts_once_however_often_its_producer_was_asked(tmp_path: Path) -> None:
    """Of a message only the last copy counts, and it counts as decided when the original is."""
    sent = replace(_half("asked"), born_timestamp=START_MS)
    again = replace(_half("asked"), born_timestamp=START_MS + 7)  # the producer's second attempt
    young, done = (replace(_half(key), born_timestamp=START_MS) for key in ("young", "done"))
    copies = [_copy(sent, **{names.TRANSACTION_CHECK_TIMES: str(times)}) for times in (1, 2, 3)]
    resumed = _copy(sent, **{names.TRANSACTION_CHECK_TIMES: "0"})
    left_alone = [
        _copy(half, **{names.TRAN_PREPARED_QUEUE_OFFSET: offset})
        for half, offset in ((young, "2"), (done, "3"), (young, "2"))
    ]
    writer = StoreWriter(tmp_path / "s")
    writer.put_all([sent, again, young, done, *copies, *left_alone, resumed])
    writer.put(Draft(TRANS_OP_TOPIC, 0, b"3", {"TAGS": "d"}))
    writer.write_config()
    rows = rows_of(writer.root, "transactions")
    assert [(row["uniqKey"], row["queueOffset"], row["checkTimes"]) for row in rows] == [
        ("asked", 10, 0), ("young", 9, 0), ("asked", 1, 0),
    ]  # fmt: skip


def test_a_decided_copy_decides_the_copies_before_it(tmp_path: Path) -> None:
    sent = replace(_half("asked"), born_timestamp=START_MS)
    asked = [_copy(sent, **{names.TRANSACTION_CHECK_TIMES: str(times)}) for times in (1, 2)]
    writer = StoreWriter(tmp_path / "s")
    writer.put_all([sent, *asked, Draft(TRANS_OP_TOPIC, 0, b"2", {"TAGS": "d"})])
    writer.write_config()
    assert rows_of(writer.root, "transactions") == []


def test_copies_are_found_in_a_long_queue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The queue is read backwards in steps, however they fall."""
    monkeypatch.setattr("txrocketmq.spark.tables.backlogs._BACKWARD_UNITS", 3)
    halves = [replace(_half(f"m{n}"), born_timestamp=START_MS) for n in range(10)]
    asked = {names.TRANSACTION_CHECK_TIMES: "1"}
    writer = StoreWriter(tmp_path / "s")
    writer.put_all([*halves, *(_copy(half, **asked) for half in halves)])
    writer.write_config()
    rows = rows_of(writer.root, "transactions")
    assert [row["queueOffset"] for row in rows] == list(range(19, 9, -1))


def test_backlogs_of_golden_stores(
    golden_version: str, golden_store: Callable[[str], Path]
) -> None:
    """One message of level 18 and one transaction left unknown, see the golden stores' page."""
    root = golden_store(golden_version) / "clean"
    assert [(row["topic"], row["delayLevel"]) for row in rows_of(root, "delay")] == [("Delay", 18)]
    (row,) = rows_of(root, "transactions")
    assert (row["topic"], row["producerGroup"], row["keys"]) == ("Trans", "golden_tx", "tx2")


def test_damage_fails_a_table_or_is_left_out_and_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    writer = StoreWriter(tmp_path / "s")
    writer.put_all([_delayed("Orders", 3), _delayed("Orders", 3)])
    writer.write_config()
    data = bytearray(writer.segment(0).read_bytes())
    data[4] ^= 1
    writer.segment(0).write_bytes(data)
    with pytest.raises(BadRecordError, match="physical offset 0 .*magic.*set badRecords"):
        rows_of(writer.root, "delay")
    assert len(rows_of(writer.root, "delay", badRecords="skip")) == 1
    assert "left out: 1 magic" in caplog.text
    aside = tmp_path / "aside"
    assert len(rows_of(writer.root, "delay", badRecords=f"quarantine={aside}")) == 1
    assert pq.read_table(aside).column("physicalOffset").to_pylist() == [0]
