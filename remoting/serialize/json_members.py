# SPDX-License-Identifier: Apache-2.0
"""Reads the members of one large object in a JSON text one by one, with pauses between them.

A body is otherwise decoded at once, which takes 150 ms for 60,000 topics, and as long again for
each step after that. A short member may be one that only fastjson takes for JSON, such as a map
with numbers as names; the rest has to be plain JSON.

Java: has no counterpart.
"""

from __future__ import annotations

import re
from collections.abc import Generator
from json import JSONDecoder
from typing import Any, Final

from txrocketmq.remoting.serialize.json import JsonError, scan_value

SHORT: Final = 16 * 1024
"""How many characters a member may have that is not plain JSON."""
_BLANKS: Final = re.compile(r"[ \t\n\r]*")
_WORD: Final = re.compile(r"[\w$]+")
_decode: Final = JSONDecoder(strict=False).raw_decode


def members(text: str, path: tuple[str, ...]) -> Generator[tuple[str, Any], None, str]:
    """Yields the members of the object at `path`, and returns the text with that object empty.

    Returns the text as it is if there is no object at that place. Raises JsonError, with the
    position, for what is not plain JSON on the way there, or in it.
    """
    at = _place_of(text, path)
    if at is None:
        return text
    start = at
    at = _after(text, at + 1)
    if text[at : at + 1] != "}":
        while True:
            name, at = _name(text, at)
            value, at = _value(text, at)
            yield name, value
            at = _after(text, at)
            if text[at : at + 1] == "}":
                break
            at = _after(text, _expect(text, at, ","))
    return f"{text[: start + 1]}{text[at:]}"


def _place_of(text: str, path: tuple[str, ...]) -> int | None:
    """Where the object at a path begins; None if there is no object."""
    at = _after(text, 0)
    for wanted in path:
        found = None
        if text[at : at + 1] != "{":
            return None
        at = _after(text, at + 1)
        while text[at : at + 1] != "}":
            name, at = _name(text, at)
            if name == wanted:
                found = at
                break
            _, at = _value(text, at)
            at = _after(text, at)
            if text[at : at + 1] != "}":
                at = _after(text, _expect(text, at, ","))
        if found is None:
            return None
        at = found
    return at if text[at : at + 1] == "{" else None


def _name(text: str, at: int) -> tuple[str, int]:
    if word := _WORD.match(text, at):
        name, at = word[0], word.end()
    elif text[at : at + 1] in ('"', "'"):
        name, at = _value(text, at)
    else:
        raise JsonError(at, 'a name in " is expected')
    return name, _after(text, _expect(text, _after(text, at), ":"))


def _value(text: str, at: int) -> tuple[Any, int]:
    try:
        return _decode(text, at)
    except (ValueError, RecursionError):
        pass
    try:
        value, end = scan_value(text[at : at + SHORT], 0, 0)
    except JsonError:
        raise JsonError(at, "this is not a value") from None
    return value, at + end


def _expect(text: str, at: int, sign: str) -> int:
    if text[at : at + 1] != sign:
        raise JsonError(at, f"{sign} is expected")
    return at + 1


def _after(text: str, at: int) -> int:
    """Where the blanks end that begin here."""
    found = _BLANKS.match(text, at)
    assert found is not None
    return found.end()
