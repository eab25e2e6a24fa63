# SPDX-License-Identifier: Apache-2.0
"""What is refused before anybody is asked."""

from __future__ import annotations

import pytest

from txrocketmq.client.base.errors import MessageIllegal
from txrocketmq.client.base.validators import (
    check_consumer_group,
    check_group,
    check_message,
    check_producer_group,
    check_topic,
)
from txrocketmq.remoting.message.message import Message


@pytest.mark.parametrize("name", ["T", "%RETRY%g", "a|b", "A-Z_09", "x" * 127])
def test_good_topics(name: str) -> None:
    check_topic(name)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("", "blank"),
        ("  ", "blank"),
        ("a b", "illegal"),
        ("a\n", "illegal"),
        ("日本", "illegal"),
        ("x" * 128, "at most 127 characters, not 128"),
    ],
)
def test_bad_topics(name: str, why: str) -> None:
    with pytest.raises(MessageIllegal, match=why):
        check_topic(name)


def test_groups_are_shorter() -> None:
    check_group("g" * 120)
    with pytest.raises(
        MessageIllegal, match="the name of a group can have at most 120 characters, not 121"
    ):
        check_group("g" * 121)


def test_the_groups_that_java_refuses() -> None:
    check_producer_group("DEFAULT_CONSUMER")
    with pytest.raises(MessageIllegal, match="DEFAULT_PRODUCER is reserved: give the producer"):
        check_producer_group("DEFAULT_PRODUCER")
    check_consumer_group("DEFAULT_PRODUCER")
    with pytest.raises(MessageIllegal, match="DEFAULT_CONSUMER is reserved: give the consumer"):
        check_consumer_group("DEFAULT_CONSUMER")


def test_bodies_are_neither_empty_nor_too_large() -> None:
    check_message(Message("T", b"x" * 10), 10)
    with pytest.raises(MessageIllegal, match="empty"):
        check_message(Message("T", b""), 10)
    with pytest.raises(MessageIllegal, match="11 bytes, but at most 10 are allowed"):
        check_message(Message("T", b"x" * 11), 10)


def test_nobody_sends_to_the_brokers_own_topics() -> None:
    with pytest.raises(MessageIllegal, match="SCHEDULE_TOPIC_XXXX"):
        check_message(Message("SCHEDULE_TOPIC_XXXX", b"x"), 10)
    check_message(Message("TBW102", b"x"), 10)


@pytest.mark.parametrize(
    ("message", "why"),
    [
        (Message("T", "text"), "the body of a message must be bytes"),  # type: ignore[arg-type]
        (Message(5, b"x"), "topic must be str, not 5"),  # type: ignore[arg-type]
    ],
)
def test_what_was_put_into_a_message_is_examined(message: Message, why: str) -> None:
    with pytest.raises(TypeError, match=why):
        check_message(message, 1_000)


def test_names_are_texts() -> None:
    with pytest.raises(TypeError, match="group must be str, not 5"):
        check_group(5)  # type: ignore[arg-type]
    assert issubclass(MessageIllegal, ValueError)
