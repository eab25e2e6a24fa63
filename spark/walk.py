# SPDX-License-Identifier: Apache-2.0
"""Where records start in a piece of commit log.

Records lie end to end, each opened by its size, so a walk from a trusted start is exact, whatever
the bodies hold; but one record after the other is slow in Python. `walk` sets many cursors, each at
the next place that looks like a record, and advances all of them at once with np. A cursor may
have been set into a body that holds whole records: so the chain of one cursor counts only when a
trusted chain ends exactly where it starts, and where none does, the walk goes record by record.

A record is recognised by its head: a known magic, a size that a record can have, and the physical
offset of the very place where it lies. Whether the lengths inside add up is for `Records` to say.

Java: CommitLog.checkMessageAndReturnSize.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from txrocketmq.remoting.message import record
from txrocketmq.remoting.packing import dtype, fixed

Buffer = NDArray[np.uint8]
Positions = NDArray[np.int64]

MIN_RECORD_BYTES: Final = (
    fixed(record.RECORD_FIXED).size
    + fixed(record.TOPIC_LENGTH_V1).size
    + fixed(record.PROPERTIES_LENGTH).size
)
"""Of a record without body, topic and properties, its hosts IPv4."""

_HEAD: Final = fixed(record.RECORD_HEAD)
_HEAD_TYPE: Final = dtype(record.RECORD_HEAD)
_TOTAL_SIZE: Final = _HEAD.names.index("total_size")
_MAGIC: Final = _HEAD.names.index("magic")
_PLACE: Final = _HEAD.names.index("physical_offset")
_MAGIC_AT: Final = _HEAD.offset_of("magic")
_BLANK: Final = fixed(record.BLANK)
_MAGICS: Final = (record.MAGIC_V1, record.MAGIC_V2)
_ANY_MAGIC: Final = re.compile(
    b"|".join(re.escape(magic.to_bytes(4, "big", signed=True)) for magic in _MAGICS)
)

_CURSOR_BYTES: Final = 1 << 16
"""About what one cursor walks: its setting costs as much as some ten of its steps."""
_MAX_CURSORS: Final = 2048
_MIN_ALIVE: Final = 24
"""A step of all cursors costs as much as this many records one by one."""
_MAX_PLACES: Final = 1 << 22
"""Of all cursors at all steps: bounds the memory of a walk, should they advance unevenly."""
_MAX_CANDIDATES: Final = 32
"""Places with the bytes of a magic that are tried to set one cursor."""


class Stop(enum.Enum):
    """Why a walk ended where it did."""

    END = "end"
    """All records that start before the end asked for were found; the next starts at `stop`."""
    PARTIAL = "partial"
    """The record at `stop` goes on beyond the buffer."""
    BLANK = "blank"
    """A blank record lies at `stop`: the rest of this file is empty. Whether its room reaches the
    end of the file is the caller's to look."""
    UNWRITTEN = "unwritten"
    """Zeros lie at `stop`."""
    BAD = "bad"
    """Neither a record nor one of the above lies at `stop`. The record before may be to blame, by
    a wrong size: then its own lengths do not add up."""


class Walk(NamedTuple):
    """Records found: positions in the buffer, where the walk ended, and why."""

    starts: Positions
    stop: int
    reason: Stop


class _Chains(NamedTuple):
    """What each cursor found from its `first` place on: row i of `positions` where `found` is true.

    At its `last` place no record starts, or the next cursor's chain, or the end asked for.
    """

    first: Positions
    last: Positions
    positions: Positions
    found: NDArray[np.bool_]

    def between(self, start: int, end: int) -> Positions:
        """Of the cursors start to end, all they found, in order."""
        found: Positions = self.positions[start:end][self.found[start:end]]
        return found


