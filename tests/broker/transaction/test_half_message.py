# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from txrocketmq.broker.intake.inner_message import InnerMessage, Way, packed
from txrocketmq.broker.intake.transform import ActsOn, no_transforms
from txrocketmq.broker.intake.usual_record import usual_record
from txrocketmq.broker.transaction import half_message
from txrocketmq.remoting.message.flags import MessageSysFlag
from txrocketmq.remoting.message.ids import Host
from txrocketmq.remoting.message.message import MessageExt, encode_message


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


PLAIN = no_transforms([])
TEXTS = st.text(st.characters(exclude_characters="\x01\x02", exclude_categories=["Cs"]), min_size=1)
NAMES = st.sampled_from(["UNIQ_KEY", "KEYS", "TAGS", "REAL", "QID", "x", "REAL_TOPIC", "REAL_QID"])


@given(
    first=st.dictionaries(NAMES, TEXTS),
    rest=st.dictionaries(NAMES, TEXTS | st.sampled_from(["3", "REAL_QID", "T"])),
    sys_flag=st.sampled_from([0, 1, 4, 12]),
)
def test_what_is_cut_is_what_is_committed(
    first: dict[str, str], rest: dict[str, str], sys_flag: int
) -> None:
    stored = half()
    stored.properties = {**first, "REAL_TOPIC": "T", "REAL_QID": "3", **rest}
    stored.sys_flag = sys_flag
    usual = usual_record(memoryview(encode_message(stored)))
    assert usual is not None
    put = half_message.committed_as_it_is(usual, PLAIN)
    message = half_message.committed(stored)
    assert put == (None if message is None else message.to_put())


@pytest.mark.parametrize("name", ["DELAY", "x"])
def test_what_a_transform_touches_is_not_committed_as_it_is(name: str) -> None:
    class Touching:
        acts_on = ActsOn(properties=frozenset({"DELAY"}))

        def apply(self, message: InnerMessage, now_ms: int) -> None:
            """Does nothing."""

    usual = usual_record(memoryview(encode_message(half(**{name: "1"}))))
    assert usual is not None
    put = half_message.committed_as_it_is(usual, no_transforms([Touching()]))
    assert (put is None) is (name == "DELAY")


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
    assert half_message.prepared_offset(half(TRAN_PREPARED_QUEUE_OFFSET="2"), 7) == 2
    assert half_message.prepared_offset(half(TRAN_PREPARED_QUEUE_OFFSET="x"), 7) == 7
    assert half_message.prepared_offset(half(), 7) == 7


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
    [
        ("12", 12),
        ("+12", 12),
        ("-12", -12),
        ("", -1),
        ("1 2", -1),
        ("٣", 3),
        ("1_0", -1),
        ("9" * 19, -1),
    ],
)
def test_numbers_are_read_as_by_java(text: str, number: int) -> None:
    assert half_message.number_of(text) == number


def test_what_is_sent_elsewhere_is_what_its_producer_sent() -> None:
    known = half(TRANSACTION_CHECK_TIMES="2", TRAN_PREPARED_QUEUE_OFFSET="4", KEYS="k")
    del known.properties["TRAN_MSG"]
    message = half_message.sent_elsewhere(known)
    assert message is not None
    assert (message.topic, message.body, message.flag) == ("T", b"body", 5)
    assert message.properties["TRAN_MSG"] == "true"
    assert (message.properties["TRANSACTION_CHECK_TIMES"], message.properties["KEYS"]) == ("2", "k")
    assert "TRAN_PREPARED_QUEUE_OFFSET" not in message.properties
    prepared = MessageSysFlag.TRANSACTION_PREPARED_TYPE | MessageSysFlag.COMPRESSED
    assert message.sys_flag == prepared
    del known.properties["REAL_TOPIC"]
    assert half_message.sent_elsewhere(known) is None
