# SPDX-License-Identifier: Apache-2.0
"""Records that a query's conditions leave, found by consume queues that are proven to know all.

A consume queue tells what is in it, and nothing tells what is missing from it: a topic that was
deleted, and perhaps made again, has records in the log that no queue names, and so has a queue of
which a file is gone or damaged. But every byte of a log belongs to a record or to the blank at the
end of a file. So where the units of all queues, put in the order of the log, lie end to end, no
record is unknown, and what is wanted may be picked by the queues. Everywhere else the log is read:
from the record before such a place to the one after it, so that what lies at both sides is known
from the log, too. Where that, or a picked record, is not what the queues say, they are not believed
any more, and the rest is read as if there were none.

Units of light message queues name records of other topics, and count for nothing here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from txrocketmq.remoting.message import record
from txrocketmq.remoting.message.topics import LMQ_PREFIX
from txrocketmq.remoting.packing import fixed
from txrocketmq.spark.decode import BadRecord
from txrocketmq.spark.log_reader import Found, read_log, read_picks
from txrocketmq.spark.pace import Pace
from txrocketmq.spark.picks import tagged
from txrocketmq.spark.queue_files import UNITS, Queue
from txrocketmq.spark.records import Records
from txrocketmq.spark.selection import RecordFilter
from txrocketmq.spark.split import CoveredPicks
from txrocketmq.spark.store import Segment, Store

_REGION_BYTES: Final = 64 << 20
"""Of the log: so much is looked up at once, at most 700,000 units."""
_NEAR_BYTES: Final = 1 << 20
"""Places to be read of the log that are so near to each other are read at once."""
_BLANK: Final = fixed(record.BLANK)


class _Gap(NamedTuple):
    """A place in the log of which no queue knows, or two queues differently."""

    start: int
    end: int
    before: int
    """Where the record before it starts, as the queues say."""
    after: int
    """Where the record after it ends."""


class _Piece(NamedTuple):
    """The records that start in [start, end): these units are read, or else the log."""

    start: int
    end: int
    units: NDArray[Any] | None = None
    is_boundary: bool = True
    """A record is known to begin at `start`, or said to."""


def read_covered(
    split: CoveredPicks, wanted: RecordFilter, *, window_bytes: int, pace: Pace | None = None
) -> Iterator[Found]:
    """The wanted records of the split in order, and what stands in their places, as read_log."""
    done = split.start
    for piece in _pieces(split, wanted):
        for found in _read(split.store, piece, wanted, window_bytes, pace):
            if not isinstance(found, Records):
                yield from _distrusting(split, wanted, done, window_bytes, pace)
                return
            if len(found):
                yield found
                done = int(found.physical_offset[-1]) + 1
        done = max(done, piece.end)


def _read(
    store: Store, piece: _Piece, wanted: RecordFilter, window_bytes: int, pace: Pace | None
) -> Iterator[Found]:
    if piece.units is None:
        yield from read_log(
            store,
            piece.start,
            piece.end,
            window_bytes=window_bytes,
            first_is_boundary=piece.is_boundary,
            keep=wanted.apply,
            pace=pace,
        )
        return
    for found in read_picks(store, piece.units, window_bytes=window_bytes, pace=pace):
        yield wanted.apply(found) if isinstance(found, Records) else found


def _distrusting(
    split: CoveredPicks, wanted: RecordFilter, done: int, window_bytes: int, pace: Pace | None
) -> Iterator[Found]:
    """What lies from `done` on, by the log alone: read from the front, as without conditions."""
    log = read_log(
        split.store,
        split.start,
        split.end,
        window_bytes=window_bytes,
        first_is_boundary=split.first_is_boundary,
        keep=lambda records: wanted.apply(records.where(records.physical_offset >= done)),
        pace=pace,
    )
    for found in log:
        if not isinstance(found, BadRecord) or found.physical_offset + found.length > done:
            yield found


def _pieces(split: CoveredPicks, wanted: RecordFilter) -> Iterator[_Piece]:
    """The split in pieces, in the order of the log."""
    store = split.store
    queues = [each for each in store.queues() if not each.topic.startswith(LMQ_PREFIX)]
    segments = store.segments()
    at = until = split.start
    is_boundary = split.first_is_boundary
    while at < split.end:
        until = min(until + _REGION_BYTES, split.end)
        units, is_wanted = _units(queues, at, until, wanted)
        starts = units["physical_offset"]
        # What follows the last one is looked up with what comes next.
        last = split.end if until == split.end else int(starts[-1]) if len(starts) else at
        if last == at:
            continue
        inside = starts < last
        gaps = _gaps(at, np.append(starts[inside], last), units["size"][inside])
        unproven = [each for each in gaps if not _is_blank(store, segments, each)]
        if not is_boundary:
            first = int(starts[0] + units["size"][0]) if len(starts) else last
            unproven.insert(0, _Gap(at, at, at, min(first, last)))
        yield from _in_order(at, last, unproven, units[inside & is_wanted], is_boundary=is_boundary)
        at, is_boundary = last, True


def _in_order(
    at: int, end: int, gaps: Sequence[_Gap], units: NDArray[Any], *, is_boundary: bool
) -> Iterator[_Piece]:
    """The log where there are gaps, and between them what units pick."""
    joined: list[tuple[int, int]] = []
    for gap in gaps:
        low, high = gap.before, gap.after
        if joined and low - joined[-1][1] <= _NEAR_BYTES:
            low, before = joined.pop()
            high = max(high, before)
        joined.append((low, high))
    places = units["physical_offset"]
    for low, high in joined:
        yield _Piece(at, low, units[(places >= at) & (places < low)])
        yield _Piece(low, high, is_boundary=is_boundary or low > at)
        at = high
    yield _Piece(at, end, units[places >= at])


def _units(
    queues: Sequence[Queue], start: int, end: int, wanted: RecordFilter
) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """All units of records that start in [start, end) in the order of the log; which are wanted."""
    found, masks = [np.empty(0, UNITS)], [np.empty(0, np.bool_)]
    for queue in queues:
        units = queue.units_in_log(start, end)
        mask = np.zeros(len(units), np.bool_)
        if wanted.wants_queue(queue.topic, queue.queue_id):
            bounds = wanted.offsets(queue.topic, queue.queue_id)
            mask = tagged(queue, units, wanted)
            if bounds.low > 0:
                mask &= units["queue_offset"] + units["count"] > bounds.low
            if bounds.high < 1 << 63:
                mask &= units["queue_offset"] < bounds.high
        found.append(units)
        masks.append(mask)
    units, mask = np.concatenate(found), np.concatenate(masks)
    inside = (units["physical_offset"] >= start) & (units["physical_offset"] < end)
    units, mask = units[inside], mask[inside]
    order = np.argsort(units["physical_offset"], kind="stable")
    return units[order], mask[order]


def _gaps(at: int, starts: NDArray[Any], sizes: NDArray[Any]) -> list[_Gap]:
    """Where records from `at` on do not lie end to end.

    They start at `starts`, the last of which is the end of it all, and so long they are said to be.
    """
    before = np.append(at, starts[:-1])
    ends = np.maximum.accumulate(before + np.append(0, sizes.astype(np.int64)))
    last = int(starts[-1])
    afters = np.minimum(np.append(ends[1:], last), last)
    return [
        _Gap(int(ends[index]), int(starts[index]), int(before[index]), int(afters[index]))
        for index in np.flatnonzero(starts != ends).tolist()
    ]


def _is_blank(store: Store, segments: Sequence[Segment], gap: _Gap) -> bool:
    """Whether the gap is the blank at the end of a file."""
    start, end = gap.start, gap.end
    if not any(each.first_offset < start < end == each.end for each in segments):
        return False
    try:
        data = store.read(start, _BLANK.size)
    except FileNotFoundError:
        return False
    if len(data) < _BLANK.size:
        return False
    fields = dict(zip(_BLANK.names, _BLANK.struct.unpack(data), strict=True))
    return bool(fields["magic"] == record.MAGIC_BLANK and fields["room"] == end - start)
