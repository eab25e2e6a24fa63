# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest

from txrocketmq.remoting.message import pop
from txrocketmq.remoting.message.pop import ReceiptHandle, ReceiptHandleError

TEXT = "5 1700000000000 60000 3 0 broker-a 2 9"
"""As ExtraInfoUtil.buildExtraInfo writes it."""


def test_a_handle_is_its_text() -> None:
    handle = ReceiptHandle.parse(TEXT)
    assert handle == ReceiptHandle(5, 1_700_000_000_000, 60_000, 3, "0", "broker-a", 2, 9)
    assert str(handle) == TEXT
    assert ReceiptHandle.parse("5 1700000000000 60000 3 0 broker-a").queue_id == -1


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "length 1"),
        ("nonsense", "length 1"),
        ("1 2 3 4 5", "length 5"),
        ("a 2 3 4 0 b", 'For input string: "a"'),
        ("1 2 3 2147483648 0 b", '"2147483648"'),
        ("9223372036854775808 2 3 4 0 b", '"9223372036854775808"'),
        ("1 2 3 4 0 b x", '"x"'),
        ("1 2 3 4 0 b 0 ²", '"²"'),
        ("1 2 3 --4 0 b", '"--4"'),
        ("1 2  4 0 b", 'For input string: ""'),
        ("1" * 100_000 + " 2 3 4 0 b", '"1111'),
    ],
)
def test_what_is_no_handle(text: str, why: str) -> None:
    with pytest.raises(ReceiptHandleError) as error:
        ReceiptHandle.parse(text)
    assert why in str(error.value)
    assert len(str(error.value)) < 200


def test_numbers_at_their_limits() -> None:
    handle = ReceiptHandle.parse("9223372036854775807 -9223372036854775808 0 2147483647 0 b")
    assert (handle.start_offset, handle.pop_time) == (2**63 - 1, -(2**63))


def test_topics() -> None:
    assert pop.retry_topic_v1("T", "g") == "%RETRY%g_T"
    assert pop.retry_topic_v2("T", "g") == "%RETRY%g+T"
    assert pop.retry_topic("T", "g", v2=True) == "%RETRY%g+T"
    assert [pop.retry_flag(each) for each in ("T", "%RETRY%g_T", "%RETRY%g+T")] == ["0", "1", "2"]
    assert [pop.real_topic("T", "g", flag) for flag in "012"] == ["T", "%RETRY%g_T", "%RETRY%g+T"]
    for topic in ("T", "%RETRY%g_T", "%RETRY%g+T"):
        assert pop.normal_topic(topic, "g") == "T"
    with pytest.raises(ReceiptHandleError, match="it is 0, 1 or 2"):
        pop.real_topic("T", "g", "3")


def test_what_answers_say() -> None:
    assert pop.start_offset_info("T", 3, 7) == "0 3 7"
    assert pop.msg_offset_info("%RETRY%g_T", 0, [7, 9]) == "1 0 7,9"
    assert pop.order_count_info("%RETRY%g+T", 0, 2) == "2 0 2"
    assert pop.offset_order_count_info("T", 1, 7, 2) == "0 qo1%7 2"
