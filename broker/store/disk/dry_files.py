# SPDX-License-Identifier: Apache-2.0
"""A file system that keeps all changes to itself, for inspecting a store.

Mappings are private copies, made page by page where something is written; what is written,
removed or moved beside is remembered here and seen by whoever asks again. So a store can be opened
by the code that opens it for a broker, and told what that would do, without doing it.

What is written to mappings costs memory until `close`. Nobody can open the store for writing
meanwhile: its lock is taken, for reading.

Java: has no counterpart.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Collection
from typing import Final

from txrocketmq.broker.store.disk.files import Entry, Lock, OsFiles

_PRIVATE: Final = mmap.MAP_PRIVATE | getattr(mmap, "MAP_NORESERVE", 0)
_WRITES: Final = mmap.PROT_READ | mmap.PROT_WRITE


class DryFiles(OsFiles):
    """Files whose changes are kept in memory. `extra` are paths that count as empty files."""

    def __init__(self, extra: Collection[str] = (), *, needs_lock: bool = True) -> None:
        super().__init__()
        self._needs_lock = needs_lock
        self._small = dict.fromkeys(map(os.path.abspath, extra), b"")
        """The contents of small files that were written."""
        self._mapped: dict[str, mmap.mmap] = {}
        """Private mappings by path, which alone contain what is written to them."""
        self._gone: dict[str, None] = {}
        self.moved: list[tuple[str, str]] = []
        """The moves of files and directories, as pairs of source and target."""
        self.removed: list[str] = []
        """The paths that would be removed."""

    def close(self) -> None:
        """Forgets all changes."""
        self._small, self._mapped = {}, {}

    def entries(self, directory: str) -> list[Entry]:
        """See Files."""
        if self._is_gone(directory):
            return []
        found = {entry.name: entry for entry in super().entries(directory)}
        found = {
            name: entry
            for name, entry in found.items()
            if not self._is_gone(os.path.join(directory, name))
        }
        root = os.path.abspath(directory)
        sizes = {path: len(data) for path, data in self._small.items()}
        sizes |= {path: len(mapped) for path, mapped in self._mapped.items()}
        for path, size_bytes in sizes.items():
            if os.path.dirname(path) == root:
                name = os.path.basename(path)
                found[name] = Entry(name, size_bytes, is_directory=False)
        return sorted(found.values())

    def make_directory(self, path: str) -> None:
        """See Files."""

    def remove_directory(self, path: str) -> None:
        """See Files."""
        if not self.entries(path):
            self._gone[os.path.abspath(path)] = None

    def exists(self, path: str) -> bool:
        """See Files."""
        key = os.path.abspath(path)
        if key in self._small or key in self._mapped:
            return True
        return not self._is_gone(path) and super().exists(path)

    def read(self, path: str) -> bytes:
        """See Files."""
        key = os.path.abspath(path)
        if key in self._small:
            return self._small[key]
        if self._is_gone(path):
            raise FileNotFoundError(path)
        return super().read(path)

    def write(self, path: str, data: bytes | memoryview) -> None:
        """See Files."""
        self._small[os.path.abspath(path)] = bytes(data)

    def remove(self, path: str) -> None:
        """See Files."""
        if self.exists(path):
            self.removed.append(path)
        self._forget(path)

    def move(self, path: str, target: str) -> None:
        """See Files."""
        self.moved.append((path, target))
        self._forget(path)

    def map(self, path: str, size_bytes: int) -> mmap.mmap:
        """See Files; the mapping is a private copy."""
        key = os.path.abspath(path)
        if key not in self._mapped:
            self._mapped[key] = self._copy(path, size_bytes)
        return self._mapped[key]

    def _copy(self, path: str, size_bytes: int) -> mmap.mmap:
        if self._is_gone(path) or not super().exists(path):
            return mmap.mmap(-1, size_bytes)
        with open(path, "rb") as file:
            if os.fstat(file.fileno()).st_size >= size_bytes:
                return mmap.mmap(file.fileno(), size_bytes, flags=_PRIVATE, prot=_WRITES)
            content = file.read()
        mapped = mmap.mmap(-1, size_bytes)
        mapped[: len(content)] = content
        return mapped

    def create(self, path: str, size_bytes: int, content: bytes) -> None:
        """See Files."""
        self.map(path, size_bytes)[: len(content)] = content

    def hold(self, path: str) -> None:
        """See Files."""

    def release(self, path: str) -> None:
        """See Files."""

    def filled(self, path: str) -> int:
        """See Files."""
        return len(self._mapped[os.path.abspath(path)])

    def has_data(self, path: str, offset_bytes: int) -> bool:
        """See Files."""
        return True

    def allocate(self, path: str, offset_bytes: int, length_bytes: int) -> None:
        """See Files."""

    def sync(self, path: str) -> None:
        """See Files."""

    def read_ahead(self, path: str, offset_bytes: int, length_bytes: int) -> bytes:
        """Reads nothing, as an inspection may wait for the disk itself."""
        return b""

    def lock(self, path: str, content: bytes) -> Lock | None:
        """See Files; the lock is for reading, so that several may inspect and nobody may write."""
        return self.lock_for_reading(path) or (None if self._needs_lock else _NoLock())

    def _forget(self, path: str) -> None:
        key = os.path.abspath(path)
        self._gone[key] = None
        for table in (self._small, self._mapped):
            for each in [each for each in table if each == key or each.startswith(key + os.sep)]:
                del table[each]

    def _is_gone(self, path: str) -> bool:
        key = os.path.abspath(path)
        while key != os.path.dirname(key):
            if key in self._gone:
                return True
            key = os.path.dirname(key)
        return False


class _NoLock:
    """Stands for a lock that is not needed, or that another inspection holds."""

    def release(self) -> None:
        """See Lock."""
