# SPDX-License-Identifier: Apache-2.0
"""How much of a long message is not bodies, before protobuf makes objects of it.

protobuf makes an object of every two bytes of a message of nothing but empty fields, so 130 MiB,
which a request to send may have, would become gigabytes. What makes requests long is the bodies of
their messages, in fields that are known by their numbers. So the other fields are counted, without
being decoded, and there may be as many as the original allows room for: 2 MiB.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

MOST_OTHER_BYTES: Final = 2 * 1024 * 1024
MOST_FIELDS: Final = 20_000
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


class Weight:
    """Counts what is in a message besides the fields at a `path` of numbers, such as (1, 4)."""

    def __init__(self, path: Sequence[int]) -> None:
        self._path = path
        self.fields = 0
        self.other_bytes = 0

    def is_too_much(self, data: bytes) -> bool:
        """Returns whether there is too much else in a message, or it is no message."""
        try:
            return not self._walk(data, 0, len(data), 0)
        except IndexError:
            return True

    def _walk(self, data: bytes, at: int, end: int, depth: int) -> bool:
        while at < end:
            tag, at = _varint(data, at)
            number, kind = tag >> 3, tag & 7
            self.fields += 1
            begin = at
            if kind == _BYTES:
                length, at = _varint(data, at)
                begin, at = at, at + length
                if at > end:
                    return False
                if number == self._path[depth]:
                    is_last = depth + 1 == len(self._path)
                    if not is_last and not self._walk(data, begin, at, depth + 1):
                        return False
                    begin = at
            elif kind == _VARINT:
                _, at = _varint(data, at)
            elif kind in (_FIXED64, _FIXED32):
                at += 8 if kind == _FIXED64 else 4
            else:
                return False
            self.other_bytes += at - begin
            if self.fields > MOST_FIELDS or self.other_bytes > MOST_OTHER_BYTES:
                return False
        return at == end


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Returns a number and where it ends. Raises IndexError if it does not."""
    value = shift = 0
    while shift < 64:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    raise IndexError
