# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from typing import Any

import pytest

from tests.broker.conftest import STORE_HOST, Parts
from tests.fakes import FakePeer, outcome_of, refused, reply_of, request
from txrocketmq.broker.processors.send.reply_message import ReplyMessageProcessor
from txrocketmq.broker.processors.send.send_checks import SendChecks
from txrocketmq.broker.tables.clients import Client
from txrocketmq.remoting.call import Reply
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.errors import RequestTimeout
from txrocketmq.remoting.message.flags import MessageSysFlag
from txrocketmq.remoting.message.ids import decode_message_id
from txrocketmq.remoting.message.message import MessageExt, decode_message
from txrocketmq.remoting.message.properties import decode_properties, encode_properties
from txrocketmq.remoting.protocol import send
from txrocketmq.remoting.protocol.send import ReplyMessageRequestHeader, SendMessageRequestHeader

TOPIC = "DefaultCluster_REPLY_TOPIC"
PROPERTIES = {"REPLY_TO_CLIENT": "asker", "CORRELATION_ID": "c", "MSG_TYPE": "reply"}


@pytest.fixture
def processor(parts: Parts) -> ReplyMessageProcessor:
    return ReplyMessageProcessor(
        parts.config,
        SendChecks(parts.config, parts.topics, parts.store),
        parts.intake,
        parts.producers,
        "127.0.0.1:10911",
        STORE_HOST,
    )


@pytest.fixture
def asker(parts: Parts) -> FakePeer:
    """The client that has asked; it says at once that it has the reply."""
    peer = FakePeer(51_000)
    parts.producers.register("askers", Client(peer, "asker", "JAVA", 493, parts.now_ms))
    peer.answer = Reply()
    return peer


def reply(
    processor: ReplyMessageProcessor,
    properties: dict[str, str] | None = None,
    body: bytes = b"re",
    **fields: Any,
) -> Any:
    header = SendMessageRequestHeader(
        **{
            "producer_group": "p", "topic": TOPIC, "default_topic": "TBW102",
            "default_topic_queue_nums": 4, "queue_id": 0, "sys_flag": 1, "born_timestamp": 9,
            "flag": 7, "properties": encode_properties(properties or PROPERTIES), **fields,
        }
    )  # fmt: skip
    return processor.reply(request(header, body))


def stored(parts: Parts) -> list[MessageExt]:
    units = parts.store.queue_units(TOPIC, 0, 0, 10)
    records = [parts.store.message_at(unit.physical_offset) for unit in units]
    return [decode_message(record, decompress_body=False)[0] for record in records if record]


def test_the_topic_is_there_from_the_start(parts: Parts) -> None:
    assert parts.topics.get(TOPIC) is not None


def test_a_reply_comes_to_the_asker_and_is_stored(
    parts: Parts, processor: ReplyMessageProcessor, asker: FakePeer
) -> None:
    answer = reply_of(reply(processor))
    ((call, header, body, timeout_ms),) = asker.asked
    assert call is send.PUSH_REPLY_MESSAGE_TO_CLIENT
    assert isinstance(header, ReplyMessageRequestHeader)
    assert (body, timeout_ms) == (b"re", 10_000)
    assert (header.topic, header.queue_id, header.sys_flag, header.flag) == (TOPIC, 0, 1, 7)
    assert (header.born_timestamp, header.store_timestamp) == (9, parts.now_ms)
    assert (header.born_host, header.store_host) == ("127.0.0.1:50000", "127.0.0.1:10911")
    pushed = decode_properties(header.properties or "")
    assert pushed == {**PROPERTIES, "PUSH_REPLY_TIME": str(parts.now_ms)}
    (message,) = stored(parts)
    assert (message.body, message.flag) == (b"re", 7)
    assert message.sys_flag == MessageSysFlag.COMPRESSED
    assert message.properties == PROPERTIES
    assert answer.code == 0
    assert answer.header is not None
    assert decode_message_id(answer.header.msg_id).commit_log_offset == message.commit_log_offset
    assert (answer.header.queue_id, answer.header.queue_offset) == (0, 0)
    assert answer.ext_fields == {"MSG_REGION": "DefaultRegion", "TRACE_ON": "true"}
    assert parts.stats.item("TOPIC_PUT_NUMS", TOPIC) is not None


def test_it_need_not_be_stored(
    parts: Parts, processor: ReplyMessageProcessor, asker: FakePeer
) -> None:
    parts.set(store_reply_message_enable=False)
    answer = reply_of(reply(processor))
    assert stored(parts) == []
    assert answer.code == 0
    assert answer.header is not None
    assert (answer.header.msg_id, answer.header.queue_offset) == ("0", 0)
    assert len(asker.asked) == 1


@pytest.mark.parametrize("answer", [Reply(code=1, remark="no"), RequestTimeout("10 s")])
def test_an_asker_that_does_not_take_it_is_told(
    parts: Parts,
    processor: ReplyMessageProcessor,
    asker: FakePeer,
    answer: Reply[Any] | Exception,
) -> None:
    asker.answer = None
    pending = reply(processor)
    assert len(stored(parts)) == 1
    asker.pending[0].resolve(answer)
    outcome = outcome_of(pending)
    assert (outcome.code, outcome.remark) == (1, "push reply message to askerfail.")


@pytest.mark.parametrize(
    ("properties", "remark"),
    [
        (
            {"REPLY_TO_CLIENT": "gone"},
            "push reply message fail, channel of <gone> not found.",
        ),
        ({"MSG_TYPE": "reply"}, "reply message properties[REPLY_TO_CLIENT] is null"),
    ],
)
def test_without_an_asker_it_is_only_stored(
    parts: Parts, processor: ReplyMessageProcessor, properties: dict[str, str], remark: str
) -> None:
    answer = reply_of(reply(processor, properties))
    assert (answer.code, answer.remark) == (1, remark)
    assert len(stored(parts)) == 1


def test_the_checks_of_a_send_count(
    parts: Parts, processor: ReplyMessageProcessor, asker: FakePeer
) -> None:
    for topic, code in (
        ("RMQ_SYS_TRANS_HALF_TOPIC", ResponseCode.NO_PERMISSION),
        ("no topic!", ResponseCode.INVALID_PARAMETER),
    ):
        with refused(code):
            reply(processor, topic=topic)
    with refused(ResponseCode.SYSTEM_ERROR, "queueId[99] is illegal"):
        reply(processor, queue_id=99)
    parts.set(start_accept_send_request_time_stamp=parts.now_ms + 1)
    with refused(ResponseCode.SYSTEM_ERROR, "unable to service"):
        reply(processor)
    assert not asker.asked


def test_what_cannot_be_stored_is_handed_on_all_the_same(
    parts: Parts, processor: ReplyMessageProcessor, asker: FakePeer
) -> None:
    answer = reply_of(reply(processor, body=b""))
    assert answer.header is not None
    assert (answer.code, answer.header.msg_id) == (0, "0")
    parts.set(max_message_size=1)
    answer = reply_of(reply(processor, body=b"large"))
    assert answer.header is not None
    assert (answer.code, answer.header.msg_id) == (0, "0")
    assert len(asker.asked) == 2
    assert stored(parts) == []


def test_any_queue_will_do(parts: Parts, processor: ReplyMessageProcessor, asker: FakePeer) -> None:
    answer = reply_of(reply(processor, queue_id=-1))
    assert answer.header is not None
    assert answer.header.queue_id == 0
    assert len(stored(parts)) == len(asker.asked) == 1
