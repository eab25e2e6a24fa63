# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.broker.processors.sends import Sending
from tests.fakes import refused
from txrocketmq.broker.processors.send.batches import MAX_BATCH
from txrocketmq.broker.store.formats.config import SYNC_FLUSH
from txrocketmq.remoting.call import WAITING_BYTES, Reply
from txrocketmq.remoting.codes import MQVersion, RequestCode, ResponseCode
from txrocketmq.remoting.command import RemotingCommand
from txrocketmq.remoting.errors import ResponseError
from txrocketmq.remoting.frame.connection import reply_of
from txrocketmq.remoting.message.flags import MessageSysFlag, PermName, TopicSysFlag
from txrocketmq.remoting.message.message import Message, MessageExt, MessageQueue, encode_batch
from txrocketmq.remoting.message.properties import encode_properties
from txrocketmq.remoting.message.topics import FORBIDDEN_TO_SEND, SCHEDULE_TOPIC
from txrocketmq.remoting.protocol.body.route import TopicConfig
from txrocketmq.remoting.protocol.body.topic import SubscriptionGroupConfig
from txrocketmq.remoting.protocol.send import SEND_MESSAGE_V2, SendMessageRequestHeader

STORED = {
    ResponseCode.SUCCESS,
    ResponseCode.FLUSH_DISK_TIMEOUT,
    ResponseCode.FLUSH_SLAVE_TIMEOUT,
    ResponseCode.SLAVE_NOT_AVAILABLE,
}
KEY = "7F00000100002A139A9E5EFB7A4F0000"


@pytest.fixture
def sending(tmp_path: Path) -> Iterator[Sending]:
    made = Sending(tmp_path)
    made.parts.topic("T")
    yield made
    made.close()


def header(topic: str = "T", queue_id: int = 1, **fields: Any) -> SendMessageRequestHeader:
    properties = fields.pop("properties", {"UNIQ_KEY": KEY})
    values: dict[str, Any] = {
        "producer_group": "p",
        "default_topic": "TBW102",
        "default_topic_queue_nums": 4,
        "sys_flag": 0,
        "born_timestamp": 1_700_000_000_000,
        "flag": 0,
        "properties": properties if properties is None else encode_properties(properties),
    }
    return SendMessageRequestHeader(topic=topic, queue_id=queue_id, **{**values, **fields})


def send(
    sending: Sending,
    header: SendMessageRequestHeader,
    body: bytes = b"body",
    code: int = RequestCode.SEND_MESSAGE_V2,
    version: int = MQVersion.V5_4_0,
) -> Any:
    """The answer with its typed header; None while there is none. ResponseError for errors."""
    command = RemotingCommand(code, header.encode(), body, version=version)
    return next((reply for reply in answers_of(sending.serve([command]))), None)


def answers_of(commands: list[RemotingCommand]) -> list[Any]:
    replies = [reply_of(command, SEND_MESSAGE_V2) for command in commands]
    for reply in replies:
        assert isinstance(reply, Reply)
        if reply.code not in STORED:
            raise ResponseError(reply.code, reply.remark)
    return replies


def sent(sending: Sending, header: SendMessageRequestHeader, **more: Any) -> MessageExt:
    """The stored message of a send that must succeed."""
    reply = send(sending, header, **more)
    assert isinstance(reply, Reply)
    assert reply.code == ResponseCode.SUCCESS
    return sending.stored()[-1]


# ------------------------------------------------------------------------- what is stored


def test_a_message_is_stored_with_what_the_broker_adds(sending: Sending) -> None:
    message = sent(
        sending,
        header(flag=7, sys_flag=1, reconsume_times=2, properties={"UNIQ_KEY": KEY, "TAGS": "a"}),
    )
    assert message.body == b"body"
    assert message.properties == {
        "UNIQ_KEY": KEY,
        "TAGS": "a",
        "MSG_REGION": "DefaultRegion",
        "TRACE_ON": "true",
        "CLUSTER": "DefaultCluster",
    }
    assert (message.topic, message.queue_id, message.flag) == ("T", 1, 7)
    assert (message.sys_flag, message.reconsume_times) == (1, 2)
    assert message.born_timestamp == 1_700_000_000_000
    assert message.store_timestamp == sending.parts.now_ms
    assert str(message.born_host) == sending.peer.remote_address
    assert str(message.store_host) == "127.0.0.1:10911"


