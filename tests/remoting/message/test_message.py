# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import base64
import pickle
from collections.abc import Callable
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from txrocketmq.remoting.errors import RemotingError
from txrocketmq.remoting.message import message as message_module
from txrocketmq.remoting.message import properties as names
from txrocketmq.remoting.message.compression import CompressionType, compress
from txrocketmq.remoting.message.ids import Host
from txrocketmq.remoting.message.message import (
    Message,
    MessageDecodeError,
    MessageEncodeError,
    MessageExt,
    MessageQueue,
    body_crc,
    decode_batch,
    decode_message,
    decode_messages,
    encode_batch,
    encode_message,
    record_properties,
    unwrap_inner_batch,
)
from txrocketmq.remoting.message.properties import decode_properties, encode_properties

LOG_FILE_BYTES = 262_144
ADDED_BY_THE_CLIENT = {names.MIN_OFFSET, names.MAX_OFFSET}


def log_at(store: Path, offset: int) -> tuple[memoryview, int]:
    """The log file that holds the offset, and where in it."""
    start = offset - offset % LOG_FILE_BYTES
    return memoryview((store / "commitlog" / f"{start:020}").read_bytes()), offset - start


def as_java_has_it(message: MessageExt) -> dict[str, Any]:
    return {
        "topic": message.topic,
        "queueId": message.queue_id,
        "queueOffset": message.queue_offset,
        "commitLogOffset": message.commit_log_offset,
        "storeSize": message.store_size,
        "bodyCRC": message.body_crc,
        "sysFlag": message.sys_flag,
        "flag": message.flag,
        "bornTimestamp": message.born_timestamp,
        "storeTimestamp": message.store_timestamp,
        "bornHost": message.born_host.ip,
        "storeHost": f"/{message.store_host}",
        "reconsumeTimes": message.reconsume_times,
        "preparedTransactionOffset": message.prepared_transaction_offset,
        "offsetMsgId": message.offset_msg_id,
        "msgId": message.msg_id,
        "properties": message.properties,
        "bodyBase64": base64.b64encode(message.body).decode(),
    }


def expected_of(line: dict[str, Any], version: str) -> dict[str, Any]:
    expected = dict(line)
    expected["properties"] = {
        name: value for name, value in line["properties"].items() if name not in ADDED_BY_THE_CLIENT
    }
    if version == "4.9.7":
        # Its client leaves the bit on a body that it decompressed; we clear it, as 5.x does.
        expected["sysFlag"] = line["sysFlag"] & ~1
    return expected


def test_golden_messages_field_by_field(
    golden_store: Callable[[str], Path],
    golden_messages: Callable[[str], list[dict[str, Any]]],
    golden_version: str,
) -> None:
    store = golden_store(golden_version) / "clean"
    lines = golden_messages(golden_version)
    assert len(lines) == 394
    for line in lines:
        log, at = log_at(store, line["commitLogOffset"])
        message, end = decode_message(log, at)
        assert as_java_has_it(message) == expected_of(line, golden_version)
        assert end == at + line["storeSize"]


@pytest.mark.parametrize("topic", ["T", "long-" * 40])
@pytest.mark.parametrize("born_host", [Host("10.0.0.7", 1), Host("::7", 1)])
@pytest.mark.parametrize("store_host", [Host("10.0.0.8", 2), Host("::8", 2)])
@pytest.mark.parametrize("body", [b"", b"body" * 300])
def test_the_properties_of_a_record_are_found(
    topic: str, born_host: Host, store_host: Host, body: bytes
) -> None:
    flags = (names.TAGS, "t"), ("é", "日本")
    message = MessageExt(topic, body, 0, dict(flags), born_host=born_host, store_host=store_host)
    record = encode_message(message)
    assert record_properties(memoryview(record)) == encode_properties(dict(flags))
    for end in range(len(record)):
        assert isinstance(record_properties(record[:end]), str)


def test_golden_records_are_encoded_to_the_same_bytes(
    golden_store: Callable[[str], Path],
    golden_messages: Callable[[str], list[dict[str, Any]]],
    golden_version: str,
) -> None:
    store = golden_store(golden_version) / "clean"
    for line in golden_messages(golden_version):
        log, at = log_at(store, line["commitLogOffset"])
        message, end = decode_message(log, at, decompress_body=False)
        assert body_crc(message.body) == message.body_crc
        stored = bytes(log[at:end])
        encoded = encode_message(message)
        if golden_version == "4.9.7":
            # Its properties lack the last separator, and in a batch name WAIT twice.
            until_properties = (
                len(encoded) - len(encode_properties(message.properties).encode()) - 2
            )
            assert encoded[4:until_properties] == stored[4:until_properties]
            again, _ = decode_message(encoded, decompress_body=False)
            assert replace(again, store_size=message.store_size) == message
        else:
            assert encoded == stored


