# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from typing import Any

import pytest

from tests.broker.conftest import Parts
from tests.fakes import outcome_of, refused, request
from txrocketmq.broker.processors.client.call_client import CallClientProcessor
from txrocketmq.remoting.call import PendingReply, Reply
from txrocketmq.remoting.codes import RequestCode, ResponseCode
from txrocketmq.remoting.errors import RequestTimeout, ResponseError, SendError
from txrocketmq.remoting.message.ids import Host, encode_message_id
from txrocketmq.remoting.message.message import MessageQueue, decode_message
from txrocketmq.remoting.protocol.body.offset import GetConsumerStatusBody
from txrocketmq.remoting.protocol.body.route import TopicConfig
from txrocketmq.remoting.protocol.body.topic import SubscriptionGroupConfig
from txrocketmq.remoting.protocol.offset import GetConsumerStatusRequestHeader
from txrocketmq.remoting.protocol.operations.admin import (
    ConsumeMessageDirectlyResultRequestHeader,
    GetConsumerRunningInfoRequestHeader,
)

RUNNING_INFO = GetConsumerRunningInfoRequestHeader(
    consumer_group="g", client_id="c1", jstack_enable=True
)


@pytest.fixture
def processor(parts: Parts) -> CallClientProcessor:
    return CallClientProcessor(
        parts.config,
        parts.topics,
        parts.groups,
        parts.consumers,
        parts.store,
        parts.patience,
        parts.walks,
    )


def test_what_a_consumer_answers_is_handed_on(parts: Parts, processor: CallClientProcessor) -> None:
    other, peer = parts.consumer("g", "c0"), parts.consumer("g", "c1")
    peer.answer = Reply(body=b"info", code=7, remark="so", ext_fields={"a": "b"})
    reply = outcome_of(processor.running_info(request(RUNNING_INFO)))
    assert (reply.code, reply.remark, reply.body, reply.ext_fields) == (
        7,
        "so",
        b"info",
        {"a": "b"},
    )
    ((call, header, body, timeout_ms),) = peer.asked
    assert call.code == RequestCode.GET_CONSUMER_RUNNING_INFO
    assert (header, body, timeout_ms) == (RUNNING_INFO, b"", 10_000)
    assert other.asked == []


@pytest.mark.parametrize(
    ("error", "code", "remark"),
    [
        (RequestTimeout("10 s"), ResponseCode.CONSUME_MSG_TIMEOUT, "consumer <g> <c1> Timeout:"),
        (SendError("lost"), ResponseCode.SYSTEM_ERROR, "invoke consumer <g> <c1> Exception: lost"),
    ],
)
def test_a_consumer_that_does_not_answer(
    parts: Parts,
    processor: CallClientProcessor,
    error: Exception,
    code: ResponseCode,
    remark: str,
) -> None:
    parts.consumer("g", "c1").answer = error
    outcome = outcome_of(processor.running_info(request(RUNNING_INFO)))
    assert isinstance(outcome, ResponseError)
    assert outcome.code == code
    assert remark in (outcome.remark or "")


def test_consumers_that_cannot_be_asked(parts: Parts, processor: CallClientProcessor) -> None:
    with refused(ResponseCode.SYSTEM_ERROR, "The Consumer <g> <c1> not online"):
        processor.running_info(request(RUNNING_INFO))
    parts.consumer("g", "c2")
    with refused(ResponseCode.SYSTEM_ERROR, "not online"):
        processor.running_info(request(RUNNING_INFO))
    parts.consumer("g", "c1", version=61)
    with refused(ResponseCode.SYSTEM_ERROR, "please upgrade it to V3_1_8_SNAPSHOT"):
        processor.running_info(request(RUNNING_INFO))


def directly(msg_id: str, **fields: Any) -> ConsumeMessageDirectlyResultRequestHeader:
    return ConsumeMessageDirectlyResultRequestHeader(
        consumer_group="g", client_id="c1", msg_id=msg_id, **fields
    )


def test_a_consumer_consumes_one_message_now(parts: Parts, processor: CallClientProcessor) -> None:
    parts.topics.update(TopicConfig(topic_name="T", topic_sys_flag=1))
    parts.groups.update(SubscriptionGroupConfig(group_name="g", group_sys_flag=2))
    put = parts.put("T", body=b"now")
    peer = parts.consumer("g", "c1")
    msg_id = encode_message_id(Host("127.0.0.1", 10911), put.physical_offset)
    pending = processor.consume_directly(request(directly(msg_id, topic="T")))
    assert isinstance(pending, PendingReply)
    assert not pending.done
    ((_, header, body, _),) = peer.asked
    assert header == directly(
        msg_id, topic="T", broker_name="DEFAULT_BROKER", topic_sys_flag=1, group_sys_flag=2
    )
    assert decode_message(body)[0].body == b"now"
    peer.pending[0].resolve(Reply(body=b"result"))
    assert outcome_of(pending).body == b"result"


@pytest.mark.parametrize("msg_id", ["", "nonsense", "7F00000100002A9F00000000000000FF"])
def test_a_message_that_is_not_there(
    parts: Parts, processor: CallClientProcessor, msg_id: str
) -> None:
    parts.consumer("g", "c1")
    with refused(ResponseCode.SYSTEM_ERROR):
        processor.consume_directly(request(directly(msg_id)))


def status(client: str | None = None) -> GetConsumerStatusRequestHeader:
    return GetConsumerStatusRequestHeader(topic="T", group="g", client_addr=client)


def test_how_far_all_consumers_have_come(parts: Parts, processor: CallClientProcessor) -> None:
    queue = MessageQueue("T", "b", 0)
    good, silent, odd, refusing = (parts.consumer("g", name) for name in ("c1", "c2", "c3", "c4"))
    good.answer = Reply(body=GetConsumerStatusBody(message_queue_table={queue: 5}).encode())
    odd.answer = Reply(body=b"{broken")
    refusing.answer = Reply(code=ResponseCode.SYSTEM_ERROR)
    pending = processor.status(request(status()))
    assert isinstance(pending, PendingReply)
    assert not pending.done
    silent.pending[0].resolve(RequestTimeout("5 s"))
    reply = outcome_of(pending)
    table = GetConsumerStatusBody.decode(reply.body_bytes).consumer_table
    assert table == {"c1": {queue: 5}}
    ((call, header, _, timeout_ms),) = good.asked
    assert call.code == RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT
    assert (header, timeout_ms) == (status(), 5_000)


def test_how_far_one_consumer_has_come(parts: Parts, processor: CallClientProcessor) -> None:
    peers = {name: parts.consumer("g", name) for name in ("c1", "c2")}
    pending = processor.status(request(status("c2")))
    assert peers["c1"].asked == []
    peers["c2"].pending[0].resolve(Reply(body=GetConsumerStatusBody().encode()))
    assert GetConsumerStatusBody.decode(outcome_of(pending).body_bytes).consumer_table == {"c2": {}}
    stranger = outcome_of(processor.status(request(status("x"))))
    assert GetConsumerStatusBody.decode(stranger.body_bytes).consumer_table == {}


def test_groups_that_cannot_be_asked(parts: Parts, processor: CallClientProcessor) -> None:
    with refused(ResponseCode.SYSTEM_ERROR, "No Any Consumer online in the consumer group: [g]"):
        processor.status(request(status()))
    parts.consumer("g", "c1", version=27)
    with refused(ResponseCode.SYSTEM_ERROR, "does not support this feature. version=27"):
        processor.status(request(status()))
