# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import gzip
import zlib
from typing import Any

import lz4.frame
import pytest

from tests.proxy.scene import ProxyScene, a_message, refusal
from txrocketmq.proxy.schema.codes import Code
from txrocketmq.proxy.schema.enums import FilterType
from txrocketmq.remoting.call import PendingReply
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.message import properties as names
from txrocketmq.remoting.message.flags import MessageSysFlag
from txrocketmq.remoting.protocol import pop, send
from txrocketmq.remoting.protocol.body.topic import SubscriptionGroupConfig


def written(outcome: Any) -> tuple[Code, list[Any]]:
    """The code of a receive, and its messages; the time comes last."""
    answers = outcome.written("ReceiveMessageResponse")
    assert answers[0].WhichOneof("content") == "status"
    assert answers[-1].WhichOneof("content") == "delivery_timestamp"
    return Code(answers[0].status.code), [each.message for each in answers[1:-1]]


def test_messages_are_popped_and_written(scene: ProxyScene) -> None:
    scene.heartbeat()
    scene.on(pop.POP_MESSAGE, scene.popped(a_message(b"a"), a_message(b"b", 1)))
    outcome = scene.receive()
    code, messages = written(outcome)
    assert outcome.answer is None
    assert code is Code.OK
    assert [each.body for each in messages] == [b"a", b"b"]
    assert [each.system_properties.receipt_handle for each in messages] == [
        f"0 {scene.clock.now_ms()} 60000 1 0 broker-a 0 {offset} {1_000 + offset}"
        for offset in (0, 1)
    ]
    (header,) = scene.asked(pop.POP_MESSAGE)
    assert (header.topic, header.consumer_group, header.queue_id) == ("T", "G", -1)
    assert (header.max_msg_nums, header.invisible_time, header.init_mode) == (32, 30_000, 1)
    assert (header.exp_type, header.exp, header.order) == ("TAG", "*", False)
    assert header.bname == "broker-a"


@pytest.mark.parametrize(
    ("reply", "code"),
    [
        (refusal(ResponseCode.POLLING_TIMEOUT), Code.MESSAGE_NOT_FOUND),
        (refusal(ResponseCode.PULL_NOT_FOUND), Code.MESSAGE_NOT_FOUND),
        (refusal(ResponseCode.POLLING_FULL), Code.TOO_MANY_REQUESTS),
        (refusal(ResponseCode.NO_PERMISSION), Code.FORBIDDEN),
        (refusal(ResponseCode.TOPIC_NOT_EXIST), Code.TOPIC_NOT_FOUND),
        (refusal(ResponseCode.SYSTEM_ERROR), Code.INTERNAL_SERVER_ERROR),
    ],
)
def test_nothing_is_told_with_a_status(scene: ProxyScene, reply: Any, code: Code) -> None:
    scene.heartbeat()
    scene.on(pop.POP_MESSAGE, reply)
    assert written(scene.receive()) == (code, [])


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"group": {"name": "a b"}}, Code.ILLEGAL_CONSUMER_GROUP),
        ({"group": {"name": "CID_RMQ_SYS_X"}}, Code.ILLEGAL_CONSUMER_GROUP),
        ({"message_queue": {"topic": {"name": ""}}}, Code.ILLEGAL_TOPIC),
        ({"message_queue": {"topic": {"name": "rmq_sys_x"}}}, Code.ILLEGAL_TOPIC),
        ({"message_queue": {"topic": {"name": "unknown"}}}, Code.TOPIC_NOT_FOUND),
        ({"invisible_duration": {"seconds": 9}}, Code.ILLEGAL_INVISIBLE_TIME),
        ({"invisible_duration": {"seconds": 43_201}}, Code.ILLEGAL_INVISIBLE_TIME),
        ({"filter_expression": {"type": 1, "expression": "||"}}, Code.ILLEGAL_FILTER_EXPRESSION),
        ({"filter_expression": {"type": 2}}, Code.ILLEGAL_FILTER_EXPRESSION),
        (
            {"filter_expression": {"type": 1, "expression": "x" * 20_000}},
            Code.ILLEGAL_FILTER_EXPRESSION,
        ),
        ({"client_id": ""}, Code.CLIENT_ID_REQUIRED),
        ({"deadline_ms": 4_000}, Code.ILLEGAL_POLLING_TIME),
    ],
)
def test_bad_input_has_its_code(scene: ProxyScene, fields: dict[str, Any], code: Code) -> None:
    scene.heartbeat()
    assert written(scene.receive(**fields)) == (code, [])
    assert scene.asked(pop.POP_MESSAGE) == []


