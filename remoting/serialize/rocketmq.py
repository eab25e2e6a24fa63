# SPDX-License-Identifier: Apache-2.0
"""The ROCKETMQ binary command header.

Its format is BINARY_HEADER of `remoting.formats`. A code has two bytes, so the codes of POP (200050
and up) cannot be written; the original cuts them off in silence, and here they are refused. An
empty text and an absent one are the same. Counterpart of RocketMQSerializable.

Clients send headers of few layouts again and again, so the decoder learns where the texts of a
header lie. A learned layout is used only for a header that has the same bytes in every place that
is not a value (all lengths and all names): a walk through its fields would take the same steps.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import Final

from txrocketmq.remoting import formats
from txrocketmq.remoting.codes import LanguageCode, SerializeType
from txrocketmq.remoting.command import RemotingCommand
from txrocketmq.remoting.errors import FrameError, HeaderError
from txrocketmq.remoting.primitives.fifo_cache import FifoCache
from txrocketmq.remoting.primitives.packing import fixed

MAX_CODE: Final = 0x7FFF
"""Largest request or response code that fits into the header."""

_MAX_LAYOUTS: Final = 1024
"""How many layouts are remembered; the one learned first makes room for another."""
_MAX_LAYOUT_BYTES: Final = 8192
"""Headers that are longer than this are not learned."""
_MAX_LAYOUT_FIELDS: Final = 64
_MISSES_TO_LEARN: Final = 16
"""Learning costs more than a walk, so only each sixteenth header that fits no layout is learned:
peers whose headers never come again pay little for it."""

_HEAD: Final = fixed(formats.BINARY_HEAD).struct
_FIELDS_LENGTH: Final = fixed(formats.BINARY_FIELDS_LENGTH).struct
_NAME_LENGTH: Final = fixed(formats.BINARY_NAME_LENGTH).struct
_VALUE_LENGTH: Final = fixed(formats.BINARY_VALUE_LENGTH).struct
_FIELDS_AT: Final = _HEAD.size + _FIELDS_LENGTH.size
"""Where the fields begin in a header without a remark, such as a request has."""
_ROCKETMQ: Final = int(SerializeType.ROCKETMQ)
_NAMES: Final = {language.value: language.name for language in LanguageCode}
_NUMBERS: Final = {language.name: language.value for language in LanguageCode}


def encode_header(command: RemotingCommand) -> bytes:
    """Returns the header of a command.

    Raises HeaderError if something does not fit, such as a code above 32767.
    """
    if command.code > MAX_CODE:
        raise HeaderError(
            f"code {command.code} does not fit into the two bytes that the ROCKETMQ serialization"
            " has for it: send this command with a JSON header"
        )
    remark = command.remark.encode("utf-8", "replace") if command.remark else b""
    fields = _encode_fields(command.ext_fields) if command.ext_fields else b""
    language = _NUMBERS.get(command.language or "", LanguageCode.OTHER)
    try:
        head = _HEAD.pack(
            command.code, language, command.version, command.opaque, command.flag, len(remark)
        )
    except struct.error as error:
        raise HeaderError(f"{command} does not fit the ROCKETMQ serialization: {error}") from None
    return b"".join((head, remark, _FIELDS_LENGTH.pack(len(fields)), fields))


def _encode_fields(ext_fields: Mapping[str, str]) -> bytes:
    parts: list[bytes] = []
    for name, value in ext_fields.items():
        text = value.encode("utf-8", "replace")
        parts += (_encode_name(name), _VALUE_LENGTH.pack(len(text)), text)
    return b"".join(parts)


@lru_cache(maxsize=256)
def _encode_name(name: str) -> bytes:
    key = name.encode("utf-8", "replace")
    if len(key) > MAX_CODE:
        raise HeaderError(f"the name of a field has {len(key)} bytes: {name[:80]!r}")
    return _NAME_LENGTH.pack(len(key)) + key


def decode_header(header: bytes) -> RemotingCommand:
    """Returns the command of a header, with an empty body. Raises FrameError if it is no header."""
    try:
        code, language, version, opaque, flag, remark_length = _HEAD.unpack_from(header)
        remark_end = _HEAD.size + remark_length
        if remark_length < 0 or remark_end > len(header):
            raise FrameError(f"a remark of {remark_length} bytes in a header of {len(header)}")
        (fields_length,) = _FIELDS_LENGTH.unpack_from(header, remark_end)
        at = remark_end + _FIELDS_LENGTH.size
        end = at + fields_length
        if fields_length < 0 or end > len(header):
            raise FrameError(f"fields of {fields_length} bytes in a header of {len(header)}")
        remark = None
        if remark_length:
            remark = str(header[_HEAD.size : remark_end], "utf-8", "replace")
        ext_fields = _layouts.fields(header, code, at, end) if fields_length else None
    except struct.error as error:
        raise FrameError(f"a binary header of {len(header)} bytes is cut short: {error}") from None
    return RemotingCommand(
        code, ext_fields, b"", flag, opaque, remark, _NAMES.get(language), version, _ROCKETMQ
    )


class _Layout:
    """Where the values lie in the fields of a header, and the bytes between them."""

    __slots__ = ("_between", "_between_of", "_names", "_places", "_values_of")

    def __init__(
        self, header: bytes, names: list[str], places: list[slice], at: int, end: int
    ) -> None:
        starts = [at, *(place.stop for place in places)]
        stops = [*(place.start for place in places), end]
        self._between_of: Callable[[bytes], tuple[bytes, ...]] = itemgetter(
            *map(slice, starts, stops)
        )
        self._between = self._between_of(header)
        self._names = names
        self._places = places
        # An itemgetter of one place returns no tuple, so one more is added, which zip ignores.
        self._values_of: Callable[[str], tuple[str, ...]] = itemgetter(*places, slice(0))

    def fields(self, header: bytes) -> dict[str, str] | None:
        """Returns the fields of a header that has this layout, or None if it has another."""
        if self._between_of(header) != self._between:
            return None
        values: Sequence[str] = self._values_of(str(header, "latin-1"))
        if not "".join(values).isascii():
            values = _in_utf8(header, self._places)
        return dict(zip(self._names, values, strict=False))


class _Layouts:
    """Decodes the fields of headers, and learns where they lie."""

    def __init__(self) -> None:
        self._known = FifoCache[tuple[int, int], _Layout](_MAX_LAYOUTS)
        """The layouts by the code of the command and the offset where the fields end."""
        self._misses = 0

    def fields(self, header: bytes, code: int, at: int, end: int) -> dict[str, str]:
        """Returns the fields between two offsets in a header.

        Raises FrameError, or struct.error if the header ends within a length.
        """
        if at != _FIELDS_AT:  # layouts are of headers without a remark
            return _fields(header, *_walk(header, at, end))
        layout = self._known.get((code, end))
        if layout is not None:
            fields = layout.fields(header)
            if fields is not None:
                return fields
        names, places = _walk(header, at, end)
        self._misses += 1
        if self._misses >= _MISSES_TO_LEARN:
            self._misses = 0
            if 0 < len(places) <= _MAX_LAYOUT_FIELDS and end <= _MAX_LAYOUT_BYTES:
                self._known.keep((code, end), _Layout(header, names, places, at, end))
        return _fields(header, names, places)


def _walk(header: bytes, at: int, end: int) -> tuple[list[str], list[slice]]:
    """Returns the names of the fields and where their values lie; skips fields that lack either."""
    names: list[str] = []
    places: list[slice] = []
    name_length, value_length = _NAME_LENGTH.unpack_from, _VALUE_LENGTH.unpack_from
    while at < end:
        name_at = at + 2
        value_length_at = name_at + name_length(header, at)[0]
        if not name_at <= value_length_at <= end - 4:
            raise FrameError(f"the name of a field at byte {at} of the header does not fit")
        value_at = value_length_at + 4
        at = value_at + value_length(header, value_length_at)[0]
        if not value_at <= at <= end:
            raise FrameError(f"the value of a field at byte {value_at} of the header does not fit")
        if at > value_at and value_length_at > name_at:
            names.append(str(header[name_at:value_length_at], "utf-8", "replace"))
            places.append(slice(value_at, at))
    return names, places


def _fields(header: bytes, names: list[str], places: list[slice]) -> dict[str, str]:
    text = str(header, "latin-1")
    values = [text[place] for place in places]
    if not "".join(values).isascii():
        values = _in_utf8(header, places)
    return dict(zip(names, values, strict=True))


def _in_utf8(header: bytes, places: list[slice]) -> list[str]:
    return [str(header[place], "utf-8", "replace") for place in places]


_layouts: Final = _Layouts()
