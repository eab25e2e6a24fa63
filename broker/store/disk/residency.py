# SPDX-License-Identifier: Apache-2.0
"""Whether pages of a mapped file are in memory, by mincore(2).

mincore costs 4 microseconds for a range of 256 KiB. (preadv with RWF_NOWAIT, which copies what it
finds, costs 50.) The choice between it and nothing is made here, once: where the C library has no
mincore, and where a call of it fails, pages are taken to be in memory.
"""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Callable
from typing import Any

_PAGE_BYTES = mmap.PAGESIZE


def _loaded() -> Callable[[Any, int, Any], int] | None:
    try:
        # The interpreter's lock is held: the call takes less time than releasing the lock and
        # waiting for it again.
        call = ctypes.PyDLL(None).mincore
    except (AttributeError, OSError):
        return None
    call.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p)
    call.restype = ctypes.c_int
    return call


_mincore = _loaded()


def is_resident(mapped: mmap.mmap, offset_bytes: int, length_bytes: int) -> bool:
    """Whether all pages of this range are in memory; the range starts at a page."""
    if _mincore is None or length_bytes <= 0:
        return True
    pages = -(-length_bytes // _PAGE_BYTES)
    found = ctypes.create_string_buffer(pages)
    # This object keeps the mapping from being closed, and is released on return.
    start = ctypes.c_char.from_buffer(mapped, offset_bytes)
    if _mincore(ctypes.byref(start), length_bytes, found) != 0:
        return True
    # The lowest bit of each byte is the answer; the others are reserved.
    return all(byte & 1 for byte in set(found.raw))
