# SPDX-License-Identifier: Apache-2.0
"""Tables: aligned columns for people, one JSON object a line for programs.

A cell has no control characters, whatever a name or a message holds: it may go to a terminal. A
table is not wider than the terminal, or than 80 characters where there is none: cells that are too
long are folded into several lines, those that matter least first.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from itertools import zip_longest
from textwrap import wrap
from typing import Any, Final

import orjson

from txrocketmq.remoting.primitives.plain_text import plain, plain_json

NOTHING: Final = "-"
WIDTH: Final = 80
_BETWEEN: Final = "  "
_KILO: Final = 1000
_CUT: Final = (16, 8, 4)
"""The lengths to which words are cut, one after the other, until a table is narrow enough."""


def table_text(
    rows: Sequence[Mapping[str, Any]],
    columns: Mapping[str, str],
    *,
    folds: Sequence[str] = (),
    width: int = WIDTH,
) -> str:
    """Returns rows under headings; `columns` are these by the names of the rows' values.

    If the table is wider than `width`, the columns of `folds` are folded first, in this order, then
    other texts from the right to the left, and numbers never.
    """
    texts = [[_cell(row.get(name)) for name in columns] for row in rows]
    is_right = [
        bool(rows) and all(type(row.get(name)) in (int, float, type(None)) for row in rows)
        for name in columns
    ]
    lines = [list(columns.values()), *texts]
    widths = _widths(lines, is_right, _order(list(columns), folds, is_right), width)
    return "\n".join(text for line in lines for text in _folded(line, widths, is_right))


def terminal_width() -> int:
    """Returns how many characters of a table stand side by side: those of the terminal, or 80."""
    return shutil.get_terminal_size((WIDTH, 24)).columns


def _order(names: list[str], folds: Sequence[str], is_right: Sequence[bool]) -> list[int]:
    """Returns the numbers of the columns in the order in which they are made narrower."""
    first = [names.index(name) for name in folds if name in names]
    others = [n for n in reversed(range(len(names))) if n not in first]
    return first + sorted(others, key=lambda n: not is_right[n])


def _widths(
    lines: Sequence[Sequence[str]], is_right: Sequence[bool], order: Sequence[int], width: int
) -> list[int]:
    """Returns the widths of the columns: as wide as their cells, or narrower if they must be.

    First cells are folded between words, then words are cut, then they are cut once more.
    """
    widths = [max(len(line[n]) for line in lines) for n in range(len(lines[0]))]
    room = width - len(_BETWEEN) * (len(widths) - 1)
    for longest in (max(widths), *_CUT):
        for n in order:
            too_much = sum(widths) - room
            if too_much <= 0:
                return widths
            least = max(_longest_word(line[n], longest) for line in lines)
            if is_right[n]:
                least = max([least, *(len(line[n]) for line in lines[1:])])
            widths[n] = max(min(least, widths[n]), widths[n] - too_much)
    return widths


def _longest_word(text: str, most: int) -> int:
    return min(max(map(len, text.split()), default=1), most)


def _folded(line: Sequence[str], widths: Sequence[int], is_right: Sequence[bool]) -> Iterator[str]:
    cells = [
        [text]
        if len(text) <= width
        else wrap(text, width, break_on_hyphens=False) or [text[:width]]
        for text, width in zip(line, widths, strict=True)
    ]
    for parts in zip_longest(*cells, fillvalue=""):
        yield _BETWEEN.join(
            part.rjust(width) if right else part.ljust(width)
            for part, width, right in zip(parts, widths, is_right, strict=True)
        ).rstrip()


def json_lines(rows: Sequence[Mapping[str, Any]]) -> str:
    """Returns rows as JSON objects, one a line, with all their values."""
    return "\n".join(json_text(row) for row in rows)


def json_text(value: Any) -> str:
    """Returns a value as JSON; for what JSON has no form for, the object of its fields."""
    data = orjson.dumps(value, default=_plain_value, option=orjson.OPT_NON_STR_KEYS)
    return plain_json(data.decode())


def time_text(timestamp_ms: int) -> str | None:
    """Returns a time in ms since the epoch as text in the local zone; None if there is no time."""
    if timestamp_ms <= 0:
        return None
    seconds, millis = divmod(timestamp_ms, 1000)
    return f"{time.strftime('%Y-%m-%d %H:%M:%S', time.localtime(seconds))}.{millis:03d}"


def size_text(size_bytes: float | None) -> str | None:
    """Returns a number of bytes as people read it, such as 1.5 MB; None if it is not known."""
    if size_bytes is None:
        return None
    if size_bytes < _KILO:
        return f"{size_bytes:.0f} B"
    for unit in ("kB", "MB", "GB"):
        size_bytes /= _KILO
        if size_bytes < _KILO:
            return f"{size_bytes:.1f} {unit}"
    return f"{size_bytes / _KILO:,.1f} TB"


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
