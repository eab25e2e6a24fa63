# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest

from txrocketmq.broker.intake.inner_message import Way, packed
from txrocketmq.broker.transaction import half_message
from txrocketmq.remoting.message.flags import MessageSysFlag
from txrocketmq.remoting.message.ids import Host
from txrocketmq.remoting.message.message import MessageExt


def half(**properties: str) -> MessageExt:
    return MessageExt(
        "RMQ_SYS_TRANS_HALF_TOPIC",
        b"body",
        flag=5,
        properties={"REAL_TOPIC": "T", "REAL_QID": "3", "TRAN_MSG": "true", **properties},
        queue_offset=7,
        commit_log_offset=900,
        sys_flag=MessageSysFlag.COMPRESSED,
        born_host=Host("10.0.0.1", 4),
        born_timestamp=11,
        store_host=Host("10.0.0.2", 5),
        reconsume_times=2,
    )


def test_a_commit_is_the_message_itself() -> None:
    message = half_message.committed(half(TAGS="a", TRANSACTION_CHECK_TIMES="2"))
    assert message is not None
    assert (message.topic, message.queue_id, message.way) == ("T", 3, Way.COMMIT)
    assert (message.body, message.flag, message.reconsume_times) == (b"body", 5, 2)
    assert message.sys_flag == MessageSysFlag.COMPRESSED | MessageSysFlag.TRANSACTION_COMMIT_TYPE
    assert message.prepared_transaction_offset == 900
    assert (message.born_timestamp_ms, message.born_host) == (11, packed(Host("10.0.0.1", 4)))
    assert message.properties == {"TRAN_MSG": "true", "TAGS": "a", "TRANSACTION_CHECK_TIMES": "2"}


@pytest.mark.parametrize(
    "properties",
    [{"REAL_TOPIC": ""}, {"REAL_QID": ""}, {"REAL_QID": "x"}, {"REAL_QID": "-1"},
     {"REAL_QID": "9" * 10}],
)  # fmt: skip
def test_what_does_not_say_where_it_is_for_cannot_be_committed(properties: dict[str, str]) -> None:
    assert half_message.committed(half(**properties)) is None


def test_each_question_is_counted() -> None:
    first = half_message.asked_once_more(half())
    assert (first.topic, first.queue_id, first.flag) == ("RMQ_SYS_TRANS_HALF_TOPIC", 0, 5)
    assert first.properties["TRANSACTION_CHECK_TIMES"] == "1"
    again = half_message.asked_once_more(half(TRANSACTION_CHECK_TIMES="3"))
    assert again.properties["TRANSACTION_CHECK_TIMES"] == "4"
    wrong = half_message.asked_once_more(half(TRANSACTION_CHECK_TIMES="x"))
    assert wrong.properties["TRANSACTION_CHECK_TIMES"] == "0"


def test_what_is_left_alone_keeps_where_it_was_first() -> None:
    first = half_message.left_alone(half())
    assert first.properties["TRAN_PREPARED_QUEUE_OFFSET"] == "7"
    assert "TRANSACTION_CHECK_TIMES" not in first.properties
    again = half_message.left_alone(half(TRAN_PREPARED_QUEUE_OFFSET="2"))
    assert again.properties["TRAN_PREPARED_QUEUE_OFFSET"] == "2"
    assert half_message.prepared_offset(half(TRAN_PREPARED_QUEUE_OFFSET="2")) == 2
    assert half_message.prepared_offset(half(TRAN_PREPARED_QUEUE_OFFSET="x")) == 7
    assert half_message.prepared_offset(half()) == 7


def test_what_is_given_up_can_be_resumed() -> None:
    lost = half_message.given_up(half(TRANSACTION_CHECK_TIMES="15"))
    assert (lost.topic, lost.queue_id) == ("TRANS_CHECK_MAX_TIME_TOPIC", 0)
    assert lost.properties["TRANSACTION_CHECK_TIMES"] == "15"
    assert (lost.properties["REAL_TOPIC"], lost.properties["REAL_QID"]) == ("T", "3")
    stored = half(TRANSACTION_CHECK_TIMES="15")
    stored.topic = lost.topic
    again = half_message.resumed(stored)
    assert (again.topic, again.queue_id) == ("RMQ_SYS_TRANS_HALF_TOPIC", 0)
    assert again.properties["TRANSACTION_CHECK_TIMES"] == "0"


@pytest.mark.parametrize(
    ("text", "wanted_ms"), [(None, None), ("5", 5_000), ("x", -1), ("-1", -1), ("9" * 19, -1)]
)
def test_the_time_before_the_first_question(text: str | None, wanted_ms: int | None) -> None:
    properties = {} if text is None else {"CHECK_IMMUNITY_TIME_IN_SECONDS": text}
    assert half_message.immunity_ms(half(**properties)) == wanted_ms


@pytest.mark.parametrize(
    ("text", "number"),
    [("12", 12), ("+12", 12), ("-12", -12), ("", -1), ("1 2", -1), ("٣", -1), ("1_0", -1)],
)
def test_numbers_are_read_as_by_java(text: str, number: int) -> None:
    assert half_message.number_of(text) == number
