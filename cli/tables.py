# SPDX-License-Identifier: Apache-2.0
"""Tables: aligned columns for people, one JSON object a line for programs.

A cell has no control characters, whatever a name or a message holds: it may go to a terminal. The
same table goes to a terminal and into a pipe, so that what is seen can be cut and sorted.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, Final

import orjson

from txrocketmq.remoting.primitives.plain_text import plain, plain_json

NOTHING: Final = "-"
_BETWEEN: Final = "  "


def table_text(rows: Sequence[Mapping[str, Any]], columns: Mapping[str, str]) -> str:
    """Returns rows under headings; `columns` are these by the names of the rows' values."""
    texts = [[_cell(row.get(name)) for name in columns] for row in rows]
    lines = [list(columns.values()), *texts]
    widths = [max(len(line[n]) for line in lines) for n in range(len(columns))]
    is_right = [
        bool(rows) and all(type(row.get(name)) in (int, float, type(None)) for row in rows)
        for name in columns
    ]
    return "\n".join(
        _BETWEEN.join(
            text.rjust(width) if right else text.ljust(width)
            for text, width, right in zip(line, widths, is_right, strict=True)
        ).rstrip()
        for line in lines
    )


def json_lines(rows: Sequence[Mapping[str, Any]]) -> str:
    """Returns rows as JSON objects, one a line, with all their values."""
    return "\n".join(json_text(row) for row in rows)


def json_text(value: Any) -> str:
    """Returns a value as JSON; for what JSON does not know, the object of its fields."""
    data = orjson.dumps(value, default=_plain_value, option=orjson.OPT_NON_STR_KEYS)
    return plain_json(data.decode())


def time_text(timestamp_ms: int) -> str | None:
    """Returns a time in ms since the epoch as text in the local zone; None if there is no time."""
    if timestamp_ms <= 0:
        return None
    seconds, millis = divmod(timestamp_ms, 1000)
    return f"{time.strftime('%Y-%m-%d %H:%M:%S', time.localtime(seconds))}.{millis:03d}"


def _cell(value: Any) -> str:
    if value is None or value == "":
        return NOTHING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.1f}"
    if isinstance(value, (Mapping, list, tuple)):
        return json_text(value)
    return plain(str(value))


def _plain_value(value: Any) -> Any:
    if hasattr(value, "to_json"):
        return value.to_json()
    if isinstance(value, Enum):
        return value.value
    raise TypeError(type(value).__name__)
