# SPDX-License-Identifier: Apache-2.0
"""Texts of peers and of stores as they may be shown: on a terminal, in a log, on a page.

A terminal obeys control characters, and whatever begins a line of a log looks like a line of ours.
"""

from __future__ import annotations

import re
from typing import Final

_MAYBE_OBEYED: Final = re.compile(r"[^\n -~]")


def shortened(text: str, most: int) -> str:
    """Returns a text, or its beginning and how long it is if that is more than `most`."""
    return text if len(text) <= most else f"{text[:most]}... ({len(text)} characters)"


def plain(text: str, keep: str = "") -> str:
    """Returns a text without control characters, which are escaped as in Python.

    Characters in `keep` stay as they are.
    """
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() or char in keep else char.encode("unicode_escape").decode()
        for char in text
    )


def plain_error(error: BaseException) -> str:
    """Returns what an error says, as plain text; it may have several lines."""
    return plain(str(error), keep="\n")


def plain_json(text: str) -> str:
    """Returns JSON with the same meaning, in which control characters are escaped.

    JSON itself demands that of the characters below U+0020 only; terminals obey others, too.
    """
    return text if text.isprintable() else _MAYBE_OBEYED.sub(_escaped, text)


def _escaped(found: re.Match[str]) -> str:
    char = found.group()
    if char.isprintable():
        return char
    units = char.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))
