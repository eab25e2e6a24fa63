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
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

KEPT_BYTES = 16 * 1024 * 1024
"""How many bytes of free memory at the top of the heap are kept instead of being given back."""
MMAP_BYTES = 4 * 1024 * 1024
"""Blocks of at least so many bytes are requested from the system and given back to it at once."""
GC_THRESHOLDS = (10_000, 0, 3_000)
"""For `gc.set_threshold`: how many objects more are created than freed between two collections of
the youngest generation, and how many collections of each generation, besides one, precede one of
the next older. A collection takes 0.2 us for each object, and everybody waits for it: with these
figures 2 ms, or 4 ms for two generations. No read of usual sends or pulls creates so many objects
that it keeps."""
RESERVE_BYTES = 8 * 1024 * 1024
"""How many bytes of address space are held back for what must go on when there is no more."""
STACK_BYTES = 1 << 20
"""An upper bound, in bytes, of what `grow_stack` makes the stack grow by."""

_STACK_CALLS = 400
_M_TRIM_THRESHOLD = -1
_M_MMAP_THRESHOLD = -3
_M_ARENA_MAX = -8


def settle_memory() -> None:
    """Makes the process keep freed memory, and look for garbage in cycles less often.

    Call it once, when everything is loaded and started: objects that exist by then are not looked
    at again. Where there is no glibc, only the settings of the garbage collector take effect.
    """
    with suppress(OSError, AttributeError):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_M_TRIM_THRESHOLD, KEPT_BYTES)
        mallopt(_M_MMAP_THRESHOLD, MMAP_BYTES)
        # By default each thread keeps what it has freed to itself: writing large tables in turn, a
        # few threads held hundreds of MiB that nobody used.
        mallopt(_M_ARENA_MAX, 1)
    gc.collect()
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)


def give_back() -> None:
    """Gives free memory back to the system, for when much was used and will not be soon again.

    It takes about a tenth of a millisecond for each MiB that it gives back. Where there is no
    glibc, only what Python keeps is given up.
    """
    _forget_kept()
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def _forget_kept() -> None:
    """Makes Python forget the objects that it keeps to use their memory again.

    It keeps up to 2,000 tuples of each length, and after a peak these lie all over its memory,
    whose blocks of a MiB are given up as a whole or not at all. They are forgotten by a collection
    of all generations alone. So that this need not look at each object, all are put aside
    meanwhile, which takes no time; those of the start are then like the others.
    """
    gc.freeze()
    gc.collect()
    gc.unfreeze()


def own_bytes() -> int:
    """How much memory this process has for itself: what is mapped from files does not count."""
    with suppress(OSError, ValueError, IndexError):
        fields = Path("/proc/self/statm").read_text("ascii").split()
        return (int(fields[1]) - int(fields[2])) * resource.getpagesize()
    return 0


class Peaks:
    """Notices that much more memory was taken, for whatever, and gives back what is free of it.

    What is free cannot be seen cheaply. So memory is given back, at most once in `PERIOD_MS`, when
    the process has `PEAK_BYTES` more than after the last time. If it was still in use then, it is
    given back later: what is expected of the process sinks again slowly.
    """

    PERIOD_MS = 60_000
    PEAK_BYTES = 32 * 1024 * 1024

    def __init__(self, own: Callable[[], int] = own_bytes) -> None:
        self._own_bytes = own
        self._least_bytes = self._expected_bytes = own()
        self._next_ms = 0

    def has_passed(self, steady_ms: int) -> bool:
        """Returns whether memory should be given back now; to be called every second or so."""
        if steady_ms < self._next_ms:
            return False
        self._next_ms = steady_ms + self.PERIOD_MS
        own_bytes = self._own_bytes()
        self._least_bytes = min(self._least_bytes, own_bytes)
        self._expected_bytes -= (self._expected_bytes - self._least_bytes) // 32
        return own_bytes - self._expected_bytes >= self.PEAK_BYTES

    def given_back(self) -> None:
        """Notes that memory was given back."""
        self._expected_bytes = self._own_bytes()


def grow_stack() -> None:
    """Makes the main thread's stack grow now, while there is room; otherwise raises MemoryError.

    The system lets the stack grow when a deep call first needs it. If the address space is limited
    and used up by then, the stack cannot grow, and the system ends the process with SIGSEGV. A
    limit may also be set later, by `prlimit`.
    """
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit != resource.RLIM_INFINITY:
        with suppress(OSError):
            used_pages = int(Path("/proc/self/statm").read_text("ascii").split()[0])
            if used_pages * resource.getpagesize() + STACK_BYTES > limit:
                raise MemoryError("the stack has no room")
    _call_deeply(_STACK_CALLS)


def _call_deeply(count: int) -> int:
    """Calls itself `count` times through `max`, which is written in C.

    A call from Python to Python does not use the C stack, but a call through C does.
    """
    return max((count - 1,), key=_call_deeply) if count else 0


class MemoryReserve:
    """Address space that is reserved without being used, and released when memory runs short.

    When a large allocation fails, Python raises MemoryError and goes on; when its smallest
    allocations fail too, the interpreter may abort the process or crash. So the reserve is released
    at the first MemoryError. It takes address space only, no memory. `is_given` is True while
    memory is short.
    """

    def __init__(self) -> None:
        self._held: mmap.mmap | None = None
        self.is_given = False

    def take(self) -> bool:
        """Reserves the address space, also after it was released; returns whether it is held."""
        if self._held is None:
            with suppress(OSError, MemoryError):
                self._held = mmap.mmap(-1, RESERVE_BYTES, flags=mmap.MAP_PRIVATE)
                self.is_given = False
        return self._held is not None

    def give(self) -> bool:
        """Releases the reserve if it is held; returns False if memory was short already."""
        first, self.is_given = not self.is_given, True
        if self._held is not None:
            self._held.close()
            self._held = None
        return first


reserve: Final = MemoryReserve()
"""The only reserve of this process."""