def walk(buffer: Buffer, first_offset: int, start: int = 0, end: int | None = None) -> Walk:
    """The records that start in [start, end) and lie wholly in the buffer.

    `first_offset` is the physical offset of buffer[0]; a record is trusted to begin at `start`.
    Without `end` the walk goes to the end of the buffer.
    """
    end = len(buffer) if end is None else min(end, len(buffer))
    cursors = min((end - start) // _CURSOR_BYTES, _MAX_CURSORS)
    if cursors < 2:
        return _one_by_one(buffer, first_offset, start, end)
    chains = _advance(
        buffer, first_offset, _settings(buffer, first_offset, start, end, cursors), end
    )
    return _joined(buffer, first_offset, chains, end)


def chain(buffer: Buffer) -> Walk:
    """The records of a pull response: end to end, with physical offsets of anywhere."""
    return _one_by_one(buffer, None, 0, len(buffer))


def candidates(buffer: Buffer, first_offset: int, start: int) -> Iterator[int]:
    """Places from `start` on that bear the head of a record, by the bytes of its magic."""
    last = len(buffer) - _HEAD.size
    view = buffer.data
    for match in _ANY_MAGIC.finditer(view, start + _MAGIC_AT):
        place = match.start() - _MAGIC_AT
        if place > last:
            return
        if _is_head(_HEAD.struct.unpack_from(view, place), first_offset + place):
            yield place


def _is_head(fields: tuple[int, ...], offset: int | None) -> bool:
    """Whether these are fields of a record's head; without an offset, one of anywhere."""
    return (
        fields[_TOTAL_SIZE] >= MIN_RECORD_BYTES
        and fields[_MAGIC] in _MAGICS
        and (offset is None or fields[_PLACE] == offset)
    )


# ------------------------------------------------------------------------- one by one


def _one_by_one(buffer: Buffer, first_offset: int | None, start: int, end: int) -> Walk:
    view = buffer.data
    size = len(buffer)
    last = size - _HEAD.size
    unpack = _HEAD.struct.unpack_from
    starts: list[int] = []
    place = start
    reason = Stop.END
    while place < end:
        fields = unpack(view, place) if place <= last else None
        offset = None if first_offset is None else first_offset + place
        if fields is None or not _is_head(fields, offset) or place + fields[_TOTAL_SIZE] > size:
            reason = _reason(buffer, offset, place)
            break
        starts.append(place)
        place += fields[_TOTAL_SIZE]
    return Walk(np.array(starts, np.int64), place, reason)


def _reason(buffer: Buffer, offset: int | None, place: int) -> Stop:
    """Why no whole record lies at this place, which is in the buffer."""
    there = bytes(buffer[place : place + _HEAD.size])
    if len(there) < _BLANK.size:
        return Stop.PARTIAL
    size, magic = _BLANK.struct.unpack_from(there)
    if magic == record.MAGIC_BLANK and size >= _BLANK.size:
        return Stop.BLANK
    if not any(there):
        return Stop.UNWRITTEN
    if len(there) == _HEAD.size:
        # A whole head: then it is the size that goes beyond the buffer, or this is no record.
        return Stop.PARTIAL if _is_head(_HEAD.struct.unpack(there), offset) else Stop.BAD
    is_plausible = size >= MIN_RECORD_BYTES and magic in _MAGICS
    return Stop.PARTIAL if is_plausible else Stop.BAD


# ------------------------------------------------------------------------- many cursors


def _advance(buffer: Buffer, first_offset: int, first: Positions, end: int) -> _Chains:
    """Advance cursors from `first`, each up to where the next began, the last one up to `end`.

    On the way only the sizes are read; whether records were walked is looked at thereafter, once
    for all.
    """
    size = len(buffer)
    limits = np.append(first[1:], end)
    sizes_at = np.ndarray((size - 3,), ">i4", buffer, strides=(1,))
    top = size - _HEAD.size
    max_steps = _MAX_PLACES // len(first)
    places = first
    rows: list[Positions] = []
    walked: list[NDArray[np.bool_]] = []
    while True:
        sizes = sizes_at[np.minimum(places, top)].astype(np.int64)
        alive = (places < limits) & (sizes >= MIN_RECORD_BYTES)
        if np.count_nonzero(alive) < _MIN_ALIVE or len(rows) == max_steps:
            # Also when some could go on: what they leave is walked one by one.
            break
        rows.append(places)
        walked.append(alive)
        places = places + sizes * alive
    if not rows:
        return _Chains(first, first, first[:, None], np.zeros((len(first), 1), np.bool_))
    positions = np.array(rows).T
    found = np.array(walked).T
    are_records = _are_records(buffer, first_offset, positions[found])
    last = places.copy()
    if not are_records.all():
        good = np.zeros(found.shape, np.bool_)
        good[found] = are_records
        # What comes after the first place without a record counts no more.
        good = np.logical_and.accumulate(good | ~found, axis=1) & found
        counts = np.count_nonzero(good, axis=1)
        cut = np.flatnonzero(counts < np.count_nonzero(found, axis=1))
        last[cut] = positions[cut, counts[cut]]
        found = good
    return _Chains(first, last, positions, found)


def _are_records(buffer: Buffer, first_offset: int, places: Positions) -> NDArray[np.bool_]:
    """Whether heads of records that end in the buffer lie there."""
    size = len(buffer)
    heads = np.ndarray((size - _HEAD.size + 1,), f"V{_HEAD.size}", buffer, strides=(1,))
    there = heads[np.minimum(places, size - _HEAD.size)].view(_HEAD_TYPE)
    magics = there["magic"]
    result: NDArray[np.bool_] = magics == record.MAGIC_V1
    if not result.all():
        result |= magics == record.MAGIC_V2
    result &= there["physical_offset"] == places + first_offset
    result &= there["total_size"] <= size - places
    return result


def _settings(buffer: Buffer, first_offset: int, start: int, end: int, cursors: int) -> Positions:
    """Where to set cursors: `start`, and what looks like a record evenly over [start, end)."""
    places = [start]
    for target in range(start + _CURSOR_BYTES, end, max(_CURSOR_BYTES, (end - start) // cursors)):
        if target <= places[-1]:
            continue
        place = _near_candidate(buffer, first_offset, target)
        if place is None:
            continue
        if place >= end:
            break
        places.append(place)
    return np.array(places, np.int64)


def _near_candidate(buffer: Buffer, first_offset: int, target: int) -> int | None:
    """The first that looks like a record from `target` on; None after some that only bear its
    magic. Without any more it is the end of the buffer.
    """
    view = buffer.data
    last = len(buffer) - _HEAD.size
    at = target + _MAGIC_AT
    for _ in range(_MAX_CANDIDATES):
        match = _ANY_MAGIC.search(view, at)
        if match is None:
            return len(buffer)
        place = match.start() - _MAGIC_AT
        if place <= last and _is_head(_HEAD.struct.unpack_from(view, place), first_offset + place):
            return place
        at = match.start() + 1
    return None


def _joined(buffer: Buffer, first_offset: int, chains: _Chains, end: int) -> Walk:
    """The records of the chains that are trusted; one by one where a chain is not."""
    first, last = chains.first, chains.last
    breaks = np.append(np.flatnonzero(last[:-1] != first[1:]), len(first) - 1)
    parts: list[Positions] = []
    place = int(first[0])
    while True:
        at = int(np.searchsorted(first, place))
        if at < len(first) and first[at] == place != last[at]:
            # The chain of this cursor is trusted; so are all up to the next break.
            last_of_run = int(breaks[np.searchsorted(breaks, at)])
            parts.append(chains.between(at, last_of_run + 1))
            place = int(last[last_of_run])
            continue
        at = int(np.searchsorted(first, place, "right"))
        limit = int(first[at]) if at < len(first) else end
        piece = _one_by_one(buffer, first_offset, place, limit)
        parts.append(piece.starts)
        place = piece.stop
        if piece.reason is not Stop.END or place >= end:
            return Walk(np.concatenate(parts), place, piece.reason)
