# SPDX-License-Identifier: Apache-2.0
"""A tolerant scanner of JSON: it reads what fastjson writes and reads, which is not always JSON.

Names may lack quotation marks, be numbers or objects, and texts may be between apostrophes. Java:
fastjson's JSONScanner and DefaultJSONParser.
"""

from __future__ import annotations

import re
from collections.abc import Hashable
from typing import Any, Final

from txrocketmq.remoting.errors import HeaderError
from txrocketmq.remoting.message.message import MessageQueue

MAX_DEPTH: Final = 64
"""Deepest nesting that the tolerant scanner follows."""
_MAX_DIGITS: Final = 40
_BLANKS = re.compile(r"[ \t\r\n]*+")
_STRINGS = {
    '"': re.compile(r'"([^"\\]*+(?:\\.[^"\\]*+)*+)"', re.DOTALL),
    "'": re.compile(r"'([^'\\]*+(?:\\.[^'\\]*+)*+)'", re.DOTALL),
}
_NUMBER = re.compile(r"(-?[0-9]++)(\.[0-9]++)?([eE][+-]?[0-9]++)?")
_NAME = re.compile(r"[A-Za-z_$][A-Za-z0-9_$.]*+")
_ESCAPE = re.compile(r"\\(u[0-9A-Fa-f]{4}|x[0-9A-Fa-f]{2}|.)", re.DOTALL)
_ESCAPED = {
    "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v",
    '"': '"', "'": "'", "\\": "\\", "/": "/", **{str(digit): chr(digit) for digit in range(8)},
}  # fmt: skip
_SURROGATE = re.compile("[\ud800-\udfff]")
_WORDS = {"true": True, "false": False, "null": None}


class JsonError(HeaderError):
    """A text that not even fastjson would accept as JSON; `position` counts characters from 0.

    Of the text itself it shows one character at most, since what follows may be a secret.
    """

    def __init__(self, position: int, reason: str) -> None:
        super().__init__(f"no JSON at character {position}: {reason}")
        self.position = position
        self.reason = reason


def scan(data: bytes | bytearray | memoryview) -> Any:
    """Returns the value of a whole text. Raises JsonError."""
    text = str(data, "utf-8", "replace")
    value, at = scan_value(text, _skip_blanks(text, 0), 0)
    at = _skip_blanks(text, at)
    if at != len(text):
        raise JsonError(at, f"more after the end: {text[at : at + 1]!r}")
    return value


def _skip_blanks(text: str, at: int) -> int:
    match = _BLANKS.match(text, at)
    return match.end() if match else at


def scan_value(text: str, at: int, depth: int) -> tuple[Any, int]:
    """Returns the value at a place in a text, and where it ends."""
    first = text[at : at + 1]
    if first in _STRINGS:
        return _string(text, at)
    if first == "{":
        return _object(text, at, depth + 1)
    if first == "[":
        return _array(text, at, depth + 1)
    if match := _NUMBER.match(text, at):
        return _numeral(match), match.end()
    if (match := _NAME.match(text, at)) and match[0] in _WORDS:
        return _WORDS[match[0]], match.end()
    raise JsonError(at, f"a value is expected, not {text[at : at + 1]!r}")


def _object(text: str, at: int, depth: int) -> tuple[dict[Any, Any], int]:
    _check_depth(at, depth)
    members: dict[Any, Any] = {}
    at = _skip_blanks(text, at + 1)
    if text.startswith("}", at):
        return members, at + 1
    while True:
        name, at = _key(text, at, depth)
        at = _skip_blanks(text, at)
        if not text.startswith(":", at):
            raise JsonError(at, f"a colon is expected, not {text[at : at + 1]!r}")
        members[name], at = scan_value(text, _skip_blanks(text, at + 1), depth)
        at = _skip_blanks(text, at)
        if text.startswith("}", at):
            return members, at + 1
        at = _after_comma(text, at, "}")


def _array(text: str, at: int, depth: int) -> tuple[list[Any], int]:
    _check_depth(at, depth)
    items: list[Any] = []
    at = _skip_blanks(text, at + 1)
    if text.startswith("]", at):
        return items, at + 1
    while True:
        item, at = scan_value(text, at, depth)
        items.append(item)
        at = _skip_blanks(text, at)
        if text.startswith("]", at):
            return items, at + 1
        at = _after_comma(text, at, "]")


def _after_comma(text: str, at: int, end: str) -> int:
    if not text.startswith(",", at):
        raise JsonError(at, f"a comma or {end} is expected, not {text[at : at + 1]!r}")
    return _skip_blanks(text, at + 1)


def _check_depth(at: int, depth: int) -> None:
    if depth > MAX_DEPTH:
        raise JsonError(at, f"nested deeper than {MAX_DEPTH}")


def _key(text: str, at: int, depth: int) -> tuple[Hashable, int]:
    first = text[at : at + 1]
    if first in _STRINGS:
        return _string(text, at)
    if first == "{":
        members, end = _object(text, at, depth + 1)
        return _queue_or_items(members), end
    if match := _NUMBER.match(text, at):
        return _numeral(match), match.end()
    if match := _NAME.match(text, at):
        return match[0], match.end()
    raise JsonError(at, f"a name is expected, not {text[at : at + 1]!r}")


def _queue_or_items(members: dict[Any, Any]) -> Hashable:
    if len(members) == 3:
        topic, broker, queue_id = map(members.get, ("topic", "brokerName", "queueId"))
        if isinstance(topic, str) and isinstance(broker, str) and type(queue_id) is int:
            return MessageQueue(topic, broker, queue_id)
    return _frozen(members)


def _frozen(value: Any) -> Hashable:
    if isinstance(value, dict):
        items = ((name, _frozen(member)) for name, member in value.items())
        return tuple(sorted(items, key=lambda item: str(item[0])))
    if isinstance(value, list):
        return tuple(map(_frozen, value))
    return value  # type: ignore[no-any-return]


def _numeral(match: re.Match[str]) -> int | float:
    if len(match[0]) > _MAX_DIGITS:
        raise JsonError(match.start(), f"a number of {len(match[0])} characters")
    return float(match[0]) if match[2] or match[3] else int(match[0])


def _string(text: str, at: int) -> tuple[str, int]:
    match = _STRINGS[text[at]].match(text, at)
    if match is None:
        raise JsonError(at, "the text has no end")
    string = match[1]
    if "\\" in string:
        string = _ESCAPE.sub(lambda escape: _unescaped(escape, match.start(1)), string)
        if _SURROGATE.search(string):
            string = string.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return string, match.end()


def _unescaped(escape: re.Match[str], start: int) -> str:
    letters = escape[1]
    if len(letters) > 1:
        return chr(int(letters[1:], 16))
    if letters not in _ESCAPED:
        raise JsonError(start + escape.start(), f"unknown escape {escape[0]!r}")
    return _ESCAPED[letters]
