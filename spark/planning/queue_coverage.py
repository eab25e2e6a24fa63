# SPDX-License-Identifier: Apache-2.0
"""Finds the wanted records of a log with consume queues that are proven complete.

Conditions of the option `where`, and streams that select little of a log, are read in this way.

A consume queue tells what is in it, but nothing tells what is missing from it: no queue names the
records of a topic that was deleted, even if it was made again, or the records of a queue with a
lost or damaged file. But every byte of a log belongs to a record or to the blank at the end of a
file. So where the units of all queues, sorted by their place in the log, lie end to end, no record
is unknown, and queues may pick what is wanted. Everywhere else the log is read, from the record
before such a place to the one after it, so that the log confirms both sides. Where the log, or a
picked record, differs from what the queues say, the queues are not trusted any more, and the rest
of the range is read as if there were none.

Units of light message queues name records of other topics, and are ignored here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from txrocketmq.remoting.message import record
from txrocketmq.remoting.message.topics import LMQ_PREFIX
from txrocketmq.remoting.primitives.packing import fixed
from txrocketmq.spark.arrow.records import Records
from txrocketmq.spark.arrow.threads import asked
from txrocketmq.spark.columns.decode import BadRecord
from txrocketmq.spark.columns.selection import RecordFilter
from txrocketmq.spark.log.log_reader import LogFinding, read_log, read_picks
from txrocketmq.spark.options.pace import Pace
from txrocketmq.spark.planning.picks import tagged
from txrocketmq.spark.planning.split import CoveredPicks
from txrocketmq.spark.store.queue_files import UNITS, Queue
from txrocketmq.spark.store.store import Segment, Store

_REGION_BYTES: Final = 64 << 20
"""The units of so many bytes of the log are looked up at once: at most 700,000 units."""
_MOST_AHEAD: Final = 1 << 19
_FEWEST_UNITS: Final = 64
"""Units read ahead of each queue at least; all queues together read _MOST_AHEAD, some 15 MB."""
_NEAR_BYTES: Final = 1 << 20
"""Places that have to be read from the log are read at once when they are this near."""
_BLANK: Final = fixed(record.BLANK)
_PICK: Final = np.dtype([("physical_offset", "i8"), ("size", "i4")])


class _Gap(NamedTuple):
    """A place in the log that no queue has a unit for, or where units of queues overlap."""

    start: int
    end: int
    before: int
    """Where the record before the gap starts, according to the queues."""
    after: int
    """Where the record after the gap ends."""


class _Piece(NamedTuple):
    """The records that start in [start, end), to be read by `units`, or from the log if None."""

    start: int
    end: int
    units: NDArray[Any] | None = None
    is_boundary: bool = True
    """Whether a record is known, or said by the queues, to begin at `start`."""


def read_covered(
    split: CoveredPicks, wanted: RecordFilter, *, window_bytes: int, pace: Pace | None = None
) -> Iterator[LogFinding]:
    """Yields the wanted records of the split in order, and damage and losses, as read_log does."""
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
) -> Iterator[LogFinding]:
    if piece.units is None:
        reading = read_log(
            store,
            piece.start,
            piece.end,
            window_bytes=window_bytes,
            first_is_boundary=piece.is_boundary,
            pace=pace,
        )
    else:
        reading = read_picks(store, piece.units, window_bytes=window_bytes, pace=pace)
    for found in reading:
        yield wanted.apply(found) if isinstance(found, Records) else found


def _distrusting(
    split: CoveredPicks, wanted: RecordFilter, done: int, window_bytes: int, pace: Pace | None
) -> Iterator[LogFinding]:
    """Reads everything from `done` on by the log alone, as a read without conditions does."""
    log = read_log(
        split.store,
        split.start,
        split.end,
        window_bytes=window_bytes,
        first_is_boundary=split.first_is_boundary,
        pace=pace,
    )
    for found in log:
        if isinstance(found, Records):
            yield wanted.apply(found.where(found.physical_offset >= done))
        elif not isinstance(found, BadRecord) or found.physical_offset + found.length > done:
            yield found


def _pieces(split: CoveredPicks, wanted: RecordFilter) -> Iterator[_Piece]:
    """Cuts the split into pieces, in the order of the log."""
    store = split.store
    known = _AllQueues(split, wanted)
    segments = store.segments()
    at = until = split.start
    is_boundary = split.first_is_boundary
    while at < split.end:
        until = min(until + _REGION_BYTES, split.end)
        units = known.within(at, until)
        starts = units.starts
        # Units after the last whole region are looked up again with the next one.
        last = split.end if until == split.end else int(starts[-1]) if len(starts) else at
        if last == at:
            continue
        units = units.take(slice(np.searchsorted(starts, last)))
        gaps = _gaps(at, np.append(units.starts, last), units.sizes)
        unproven = [each for each in gaps if not _is_blank(store, segments, each)]
        if not is_boundary:
            first = int(starts[0] + units.sizes[0]) if len(units.starts) else last
            unproven.insert(0, _Gap(at, at, at, min(first, last)))
        yield from _in_order(at, last, unproven, units.picks(), is_boundary=is_boundary)
        at, is_boundary = last, True


def _in_order(
    at: int, end: int, gaps: Sequence[_Gap], units: NDArray[Any], *, is_boundary: bool
) -> Iterator[_Piece]:
    """Yields the pieces of a region: gaps are read from the log, units pick what lies between."""
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


class _Units(NamedTuple):
    """Units in the order of the log. They are many, so each field is an array."""

    starts: NDArray[np.int64]
    sizes: NDArray[np.int32]
    is_wanted: NDArray[np.bool_]

    def take(self, rows: slice | NDArray[np.int64]) -> _Units:
        return _Units(self.starts[rows], self.sizes[rows], self.is_wanted[rows])

    def picks(self) -> NDArray[Any]:
        """Returns the wanted units in the form that `read_picks` takes."""
        wanted = self.take(np.flatnonzero(self.is_wanted))
        picks = np.empty(len(wanted.starts), _PICK)
        picks["physical_offset"], picks["size"] = wanted.starts, wanted.sizes
        return picks


class _Cursor:
    """Reads the units of one queue, each once, in the order of the log."""

    def __init__(self, queue: Queue, from_physical: int, block_units: int) -> None:
        self._block_units = block_units
        self._blocks = queue.blocks_in_log(from_physical, block_units)
        self._ahead: NDArray[Any] = np.empty(0, UNITS)

    def before(self, to_physical: int) -> NDArray[Any]:
        """Returns the units since the last call whose records start before `to_physical`.

        A damaged unit that points elsewhere may be among them; it holds no other units back.
        """
        while (
            len(self._ahead) * 2 < self._block_units
            or self._ahead["physical_offset"][-1] < to_physical
        ):
            block = next(self._blocks, None)
            if block is None:
                break
            self._ahead = np.concatenate([self._ahead, block])
        below = np.flatnonzero(self._ahead["physical_offset"] < to_physical)
        count = int(below[-1]) + 1 if len(below) else 0
        given, self._ahead = self._ahead[:count], self._ahead[count:]
        return given


class _AllQueues:
    """The units of all queues in the order of the log, and which of them are wanted."""

    def __init__(self, split: CoveredPicks, wanted: RecordFilter) -> None:
        self._wanted = wanted
        self._is_remote = split.store.files.is_remote
        queues = [each for each in split.store.queues() if not each.topic.startswith(LMQ_PREFIX)]
        block = max(_FEWEST_UNITS, _MOST_AHEAD // max(len(queues), 1))
        self._cursors = [(each, _Cursor(each, split.start, block)) for each in queues]
        self._given = _Units(np.empty(0, np.int64), np.empty(0, np.int32), np.empty(0, np.bool_))

    def within(self, start: int, end: int) -> _Units:
        """Returns the units of records that start in [start, end); both must never decrease."""
        found = [self._given]
        of_each = asked(lambda each: each[1].before(end), self._cursors, is_remote=self._is_remote)
        for (queue, _), rows in zip(self._cursors, of_each, strict=True):
            if len(rows):
                mask = _mask(queue, rows, self._wanted)
                found.append(_Units(rows["physical_offset"], rows["size"], mask))
        units = _Units._make(np.concatenate(columns) for columns in zip(*found, strict=True))
        order = np.argsort(units.starts, kind="stable")
        low, high = np.searchsorted(units.starts, (start, end), sorter=order)
        self._given = units.take(order[low:high])
        return self._given


def _mask(queue: Queue, units: NDArray[Any], wanted: RecordFilter) -> NDArray[np.bool_]:
    """Returns which of these units of a queue may be wanted."""
    if not wanted.wants_queue(queue.topic, queue.queue_id):
        return np.zeros(len(units), np.bool_)
    bounds = wanted.offsets(queue.topic, queue.queue_id)
    mask = tagged(queue, units, wanted)
    if bounds.low > 0:
        mask &= units["queue_offset"] + units["count"] > bounds.low
    if bounds.high < 1 << 63:
        mask &= units["queue_offset"] < bounds.high
    return mask


def _gaps(at: int, starts: NDArray[Any], sizes: NDArray[Any]) -> list[_Gap]:
    """Returns the gaps between records from `at` on.

    Records start at `starts` and have these sizes; the last start is the end of the region.
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
    fields = _BLANK.fields(data)
    return bool(fields["magic"] == record.MAGIC_BLANK and fields["room"] == end - start)
