# SPDX-License-Identifier: Apache-2.0
"""Requests and replies."""

from __future__ import annotations

import pytest

from tests.client.fakes import BROKER_A, Scene, a_route, refusal, result_of, started
from txrocketmq.client.base.config import ProducerConfig
from txrocketmq.client.base.errors import NotARequest, RequestTimedOut, SendFailed
from txrocketmq.client.producer.producer import Producer
from txrocketmq.client.producer.request_reply import as_request, reply_to
from txrocketmq.remoting.call import PendingReply, Reply
from txrocketmq.remoting.message.message import Message, MessageExt
from txrocketmq.remoting.message.properties import decode_properties
from txrocketmq.remoting.protocol import heartbeat, send
from txrocketmq.remoting.protocol.send import SendMessageResponseHeader

STORED = Reply(SendMessageResponseHeader(msg_id="O", queue_id=0, queue_offset=7))


def test_a_message_that_is_answered() -> None:
    message = Message("T", b"x")
    correlation_id = as_request(message, "client", 3_000)
    assert message.properties == {
        "CORRELATION_ID": correlation_id, "REPLY_TO_CLIENT": "client", "TTL": "3000",
    }  # fmt: skip
    message.properties["CLUSTER"] = "c"
    reply = reply_to(message, b"y")
    assert (reply.topic, reply.body) == ("c_REPLY_TOPIC", b"y")
    assert reply.properties == {
        "MSG_TYPE": "reply", "CORRELATION_ID": correlation_id, "REPLY_TO_CLIENT": "client",
        "TTL": "3000",
    }  # fmt: skip


def test_what_cannot_be_answered() -> None:
    with pytest.raises(NotARequest, match="it has no property CLUSTER"):
        reply_to(Message("T", b"x"), b"y")


@pytest.fixture
def one(scene: Scene) -> Scene:
    scene.routes["T"] = a_route({"broker-a": 1})
    scene.routes["c_REPLY_TOPIC"] = a_route({"broker-a": 1})
    scene.connections.on(BROKER_A, send.SEND_MESSAGE_V2, STORED)
    scene.connections.on(BROKER_A, send.SEND_REPLY_MESSAGE_V2, STORED)
    scene.connections.on(BROKER_A, heartbeat.HEART_BEAT, Reply())
    return scene


def test_a_request_waits_for_its_reply(one: Scene) -> None:
    asking = started(Producer(one.client, "g").request(Message("T", b"?"), timeout_ms=3_000))
    assert not asking.called
    ((_, header),) = one.connections.questions(send.SEND_MESSAGE_V2)
    own = decode_properties(header.properties)
    assert own["REPLY_TO_CLIENT"] == one.client.client_id
    assert one.connections.questions(heartbeat.HEART_BEAT)  # so that the broker knows where to
    one.client.replies.came(own["CORRELATION_ID"], MessageExt("R", b"!"))
    assert result_of(asking).body == b"!"


def test_a_broker_hears_of_the_client_before_its_first_request(one: Scene) -> None:
    """Also when messages went to it before: it could not push the reply otherwise."""
    producer = Producer(one.client, "g")
    result_of(producer.send(Message("T", b"x")))
    assert not one.connections.questions(heartbeat.HEART_BEAT)
    for _ in range(2):
        producer_asks = started(producer.request(Message("T", b"?"), timeout_ms=3_000))
        producer_asks.addErrback(lambda _: None)
    assert len(one.connections.questions(heartbeat.HEART_BEAT)) == 1
    one.time.advance(3)


def test_nobody_answers(one: Scene) -> None:
    asking = started(Producer(one.client, "g").request(Message("T", b"?"), timeout_ms=3_000))
    one.time.advance(3)
    with pytest.raises(RequestTimedOut):
        result_of(asking)


def test_a_request_that_cannot_be_sent_waits_for_nothing(one: Scene) -> None:
    one.connections.on(BROKER_A, send.SEND_MESSAGE_V2, refusal(2))
    with pytest.raises(SendFailed):
        result_of(Producer(one.client, "g").request(Message("T", b"?"), timeout_ms=3_000))
    assert one.client.replies._waiting == {}


def test_a_request_that_waits_for_room_is_over_in_its_own_time(one: Scene) -> None:
    producer = Producer(one.client, "g", ProducerConfig(max_in_flight=1))
    one.connections.on(BROKER_A, send.SEND_MESSAGE_V2, PendingReply())
    sending = started(producer.send(Message("T", b"x")))
    asking = started(producer.request(Message("T", b"?"), timeout_ms=3_000))
    one.time.advance(3)
    with pytest.raises(RequestTimedOut):
        result_of(asking)
    assert producer._attempts.room.waiting == 0
    sending.addErrback(lambda _: None).cancel()


def test_an_answer_goes_by_its_own_request(one: Scene) -> None:
    asked = Message("T", b"?", properties={"CLUSTER": "c"})
    as_request(asked, "client", 3_000)
    assert result_of(Producer(one.client, "g").reply(asked, b"!")).queue_offset == 7
    ((_, header),) = one.connections.questions(send.SEND_REPLY_MESSAGE_V2)
    assert header.topic == "c_REPLY_TOPIC"