def test_the_answer_tells_where(sending: Sending) -> None:
    send(sending, header())
    reply = send(sending, header())
    message = sending.stored()[-1]
    assert reply.header.msg_id == message.offset_msg_id
    assert (reply.header.queue_id, reply.header.queue_offset) == (1, 1)
    assert reply.header.transaction_id == KEY
    assert reply.ext_fields.items() >= {"MSG_REGION": "DefaultRegion", "TRACE_ON": "true"}.items()


def test_a_unique_key_is_made_where_there_is_none(sending: Sending) -> None:
    for properties in (None, {"UNIQ_KEY": ""}, {}):
        reply = send(sending, header(properties=properties))
        key = sending.stored()[-1].properties["UNIQ_KEY"]
        assert re.fullmatch("[0-9A-F]{32}", key)
        assert reply.header.transaction_id == key


def test_a_pop_check_point_is_not_stored(sending: Sending) -> None:
    assert "POP_CK" not in sent(sending, header(properties={"POP_CK": "1 2"})).properties


def test_a_negative_queue_lets_the_broker_choose(sending: Sending) -> None:
    queues = {sent(sending, header(queue_id=-1)).queue_id for _ in range(60)}
    assert queues == {0, 1, 2, 3}


def test_topics_of_many_tags_mark_their_messages(sending: Sending) -> None:
    sending.parts.topics.update(TopicConfig(topic_name="M", topic_filter_type="MULTI_TAG"))
    assert sent(sending, header("M", 0)).sys_flag == MessageSysFlag.MULTI_TAGS


def test_each_message_of_a_run_has_its_own_time(sending: Sending) -> None:
    times = [5, 5, 6, 5]
    headers = [header(born_timestamp=each) for each in times]
    sending.serve([RemotingCommand(310, each.encode_letters(), b"body") for each in headers])
    assert [each.born_timestamp for each in sending.stored()] == times


@pytest.mark.parametrize("born", ["", "x", "-1x", "²"])
def test_a_time_that_is_none_is_refused(sending: Sending, born: str) -> None:
    good = header().encode_letters()
    bad = {**good, "g": born}
    for fields in (good, bad, good, bad):
        sending.serve([RemotingCommand(310, fields, b"body")])
    assert len(sending.stored()) == 2
    sending.serve([RemotingCommand(310, each, b"body") for each in (bad, good, bad, good)])
    assert len(sending.stored()) == 4


def test_sends_are_counted(sending: Sending) -> None:
    send(sending, header())
    item = sending.parts.stats.item("TOPIC_PUT_NUMS", "T")
    assert item is not None
    assert item.value == 1


# ------------------------------------------------------------------------------- refusals


def test_an_order_topic_of_a_broker_that_may_not_write(sending: Sending) -> None:
    sending.parts.set(broker_permission=PermName.READ)
    sent(sending, header())  # any other topic: producers learn it from the route
    sending.parts.topics.set_order_topics({"T"})
    with refused(ResponseCode.NO_PERMISSION, "sending message is forbidden"):
        send(sending, header())


@pytest.mark.parametrize(
    ("topic", "remark"),
    [
        ("", "The specified topic is blank."),
        ("a b", "contains illegal characters"),
        ("x" * 128, "is longer than topic max length: 127"),
        ("%RETRY%" + "x" * 250, "max length: 255"),
    ],
)
def test_names_that_are_none(sending: Sending, topic: str, remark: str) -> None:
    with refused(ResponseCode.INVALID_PARAMETER, remark):
        send(sending, header(topic))


@pytest.mark.parametrize("topic", sorted(FORBIDDEN_TO_SEND))
def test_topics_nobody_may_send_to(sending: Sending, topic: str) -> None:
    with refused(ResponseCode.NO_PERMISSION, f"Sending message to topic[{topic}] is forbidden."):
        send(sending, header(topic))


def test_an_unknown_topic_without_a_model(sending: Sending) -> None:
    with refused(ResponseCode.TOPIC_NOT_EXIST, "topic[New] not exist, apply first please!"):
        send(sending, header("New", default_topic="none"))
    assert sending.parts.topics.get("New") is None


def test_an_unknown_topic_is_made_of_its_model(sending: Sending) -> None:
    sent(sending, header("New", unit_mode=True))
    made = sending.parts.topics.get("New")
    assert made is not None
    assert (made.write_queue_nums, made.topic_sys_flag) == (4, TopicSysFlag.UNIT)


