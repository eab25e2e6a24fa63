# SPDX-License-Identifier: Apache-2.0
"""What Linux has and other systems lack, and what replaces it there; chosen in this module only.

Everybody else calls these functions. What POSIX has is used as it is; two modules that ask for more
have their fallback beside the call, as it is nothing but doing without:
broker/store/disk/residency.py (mincore) and remoting/host/memory.py (mallopt).
"""

from __future__ import annotations

import errno
import fcntl
import mmap
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

PAGE_BYTES: Final = mmap.PAGESIZE
_PIECE_BYTES: Final = 1024 * 1024
_UNKNOWN_CALL: Final = frozenset({errno.ENOTSUP, errno.EOPNOTSUPP, errno.EINVAL, errno.ENOTTY})
"""The errors with which file systems say that they do not have F_FULLFSYNC. On Linux, but not
elsewhere, the first two are the same number."""


def reserve(descriptor: int, offset_bytes: int, length_bytes: int) -> None:
    """Allocates room on the disk for a range of a file, and keeps what is in it.

    Raises OSError if there is no room. The file is at least as long as the end of the range
    afterwards. Where there is no posix_fallocate, zeros are written over zeros, a whole page at a
    time, so nobody else may write to the range meanwhile. (A file system that copies on writing,
    such as APFS, may lack room again later.)
    """
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(descriptor, offset_bytes, length_bytes)
        return
    position, end = offset_bytes, offset_bytes + length_bytes
    while position < end:
        length = min(_PIECE_BYTES, end - position)
        _write_zeros(descriptor, position, os.pread(descriptor, length, position), length)
        position += length


def _write_zeros(descriptor: int, offset: int, content: bytes, length: int) -> None:
    """Writes zeros over the pages of zeros in this part of a file, which may go beyond its end."""
    content = content.ljust(length, b"\0")
    if not content.strip(b"\0"):
        _write_all(descriptor, content, offset)
        return
    for at in range(0, length, PAGE_BYTES):
        page = content[at : at + PAGE_BYTES]
        if not page.strip(b"\0"):
            _write_all(descriptor, page, offset + at)


def _write_all(descriptor: int, data: bytes, offset: int) -> None:
    view = memoryview(data)
    while view:
        count = os.pwrite(descriptor, view, offset)
        view, offset = view[count:], offset + count


def sync_data(descriptor: int) -> None:
    """Returns when all that was written to the file, also through mappings, is on the disk.

    Linux's fdatasync covers mappings. Elsewhere a mapping of the whole file is flushed first, which
    covers the pages of all mappings of it; then macOS needs a call of its own that has the disk
    empty its cache, too.
    """
    if hasattr(os, "fdatasync"):
        os.fdatasync(descriptor)
        return
    if os.fstat(descriptor).st_size:
        with _mapped_whole(descriptor) as mapped:
            mapped.flush()
    full = getattr(fcntl, "F_FULLFSYNC", None)
    if full is not None:
        try:
            fcntl.fcntl(descriptor, full)
        except OSError as error:
            if error.errno not in _UNKNOWN_CALL:
                raise
        else:
            return
    os.fsync(descriptor)


def _mapped_whole(descriptor: int) -> mmap.mmap:
    if sys.version_info >= (3, 13):
        return mmap.mmap(descriptor, 0, trackfd=False)
    return mmap.mmap(descriptor, 0)


def make_hole(mapped: mmap.mmap, offset_bytes: int, length_bytes: int) -> None:
    """Frees whole pages of a mapped file, which then read as zeros. Raises OSError if it cannot."""
    advice = getattr(mmap, "MADV_REMOVE", None)
    if advice is None:
        raise OSError(errno.ENOTSUP, os.strerror(errno.ENOTSUP))
    mapped.madvise(advice, offset_bytes, length_bytes)


def fault_page_by_page(mapped: mmap.mmap, offset_bytes: int, length_bytes: int) -> None:
    """Makes the first write to a page of this range load only that page, where this is possible.

    Otherwise the system also reads as much of the file around the page as read_ahead_kb of the disk
    says, although nothing was ever written there. That takes 10 ms for 8 MiB, and the write waits
    for it.
    """
    advice = getattr(mmap, "MADV_RANDOM", None)
    if advice is None or length_bytes <= 0:
        return
    start = offset_bytes // PAGE_BYTES * PAGE_BYTES
    with suppress(OSError):
        mapped.madvise(advice, start, offset_bytes + length_bytes - start)


def load_unwritten(mapped: mmap.mmap, start_bytes: int, end_bytes: int) -> None:
    """Has the system load the pages that begin in a range where nothing was written yet.

    The first write to a page takes longer than copying what is written there.
    """
    for page in range(-(-start_bytes // PAGE_BYTES), -(-end_bytes // PAGE_BYTES)):
        mapped[page * PAGE_BYTES] = 0


def read_cached(descriptor: int, view: memoryview, offset_bytes: int) -> int:
    """Reads as much as is in memory, without waiting for the disk; returns the number of bytes.

    Raises BlockingIOError if nothing is in memory, and another OSError, such as EOPNOTSUPP, where
    the system cannot say.
    """
    flag = getattr(os, "RWF_NOWAIT", None)
    if flag is None:
        raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))
    return os.preadv(descriptor, [view], offset_bytes, flag)


def read_no_further(descriptor: int) -> None:
    """Switches the system's own read-ahead of a file off, where that can be done."""
    if hasattr(os, "posix_fadvise"):
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_RANDOM)


def forget(descriptor: int, offset_bytes: int, length_bytes: int) -> None:
    """Allows the system to drop a range of a file from its cache, where it can be told so."""
    if hasattr(os, "posix_fadvise"):
        os.posix_fadvise(descriptor, offset_bytes, length_bytes, os.POSIX_FADV_DONTNEED)


@contextmanager
def private_file(content: bytes) -> Iterator[str]:
    """Yields the path of a file with this content, for this user only; removes it at the end.

    On Linux it is in memory, so it needs no folder that can be written to.
    """
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("private")
        path = f"/proc/self/fd/{descriptor}"
    else:
        import tempfile  # noqa: PLC0415 - seldom needed, and it brings much with it

        descriptor, path = tempfile.mkstemp()
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            yield path
    finally:
        if not hasattr(os, "memfd_create"):
            Path(path).unlink()


def cores() -> int:
    """Returns how many cores this process may use: all of the machine's where nothing limits it."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def is_running(process_id: int) -> bool:
    """Returns whether a process with this id exists on this machine, whoever owns it."""
    try:
        os.kill(process_id, 0)
    except PermissionError:
        return True
    except (ProcessLookupError, OverflowError):
        return False
    return True
