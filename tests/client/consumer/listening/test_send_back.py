# SPDX-License-Identifier: Apache-2.0
"""Messages that go back to the brokers, or to the retry topic."""

from __future__ import annotations

import pytest

from tests.client.consumer.fake_broker import Broker
from tests.client.fakes import BROKER_A, Scene, a_route, refusal, result_of
from txrocketmq.client.consumer.listening.send_back import (
    INNER_PRODUCER_GROUP,
    MAX_RECONSUME_TIMES,
    GiveBack,
)
from txrocketmq.remoting.call import Reply
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.message import properties as names
from txrocketmq.remoting.message.message import MessageExt
from txrocketmq.remoting.protocol import send
from txrocketmq.remoting.protocol.send import SendMessageResponseHeader


@pytest.fixture
def message(scene: Scene, broker: Broker) -> MessageExt:
    """One that came twice already; its retry topic takes copies."""
    scene.routes["%RETRY%g"] = a_route({"broker-a": 1})
    stored = SendMessageResponseHeader(msg_id="m", queue_id=0, queue_offset=0)
    scene.connections.on(BROKER_A, send.SEND_MESSAGE_V2, Reply(stored))
    found = MessageExt("T", b"x", commit_log_offset=35, reconsume_times=2)
    found.properties = {names.UNIQ_KEY: "U", names.TAGS: "A"}
    found.broker_name = "broker-a"
    return found


def test_the_broker_of_the_message_takes_it_back(scene: Scene, message: MessageExt) -> None:
    assert result_of(GiveBack(scene.client, "g", -1).to_broker(message, 5)) is True
    ((address, header),) = scene.connections.questions(send.CONSUMER_SEND_MSG_BACK)
    assert (address, header.offset, header.group, header.delay_level) == (BROKER_A, 35, "g", 5)
    assert (header.origin_msg_id, header.origin_topic) == ("U", "T")
    assert header.max_reconsume_times == MAX_RECONSUME_TIMES


def test_one_that_is_not_taken_back_is_sent_again(scene: Scene, message: MessageExt) -> None:
    scene.connections.on(BROKER_A, send.CONSUMER_SEND_MSG_BACK, refusal(ResponseCode.SYSTEM_ERROR))
    assert result_of(GiveBack(scene.client, "g", 4).to_broker(message, 0)) is True
    ((_, header),) = scene.connections.questions(send.SEND_MESSAGE_V2)
    properties = dict(pair.split("\x01") for pair in header.properties.split("\x02") if pair)
    assert (header.topic, header.producer_group) == ("%RETRY%g", INNER_PRODUCER_GROUP)
    # The header says it as well, since by that the broker knows a dead letter.
    assert (header.reconsume_times, header.max_reconsume_times) == (3, 4)
    assert (properties[names.RETRY_TOPIC], properties[names.ORIGIN_MESSAGE_ID]) == ("T", "U")
    assert (properties[names.DELAY], properties[names.TAGS]) == ("5", "A")


def test_one_that_came_again_keeps_its_origin(scene: Scene, message: MessageExt) -> None:
    message.properties[names.RETRY_TOPIC] = "first"
    message.properties[names.ORIGIN_MESSAGE_ID] = "O"
    message.properties[names.TRAN_MSG] = "true"
    assert result_of(GiveBack(scene.client, "g", -1).to_retry_topic(message, 16)) is True
    ((_, header),) = scene.connections.questions(send.SEND_MESSAGE_V2)
    properties = dict(pair.split("\x01") for pair in header.properties.split("\x02") if pair)
    assert (properties[names.RETRY_TOPIC], properties[names.ORIGIN_MESSAGE_ID]) == ("first", "O")
    assert names.TRAN_MSG not in properties


def test_when_nobody_takes_it_that_is_told(scene: Scene, message: MessageExt) -> None:
    scene.connections.on(BROKER_A, send.CONSUMER_SEND_MSG_BACK, refusal(ResponseCode.SYSTEM_ERROR))
    scene.connections.on(BROKER_A, send.SEND_MESSAGE_V2, refusal(ResponseCode.MESSAGE_ILLEGAL))
    assert result_of(GiveBack(scene.client, "g", -1).to_broker(message, 0)) is False
