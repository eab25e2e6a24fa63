# SPDX-License-Identifier: Apache-2.0
"""The traces of a consumer: one before and one after, in the original's encoding."""

from __future__ import annotations

import pytest

from tests.client.consumer.fake_broker import Broker, Listener
from tests.client.fakes import BROKER_A, Scene, a_route, result_of
from txrocketmq.client.consumer.config import LitePullConsumerConfig, PushConsumerConfig
from txrocketmq.client.consumer.listening.listener import ConsumeStatus
from txrocketmq.client.consumer.lite_pull import LitePullConsumer
from txrocketmq.client.consumer.push import PushConsumer
from txrocketmq.client.core.trace import SubAfter, SubBefore, TraceRecord, decode_records
from txrocketmq.remoting.call import Reply
from txrocketmq.remoting.message.message import MessageExt, encode_message
from txrocketmq.remoting.message.properties import decode_properties
from txrocketmq.remoting.protocol import send
from txrocketmq.remoting.protocol.pull import PullMessageResponseHeader
from txrocketmq.remoting.protocol.send import SendMessageResponseHeader

TRACE = "RMQ_SYS_TRACE_TOPIC"


class Traced:
    """A consumer whose traces go to a fake broker."""

    def __init__(self, scene: Scene, broker: Broker) -> None:
        self.scene = scene
        self.broker = broker
        scene.routes[TRACE] = a_route({"broker-a": 1})
        stored = Reply(SendMessageResponseHeader(msg_id="O", queue_id=0, queue_offset=7))
        scene.connections.on(BROKER_A, send.SEND_MESSAGE_V2, stored)
        self.listener = Listener()

    def consume(self, *messages: MessageExt) -> None:
        """All of it, until the consumer has stopped."""
        self._stored(*messages)
        config = PushConsumerConfig(enable_trace=True, consume_message_batch_max_size=2)
        consumer = PushConsumer(self.scene.client, "g", {"T": "*"}, self.listener, config=config)
        result_of(consumer.start())
        result_of(consumer.stop())

    def poll(self, *messages: MessageExt) -> None:
        """The same with a lite pull consumer."""
        self._stored(*messages)
        config = LitePullConsumerConfig(enable_trace=True, trace_topic=TRACE)
        consumer = LitePullConsumer(self.scene.client, "g", {"T": "*"}, config=config)
        result_of(consumer.start())
        result_of(consumer.poll())
        result_of(consumer.stop())

    def _stored(self, *messages: MessageExt) -> None:
        body = b"".join(map(encode_message, messages))
        header = PullMessageResponseHeader(
            suggest_which_broker_id=0, next_begin_offset=50, min_offset=0, max_offset=100
        )
        self.broker.answers = [Reply(header, body)]

    def sent(self) -> tuple[set[str], list[TraceRecord]]:
        """The keys of the traces' messages, and the records."""
        keys: set[str] = set()
        records: list[TraceRecord] = []
        for _, call, header, body, _ in self.scene.connections.asked:
            if call is send.SEND_MESSAGE_V2 and header.topic == TRACE:
                assert header.producer_group.startswith("_INNER_TRACE_PRODUCER-g-CONSUME-")
                keys |= set(decode_properties(header.properties)["KEYS"].split())
                records += decode_records(body.decode())
        return keys, records


@pytest.fixture
def traced(scene: Scene, broker: Broker) -> Traced:
    return Traced(scene, broker)


def message(number: int, **properties: str) -> MessageExt:
    given = {"UNIQ_KEY": f"ID{number}", **properties}
    return MessageExt("T", b"x", queue_offset=number, properties=given, reconsume_times=number)


def test_each_message_leaves_a_trace_before_and_after(traced: Traced) -> None:
    def slow(messages: list[MessageExt], _: object) -> None:
        traced.scene.time.rightNow += 0.009

    traced.listener = slow  # type: ignore[assignment]
    traced.consume(message(1, KEYS="k1 k2", MSG_REGION="R"), message(2, MSG_REGION="R"))
    keys, records = traced.sent()
    assert {"ID1", "ID2", "k1", "k2"} <= keys
    before = [each for each in records if isinstance(each, SubBefore)]
    after = [each for each in records if isinstance(each, SubAfter)]
    assert [(each.msg_id, each.keys, each.retry_times) for each in before] == [
        ("ID1", "k1 k2", 1),
        ("ID2", None, 2),
    ]
    assert {(each.region, each.group) for each in before} == {("R", "g")}
    assert [each.msg_id for each in after] == ["ID1", "ID2"]
    assert {(each.success, each.context_code, each.cost_ms, each.group) for each in after} == {
        (True, 0, 4, "g")
    }
    ids = {each.request_id for each in before} | {each.request_id for each in after}
    assert len(ids) == 1
    assert len(before[0].request_id) == 32


def test_what_failed_says_so(traced: Traced) -> None:
    traced.listener.answer = ConsumeStatus.RECONSUME_LATER
    traced.consume(message(1))
    _, records = traced.sent()
    (after,) = [each for each in records if isinstance(each, SubAfter)]
    assert (after.success, after.context_code) == (False, 4)


def test_a_message_that_is_not_to_be_traced_leaves_none(traced: Traced) -> None:
    traced.consume(message(1, TRACE_ON="false"), message(2))
    _, records = traced.sent()
    assert [each.msg_id for each in records if isinstance(each, SubBefore | SubAfter)] == [
        "ID2",
        "ID2",
    ]


def test_what_a_poll_gives_leaves_traces(traced: Traced) -> None:
    traced.poll(message(1, KEYS="k"), message(2, TRACE_ON="false"))
    keys, records = traced.sent()
    assert keys == {"ID1", "k"}
    before, after = records
    assert isinstance(before, SubBefore)
    assert isinstance(after, SubAfter)
    assert (before.msg_id, before.group, before.retry_times) == ("ID1", "g", 1)
    assert (after.msg_id, after.success, after.context_code) == ("ID1", True, 0)
    assert before.request_id == after.request_id
