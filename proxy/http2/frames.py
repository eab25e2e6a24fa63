# SPDX-License-Identifier: Apache-2.0
"""The stream of one connection, cut into portions of whole frames for the engine that reads them.

Only the nine bytes at the head of each frame are looked at: its length, its kind and its flags. So
one turn decodes a few frames, whatever one read has brought, and floods are found before anything
is decoded. What is held here is what one read took, and at most one unfinished frame.
"""

from __future__ import annotations

import struct
from typing import Any, Final

from txrocketmq.proxy.http2.floods import (
    BUCKETS,
    CONTINUATION,
    DATA,
    EMPTY,
    GOAWAY,
    HEADERS,
    PING,
    SETTINGS,
    UNKNOWN,
    WINDOW_UPDATE,
    Floods,
)
from txrocketmq.remoting.errors import FrameError, RemotingError

PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
HEAD_BYTES: Final = 9
_HEAD: Final = struct.Struct(">HBBBL")
_STREAM: Final = 0x7FFF_FFFF
MAX_FRAME_BYTES: Final = 16_384
"""How many bytes a frame may have behind its head (SETTINGS_MAX_FRAME_SIZE, which is the least that
may be allowed)."""
PORTION_FRAMES: Final = 16
PORTION_BYTES: Final = 128 * 1024
"""How many frames and bytes are decoded together at most."""
_MORE_FRAMES: Final = 2
"""How many more there may be, so that a request in a few frames stays whole."""
_ACK_OR_END: Final = 0x1
_HTTP_METHODS: Final = (b"GET ", b"POST ", b"PUT ", b"HEAD ", b"OPTIONS ", b"DELETE ", b"CONNECT ")
_FRAME_OF_REMOTING: Final = b"\0\0"


Head = tuple[int, int, int, int, int]
"""The kind of a frame, its flags, its stream, and where what is behind its head begins and ends."""


