# SPDX-License-Identifier: Apache-2.0
"""Finds the beginnings of records in a piece of a commit log.

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
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from txrocketmq.remoting.message import record
from txrocketmq.remoting.packing import dtype, fixed
from txrocketmq.spark.words import words

Buffer = NDArray[np.uint8]
Positions = NDArray[np.int64]
_Array = TypeVar("_Array", Positions, NDArray[np.void])

MIN_RECORD_BYTES: Final = (
    fixed(record.RECORD_FIXED).size
    + fixed(record.TOPIC_LENGTH_V1).size
    + fixed(record.PROPERTIES_LENGTH).size
)
"""Of a record without body, topic and properties, its hosts IPv4."""

HEAD_BYTES: Final = dtype(record.RECORD_FIXED).itemsize
_FIXED_TYPE: Final = dtype(record.RECORD_FIXED)
_HEAD: Final = fixed(record.RECORD_HEAD)
_TOTAL_SIZE: Final = _HEAD.names.index("total_size")
_MAGIC: Final = _HEAD.names.index("magic")
_PLACE: Final = _HEAD.names.index("physical_offset")
_MAGIC_AT: Final = _HEAD.offset_of("magic")
_BLANK: Final = fixed(record.BLANK)
_MAGICS: Final = (record.MAGIC_V1, record.MAGIC_V2)
_MAGIC_BYTE: Final = _MAGICS[0].to_bytes(4, "big", signed=True)[0]
"""The first one, of all."""
_ANY_MAGIC: Final = re.compile(
    b"|".join(re.escape(magic.to_bytes(4, "big", signed=True)) for magic in _MAGICS)
)

_CURSOR_BYTES: Final = 1 << 15
"""About what one cursor walks."""
_NEAR_BYTES: Final = 1 << 11
"""So far all cursors look for a record at once, which most find there unless records are long."""
_FAR_TIMES: Final = 2
"""So many times fewer cursors are set where each has to look on its own, which costs as much as
some ten of its steps.
"""
_MAX_CURSORS: Final = 2048
_STEPS: Final = 8
"""So many between two looks at which cursors are still on their way."""
_MIN_ALIVE: Final = 8
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
    heads: NDArray[np.void] | None = None
    """HEAD_BYTES at each start, if the walk came to read them all."""


class _Chains(NamedTuple):
    """What the cursors found, each from its `first` place on, one after the other.

    Those up to cursor i, included, are starts[:ends[i]]. At the `last` place of a cursor no record
    starts, or the next cursor's chain, or the end asked for.
    """

    first: Positions
    last: Positions
    ends: Positions
    starts: Positions
    heads: NDArray[np.void]

    def numbers(self, start: int, end: int) -> slice:
        """Of the cursors start to end, which of `starts` they found."""
        return slice(int(self.ends[start - 1]) if start else 0, int(self.ends[end - 1]))


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

    On the way only the sizes are read, and followed wherever they lead, beyond the limits too:
    where a chain ends and whether records were walked is looked at thereafter, once for all.
    """
    limits = np.append(first[1:], end)
    sizes_at = np.ndarray((len(buffer) - 3,), ">i4", buffer, strides=(1,))
    top = len(sizes_at) - 1
    max_steps = _MAX_PLACES // len(first)
    rows = [first]
    is_alive = np.ones(len(first), np.bool_)
    # What these steps leave is walked one by one.
    while np.count_nonzero(is_alive) >= _MIN_ALIVE and len(rows) < max_steps:
        before = rows[-1]
        for _ in range(_STEPS):
            places = rows[-1]
            inside = np.minimum(np.maximum(places, 0), top)
            rows.append(places + sizes_at[inside])
        # Who went back once is lost: nonsense may lead around for ever.
        is_alive &= (rows[-1] < limits) & (rows[-1] - before >= _STEPS * MIN_RECORD_BYTES)
    positions = np.array(rows)
    is_step = np.diff(positions, axis=0) >= MIN_RECORD_BYTES
    walked = np.logical_and.accumulate(is_step & (positions[:-1] < limits))
    starts = positions[:-1].T[walked.T]
    heads, are_records = _heads(buffer, first_offset, starts)
    if not are_records.all():
        good = np.zeros(walked.shape, np.bool_)
        good.T[walked.T] = are_records
        # What comes after the first place without a record counts no more.
        good = np.logical_and.accumulate(good)
        kept = _rows(good.T[walked.T])
        starts, heads, walked = starts[kept], heads[kept], good
    counts = np.count_nonzero(walked, axis=0)
    last = positions[counts, np.arange(len(first))]
    return _Chains(first, last, np.cumsum(counts), starts, heads)


