# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest

from txrocketmq.broker.intake.inner_message import InnerMessage, Way
from txrocketmq.broker.intake.transform import no_transforms
from txrocketmq.broker.intake.transforms.priority import Priority
from txrocketmq.remoting.message import properties as names

QUEUES = {"T": 8, "%RETRY%g": 1, "closed": 0}
TRANSFORMS = no_transforms([Priority(QUEUES.__getitem__)])


def sent(
    properties: dict[str, str], topic: str = "T", way: Way = Way.SEND
) -> tuple[int, dict[str, str]]:
    """Where it goes, and with what."""
    message = InnerMessage(topic, 5, b"body", 1, bytes(8), bytes(8), dict(properties), way=way)
    TRANSFORMS.apply(message, 0)
    return message.queue_id, message.properties


@pytest.mark.parametrize(
    ("text", "queue_id"),
    [
        ("0", 0), ("3", 3), ("7", 7), ("8", 7), ("2147483647", 7), ("+2", 2), ("-0", 0),
        ("0" * 5_000 + "4", 4),
        # These are no int of Java, or less than 0: they mean nothing.
        ("-1", 5), ("2147483648", 5), ("", 5), (" 3", 5), ("3 ", 5), ("1_0", 5), ("0x3", 5),
        ("1" * 5_000, 5), ("high", 5),
    ],
)  # fmt: skip
def test_the_number_is_a_queue(text: str, queue_id: int) -> None:
    assert sent({names.PRIORITY: text}) == (queue_id, {names.PRIORITY: text})


def test_topics_of_one_queue_and_of_none() -> None:
    assert sent({names.PRIORITY: "3"}, "%RETRY%g")[0] == 0
    assert sent({names.PRIORITY: "3"}, "closed")[0] == 0


@pytest.mark.parametrize(
    "other",
    [
        {names.TRAN_MSG: "true"}, {names.TRAN_MSG: "TRUE"}, {names.DELAY: "3"},
        {names.TIMER_DELIVER_MS: "1"}, {names.TIMER_DELAY_SEC: "1"}, {names.TIMER_DELAY_MS: "1"},
        {names.SHARDING_KEY: "k"},
    ],
)  # fmt: skip
def test_messages_of_another_type_have_none(other: dict[str, str]) -> None:
    assert sent({**other, names.PRIORITY: "3"}) == (5, other)
    assert sent({**other, names.PRIORITY: "-3"}) == (5, {**other, names.PRIORITY: "-3"})


def test_a_transaction_that_is_none() -> None:
    assert sent({names.TRAN_MSG: "false", names.PRIORITY: "3"})[0] == 3


@pytest.mark.parametrize("way", [way for way in Way if way is not Way.SEND])
def test_what_comes_another_way_goes_where_it_goes(way: Way) -> None:
    assert sent({names.PRIORITY: "3"}, way=way) == (5, {names.PRIORITY: "3"})
