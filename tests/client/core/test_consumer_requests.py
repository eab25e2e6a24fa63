# SPDX-License-Identifier: Apache-2.0
"""What brokers ask of consumers, as a client answers it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.client.consumer.fake_broker import QUEUE, Broker, Listener, found
from tests.client.fakes import Scene, a_route, result_of
from txrocketmq.client.consumer.config import PushConsumerConfig
from txrocketmq.client.consumer.listening.listener import ConsumeStatus
from txrocketmq.client.consumer.push import RESET_PAUSE_MS, PushConsumer
from txrocketmq.client.core.consumer_requests import ConsumerRequests
from txrocketmq.remoting.call import PendingReply, Reply, Request
from txrocketmq.remoting.codes import RequestCode, ResponseCode
from txrocketmq.remoting.command import RemotingCommand
from txrocketmq.remoting.message.message import MessageExt, MessageQueue, encode_message
from txrocketmq.remoting.protocol.body.client import (
    ConsumeMessageDirectlyResult,
    ConsumerRunningInfo,
)
from txrocketmq.remoting.protocol.body.offset import GetConsumerStatusBody, ResetOffsetBody
from txrocketmq.remoting.protocol.offset import (
    GetConsumerStatusRequestHeader,
    ResetOffsetRequestHeader,
)
from txrocketmq.remoting.protocol.operations.admin import (
    ConsumeMessageDirectlyResultRequestHeader,
    GetConsumerRunningInfoRequestHeader,
)


class Asked:
    """A consumer that reads two queues, and the requests of a broker."""

    def __init__(self, scene: Scene, broker: Broker) -> None:
        self.scene = scene
        self.broker = broker
        scene.routes["T"] = a_route({"broker-a": 2})
        self.listener = Listener()
        config = PushConsumerConfig(max_reconsume_times=3)
        self.consumer = PushConsumer(scene.client, "g", {"T": "A"}, self.listener, config=config)
        result_of(self.consumer.start())
        self.requests = ConsumerRequests({"g": self.consumer}.get)

    def request(self, header: Any, body: bytes = b"") -> Any:
        command = RemotingCommand(RequestCode.CONSUME_MESSAGE_DIRECTLY, body=body)
        return Request(header, command, None, 0, 0)  # type: ignore[arg-type]


@pytest.fixture
def asked(scene: Scene, broker: Broker) -> Asked:
    """A consumer that has started."""
    return Asked(scene, broker)


def test_offsets_are_reset_after_ten_seconds(asked: Asked, broker: Broker) -> None:
    broker.open[0].resolve(found(6, 5))
    header = ResetOffsetRequestHeader(topic="T", group="g", timestamp=0, is_force=True)
    body = ResetOffsetBody(offset_table={QUEUE: 2, MessageQueue("T", "broker-b", 0): 1}).encode()
    asked.requests.reset_consumer_client_offset(asked.request(header, body))
    broker.offset = 2  # as it is, once the consumer has said so
    asked.scene.time.advance(RESET_PAUSE_MS / 1000 - 0.01)
    assert (0, 2) not in broker.committed()
    asked.scene.time.advance(0.01)
    assert (0, 2) in broker.committed()
    asked.scene.time.advance(1)
    assert [each.queue_id for each in asked.consumer.queues] == [0, 1]
    offsets = [each.queue_offset for each in broker.pulls() if each.queue_id == 0]
    assert offsets[-1] == 2


def test_a_reset_of_a_group_that_is_not_here_is_nothing(asked: Asked) -> None:
    header = ResetOffsetRequestHeader(topic="T", group="other", timestamp=0, is_force=True)
    reply = asked.requests.reset_consumer_client_offset(asked.request(header))
    assert reply.code == ResponseCode.SUCCESS


def test_it_says_how_far_it_has_come(asked: Asked, broker: Broker) -> None:
    asked.consumer.offsets.note(QUEUE, 6)
    for group, table in (("g", {QUEUE: 6}), ("other", {})):
        header = GetConsumerStatusRequestHeader(topic="T", group=group)
        reply = asked.requests.get_consumer_status_from_client(asked.request(header))
        assert GetConsumerStatusBody.decode(reply.body_bytes).message_queue_table == table


@pytest.mark.parametrize("with_stacks", [False, True])
def test_it_says_what_it_is_doing(asked: Asked, broker: Broker, with_stacks: bool) -> None:
    header = GetConsumerRunningInfoRequestHeader(
        consumer_group="g", client_id="c", jstack_enable=with_stacks
    )
    reply = asked.requests.get_consumer_running_info(asked.request(header))
    info = ConsumerRunningInfo.decode(reply.body_bytes)
    assert [queue.queue_id for queue in info.mq_table] == [0, 1]
    assert {each.topic: each.sub_string for each in info.subscription_set} == {
        "T": "A",
        "%RETRY%g": "*",
    }
    assert set(info.status_table) == {"T", "%RETRY%g"}
    assert info.properties["maxReconsumeTimes"] == "3"
    assert info.properties["PROP_CONSUMEORDERLY"] == "false"
    assert info.properties["PROP_CONSUME_TYPE"] == "CONSUME_PASSIVELY"
    if with_stacks:
        assert info.jstack is not None
        assert "test_it_says_what_it_is_doing" in info.jstack
    else:
        assert info.jstack is None


def test_a_group_that_is_not_here_is_an_error(asked: Asked) -> None:
    running = GetConsumerRunningInfoRequestHeader(consumer_group="other", client_id="c")
    direct = ConsumeMessageDirectlyResultRequestHeader(consumer_group="other")
    replies: list[Any] = [
        asked.requests.get_consumer_running_info(asked.request(running)),
        asked.requests.consume_message_directly(asked.request(direct)),
    ]
    for reply in replies:
        assert reply.code == ResponseCode.SYSTEM_ERROR
        assert reply.remark == "The Consumer Group <other> not exist in this consumer"


def outcome(pending: Any) -> Reply[Any]:
    assert isinstance(pending, PendingReply)
    outcomes: list[Any] = []
    pending.then(outcomes.append)
    reply: Reply[Any] = outcomes[0]
    return reply


def test_a_message_is_consumed_directly(asked: Asked) -> None:
    asked.listener.answer = ConsumeStatus.RECONSUME_LATER
    header = ConsumeMessageDirectlyResultRequestHeader(consumer_group="g", broker_name="broker-a")
    body = encode_message(MessageExt("T", b"now"))
    reply = outcome(asked.requests.consume_message_directly(asked.request(header, body)))
    result = ConsumeMessageDirectlyResult.decode(reply.body_bytes)
    assert (result.consume_result, result.order) == ("CR_LATER", False)
    assert asked.listener.bodies == [b"now"]


def test_a_damaged_message_is_an_error_of_one_sentence(asked: Asked) -> None:
    header = ConsumeMessageDirectlyResultRequestHeader(consumer_group="g")
    reply: Any = asked.requests.consume_message_directly(asked.request(header, b"damaged"))
    assert (reply.code, reply.remark[:22]) == (ResponseCode.SYSTEM_ERROR, "the message is damaged")
