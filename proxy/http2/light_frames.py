# SPDX-License-Identifier: Apache-2.0
"""Frames of the usual kinds, with what h2 looks at of them, and nothing else.

hyperframe makes an object of a frame with its flags and its head, which is described for a log.
"""

from __future__ import annotations

from typing import Any, Final

from txrocketmq.proxy.http2.floods import DATA, HEADERS, WINDOW_UPDATE
from txrocketmq.proxy.http2.frames import Head

END_STREAM, END_HEADERS, PRIORITY = 0x1, 0x4, 0x20
STREAM: Final = 0x7FFF_FFFF
"""The bits of the number of a stream, or of what a window is widened by."""
PRIORITY_BYTES: Final = 5
"""What stands before the headers with the flag PRIORITY, which gRPC makes no use of."""
ENDS: Final = frozenset({"END_STREAM"})
GOES_ON: Final[frozenset[str]] = frozenset()


class LightHeaders:
    """What h2 looks at of a frame of headers."""

    __slots__ = ("data", "flags", "stream_id")

    def __init__(self, stream_id: int, data: Any, flags: frozenset[str]) -> None:
        self.stream_id = stream_id
        self.data = data
        self.flags = flags


class LightData(LightHeaders):
    """What h2 looks at of a frame of data without padding."""

    __slots__ = ("flow_controlled_length",)

    def __init__(self, stream_id: int, data: bytes, flags: frozenset[str]) -> None:
        super().__init__(stream_id, data, flags)
        self.flow_controlled_length = len(data)


class LightWindowUpdate:
    """What h2 looks at of a frame that makes room."""

    __slots__ = ("stream_id", "window_increment")

    def __init__(self, stream_id: int, window_increment: int) -> None:
        self.stream_id = stream_id
        self.window_increment = window_increment


def usual(data: bytes, head: Head) -> Any:
    """Returns a frame of the usual kinds, with no other flags than usual, or None for any other."""
    kind, flags, number, begin, end = head
    if kind == WINDOW_UPDATE:
        added = widening(data, begin, end)
        return LightWindowUpdate(number, added) if added > 0 else None
    if not number:
        return None
    if kind == DATA and not flags & ~END_STREAM:
        return LightData(number, data[begin:end], ENDS if flags else GOES_ON)
    if kind == HEADERS and flags & ~(END_STREAM | PRIORITY) == END_HEADERS:
        if flags & PRIORITY:
            if not is_of_others(data, head):
                return None
            begin += PRIORITY_BYTES
        return LightHeaders(number, data[begin:end], ENDS if flags & END_STREAM else GOES_ON)
    return None


def widening(data: bytes, begin: int, end: int) -> int:
    """Returns by how much a WINDOW_UPDATE widens a window, or -1 if it is none."""
    return int.from_bytes(data[begin:end], "big") & STREAM if end - begin == 4 else -1


def is_of_others(data: bytes, head: Head) -> bool:
    """Returns whether HEADERS with a priority name another stream than their own, as they must."""
    _, _, number, begin, end = head
    depends_on = int.from_bytes(data[begin : begin + 4], "big") & STREAM
    return end - begin >= PRIORITY_BYTES and depends_on != number
