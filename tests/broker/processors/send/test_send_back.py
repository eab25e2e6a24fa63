# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from typing import Any

import pytest

from tests.broker.conftest import STORE_HOST, Parts
from tests.broker.delays.scene import deliver
from tests.fakes import refused, request
from txrocketmq.broker.processors.send.send_back import SendBackProcessor
from txrocketmq.remoting.call import Reply
from txrocketmq.remoting.codes import MQVersion, ResponseCode
from txrocketmq.remoting.message.message import MessageExt, decode_message
from txrocketmq.remoting.message.topics import SCHEDULE_TOPIC
from txrocketmq.remoting.protocol.body.route import TopicConfig
from txrocketmq.remoting.protocol.body.topic import SubscriptionGroupConfig
from txrocketmq.remoting.protocol.send import ConsumerSendMsgBackRequestHeader


@pytest.fixture
def processor(parts: Parts) -> SendBackProcessor:
    parts.topic("T")
    return SendBackProcessor(
        parts.config,
        parts.topics,
        parts.groups,
        parts.intake,
        parts.stats,
        STORE_HOST,
        parts.clock,
        parts.patience,
    )


def send_back(
    parts: Parts,
    processor: SendBackProcessor,
    offset: int,
    *,
    version: int = MQVersion.V5_4_0,
    **fields: Any,
) -> None:
    header = ConsumerSendMsgBackRequestHeader(
        offset=offset, **{"group": "g", "delay_level": 0, **fields}
    )
    reply = processor.send_back(request(header, version=version, now_ms=parts.now_ms))
    assert isinstance(reply, Reply)
    assert reply.code == ResponseCode.SUCCESS


def messages(parts: Parts, topic: str, queue_id: int = 0) -> list[MessageExt]:
    return [
        decode_message(record)[0]
        for at, size, _ in parts.store.queue_units(topic, queue_id, 0, 100)
        if (record := parts.store.message_at(at, size)) is not None
    ]


def test_a_message_waits_and_comes_to_the_retry_topic(
    parts: Parts, processor: SendBackProcessor
) -> None:
    put = parts.put("T", 1, body=b"again", TAGS="a", UNIQ_KEY="U", WAIT="true")
    (stored,) = messages(parts, "T", 1)
    send_back(parts, processor, put.physical_offset)
    assert messages(parts, "%RETRY%g") == []
    assert len(messages(parts, SCHEDULE_TOPIC, 2)) == 1
    assert deliver(parts.schedule, parts.now_ms + 9_999) == 0
    assert deliver(parts.schedule, parts.now_ms + 10_000) == 1
    (again,) = messages(parts, "%RETRY%g")
    assert again.body == b"again"
    assert again.properties == {
        "TAGS": "a",
        "UNIQ_KEY": "U",
        "WAIT": "false",
        "RETRY_TOPIC": "T",
        "ORIGIN_MESSAGE_ID": stored.offset_msg_id,
        "DELAY": "3",
        "REAL_TOPIC": "%RETRY%g",
        "REAL_QID": "0",
    }
    assert (again.reconsume_times, again.born_timestamp) == (1, stored.born_timestamp)
    assert again.born_host == stored.born_host
    assert parts.stats.item("SNDBCK_PUT_NUMS", "T@g") is not None


def test_each_try_waits_longer_and_remembers_where_it_began(
    parts: Parts, processor: SendBackProcessor
) -> None:
    first = parts.put("T", body=b"again")
    send_back(parts, processor, first.physical_offset, delay_level=1)
    deliver(parts.schedule, parts.now_ms + 1_000)
    (second,) = messages(parts, "%RETRY%g")
    send_back(parts, processor, second.commit_log_offset)
    deliver(parts.schedule, parts.now_ms + 30_000)
    third = messages(parts, "%RETRY%g")[1]
    assert third.properties["DELAY"] == "4"
    assert third.reconsume_times == 2
    assert third.properties["RETRY_TOPIC"] == "T"
    assert third.properties["ORIGIN_MESSAGE_ID"] == second.properties["ORIGIN_MESSAGE_ID"]


def test_a_level_that_is_too_high_is_the_highest(
    parts: Parts, processor: SendBackProcessor
) -> None:
    put = parts.put("T", reconsume_times=15)
    send_back(parts, processor, put.physical_offset, delay_level=99)
    send_back(parts, processor, put.physical_offset, delay_level=0)
    assert len(messages(parts, SCHEDULE_TOPIC, 17)) == 2


