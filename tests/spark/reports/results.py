# SPDX-License-Identifier: Apache-2.0
"""Made-up results for tests of what shows them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from txrocketmq.spark.reports.catalog import REPORTS
from txrocketmq.spark.reports.report import (
    Bars,
    Histogram,
    Percentiles,
    Plot,
    Report,
    Result,
    Stack,
    Timeline,
)

AT = datetime(2026, 11, 20, 12, tzinfo=UTC)
NASTY = "<script>alert('x')</script> & $a^b$ \x1b[31m\u202e\ud800 \u6d88\u606f"
"""A name as an enemy would choose it: HTML, math, terminal codes, direction, half a character."""


def result(plot: Plot | None, rows: list[dict[str, Any]], name: str = "made") -> Result:
    """Returns a result with these rows."""
    columns = list(rows[0]) if rows else ["topic", "messages"]
    return Result(Report(name, "Made up", "Rows of `nothing`.", "SELECT 1", plot), columns, rows)


def one_of_each_plot(label: str = "orders") -> list[Result]:
    """Returns a result for each kind of plot."""
    times = [AT + timedelta(minutes=n) for n in range(5)]
    return [
        result(Bars(["topic", "queueId"], "messages"), [
            {"topic": label, "queueId": n, "messages": 1000 - n} for n in range(20)
        ], "bars"),
        result(Timeline("time", ["messagesPerSecond", "bytesPerSecond"]), [
            {"time": t, "messagesPerSecond": 1.5, "bytesPerSecond": 2048.0} for t in times
        ], "timeline"),
        result(Histogram("fromBytes", "messages"), [
            {"fromBytes": 2**n, "messages": n} for n in range(12)
        ], "histogram"),
        result(Percentiles(["topic"], ["p50", "p90", "max"]), [
            {"topic": label, "p50": -3, "p90": 12, "max": 3_600_000},
            {"topic": None, "p50": 0, "p90": None, "max": 1},
        ], "percentiles"),
        result(Stack("topic", "tag", "percent"), [
            {"topic": label, "tag": "TagA", "percent": 75.0},
            {"topic": label, "tag": label, "percent": 25.0},
        ], "stack"),
    ]  # fmt: skip


def empty_results() -> list[Result]:
    """Returns the results of an empty store: every report without rows."""
    return [Result(report, ["topic"], []) for report in REPORTS]
