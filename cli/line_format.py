# SPDX-License-Identifier: Apache-2.0
r"""Formats of messages, as kcat has them: how `tail -f` prints one, and how `send -f` reads a line.

    %s  body          %S  its size in bytes      %t  topic         %T  time of storing, in ms
    %k  keys          %K  their size in bytes    %b  broker        %i  message id
    %g  tag           %h  properties             %p  queue         %o  offset
    %%  a percent sign; and \n \r \t \0 \\ \xNN, as in C

A line that is read has the body, the keys, the tag and the properties, in any order, between texts
that separate them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from txrocketmq.remoting.message.message import MessageExt
from txrocketmq.remoting.message.properties import KEYS, SYSTEM_PROPERTIES

_PIECE: Final = re.compile(r"%(.?)|\\(x[0-9a-fA-F]{2}|.?)|([^%\\]+)", re.DOTALL)
_ESCAPES: Final = {"n": b"\n", "r": b"\r", "t": b"\t", "0": b"\0", "\\": b"\\"}


def _keys(message: MessageExt) -> bytes:
    return message.properties.get(KEYS, "").encode("utf-8", "surrogateescape")


def _text(text: object) -> bytes:
    return str(text if text is not None else "").encode("utf-8", "surrogateescape")


def _properties(message: MessageExt) -> bytes:
    return _text(
        ",".join(
            f"{name}={value}"
            for name, value in message.properties.items()
            if name not in SYSTEM_PROPERTIES
        )
    )


_PRINTED: Final[Mapping[str, Callable[[MessageExt], bytes]]] = {
    "s": lambda message: bytes(message.body),
    "S": lambda message: _text(len(message.body)),
    "k": _keys,
    "K": lambda message: _text(len(_keys(message))),
    "g": lambda message: _text(message.tags),
    "h": _properties,
    "t": lambda message: _text(message.topic),
    "b": lambda message: _text(message.broker_name),
    "p": lambda message: _text(message.queue_id),
    "o": lambda message: _text(message.queue_offset),
    "T": lambda message: _text(message.store_timestamp),
    "i": lambda message: _text(message.msg_id),
}
_READ: Final = "skgh"


@dataclass(frozen=True, slots=True)
class Parts:
    """What a line says of a message."""

    body: bytes
    tag: str | None = None
    keys: tuple[str, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict)
    flag: int = 0


def _pieces(text: str, known: str) -> list[tuple[str, bytes]]:
    """Returns the pieces of a format: the letter of a field, or no letter and a text.

    Raises ValueError for a field that is not known, and for an escape that is none.
    """
    pieces: list[tuple[str, bytes]] = []
    for match in _PIECE.finditer(text):
        letter, escape, plain = match.groups()
        if plain is not None:
            pieces.append(("", _text(plain)))
        elif escape is not None:
            pieces.append(("", _escaped(escape)))
        elif letter == "%":
            pieces.append(("", b"%"))
        elif letter and letter in known:
            pieces.append((letter, b""))
        else:
            fields = " ".join(f"%{each}" for each in known)
            raise ValueError(f"%{letter} means nothing: there are {fields} and %%")
    return pieces


def _escaped(escape: str) -> bytes:
    if len(escape) > 1:
        return bytes.fromhex(escape[1:])
    if escape not in _ESCAPES:
        raise ValueError(f"\\{escape} means nothing: there are \\n \\r \\t \\0 \\\\ \\xNN")
    return _ESCAPES[escape]


class Printing:
    """How messages are printed. Raises ValueError for a format that is not valid."""

    def __init__(self, text: str) -> None:
        pieces = _pieces(text, "".join(_PRINTED))
        if not any(letter for letter, _ in pieces):
            raise ValueError("it has no field such as %s, the body")
        self._pieces = [
            _PRINTED[letter] if letter else partial(_constant, data) for letter, data in pieces
        ]

    def __call__(self, message: MessageExt) -> bytes:
        """Returns a message as the format says; nothing is added, not even the end of a line."""
        return b"".join([each(message) for each in self._pieces])


def _constant(data: bytes, _: MessageExt) -> bytes:
    return data


class FormatReader:
    """How lines are read. Raises ValueError for a format that is not valid.

    Each field ends where the text behind it is found first; the last one takes what is left.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._before = b""
        self._fields: list[tuple[str, bytes]] = []
        """The letter of each field, and the text behind it."""
        for letter, data in _pieces(text, _READ):
            if letter:
                if any(letter == other for other, _ in self._fields):
                    raise ValueError(f"%{letter} is there twice")
                if self._fields and not self._fields[-1][1]:
                    raise ValueError(f"nothing separates %{letter} from the field before it")
                self._fields.append((letter, b""))
            elif self._fields:
                last, behind = self._fields[-1]
                self._fields[-1] = last, behind + data
            else:
                self._before += data
        if not any(letter == "s" for letter, _ in self._fields):
            raise ValueError("there is no %s, the body")
        last, behind = self._fields[-1]
        self._fields[-1] = last, behind.removesuffix(b"\n")  # lines come without their ends

    def __call__(self, line: bytes) -> Parts:
        """Returns what a line says. Raises ValueError for one that is not of the format."""
        found = self._split(line)
        return Parts(
            found["s"],
            _decoded(found.get("g", b"")) or None,
            tuple(_decoded(found.get("k", b"")).split()),
            dict(_pairs(_decoded(found.get("h", b"")))),
        )

    def _split(self, line: bytes) -> dict[str, bytes]:
        found: dict[str, bytes] = {}
        is_right = line.startswith(self._before)
        rest = line.removeprefix(self._before)
        for letter, behind in self._fields[:-1]:
            found[letter], separator, rest = rest.partition(behind)
            is_right = is_right and bool(separator)
        last, behind = self._fields[-1]
        if not (is_right and rest.endswith(behind)):
            raise ValueError(f"it does not have the form {self._text!r}")
        found[last] = rest.removesuffix(behind)
        return found


def _decoded(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _pairs(text: str) -> list[tuple[str, str]]:
    pairs = []
    for each in text.split(",") if text else []:
        name, equals, value = each.partition("=")
        if not (name and equals):
            raise ValueError(f"{each!r} is not a property NAME=VALUE")
        pairs.append((name, value))
    return pairs
