# SPDX-License-Identifier: Apache-2.0
"""Traces are collected and sent some at a time."""

from __future__ import annotations

from typing import Any

import pytest

from tests.client.fakes import BROKER_A, Scene, a_route, result_of
from txrocketmq.client.base.config import ProducerConfig
from txrocketmq.client.core.trace import Recall
from txrocketmq.client.producer.producer import Producer
from txrocketmq.client.producer.trace_dispatcher import MAX_WAITING, TraceDispatcher, trace_group
from txrocketmq.remoting.call import Reply
from txrocketmq.remoting.message.message import Message
from txrocketmq.remoting.message.properties import decode_properties
from txrocketmq.remoting.protocol import send
from txrocketmq.remoting.protocol.send import SendMessageResponseHeader

TRACE = "RMQ_SYS_TRACE_TOPIC"


@pytest.fixture
def one(scene: Scene) -> Scene:
    for topic in ("T", TRACE):
        scene.routes[topic] = a_route({"broker-a": 1})
    stored = Reply(SendMessageResponseHeader(msg_id="O", queue_id=0, queue_offset=7))
    scene.connections.on(BROKER_A, send.SEND_MESSAGE_V2, stored)
    return scene


def traces(scene: Scene) -> list[tuple[Any, bytes]]:
    return [
        (header, body) for _, call, header, body, _ in scene.connections.asked
        if call is send.SEND_MESSAGE_V2 and header.topic == TRACE
    ]  # fmt: skip


def test_a_traced_send(one: Scene) -> None:
    producer = Producer(one.client, "g", ProducerConfig(enable_trace=True))
    result_of(producer.start())
    sent = result_of(producer.send(Message("T", b"12345", properties={"KEYS": "k", "TAGS": "t"})))
    assert traces(one) == []
    one.time.advance(5)
    ((header, body),) = traces(one)
    fields = body.decode().rstrip("\x02").split("\x01")
    assert fields[0] == "Pub"
    assert fields[3:6] == ["g", "T", sent.msg_id]
    assert fields[6:10] == ["t", "k", BROKER_A, "5"]
    assert fields[12:] == ["O", "true"]
    assert set(decode_properties(header.properties)["KEYS"].split()) == {"k", sent.msg_id}
    assert header.producer_group.startswith("_INNER_TRACE_PRODUCER-g-PRODUCE-")


def test_the_end_sends_what_waits(one: Scene) -> None:
    producer = Producer(one.client, "g", ProducerConfig(enable_trace=True))
    result_of(producer.start())
    result_of(producer.send(Message("T", b"x")))
    result_of(producer.shutdown())
    assert len(traces(one)) == 1
    assert one.time.getDelayedCalls() == [] or all(
        "trace" not in repr(each) for each in one.time.getDelayedCalls()
    )


def test_ten_leave_at_once_and_a_trace_leaves_none(one: Scene) -> None:
    producer = Producer(one.client, "g", ProducerConfig(enable_trace=True))
    result_of(producer.start())
    for _ in range(25):
        result_of(producer.send(Message("T", b"x")))
    assert [body.count(b"\x02") for _, body in traces(one)] == [10, 10]
    result_of(producer.send(Message(TRACE, b"not traced itself")))
    one.time.advance(5)
    assert [body.count(b"\x02") for _, body in traces(one) if b"\x02" in body] == [10, 10, 5]


def record() -> Recall:
    return Recall(timestamp_ms=1, region="R", group="g", topic="T", msg_id="M", success=True)


def test_what_cannot_be_sent_is_dropped(scene: Scene) -> None:
    async def fails(message: Message) -> None:
        raise ConnectionError("nobody there")

    dispatcher = TraceDispatcher(scene.client.clock, "g", TRACE, fails)
    dispatcher.append("T", record())
    result_of(dispatcher.shutdown())
    assert not dispatcher._waiting


def test_too_many_are_counted_and_dropped(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("txrocketmq.client.producer.trace_dispatcher.BATCH", 1 << 30)
    dispatcher = TraceDispatcher(scene.client.clock, "g", TRACE, lambda message: None)  # type: ignore[arg-type,return-value]
    for _ in range(MAX_WAITING + 3):
        dispatcher.append("T", record())
    assert dispatcher.dropped == 3


def test_groups_of_traces_are_numbered() -> None:
    first, second = trace_group("g", "PRODUCE"), trace_group("g", "PRODUCE")
    assert first != second
    assert first.startswith("_INNER_TRACE_PRODUCER-g-PRODUCE-")
