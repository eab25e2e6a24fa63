# SPDX-License-Identifier: Apache-2.0
"""Finds the beginnings of records in a piece of a commit log.

Records lie end to end, and each begins with its size, so a walk from a trusted start is exact,
whatever the bodies hold. But going from record to record is slow in Python. So `walk` sets many
cursors, each at the next place that looks like a record, and advances all of them at once with
numpy. A cursor may have been set into a body that holds whole records. So the chain of a cursor
counts only if a trusted chain ends exactly where it starts; otherwise the walk goes from record to
record there.

A record is recognised by its head: a known magic, a possible size, and the physical offset of the
place where it lies. `Records` checks whether the lengths inside add up.

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
from txrocketmq.remoting.primitives.packing import dtype, fixed
from txrocketmq.spark.arrow.words import words

Buffer = NDArray[np.uint8]
Positions = NDArray[np.int64]
_Array = TypeVar("_Array", Positions, NDArray[np.void])

MIN_RECORD_BYTES: Final = (
    fixed(record.RECORD_FIXED).size
    + fixed(record.TOPIC_LENGTH_V1).size
    + fixed(record.PROPERTIES_LENGTH).size
)
"""The size of a record without body, topic and properties whose hosts are IPv4."""

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
"""The first byte of every magic."""
_ANY_MAGIC: Final = re.compile(
    b"|".join(re.escape(magic.to_bytes(4, "big", signed=True)) for magic in _MAGICS)
)

_CURSOR_BYTES: Final = 1 << 15
"""About how many bytes one cursor walks."""
_NEAR_BYTES: Final = 1 << 11
"""All cursors search this far at once, and most find a record there unless records are long."""
_FAR_TIMES: Final = 2
"""How many times fewer cursors are set where each has to search by itself, which costs as much as
some ten of its steps.
"""
_MAX_CURSORS: Final = 2048
_STEPS: Final = 8
"""The number of steps after which finished cursors are looked for."""
_MIN_ALIVE: Final = 8
"""The fewest active cursors; a step of all costs as much as so many single records."""
_MAX_PLACES: Final = 1 << 22
"""The most places of all cursors at all steps: limits the memory of a walk of uneven cursors."""
_MAX_CANDIDATES: Final = 32
"""The most places with the bytes of a magic that are tried to set one cursor."""


class Stop(enum.Enum):
    """The reason why a walk ended where it did."""

    END = "end"
    """All records that start before the end were found; the next one starts at `stop`."""
    PARTIAL = "partial"
    """The record at `stop` goes on beyond the buffer."""
    BLANK = "blank"
    """A blank record lies at `stop`: the rest of this file is empty. The caller has to check
    whether the blank reaches the end of the file.
    """
    UNWRITTEN = "unwritten"
    """Zeros lie at `stop`."""
    BAD = "bad"
    """Neither a record nor one of the above lies at `stop`. The record before it may be to blame,
    with a wrong size: then its own lengths do not add up.
    """


class Walk(NamedTuple):
    """The result of a walk: positions of records in the buffer, where it ended, and why."""

    starts: Positions
    stop: int
    reason: Stop
    heads: NDArray[np.void] | None = None
    """The HEAD_BYTES at each start, if the walk has read them all."""


class _Chains(NamedTuple):
    """The records that cursors found, each from its `first` place on, in order.

    The records of cursors 0 to i are starts[:ends[i]]. The `last` place of a cursor is where no
    record starts, or where the next cursor's chain starts or the wanted range ends.
    """

    first: Positions
    last: Positions
    ends: Positions
    starts: Positions
    heads: NDArray[np.void]

    def numbers(self, start: int, end: int) -> slice:
        """Returns which of `starts` the cursors from `start` up to, not including, `end` found."""
        return slice(int(self.ends[start - 1]) if start else 0, int(self.ends[end - 1]))


def walk(buffer: Buffer, first_offset: int, start: int = 0, end: int | None = None) -> Walk:
    """Returns the records that start in [start, end) and lie wholly in the buffer.

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
    """Returns the records of a pull response: they lie end to end, with any physical offsets."""
    return _one_by_one(buffer, None, 0, len(buffer))


def candidates(buffer: Buffer, first_offset: int, start: int) -> Iterator[int]:
    """Yields places from `start` on that have the head of a record, found by its magic."""
    last = len(buffer) - _HEAD.size
    view = buffer.data
    for match in _ANY_MAGIC.finditer(view, start + _MAGIC_AT):
        place = match.start() - _MAGIC_AT
        if place > last:
            return
        if _is_head(_HEAD.struct.unpack_from(view, place), first_offset + place):
            yield place


