# SPDX-License-Identifier: Apache-2.0
"""Frames that cost a server much and a client nothing: how many of each kind are taken.

Each kind has a bucket. A frame pours one into it, and every second some runs out; what overflows
ends the connection. The buckets are so large that no client of gRPC fills them. Some send a PING
for what they receive, to measure how fast the line is, or a WINDOW_UPDATE; so what is answered or
sent makes room for these. Netty has limits of this kind in Http2MaxRstFrameListener,
Http2EmptyDataFrameListener and Http2ControlFrameLimitEncoder.
"""

from __future__ import annotations

from typing import Final, NamedTuple

DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS = 0, 1, 2, 3, 4
PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = 5, 6, 7, 8, 9


class Bucket(NamedTuple):
    """How many frames are taken at once, and how many in a second for ever."""

    name: str
    most: int
    each_s: int


EMPTY: Final = 16
"""Counts DATA without data that does not end a stream either."""
UNKNOWN: Final = 17
"""Counts frames of kinds that HTTP/2 does not define."""
BUCKETS: Final = {
    EMPTY: Bucket("empty DATA", 200, 20),
    PRIORITY: Bucket("PRIORITY", 1_000, 100),
    RST_STREAM: Bucket("RST_STREAM", 1_000, 400),
    SETTINGS: Bucket("SETTINGS", 100, 10),
    PUSH_PROMISE: Bucket("PUSH_PROMISE", 0, 0),
    PING: Bucket("PING", 1_000, 100),
    GOAWAY: Bucket("GOAWAY", 10, 1),
    WINDOW_UPDATE: Bucket("WINDOW_UPDATE", 4_000, 2_000),
    CONTINUATION: Bucket("CONTINUATION", 200, 50),
    UNKNOWN: Bucket("unknown", 1_000, 100),
}
_MOST: Final = {kind: bucket.most for kind, bucket in BUCKETS.items()}
_PINGS, _WINDOW_UPDATES = 1, 3
"""For how many frames an answered call makes room."""


class Floods:
    """The buckets of one connection."""

    __slots__ = ("_levels",)

    def __init__(self) -> None:
        self._levels: dict[int, int] = {}

    def overflows(self, kind: int, frames: int = 1) -> bool:
        """Counts frames of a kind in BUCKETS; returns whether there are too many."""
        levels = self._levels
        level = levels[kind] = levels.get(kind, 0) + frames
        return level > _MOST[kind]

    def room(self, kind: int) -> int:
        """Returns how many frames of a kind are taken before there are too many."""
        return _MOST[kind] - self._levels.get(kind, 0)

    def made_room(self) -> None:
        """Makes room for what clients may send for an answer."""
        levels = self._levels
        if PING in levels:
            levels[PING] = max(levels[PING] - _PINGS, 0)
        if WINDOW_UPDATE in levels:
            levels[WINDOW_UPDATE] = max(levels[WINDOW_UPDATE] - _WINDOW_UPDATES, 0)

    def tick(self) -> None:
        """Lets run out what runs out in a second."""
        if self._levels:
            self._levels = {
                kind: level - BUCKETS[kind].each_s
                for kind, level in self._levels.items()
                if level > BUCKETS[kind].each_s
            }
