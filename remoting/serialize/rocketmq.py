# SPDX-License-Identifier: Apache-2.0
"""The ROCKETMQ binary command header.

    int16 code | int8 language | int16 version | int32 opaque | int32 flag
    int32 length, remark | int32 length, then for each field:
        int16 length, name | int32 length, value

A code has two bytes, so those of pop (200050 and on) cannot be written; the original cuts them off
in silence. Empty texts and absent ones are the same. Counterpart of RocketMQSerializable.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Final

from txrocketmq.remoting.codes import LanguageCode, SerializeType
from txrocketmq.remoting.command import RemotingCommand
from txrocketmq.remoting.errors import FrameError, HeaderError

MAX_CODE: Final = 0x7FFF
"""Largest code that fits."""

_HEAD: Final = struct.Struct(">hbhiii")
_SHORT: Final = struct.Struct(">h")
_INT: Final = struct.Struct(">i")
_NAMES: Final = {language.value: language.name for language in LanguageCode}
_NUMBERS: Final = {language.name: language.value for language in LanguageCode}


def encode_header(command: RemotingCommand) -> bytes:
    """A command's header. Raises HeaderError for what does not fit, as a code above 32767."""
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
    return b"".join((head, remark, _INT.pack(len(fields)), fields))


def _encode_fields(ext_fields: Mapping[str, str]) -> bytes:
    parts: list[bytes] = []
    for name, value in ext_fields.items():
        key = name.encode("utf-8", "replace")
        text = value.encode("utf-8", "replace")
        if len(key) > MAX_CODE:
            raise HeaderError(f"the name of a field has {len(key)} bytes: {name[:80]!r}")
        parts += (_SHORT.pack(len(key)), key, _INT.pack(len(text)), text)
    return b"".join(parts)


def decode_header(header: bytes) -> RemotingCommand:
    """The command of a header, its body empty. Raises FrameError for whatever is no header."""
    try:
        code, language, version, opaque, flag, remark_length = _HEAD.unpack_from(header)
        remark_end = _HEAD.size + remark_length
        if remark_length < 0 or remark_end > len(header):
            raise FrameError(f"a remark of {remark_length} bytes in a header of {len(header)}")
        (fields_length,) = _INT.unpack_from(header, remark_end)
        fields_at = remark_end + 4
        if fields_length < 0 or fields_at + fields_length > len(header):
            raise FrameError(f"fields of {fields_length} bytes in a header of {len(header)}")
        remark = str(header[_HEAD.size : remark_end], "utf-8", "replace") or None
        ext_fields = _decode_fields(header, fields_at, fields_at + fields_length)
    except struct.error as error:
        raise FrameError(f"a binary header of {len(header)} bytes is cut short: {error}") from None
    return RemotingCommand(
        code, ext_fields, b"", flag, opaque, remark, _NAMES.get(language), version,
        SerializeType.ROCKETMQ,
    )  # fmt: skip


def _decode_fields(header: bytes, at: int, end: int) -> dict[str, str] | None:
    if at == end:
        return None
    ext_fields: dict[str, str] = {}
    short, int32 = _SHORT.unpack_from, _INT.unpack_from
    while at < end:
        value_length_at = at + 2 + short(header, at)[0]
        if not at + 2 <= value_length_at <= end - 4:
            raise FrameError(f"the name of a field at byte {at} of the header does not fit")
        value_at = value_length_at + 4
        value_end = value_at + int32(header, value_length_at)[0]
        if not value_at <= value_end <= end:
            raise FrameError(f"the value of a field at byte {value_at} of the header does not fit")
        if value_end > value_at and value_length_at > at + 2:
            name = str(header[at + 2 : value_length_at], "utf-8", "replace")
            ext_fields[name] = str(header[value_at:value_end], "utf-8", "replace")
        at = value_end
    return ext_fields
