# SPDX-License-Identifier: Apache-2.0
"""The file system as the store uses it: a seam, so that tests can fill the disk or lose a sync.

Every path is absolute or relative to the working directory, as text. All methods raise OSError as
the functions of `os` do; `mapped_file` and the facade turn that into sentences.

Mapped files are created sparse at their full size, and no byte of such a file is written before
`allocate` has reserved it: a store to a page that the disk has no room for kills the process
(SIGBUS) where a plain write would fail. So a full disk shows as ENOSPC from `allocate`.

A mapping keeps one file descriptor (before Python 3.13, which needs none); syncing opens the file
anew, which works from any thread while the reactor's thread writes to the mapping.

Java: MappedFile, UtilAll.ensureDirOK, getDiskPartitionSpaceUsedPercent, and java.io at large.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import sys
from contextlib import suppress
from typing import NamedTuple, Protocol

_held_locks: set[tuple[int, int]] = set()
"""Device and inode of the lock files this process holds: POSIX locks do not hold within one."""


class Entry(NamedTuple):
    """One name in a directory; `size_bytes` is 0 for a directory."""

    name: str
    size_bytes: int
    is_directory: bool


class Lock(Protocol):
    """A held lock."""

    def release(self) -> None:
        """Gives the lock back; the file stays."""


class Files(Protocol):
    """What the store asks of a file system."""

    def entries(self, directory: str) -> list[Entry]:
        """What is in the directory, by name; nothing when there is no such directory."""

    def make_directory(self, path: str) -> None:
        """Makes the directory and those above it, unless they exist."""

    def remove_directory(self, path: str) -> None:
        """Removes the directory if it exists and is empty."""

    def exists(self, path: str) -> bool:
        """Whether something is at the path."""

    def read(self, path: str) -> bytes:
        """The contents of a small file."""

    def write(self, path: str, data: bytes) -> None:
        """Writes a small file anew."""

    def remove(self, path: str) -> None:
        """Removes a file, if it is still there; mappings of it live on."""

    def map(self, path: str, size_bytes: int) -> mmap.mmap:
        """Maps the file, shared; creates it, sparse, where it does not exist or is shorter."""

    def allocate(self, path: str, offset_bytes: int, length_bytes: int) -> None:
        """Reserves room on the disk for a range of the file, keeping what is in it."""

    def sync(self, path: str) -> None:
        """Returns when all that was written to the file, mapped or not, is durable."""

    def modified_ms(self, path: str) -> int:
        """When the file was last written; 0 when somebody has removed it."""

    def used_ratio(self, path: str) -> float:
        """How full the disk is for us, 0.0 to 1.0, rounded up to hundredths; -1.0 if unknown."""

    def booted_ms(self) -> int:
        """When this machine was started; a large number when that is unknown."""

    def lock(self, path: str, content: bytes) -> Lock | None:
        """Takes the exclusive lock on the first byte of the file; None when someone has it."""


class OsFiles:
    """The real file system."""

    def entries(self, directory: str) -> list[Entry]:
        """See Files."""
        try:
            with os.scandir(directory) as found:
                listed = [(each.name, each.stat(), each.is_dir()) for each in found]
        except FileNotFoundError:
            return []
        return sorted(
            Entry(name, 0 if is_directory else status.st_size, is_directory)
            for name, status, is_directory in listed
        )

    def make_directory(self, path: str) -> None:
        """See Files."""
        os.makedirs(path, exist_ok=True)

    def remove_directory(self, path: str) -> None:
        """See Files."""
        try:
            os.rmdir(path)
        except OSError:
            if os.path.isdir(path) and not os.listdir(path):
                raise

    def exists(self, path: str) -> bool:
        """See Files."""
        return os.path.exists(path)

    def read(self, path: str) -> bytes:
        """See Files."""
        with open(path, "rb") as file:
            return file.read()

    def write(self, path: str, data: bytes) -> None:
        """See Files."""
        with open(path, "wb") as file:
            file.write(data)

    def remove(self, path: str) -> None:
        """See Files."""
        with suppress(FileNotFoundError):
            os.unlink(path)

    def map(self, path: str, size_bytes: int) -> mmap.mmap:
        """See Files."""
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            if os.fstat(descriptor).st_size < size_bytes:
                os.ftruncate(descriptor, size_bytes)
            if sys.version_info >= (3, 13):
                return mmap.mmap(descriptor, size_bytes, trackfd=False)
            return mmap.mmap(descriptor, size_bytes)
        finally:
            os.close(descriptor)

    def allocate(self, path: str, offset_bytes: int, length_bytes: int) -> None:
        """See Files."""
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        try:
            os.posix_fallocate(descriptor, offset_bytes, length_bytes)
        finally:
            os.close(descriptor)

    def sync(self, path: str) -> None:
        """See Files."""
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        try:
            os.fdatasync(descriptor)
        finally:
            os.close(descriptor)

    def modified_ms(self, path: str) -> int:
        """See Files."""
        try:
            return os.stat(path).st_mtime_ns // 1_000_000
        except FileNotFoundError:
            return 0

    def used_ratio(self, path: str) -> float:
        """See Files; as UtilAll.getDiskPartitionSpaceUsedPercent computes it."""
        try:
            disk = os.statvfs(path)
        except OSError:
            return -1.0
        used = disk.f_blocks - disk.f_bfree
        whole = used + disk.f_bavail
        if whole <= 0:
            return -1.0
        return -(-used * 100 // whole) / 100

    def booted_ms(self) -> int:
        """See Files."""
        try:
            with open("/proc/stat", encoding="ascii") as stat:
                for line in stat:
                    if line.startswith("btime "):
                        return int(line.split()[1]) * 1000
        except OSError:
            pass
        return 1 << 62

    def lock(self, path: str, content: bytes) -> Lock | None:
        """See Files; a POSIX record lock, which is what FileChannel.tryLock takes."""
        if os.path.exists(path) and _inode(os.stat(path)) in _held_locks:
            # Not even opened: closing any descriptor of it would drop the lock we hold.
            return None
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        inode = _inode(os.fstat(descriptor))
        try:
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 0)
        except OSError:
            os.close(descriptor)
            return None
        os.pwrite(descriptor, content, 0)
        _held_locks.add(inode)
        return _HeldLock(descriptor, inode)


def _inode(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino


class _HeldLock:
    def __init__(self, descriptor: int, inode: tuple[int, int]) -> None:
        self._descriptor = descriptor
        self._inode = inode

    def release(self) -> None:
        """See Lock."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            _held_locks.discard(self._inode)
            self._descriptor = -1
