# SPDX-License-Identifier: Apache-2.0
"""Gathers byte strings from buffers into Arrow arrays without a step of Python for each.

Arrow's view types describe a string by 16 bytes: its length, then either the string itself (up to
12 bytes) or four bytes that only comparisons read, the number of a buffer and the position in it.
Such descriptions are made here with numpy, over the buffer that was read from the log, and Arrow's
own cast to plain strings copies the bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from txrocketmq.spark.arrow import arrays
from txrocketmq.spark.arrow.walk import Positions
from txrocketmq.spark.arrow.words import words

Bytes = NDArray[np.uint8]

POOL: Final = pa.system_memory_pool()
"""Allocates what is made for a batch. It uses the same heap as numpy, so that each of them reuses
memory that the other has freed while it is still in the processor's caches.
"""
BEFORE_BYTES: Final = 4
"""The bytes that hold the length at the start of a description."""
_INLINE_BYTES: Final = 12
AROUND_BYTES: Final = BEFORE_BYTES + _INLINE_BYTES
_VIEW_INTS: Final = 4
_FEW: Final = 16
"""Strings are few when they are fewer than one in so many."""


def gather(
    buffers: Sequence[Bytes],
    at: Positions,
    length: Positions,
    *,
    which: NDArray[np.int64] | None = None,
    valid: NDArray[np.bool_] | None = None,
    near: NDArray[np.void] | None = None,
) -> pa.BinaryArray:
    """Copies the byte strings at these positions, with these lengths, into a binary array.

    `which` has the number of the buffer of each; without it all are in the first. The element is
    null where `valid` is false. `near` is the result of `around` for the only buffer, if somebody
    has called it before. All positions and lengths have to lie inside the buffers.
    """
    views = _views(buffers, at, length, which, near)
    kept = None if valid is None else pa.py_buffer(np.packbits(valid, bitorder="little"))
    array = pa.Array.from_buffers(
        pa.binary_view(), len(at), [kept, pa.py_buffer(views), *map(pa.py_buffer, buffers)]
    )
    return array.cast(pa.binary(), memory_pool=POOL)


def _views(
    buffers: Sequence[Bytes],
    at: Positions,
    length: Positions,
    which: NDArray[np.int64] | None,
    near: NDArray[np.void] | None,
) -> NDArray[np.int32]:
    """Arrow's descriptions of the byte strings."""
    is_short = length <= _INLINE_BYTES
    short = np.count_nonzero(is_short)
    if short > len(at) // _FEW and which is None:
        near = around(buffers[0], at) if near is None else near.copy()
        return _mostly_short(near, at, length, is_short)
    views = np.empty((len(at), _VIEW_INTS), np.int32)
    views[:, 0] = length
    views[:, 1] = 0
    views[:, 2] = 0 if which is None else which
    views[:, 3] = at
    if short:
        rows = np.flatnonzero(is_short)
        for number, buffer in enumerate(buffers):
            mine = rows if which is None else rows[which[rows] == number]
            _put_inline(views, buffer, at, mine)
    return views


def _mostly_short(
    near: NDArray[np.void], at: Positions, length: Positions, is_short: NDArray[np.bool_]
) -> NDArray[np.int32]:
    """Makes descriptions of `near`, in which short strings are in their place; mends long ones."""
    views = near.view(np.int32).reshape(-1, _VIEW_INTS)
    views[:, 0] = length
    if not is_short.all():
        long = np.flatnonzero(~is_short)
        views[long, 2] = 0
        views[long, 3] = at[long]
    return views


def around(buffer: Bytes, at: Positions) -> NDArray[np.void]:
    """Returns AROUND_BYTES bytes for each position, of which BEFORE_BYTES lie before it.

    Bytes outside the buffer are zero.
    """
    before = at - BEFORE_BYTES
    if not len(at) or before.min() >= 0:
        return words(buffer, before, AROUND_BYTES)
    padded = np.concatenate([np.zeros(BEFORE_BYTES, np.uint8), buffer[: 2 * AROUND_BYTES]])
    result: NDArray[np.void] = words(buffer, np.maximum(before, 0), AROUND_BYTES)
    at_start = before < 0
    result[at_start] = words(padded, np.maximum(at[at_start], 0), AROUND_BYTES)
    return result


def _put_inline(views: NDArray[np.int32], buffer: Bytes, at: Positions, rows: Positions) -> None:
    """Copies short strings into their descriptions; the bytes after a string there are not read."""
    if len(rows):
        views[rows, 1:] = words(buffer, at[rows], _INLINE_BYTES).view(np.int32).reshape(-1, 3)


def utf8(array: pa.BinaryArray) -> pa.StringArray:
    """Decodes byte strings; bytes that are not UTF-8 become U+FFFD, as in Java."""
    _offsets, data = array.buffers()[1:]
    if data is None or not len(data) or np.frombuffer(data, np.uint8).max() < 0x80:
        return pa.Array.from_buffers(
            pa.string(), len(array), array.buffers(), array.null_count, array.offset
        )
    try:
        return array.cast(pa.string())
    except pa.ArrowInvalid:
        texts = [
            None if each is None else each.decode("utf-8", "replace") for each in array.to_pylist()
        ]
        return arrays.of_texts(texts)


def encode(array: pa.Array) -> tuple[NDArray[np.int64], pa.Array]:
    """Returns a code for each element, and the distinct elements, indexed by their code."""
    dictionary = pc.dictionary_encode(array, memory_pool=POOL)
    return arrays.numbers_of(dictionary.indices).astype(np.int64), dictionary.dictionary
