# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from txrocketmq.spark.arrow.errors import OptionError
from txrocketmq.spark.options import option_values as values


@pytest.mark.parametrize(
    ("parse", "text", "value"),
    [
        (values.text, " /data ", "/data"),
        (values.names, "a, b", ("a", "b")),
        (values.names, "%LMQ%a/b[1]", ("%LMQ%a/b[1]",)),
        (values.group, " spark-1 ", "spark-1"),
        (values.boolean, "TRUE", True),
        (values.boolean, "false", False),
        (values.choice("fail", "skip"), "Skip", "skip"),
        (values.whole(1), "7", 7),
        (values.whole(1, 10), "1", 1),
        (values.whole(1, 10), "10", 10),
        (values.size(1, 1 << 40), "4m", 4 << 20),
        (values.size(1024, 4096), "1k", 1024),
        (values.size(1024, 4096), "4k", 4096),
        (values.size(1, 1 << 40), "32 MiB", 32 << 20),
        (values.size(1, 1 << 40), "100", 100),
        (values.timestamp, "1795228612242", 1795228612242),
        (values.timestamp, "1970-01-01T00:00:01Z", 1000),
        (values.timestamp, "1970-01-01T01:00:01.5+01:00", 1500),
        (values.timestamp, "1970-01-02", 86_400_000),
        (values.tag_expression, "*", None),
        (values.tag_expression, "A || B||", frozenset({"A", "B"})),
        (values.bad_records, "skip", values.BadRecordPolicy("skip")),
        (values.bad_records, "quarantine=/q=1", values.BadRecordPolicy("quarantine", "/q=1")),
    ],
)
def test_values(parse: Callable[[str, str], Any], text: str, value: object) -> None:
    assert parse("option", text) == value


@pytest.mark.parametrize(
    ("parse", "text"),
    [
        (values.names, "a,,b"),
        (values.boolean, "yes"),
        (values.choice("fail", "skip"), "stop"),
        (values.whole(1), "0"),
        (values.whole(1), "1.5"),
        (values.whole(1, 10), "11"),
        (values.size(10, 100), "9"),
        (values.size(10, 100), "1k"),
        (values.size(10, 100), "-1"),
        (values.timestamp, "yesterday"),
        (values.timestamp, "20261120"),
        (values.timestamp, "1763000000"),
        (values.timestamp, "-1"),
        (values.pattern, "("),
        (values.assignment, "t"),
        (values.assignment, '{"t": []}'),
        (values.assignment, '{"t": {}}'),
        (values.assignment, '{"t": {"a": [-1]}}'),
        (values.assignment, '{"t": {"a": [true]}}'),
        (values.tag_expression, "||"),
        (values.names, "['a', 'b']"),
        (values.names, "{'a'}"),
        (values.group, "a b"),
        (values.group, "x" * 121),
        (values.bad_records, "quarantine"),
        (values.bad_records, "quarantine="),
        (values.bad_records, "skip=x"),
    ],
)
def test_errors_name_option_value_and_what_is_valid(
    parse: Callable[[str, str], Any], text: str
) -> None:
    with pytest.raises(OptionError, match=r"option theName=.* is not valid; valid: \S"):
        parse("theName", text)


def test_patterns_match_whole_names() -> None:
    pattern = values.pattern("topicPattern", "orders-.*")
    assert pattern.matches("orders-eu")
    assert not pattern.matches("my-orders-eu")


def test_assignments_by_broker_and_everywhere() -> None:
    found = values.assignment("assign", '{"t": {"a": [0, 1]}, "u": [2]}')
    assert found.topics() == {"t", "u"}
    assert found.brokers() == {"a"}
    assert found.of("t", "a") == {0, 1}
    assert found.of("t", "b") == set()
    assert found.of("u", "b") == {2}


@given(st.datetimes(datetime(1970, 1, 1), datetime(2200, 1, 1)))
def test_timestamps_are_read_as_they_are_written(naive: datetime) -> None:
    moment = naive.replace(microsecond=naive.microsecond // 1000 * 1000, tzinfo=UTC)
    expected = (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)
    assert values.timestamp("startingTimestamp", moment.isoformat()) == expected


def test_spans_of_time() -> None:
    assert [values.span("o", text) for text in ("30s", "15m", " 2 hours ")] == [30, 900, 7200]
    for text in ("30", "0s", "m", "1d"):
        with pytest.raises(OptionError, match="a length of time such as 30s, 15m or 1h"):
            values.span("o", text)


def test_all_columns() -> None:
    assert values.column_names("columns", " * ") is None
    assert values.column_names("columns", "topic, body") == ("topic", "body")
