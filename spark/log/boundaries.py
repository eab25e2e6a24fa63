# SPDX-License-Identifier: Apache-2.0
"""Places in a log at which a record is known to begin, taken from the consume queues.

A body may hold whole records with the very offsets at which they lie, so no look at the log alone
tells with certainty where to go on after damage, or where in the middle of a file a record starts.
The queues tell: each of their units was written by the broker for a record.
"""

from __future__ import annotations

from itertools import islice
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from txrocketmq.remoting.message.record import RECORD_FIXED
from txrocketmq.spark.log.resync import LONGEST_RECORD_BYTES, beyond, resync
from txrocketmq.spark.store.queue_files import UNITS
from txrocketmq.spark.store.store import Segment, Store

_REGION_BYTES: Final = 64 << 20
"""The units of so many bytes of the log are looked up at once: at most 700,000 units."""
_NEAR_BYTES: Final = 32 << 20
"""A boundary this near before an offset is near enough: walking the rest takes no time."""
_SEARCH_BYTES: Final = 4 * LONGEST_RECORD_BYTES
_OVERLAP_BYTES: Final = 64
"""Windows overlap by more than the head of a record, so no head is cut in both of two windows."""
_MOST_QUEUES: Final = 256
_MOST_QUEUES_REMOTE: Final = 8


class Boundaries:
    """The boundaries that are in a store's queues at one time; caches the region asked for last."""

    def __init__(self, store: Store) -> None:
        self._store = store = store.at_once()
        self._from = self._to = 0
        self._units: NDArray[Any] = np.empty(0, UNITS)
        """The units of the cached region, sorted by physical offset."""

    def after(self, damaged: int) -> int | None:
        """Returns where to go on after the damaged record at an offset; None when no queue has one.

        That is the end of the damaged record if a queue has its unit, else the next start in a
        unit.
        """
        found = self._in_region(damaged)
        if found is None:
            places = [queue.next_physical(damaged) for queue in self._store.queues()]
            first = min((each for each in places if each is not None), default=None)
            if first is None:
                return None
            self._load(damaged, first + _REGION_BYTES)
            found = self._in_region(damaged)
        return found

    def _in_region(self, damaged: int) -> int | None:
        if not self._from <= damaged < self._to:
            return None
        at = int(np.searchsorted(self._units["physical_offset"], damaged))
        if at == len(self._units):
            return None
        place = int(self._units["physical_offset"][at])
        return place if place > damaged else place + int(self._units["size"][at])

    def _load(self, from_offset: int, to_offset: int) -> None:
        units = [queue.units_in_log(from_offset, to_offset) for queue in self._store.queues()]
        self._units = np.sort(np.concatenate(units), order="physical_offset")
        self._from, self._to = from_offset, to_offset

    def before(self, physical_offset: int) -> int | None:
        """Returns the start of a whole record before this offset, preferably near it, or None."""
        most = _MOST_QUEUES_REMOTE if self._store.files.is_remote else _MOST_QUEUES
        best = None
        for queue in islice(self._store.queues(), most):
            place = queue.last_physical(physical_offset)
            if place is None or (best is not None and place <= best):
                continue
            if self._store.message_at(place) is not None:
                best = place
                if physical_offset - best <= _NEAR_BYTES:
                    break
        return best


def next_record(store: Store, segment: Segment, damaged: int) -> int | None:
    """Returns the start of the next record in the file after the damaged one at an offset, or None.

    For a log without queues, and for records that are not in the queues yet: see `resync`.
    """
    data = np.empty(min(_SEARCH_BYTES, segment.end - damaged), np.uint8)
    at = damaged
    while at < segment.end:
        window = data[: segment.end - at]
        try:
            got = store.files.read_into(segment.path, at - segment.first_offset, window.data)
        except FileNotFoundError:
            return None
        window = window[:got]
        if got < RECORD_FIXED.sizeof() or not window.any():
            return None
        place = beyond(window, at, 0) if at == damaged else resync(window, at, 0)
        if place is not None and (place + LONGEST_RECORD_BYTES <= got or at + got >= segment.end):
            return at + place
        if place is not None and place > _OVERLAP_BYTES:
            at += place  # look at it again, with all that a record around it could hold
        else:
            at += max(got - _OVERLAP_BYTES, 1)
    return None
