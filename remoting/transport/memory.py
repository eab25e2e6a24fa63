# SPDX-License-Identifier: Apache-2.0
"""How a server process uses memory: fewer page faults and fewer collections for each read.

A broker makes and drops a few hundred KiB and thousands of small objects with every read. By
default glibc hands such memory back to the system and faults it in again at the next read, and
Python looks for cycles that are not there; both together are a tenth of the CPU time of a send.
There is no counterpart in the original, whose heap is fixed.
"""

from __future__ import annotations

import ctypes
import gc
import mmap
import resource
from contextlib import suppress
from pathlib import Path
from typing import Final

KEPT_BYTES = 16 * 1024 * 1024
"""Free memory at the top of the heap that is kept for the next read."""
MMAP_BYTES = 4 * 1024 * 1024
"""Blocks from this size on come from the system and go back to it at once."""
GC_THRESHOLDS = (50_000, 20, 50)
"""Objects between two collections of the youngest, and how many of those until the older ones."""
RESERVE_BYTES = 8 * 1024 * 1024
"""Address space that is kept for what must go on when there is no more."""
STACK_BYTES = 1 << 20
"""More than `grow_stack` lets the stack grow by."""

_STACK_CALLS = 300
_M_TRIM_THRESHOLD = -1
_M_MMAP_THRESHOLD = -3


def settle_memory() -> None:
    """Call once when everything is loaded and started; elsewhere than on glibc half of it."""
    with suppress(OSError, AttributeError):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_M_TRIM_THRESHOLD, KEPT_BYTES)
        mallopt(_M_MMAP_THRESHOLD, MMAP_BYTES)
    gc.collect()
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)


def grow_stack() -> None:
    """Makes the main thread's stack grow now, while there is room; otherwise raises MemoryError.

    The system makes it grow when it is first used that deeply. If the address space is limited and
    used up, it cannot, and ends the process with SIGSEGV.
    """
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY:
        return
    with suppress(OSError):
        used_pages = int(Path("/proc/self/statm").read_text("ascii").split()[0])
        if used_pages * resource.getpagesize() + STACK_BYTES > limit:
            raise MemoryError("the stack has no room")
    _call_deeply(_STACK_CALLS)


def _call_deeply(count: int) -> int:
    """A call by way of C each time, which is what takes stack."""
    return max((count - 1,), key=_call_deeply) if count else 0


class MemoryReserve:
    """Address space that is held for nothing, and given away when memory is lacking elsewhere.

    Python can end a large allocation that fails with MemoryError; when its smallest ones fail too,
    the interpreter may abort the process, or crash. So with the first MemoryError the reserve is
    given to it. It costs no memory. While `is_given` memory is short.
    """

    def __init__(self) -> None:
        self._held: mmap.mmap | None = None
        self.is_given = False

    def take(self) -> bool:
        """Takes the reserve, again where it was given; whether it is held now."""
        if self._held is None:
            with suppress(OSError, MemoryError):
                self._held = mmap.mmap(-1, RESERVE_BYTES, flags=mmap.MAP_PRIVATE)
                self.is_given = False
        return self._held is not None

    def give(self) -> bool:
        """Gives it away, if it is held; whether this is the first time that memory is short."""
        first, self.is_given = not self.is_given, True
        if self._held is not None:
            self._held.close()
            self._held = None
        return first


reserve: Final = MemoryReserve()
"""The one of this process."""