def test_what_is_known_of_a_header_ends_when_a_topic_changes(sending: Sending) -> None:
    assert sent(sending, header(queue_id=3)).queue_id == 3
    sending.parts.topics.update(TopicConfig(topic_name="T", read_queue_nums=2, write_queue_nums=2))
    with refused(ResponseCode.SYSTEM_ERROR, r"request queueId[3] is illegal"):
        send(sending, header(queue_id=3))


def test_what_is_known_of_a_header_ends_when_the_broker_may_less(sending: Sending) -> None:
    sending.parts.topics.set_order_topics({"T"})
    sent(sending, header())
    sending.parts.set(broker_permission=PermName.READ)
    with refused(ResponseCode.NO_PERMISSION, "sending message is forbidden"):
        send(sending, header())


def test_a_queue_out_of_range(sending: Sending) -> None:
    told = (
        "request queueId[4] is illegal, TopicConfig [topicName=T, readQueueNums=4,"
        " writeQueueNums=4, perm=RW-, topicFilterType=SINGLE_TAG, topicSysFlag=0, order=false,"
        " attributes={}] Producer: 127.0.0.1:"
    )
    # Not INVALID_PARAMETER, after which no client tries another queue.
    with refused(ResponseCode.SYSTEM_ERROR, told):
        send(sending, header(queue_id=4))
    sending.parts.topics.update(TopicConfig(topic_name="T", read_queue_nums=5, write_queue_nums=4))
    assert sent(sending, header(queue_id=4)).queue_id == 4


def test_before_the_broker_accepts_sends(sending: Sending) -> None:
    now_ms = sending.parts.now_ms
    sending.parts.set(start_accept_send_request_time_stamp=now_ms + 1)
    with refused(ResponseCode.SYSTEM_ERROR, f"broker unable to service, until {now_ms + 1}"):
        send(sending, header())
    sending.parts.set(start_accept_send_request_time_stamp=now_ms)
    sent(sending, header())


@pytest.mark.parametrize(
    ("properties", "code", "remark"),
    [
        ({"TIMER_DELAY_SEC": "x"}, ResponseCode.MESSAGE_ILLEGAL, "timer message illegal"),
        ({"TIMER_DELAY_SEC": "259201"}, ResponseCode.MESSAGE_ILLEGAL, "max delay 259200000ms"),
        ({"INNER_NUM": "2"}, ResponseCode.MESSAGE_ILLEGAL, "the message is illegal"),
    ],
)
def test_kinds_that_are_not_served(
    sending: Sending, properties: dict[str, str], code: ResponseCode, remark: str
) -> None:
    with refused(code, remark):
        send(sending, header(properties=properties))
    assert sending.stored() == []


def test_half_messages_may_be_refused(sending: Sending) -> None:
    sending.parts.set(reject_transaction_message=True)
    with refused(ResponseCode.NO_PERMISSION, "transaction message is forbidden"):
        send(sending, header(properties={"TRAN_MSG": "true"}))
    assert sending.stored() == []
    sending.parts.set(reject_transaction_message=False)
    told = sent(sending, header(properties={"TRAN_MSG": "true"}, queue_id=2))
    assert (told.topic, told.queue_id) == ("RMQ_SYS_TRANS_HALF_TOPIC", 0)
    assert (told.properties["REAL_TOPIC"], told.properties["REAL_QID"]) == ("T", "2")


def test_a_body_that_is_too_long(tmp_path: Path) -> None:
    sending = Sending(tmp_path, max_message_size=10)
    sending.parts.topic("T")
    with refused(ResponseCode.MESSAGE_ILLEGAL, "msg body length limit 10B"):
        send(sending, header(), bytes(11))
    with refused(ResponseCode.MESSAGE_ILLEGAL):
        send(sending, header(properties={"UNIQ_KEY": KEY, "own": "x" * 32_768}))
    sending.close()


def test_a_store_that_takes_nothing(sending: Sending) -> None:
    sending.close()
    with refused(ResponseCode.SERVICE_NOT_AVAILABLE, "service not available now. It may be caused"):
        send(sending, header())


# --------------------------------------------------------------------------- delayed messages


def test_a_delay_level_leads_over_the_schedule_topic(sending: Sending) -> None:
    reply = send(sending, header(queue_id=2, properties={"DELAY": "3", "TAGS": "a"}))
    message = sending.stored()[-1]
    assert (message.topic, message.queue_id) == (SCHEDULE_TOPIC, 2)
    assert message.properties["REAL_TOPIC"] == "T"
    assert message.properties["REAL_QID"] == "2"
    assert (reply.header.queue_id, reply.header.msg_id) == (2, message.offset_msg_id)
    (unit,) = sending.parts.store.queue_units(SCHEDULE_TOPIC, 2, 0, 10)
    assert unit[2] == sending.parts.now_ms + 10_000


