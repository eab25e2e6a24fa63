# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Callable

import pytest

from txrocketmq.remoting.errors import HeaderError
from txrocketmq.remoting.protocol import send
from txrocketmq.remoting.protocol.send import SendMessageRequestHeader

HEADER = SendMessageRequestHeader(
    producer_group="group", topic="topic", default_topic="TBW102", default_topic_queue_nums=4,
    queue_id=3, sys_flag=1, born_timestamp=1700000000000, flag=9, properties="TAGS\1a\2",
    reconsume_times=0, unit_mode=False, max_reconsume_times=16, batch=True, bname="broker",
)  # fmt: skip
# What a client of 5.4.0 sends for SEND_MESSAGE_V2.
LETTERS = {
    "a": "group", "b": "topic", "c": "TBW102", "d": "4", "e": "3", "f": "1", "g": "1700000000000",
    "h": "9", "i": "TAGS\1a\2", "j": "0", "k": "false", "l": "16", "m": "true", "n": "broker",
}  # fmt: skip


def test_headers_are_the_originals(same_headers_as_the_original: Callable[..., None]) -> None:
    same_headers_as_the_original(send)


def test_letters_are_those_of_the_second_header() -> None:
    assert HEADER.encode_letters() == LETTERS
    assert list(HEADER.encode_letters()) == sorted(LETTERS)
    assert SendMessageRequestHeader.decode(LETTERS) == HEADER


def test_long_names() -> None:
    long = HEADER.encode()
    assert long["defaultTopicQueueNums"] == "4"
    assert long["bname"] == "broker"
    assert not set(long) & set(LETTERS)
    assert SendMessageRequestHeader.decode(long) == HEADER


def test_a_missing_letter_is_told_by_its_long_name() -> None:
    rest = {name: text for name, text in LETTERS.items() if name != "e"}
    with pytest.raises(HeaderError, match="<queueId> is null"):
        SendMessageRequestHeader.decode(rest)


def test_only_what_the_original_can_do_without_is_optional() -> None:
    optional = {field.letter for field in SendMessageRequestHeader.fields if not field.mandatory}
    assert optional == {"i", "j", "k", "l", "m", "n", None}
