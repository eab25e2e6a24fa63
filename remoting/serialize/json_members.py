# SPDX-License-Identifier: Apache-2.0
"""Reads the members of one large object in a JSON text one by one, with pauses between them.

A body is otherwise decoded at once, which takes 150 ms for 60,000 topics, and as long again for
each step after that. A short member may be one that only fastjson takes for JSON, such as a map
with numbers as names; the rest has to be plain JSON.

Java: has no counterpart.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator
from json import JSONDecoder
from typing import Any, Final, TypeVar

from txrocketmq.remoting.serialize.json_scanner import JsonError, scan_value

SHORT: Final = 16 * 1024
"""How many characters a member may have that is not plain JSON."""
MOST_NUMBERS: Final = 256 * 1024
"""How many characters a map from numbers to numbers may have, as of the offsets of queues."""
_MEMBERS_A_STEP: Final = 2
_NUMBERS: Final = re.compile(r"\{(?:-?\d{1,19}:-?\d{1,19}(?:,(?=[-\d])|(?=\})))*+\}", re.ASCII)
_BLANKS: Final = re.compile(r"[ \t\n\r]*")
_WORD: Final = re.compile(r"[\w$]+")
_decode: Final = JSONDecoder(strict=False).raw_decode

T = TypeVar("T")


def taking(
    text: str, path: tuple[str, ...], found: dict[str, T], item_of: Callable[[Any], T]
) -> Generator[None, None, str]:
    """Adds the members of the object at `path` to `found`, a few in each step.

    `item_of` makes of the value of each what is added. Returns and raises what `members` does.
    """
    its = members(text, path)
    while True:
        try:
            for _ in range(_MEMBERS_A_STEP):
                name, value = next(its)
                found[name] = item_of(value)
        except StopIteration as end:
            rest: str = end.value
            return rest
        yield


def members(text: str, path: tuple[str, ...]) -> Generator[tuple[str, Any], None, str]:
    """Yields the members of the object at `path`, and returns the text with that object empty.

    Returns the text as it is if there is no object at that place. Raises JsonError, with the
    position, for what is not plain JSON on the way there, or in it.
    """
    at = place_of(text, path)
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


def place_of(text: str, path: tuple[str, ...]) -> int | None:
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
    elif text[at : at + 1] == '"':
        try:
            name, at = _decode(text, at)
        except ValueError:
            raise JsonError(at, "this is not a name") from None
    elif text[at : at + 1] == "'":
        name, at = _short_value(text, at)
    else:
        raise JsonError(at, 'a name in " is expected')
    return name, _after(text, _expect(text, _after(text, at), ":"))


def _value(text: str, at: int) -> tuple[Any, int]:
    """Reads a value. What fails is looked at in a short piece of the text: whoever says where an
    error is counts the lines before it, and there may be an error in each of very many members.
    """
    if found := _NUMBERS.match(text, at, at + MOST_NUMBERS):
        pairs = (pair.split(":") for pair in found[0][1:-1].split(",") if pair)
        return {int(name): int(value) for name, value in pairs}, found.end()
    try:
        value, end = _decode(text[at : at + SHORT])
    except (ValueError, RecursionError):
        pass
    else:
        return value, at + end
    try:
        return _short_value(text, at)
    except JsonError:
        pass
    try:
        return _decode(text, at)
    except (ValueError, RecursionError):
        raise JsonError(at, "this is not a value") from None


def _short_value(text: str, at: int) -> tuple[Any, int]:
    """Reads a value that only fastjson may take for JSON."""
    try:
        value, end = scan_value(text[at : at + SHORT], 0, 0)
    except JsonError as error:
        raise JsonError(at + error.position, error.reason) from None
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