def message(**changed: Any) -> MessageExt:
    values: dict[str, Any] = {
        "topic": "Orders",
        "body": b"body",
        "born_host": Host("10.0.0.1", 5),
        "store_host": Host("10.0.0.2", 10911),
        "commit_log_offset": 12345,
    }
    return MessageExt(**(values | changed))


def test_messages_lie_end_to_end() -> None:
    packed = [encode_message(message(queue_offset=offset)) for offset in range(3)]
    found = decode_messages(b"".join(packed))
    assert [each.queue_offset for each in found] == [0, 1, 2]
    assert decode_messages(b"") == []
    with pytest.raises(MessageDecodeError) as caught:
        decode_messages(b"".join(packed) + b"\0")
    assert caught.value.offset == sum(map(len, packed))


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda packed: packed[:50], "cut short: 50 bytes"),
        (lambda packed: packed[:100], "cut short: 100 bytes of 101"),
        (lambda packed: packed[:7] + b"\0" + packed[8:], "unknown magic 0xdaa32000"),
        (lambda packed: packed[:84] + b"\xff" * 4 + packed[88:], "a body of -1 bytes"),
        (lambda packed: packed[:86] + b"\1\0" + packed[88:], "a body of 256 bytes does not fit"),
        (lambda packed: packed.replace(b"\x06Orders", b"\xffOrders"), "the topic does not fit"),
        (lambda packed: packed.replace(b"\x06Orders", b"\x09Orders"), "the topic does not fit"),
        (lambda packed: packed.replace(b"\x06Orders", b"\x05Orders"), "properties do not end"),
    ],
)
def test_errors_say_what_is_wrong(damage: Callable[[bytes], bytes], reason: str) -> None:
    with pytest.raises(MessageDecodeError, match=reason) as caught:
        decode_message(damage(encode_message(message())))
    assert caught.value.reason in str(caught.value)
    assert isinstance(caught.value, RemotingError)
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize("kind", list(CompressionType))
def test_bodies_are_decompressed_when_wanted(kind: CompressionType) -> None:
    packed = compress(b"body" * 99, kind)
    record = encode_message(message(body=packed, sys_flag=1 | kind.flag))
    plain, _ = decode_message(record)
    assert (plain.body, plain.sys_flag) == (b"body" * 99, kind.flag)
    assert plain.body_crc == body_crc(packed)
    stored, _ = decode_message(record, decompress_body=False)
    assert (stored.body, stored.sys_flag) == (packed, 1 | kind.flag)
    assert decode_messages(record, decompress_body=False) == [stored]
    for decode in (decode_message, decode_messages):
        with pytest.raises(MessageDecodeError, match="larger than 395 bytes"):
            decode(record, max_body_bytes=395)


def test_empty_body_is_never_decompressed() -> None:
    decoded, _ = decode_message(encode_message(message(body=b"", sys_flag=0x301)))
    assert (decoded.body, decoded.sys_flag) == (b"", 0x301)


def test_text_that_is_no_utf8_is_read_as_java_does() -> None:
    packed = encode_message(message()).replace(b"Orders", b"Ord\xff\xfes")
    assert decode_message(packed)[0].topic == "Ord\ufffd\ufffds"


@pytest.mark.parametrize(("length", "magic_end"), [(127, 0xA7), (128, 0xAB), (0x7FFF, 0xAB)])
def test_magic_is_chosen_by_the_topic(length: int, magic_end: int) -> None:
    packed = encode_message(message(topic="t" * length))
    assert packed[7] == magic_end
    assert decode_message(packed)[0].topic == "t" * length


@pytest.mark.parametrize("length", [2, 127, 128, 255])
def test_a_topic_that_does_not_fit_is_no_topic(length: int) -> None:
    """One byte holds the length, with a sign: 128 and more are below zero."""
    properties = b"k\x01" + b"v" * 300 + b"\x02"
    record = bytearray(encode_message(MessageExt("T", b"body"), properties))
    topic_at = len(record) - len(properties) - 3
    assert record[topic_at : topic_at + 1] == b"T"
    record[topic_at - 1] = length
    with pytest.raises(
        MessageDecodeError,
        match="properties do not end" if length < 128 else "the topic does not fit",
    ):
        decode_message(bytes(record))


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"topic": "t" * 0x8000}, "topic is longer than 32767 bytes: 32768"),
        ({"properties": {"k": "é" * 16384}}, "properties are longer than 32767 bytes: 32771"),
        ({"queue_id": 1 << 31}, "out of its range"),
        ({"commit_log_offset": -(1 << 63) - 1}, "out of its range"),
    ],
)
def test_what_does_not_fit_is_not_encoded(changed: dict[str, Any], reason: str) -> None:
    with pytest.raises(MessageEncodeError, match=reason):
        encode_message(message(**changed))


