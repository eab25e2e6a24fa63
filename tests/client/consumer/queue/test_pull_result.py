# SPDX-License-Identifier: Apache-2.0
"""What a pull has brought, as the consumer is to see it."""

from __future__ import annotations

import gc
from dataclasses import replace

import pytest

from tests.counted import work_of
from txrocketmq.client.consumer.queue.process_queue import ProcessQueue
from txrocketmq.client.consumer.queue.pull_result import restore_topic, wanted_messages
from txrocketmq.remoting.message.compression import CompressionType, PlainRoom, compress
from txrocketmq.remoting.message.flags import MessageSysFlag
from txrocketmq.remoting.message.ids import Host
from txrocketmq.remoting.message.message import (
    Message,
    MessageDecodeError,
    MessageExt,
    MessageQueue,
    encode_batch,
    encode_message,
)
from txrocketmq.remoting.message.tags import build_subscription_data

ALL = build_subscription_data("T", "*")
QUEUE = MessageQueue("T", "a", 0)
HOST = Host("10.0.0.1", 4_000)


def record(body: bytes, tags: str = "", sys_flag: int = 0) -> bytes:
    properties = {"TAGS": tags} if tags else {}
    return encode_message(MessageExt("T", body, properties=properties, sys_flag=sys_flag))


def test_messages_know_their_broker() -> None:
    first, second = wanted_messages(record(b"1") + record(b"2"), QUEUE, ALL)
    assert (first.body, first.broker_name) == (b"1", "a")
    assert (second.body, second.broker_name) == (b"2", "a")


def test_what_a_message_of_a_pull_costs() -> None:
    """Operations of the interpreter, those of the record's decoder included."""
    one = record(b"x" * 100, "A")

    def pulled(count: int) -> float:
        body = one * count
        return work_of([lambda: wanted_messages(body, QUEUE, ALL)], 1).operations

    assert (pulled(200) - pulled(100)) / 100 <= 262


def test_messages_that_wait_are_one_object_each_for_the_collector() -> None:
    """Its time grows with them; a container in each message would double it."""
    message = MessageExt("T", b"x" * 100, properties={"TAGS": "A", "KEYS": "k"}, born_host=HOST)
    records = [encode_message(replace(message, queue_offset=each)) for each in range(30 * 32)]
    pulls = [b"".join(records[at : at + 32]) for at in range(0, len(records), 32)]

    def tracked(count: int) -> int:
        """Returns how many objects more are looked at when so many pulls of 32 wait."""
        waiting = ProcessQueue(QUEUE, 0)
        before = {id(each) for each in gc.get_objects()}
        kept = [waiting.put(wanted_messages(each, QUEUE, ALL)) for each in pulls[:count]]
        found = sum(id(each) not in before for each in gc.get_objects())
        assert waiting.count == sum(map(len, kept)) == count * 32
        return found

    tracked(1)
    assert tracked(30) - tracked(10) <= 20 * (32 + 1)


def test_tags_that_only_have_the_hash_of_a_wanted_one_are_left_out() -> None:
    subscription = build_subscription_data("T", "Aa || C")  # "BB" has the hash of "Aa" in Java
    body = record(b"1", "Aa") + record(b"2", "BB") + record(b"3", "C") + record(b"4")
    assert [each.body for each in wanted_messages(body, QUEUE, subscription)] == [b"1", b"3"]


def test_bodies_become_only_so_much_together() -> None:
    """Those for which there is no room stay compressed, and the others are read."""
    flag = MessageSysFlag.COMPRESSED | CompressionType.ZSTD.flag
    bomb, text = bytes(8 << 20), b"one of many lines\n" * 99
    bombs = record(compress(bomb, CompressionType.ZSTD), sys_flag=flag)
    body = bombs * 3 + record(compress(text, CompressionType.ZSTD), sys_flag=flag) + record(b"1")
    found = wanted_messages(body, QUEUE, ALL, room=PlainRoom(20 << 20))
    assert [len(each.body) > 1 << 20 for each in found] == [True, True, False, False, False]
    assert [each.body for each in found[3:]] == [text, b"1"]
    compressed = [bool(each.sys_flag & MessageSysFlag.COMPRESSED) for each in found]
    assert compressed == [False, False, True, False, False]