@pytest.mark.parametrize(("level", "queue"), [("18", 17), ("19", 17), ("1000", 17), ("1", 0)])
def test_levels_beyond_the_last_mean_the_last(sending: Sending, level: str, queue: int) -> None:
    assert sent(sending, header(properties={"DELAY": level})).queue_id == queue


@pytest.mark.parametrize("level", ["0", "-1"])
def test_what_is_no_level_does_not_delay(sending: Sending, level: str) -> None:
    assert sent(sending, header(properties={"DELAY": level})).topic == "T"


def test_a_delay_level_takes_the_timer_away(sending: Sending) -> None:
    message = sent(sending, header(properties={"DELAY": "1", "TIMER_DELAY_SEC": "1"}))
    assert "TIMER_DELAY_SEC" not in message.properties


# ----------------------------------------------------------------- retries and dead letters


def retried(sending: Sending, times: int, **fields: Any) -> MessageExt:
    version = fields.pop("version", MQVersion.V5_4_0)
    return sent(sending, header("%RETRY%g", 0, reconsume_times=times, **fields), version=version)


def test_a_retry_topic_is_made(sending: Sending) -> None:
    assert retried(sending, 1, default_topic="none", unit_mode=True).topic == "%RETRY%g"
    made = sending.parts.topics.get("%RETRY%g")
    assert made is not None
    assert (made.write_queue_nums, made.topic_sys_flag) == (1, TopicSysFlag.UNIT_SUB)


def test_beyond_the_limit_it_is_a_dead_letter(sending: Sending) -> None:
    assert retried(sending, 16).topic == "%RETRY%g"
    dead = retried(sending, 17, properties={"DELAY": "3"})
    assert (dead.topic, dead.queue_id, dead.properties["DELAY"]) == ("%DLQ%g", 0, "-1")
    made = sending.parts.topics.get("%DLQ%g")
    assert made is not None
    assert made.write_queue_nums == 1


def test_the_limit_is_the_clients_or_the_groups(sending: Sending) -> None:
    assert retried(sending, 3, max_reconsume_times=2).topic == "%DLQ%g"
    assert retried(sending, 3, max_reconsume_times=3).topic == "%RETRY%g"
    old = MQVersion.V3_4_9 - 1  # such a client's number is not looked at
    assert retried(sending, 3, max_reconsume_times=2, version=old).topic == "%RETRY%g"
    sending.parts.groups.update(SubscriptionGroupConfig(group_name="g", retry_max_times=2))
    assert retried(sending, 3).topic == "%DLQ%g"


def test_what_an_orderly_group_sends_back_is_dead(sending: Sending) -> None:
    parts = sending.parts
    parts.locks.lock("g", "c", [MessageQueue("T", "b", 0)], parts.now_ms)
    assert retried(sending, 0).topic == "%DLQ%g"
    parts.now_ms += 60_001
    assert retried(sending, 0).topic == "%RETRY%g"


def test_a_group_that_is_not_made(sending: Sending) -> None:
    sending.parts.set(auto_create_subscription_group=False)
    with refused(
        ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, "subscription group not exist, unknown"
    ):
        send(sending, header("%RETRY%unknown", 0))


def test_a_delayed_retry_of_a_transaction_is_no_transaction(sending: Sending) -> None:
    properties = {"TRAN_MSG": "true", "DELAY": "3"}
    assert retried(sending, 1, properties=properties).topic == SCHEDULE_TOPIC


# --------------------------------------------------------------------------------- batches


def batch_of(*properties: dict[str, str]) -> bytes:
    return encode_batch(
        Message("T", f"m{index}".encode(), index, each) for index, each in enumerate(properties)
    )


@pytest.mark.parametrize(
    ("code", "batch"),
    [(RequestCode.SEND_BATCH_MESSAGE, None), (RequestCode.SEND_MESSAGE_V2, True)],
)
def test_a_batch_is_stored_message_by_message(
    sending: Sending, code: int, batch: bool | None
) -> None:
    body = batch_of({"UNIQ_KEY": "A1"}, {"UNIQ_KEY": "A2", "TAGS": "t"})
    reply = send(sending, header(batch=batch, properties={"WAIT": "true"}), body, code)
    one, two = sending.stored()
    assert (one.body, one.flag, two.body, two.flag) == (b"m0", 0, b"m1", 1)
    assert (one.queue_offset, two.queue_offset) == (0, 1)
    assert one.properties["UNIQ_KEY"] == "A1"
    assert two.properties == {"UNIQ_KEY": "A2", "TAGS": "t"}
    assert reply.header.msg_id == f"{one.offset_msg_id},{two.offset_msg_id}"
    assert reply.header.queue_offset == 0
    assert reply.header.transaction_id is None  # 4.9 gives the batch none


