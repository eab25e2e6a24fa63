# SPDX-License-Identifier: Apache-2.0
"""Byte strings gathered from buffers into Arrow arrays, without a step of Python for each.

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

Bytes = NDArray[np.uint8]
Positions = NDArray[np.int64]

_INLINE_BYTES: Final = 12
_VIEW_INTS: Final = 4


def gather(
    buffers: Sequence[Bytes],
    at: Positions,
    length: Positions,
    *,
    which: NDArray[np.int64] | None = None,
    valid: NDArray[np.bool_] | None = None,
) -> pa.BinaryArray:
    """The byte strings that start `at` these positions, of these lengths, as a binary array.

    `which` says for each in which of the buffers it lies; without it all lie in the first. Where
    `valid` is false the element is null. Positions and lengths are trusted to lie in the buffers.
    """
    count = len(at)
    views = np.empty((count, _VIEW_INTS), np.int32)
    views[:, 0] = length
    views[:, 1] = 0
    views[:, 2] = 0 if which is None else which
    views[:, 3] = at
    _put_inline(views, buffers, at, length, which)
    kept = None if valid is None else pa.py_buffer(np.packbits(valid, bitorder="little"))
    array = pa.Array.from_buffers(
        pa.binary_view(), count, [kept, pa.py_buffer(views), *map(pa.py_buffer, buffers)]
    )
    return array.cast(pa.binary())


def _put_inline(
    views: NDArray[np.int32],
    buffers: Sequence[Bytes],
    at: Positions,
    length: Positions,
    which: NDArray[np.int64] | None,
) -> None:
    """Into the views of the short ones, themselves; what follows them there nobody reads."""
    short = np.flatnonzero(length <= _INLINE_BYTES)
    if not len(short):
        return
    for number, buffer in enumerate(buffers):
        rows = short if which is None else short[which[short] == number]
        if len(rows):
            views[rows, 1:] = words(buffer, at[rows], _INLINE_BYTES).view(np.int32).reshape(-1, 3)


def words(buffer: Bytes, at: Positions, size: int) -> NDArray[np.void]:
    """The `size` bytes at each position; beyond the end of the buffer they are zero."""
    last = len(buffer) - size
    if last < 0 or (len(at) and at.max() > last):
        # Few are so near to the end: those are read from a copy of it.
        tail_at = max(0, last)
        tail = np.zeros(2 * size, np.uint8)
        tail[: len(buffer) - tail_at] = buffer[tail_at:]
        near = at > last
        result: NDArray[np.void] = np.empty(len(at), f"V{size}")
        result[near] = _each_byte(tail, size)[at[near] - tail_at]
        if last >= 0:
            result[~near] = _each_byte(buffer, size)[at[~near]]
        return result
    return _each_byte(buffer, size)[at]


def _each_byte(buffer: Bytes, size: int) -> NDArray[np.void]:
    """A view with an element of `size` bytes at each byte of the buffer."""
    return np.ndarray((len(buffer) - size + 1,), f"V{size}", buffer, strides=(1,))


def utf8(array: pa.BinaryArray) -> pa.StringArray:
    """The texts of byte strings; bytes that are no UTF-8 are read as U+FFFD, as Java does."""
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
        return pa.array(texts, pa.string())


def encode(array: pa.Array) -> tuple[NDArray[np.int64], pa.Array]:
    """The code of each element, and the distinct elements by their code."""
    dictionary = pc.dictionary_encode(array)
    return dictionary.indices.to_numpy(zero_copy_only=False).astype(np.int64), dictionary.dictionary
