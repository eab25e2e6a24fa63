# SPDX-License-Identifier: Apache-2.0
"""Texts of peers and of stores as they may be shown: on a terminal, in a log, on a page.

A terminal obeys control characters, and whatever begins a line of a log looks like a line of ours.
"""

from __future__ import annotations


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