@pytest.mark.parametrize(
    ("deadline_ms", "polling", "expected_ms"),
    [
        (None, None, 20_000),
        (15_000, None, 13_500),
        (60_000, None, 20_000),
        (30_000, 7, 7_000),
        (30_000, 1, 5_000),
        (6_000, 20, 5_700),
    ],
)
def test_how_long_the_broker_waits(
    scene: ProxyScene, deadline_ms: int | None, polling: int | None, expected_ms: int
) -> None:
    scene.heartbeat()
    scene.on(pop.POP_MESSAGE, refusal(ResponseCode.POLLING_TIMEOUT))
    fields: dict[str, Any] = {"deadline_ms": deadline_ms}
    if polling is not None:
        fields["long_polling_timeout"] = {"seconds": polling}
    scene.receive(**fields)
    assert [header.poll_time for header in scene.asked(pop.POP_MESSAGE)] == [expected_ms]


@pytest.mark.parametrize("deadline_ms", [30_000, None])
def test_a_client_that_is_not_known_is_waited_for_and_then_served(
    scene: ProxyScene, deadline_ms: int | None
) -> None:
    scene.on(pop.POP_MESSAGE, scene.popped(a_message()))
    outcome = scene.receive(deadline_ms=deadline_ms)
    assert not outcome.answers
    scene.advance(1_000)
    assert written(outcome)[0] is Code.OK
    client = scene.messaging.clients.get("client-1")
    assert client is not None
    assert client.group == "G"


def test_settings_that_come_meanwhile_end_the_waiting(scene: ProxyScene) -> None:
    scene.on(pop.POP_MESSAGE, scene.popped(a_message()))
    outcome = scene.receive()
    scene.heartbeat()
    assert written(outcome)[0] is Code.OK


def test_tags_that_only_look_alike_are_acknowledged(scene: ProxyScene) -> None:
    scene.heartbeat()
    tagged = [a_message(b"%d" % n, n, properties={names.TAGS: tag}) for n, tag in enumerate("abc")]
    scene.on(pop.POP_MESSAGE, scene.popped(*tagged))
    fields = {"filter_expression": {"type": FilterType.TAG, "expression": "a || c"}}
    _, messages = written(scene.receive(**fields))
    assert [each.system_properties.tag for each in messages] == ["a", "c"]
    assert [header.offset for header in scene.asked(pop.ACK_MESSAGE)] == [1]
    scene.on(pop.POP_MESSAGE, scene.popped(tagged[1]))
    assert written(scene.receive(**fields)) == (Code.MESSAGE_NOT_FOUND, [])


def test_what_was_delivered_too_often_is_a_dead_letter(scene: ProxyScene) -> None:
    scene.heartbeat()
    scene.groups["G"] = SubscriptionGroupConfig(group_name="G", retry_max_times=2)
    scene.on(
        pop.POP_MESSAGE,
        scene.popped(a_message(reconsume_times=3), a_message(b"x", 1, reconsume_times=2)),
    )
    _, messages = written(scene.receive())
    assert [each.system_properties.delivery_attempt for each in messages] == [3]
    (back,) = scene.asked(send.CONSUMER_SEND_MSG_BACK)
    assert (back.offset, back.delay_level, back.group) == (1_000, -1, "G")
    assert [header.offset for header in scene.asked(pop.ACK_MESSAGE)] == [0]


def test_a_group_without_attempts_has_one(scene: ProxyScene) -> None:
    scene.heartbeat()
    scene.groups["G"] = SubscriptionGroupConfig(group_name="G", retry_max_times=-1)
    scene.on(pop.POP_MESSAGE, scene.popped(a_message()))
    assert len(written(scene.receive())[1]) == 1


