# SPDX-License-Identifier: Apache-2.0
"""Finds a time in a commit log: by bisection over its files, and within a file by its queues.

Records are appended in the order of their store timestamps unless the broker's clock is set back.
So the place that is found allows for SLACK_MS, and readers check each record from there on. Only
places where a record is known to begin are looked at, since a body may hold what looks like one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np

from txrocketmq.spark.arrow.records import Records
from txrocketmq.spark.arrow.walk import walk
from txrocketmq.spark.log.boundaries import Boundaries
from txrocketmq.spark.log.resync import resync
from txrocketmq.spark.store.store import Segment, Store

SLACK_MS: Final = 60_000
_NEAR_ENOUGH_BYTES: Final = 64 << 20
_SAMPLE_BYTES: Final = 1 << 20
_LAST_WINDOWS_BYTES: Final = (64 << 10, 1 << 20, 16 << 20, 128 << 20)


def offset_before(
    store: Store, timestamp_ms: int, start: int, end: int, step_ms: int = SLACK_MS
) -> int:
    """Returns an offset in [start, end]: all records that begin before it are older than the time.

    This holds as long as the broker's clock was never set back by more than `step_ms`.
    """
    low, _ = _bisected(store, start, end, lambda stored: stored < timestamp_ms - step_ms)
    return low


def offset_after(
    store: Store, timestamp_ms: int, start: int, end: int, step_ms: int = SLACK_MS
) -> int:
    """As offset_before, but all records from the offset on were stored at the time or later."""
    _, high = _bisected(store, start, end, lambda stored: stored < timestamp_ms + step_ms)
    return high


def _bisected(
    store: Store, start: int, end: int, is_early: Callable[[int], bool]
) -> tuple[int, int]:
    """Returns the last place known to be early and the first known not to be, or start and end."""
    low, high = start, end
    firsts = [each.first_offset for each in store.segments() if low < each.first_offset < high]
    while firsts:
        middle = len(firsts) // 2
        stored = store.stored_at(firsts[middle])
        if stored is None:
            del firsts[middle]  # this place does not tell
        elif is_early(stored):
            low = firsts[middle]
            del firsts[: middle + 1]
        else:
            high = firsts[middle]
            del firsts[middle:]
    return _refined(store, low, high, is_early)


def _refined(store: Store, low: int, high: int, is_early: Callable[[int], bool]) -> tuple[int, int]:
    if store.queue_kind != "files" or store.files.is_remote:
        return low, high  # asking all queues over a network costs more than a file of the log
    boundaries = Boundaries(store)
    while high - low > _NEAR_ENOUGH_BYTES:
        place = boundaries.before((low + high) // 2)
        if place is None or place <= low:
            break
        stored = store.stored_at(place)
        if stored is None:
            break
        if is_early(stored):
            low = place
        else:
            high = place
    return low, high


def mean_record_bytes(store: Store, start: int) -> int:
    """Returns about how large records are, at least 1, by the first ones in this offset's file."""
    segment = store.segment_of(start)
    if segment is None:
        return 1
    data = np.frombuffer(store.read(segment.first_offset, _SAMPLE_BYTES), np.uint8)
    found = walk(data, segment.first_offset)
    return max(1, found.stop // max(1, len(found.starts)))


class LastRecord(NamedTuple):
    """The last record of a file."""

    end: int
    """The physical offset after it."""
    store_timestamp: int
    """When it was stored, in ms."""


def last_record(store: Store, segment: Segment, end: int) -> LastRecord | None:
    """Returns the last record of the file that ends at `end` or before; None when it has none.

    This is a best effort for displays: it searches back from the end of the file.
    """
    for window in _LAST_WINDOWS_BYTES:
        start = max(segment.first_offset, end - window)
        data = np.frombuffer(store.read(start, end - start), np.uint8)
        first = 0 if start == segment.first_offset else resync(data, start, 0)
        if first is not None:
            found = walk(data, start, first)
            if len(found.starts):
                last = Records(data, found.starts[-1:], start)
                return LastRecord(start + found.stop, int(last.store_timestamp[0]))
        if start == segment.first_offset:
            break
    return None
