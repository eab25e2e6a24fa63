# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import json
from typing import Any

import pytest

from tests.broker.conftest import STORE_HOST
from txrocketmq.broker.intake.inner_message import InnerMessage
from txrocketmq.broker.pop.records import (
    MAX_MESSAGES,
    MOST_SENT_BYTES,
    AckMsg,
    Acks,
    MergeKey,
    OtherCheckPoint,
    PopCheckPoint,
    ReviveTopic,
    check_point,
)
from txrocketmq.remoting.message.message import MessageExt, encode_message
from txrocketmq.remoting.protocol.body.base import BodyError

KEY = MergeKey("T", "g", 3, 5, 1_700_000_000_000, "b")
# What the original's classes are as JSON, written by its fastjson.
CHECK_POINT = (
    '{"bm":0,"bn":"b","c":"g","d":[0,4],"it":60000,"n":2,"pt":1700000000000,"q":3,'
    '"reviveTime":1700000060000,"ro":0,"so":5,"t":"T"}'
)
PUT_AGAIN = (
    '{"bm":0,"bn":"b","c":"g","d":[0,4],"it":60000,"n":2,"pt":1700000000000,"q":3,'
    '"reviveTime":1700000060000,"ro":7,"rp":"1","so":5,"t":"T"}'
)
ACK = '{"ao":9,"bn":"b","c":"g","pt":1700000000000,"q":3,"so":5,"t":"T"}'
BATCH_ACK = '{"ao":-1,"aol":[5,9],"bn":"b","c":"g","pt":1700000000000,"q":3,"so":5,"t":"T"}'
OF_ANOTHER = '{"bn":"other","c":"g","t":"T",%s}'
NAMELESS = '{"ao":-1,"aol":[5,9],"c":"g","pt":1700000000000,"q":3,"so":5,"t":"T"}'


@pytest.fixture
def topic() -> ReviveTopic:
    return ReviveTopic("C", "b", lambda: STORE_HOST)


def stored(tag: str, body: str) -> memoryview:
    message = MessageExt(topic="rmq_sys_REVIVE_LOG_C", body=body.encode(), properties={"TAGS": tag})
    return memoryview(encode_message(message))


def test_records_are_the_original_s(topic: ReviveTopic) -> None:
    point = topic.check_point(check_point(KEY, 60_000, (0, 4)), 6, 1)
    assert point.body.decode() == CHECK_POINT
    assert (point.topic, point.queue_id) == ("rmq_sys_REVIVE_LOG_C", 6)
    assert point.properties == {
        "TAGS": "ck",
        "TIMER_DELIVER_MS": "1700000059000",
        "UNIQ_KEY": "T@3@5@g@1700000000000@b@ck",
    }
    batches = check_point(KEY, 60_000, (0, 4), has_batches=True)
    assert batches.encode().decode() == CHECK_POINT.replace('"n":2', '"m":true,"n":2')
    ack = topic.ack(KEY, 9, 1_700_000_060_000, 6, 1)
    assert ack.body.decode() == ACK
    assert ack.properties == {
        "TAGS": "ack",
        "TIMER_DELIVER_MS": "1700000060000",
        "UNIQ_KEY": "T@3@9@g@1700000000000@b@ack",
    }
    batch = topic.batch_ack(KEY, [5, 9], 1_700_000_060_000, 6, 1)
    assert batch.body.decode() == BATCH_ACK
    assert batch.properties["TAGS"] == "bAck"
    assert batch.properties["UNIQ_KEY"] == "T@3@[5, 9]@g@1700000000000@bAck"


def test_records_are_read(topic: ReviveTopic) -> None:
    point = topic.read(stored("ck", CHECK_POINT))
    assert isinstance(point, PopCheckPoint)
    assert (point.key, point.distances(), point.times_put_again()) == (KEY, [0, 4], 0)
    again = topic.read(stored("ck", PUT_AGAIN))
    assert isinstance(again, PopCheckPoint)
    assert again.times_put_again() == 1
    assert topic.read(stored("ack", ACK)) == Acks(KEY, (9,))
    for body in (BATCH_ACK, NAMELESS):  # older ones do not name the broker
        found = topic.read(stored("bAck", body))
        assert isinstance(found, Acks)
        assert (found.key, list(found.offsets)) == (KEY, [5, 9])


@pytest.mark.parametrize("name", ["ao", "bn", "c", "pt", "q", "so", "t"])
@pytest.mark.parametrize(
    "value", [None, "", "9", "x", 7, -(2**63), 2**63 - 1, 2**63, 1.5, True, [], {}]
)
def test_an_ack_is_read_as_its_declaration_says(topic: ReviveTopic, name: str, value: Any) -> None:
    written = json.loads(ACK) | {name: value}
    if value is None:
        del written[name]
    body = json.dumps(written)
    try:
        ack = AckMsg.decode(body.encode())
    except BodyError:
        assert topic.read(stored("ack", body)) is None
        return
    key = MergeKey(
        ack.topic or "", ack.group or "", ack.queue_id, ack.start_offset, ack.pop_time,
        ack.broker_name or "b",
    )  # fmt: skip
    found = topic.read(stored("ack", body))
    assert found == Acks(key, (ack.ack_offset,))
    assert repr(found) == repr(Acks(key, (ack.ack_offset,)))