def test_a_batchs_own_key_is_the_answers(sending: Sending) -> None:
    reply = send(sending, header(), batch_of({}), RequestCode.SEND_BATCH_MESSAGE)
    assert reply.header.transaction_id == KEY


@pytest.mark.parametrize(
    ("topic", "body", "remark"),
    [
        ("%RETRY%g", batch_of({}), "batch request does not support retry group %RETRY%g"),
        ("%DLQ%" + "x" * 123, batch_of({}), "message topic length too long 128"),
        ("T", b"", "the message is illegal"),
        ("T", batch_of({})[:-1], "the batch is broken"),
        ("T", bytes(3), "the batch is broken"),
    ],
)
def test_batches_that_are_refused(sending: Sending, topic: str, body: bytes, remark: str) -> None:
    with refused(ResponseCode.MESSAGE_ILLEGAL, remark):
        send(sending, header(topic, 0), body, RequestCode.SEND_BATCH_MESSAGE)
    assert sending.stored() == []


def test_a_batch_larger_than_a_message_may_be(tmp_path: Path) -> None:
    body = batch_of({})
    sending = Sending(tmp_path, max_message_size=len(body) - 1)
    sending.parts.topic("T")
    with refused(ResponseCode.MESSAGE_ILLEGAL, "the message is illegal"):
        send(sending, header(), body, RequestCode.SEND_BATCH_MESSAGE)
    assert sending.stored() == []
    sending.close()


def test_a_batch_of_too_many(sending: Sending) -> None:
    body = batch_of({}) * (MAX_BATCH + 1)
    with refused(ResponseCode.MESSAGE_ILLEGAL):
        send(sending, header(), body, RequestCode.SEND_BATCH_MESSAGE)


# ------------------------------------------------------------------------------ sync flush


@pytest.fixture
def syncing(tmp_path: Path) -> Iterator[Sending]:
    made = Sending(tmp_path, flush_disk_type=SYNC_FLUSH)
    made.parts.topic("T")
    yield made
    made.close()


def test_the_answer_waits_for_the_disk(syncing: Sending) -> None:
    assert send(syncing, header()) is None
    assert send(syncing, header()) is None
    job = syncing.flush()
    assert send(syncing, header()) is None
    job.run()
    syncing.parts.store.flush.finish(job)
    offsets = [reply.header.queue_offset for reply in answers_of(syncing.answers())]
    assert offsets == [0, 1], "the third came after that fsync had begun"
    peer = syncing.peer
    assert (peer.waits, peer.waiting_bytes) == (1, WAITING_BYTES), "what waits is counted"


def test_the_disk_takes_too_long(syncing: Sending) -> None:
    assert send(syncing, header()) is None
    parts = syncing.parts
    parts.store.commit.expire(parts.now_ms)
    parts.store.commit.expire(parts.now_ms + parts.store.config.sync_flush_timeout)
    (reply,) = answers_of(syncing.answers())
    assert reply.code == ResponseCode.FLUSH_DISK_TIMEOUT
    assert reply.header.msg_id == syncing.stored()[0].offset_msg_id  # it is stored all the same


def test_who_has_gone_is_not_answered(syncing: Sending) -> None:
    assert send(syncing, header()) is None
    syncing.peer.close()
    job = syncing.flush()
    job.run()
    syncing.parts.store.flush.finish(job)
    assert syncing.answers() == []


def test_a_producer_that_does_not_wait(syncing: Sending) -> None:
    reply = send(syncing, header(properties={"UNIQ_KEY": KEY, "WAIT": "false"}))
    assert reply.code == ResponseCode.SUCCESS


def test_the_region_is_the_configured_one(tmp_path: Path) -> None:
    sending = Sending(tmp_path)
    sending.parts.topic("T")
    reply = send(sending, header())
    assert reply.ext_fields["MSG_REGION"] == "DefaultRegion"
    sending.parts.set(region_id="R", trace_on=False)
    reply = send(sending, header())
    assert reply.ext_fields.items() >= {"MSG_REGION": "R", "TRACE_ON": "false"}.items()
    sending.close()
