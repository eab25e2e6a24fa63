# SPDX-License-Identifier: Apache-2.0
"""Cuts the values out of a header that differ from message to message, or from pull to pull.

Of a send, these are the opaque, the time of birth and the properties; of a pull, the opaque and two
offsets; of the end of a transaction these as well, and two names of the message, which nobody
reads; and of all of them the signature, if there is one. What is left is always the same for one
place: it says where a message goes and how, or what is pulled, and is the key by which that is
looked up. So nothing else of a header has to be understood, but for one thing: in the key, fields
come in the order of their names, since the Go client writes them in another order each time. A
header that is written in any unusual way has no holes, and is decoded as ever.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final, NamedTuple

import orjson

from txrocketmq.remoting import formats
from txrocketmq.remoting.codes import SerializeType
from txrocketmq.remoting.frame.signer import SIGNATURE
from txrocketmq.remoting.primitives.packing import fixed

_STRING: Final = rb'"[^"\\\x00-\x1f]*+(?:\\.[^"\\\x00-\x1f]*+)*+"'
_NAME: Final = rb'"([A-Za-z]{1,64})":'
_MEMBER: Final = re.compile(_NAME + rb"(" + _STRING + rb"|-?[0-9]{1,10}|\{)")
_FIELD: Final = re.compile(_NAME + rb"(" + _STRING + rb")")
_OPAQUE: Final = re.compile(rb"0|[1-9][0-9]{0,9}")
_NUMBER: Final = re.compile(rb"[0-9]{1,18}")
_SIGNED: Final = re.compile(rb"[A-Za-z0-9+/=]{28}")
_INT_MAX: Final = 2**31 - 1
_WORD: Final = re.compile(rb"[A-Za-z0-9]{1,255}")
_FIRST, _SECOND, _SIGNATURE = "first", "second", "signature"
_MESSAGE_ID, _TRANSACTION_ID = "msgId", "transactionId"
_ALL: Final = frozenset({"opaque", "fields", _FIRST, _SECOND})
"""What a header of JSON has to have."""
_OF_SENDS: Final = {
    b"g": _FIRST, b"bornTimestamp": _FIRST, b"i": _SECOND, b"properties": _SECOND,
    SIGNATURE.encode(): _SIGNATURE,
}  # fmt: skip
_OF_PULLS: Final = {
    b"queueOffset": _FIRST, b"commitOffset": _SECOND, SIGNATURE.encode(): _SIGNATURE,
}  # fmt: skip
_OF_ENDS: Final = {
    b"tranStateTableOffset": _FIRST, b"commitLogOffset": _SECOND, b"msgId": _MESSAGE_ID,
    b"transactionId": _TRANSACTION_ID, SIGNATURE.encode(): _SIGNATURE,
}  # fmt: skip
"""By name: which hole the value of a field is."""

_HEAD: Final = fixed(formats.BINARY_HEAD)
_OPAQUE_AT: Final = _HEAD.offset_of("opaque")
_FLAG_AT: Final = _HEAD.offset_of("flag")
_INT: Final = fixed(formats.BINARY_FIELDS_LENGTH).struct
_NAME_LENGTH: Final = fixed(formats.BINARY_NAME_LENGTH).struct


class SignedHeader(NamedTuple):
    """The signature of a header, and what is signed of it.

    `values` is None if the header is written in such a way that this is not certain.
    """

    signature: bytes
    values: bytes | None


class Holes(NamedTuple):
    """The three values, and what is left: the bytes around the fields, and the other fields."""

    key: tuple[Any, ...]
    opaque: int
    born_timestamp_ms: int
    properties: bytes
    """The text, in UTF-8."""
    signed: SignedHeader | None
    """None for a header without a signature."""


class PullHoles(NamedTuple):
    """The three values of a pull, and what is left."""

    key: tuple[Any, ...]
    opaque: int
    queue_offset: int
    commit_offset: int
    signed: SignedHeader | None


class EndHoles(NamedTuple):
    """The values of the end of a transaction that are read, and what is left."""

    key: tuple[Any, ...]
    opaque: int
    queue_offset: int
    log_offset: int
    signed: SignedHeader | None


class _Values(NamedTuple):
    """The key, the opaque, two values of fields as they are written, and what is signed."""

    key: tuple[Any, ...]
    opaque: int
    first: bytes
    second: bytes
    signed: SignedHeader | None


def holes_of(kind: int, header: bytes) -> Holes | None:
    """Returns the holes in the header of a send; None for one that has to be decoded."""
    found = _values(kind, header, _OF_SENDS)
    if found is None or not _NUMBER.fullmatch(found.first):
        return None
    try:
        text = _meant(kind, found.second)
    except ValueError:
        return None
    return Holes(found.key, found.opaque, int(found.first), text, found.signed)


def pull_holes_of(kind: int, header: bytes) -> PullHoles | None:
    """Returns the holes in the header of a pull; None for one that has to be decoded."""
    found = _values(kind, header, _OF_PULLS)
    if found is None or not (_NUMBER.fullmatch(found.first) and _NUMBER.fullmatch(found.second)):
        return None
    return PullHoles(found.key, found.opaque, int(found.first), int(found.second), found.signed)


def end_holes_of(kind: int, header: bytes) -> EndHoles | None:
    """Returns the holes in the header of an end; None for one that has to be decoded."""
    found = _values(kind, header, _OF_ENDS)
    if found is None or not (_NUMBER.fullmatch(found.first) and _NUMBER.fullmatch(found.second)):
        return None
    return EndHoles(found.key, found.opaque, int(found.first), int(found.second), found.signed)


def _meant(kind: int, written: bytes) -> bytes:
    """Returns the text, in UTF-8, that is written so in a header. Raises ValueError."""
    if kind == SerializeType.JSON:
        return str(orjson.loads(b'"%b"' % written)).encode()
    return written.decode().encode()


def _signed(kind: int, fields: Mapping[bytes, bytes]) -> SignedHeader | None:
    """Returns the signature among fields, and what it signs, by their values as they are written.

    Raises ValueError for one that is none.
    """
    signature = fields.get(SIGNATURE.encode())
    if signature is None:
        return None
    if not _SIGNED.fullmatch(signature):
        raise ValueError("this is no signature")
    others = sorted(name for name in fields if name != SIGNATURE.encode())
    # Java sorts by units of UTF-16. For these names, all orders are the same.
    values = None
    if all(name.isalnum() for name in others):
        with suppress(ValueError):
            values = b"".join([_meant(kind, fields[name]) for name in others])
    return SignedHeader(signature, values)


def _values(kind: int, header: bytes, names: Mapping[bytes, str]) -> _Values | None:
    try:
        if kind == SerializeType.JSON:
            return _json_values(header, names)
        return _binary_values(header, names) if kind == SerializeType.ROCKETMQ else None
    except (ValueError, struct.error):
        return None


def _json_values(header: bytes, names: Mapping[bytes, str]) -> _Values | None:
    found: dict[str, tuple[int, int]] = {}
    fields: dict[bytes, bytes] = {}
    if not _members(header, found, fields, names) or not found.keys() >= _ALL:
        return None
    opaque, first, second = (header[slice(*found[name])] for name in ("opaque", _FIRST, _SECOND))
    if not _OPAQUE.fullmatch(opaque) or int(opaque) > _INT_MAX:
        return None
    pieces, at = [], 0
    for start, end in sorted([found["opaque"], found["fields"]]):
        pieces.append(header[at:start])
        at = end
    key = ("json", *pieces, header[at:], *_same(fields, names))
    signed = _signed(SerializeType.JSON, {name: text[1:-1] for name, text in fields.items()})
    return _Values(key, int(opaque), first[1:-1], second[1:-1], signed)


def _same(fields: Mapping[bytes, bytes], names: Mapping[bytes, str]) -> list[tuple[bytes, bytes]]:
    """What is the same in all headers with a key."""
    return sorted((name, b"" if name in names else text) for name, text in fields.items())


def _members(
    header: bytes,
    found: dict[str, tuple[int, int]],
    fields: dict[bytes, bytes],
    holes: Mapping[bytes, str],
) -> bool:
    """Finds where the values and the fields lie, and what other fields there are; returns whether
    the header is one object, written as usual.
    """
    if header[:1] != b"{":
        return False
    at, names = 1, set()
    while True:
        member = _MEMBER.match(header, at)
        if member is None or member[1] in names:
            return False
        names.add(member[1])
        at = member.end()
        if member[2] == b"{":
            at = _fields(header, at, found, fields, holes) if member[1] == b"extFields" else 0
            if not at:
                return False
            found["fields"] = member.start(2), at
        elif member[1] == b"opaque":
            found["opaque"] = member.span(2)
        if header[at : at + 1] == b"}":
            return at + 1 == len(header)
        if header[at : at + 1] != b",":
            return False
        at += 1


def _fields(
    header: bytes,
    at: int,
    found: dict[str, tuple[int, int]],
    fields: dict[bytes, bytes],
    holes: Mapping[bytes, str],
) -> int:
    """Finds where the values of fields lie; returns where the fields end, or 0."""
    names = set()
    while True:
        field = _FIELD.match(header, at)
        if field is None or field[1] in names:
            return 0
        names.add(field[1])
        what = holes.get(field[1], "")
        if what in found:
            return 0
        if what:
            found[what] = field.span(2)
        if what in {_MESSAGE_ID, _TRANSACTION_ID} and not _WORD.fullmatch(field[2][1:-1]):
            return 0
        fields[field[1]] = field[2]
        at = field.end() + 1
        if header[at - 1 : at] == b"}":
            return at
        if header[at - 1 : at] != b",":
            return 0


def _binary_values(header: bytes, holes: Mapping[bytes, str]) -> _Values | None:
    (opaque,) = _INT.unpack_from(header, _OPAQUE_AT)
    at = _HEAD.size + _INT.size
    (fields_bytes,) = _INT.unpack_from(header, _HEAD.size)
    # The remark, whose length ends the head, is empty.
    if _INT.unpack_from(header, _HEAD.size - _INT.size) != (0,) or opaque < 0:
        return None
    if at + fields_bytes != len(header):
        return None
    fields: dict[bytes, bytes] = {}
    values: dict[str, bytes] = {}
    while at < len(header):
        name_at = at + _NAME_LENGTH.size
        length_at = name_at + _NAME_LENGTH.unpack_from(header, at)[0]
        value_at = length_at + _INT.size
        name, at = header[name_at:length_at], value_at + _INT.unpack_from(header, length_at)[0]
        if not name_at < length_at or not value_at <= at <= len(header) or name in fields:
            return None
        what = holes.get(name, "")
        if what in values or (what and at == value_at):
            return None
        if what in {_MESSAGE_ID, _TRANSACTION_ID} and not _WORD.fullmatch(header[value_at:at]):
            return None
        if what:
            values[what] = header[value_at:at]
        fields[name] = header[value_at:at]
    if not values.keys() >= {_FIRST, _SECOND}:
        return None
    head = header[:_OPAQUE_AT], header[_FLAG_AT : _HEAD.size]
    key = ("binary", *head, *_same(fields, holes))
    signed = _signed(SerializeType.ROCKETMQ, fields)
    return _Values(key, opaque, values[_FIRST], values[_SECOND], signed)