class Frames:
    """What has arrived and was not decoded. Its names are those of frame.FrameDecoder, so that a
    peer can hold the one or the other.
    """

    def __init__(self, floods: Floods) -> None:
        self.is_behind = False
        """Whether there is a whole frame, or an event that was given back."""
        self.held_bytes = 0
        self.error: RemotingError | None = None
        """Set when the peer has broken the rules: the connection is to be closed."""
        self.heads: list[Head] = []
        """Those of the frames that were returned last, in places behind the preface."""
        self._floods = floods
        self._rest = b""
        self._at = 0
        self._is_begun = False  # whether the preface has come
        self._events: list[Any] = []
        self._unfinished = 0  # how many frames have been unfinished so far
        self._unfinished_noted = -1
        self._unfinished_since_ms = 0

    def given_back(self) -> list[Any]:
        """Returns the events that were given back, once."""
        events, self._events = self._events, []
        return events

    def portion(self, data: bytes) -> bytes:
        """Returns the next whole frames; `data` comes behind what is held."""
        if self.error is not None:
            self.is_behind = False
            return b""
        if data:
            data = self._rest[self._at :] + data if self._rest else data
            self._at = 0
        else:
            data = self._rest
        start = at = self._at
        if not self._is_begun and (at := self._preface_end(data)) == 0:
            self._keep(data, 0, is_behind=False)
            return b""
        at = self._last_end(data, at)
        if self.error is not None:
            self.fail(self.error)
        else:
            self._keep(data, at, is_behind=self._has_frame(data, at))
        return data[start:at]

    def fail(self, error: RemotingError) -> None:
        """Takes no more frames, because the peer has broken the rules; forgets what is held."""
        self.error = error
        self._keep(b"", 0, is_behind=False)

    def keep(self, data: bytes) -> None:
        """Keeps bytes that are not to be looked at yet."""
        if self.error is None and data:
            self._keep(self._rest[self._at :] + data, 0, is_behind=True)

    def leave(self, events: list[Any]) -> None:
        """Takes events back that were not served; `given_back` returns them."""
        if events:
            self._events = events
            self.is_behind = True

    def forget_commands(self) -> None:
        """Forgets events that were given back."""
        self._events = []

    def drop(self) -> None:
        """Forgets all that is held."""
        self._rest, self._at, self.held_bytes, self.is_behind = b"", 0, 0, False
        self._events = []

    def unfinished_ms(self, steady_ms: int) -> int:
        """Returns for how long one frame has been unfinished, to within the time between calls."""
        if not self.held_bytes or self.is_behind:
            return 0
        if self._unfinished_noted != self._unfinished:
            self._unfinished_noted, self._unfinished_since_ms = self._unfinished, steady_ms
        return steady_ms - self._unfinished_since_ms

    def _keep(self, data: bytes, at: int, *, is_behind: bool) -> None:
        """Keeps what is behind a place. What was looked at is cut off once it is the larger part,
        so that no byte is copied more than once on average.
        """
        if 2 * at >= len(data):
            data, at = data[at:], 0
        self._rest, self._at, self.held_bytes = data, at, len(data) - at
        self.is_behind = is_behind or bool(self._events)

    def _preface_end(self, data: bytes) -> int:
        """Returns where the preface ends, or 0 as long as it has not come."""
        first = data[: len(PREFACE)]
        if first == PREFACE:
            self._is_begun = True
            return len(PREFACE)
        if not PREFACE.startswith(first):
            self.error = FrameError(_stranger(data))
        return 0

    def _last_end(self, data: bytes, at: int) -> int:
        """Returns the end of the last frame of a portion that begins at a place."""
        start, size = at, len(data)
        stop = min(at + PORTION_BYTES, size - HEAD_BYTES)
        heads: list[Head] = []
        self.heads = heads
        append, unpack = heads.append, _HEAD.unpack_from
        left, widenings, most_widenings = PORTION_FRAMES, 0, self._floods.room(WINDOW_UPDATE)
        while at <= stop:
            high, low, kind, flags, number = unpack(data, at)
            length = high << 8 | low
            if length > MAX_FRAME_BYTES:
                self.error = FrameError(f"it sends a frame of {length} bytes of HTTP/2")
                break
            begin = at + HEAD_BYTES
            end = begin + length
            if end > size:
                break
            if kind == WINDOW_UPDATE:
                widenings += 1
                if widenings > most_widenings:
                    self._flooded(kind)
                    break
            elif (kind > HEADERS or not length) and self._floods_with(kind, flags):
                break
            append((kind, flags, number & _STREAM, begin - start, end - start))
            at = end
            left -= 1
            if left <= 0:
                goes_on = kind == HEADERS or (kind == WINDOW_UPDATE and number)
                if left <= -_MORE_FRAMES or not goes_on:
                    break
            # Behind a GOAWAY, h2 takes what comes for an error, until it is told otherwise.
            if kind == GOAWAY:
                break
        if widenings:
            self._floods.overflows(WINDOW_UPDATE, widenings)
        self._unfinished += 1
        return at

    def _floods_with(self, kind: int, flags: int) -> bool:
        """Counts a frame that is neither WINDOW_UPDATE, HEADERS nor DATA with something in it."""
        if kind == HEADERS or (flags & _ACK_OR_END and kind in (DATA, PING, SETTINGS)):
            return False
        if kind == DATA:
            kind = EMPTY
        elif kind > CONTINUATION:
            kind = UNKNOWN
        if not self._floods.overflows(kind):
            return False
        self._flooded(kind)
        return True

    def _flooded(self, kind: int) -> None:
        bucket = BUCKETS[kind]
        self.error = FrameError(
            f"it sends more {bucket.name} frames of HTTP/2 than {bucket.most} and"
            f" {bucket.each_s} a second"
        )

    def _has_frame(self, data: bytes, at: int) -> bool:
        if len(data) - at < HEAD_BYTES:
            return False
        return len(data) - at >= HEAD_BYTES + int.from_bytes(data[at : at + 3], "big")


def heads_of(data: bytes, most_bytes: int) -> tuple[list[Head], int]:
    """Returns the heads of the whole frames at the beginning, and where the last of them ends.

    One of more than `most_bytes` is left out, with what is behind it.
    """
    heads: list[Head] = []
    at = 0
    while at + HEAD_BYTES <= len(data):
        high, low, kind, flags, number = _HEAD.unpack_from(data, at)
        begin = at + HEAD_BYTES
        end = begin + (high << 8 | low)
        if end > len(data) or end - begin > most_bytes:
            break
        heads.append((kind, flags, number & _STREAM, begin, end))
        at = end
    return heads, at


def _stranger(data: bytes) -> str:
    """Says in words what begins with these bytes, and what to do."""
    if data.startswith(_HTTP_METHODS):
        return "it speaks HTTP/1 to the port for gRPC, which is for clients of RocketMQ 5.x"
    if data.startswith(_FRAME_OF_REMOTING):
        return (
            "it speaks the remoting protocol to the port for gRPC; clients of that protocol want"
            " the name server, whose port is 9876 by default"
        )
    return "its first bytes are not those of HTTP/2"
