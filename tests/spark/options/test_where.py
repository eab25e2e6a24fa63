# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest

from txrocketmq.spark.arrow.errors import OptionError
from txrocketmq.spark.arrow.schema import KAFKA_NAMES
from txrocketmq.spark.options.where import (
    INTEGERS,
    OF_KAFKA,
    TEXTS,
    TIMES,
    Predicate,
    columns_of,
    parse_where,
)
from txrocketmq.spark.options.zones import zone_named

NOVEMBER_MS = 1763600400000
"""2025-11-20 01:00 in UTC."""


@pytest.mark.parametrize(
    ("text", "predicates"),
    [
        ("topic = 'Orders'", [("topic", "=", ("Orders",))]),
        ('TOPIC == "it\'s"', [("topic", "=", ("it's",))]),
        ("`topic` <=> 'a'and queueid<>-1", [("topic", "=", ("a",)), ("queueId", "!=", (-1,))]),
        ("queueId in (1,2 , 3)", [("queueId", "IN", (1, 2, 3))]),
        (
            "queueOffset BETWEEN 3 AND 5 AND tags IS NULL",
            [("queueOffset", ">=", (3,)), ("queueOffset", "<=", (5,)), ("tags", "IS NULL", ())],
        ),
        (
            "tags is not null AND topic LIKE 'Or_er%'",
            [("tags", "IS NOT NULL", ()), ("topic", "LIKE", ("Or_er%",))],
        ),
        ("storeTimestamp >= '2025-11-20T01:00:00Z'", [("storeTimestamp", ">=", (NOVEMBER_MS,))]),
        (
            "timestamp < TIMESTAMP '2025-11-20 01:00:00.001000Z' AND partition != 0",
            [("storeTimestamp", "<", (NOVEMBER_MS + 1,)), ("queueId", "!=", (0,))],
        ),
        (f"bornTimestamp = {NOVEMBER_MS}", [("bornTimestamp", "=", (NOVEMBER_MS,))]),
    ],
)
def test_what_is_understood(text: str, predicates: list[tuple[object, ...]]) -> None:
    assert [tuple(each) for each in parse_where("where", text)] == predicates


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("topic = 'a' OR topic = 'b'", "OR"),
        ("NOT topic = 'a'", "NOT"),
        ("topic NOT IN ('a')", "NOT"),
        ("topic = ", "the end"),
        ("topic 'a'", "'a'"),
        ("topic = 'a' AND", "the end"),
        ("topic = 'a', queueId = 1", ","),
        ("body = 'x'", "body"),
        ("keys = 'x'", "keys"),
        ("'a' = topic", "'a'"),
        ("topic = a", "a as a value of topic"),
        ("topic = 5", "5 as a value of topic"),
        ("topic = NULL", "NULL as a value of topic"),
        ("queueId = '5'", "'5' as a value of queueId"),
        ("queueId = 1.5", "'1.5'"),
        ("queueId = 1e3", "'1e3'"),
        ("queueId LIKE '1%'", "LIKE"),
        ("topic = 'it''s'", "\"'it''s'\""),
        (r"topic = 'a\'b'", "'a"),
        ("topic IN ()", r"\) as a value of topic"),
        ("topic IN ('a' 'b')", "'b'"),
        ("topic IS 'a'", "'a'"),
        ("lower(topic) = 'a'", "lower"),
        ("(topic = 'a')", r"\("),
        ("storeTimestamp > '2025-11-20 01:00:00.0005'", "whole milliseconds"),
        ("topic = 'a'; DROP", "; DROP"),
    ],
)
def test_what_is_not_understood_is_refused_and_what_is_valid_is_said(text: str, what: str) -> None:
    with pytest.raises(OptionError, match=rf"where=.*: .*{what}.* is not understood; valid: cond"):
        parse_where("where", text)


def test_times_are_those_of_the_other_options() -> None:
    with pytest.raises(OptionError, match="ISO 8601"):
        parse_where("where", "storeTimestamp > 'yesterday'")


def test_times_without_a_zone_are_told_from_others() -> None:
    local, exact, number = parse_where(
        "where",
        "storeTimestamp >= '2025-11-20 01:00:00' AND bornTimestamp < '2025-11-20T01:00:00Z'"
        f" AND timestamp IN ({NOVEMBER_MS})",
    )
    assert (local.is_local, exact.is_local, number.is_local) == (True, False, False)
    assert local.values == (NOVEMBER_MS,), "by the clocks of UTC, until a zone is known"
    tokyo = zone_named("Asia/Tokyo")
    assert local.in_zone(tokyo) == Predicate("storeTimestamp", ">=", (NOVEMBER_MS - 9 * 3_600_000,))
    assert not local.in_zone(tokyo).is_local
    assert exact.in_zone(tokyo) == exact


def test_names_of_kafka() -> None:
    """They are written once more in `where`, which must do without Arrow."""
    named = (*INTEGERS, *TIMES, *TEXTS)
    renamed = {other: name for name, other in KAFKA_NAMES.items() if name in named}
    assert renamed == {**OF_KAFKA, "topic": "topic"}


def test_columns_that_are_named() -> None:
    found = [
        Predicate("topic", "=", ("a",)),
        Predicate("tags", "IS NULL"),
        Predicate("topic", "!=", ("b",)),
    ]
    assert columns_of(found) == ("topic", "tags")
