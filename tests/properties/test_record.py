# SPDX-License-Identifier: Apache-2.0
"""The fast decoder of records against the declaration: same messages, same refusals."""

from __future__ import annotations

import socket
from typing import Any

import pytest
from construct import ConstructError
from hypothesis import given
from hypothesis import strategies as st

from txrocketmq.remoting.message.ids import Host
from txrocketmq.remoting.message.message import (
    Message,
    MessageDecodeError,
    MessageExt,
    decode_batch,
    decode_message,
    decode_messages,
    encode_batch,
    encode_message,
)
from txrocketmq.remoting.message.properties import decode_properties
from txrocketmq.remoting.message.record import (
    BATCH_ENTRY,
    BORN_HOST_IPV6,
    MAGIC_V1,
    MAGIC_V2,
    RECORD,
    STORE_HOST_IPV6,
    build_batch_entry,
    build_record,
)

INT32 = st.integers(-(1 << 31), (1 << 31) - 1)
INT64 = st.integers(-(1 << 63), (1 << 63) - 1)
WORDS = st.text(st.characters(codec="utf-8", exclude_characters="\x01\x02"), min_size=1, max_size=9)
PROPERTIES = st.dictionaries(WORDS, WORDS, max_size=5)


def property_bytes(properties: dict[str, str]) -> bytes:
    return "".join(f"{name}\x01{value}\x02" for name, value in properties.items()).encode()


@st.composite
def records(draw: st.DrawFn) -> dict[str, Any]:
    """Fields of a record, as `build_record` takes them."""
    magic = draw(st.sampled_from([MAGIC_V1, MAGIC_V2]))
    sys_flag = draw(INT32)

    def host(ipv6_bit: int) -> dict[str, Any]:
        size = 16 if sys_flag & ipv6_bit else 4
        return {"ip": draw(st.binary(min_size=size, max_size=size)), "port": draw(INT32)}

    topic = draw(st.binary(max_size=0x7F if magic == MAGIC_V1 else 300))
    fields = {
        name: draw(INT32)
        for name in ("body_crc", "queue_id", "flag", "reconsume_times")
    }  # fmt: skip
    for name in (
        "queue_offset",
        "physical_offset",
        "born_timestamp",
        "store_timestamp",
        "prepared_transaction_offset",
    ):
        fields[name] = draw(INT64)
    return {
        **fields,
        "magic": magic,
        "sys_flag": sys_flag,
        "born_host": host(BORN_HOST_IPV6),
        "store_host": host(STORE_HOST_IPV6),
        "body": draw(st.binary(max_size=50)),
        "topic": topic,
        "properties": draw(PROPERTIES.map(property_bytes) | st.binary(max_size=50)),
    }


def decode(buffer: bytes, offset: int = 0) -> tuple[MessageExt, int]:
    return decode_message(buffer, offset, decompress_body=False)


def address(ip: str) -> bytes:
    return socket.inet_pton(socket.AF_INET6 if ":" in ip else socket.AF_INET, ip)


def check_same(message: MessageExt, parsed: Any) -> None:
    assert message.topic == parsed.topic.decode("utf-8", "replace")
    assert message.body == parsed.body
    assert message.flag == parsed.flag
    assert message.properties == decode_properties(parsed.properties.decode("utf-8", "replace"))
    assert message.queue_id == parsed.queue_id
    assert message.queue_offset == parsed.queue_offset
    assert message.sys_flag == parsed.sys_flag
    assert message.born_timestamp == parsed.born_timestamp
    assert address(message.born_host.ip) == parsed.born_host.ip
    assert message.born_host.port == parsed.born_host.port
    assert message.store_timestamp == parsed.store_timestamp
    assert address(message.store_host.ip) == parsed.store_host.ip
    assert message.store_host.port == parsed.store_host.port
    assert message.commit_log_offset == parsed.physical_offset
    assert message.store_size == parsed.total_size
    assert message.body_crc == parsed.body_crc
    assert message.reconsume_times == parsed.reconsume_times
    assert message.prepared_transaction_offset == parsed.prepared_transaction_offset


