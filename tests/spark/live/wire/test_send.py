# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any
from zlib import crc32

import pytest

from tests.spark.live.fakes import FakeBroker, World, queue
from txrocketmq.remoting.call import Call, Reply
from txrocketmq.remoting.codes import STORED, ResponseCode
from txrocketmq.remoting.message.message import Message, decode_batch
from txrocketmq.remoting.message.properties import decode_properties
from txrocketmq.remoting.protocol.send import (
    SEND_BATCH_MESSAGE,
    SEND_MESSAGE_V2,
    SendMessageResponseHeader,
)
from txrocketmq.spark.arrow.errors import ClusterError
from txrocketmq.spark.live.wire.cluster import header_of
from txrocketmq.spark.live.wire.rpc import Refused, Unreachable
from txrocketmq.spark.live.wire.send import (
    batch_parcel,
    message_parcel,
    start_send,
    stored_keys,
    write_queues,
)

MakeWorld = Callable[..., World]
FOUND = SendMessageResponseHeader(msg_id="A,B", queue_id=2, queue_offset=7)


def test_a_parcel_of_one_message() -> None:
    parcel = message_parcel(Message("t", b"x", 3, {"KEYS": "k"}), sys_flag=0x301)
    assert decode_properties(parcel.properties) == {"WAIT": "true", "KEYS": "k"}
    assert (parcel.body, parcel.flag, parcel.sys_flag, parcel.is_batch) == (b"x", 3, 0x301, False)
    unsafe = message_parcel(Message("t", b"x", 0, {"WAIT": "false"}))
    assert decode_properties(unsafe.properties) == {"WAIT": "false"}


def test_a_parcel_of_several() -> None:
    messages = [Message("t", b"x", 3, {"KEYS": "k"}), Message("t", b"y")]
    parcel = batch_parcel(messages)
    assert parcel.is_batch
    assert decode_batch(parcel.body, "t") == messages


def test_where_one_may_send(world: MakeWorld) -> None:
    a, b = FakeBroker("a", write_queues=2), FakeBroker("b", addresses={1: "10.0.1.2:1"})
    a.fill("t", [0, 0, 0])
    b.fill("t", [0])
    made = world(a, b)
    assert write_queues(made.cluster(), "t") == [queue("t", "a", 0), queue("t", "a", 1)]
    b.fill("u", [0])
    with pytest.raises(ClusterError, match="topic u cannot be written: no master is reg"):
        write_queues(made.cluster(), "u")


def test_a_topic_that_a_send_creates(world: MakeWorld) -> None:
    broker = FakeBroker("a", write_queues=8)
    made = world(broker)
    with pytest.raises(ClusterError, match="topic t is not known at 10.* create it first"):
        write_queues(made.cluster(), "t")
    broker.fill("TBW102", [0] * 8)
    assert write_queues(made.cluster(), "t") == [queue("t", "a", each) for each in range(4)]


@pytest.mark.parametrize("is_batch", [False, True])
def test_what_goes_out(world: MakeWorld, is_batch: bool) -> None:
    broker = FakeBroker("a")
    broker.fill("t", [0])
    made = world(broker)
    seen: list[tuple[Any, Any]] = []

    def fail(_address: str, call: Call[Any, Any], header: Any) -> Reply[Any] | None:
        if call in (SEND_MESSAGE_V2, SEND_BATCH_MESSAGE):
            seen.append((call, header))
            return Reply(FOUND, code=ResponseCode.SLAVE_NOT_AVAILABLE)
        return None

    made.fail = fail
    cluster = made.cluster()
    (where, *_) = write_queues(cluster, "t")
    message = Message("t", b"x", 5, {"TAGS": "A"})
    parcel = batch_parcel([message]) if is_batch else message_parcel(message)
    question = start_send(cluster, where, parcel, producer_group="g")
    sent = question.wait(STORED)
    assert (sent.code, header_of(sent)) == (ResponseCode.SLAVE_NOT_AVAILABLE, FOUND)
    ((call, header),) = seen
    assert call is (SEND_BATCH_MESSAGE if is_batch else SEND_MESSAGE_V2)
    assert (header.producer_group, header.topic, header.queue_id) == ("g", "t", 0)
    assert abs(header.born_timestamp - time.time() * 1000) < 60_000
    assert (header.batch, header.bname) == (is_batch, "a")
    assert (header.flag, header.default_topic) == (0 if is_batch else 5, "TBW102")


def test_sends_that_fail(world: MakeWorld) -> None:
    broker = FakeBroker("a", addresses={0: "10.0.1.1:1", 1: "10.0.1.1:2"})
    broker.fill("t", [0])
    made = world(broker)
    cluster = made.cluster()
    (where, *_) = write_queues(cluster, "t")
    parcel = message_parcel(Message("t", b"x"))
    made.down = {"10.0.1.1:1"}
    with pytest.raises(Unreachable):
        start_send(cluster, where, parcel, producer_group="g")
    assert made.asked["10.0.1.1:2", "SEND_MESSAGE_V2"] == 0, "slaves take no messages"
    made.down.clear()
    made.fail = lambda _, call, __: (
        Reply(code=ResponseCode.MESSAGE_ILLEGAL, remark="bad") if call is SEND_MESSAGE_V2 else None
    )
    with pytest.raises(Refused, match=r"MESSAGE_ILLEGAL \(13\): bad"):
        start_send(cluster, where, parcel, producer_group="g").wait(STORED)
    with pytest.raises(ClusterError, match="code 10, does not say where messages are"):
        header_of(Reply(code=10))


def test_which_keys_are_stored(world: MakeWorld) -> None:
    a, b = FakeBroker("a"), FakeBroker("b")
    a.fill("t", [3])
    b.fill("t", [0])
    b.add("t", 7, 2)
    made = world(a, b)
    cluster = made.cluster()
    keys = ["t-0-0", "t-0-2", "t-0-3", "t-7-1"]
    assert stored_keys(cluster, "t", keys) == {
        "t-0-0": crc32(b"body 0/0"), "t-0-2": crc32(b"body 0/2"), "t-7-1": crc32(b"body 7/1"),
    }  # fmt: skip
    busy = ["t-0-2", "t-0-2", "t-7-1"]

    def refuse(_: object, call: object, header: Any) -> Reply[Any] | None:
        if getattr(header, "key", None) in busy:
            busy.remove(header.key)
            return Reply(code=ResponseCode.SYSTEM_BUSY, remark="try again later")
        return None

    made.fail = refuse
    assert len(stored_keys(cluster, "t", keys)) == 3
    assert not busy, "what was refused was asked again"
    assert stored_keys(cluster, "t", []) == {}
    assert stored_keys(cluster, "nowhere", keys) == {}
