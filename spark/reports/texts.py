# SPDX-License-Identifier: Apache-2.0
"""Values of a result as people read them: counts, bytes, times. Names come from messages, so
whatever cannot be shown on a line is escaped.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from txrocketmq.remoting.primitives.plain_text import plain
from txrocketmq.spark.reports.report import ReportRow

BYTES_COLUMNS: Final = frozenset(
    {"bytes", "bodyBytes", "meanBody", "fromBytes", "bytesPerHour", "bytesPerSecond", "atRetention"}
)
PERCENT_COLUMNS: Final = frozenset({"percent", "upTo", "retryPercent", "deadPercent"})
MILLIS_COLUMNS: Final = frozenset({"p50", "p90", "p99", "p999", "max"})
SECONDS_COLUMNS: Final = frozenset({"age", "dueIn", "goesIn", "period"})
RATE_COLUMNS: Final = frozenset({"messagesPerSecond", "bytesPerSecond"})
_UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


def cell(column: str, value: Any) -> str:
    """A value of a column as text; nothing for NULL."""
    if value is None:
        return ""
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M:%S}"
    if isinstance(value, str):
        return plain(value)
    if isinstance(value, bool):
        return "yes" if value else ""
    if column in RATE_COLUMNS:
        return f"{size(value)}/s" if column in BYTES_COLUMNS else f"{rate(value)}/s"
    if column in BYTES_COLUMNS:
        return size(value)
    if column in PERCENT_COLUMNS:
        return f"{value:,.4g} %"
    if column in MILLIS_COLUMNS:
        return f"{value:,} ms"
    if column in SECONDS_COLUMNS:
        return duration(value)
    return f"{value:,}"


def size(count: float) -> str:
    """Formats a number of bytes in a suitable unit."""
    unit = 0
    while abs(count) >= (1024 if unit == 0 else 1023.95) and unit < len(_UNITS) - 1:
        count /= 1024
        unit += 1
    return f"{count:,.0f} B" if unit == 0 else f"{count:,.1f} {_UNITS[unit]}"


def rate(value: float) -> str:
    """Formats a number of events per second with three digits, however small it is."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def duration(seconds: float) -> str:
    """Formats seconds with their two largest units, without a second one that is 0."""
    sign = "-" if seconds < 0 else ""
    whole = timedelta(seconds=round(abs(seconds)))
    minutes, rest = divmod(whole.seconds, 60)
    hours, minutes = divmod(minutes, 60)
    parts = [(whole.days, "d"), (hours, "h"), (minutes, "min"), (rest, "s")]
    first = next((n for n, (count, _) in enumerate(parts) if count), len(parts) - 1)
    shown = [part for n, part in enumerate(parts[first : first + 2]) if n == 0 or part[0]]
    return sign + " ".join(f"{count} {unit}" for count, unit in shown)


def label(row: ReportRow, columns: Sequence[str]) -> str:
    """Returns the label of a row: the values of some columns."""
    return " / ".join(cell(column, row[column]) or "(none)" for column in columns)


_HEADINGS: Final = {
    "p50": "median",
    "p90": "p90",
    "p99": "p99",
    "p999": "p99.9",
    "percent": "share",
}


def heading(column: str) -> str:
    """A column's name in words: `bytesPerHour` becomes `bytes per hour`."""
    words = "".join(f" {c.lower()}" if c.isupper() else c for c in column)
    return _HEADINGS.get(column, words)


_AXES: Final = {
    "lag": "unread messages",
    "percent": "share in percent",
    "retries": "retried messages",
    "fromBytes": "size of the body",
}


def axis(column: str) -> str:
    """Returns the name of an axis for a column, with the unit where its ticks do not show it."""
    return _AXES.get(column) or heading(column)
