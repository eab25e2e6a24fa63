# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import base64
import datetime
import json
import subprocess
import sys
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.spark.logs import Log, buffer_of, log_of, logs
from tests.spark.stores import Draft
from txrocketmq.remoting.message.compression import CompressionType, decompress
from txrocketmq.remoting.message.flags import MessageSysFlag
from txrocketmq.remoting.message.ids import encode_message_id, host_of
from txrocketmq.remoting.message.message import decode_batch
from txrocketmq.remoting.message.properties import decode_properties
from txrocketmq.spark.arrow import schema
from txrocketmq.spark.arrow.errors import OptionError
from txrocketmq.spark.arrow.records import Records
from txrocketmq.spark.arrow.walk import Stop, walk
from txrocketmq.spark.columns import decode as decode_module
from txrocketmq.spark.columns.decode import BadRecord, Decoded, Decoder

ALL = [column.name for column in schema.MESSAGES]
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
STATES = {0: "none", 4: "prepared", 8: "commit", 12: "rollback"}


def decoder(columns: Sequence[str] = ALL, **settings: Any) -> Decoder:
    return Decoder(columns, broker_name="broker-a", cluster="c1", **settings)


def records_of(log: Log) -> Records:
    return Records(log.buffer, np.array(log.starts, np.int64), log.first_offset)


def rows_of(parts: Sequence[Decoded]) -> list[dict[str, Any]]:
    return [row for part in parts for row in part.batch.to_pylist(maps_as_pydicts="strict")]


def bad_of(parts: Sequence[Decoded]) -> list[BadRecord]:
    return [bad for part in parts for bad in part.bad]


def time_of(value_ms: int) -> datetime.datetime:
    return EPOCH + datetime.timedelta(milliseconds=value_ms)