def test_messages_in_order_have_the_attempt_id(scene: ProxyScene) -> None:
    scene.heartbeat()
    scene.groups["G"] = SubscriptionGroupConfig(group_name="G", consume_message_orderly=True)
    scene.on(pop.POP_MESSAGE, scene.popped(a_message()))
    scene.receive(attempt_id="attempt")
    (header,) = scene.asked(pop.POP_MESSAGE)
    assert (header.order, header.attempt_id) == (True, "attempt")


@pytest.mark.parametrize(
    ("body", "flag"),
    [
        (zlib.compress(b"plain"), MessageSysFlag.COMPRESSED),
        (lz4.frame.compress(b"plain"), MessageSysFlag.COMPRESSED | MessageSysFlag.COMPRESSION_LZ4),
        (gzip.compress(b"plain", mtime=0), MessageSysFlag.COMPRESSED),
    ],
)
def test_compressed_bodies_are_plain(scene: ProxyScene, body: bytes, flag: int) -> None:
    scene.heartbeat()
    scene.on(pop.POP_MESSAGE, scene.popped(a_message(body, sys_flag=flag)))
    (message,) = written(scene.receive())[1]
    assert message.body == b"plain"
    assert message.system_properties.body_encoding == 1


def test_what_comes_after_the_call_has_ended_is_given_back(scene: ProxyScene) -> None:
    scene.heartbeat()
    pending = PendingReply()
    scene.on(pop.POP_MESSAGE, pending)
    outcome = scene.receive()
    outcome.cancel()
    pending.resolve(scene.popped(a_message(), a_message(b"b", 1)))
    hidden = scene.asked(pop.CHANGE_MESSAGE_INVISIBLETIME)
    assert [(each.offset, each.invisible_time, each.suspend) for each in hidden] == [
        (0, 1_000, True),
        (1, 1_000, True),
    ]


def test_it_is_told_when_all_is_given_back(scene: ProxyScene) -> None:
    assert scene.messaging.receives.settled().called
    scene.heartbeat()
    popped, hidden = PendingReply(), PendingReply()
    scene.on(pop.POP_MESSAGE, popped)
    scene.on(pop.CHANGE_MESSAGE_INVISIBLETIME, hidden)
    outcome = scene.receive()
    assert scene.messaging.receives.settled().called, "what is not there yet may take long"
    outcome.call.cancel()
    popped.resolve(scene.popped(a_message()))
    settled = scene.messaging.receives.settled()
    assert not settled.called
    hidden.resolve(refusal(ResponseCode.SYSTEM_ERROR))
    assert settled.called


def test_a_reader_that_is_slow_is_waited_for_and_the_rest_given_back(scene: ProxyScene) -> None:
    scene.heartbeat()
    pending = PendingReply()
    scene.on(pop.POP_MESSAGE, pending)
    outcome = scene.receive()
    outcome.sink.room = 3  # the status, one message
    pending.resolve(scene.popped(*(a_message(b"%d" % n, n) for n in range(4))))
    assert len(outcome.sink.sent) == 3
    outcome.sink.room = 2
    outcome.call.on_room()  # type: ignore[misc]
    assert len(outcome.sink.sent) == 5
    outcome.call.cancel()
    scene.advance(100)
    assert [each.offset for each in scene.asked(pop.CHANGE_MESSAGE_INVISIBLETIME)] == [3]
    assert outcome.answers


def test_what_was_popped_is_held_for_the_caller(scene: ProxyScene) -> None:
    scene.heartbeat()
    scene.on(pop.POP_MESSAGE, scene.popped(a_message(bytes(5_000)), a_message(bytes(6_000), 1)))
    assert scene.receive().sink.held_bytes > 11_000


def test_a_broker_that_is_not_named_is_one_that_can_be_read(scene: ProxyScene) -> None:
    scene.heartbeat()
    scene.on(pop.POP_MESSAGE, refusal(ResponseCode.POLLING_TIMEOUT))
    scene.receive(message_queue={"topic": {"name": "T"}, "broker": {"name": "gone"}})
    (header,) = scene.asked(pop.POP_MESSAGE)
    assert header.bname in ("broker-a", "broker-b")