def _rows(mask: NDArray[np.bool_]) -> slice | NDArray[np.bool_]:
    """The rows of a mask; nearly always they are the first ones, which need no copy."""
    count = np.count_nonzero(mask)
    return slice(0, count) if mask[:count].all() else mask


def _heads(
    buffer: Buffer, first_offset: int, places: Positions
) -> tuple[NDArray[np.void], NDArray[np.bool_]]:
    """What lies at these places, and whether these are heads of records that end in the buffer."""
    size = len(buffer)
    heads = words(buffer, places, HEAD_BYTES)
    fields = heads.view(_FIXED_TYPE)
    magics = fields["magic"]
    result: NDArray[np.bool_] = magics == record.MAGIC_V1
    if not result.all():
        result |= magics == record.MAGIC_V2
    result &= fields["physical_offset"] == places + first_offset
    sizes = fields["total_size"]
    result &= (sizes >= MIN_RECORD_BYTES) & (sizes <= size - places)
    return heads, result


def _settings(buffer: Buffer, first_offset: int, start: int, end: int, cursors: int) -> Positions:
    """Where to set cursors: `start`, and what looks like a record evenly over [start, end)."""
    step = max(_CURSOR_BYTES, (end - start) // cursors)
    near = _near(buffer, first_offset, np.arange(start + step, end, step), step)
    if 2 * len(near) >= cursors:
        return np.append(start, near)
    places = [start]
    step *= _FAR_TIMES
    for target in range(start + step, end, step):
        place = _candidate(buffer, first_offset, target, min(target + step, end))
        if place is not None:
            places.append(place)
    return np.array(places, np.int64)


def _near(buffer: Buffer, first_offset: int, targets: Positions, step: int) -> Positions:
    """From each target on the first place that looks like a record, where one is near; none at all
    where too many places bear the first byte of a magic.
    """
    reach = min(step, _NEAR_BYTES)
    targets = targets[targets <= len(buffer) - reach - _MAGIC_AT]
    if not len(targets):
        return targets
    pieces = np.ndarray(
        (len(targets), reach), np.uint8, buffer, int(targets[0]) + _MAGIC_AT, (step, 1)
    )
    is_magic = pieces == _MAGIC_BYTE
    if np.count_nonzero(is_magic) > _MAX_CANDIDATES * len(targets):
        return targets[:0]
    of_target, at = np.divmod(_flatnonzero(is_magic.ravel()), reach)
    _, are_records = _heads(buffer, first_offset, targets[of_target] + at)
    of_target, at = of_target[are_records], at[are_records]
    is_first = np.append(True, of_target[1:] != of_target[:-1])[: len(at)]
    places: Positions = targets[of_target[is_first]] + at[is_first]
    return places


def _flatnonzero(flags: NDArray[np.bool_]) -> Positions:
    """As np.flatnonzero: sooner where few are true, since eight are looked at together."""
    if len(flags) % 8:
        return np.flatnonzero(flags)
    eights = np.flatnonzero(flags.view(np.uint64))
    at, inside = np.nonzero(flags.reshape(-1, 8)[eights])
    places: Positions = 8 * eights[at] + inside
    return places


def _candidate(buffer: Buffer, first_offset: int, start: int, end: int) -> int | None:
    """The first place in [start, end) that looks like a record; None after some that only bear its
    magic.
    """
    view = buffer.data
    last = len(buffer) - _HEAD.size
    at = start + _MAGIC_AT
    for _ in range(_MAX_CANDIDATES):
        match = _ANY_MAGIC.search(view, at, end + _MAGIC_AT)
        if match is None:
            return None
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
    heads: list[NDArray[np.void]] = []
    place = int(first[0])
    while True:
        at = int(np.searchsorted(first, place))
        if at < len(first) and first[at] == place != last[at]:
            # The chain of this cursor is trusted; so are all up to the next break.
            last_of_run = int(breaks[np.searchsorted(breaks, at)])
            found = chains.numbers(at, last_of_run + 1)
            parts.append(chains.starts[found])
            heads.append(chains.heads[found])
            place = int(last[last_of_run])
            continue
        at = int(np.searchsorted(first, place, "right"))
        limit = int(first[at]) if at < len(first) else end
        piece = _one_by_one(buffer, first_offset, place, limit)
        parts.append(piece.starts)
        heads.append(words(buffer, piece.starts, HEAD_BYTES))
        place = piece.stop
        if piece.reason is not Stop.END or place >= end:
            return Walk(_together(parts), place, piece.reason, _together(heads))


def _together(parts: Sequence[_Array]) -> _Array:
    """The parts end to end; nearly always there is one."""
    filled = [part for part in parts if len(part)]
    return filled[0] if len(filled) == 1 else np.concatenate(parts)
