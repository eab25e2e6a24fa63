# SPDX-License-Identifier: Apache-2.0
"""Reads a commit log from outside: whole records, what is damaged, and what is gone.

`read_log` reads a range of physical offsets. A record belongs to the range in which it starts, so
ranges may be cut at any byte and together give each record once. `read_picks` reads the records
that units of consume queues name.

Nothing is dropped in silence, and nothing raises but an unreadable disk. A place without a record
gives a BadRecord, and reading goes on at the next record that a queue names, or without queues at
the next whole record with its CRC. Bytes whose file is gone give a Lost.

The records of a result lie in a buffer that the next result overwrites: use them before that.

Java: DefaultMessageStore.getCommitLogData, CommitLog.checkMessageAndReturnSize.
"""

from __future__ import annotations

import itertools
from bisect import bisect_right
from collections.abc import Generator, Iterator
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from txrocketmq.remoting.message import record
from txrocketmq.remoting.primitives.packing import fixed
from txrocketmq.spark.arrow.records import Records
from txrocketmq.spark.arrow.walk import MIN_RECORD_BYTES, Buffer, Stop, Walk, walk
from txrocketmq.spark.columns.decode import MAX_BAD_BYTES, BadRecord
from txrocketmq.spark.log.boundaries import Boundaries, next_record
from txrocketmq.spark.log.resync import whole_bytes
from txrocketmq.spark.options.pace import Pace
from txrocketmq.spark.store.store import Segment, Store
from txrocketmq.spark.store.windows import Windows

WINDOW_BYTES: Final = 8 << 20

_SLACK_BYTES: Final = 64 << 10
"""Bytes read beyond the wanted end, so that the last record is usually complete."""
_GAP_BYTES: Final = 8 << 10
_GAP_BYTES_REMOTE: Final = 1 << 20
"""Picks that are this near are read at once, with what is between them, since that costs no more
than another read.
"""
_HEAD: Final = fixed(record.RECORD_HEAD)
_BLANK: Final = fixed(record.BLANK)
_MAGICS: Final = (record.MAGIC_V1, record.MAGIC_V2)


class LostBytes(NamedTuple):
    """Physical offsets of bytes that are in no file: from `start` up to, not including, `end`."""

    start: int
    end: int


LogFinding = Records | BadRecord | LostBytes


def read_log(
    store: Store,
    start: int,
    end: int,
    *,
    window_bytes: int = WINDOW_BYTES,
    first_is_boundary: bool,
    pace: Pace | None = None,
) -> Iterator[LogFinding]:
    """Yields the records that start in [start, end), in order, and damage and losses in between.

    `end` is at most `end_of_log` of the store. With `first_is_boundary` a record is known to begin
    at `start`; otherwise the first one is searched for. `pace` limits how fast the log is read.
    """
    windows = Windows(store.files, window_bytes, pace)
    try:
        yield from _Range(store, windows).read(start, end, first_is_boundary)
    finally:
        windows.close()


