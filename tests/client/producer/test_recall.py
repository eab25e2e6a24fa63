# SPDX-License-Identifier: Apache-2.0
"""Taking delayed messages back."""

from __future__ import annotations

import base64

import pytest

from tests.client.fakes import BROKER_A, Scene, a_route, refusal, result_of
from txrocketmq.client.base.errors import MessageIllegal, MQBrokerError
from txrocketmq.client.producer.producer import Producer
from txrocketmq.client.producer.recall import RecallHandle, decode_handle
from txrocketmq.remoting.call import Reply
from txrocketmq.remoting.protocol import send
from txrocketmq.remoting.protocol.send import RecallMessageResponseHeader

HANDLE = base64.urlsafe_b64encode(b"v1 T broker-a 1700000000000 KEY").decode()


def test_a_handle() -> None:
    assert decode_handle(HANDLE) == RecallHandle("T", "broker-a", "1700000000000", "KEY")


@pytest.mark.parametrize(
    "text", ["", "\u00fc", "!!", base64.urlsafe_b64encode(b"v2 a b c d").decode(), "djE="]
)
def test_what_is_no_handle(text: str) -> None:
    with pytest.raises(MessageIllegal, match="is no recall handle"):
        decode_handle(text)


def test_the_broker_of_the_handle_is_asked(scene: Scene) -> None:
    scene.routes["T"] = a_route({"broker-a": 1, "broker-b": 1})
    scene.connections.on(
        BROKER_A, send.RECALL_MESSAGE, Reply(RecallMessageResponseHeader(msg_id="KEY"))
    )
    producer = Producer(scene.client, "g")
    assert result_of(producer.recall("T", HANDLE)) == "KEY"
    ((_, header),) = scene.connections.questions(send.RECALL_MESSAGE)
    assert (header.producer_group, header.topic, header.recall_handle) == ("g", "T", HANDLE)
    assert header.bname == "broker-a"


def test_what_cannot_be_taken_back(scene: Scene) -> None:
    scene.routes["T"] = a_route({"broker-a": 1})
    scene.connections.on(BROKER_A, send.RECALL_MESSAGE, refusal(1, "too late"))
    producer = Producer(scene.client, "g")
    with pytest.raises(MQBrokerError, match="too late"):
        result_of(producer.recall("T", HANDLE))
    with pytest.raises(MessageIllegal, match="cannot be taken back"):
        result_of(producer.recall("%RETRY%g", HANDLE))