@given(records(), st.binary(max_size=9), st.binary(max_size=9))
def test_decodes_what_the_declaration_builds(
    fields: dict[str, Any], before: bytes, after: bytes
) -> None:
    packed = build_record(fields)
    buffer = before + packed + after
    for view in (buffer, bytearray(buffer), memoryview(buffer)):
        message, end = decode_message(view, len(before), decompress_body=False)
        assert end == len(before) + len(packed)
        assert type(message.body) is bytes
        check_same(message, RECORD.parse(packed))


@given(records())
def test_record_cut_short_anywhere_is_refused(fields: dict[str, Any]) -> None:
    packed = build_record(fields)
    for size in range(len(packed)):
        with pytest.raises(MessageDecodeError) as caught:
            decode(b"\xff" + packed[:size], 1)
        assert caught.value.offset == 1
        assert "cut short" in caught.value.reason


@given(records(), st.data())
def test_damage_is_decoded_or_refused_as_by_the_declaration(
    fields: dict[str, Any], data: st.DataObject
) -> None:
    packed = bytearray(build_record(fields))
    places = st.integers(0, len(packed) - 1)
    for place in data.draw(st.lists(places, min_size=1, max_size=4)):
        packed[place] = data.draw(st.sampled_from([0, 1, 0x7F, 0x80, 0xFF]) | st.integers(0, 255))
    check_same_verdict(bytes(packed))


def check_same_verdict(buffer: bytes) -> None:
    try:
        parsed = RECORD.parse(buffer)
    except ConstructError:
        with pytest.raises(MessageDecodeError):
            decode(buffer)
    else:
        message, end = decode(buffer)
        assert end == parsed.total_size
        check_same(message, parsed)


LENGTHS = st.sampled_from(
    [-(1 << 31), -129, -2, -1, 0, 1, 2, 127, 128, (1 << 15) - 1, (1 << 31) - 1]
)


@given(records(), st.sampled_from(["total_size", "body_length"]), LENGTHS | INT32)
def test_other_lengths_are_decoded_or_refused_as_by_the_declaration(
    fields: dict[str, Any], name: str, value: int
) -> None:
    packed = build_record(fields)
    at = 0 if name == "total_size" else packed_offset_of_body_length(RECORD.parse(packed))
    length = value.to_bytes(4, "big", signed=True)
    check_same_verdict(packed[:at] + length + packed[at + 4 :] + bytes(300))


@pytest.mark.parametrize("magic", [MAGIC_V1, MAGIC_V2])
def test_every_length_of_a_small_record(magic: int) -> None:
    fields = {
        "magic": magic, "sys_flag": 0, "body": b"", "topic": b"", "properties": b"",
        "born_host": {"ip": bytes(4), "port": 0}, "store_host": {"ip": bytes(4), "port": 0},
    } | dict.fromkeys(
        ("body_crc", "queue_id", "flag", "queue_offset", "physical_offset", "born_timestamp",
         "store_timestamp", "reconsume_times", "prepared_transaction_offset"), 0,
    )  # fmt: skip
    head = build_record(fields)[4:84]
    for size in range(86, 98):
        for body_length in range(-3, size - 85):
            for byte in (0, 1, 2, 3, 5, 0xFF):
                tail = bytes([byte, 1, 0, byte, 0, 1, 2, 0, 0, byte])[: size - 88]
                length = body_length.to_bytes(4, "big", signed=True)
                check_same_verdict(size.to_bytes(4, "big") + head + length + tail)


def packed_offset_of_body_length(parsed: Any) -> int:
    topic_length_bytes = 1 if parsed.magic == MAGIC_V1 else 2
    after = len(parsed.body) + topic_length_bytes + len(parsed.topic) + 2 + len(parsed.properties)
    return int(parsed.total_size - after - 4)