def test_batch_errors() -> None:
    with pytest.raises(MessageEncodeError, match="flag is out of its range"):
        encode_batch([Message("T", flag=1 << 31)])
    with pytest.raises(MessageEncodeError, match="properties are longer"):
        encode_batch([Message("T", properties={"k": "v" * 0x8000})])
    packed = encode_batch([Message("T", b"body", properties={"k": "v"})] * 2)
    for damaged, reason in (
        (packed[:-1], "4 bytes of properties do not fit"),
        (packed[:-5], "cut short: 25 bytes"),
        (packed[:-7], "a body of 4 bytes does not fit"),
        (packed[:30] + b"\0", "cut short: 1 bytes"),
        (packed[:46] + b"\xff\xff\xff\xff" + packed[50:], "a body of -1 bytes does not fit"),
        (packed[:54] + b"\xff\xff" + packed[56:], "-1 bytes of properties do not fit"),
    ):
        with pytest.raises(MessageDecodeError, match=reason) as caught:
            decode_batch(damaged)
        assert caught.value.offset == 30


def test_batch_passes_over_size_magic_and_crc() -> None:
    packed = encode_batch([Message("T", b"body", 7, {"k": "v"})])
    assert decode_batch(b"\xff" * 12 + packed[12:], "T") == [Message("T", b"body", 7, {"k": "v"})]


def test_inner_batch_is_unwrapped() -> None:
    inner = [Message("Orders", b"a", 1, {"k": "v"}), Message("Orders", b"b", 2)]
    outer = message(body=encode_batch(inner), queue_offset=40, queue_id=3, flag=9)
    first, second = unwrap_inner_batch(outer)
    assert (first.body, first.flag, first.properties) == (b"a", 1, {"k": "v"})
    assert (second.body, second.flag, second.properties) == (b"b", 2, {})
    assert [first.queue_offset, second.queue_offset] == [40, 41]
    assert (second.topic, second.queue_id, second.store_host) == ("Orders", 3, outer.store_host)


def test_properties_of_a_message() -> None:
    plain = Message("T")
    assert (plain.tags, plain.keys, plain.delay_level) == (None, [], 0)
    assert plain.waits_for_store
    assert plain.unique_key is None
    plain.properties |= {
        names.TAGS: "a", names.KEYS: " k1  k2 ", names.DELAY: "3", names.WAIT: "false",
        names.UNIQ_KEY: "u",
    }  # fmt: skip
    assert (plain.tags, plain.keys, plain.delay_level) == ("a", ["k1", "k2"], 3)
    assert not plain.waits_for_store
    assert plain.unique_key == "u"


def test_the_properties_of_a_record_are_as_good_as_any() -> None:
    written = MessageExt("T", b"b", 0, {names.TAGS: "A", "name": "value"}, queue_offset=3)

    def read() -> MessageExt:
        return decode_message(encode_message(written))[0]

    assert read().properties == written.properties
    assert (read().tags, replace(read(), queue_id=1).tags) == ("A", "A")
    assert read() == read()
    assert "'TAGS': 'A'" in repr(read())
    assert pickle.loads(pickle.dumps(read())) == read() == copy(read())  # noqa: S301 - our own
    message = read()
    message.properties["name"] = "another"
    assert message.properties["name"] == "another"
    message.properties = {}
    assert (message.properties, message.tags) == ({}, None)


def test_the_properties_of_a_record_are_decoded_when_they_are_wanted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    decoded: list[str] = []

    def decode(text: str) -> dict[str, str]:
        decoded.append(text)
        return decode_properties(text)

    monkeypatch.setattr(message_module, "decode_properties", decode)
    message, _ = decode_message(encode_message(MessageExt("T", b"b", 0, {"name": "value"})))
    assert (message.body, decoded) == (b"b", [])
    assert message.properties is message.properties
    assert decoded == ["name\x01value\x02"]


def test_user_properties() -> None:
    plain = Message("T")
    plain.set_user_property("colour", "red")
    assert plain.properties == {"colour": "red"}
    with pytest.raises(ValueError, match="used by system"):
        plain.set_user_property(names.TAGS, "x")
    assert Message("T").properties == {}


def test_msg_id_is_the_producers_or_the_brokers() -> None:
    stored = message()
    assert stored.msg_id == stored.offset_msg_id == "0A00000200002A9F0000000000003039"
    stored.properties[names.UNIQ_KEY] = "u"
    assert stored.msg_id == "u"


def test_queues_are_ordered_and_printed_as_java() -> None:
    queues = [
        MessageQueue("b", "a", 0), MessageQueue("a", "b", 0), MessageQueue("a", "a", 10),
        MessageQueue("a", "a", 2),
    ]  # fmt: skip
    assert sorted(queues) == [queues[3], queues[2], queues[1], queues[0]]
    assert str(queues[2]) == "MessageQueue [topic=a, brokerName=a, queueId=10]"
    assert len({MessageQueue("a", "b", 0), queues[1]}) == 1
