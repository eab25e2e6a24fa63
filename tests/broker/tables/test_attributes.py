# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest

from txrocketmq.broker.tables.attributes import (
    GROUP_ATTRIBUTES,
    TOPIC_ATTRIBUTES,
    AttributeChangeError,
    changed,
    has_batch_queues,
    has_priorities,
    parse_changes,
    priority_factor,
    unserved_in,
    why_nothing_is_taken,
)
from txrocketmq.remoting.protocol.body.route import TopicConfig

SERVED_AND_NOT: dict[str, dict[str, dict[str, bool]]] = {
    "topic": {
        "queue.type": {"SimpleCQ": True, "BatchCQ": True},
        "cleanup.policy": {"DELETE": True, "COMPACTION": False},
        "message.type": {
            "UNSPECIFIED": True, "NORMAL": True, "FIFO": True, "DELAY": True, "TRANSACTION": True,
            "MIXED": True, "PRIORITY": True, "LITE": False,
        },
        "reserve.time": {"-1": True, "3600": False},
    },
    "group": {
        "priority.factor": {"100": True, "7": True, "0": True}, "lite.bind.topic": {"T": False},
    },
}  # fmt: skip


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
    made = changed(TOPIC_ATTRIBUTES, None, {"+message.type": "FIFO", "+queue.type": "SimpleCQ"})
    assert made == {"message.type": "FIFO", "queue.type": "SimpleCQ"}


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
        (None, {"+queue.type": "RocksDBCQ"}, "value is not valid: queue.type=RocksDBCQ"),
        (None, {"+cleanup.policy": "COMPACTION"}, "COMPACTION: compaction is not served"),
        (
            None,
            {"+reserve.time": "3600"},
            "no retention of their own; write reserve.time=-1 or",
        ),
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


def test_how_many_pops_of_a_group_go_by_priority() -> None:
    for value in ("-1", "101", "many", "1" * 30):
        with pytest.raises(AttributeChangeError, match="value is not valid"):
            changed(GROUP_ATTRIBUTES, None, {"+priority.factor": value})
    assert priority_factor({"priority.factor": "7"}) == 7
    assert priority_factor({"priority.factor": "none"}) == 100
    assert priority_factor({}) == priority_factor(None) == 100


def test_which_topics_have_priorities() -> None:
    assert has_priorities({"message.type": "PRIORITY"})
    for attributes in (None, {}, {"message.type": "NORMAL"}, {"queue.type": "PRIORITY"}):
        assert not has_priorities(attributes)


@pytest.mark.parametrize(
    ("known", "name", "values"),
    [
        (known, name, values)
        for known, by_name in SERVED_AND_NOT.items()
        for name, values in by_name.items()
    ],
)
def test_each_value_is_served_or_refused(known: str, name: str, values: dict[str, bool]) -> None:
    """All attributes there are, and all values of those that name some."""
    table = {"topic": TOPIC_ATTRIBUTES, "group": GROUP_ATTRIBUTES}[known]
    assert set(SERVED_AND_NOT[known]) == set(table)
    for value, is_served in values.items():
        if is_served:
            assert changed(table, None, {f"+{name}": value}) == {name: value}
            continue
        with pytest.raises(
            AttributeChangeError, match=f"{name}={value}: .* (not served|no retention)"
        ):
            changed(table, None, {f"+{name}": value})
        instead = table[name].unserved
        assert instead is not None
        if instead.instead:
            assert changed(table, None, {f"+{name}": instead.instead}) == {name: instead.instead}


def test_what_a_topic_of_another_broker_promises_is_said() -> None:
    assert has_batch_queues({"queue.type": "BatchCQ"})
    assert not has_batch_queues({"queue.type": "SimpleCQ"})
    assert not has_batch_queues({})
    assert not has_batch_queues(None)
    assert why_nothing_is_taken({"queue.type": "BatchCQ"}) == ""
    assert why_nothing_is_taken({"cleanup.policy": "COMPACTION"}) == (
        "cleanup.policy=COMPACTION: compaction is not served"
    )
    assert why_nothing_is_taken({"message.type": "LITE"}) == (
        "message.type=LITE: lite topics (5.5) are not served"
    )
    for plain in (None, {}, {"queue.type": "SimpleCQ", "cleanup.policy": "DELETE", "new": "x"}):
        assert why_nothing_is_taken(plain) == ""
    assert why_nothing_is_taken({"message.type": "PRIORITY", "reserve.time": "5"}) == ""


def test_what_is_said_of_a_store_of_another_broker() -> None:
    topics = {f"T{n}": TopicConfig(attributes={"reserve.time": "5"}) for n in range(7)}
    topics["C"] = TopicConfig(attributes={"cleanup.policy": "COMPACTION"})
    topics["P"] = TopicConfig(attributes={"message.type": "PRIORITY", "queue.type": "SimpleCQ"})
    topics["N"] = TopicConfig()
    assert unserved_in("topic", TOPIC_ATTRIBUTES, topics) == [
        (
            "7 topics (T0, T1, T2, T3, T4, ...) have reserve.time=5, but topics have no retention"
            " of their own here"
        ),
        (
            "the topic C has cleanup.policy=COMPACTION, but compaction is not served here; messages"
            " to it are refused"
        ),
    ]
