# SPDX-License-Identifier: Apache-2.0
"""Where to cut a log: at the beginnings of records, found by an exact walk.

A micro-batch with a limit in bytes ends between two records, so that the next one begins at a known
beginning of a record. The walk starts at the known boundary nearest to the cut: the start of a file
or a record that has a unit in a consume queue.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from txrocketmq.spark.arrow.records import Records
from txrocketmq.spark.log.boundaries import Boundaries
from txrocketmq.spark.log.log_reader import LogFinding, LostBytes, read_log
from txrocketmq.spark.store.store import Store

_WALKED_BYTES: Final = 64 << 20
"""Bytes that are walked without asking the queues for a nearer boundary: it takes some 20 ms."""
_WINDOW_BYTES: Final = 8 << 20
_FIRST_WINDOW_BYTES: Final = 1 << 20


def cut_within(store: Store, start: int, end: int, most_bytes: int) -> int:
    """Returns the end of a record at most `most_bytes` after `start`, or of the first record.

    `start` and `end` are boundaries; nothing after `end` is returned.
    """
    limit = start + most_bytes
    if limit >= end:
        return end
    at = cut = _boundary_before(store, start, limit)
    for found in read_log(store, at, limit, window_bytes=_WINDOW_BYTES, first_is_boundary=True):
        fitting = [each for each in _ends(found) if each <= limit]
        if fitting:
            cut = fitting[-1]
    return cut if cut > start else _end_of_first(store, start, end)


def first_boundary(store: Store, at: int, end: int) -> int:
    """Returns where the first record, damage or loss at this offset or later begins, or `end`."""
    for found in read_log(
        store, at, end, window_bytes=_FIRST_WINDOW_BYTES, first_is_boundary=False
    ):
        if isinstance(found, LostBytes):
            return at
        if not isinstance(found, Records):
            return max(at, found.physical_offset)
        if len(found):
            return int(found.physical_offset[0])
    return end


def first_stored_since(store: Store, timestamp_ms: int, start: int, end: int) -> int | None:
    """Returns where the first record after `start` begins that was stored at this time or later."""
    for found in read_log(store, start, end, window_bytes=_WINDOW_BYTES, first_is_boundary=False):
        if isinstance(found, Records):
            young = np.flatnonzero(found.store_timestamp >= timestamp_ms)
            if len(young):
                return int(found.physical_offset[young[0]])
    return None


def _boundary_before(store: Store, start: int, limit: int) -> int:
    at = start
    if limit - start > _WALKED_BYTES:
        firsts = (segment.first_offset for segment in store.segments())
        at = max((first for first in firsts if start < first <= limit), default=start)
    if limit - at > _WALKED_BYTES:
        at = max(at, Boundaries(store).before(limit) or at)
    return at


def _end_of_first(store: Store, start: int, end: int) -> int:
    for found in read_log(
        store, start, end, window_bytes=_FIRST_WINDOW_BYTES, first_is_boundary=True
    ):
        ends = _ends(found)
        if len(ends):
            return min(int(ends[0]), end)
    return end


def _ends(found: LogFinding) -> list[int]:
    """Returns where the records end, or the damage or loss in their place."""
    if isinstance(found, Records):
        ends: list[int] = (found.physical_offset + found.total_size).tolist()
        return ends
    return [found.end if isinstance(found, LostBytes) else found.physical_offset + found.length]
