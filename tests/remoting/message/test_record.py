# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from construct import ConstructError

from txrocketmq.remoting.message import record
from txrocketmq.remoting.primitives.packing import fixed

LOG_FILE_BYTES = 262_144


def walk(store: Path) -> Iterator[tuple[Any, bytes]]:
    """Every record of a store's commit log, parsed, with its bytes."""
    for path in sorted((store / "commitlog").iterdir()):
        data = path.read_bytes()
        assert len(data) == LOG_FILE_BYTES
        offset = 0
        while offset < len(data):
            blank = record.BLANK.parse(data[offset:])
            if blank.magic == record.MAGIC_BLANK:
                assert offset + blank.room == LOG_FILE_BYTES
                break
            if blank.room == 0:
                assert not any(data[offset:])
                break
            parsed = record.RECORD.parse(data[offset : offset + blank.room])
            assert parsed.physical_offset == int(path.name) + offset
            yield parsed, data[offset : offset + blank.room]
            offset += parsed.total_size


@pytest.mark.parametrize("state", ["clean", "crashed"])
def test_golden_records_parse_and_build_to_the_same_bytes(
    golden_store: Callable[[str], Path], golden_version: str, state: str
) -> None:
    count = 0
    for parsed, packed in walk(golden_store(golden_version) / state):
        assert parsed.magic == record.MAGIC_V1
        assert parsed.body_crc == zlib.crc32(parsed.body) & 0x7FFFFFFF
        assert parsed.properties.endswith(b"\x02") == (golden_version == "5.4.0")
        assert record.build_record(parsed) == packed
        count += 1
    assert count == (404 if (golden_version, state) == ("5.4.0", "clean") else 403)


def fields(**changed: Any) -> dict[str, Any]:
    return {
        "magic": record.MAGIC_V1,
        "body_crc": 1,
        "queue_id": 2,
        "flag": 3,
        "queue_offset": 4,
        "physical_offset": 5,
        "sys_flag": 0,
        "born_timestamp": 6,
        "born_host": {"ip": b"\x0a\0\0\1", "port": 7},
        "store_timestamp": 8,
        "store_host": {"ip": b"\x0a\0\0\2", "port": 9},
        "reconsume_times": 10,
        "prepared_transaction_offset": 11,
        "body": b"body",
        "topic": b"topic",
        "properties": b"k\x01v\x02",
    } | changed


IPV6 = {"ip": bytes(range(16)), "port": 7}


@pytest.mark.parametrize(
    ("changed", "extra_bytes"),
    [
        ({}, 0),
        ({"magic": record.MAGIC_V2}, 1),
        ({"sys_flag": record.BORN_HOST_IPV6, "born_host": IPV6}, 12),
        ({"sys_flag": record.STORE_HOST_IPV6, "store_host": IPV6}, 12),
        ({"sys_flag": 0x30, "born_host": IPV6, "store_host": IPV6}, 24),
    ],
)
def test_size_and_round_trip_of_each_form(changed: dict[str, Any], extra_bytes: int) -> None:
    packed = record.build_record(fields(**changed))
    assert len(packed) == 91 + len(b"bodytopick1v2") + extra_bytes
    parsed = record.RECORD.parse(packed)
    assert parsed.total_size == len(packed)
    for name, value in fields(**changed).items():
        assert parsed[name] == value


@pytest.mark.parametrize(
    ("sys_flag", "layout"),
    [
        (0, record.RECORD_FIXED),
        (record.BORN_HOST_IPV6, record.RECORD_FIXED_BORN_IPV6),
        (record.STORE_HOST_IPV6, record.RECORD_FIXED_STORE_IPV6),
        (0x30, record.RECORD_FIXED_BOTH_IPV6),
    ],
)
def test_fixed_parts_are_the_start_of_the_record(sys_flag: int, layout: Any) -> None:
    hosts = {
        "born_host": IPV6 if sys_flag & record.BORN_HOST_IPV6 else {"ip": b"\1\2\3\4", "port": 1},
        "store_host": IPV6 if sys_flag & record.STORE_HOST_IPV6 else {"ip": b"\1\2\3\4", "port": 1},
    }
    packed = record.build_record(fields(sys_flag=sys_flag, **hosts))
    codec = fixed(layout)
    start = dict(zip(codec.names, codec.struct.unpack_from(packed), strict=True))
    assert start["sys_flag"] == sys_flag
    assert start["store_host_ip"] == hosts["store_host"]["ip"]
    assert start["prepared_transaction_offset"] == 11
    assert packed[codec.size : codec.size + start["body_length"]] == b"body"


@pytest.mark.parametrize(
    "damage",
    [
        lambda packed: packed[:-1],
        lambda packed: packed[:4] + b"\xcb\xd4\x31\x94" + packed[8:],
        lambda packed: (len(packed) + 1).to_bytes(4, "big") + packed[4:] + b"\0",
        lambda packed: packed[:84] + b"\xff\xff\xff\xff" + packed[88:],
        lambda packed: packed.replace(b"\x05topic", b"\x85topic"),
    ],
    ids=["cut", "magic", "total size", "body length", "topic length"],
)
def test_what_is_not_consistent_does_not_parse(damage: Callable[[bytes], bytes]) -> None:
    packed = record.build_record(fields())
    with pytest.raises(ConstructError):
        record.RECORD.parse(damage(packed))


def test_topic_too_long_for_its_magic_does_not_build() -> None:
    with pytest.raises(ConstructError):
        record.build_record(fields(topic=b"t" * 128))
    long = record.build_record(fields(topic=b"t" * 128, magic=record.MAGIC_V2))
    assert record.RECORD.parse(long).topic == b"t" * 128


def test_batch_entry_is_22_bytes_and_its_contents() -> None:
    packed = record.build_batch_entry({"flag": -1, "body": b"b", "properties": b"k\x01v"})
    assert packed == (b"\0\0\0\x1a" + bytes(8) + b"\xff\xff\xff\xff" + b"\0\0\0\1b" + b"\0\3k\x01v")
    parsed = record.BATCH_ENTRY.parse(packed)
    assert (parsed.flag, parsed.body, parsed.properties) == (-1, b"b", b"k\x01v")


def test_magic_numbers_are_the_originals() -> None:
    assert record.MAGIC_V1 & 0xFFFFFFFF == 0xDAA320A7
    assert record.MAGIC_V2 & 0xFFFFFFFF == 0xDAA320AB
    assert record.MAGIC_BLANK & 0xFFFFFFFF == 0xCBD43194
