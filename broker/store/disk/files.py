# SPDX-License-Identifier: Apache-2.0
"""The file system of the store, replaceable so that tests can fill a disk or lose a sync.

Every path is absolute or relative to the working directory, as text. All methods raise OSError as
the functions of `os` do; `mapped_file` and the facade turn that into sentences.

Mapped files are created sparse at their full size, and no byte of such a file is written before
`allocate` has reserved it: a store to a page that the disk has no room for kills the process
(SIGBUS) where a plain write would fail. So a full disk shows as ENOSPC from `allocate`.

Reading has the same limit where files live in memory (tmpfs): to read a hole of a mapping takes a
page too. `filled` says how far a file can be read without that.

Descriptors. A mapping keeps one (before Python 3.13, which needs none). What is written and synced
again and again, the log, is held open from before its first write: no sync of it needs a new
descriptor, and the kernel reports a failed write to it, while a descriptor that is opened after
the failure may not hear of it. Queues, index and checkpoint are too many for that and are opened
when they are synced. When the process has no descriptor left, what is held or is open for a moment
takes one of a few spare ones; a mapping of anything else fails with EMFILE, a little earlier than
there is none left (descriptors.py).

Syncing works from any thread while the reactor's thread writes to the mapping.

Java: MappedFile, UtilAll.ensureDirOK, getDiskPartitionSpaceUsedPercent, and java.io at large.
"""

from __future__ import annotations

import errno
import fcntl
import mmap
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Final, NamedTuple, Protocol

from txrocketmq.broker.store.disk.descriptors import (
    NO_DESCRIPTORS,
    check_mappable,
    mappings,
    open_file,
    spares,
)
from txrocketmq.broker.store.disk.residency import is_resident
from txrocketmq.broker.store.formats.errors import StoreError
from txrocketmq.remoting.process.operating_system import reserve, sync_data

_IN_MEMORY: Final = frozenset({"tmpfs", "devtmpfs"})
"""The file systems on which even reading a hole of a mapping takes room."""

_held_locks: set[tuple[int, int]] = set()
"""Device and inode of the lock files this process holds: POSIX locks have no effect within one."""


class Entry(NamedTuple):
    """One name in a directory; `size_bytes` is 0 for a directory."""

    name: str
    size_bytes: int
    is_directory: bool


class Lock(Protocol):
    """A held lock."""

    def release(self) -> None:
        """Releases the lock; the file stays."""


class Files(Protocol):
    """What the store asks of a file system."""

    on_shortage: list[Callable[[], object]]
    """Called before a file is mapped when other mappings should be given up first."""

    def entries(self, directory: str) -> list[Entry]:
        """What is in the directory, by name; empty only when there is no such directory.

        Raises StoreError for an entry that cannot be examined, such as a link that leads nowhere:
        that is not the same as one that does not exist.
        """

    def make_directory(self, path: str) -> None:
        """Creates the directory and those above it, unless they exist."""

    def remove_directory(self, path: str) -> None:
        """Removes the directory if it exists and is empty."""

    def exists(self, path: str) -> bool:
        """Whether something is at the path."""

    def read(self, path: str) -> bytes:
        """The contents of a small file."""

    def write(self, path: str, data: bytes | memoryview) -> None:
        """Rewrites a small file."""

    def remove(self, path: str) -> None:
        """Removes a file, if it is still there; mappings of it live on."""

    def move(self, path: str, target: str) -> None:
        """Renames a file or a directory; the directory of the target exists."""

    def map(self, path: str, size_bytes: int) -> mmap.mmap:
        """Maps the file, shared; creates it, sparse, where it does not exist or is shorter."""

    def create(self, path: str, size_bytes: int, content: bytes) -> None:
        """Makes a sparse file that begins with this content; leaves none when it raises."""

    def hold(self, path: str) -> None:
        """Keeps the file open for `sync` and `allocate` until `release`; creates it if need be."""

    def release(self, path: str) -> None:
        """Ends `hold`; a sync that is under way is not disturbed."""

    def filled(self, path: str) -> int:
        """How many bytes of the file can be read through a mapping without taking room.

        Holes before that are given room now. Except on file systems in memory it is the size of the
        file. Raises OSError when there is no room.
        """

    def has_data(self, path: str, offset_bytes: int) -> bool:
        """Whether anything may have been written behind this offset: there is more than a hole."""

    def allocate(self, path: str, offset_bytes: int, length_bytes: int) -> None:
        """Reserves room on the disk for a range of the file, keeping what is in it."""

    def sync(self, path: str) -> None:
        """Returns when all that was written to the file, mapped or not, is durable."""

    def is_in_memory(self, mapped: mmap.mmap, offset_bytes: int, length_bytes: int) -> bool:
        """Whether this range of a mapping can be read without waiting for the disk.

        The offset is a multiple of the page size. Returns True when the system does not tell.
        """

    def read_ahead(self, path: str, offset_bytes: int, length_bytes: int) -> bytes:
        """Reads a range of the file, which is in memory then; may be called in any thread.

        Returns fewer bytes at the end of the file.
        """

    def modified_ms(self, path: str) -> int:
        """When the file was last written; 0 if it was removed."""

    def used_ratio(self, path: str) -> float:
        """How full the disk is for us, 0.0 to 1.0, rounded up to hundredths; -1.0 if unknown."""

    def free_bytes(self, path: str) -> int:
        """How much room the disk has left for us; -1 when that is unknown."""

    def booted_ms(self) -> int:
        """When this machine was started; a large number when that is unknown."""

    def lock(self, path: str, content: bytes) -> Lock | None:
        """Takes the exclusive lock on the first byte of the file; returns None if it is held."""