def _is_head(fields: tuple[int, ...], offset: int | None) -> bool:
    """Returns whether fields are a record's head; without an offset any physical offset will do."""
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
    """Returns why no whole record lies at this place in the buffer."""
    there = bytes(buffer[place : place + _HEAD.size])
    if len(there) < _BLANK.size:
        return Stop.PARTIAL
    size, magic = _BLANK.struct.unpack_from(there)
    if magic == record.MAGIC_BLANK and size >= _BLANK.size:
        return Stop.BLANK
    if not any(there):
        return Stop.UNWRITTEN
    if len(there) == _HEAD.size:
        # The head is whole, so either the size reaches beyond the buffer or this is no record.
        return Stop.PARTIAL if _is_head(_HEAD.struct.unpack(there), offset) else Stop.BAD
    is_plausible = size >= MIN_RECORD_BYTES and magic in _MAGICS
    return Stop.PARTIAL if is_plausible else Stop.BAD


# ------------------------------------------------------------------------- many cursors


def _advance(buffer: Buffer, first_offset: int, first: Positions, end: int) -> _Chains:
    """Advances cursors from `first`, each up to where the next one began, the last one to `end`.

    The steps read only the sizes and follow them wherever they lead, even beyond the limits. After
    them, one pass checks where chains end and whether records were walked.
    """
    limits = np.append(first[1:], end)
    sizes_at = np.ndarray((len(buffer) - 3,), ">i4", buffer, strides=(1,))
    top = len(sizes_at) - 1
    max_steps = _MAX_PLACES // len(first)
    rows = [first]
    is_alive = np.ones(len(first), np.bool_)
    # What these steps leave over is walked record by record.
    while np.count_nonzero(is_alive) >= _MIN_ALIVE and len(rows) < max_steps:
        before = rows[-1]
        for _ in range(_STEPS):
            places = rows[-1]
            inside = np.minimum(np.maximum(places, 0), top)
            rows.append(places + sizes_at[inside])
        # A cursor that went back is dropped, since nonsense may lead in circles.
        is_alive &= (rows[-1] < limits) & (rows[-1] - before >= _STEPS * MIN_RECORD_BYTES)
    positions = np.array(rows)
    is_step = np.diff(positions, axis=0) >= MIN_RECORD_BYTES
    walked = np.logical_and.accumulate(is_step & (positions[:-1] < limits))
    starts = positions[:-1].T[walked.T]
    heads, are_records = _heads(buffer, first_offset, starts)
    if not are_records.all():
        good = np.zeros(walked.shape, np.bool_)
        good.T[walked.T] = are_records
        # Nothing counts that comes after the first place without a record.
        good = np.logical_and.accumulate(good)
        kept = _rows(good.T[walked.T])
        starts, heads, walked = starts[kept], heads[kept], good
    counts = np.count_nonzero(walked, axis=0)
    last = positions[counts, np.arange(len(first))]
    return _Chains(first, last, np.cumsum(counts), starts, heads)


def _rows(mask: NDArray[np.bool_]) -> slice | NDArray[np.bool_]:
    """Returns the rows of a mask, as a slice if they are the first ones, as nearly always."""
    count = np.count_nonzero(mask)
    return slice(0, count) if mask[:count].all() else mask


def _heads(
    buffer: Buffer, first_offset: int, places: Positions
) -> tuple[NDArray[np.void], NDArray[np.bool_]]:
    """Returns the heads at these places, and whether they are of records that end in the buffer."""
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
    """Returns where to set cursors: at `start`, and at what looks like a record every few bytes."""
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
    """Returns the first place near each target that looks like a record, if there is one.

    Returns nothing if too many places have the first byte of a magic.
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
    """Does what np.flatnonzero does, faster if few are true, as it looks at eight at a time."""
    if len(flags) % 8:
        return np.flatnonzero(flags)
    eights = np.flatnonzero(flags.view(np.uint64))
    at, inside = np.nonzero(flags.reshape(-1, 8)[eights])
    places: Positions = 8 * eights[at] + inside
    return places


def _candidate(buffer: Buffer, first_offset: int, start: int, end: int) -> int | None:
    """Returns the first place in [start, end) that looks like a record.

    Returns None after _MAX_CANDIDATES places that only have the bytes of a magic.
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
    """Returns the records of trusted chains, and walks record by record where none is trusted."""
    first, last = chains.first, chains.last
    breaks = np.append(np.flatnonzero(last[:-1] != first[1:]), len(first) - 1)
    parts: list[Positions] = []
    heads: list[NDArray[np.void]] = []
    place = int(first[0])
    while True:
        at = int(np.searchsorted(first, place))
        if at < len(first) and first[at] == place != last[at]:
            # The chain of this cursor is trusted, and so are all up to the next break.
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
    """Returns the parts end to end; nearly always there is only one."""
    filled = [part for part in parts if len(part)]
    return filled[0] if len(filled) == 1 else np.concatenate(parts)
