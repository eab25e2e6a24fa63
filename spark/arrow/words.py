# SPDX-License-Identifier: Apache-2.0
"""Reads a few bytes at each of many places of a buffer in one step of numpy."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def words(buffer: NDArray[np.uint8], at: NDArray[np.int64], size: int) -> NDArray[np.void]:
    """Returns the `size` bytes at each position; bytes beyond the end of the buffer are zero."""
    last = len(buffer) - size
    if last < 0 or (len(at) and at.max() > last):
        # Only few are so near the end: those are read from a padded copy of it.
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


def _each_byte(buffer: NDArray[np.uint8], size: int) -> NDArray[np.void]:
    """Returns a view with an element of `size` bytes at each byte of the buffer."""
    return np.ndarray((len(buffer) - size + 1,), f"V{size}", buffer, strides=(1,))
