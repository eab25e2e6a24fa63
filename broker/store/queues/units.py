# SPDX-License-Identifier: Apache-2.0
"""Runs of consume-queue units in a buffer, searched and decoded at the speed of C.

A unit is *written* when it names a message: its size is above 0 and its offset not below 0. All
others are *blank*: the zeros of a place that was never written, or the filler that stands for a
message which the queue does not have (size CONSUME_QUEUE_PRE_BLANK_SIZE), as the original puts it
before the first unit of a queue.

Java: ConsumeQueue (CQ_STORE_UNIT_SIZE, fillPreBlank).
"""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_left
from collections.abc import Sequence
from functools import lru_cache
from struct import Struct
from typing import Final

from txrocketmq.broker.store.formats import formats
from txrocketmq.remoting.primitives.packing import fixed

UNIT: Final = fixed(formats.CONSUME_QUEUE_UNIT).struct
UNIT_BYTES: Final = UNIT.size
PRE_BLANK_SIZE: Final = formats.CONSUME_QUEUE_PRE_BLANK_SIZE
PRE_BLANK: Final = UNIT.pack(0, PRE_BLANK_SIZE, 0)
UNIT_FIELDS: Final = len(fixed(formats.CONSUME_QUEUE_UNIT).names)
MANY_UNITS: Final = 1024
"""No read of sends makes more units than this in one queue, unless it has a long batch."""
_INTS: Final = UNIT_BYTES // 4
_SIZE_INT: Final = fixed(formats.CONSUME_QUEUE_UNIT).offset_of("size") // 4
_CHUNK: Final = 4096
"""How many units are examined together."""


def is_written(physical_offset: int, size_bytes: int) -> bool:
    """Whether a unit with these fields names a message."""
    return 0 < size_bytes < PRE_BLANK_SIZE and physical_offset >= 0


@lru_cache(maxsize=512)
def units_struct(count: int) -> Struct:
    """The codec of this many units in a row."""
    return fixed(formats.CONSUME_QUEUE_UNIT).rows(count)


def packed(fields: Sequence[int]) -> bytes:
    """The units with these fields, one after the other; it is for many."""
    longs = array("q", fields)
    if sys.byteorder == "little":
        longs.byteswap()
    halves = array("i", longs.tobytes())
    del halves[2::6]  # the upper half of the size, which is zero
    return halves.tobytes()


def has_unit(view: memoryview, index: int) -> bool:
    """Whether anything, if only a filler, was written at the unit with this index in a file."""
    at = index * UNIT_BYTES
    unit = view[at : at + UNIT_BYTES]
    if len(unit) < UNIT_BYTES:  # a hole
        return False
    physical_offset, size, _ = UNIT.unpack(unit)
    return bool(size > 0 and physical_offset >= 0)


def end_of_units(view: memoryview, count: int) -> int:
    """How many units a file of `count` has before the first place that was never written.

    Little more is read of the file than what is written, since a hole takes a page, too.
    """
    most = 1
    while most < count and has_unit(view, most):
        most *= 2
    return bisect_left(range(min(most, count)), 1, key=lambda at: int(not has_unit(view, at)))


def first_written(units: memoryview) -> int:
    """The index of the first written unit; the number of units when none is."""
    count = len(units) // UNIT_BYTES
    if count and is_written(*UNIT.unpack(units[:UNIT_BYTES])[:2]):
        return 0
    for start in range(0, count, _CHUNK):
        end = min(start + _CHUNK, count)
        chunk = units[start * UNIT_BYTES : end * UNIT_BYTES]
        if _is_blank(chunk, end - start):
            continue
        for index, (physical_offset, size_bytes, _) in enumerate(UNIT.iter_unpack(chunk), start):
            if is_written(physical_offset, size_bytes):
                return index
    return count


def last_written(units: memoryview) -> int:
    """The index of the last written unit; -1 when none is."""
    end = len(units) // UNIT_BYTES
    if end and is_written(*UNIT.unpack(units[(end - 1) * UNIT_BYTES : end * UNIT_BYTES])[:2]):
        return end - 1
    while end > 0:
        start = max(end - _CHUNK, 0)
        chunk = units[start * UNIT_BYTES : end * UNIT_BYTES]
        if not _is_blank(chunk, end - start):
            offsets, sizes = columns(chunk)
            for index in range(end - start - 1, -1, -1):
                if is_written(offsets[index], sizes[index]):
                    return start + index
        end = start
    return -1


def zero_runs(units: memoryview) -> list[tuple[int, int]]:
    """The ranges of indices of units that were never written."""
    runs: list[tuple[int, int]] = []
    sizes = columns(units)[1]
    start = 0
    while True:
        try:
            start = sizes.index(0, start)
        except ValueError:
            return runs
        end = start + 1
        while end < len(sizes) and sizes[end] == 0:
            end += 1
        runs.append((start, end))
        start = end


def columns(units: memoryview) -> tuple[array[int], array[int]]:
    """The physical offsets of the units, and their sizes."""
    ints = units.cast("i")
    count = len(units) // UNIT_BYTES
    high_first = sys.byteorder == "little"
    halves = array("i", bytes(8 * count))
    # They are read as 64-bit integers in the file's byte order, of which the fields are halves.
    halves[0::2] = array("i", ints[0::_INTS].tobytes())
    halves[1::2] = array("i", ints[1::_INTS].tobytes())
    offsets = array("q", halves.tobytes())
    sizes = array("i", ints[_SIZE_INT::_INTS].tobytes())
    if high_first:
        offsets.byteswap()
        sizes.byteswap()
    return offsets, sizes


def _is_blank(units: memoryview, count: int) -> bool:
    data = bytes(units)
    if data[:UNIT_BYTES] == PRE_BLANK:
        return data == PRE_BLANK * count
    return data == bytes(len(data))