class _Range:
    def __init__(self, store: Store, windows: Windows) -> None:
        self._store = store = store.at_once()
        self._windows = windows
        self._segments = store.segments()
        self._firsts = [each.first_offset for each in self._segments]
        self._boundaries = Boundaries(store)

    def read(self, start: int, end: int, is_boundary: bool) -> Iterator[LogFinding]:  # noqa: FBT001 - private
        at = start if is_boundary else self._boundary(start)
        while at < end:
            segment = self._segment_of(at)
            if segment is None:
                upto = min(
                    (s.first_offset for s in self._segments if s.first_offset > at), default=end
                )
                yield LostBytes(at, min(upto, end))
                at = upto
            else:
                at = yield from self._read_segment(segment, at, end)

    def _segment_of(self, at: int) -> Segment | None:
        place = bisect_right(self._firsts, at) - 1
        found = self._segments[place] if place >= 0 else None
        return found if found is not None and at < found.end else None

    def _boundary(self, start: int) -> int:
        """Returns where the first record at `start` or later begins; walks from a known one."""
        segment = self._segment_of(start)
        if segment is None or segment.first_offset == start:
            return start
        at = segment.first_offset
        known = self._boundaries.before(start + 1)
        if known is not None and known > at:
            at = known
        while at < start:
            reading = self._read_segment(segment, at, start)
            while True:
                try:
                    found = next(reading)
                except StopIteration as stopped:
                    at = stopped.value
                    break
                if isinstance(found, LostBytes):
                    at = start  # reading it will report this
                    break
        return at

    def _read_segment(
        self, segment: Segment, at: int, end: int
    ) -> Generator[LogFinding, None, int]:
        """Reads a file from a boundary on; returns where the next record starts, there or later."""
        longer = 0
        while at < min(end, segment.end):
            length = max(longer, min(self._windows.window_bytes, end - at + _SLACK_BYTES))
            length = min(length, segment.end - at)
            window = self._window(segment, at, length, end)
            found = walk(window, at, 0, end - at)
            records, found = _consistent(window, found, at)
            if len(records):
                yield records
            at += found.stop
            if len(window) < length and found.reason in (Stop.END, Stop.PARTIAL):
                yield LostBytes(
                    at, min(segment.end, end)
                )  # the file is gone, or shorter than it was
                return segment.end
            rest = window[found.stop :]
            longer = 0
            if found.reason is Stop.PARTIAL:
                longer = whole_bytes(rest, segment.end - at, self._store.max_record_bytes)
            if longer or found.reason is Stop.END:
                continue
            if found.reason is Stop.BLANK and _room(rest) == segment.end - at:
                return segment.end
            bad = self._damage(segment, at, end, rest)
            yield bad
            at += bad.length
        return at

    def _window(self, segment: Segment, at: int, length: int, end: int) -> Buffer:
        """Returns bytes from `at` on; none when the file is gone or shorter than it was."""
        place = at - segment.first_offset
        until = min(segment.size, end - segment.first_offset + _SLACK_BYTES)
        try:
            return self._windows.read(segment.path, place, length, until)
        except FileNotFoundError:
            return np.empty(0, np.uint8)

    def _damage(self, segment: Segment, at: int, end: int, rest: Buffer) -> BadRecord:
        """Returns the damage at `at`, which reaches to the start of the next record."""
        place = self._boundaries.after(at) if self._store.queue_kind == "files" else None
        if place is None:
            place = next_record(self._store, segment, at)
        if place is None or place > segment.end:
            is_last = segment is self._segments[-1]
            place = min(segment.end, max(end, at + 1)) if is_last else segment.end
        reason, detail = _why(rest, at, self._store.max_record_bytes)
        data = bytes(rest[: min(place - at, MAX_BAD_BYTES)])
        return BadRecord(at, place - at, reason, detail, data)


def _consistent(window: Buffer, found: Walk, at: int) -> tuple[Records, Walk]:
    """Returns the records before the first inconsistent one, whose size cannot be trusted."""
    records = Records(window, found.starts, at, read=found.heads)
    wrong = np.flatnonzero(records.inconsistent())
    if not len(wrong):
        return records, found
    first = int(wrong[0])
    stop = int(found.starts[first])
    return records.slice(0, first), Walk(found.starts[:first], stop, Stop.BAD)


def _room(rest: Buffer) -> int:
    return int(_BLANK.struct.unpack_from(rest.data)[0])


def _why(rest: Buffer, at: int, max_record_bytes: int) -> tuple[str, str]:
    """Returns the reason and the detail for a place without a record."""
    if len(rest) < _HEAD.size:
        return "length", f"{len(rest)} bytes are left of the file, no record is so short"
    fields = _HEAD.fields(rest.data)
    size, magic = fields["total_size"], fields["magic"]
    if not rest[: _HEAD.size].any():
        return "magic", "zeros where a record should start"
    if magic == record.MAGIC_BLANK:
        return "length", f"a blank that says {size} bytes are left of the file"
    if magic not in _MAGICS:
        return "magic", f"unknown magic {magic & 0xFFFFFFFF:#010x}"
    if fields["physical_offset"] != at:
        return "chain", f"a record that says it lies at {fields['physical_offset']}"
    if not MIN_RECORD_BYTES <= size <= max_record_bytes:
        most = f"{max_record_bytes} are read at most, see maxRecordBytes"
        return "length", f"a record of {size} bytes; {most}"
    return "length", f"the lengths of the record do not add up to its size of {size} bytes"


# --- picks ---


def read_picks(
    store: Store,
    units: NDArray[Any],
    *,
    window_bytes: int = WINDOW_BYTES,
    pace: Pace | None = None,
) -> Iterator[LogFinding]:
    """Yields the records that units of consume queues name; they are sorted by `physical_offset`.

    `units` has the fields `physical_offset` and `size`, as `queue_files.UNITS` has. A unit gives a
    Lost if its record is gone, and a BadRecord if it does not match what is there.
    """
    windows = Windows(store.files, window_bytes, pace)
    try:
        yield from _Picks(store, windows).read(units)
    finally:
        windows.close()


