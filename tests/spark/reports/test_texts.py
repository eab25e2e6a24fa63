# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.spark.reports.results import AT, NASTY
from txrocketmq.spark.reports import texts
from txrocketmq.spark.reports.catalog import REPORTS


@pytest.mark.parametrize(
    ("column", "value", "text"),
    [
        ("messages", 1234567, "1,234,567"),
        ("messages", None, ""),
        ("topic", "Orders", "Orders"),
        ("time", AT, "2026-11-20 12:00:00"),
        ("bytes", 0, "0 B"),
        ("bytes", 1023, "1,023 B"),
        ("bytes", 1536, "1.5 KiB"),
        ("bytes", 3 << 40, "3.0 TiB"),
        ("bytes", 1 << 70, "1,048,576.0 PiB"),
        ("percent", 12.5, "12.5 %"),
        ("percent", 100.0, "100 %"),
        ("p99", 1234, "1,234 ms"),
        ("age", 90061, "1 d 1 h"),
        ("age", 3599, "59 min 59 s"),
        ("age", -5, "-5 s"),
        ("age", 0, "0 s"),
        ("period", 43_200, "12 h"),
        ("bytes", (1 << 20) - 1, "1.0 MiB"),
        ("messagesPerSecond", 0.0044, "0.0044/s"),
        ("messagesPerSecond", 12345.6, "12,346/s"),
        ("bytesPerSecond", 2048.0, "2.0 KiB/s"),
        ("current", True, "yes"),
        ("current", False, ""),
    ],
)
def test_values_are_shown_in_their_unit(column: str, value: Any, text: str) -> None:
    assert texts.cell(column, value) == text


@given(st.text(st.characters(exclude_categories=())))
def test_any_name_fits_on_a_line_and_can_be_encoded(text: str) -> None:
    shown = texts.cell("topic", text)
    assert shown.isprintable()
    shown.encode("utf-8")


def test_names_keep_what_can_be_shown() -> None:
    assert texts.cell("topic", "消息 <a>") == "消息 <a>"
    assert "\\x1b[31m\\u202e\\ud800 消息" in texts.cell("topic", NASTY)


def test_rows_are_called_by_their_columns() -> None:
    assert texts.label({"topic": "a", "key": None, "n": 3}, ["topic", "key", "n"]) == (
        "a / (none) / 3"
    )


def test_headings_are_words() -> None:
    assert texts.heading("bytesPerHour") == "bytes per hour"
    assert texts.heading("p50") == "median"
    assert texts.axis("lag") == "unread messages"
    assert texts.axis("bytesPerHour") == "bytes per hour"


def test_units_are_of_columns_that_reports_have() -> None:
    """A column that is renamed in a query would lose its unit."""
    queries = "".join(report.sql for report in REPORTS)
    for column in (
        texts.BYTES_COLUMNS
        | texts.PERCENT_COLUMNS
        | texts.MILLIS_COLUMNS
        | texts.SECONDS_COLUMNS
        | texts.RATE_COLUMNS
    ):
        assert re.search(rf"(AS|,|\.) ?{column}\b", queries), column