def test_older_check_points_have_no_distances() -> None:
    point = PopCheckPoint(topic="T", group="g", count=3)
    assert point.distances() == [0, 1, 2]


def test_odd_check_points() -> None:
    point = PopCheckPoint(topic="T", group="g", count=5_000, diffs=[-(2**15), -1, 0, 2**40, 7])
    assert point.distances() == [-1, 0, 7]
    assert PopCheckPoint(topic="T", group="g", count=-1).distances() == []
    for text in ("many", "-1", "99999999"):
        assert PopCheckPoint(reput_times=text).times_put_again() > 100


@pytest.mark.parametrize("tag", ["ck", "ack", "bAck"])
def test_what_is_no_record(topic: ReviveTopic, tag: str) -> None:
    body = {"ck": CHECK_POINT, "ack": ACK, "bAck": BATCH_ACK}[tag]
    for end in range(len(body)):
        assert topic.read(stored(tag, body[:end])) is None
    assert topic.read(stored("else", body)) is None
    record = stored(tag, body)
    for size in range(len(record)):
        assert topic.read(record[:size]) is None
    for damaged in ("[]", "null", "17", '{"so":"x"}', '{"aol":{}}', '{"d":"x"}'):
        read = topic.read(stored(tag, damaged))
        assert not isinstance(read, PopCheckPoint)


def test_hosts_of_ipv6(topic: ReviveTopic) -> None:
    wide = ReviveTopic("C", "b", lambda: bytes(16) + (10911).to_bytes(4, "big"))
    put = wide.ack(KEY, 9, 1, 0, 1).to_put()
    assert put.sys_flag == 48


def sent(body: str, tag: str = "ck", **properties: str) -> memoryview:
    """A record that has come as others send it, or as the broker itself writes it."""
    message = MessageExt(
        topic="rmq_sys_REVIVE_LOG_C", body=body.encode(), properties={"TAGS": tag, **properties}
    )
    return memoryview(encode_message(message))


def test_what_was_sent_in_another_name_is_another_broker_s(topic: ReviveTopic) -> None:
    other = CHECK_POINT.replace('"bn":"b"', '"bn":"other"')
    found = topic.read(sent(other, CLUSTER="C"))
    assert isinstance(found, OtherCheckPoint)
    assert found.key == KEY._replace(broker_name="other")
    for record in (
        sent(other),
        sent(CHECK_POINT, CLUSTER="C"),
        sent(CHECK_POINT.replace('"bn":"b",', ""), CLUSTER="C"),
    ):
        assert isinstance(topic.read(record), PopCheckPoint)
    again = topic.other_check_point(PopCheckPoint.decode(other.encode()), 6, 1)
    assert again.properties["CLUSTER"] == "C"
    assert again.body.decode() == other


@pytest.mark.parametrize(
    ("tag", "body", "is_another"),
    [
        ("ck", CHECK_POINT, False),
        ("ck", CHECK_POINT.replace('"bn":"b"', '"bn":"other"'), True),
        ("ck", CHECK_POINT.replace('"bn":"b",', ""), False),
        ("ck", '{"bn":"other"}', False),
        ("ack", ACK, False),
        ("ack", ACK.replace('"bn":"b"', '"bn":"other"'), True),
        ("bAck", BATCH_ACK.replace('"bn":"b"', '"bn":"other"'), True),
        ("bAck", NAMELESS, False),
        ("bAck", "[", False),
        ("other", CHECK_POINT.replace('"bn":"b"', '"bn":"other"'), False),
        ("ck", OF_ANOTHER % '"d":[%s]' % ",".join(["7"] * MAX_MESSAGES), True),
        ("ck", OF_ANOTHER % '"d":[%s]' % ",".join(["7"] * (MAX_MESSAGES + 1)), False),
        ("ck", OF_ANOTHER % '"rp":"%s"' % ("9" * MOST_SENT_BYTES), False),
        ("bAck", BATCH_ACK.replace('"bn":"b"', '"bn":"%s"' % ("o" * MOST_SENT_BYTES)), False),
    ],
)
def test_whose_a_record_is_that_is_sent(
    topic: ReviveTopic, tag: str, body: str, is_another: bool
) -> None:
    message = InnerMessage(
        topic.name, 0, body.encode(), 1, STORE_HOST, STORE_HOST, {"TAGS": tag, "CLUSTER": "C"}
    )
    assert topic.is_of_another(message) is is_another