def test_an_answer_has_room_for_what_it_usually_has() -> None:
    flag = MessageSysFlag.COMPRESSED | CompressionType.ZSTD.flag
    body = record(compress(bytes(4 << 20), CompressionType.ZSTD), sys_flag=flag) * 32
    assert all(len(each.body) == 4 << 20 for each in wanted_messages(body, QUEUE, ALL))


def test_an_inner_batch_is_taken_apart() -> None:
    flag = MessageSysFlag.INNER_BATCH | MessageSysFlag.NEED_UNWRAP
    inner = [Message("T", b"1"), Message("T", b"2", properties={"TAGS": "A"})]
    body = record(encode_batch(inner), sys_flag=flag) + record(b"3", "A")
    found = wanted_messages(body, QUEUE, ALL)
    assert [(each.body, each.broker_name) for each in found] == [
        (b"1", "a"), (b"2", "a"), (b"3", "a"),
    ]  # fmt: skip
    found = wanted_messages(body, QUEUE, build_subscription_data("T", "A"))
    assert [each.body for each in found] == [b"2", b"3"]


@pytest.mark.parametrize("compression", [0, MessageSysFlag.COMPRESSED], ids=["plain", "zlib"])
def test_an_inner_batch_that_is_damaged_ends_nothing(compression: int) -> None:
    flag = MessageSysFlag.INNER_BATCH | MessageSysFlag.NEED_UNWRAP | compression
    found = wanted_messages(record(b"no batch", sys_flag=flag) + record(b"2"), QUEUE, ALL)
    assert [each.body for each in found] == [b"no batch", b"2"]


def test_messages_of_a_light_queue_have_their_places_there() -> None:
    """Those that were sent to it, too; what it has from two queues may have one offset there."""
    light = MessageQueue("%LMQ%a", "b", 0)

    def dispatched(topic: str, offsets: str, **properties: str) -> MessageExt:
        lists = {"INNER_MULTI_DISPATCH": "%LMQ%x,%LMQ%a", "INNER_MULTI_QUEUE_OFFSET": offsets}
        return MessageExt(topic, queue_id=3, queue_offset=7, properties={**lists, **properties})

    sent = MessageExt("%LMQ%a", queue_offset=2)
    back = dispatched("%RETRY%g", "7,8")
    popped = dispatched("%LMQ%a", "7,8", POP_CK="of a retry topic")
    messages = [dispatched("T", "9,0"), dispatched("S", "9,1"), sent, back, popped]
    found = wanted_messages(b"".join(map(encode_message, messages)), light, ALL)
    assert [(each.topic, each.queue_id, each.queue_offset) for each in found] == [
        ("T", 0, 0), ("S", 0, 1), ("%LMQ%a", 0, 2), ("%RETRY%g", 3, 7), ("%LMQ%a", 3, 7),
    ]  # fmt: skip
    (plain,) = wanted_messages(encode_message(messages[0]), QUEUE, ALL)
    assert (plain.queue_id, plain.queue_offset) == (3, 7)


def test_a_body_that_does_not_decompress_comes_as_it_is() -> None:
    (message,) = wanted_messages(record(b"no zlib", sys_flag=MessageSysFlag.COMPRESSED), QUEUE, ALL)
    assert (message.body, message.sys_flag) == (b"no zlib", MessageSysFlag.COMPRESSED)


def test_bytes_that_are_no_messages_are_an_error() -> None:
    with pytest.raises(MessageDecodeError):
        wanted_messages(b"\0" * 40, QUEUE, ALL)


@pytest.mark.parametrize(
    ("topic", "properties", "seen"),
    [
        ("%RETRY%g", {"RETRY_TOPIC": "T"}, "T"),
        ("%RETRY%g", {}, "%RETRY%g"),
        ("T", {"RETRY_TOPIC": "other"}, "T"),
    ],
)
def test_a_message_that_comes_again_has_its_first_topic(
    topic: str, properties: dict[str, str], seen: str
) -> None:
    message = MessageExt(topic, b"1", properties=properties)
    restore_topic(message)
    assert message.topic == seen
