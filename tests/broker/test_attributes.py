# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest

from txrocketmq.broker.attributes import (
    GROUP_ATTRIBUTES,
    TOPIC_ATTRIBUTES,
    AttributeChangeError,
    changed,
    parse_changes,
)


def test_changes_are_read_from_text() -> None:
    assert parse_changes("+message.type=FIFO,-reserve.time") == {
        "+message.type": "FIFO",
        "-reserve.time": "",
    }
    assert parse_changes("") == parse_changes(None) == {}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("message.type=FIFO", "add/alter attribute format is wrong: message.type"),
        ("message.type", "delete attribute format is wrong: message.type"),
        ("+a=1,+a=2", "key duplication: +a"),
    ],
)
def test_text_that_is_none(text: str, why: str) -> None:
    with pytest.raises(AttributeChangeError, match=f"^{why.replace('+', '.')}$"):
        parse_changes(text)


def test_a_new_topic_takes_what_is_added() -> None:
    made = changed(TOPIC_ATTRIBUTES, None, {"+message.type": "FIFO", "+queue.type": "BatchCQ"})
    assert made == {"message.type": "FIFO", "queue.type": "BatchCQ"}


def test_what_is_there_is_added_changed_and_removed() -> None:
    before = {"message.type": "FIFO", "queue.type": "SimpleCQ"}
    assert changed(TOPIC_ATTRIBUTES, before, {"+message.type": "DELAY", "+reserve.time": "-1"}) == {
        "message.type": "DELAY",
        "queue.type": "SimpleCQ",
        "reserve.time": "-1",
    }
    assert changed(TOPIC_ATTRIBUTES, before, {"-message.type": ""}) == {"queue.type": "SimpleCQ"}
    assert before == {"message.type": "FIFO", "queue.type": "SimpleCQ"}


def test_a_configuration_that_was_read_can_be_written_back() -> None:
    before = {"queue.type": "SimpleCQ"}
    assert changed(TOPIC_ATTRIBUTES, before, before) == before


@pytest.mark.parametrize(
    ("current", "changes", "why"),
    [
        (None, {"-message.type": ""}, "only add attribute is supported while creating topic"),
        (None, {"+nonsense": "1"}, "unsupported key: nonsense"),
        (None, {"+message.type": "OTHER"}, "value is not valid: message.type=OTHER"),
        (None, {"+reserve.time": "-2"}, "value is not valid"),
        (None, {"+reserve.time": "1" * 30}, "value is not valid"),
        (None, {"+": "1"}, "kv string format wrong."),
        (None, {"++a": "1"}, "kv string format wrong."),
        ({}, {"-message.type": ""}, "attempt to delete a nonexistent key: message.type"),
        ({}, {"message.type": "FIFO"}, "wrong format key: essage.type"),
        ({}, {"+message.type": "FIFO", "-message.type": ""}, "alter duplication key"),
        ({}, {"+queue.type": "BatchCQ"}, "attempt to update an unchangeable attribute"),
        (
            {"queue.type": "BatchCQ"},
            {"-queue.type": ""},
            "attempt to update an unchangeable attribute. key: queue.type",
        ),
    ],
)
def test_changes_that_cannot_be(
    current: dict[str, str] | None, changes: dict[str, str], why: str
) -> None:
    with pytest.raises(AttributeChangeError) as error:
        changed(TOPIC_ATTRIBUTES, current, changes)
    assert why in str(error.value)


def test_groups_have_a_priority_factor_from_0_to_100() -> None:
    assert changed(GROUP_ATTRIBUTES, None, {"+priority.factor": "100"}) == {
        "priority.factor": "100"
    }
    with pytest.raises(AttributeChangeError):
        changed(GROUP_ATTRIBUTES, None, {"+priority.factor": "101"})