class OsFiles:
    """The real file system."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held: dict[str, _Held] = {}
        self._in_memory: dict[int, bool] = {}
        """By device: whether its files live in memory."""
        self.on_shortage: list[Callable[[], object]] = []

    def entries(self, directory: str) -> list[Entry]:
        """See Files."""
        try:
            with os.scandir(directory) as found:
                return sorted(_entry(each) for each in found)
        except FileNotFoundError:
            return []

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
        try:
            os.lstat(path)
        except FileNotFoundError:
            return False
        return True

    def read(self, path: str) -> bytes:
        """See Files."""
        with open(path, "rb") as file:
            return file.read()

    def write(self, path: str, data: bytes | memoryview) -> None:
        """See Files."""
        with open(path, "wb") as file:
            file.write(data)

    def remove(self, path: str) -> None:
        """See Files."""
        with suppress(FileNotFoundError):
            os.unlink(path)

    def move(self, path: str, target: str) -> None:
        """See Files."""
        os.rename(path, target)

    def map(self, path: str, size_bytes: int) -> mmap.mmap:
        """See Files."""
        with self._held_open(path) as held:
            if held is not None:
                try:
                    return _map(held, size_bytes)
                except OSError as error:
                    if error.errno not in NO_DESCRIPTORS or not spares.give():
                        raise
                    return _map(held, size_bytes)
        if mappings.is_short():
            for heard in self.on_shortage:
                heard()
        check_mappable(path)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            return _map(descriptor, size_bytes)
        finally:
            os.close(descriptor)

    def create(self, path: str, size_bytes: int, content: bytes) -> None:
        """See Files."""
        descriptor = open_file(path, os.O_RDWR | os.O_CREAT)
        try:
            os.ftruncate(descriptor, size_bytes)
            os.pwrite(descriptor, content, 0)
        except OSError:
            self.remove(path)
            raise
        finally:
            os.close(descriptor)
            spares.fill()

    def hold(self, path: str) -> None:
        """See Files."""
        with self._lock:
            if path not in self._held:
                self._held[path] = _Held(open_file(path, os.O_RDWR | os.O_CREAT))

    def release(self, path: str) -> None:
        """See Files."""
        with self._lock:
            held = self._held.pop(path, None)
            if held is not None:
                held.is_released = True
                held.close_if_unused()

    @contextmanager
    def _held_open(self, path: str) -> Iterator[int | None]:
        """Yields the descriptor held for the file, which stays open meanwhile; None without one."""
        with self._lock:
            held = self._held.get(path)
            if held is not None:
                held.users += 1
        if held is None:
            yield None
            return
        try:
            yield held.descriptor
        finally:
            with self._lock:
                held.users -= 1
                held.close_if_unused()

    @contextmanager
    def _opened(self, path: str) -> Iterator[int]:
        """Yields a descriptor of the file: the one that is held, or a temporary one."""
        with self._held_open(path) as held:
            if held is not None:
                yield held
                return
        descriptor = open_file(path, os.O_RDWR)
        try:
            yield descriptor
        finally:
            os.close(descriptor)
            spares.fill()

    def filled(self, path: str) -> int:
        """See Files."""
        status = os.stat(path)
        if status.st_dev not in self._in_memory:
            self._in_memory[status.st_dev] = _is_in_memory(status.st_dev)
        if not self._in_memory[status.st_dev]:
            return status.st_size
        with self._opened(path) as descriptor:
            return _fill_holes(descriptor, status.st_size)

    def has_data(self, path: str, offset_bytes: int) -> bool:
        """See Files."""
        with self._opened(path) as descriptor:
            try:
                return os.lseek(descriptor, offset_bytes, os.SEEK_DATA) >= 0
            except OSError as error:
                return error.errno != errno.ENXIO

    def allocate(self, path: str, offset_bytes: int, length_bytes: int) -> None:
        """See Files."""
        try:
            with self._opened(path) as descriptor:
                reserve(descriptor, offset_bytes, length_bytes)
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
            why = f"{error.strerror} for {length_bytes:,} more bytes"
            raise OSError(error.errno, why, path) from error

    def sync(self, path: str) -> None:
        """See Files."""
        with self._opened(path) as descriptor:
            sync_data(descriptor)

    def is_in_memory(self, mapped: mmap.mmap, offset_bytes: int, length_bytes: int) -> bool:
        """See Files."""
        return is_resident(mapped, offset_bytes, length_bytes)

    def read_ahead(self, path: str, offset_bytes: int, length_bytes: int) -> bytes:
        """See Files."""
        with self._opened(path) as descriptor:
            return os.pread(descriptor, length_bytes, offset_bytes)

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

    def free_bytes(self, path: str) -> int:
        """See Files."""
        try:
            disk = os.statvfs(path)
        except OSError:
            return -1
        return disk.f_bavail * disk.f_frsize

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
            # It must not even be opened: closing any descriptor of it would drop the lock we hold.
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
        spares.fill()
        return _HeldLock(descriptor, inode)

    def lock_for_reading(self, path: str) -> Lock | None:
        """Takes a lock that excludes writers; returns None if somebody has the store open.

        Without a lock file nobody has the store open; the file is then created for the time being.
        """
        if os.path.exists(path) and _inode(os.stat(path)) in _held_locks:
            return None
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            descriptor = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        try:
            fcntl.lockf(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB, 1, 0)
        except OSError as error:
            os.close(descriptor)
            if error.errno in (errno.EACCES, errno.EAGAIN):
                return None
            raise
        return _HeldLock(descriptor, _inode(os.fstat(descriptor)))


def _entry(found: os.DirEntry[str]) -> Entry:
    """The entry of a directory. Raises StoreError when it cannot be examined."""
    try:
        status, is_directory = found.stat(), found.is_dir()
    except OSError as error:
        why = error.strerror
        if isinstance(error, FileNotFoundError) and found.is_symlink():
            why = f"it is a link to {os.readlink(found.path)}, which does not exist"
        raise StoreError(
            f"{found.path} cannot be examined: {why}. Bring back what it refers to (a volume that"
            " is not mounted, perhaps), or move it out of the store; nothing has been changed"
        ) from error
    return Entry(found.name, 0 if is_directory else status.st_size, is_directory)


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


class _Held:
    """A held descriptor; whoever is using it when it is released closes it afterwards."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self.users = 0
        self.is_released = False

    def close_if_unused(self) -> None:
        if self.is_released and not self.users:
            os.close(self.descriptor)
            spares.fill()


def _map(descriptor: int, size_bytes: int) -> mmap.mmap:
    if os.fstat(descriptor).st_size < size_bytes:
        os.ftruncate(descriptor, size_bytes)
    if sys.version_info >= (3, 13):
        return mmap.mmap(descriptor, size_bytes, trackfd=False)
    return mmap.mmap(descriptor, size_bytes)


def _is_in_memory(device: int) -> bool:
    """Whether the file system with this device number is one of _IN_MEMORY."""
    number = f"{os.major(device)}:{os.minor(device)}"
    try:
        with open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as mounts:
            for line in mounts:
                fields = line.split()
                if fields[2] == number:
                    return fields[fields.index("-") + 1] in _IN_MEMORY
    except (OSError, ValueError, IndexError):
        pass
    return False


def _fill_holes(descriptor: int, size_bytes: int) -> int:
    """Reserves room for the holes between data; returns where the last data end."""
    position = 0
    while position < size_bytes:
        try:
            data = os.lseek(descriptor, position, os.SEEK_DATA)
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise
            return position
        if data > position:
            reserve(descriptor, position, data - position)
        position = os.lseek(descriptor, data, os.SEEK_HOLE)
    return position