def cuts_of(body: bytes, size: int) -> list[int]:
    """Where the parts of the messages of a batch end, in a record of this size."""
    ends = [0]
    while ends[-1] < len(body):  # each begins with its size
        ends.append(ends[-1] + int.from_bytes(body[ends[-1] : ends[-1] + 4], "big"))
    return [size * end // len(body) for end in ends]


def expected_rows(parsed: Any) -> list[dict[str, Any]]:
    """The rows of a record, from what the declaration reads, one value after the other."""
    text = parsed.properties.decode("utf-8", "replace")
    flags = parsed.sys_flag
    body = parsed.body
    if flags & MessageSysFlag.COMPRESSED and body:
        body = decompress(body, flags)
    row = {
        "topic": parsed.topic.decode("utf-8", "replace"),
        "queueId": parsed.queue_id,
        "queueOffset": parsed.queue_offset,
        "body": body,
        "properties": decode_properties(text),
        "brokerName": "broker-a",
        "flag": parsed.flag,
        "bornTimestamp": time_of(parsed.born_timestamp),
        "storeTimestamp": time_of(parsed.store_timestamp),
        "bornHost": str(host_of(parsed.born_host.ip, parsed.born_host.port)),
        "storeHost": str(host_of(parsed.store_host.ip, parsed.store_host.port)),
        "physicalOffset": parsed.physical_offset,
        "storeSize": parsed.total_size,
        "bodySize": len(parsed.body),
        "bodyCRC": parsed.body_crc,
        "sysFlag": flags,
        "reconsumeTimes": parsed.reconsume_times,
        "preparedTransactionOffset": parsed.prepared_transaction_offset,
        "msgId": encode_message_id(
            host_of(parsed.store_host.ip, parsed.store_host.port), parsed.physical_offset
        ),
        "crcOk": parsed.body_crc == zlib.crc32(parsed.body) & 0x7FFFFFFF,
        "transactionState": STATES[flags & 12],
        "compression": "none"
        if not flags & 1
        else CompressionType((flags >> 8) & 7 or CompressionType.ZLIB).name.lower(),
        "cluster": "c1",
    }
    if flags & 0xC0 == 0xC0:
        messages = decode_batch(body)
        cuts = cuts_of(body, parsed.total_size)
        rows = [
            {
                **row,
                "body": each.body,
                "properties": each.properties,
                "flag": each.flag,
                "queueOffset": parsed.queue_offset + number,
                "bodySize": len(each.body),
                "storeSize": cuts[number + 1] - cuts[number],
            }
            for number, each in enumerate(messages)
        ]
    else:
        rows = [row]
    for each in rows:
        properties = each["properties"]
        each |= {"tags": properties.get("TAGS"), "keys": properties.get("KEYS")}
        each |= {"uniqKey": properties.get("UNIQ_KEY")}
    return [{name: each[name] for name in ALL} for each in rows]


def check(log: Log) -> None:
    parts = list(decoder().decode(records_of(log)))
    assert rows_of(parts) == [row for parsed in log.parsed for row in expected_rows(parsed)]
    assert bad_of(parts) == []
    for part in parts:
        part.batch.validate(full=True)
        assert part.batch.schema == schema.arrow_schema(schema.MESSAGES)


@given(log=logs())
@example(log=log_of([Draft(raw_properties=b"\xff\xfe\x01\xff\x02a\x01\xc3\x02")]))
@example(log=log_of([Draft(topic="Ünï"), Draft(born_ipv6=True, v2=True)] * 3))
def test_rows_are_those_of_the_declaration(log: Log) -> None:
    check(log)


@pytest.mark.parametrize("born_ipv6", [False, True])
@pytest.mark.parametrize("store_ipv6", [False, True])
@pytest.mark.parametrize("v2", [False, True])
@pytest.mark.parametrize("kind", [None, *CompressionType])
def test_every_kind_of_record(
    born_ipv6: bool, store_ipv6: bool, v2: bool, kind: CompressionType | None
) -> None:
    check(
        log_of(
            [
                Draft(
                    body=b"text " * number,
                    properties={"TAGS": "a", "KEYS": "k1 k2", "größe": "ß" * number},
                    born_ipv6=born_ipv6,
                    store_ipv6=store_ipv6,
                    v2=v2,
                    compression=kind,
                    trailing_separator=number % 2 == 0,
                    property_crc=number == 3,
                )
                for number in range(5)
            ],
            1 << 40,
        )
    )


def test_a_topic_that_is_no_utf8_loses_no_record() -> None:
    log = log_of([Draft(topic="Topic"), Draft(topic="Topic")])
    data = log.data.replace(b"Topic", b"To\xff\xc3c", 1)
    records = Records(buffer_of(data), np.array(log.starts, np.int64))
    (part,) = decoder(["topic"]).decode(records)
    assert part.batch.column(0).to_pylist() == ["To��c", "Topic"]
    assert part.bad == []


def test_times_that_no_timestamp_can_say_are_null() -> None:
    times = [0, -1, 1 << 62, -(1 << 62), (1 << 53)]
    log = log_of([Draft(born_timestamp=each) for each in times])
    (part,) = decoder(["bornTimestamp"]).decode(records_of(log))
    micros = part.batch.column(0).cast(pa.int64()).to_pylist()
    assert micros == [0, -1000, None, None, (1 << 53) * 1000]


def test_the_columns_asked_for_in_their_order() -> None:
    log = log_of([Draft(properties={"TAGS": "a"})])
    (part,) = decoder(["tags", "Topic", "QUEUEID"]).decode(records_of(log))
    assert part.batch.schema.names == ["tags", "topic", "queueId"]
    assert rows_of([part]) == [{"tags": "a", "topic": "Topic", "queueId": 0}]
    with pytest.raises(OptionError, match="nonsense"):
        decoder(["nonsense"])
    with pytest.raises(OptionError, match="propertiesFormat.*map, json, raw"):
        decoder(properties_format="xml")


@pytest.mark.parametrize("columns", [ALL, ["queueId"]])
def test_no_records(columns: list[str]) -> None:
    (part,) = decoder(columns).decode(Records(buffer_of(b""), np.empty(0, np.int64)))
    assert part.batch.num_rows == 0
    assert part.batch.schema == decoder(columns).schema


def test_cluster_may_be_unknown() -> None:
    log = log_of([Draft(), Draft()])
    (part,) = Decoder(["cluster"], broker_name="b").decode(records_of(log))
    assert part.batch.column(0).to_pylist() == [None, None]


@pytest.mark.parametrize("text", [b"a\x01b\x02TAGS\x01t\x02", b"\x02", b"", b"x\x01\xff\x02"])
def test_formats_of_properties(text: bytes) -> None:
    records = records_of(log_of([Draft(raw_properties=text)]))
    (as_json,) = decoder(["properties"], properties_format="json").decode(records)
    (raw,) = decoder(["properties"], properties_format="raw").decode(records)
    readable = text.decode("utf-8", "replace")
    assert json.loads(as_json.batch.column(0)[0].as_py()) == decode_properties(readable)
    assert raw.batch.column(0).to_pylist() == [readable]
    assert raw.batch.schema.field(0).type == pa.string()


# --- bodies ---


def test_bodies_as_they_are_stored() -> None:
    log = log_of([Draft(body=b"x" * 99, compression=CompressionType.ZSTD), Draft()])
    (part,) = decoder(["body", "bodySize"], decompress=False).decode(records_of(log))
    assert part.batch.column(0).to_pylist() == [each.body for each in log.parsed]
    assert part.batch.column(1).to_pylist() == [len(each.body) for each in log.parsed]


def test_a_body_that_does_not_decompress_is_bad() -> None:
    log = log_of([Draft(), Draft(body=b"y" * 50, compression=CompressionType.ZLIB), Draft()], 700)
    at = log.starts[1]
    data = bytearray(log.data)
    data[at + 88 : at + 98] = bytes(10)
    records = Records(buffer_of(bytes(data)), np.array(log.starts, np.int64), 700)
    parts = list(decoder(["body", "queueOffset"]).decode(records))
    assert [row["queueOffset"] for row in rows_of(parts)] == [0, 2]
    (bad,) = bad_of(parts)
    size = log.parsed[1].total_size
    assert (bad.physical_offset, bad.length, bad.reason) == (700 + at, size, "decompress")
    assert "ZLIB" in bad.detail
    assert bad.data == bytes(data[at : at + size])
    # Who does not ask for the body loses nothing.
    assert len(rows_of(list(decoder(["queueOffset"]).decode(records)))) == 3


def test_a_body_that_would_grow_too_large_is_bad() -> None:
    log = log_of([Draft(body=bytes(5000), compression=CompressionType.LZ4)])
    parts = list(decoder(["body"], max_body_bytes=4999).decode(records_of(log)))
    assert rows_of(parts) == []
    assert "larger than 4999" in bad_of(parts)[0].detail
    assert len(rows_of(list(decoder(["body"], max_body_bytes=5000).decode(records_of(log))))) == 1


@given(log=logs(max_size=20))
def test_bodies_that_grow_come_in_more_batches(log: Log) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(decode_module, "MAX_UNPACKED_BYTES", 60)
        check(log)


def test_a_batch_holds_no_more_than_it_may(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decode_module, "MAX_UNPACKED_BYTES", 100)
    draft = Draft(body=bytes(60), compression=CompressionType.ZLIB)
    parts = list(decoder().decode(records_of(log_of([draft, Draft(), draft, draft, Draft()]))))
    assert [part.batch.num_rows for part in parts] == [2, 1, 2]


# --- inner batches ---

INNER: tuple[tuple[bytes, dict[str, str]], ...] = (
    (b"one", {"TAGS": "a"}),
    (b"", {}),
    (b"three" * 9, {"TAGS": "c", "KEYS": "k"}),
)


@pytest.mark.parametrize("kind", [None, CompressionType.LZ4])
def test_messages_of_an_inner_batch(kind: CompressionType | None) -> None:
    log = log_of(
        [Draft(), Draft(inner=INNER, compression=kind, flag=7), Draft(), Draft(inner=INNER)], 5
    )
    check(log)
    (part,) = decoder(["queueOffset", "tags", "physicalOffset"]).decode(records_of(log))
    assert part.batch.column(0).to_pylist() == [0, 1, 2, 3, 2, 3, 4, 5]
    assert part.batch.column(1).to_pylist() == [None, "a", None, "c", None, "a", None, "c"]
    assert len(set(part.batch.column(2).to_pylist())) == 4
    (part,) = decoder(["storeSize"]).decode(records_of(log))
    sizes = part.batch.column(0).to_pylist()
    assert sum(sizes) == len(log.data), "all of them together are the log"
    assert min(sizes) > 0


def test_a_compressed_inner_batch_is_taken_apart_even_if_nothing_is_decompressed() -> None:
    kind = CompressionType.LZ4
    log = log_of([Draft(inner=INNER, compression=kind), Draft(compression=kind)])
    (part,) = decoder(["body"], decompress=False).decode(records_of(log))
    assert part.batch.column(0).to_pylist() == [*(body for body, _ in INNER), log.parsed[1].body]


@pytest.mark.parametrize("body", [b"short", bytes(16) + b"\0\0\0\5abc", b"\xff" * 40])
def test_an_inner_batch_that_is_none_is_bad(body: bytes) -> None:
    log = log_of([Draft(body=body, sys_flag=0xC0), Draft()])
    parts = list(decoder(["topic"]).decode(records_of(log)))
    assert len(rows_of(parts)) == 1
    assert bad_of(parts)[0].reason == "length"
    assert "message 0 of the inner batch" in bad_of(parts)[0].detail


def test_a_batch_that_need_not_be_unwrapped_is_one_row() -> None:
    log = log_of([Draft(body=b"of batches", sys_flag=MessageSysFlag.INNER_BATCH)])
    (part,) = decoder(["body"]).decode(records_of(log))
    assert part.batch.column(0).to_pylist() == [b"of batches"]


# --- damaged records ---


def test_records_whose_lengths_do_not_add_up_are_bad() -> None:
    log = log_of([Draft(), Draft(), Draft(body=bytes(100_000)), Draft()], 900)
    data = bytearray(log.data)
    data[log.starts[0] + 5] ^= 1  # magic
    data[log.starts[2] + 86] ^= 1  # body length
    records = Records(buffer_of(bytes(data)), np.array(log.starts, np.int64), 900)
    parts = list(decoder(["queueOffset"]).decode(records))
    assert [row["queueOffset"] for row in rows_of(parts)] == [1, 3]
    magic, length = bad_of(parts)
    assert (magic.reason, magic.physical_offset) == ("magic", 900)
    assert "0xdaa220a7" in magic.detail
    assert (length.reason, length.physical_offset) == ("length", 900 + log.starts[2])
    assert length.length == log.parsed[2].total_size
    assert len(length.data) == 64 << 10


def test_the_crc_is_checked_when_asked() -> None:
    log = log_of([Draft(), Draft(body=b"right"), Draft(compression=CompressionType.ZLIB)])
    data = log.data.replace(b"right", b"wrong")
    records = Records(buffer_of(data), np.array(log.starts, np.int64))
    parts = list(decoder(["body"], check_crc=True).decode(records))
    assert [row["body"] for row in rows_of(parts)] == [b"body", b"body"]
    (bad,) = bad_of(parts)
    assert (bad.reason, bad.physical_offset) == ("crc", log.starts[1])
    assert f"{zlib.crc32(b'wrong') & 0x7FFFFFFF:#010x}" in bad.detail
    (unchecked,) = decoder(["crcOk"]).decode(records)
    assert unchecked.batch.column(0).to_pylist() == [True, False, True]


@given(log=logs(max_size=5), data=st.data())
def test_whatever_is_damaged_nothing_is_raised_and_nothing_lost(
    log: Log, data: st.DataObject
) -> None:
    damaged = bytearray(log.data)
    for _ in range(data.draw(st.integers(1, 4))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    records = Records(buffer_of(bytes(damaged)), np.array(log.starts, np.int64), log.first_offset)
    parts = list(decoder(check_crc=True).decode(records))
    seen = {place for part in parts for place in part.batch.column("physicalOffset").to_pylist()}
    seen |= {bad.physical_offset for bad in bad_of(parts)}
    unread = [
        place for place in records.physical_offset.tolist() if place not in seen
    ]  # an inner batch may have become empty
    assert all(records.body_length[records.physical_offset == place] == 0 for place in unread)
    for part in parts:
        part.batch.validate(full=True)
        nulls = {name for name in ALL if part.batch.column(name).null_count}
        assert nulls <= {column.name for column in schema.MESSAGES if column.nullable}


# --- what the original wrote ---


def test_golden_messages_field_by_field(
    golden_version: str,
    golden_store: Callable[[str], Path],
    golden_messages: Callable[[str], list[dict[str, Any]]],
) -> None:
    rows: dict[int, dict[str, Any]] = {}
    for path in sorted((golden_store(golden_version) / "clean" / "commitlog").iterdir()):
        buffer = buffer_of(path.read_bytes())
        found = walk(buffer, int(path.name))
        assert found.reason in (Stop.BLANK, Stop.UNWRITTEN)
        records = Records(buffer, found.starts, int(path.name))
        parts = list(decoder(check_crc=True).decode(records))
        assert bad_of(parts) == []
        rows |= {row["physicalOffset"]: row for row in rows_of(parts)}
    messages = golden_messages(golden_version)
    assert messages
    for message in messages:
        row = rows[message["commitLogOffset"]]
        properties = {
            name: value
            for name, value in message["properties"].items()
            # The client adds them, or names again what the record says.
            if name in row["properties"] or name not in ("MIN_OFFSET", "MAX_OFFSET", "WAIT")
        }
        assert row["properties"] == properties
        assert row["body"] == base64.b64decode(message["bodyBase64"])
        assert row["bornHost"].partition(":")[0] == message["bornHost"].lstrip("/")
        assert f"/{row['storeHost']}" == message["storeHost"]
        assert row["sysFlag"] & ~1 == message["sysFlag"] & ~1
        assert row["bornTimestamp"] == time_of(message["bornTimestamp"])
        assert row["storeTimestamp"] == time_of(message["storeTimestamp"])
        assert row["msgId"] == message["offsetMsgId"]
        for name in (
            "topic", "queueId", "queueOffset", "storeSize", "bodyCRC", "flag", "reconsumeTimes",
            "preparedTransactionOffset",
        ):  # fmt: skip
            assert row[name] == message[name], name


def test_it_needs_neither_server_nor_spark() -> None:
    code = (
        "import sys, txrocketmq.spark.columns.decode\n"
        "assert not {'twisted', 'pyspark', 'pandas'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