@given(st.binary(max_size=300))
def test_any_bytes_raise_only_the_documented_error(buffer: bytes) -> None:
    try:
        decode_messages(buffer)
    except MessageDecodeError:
        return
    assert buffer == b""


@given(records(), st.integers(0, 0x7), st.data())
def test_compressed_garbage_raises_only_the_documented_error(
    fields: dict[str, Any], kind: int, data: st.DataObject
) -> None:
    fields["sys_flag"] = (fields["sys_flag"] & ~0x700) | 1 | kind << 8
    fields["body"] = data.draw(st.binary(min_size=1, max_size=60))
    try:
        decode_message(build_record(fields))
    except MessageDecodeError as error:
        assert "body" in error.reason or "compression" in error.reason


@st.composite
def messages(draw: st.DrawFn) -> MessageExt:
    ips = st.ip_addresses().map(str)
    host = st.builds(Host, ips, st.integers(0, 65535))
    text = st.text(st.characters(codec="utf-8"), max_size=80)
    return draw(
        st.builds(
            MessageExt,
            topic=text,
            body=st.binary(max_size=50),
            flag=INT32,
            properties=PROPERTIES,
            queue_id=INT32,
            queue_offset=INT64,
            sys_flag=st.sampled_from([0, 4, 8, 12, 0x30, 0x380]),
            born_timestamp=INT64,
            born_host=host,
            store_timestamp=INT64,
            store_host=host,
            commit_log_offset=INT64,
            reconsume_times=INT32,
            prepared_transaction_offset=INT64,
        )
    )


@given(messages())
def test_encode_builds_what_the_declaration_builds(message: MessageExt) -> None:
    packed = encode_message(message)
    parsed = RECORD.parse(packed)
    assert parsed.magic == (MAGIC_V1 if len(message.topic.encode()) <= 127 else MAGIC_V2)
    check_same(decode(packed)[0], parsed)
    assert build_record(parsed) == packed
    decoded, end = decode(packed)
    assert end == len(packed)
    expected_flag = message.sys_flag & ~0x30
    expected_flag |= BORN_HOST_IPV6 if message.born_host.is_ipv6 else 0
    expected_flag |= STORE_HOST_IPV6 if message.store_host.is_ipv6 else 0
    assert decoded.sys_flag == expected_flag
    for name in (
        "topic", "body", "flag", "properties", "queue_id", "queue_offset", "born_timestamp",
        "born_host", "store_timestamp", "store_host", "commit_log_offset", "reconsume_times",
        "prepared_transaction_offset",
    ):  # fmt: skip
        assert getattr(decoded, name) == getattr(message, name)


BATCHES = st.lists(
    st.builds(
        Message,
        topic=st.just("Orders"),
        body=st.binary(max_size=50),
        flag=INT32,
        properties=PROPERTIES,
    ),
    max_size=4,
)


@given(BATCHES)
def test_batch_is_what_the_declaration_builds_and_comes_back(batch: list[Message]) -> None:
    packed = encode_batch(batch)
    assert packed == b"".join(
        build_batch_entry(
            {
                "flag": message.flag,
                "body": message.body,
                "properties": property_bytes(message.properties),
            }
        )
        for message in batch
    )
    for view in (packed, bytearray(packed), memoryview(packed)):
        assert decode_batch(view, "Orders") == batch


@given(BATCHES, st.binary(max_size=30))
def test_damaged_batch_is_decoded_or_refused_as_by_the_declaration(
    batch: list[Message], tail: bytes
) -> None:
    buffer = encode_batch(batch) + tail
    for size in range(len(buffer) + 1):
        cut = buffer[:size]
        parsed = []
        try:
            while cut:
                parsed.append(BATCH_ENTRY.parse(cut))
                cut = cut[22 + parsed[-1].body_length + parsed[-1].properties_length :]
        except ConstructError:
            with pytest.raises(MessageDecodeError):
                decode_batch(buffer[:size])
        else:
            assert [each.body for each in decode_batch(buffer[:size])] == [
                each.body for each in parsed
            ]