@pytest.mark.parametrize(
    ("tried", "fields", "is_dead"),
    [
        (15, {}, False),
        (16, {}, True),
        (0, {"delay_level": -1}, True),
        (2, {"max_reconsume_times": 3}, False),
        (3, {"max_reconsume_times": 3}, True),
        (16, {"max_reconsume_times": 17}, False),
        (3, {"max_reconsume_times": 3, "version": 120}, False),
    ],
)
def test_what_was_tried_often_enough_is_dead(
    parts: Parts,
    processor: SendBackProcessor,
    tried: int,
    fields: dict[str, Any],
    is_dead: bool,
) -> None:
    put = parts.put("T", reconsume_times=tried, TAGS="a")
    send_back(parts, processor, put.physical_offset, **fields)
    dead = messages(parts, "%DLQ%g")
    assert len(dead) == is_dead
    if dead:
        assert dead[0].properties["DELAY"] == "0"
        assert dead[0].properties["RETRY_TOPIC"] == "T"
        assert dead[0].reconsume_times == tried + 1
        made = parts.topics.get("%DLQ%g")
        assert made is not None
        assert (made.read_queue_nums, made.perm) == (1, 6)


def test_topics_are_made_as_the_group_wants(parts: Parts, processor: SendBackProcessor) -> None:
    parts.groups.update(SubscriptionGroupConfig(group_name="g", retry_queue_nums=3))
    put = parts.put("T")
    send_back(parts, processor, put.physical_offset, unit_mode=True)
    made = parts.topics.get("%RETRY%g")
    assert made is not None
    assert (made.read_queue_nums, made.topic_sys_flag) == (3, 2)


def test_a_group_without_retries_loses_the_message(
    parts: Parts, processor: SendBackProcessor
) -> None:
    parts.groups.update(SubscriptionGroupConfig(group_name="g", retry_queue_nums=0))
    send_back(parts, processor, 12345)
    assert parts.topics.get("%RETRY%g") is None


def test_what_cannot_be_sent_back(
    parts: Parts, processor: SendBackProcessor, monkeypatch: pytest.MonkeyPatch
) -> None:
    put = parts.put("T")
    for offset in (put.physical_offset + 1, -1, 2**60):
        with refused(ResponseCode.SYSTEM_ERROR, f"look message by offset failed, {offset}"):
            send_back(parts, processor, offset)
    with refused(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, "subscription group not exist, a b"):
        send_back(parts, processor, put.physical_offset, group="a b")
    record = bytes(parts.store.message_at(put.physical_offset) or b"")
    parts.store.stop(parts.now_ms)
    monkeypatch.setattr(parts.store, "message_at", lambda offset, **_: record)
    with refused(ResponseCode.SYSTEM_ERROR, "SERVICE_NOT_AVAILABLE"):
        send_back(parts, processor, put.physical_offset)


def test_permissions(parts: Parts, processor: SendBackProcessor) -> None:
    put = parts.put("T")
    parts.topics.update(TopicConfig(topic_name="%RETRY%g", perm=4))
    with refused(ResponseCode.NO_PERMISSION, "the topic[%RETRY%g] sending message is forbidden"):
        send_back(parts, processor, put.physical_offset)
    parts.set(broker_permission=4)
    with refused(ResponseCode.NO_PERMISSION, "sending message is forbidden"):
        send_back(parts, processor, put.physical_offset)


@pytest.mark.parametrize("prefix", ["%RETRY%", "%DLQ%"])
def test_topics_beyond_the_limit_are_not_made(
    parts: Parts, processor: SendBackProcessor, prefix: str
) -> None:
    put = parts.put("T", reconsume_times=20)
    parts.set(auto_create_limit=parts.groups.count + 1)
    for number in range(parts.groups.count + 1):
        parts.topics.create_in_heartbeat(f"{prefix}x{number}", 1)
    topics, groups, end = parts.topics.all(), parts.groups.all(), parts.store.max_physical_offset
    with refused(ResponseCode.SYSTEM_ERROR, "creates no more by itself"):
        send_back(parts, processor, put.physical_offset)
    assert (parts.topics.all(), parts.groups.all()) == (topics, groups)
    assert parts.store.max_physical_offset == end
    assert parts.topics.delete(f"{prefix}x0")
    send_back(parts, processor, put.physical_offset)
    assert parts.topics.get(f"{prefix}g") is not None or prefix == "%RETRY%"
