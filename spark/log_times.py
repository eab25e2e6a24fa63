# SPDX-License-Identifier: Apache-2.0
"""Where in a commit log a time is: by bisection, without consume queues.

Records are appended in the order of their store timestamps, but for steps of the broker's clock:
so the place found is that of SLACK_MS before, and who reads from there looks at each record.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from txrocketmq.spark.records import Records
from txrocketmq.spark.store import Segment, Store
from txrocketmq.spark.walk import resync, walk

SLACK_MS: Final = 60_000
_FIRST_WINDOW_BYTES: Final = 64 << 10
_MAX_WINDOW_BYTES: Final = 64 << 20
"""A record is at most 4 MiB unless the broker is told otherwise."""
_NEAR_ENOUGH_BYTES: Final = 1 << 20


class Moment(NamedTuple):
    """A record: where it lies, and when it was stored, ms."""

    physical_offset: int
    store_timestamp: int


def offset_before(store: Store, timestamp_ms: int, start: int, end: int) -> int:
    """An offset in [start, end]: all records before it were stored earlier than the time.

    `start` or the beginning of a record.
    """
    segments = store.segments()
    low, high = start, end
    while high - low > _NEAR_ENOUGH_BYTES:
        middle = (low + high) // 2
        found = first_record(store, segments, middle, high)
        if found is None or found.store_timestamp >= timestamp_ms - SLACK_MS:
            high = middle
        else:
            low = found.physical_offset
    return low


def offset_after(store: Store, timestamp_ms: int, start: int, end: int) -> int:
    """An offset in [start, end]: all records from there on were stored at the time or later."""
    segments = store.segments()
    low, high = start, end
    while high - low > _NEAR_ENOUGH_BYTES:
        middle = (low + high) // 2
        found = first_record(store, segments, middle, high)
        if found is None or found.store_timestamp >= timestamp_ms + SLACK_MS:
            high = middle
        else:
            low = found.physical_offset
    return high


def first_record(store: Store, segments: Sequence[Segment], start: int, end: int) -> Moment | None:
    """The first record that begins in [start, end), wherever one begins; None when none does."""
    for segment in segments:
        until = min(end, segment.first_offset + segment.size)
        at = max(start, segment.first_offset)
        if at < until:
            found = _in_segment(store, segment, at, until)
            if found is not None:
                return found
    return None


def _in_segment(store: Store, segment: Segment, start: int, end: int) -> Moment | None:
    window = _FIRST_WINDOW_BYTES
    while True:
        buffer = np.empty(min(window, segment.first_offset + segment.size - start), np.uint8)
        try:
            got = store.files.read_into(segment.path, start - segment.first_offset, buffer.data)
        except FileNotFoundError:
            return None
        at = resync(buffer[:got], start, 0)
        if at is not None:
            record = Records(buffer[:got], np.array([at], np.int64), start)
            place = start + at
            return Moment(place, int(record.store_timestamp[0])) if place < end else None
        if got < window or start + got >= end or window >= _MAX_WINDOW_BYTES:
            return None
        window *= 8


def mean_record_bytes(store: Store, start: int, end: int) -> int:
    """About how large the records from an offset on are, by the first of them; at least 1."""
    segments = store.segments()
    first = first_record(store, segments, start, end)
    if first is None:
        return 1
    data = np.frombuffer(store.read(first.physical_offset, _NEAR_ENOUGH_BYTES), np.uint8)
    found = walk(data, first.physical_offset)
    return max(1, found.stop // max(1, len(found.starts)))