class _Picks:
    def __init__(self, store: Store, windows: Windows) -> None:
        self._windows = windows
        self._segments = store.segments()
        self._max_record_bytes = store.max_record_bytes
        self._gap = _GAP_BYTES_REMOTE if store.files.is_remote else _GAP_BYTES

    def read(self, units: NDArray[Any]) -> Iterator[LogFinding]:
        places = units["physical_offset"].astype(np.int64)
        sizes = units["size"].astype(np.int64)
        firsts = np.array([each.first_offset for each in self._segments], np.int64)
        inside = np.searchsorted(firsts, places, "right") - 1
        cuts = np.flatnonzero(np.diff(inside)) + 1
        for start, end in zip([0, *cuts], [*cuts, len(places)], strict=True):
            if start < end:
                at = int(inside[start])
                segment = self._segments[at] if at >= 0 else None
                yield from self._read_segment(segment, places[start:end], sizes[start:end])

    def _read_segment(
        self, segment: Segment | None, places: NDArray[np.int64], sizes: NDArray[np.int64]
    ) -> Iterator[LogFinding]:
        is_there = places < (segment.end if segment else -1)
        if not is_there.all():
            gone = places[~is_there]
            yield LostBytes(int(gone[0]), int(gone[-1] + sizes[~is_there][-1]))
        if segment is None:
            return
        places, sizes = places[is_there], sizes[is_there]
        fits = (sizes >= MIN_RECORD_BYTES) & (sizes <= self._max_record_bytes)
        fits &= places + sizes <= segment.end
        for at, size in zip(places[~fits].tolist(), sizes[~fits].tolist(), strict=True):
            yield BadRecord(at, size, "length", "no record has this size", b"")
        places, sizes = places[fits], sizes[fits]
        between = places[1:] - np.maximum.accumulate(places + sizes)[:-1]
        between[(between < 0) | (between > self._gap)] = 0
        costs = sizes + np.append(0, between)
        for start, end in pieces(costs, self._windows.window_bytes):
            yield from self._read_run(segment, places[start:end], sizes[start:end])

    def _read_run(
        self, segment: Segment, places: NDArray[np.int64], sizes: NDArray[np.int64]
    ) -> Iterator[LogFinding]:
        """Reads picks of one file at once, those near each other with what is between them."""
        ends = np.maximum.accumulate(places + sizes)
        cuts = np.append(0, np.flatnonzero(places[1:] - ends[:-1] > self._gap) + 1)
        lengths = ends[np.append(cuts[1:], len(places)) - 1] - places[cuts]
        read = zip((places[cuts] - segment.first_offset).tolist(), lengths.tolist(), strict=True)
        try:
            window = self._windows.pieces(segment.path, list(read))
        except FileNotFoundError:
            window = np.empty(0, np.uint8)
        # How far each piece moves when the pieces are put end to end in the window.
        moved = places[cuts] - (np.cumsum(lengths) - lengths)
        starts = places - np.repeat(moved, np.diff(np.append(cuts, len(places))))
        is_there = starts + sizes <= len(window)
        if not is_there.all():
            yield LostBytes(int(places[~is_there][0]), int(ends[-1]))
            places, sizes, starts = places[is_there], sizes[is_there], starts[is_there]
        if not len(places):
            return
        records = Records(window, starts)
        heads = records.heads
        is_good = (heads["physical_offset"] == places) & (heads["total_size"] == sizes)
        is_good &= np.isin(heads["magic"], _MAGICS)
        if is_good.all():
            is_good = ~records.inconsistent()
        else:
            is_good[is_good] = ~records.where(is_good).inconsistent()
        bad = np.flatnonzero(~is_good)
        if len(bad):
            records = records.where(is_good)
        if len(records):
            yield records
        for each in bad.tolist():
            start, size = int(places[each]), int(sizes[each])
            rest = window[int(starts[each]) : int(starts[each]) + size]
            reason, detail = _why(rest, start, self._max_record_bytes)
            data = bytes(rest[:MAX_BAD_BYTES])
            yield BadRecord(start, size, reason, detail, data)


def pieces(sizes: NDArray[Any], most: int) -> list[tuple[int, int]]:
    """Cuts rows of these sizes in bytes into runs of about `most` bytes, at least one row each."""
    if not len(sizes):
        return []
    ends = np.cumsum(sizes, dtype=np.int64)
    cuts = [0]
    while cuts[-1] < len(sizes):
        before = int(ends[cuts[-1] - 1]) if cuts[-1] else 0
        cuts.append(max(cuts[-1] + 1, int(np.searchsorted(ends, before + most, "right"))))
    return list(itertools.pairwise(cuts))
