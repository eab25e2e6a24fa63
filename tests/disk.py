# SPDX-License-Identifier: Apache-2.0
"""A disk in memory: a `Files` of the store that can fill up, fail to sync, and lose its power.

What a power cut leaves follows what Linux promises, and no more:

- What was in a file when it was last synced is there. Each page of 4 KiB that was written since has
  its new content or its old one, independently of all others.
- A sync of a file also makes the names in its folder durable, as ext4 and XFS do. Of the files that
  were created since, the last ones may be gone, and the one before them empty; removed ones may be
  back.
"""

from __future__ import annotations

import errno
import mmap
import os
from collections.abc import Callable
from random import Random
from typing import Any, Final

from txrocketmq.broker.store.disk.files import Entry
from txrocketmq.broker.store.disk.mapped_file import MappedFile

NOW_MS: Final = 1_700_000_000_000
PAGE_BYTES: Final = 4096


def _pages(offset_bytes: int, length_bytes: int) -> range:
    return range(offset_bytes // PAGE_BYTES, -(-(offset_bytes + length_bytes) // PAGE_BYTES))


class _Held:
    def __init__(self, held: set[str], path: str) -> None:
        self._held = held
        self._path = path

    def release(self) -> None:
        self._held.discard(self._path)


class _Content(mmap.mmap):
    """The content of a file: it outlives the mapping, which is all that `close` closes."""

    _is_closed = False

    def close(self) -> None:
        """Marks the mapping as closed; the file keeps its content."""
        self._is_closed = True

    @property
    def closed(self) -> bool:  # type: ignore[override]
        """Whether the mapping was closed."""
        return self._is_closed


class MemoryFiles:
    """Files in memory. `room_bytes` is what the disk still has; `broken` paths fail to sync.

    `failures` are error numbers, by the start of paths that fail to sync with them; `open` is what
    is held.

    The disk does not change by itself: `after_kill`, `after_power_loss` and `after_power_cut` make
    the disk that the next process finds, and leave this one as it is.
    """

    def __init__(self) -> None:
        self.on_shortage: list[Callable[[], object]] = []
        self.maps: dict[str, mmap.mmap] = {}
        self.small: dict[str, bytes] = {}
        self.durable: dict[str, bytes] = {}
        self.named: set[str] = set()
        """Files whose names are durable."""
        self.unlinked: dict[str, bytes] = {}
        """Removed files that may be back after a power cut, with their last synced content."""
        self.directories: set[str] = set()
        self.modified: dict[str, int] = {}
        self.room_bytes: int | None = None
        self.broken: set[str] = set()
        self.ratio = 0.1
        self.free = 1 << 40
        self.boot_ms = 0
        self.now_ms = NOW_MS
        """The time at which files are written; whoever advances the time sets it."""
        self.held: set[str] = set()
        self.synced: list[str] = []
        self.removed: list[str] = []
        self.open: set[str] = set()
        self.failures: dict[str, int] = {}
        self.cold: dict[tuple[str, int], bytes] = {}
        """Pages that are not in memory, by path and number: they read as zeros until read ahead."""
        self.read_ahead_of: list[tuple[str, int, int]] = []

    def entries(self, directory: str) -> list[Entry]:
        names: dict[str, Entry] = {}
        for path in [*self.maps, *self.small, *self.directories]:
            if not path.startswith(directory + "/"):
                continue
            name, slash, _ = path[len(directory) + 1 :].partition("/")
            if slash or path in self.directories:
                names[name] = Entry(name, 0, True)
            else:
                names[name] = Entry(name, len(self.maps.get(path) or self.small[path]), False)
        return sorted(names.values())

    def make_directory(self, path: str) -> None:
        self.directories.add(path)

    def remove_directory(self, path: str) -> None:
        if not self.entries(path):
            self.directories.discard(path)

    def exists(self, path: str) -> bool:
        return path in self.maps or path in self.small or path in self.directories

    def read(self, path: str) -> bytes:
        return self.small[path] if path in self.small else self.maps[path][:]

    def write(self, path: str, data: bytes | memoryview) -> None:
        self.small[path] = bytes(data)
        self.modified[path] = self.now_ms

    def remove(self, path: str) -> None:
        self.removed.append(path)
        if self.maps.pop(path, None) is None:
            self.small.pop(path, None)
        synced = self.durable.pop(path, b"")
        if path in self.named:
            self.named.remove(path)
            self.unlinked[path] = synced

    def move(self, path: str, target: str) -> None:
        moved = False
        tables: list[dict[str, Any]] = [self.maps, self.small, self.durable, self.modified]
        for table in tables:
            for each in [each for each in table if each == path or each.startswith(path + "/")]:
                table[target + each[len(path) :]] = table.pop(each)
                moved = True
        for each in [each for each in self.named if (each + "/").startswith(path + "/")]:
            self.named.discard(each)
            self.named.add(target + each[len(path) :])
        for each in [each for each in self.directories if (each + "/").startswith(path + "/")]:
            self.directories.discard(each)
            self.directories.add(target + each[len(path) :])
            moved = True
        if not moved:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)

    def map(self, path: str, size_bytes: int) -> mmap.mmap:
        if path not in self.maps:
            shorter = self.small.pop(path, b"")
            self.maps[path] = _Content(-1, size_bytes)
            self.maps[path][: len(shorter)] = shorter
            self.modified.setdefault(path, self.now_ms)
        return self.maps[path]

    def create(self, path: str, size_bytes: int, content: bytes) -> None:
        self.allocate(path, 0, PAGE_BYTES)
        self.map(path, size_bytes)[: len(content)] = content

    def has_data(self, path: str, offset_bytes: int) -> bool:
        return path not in self.maps or any(self.maps[path][offset_bytes:])

    def allocate(self, path: str, offset_bytes: int, length_bytes: int) -> None:
        if self.room_bytes is None:
            return
        if length_bytes > self.room_bytes:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
        self.room_bytes -= length_bytes

    def hold(self, path: str) -> None:
        self.open.add(path)

    def release(self, path: str) -> None:
        self.open.remove(path)

    def filled(self, path: str) -> int:
        return 1 << 62  # reading takes no room here

    def sync(self, path: str) -> None:
        for start, number in self.failures.items():
            if path.startswith(start):
                raise OSError(number, os.strerror(number), path)
        if path in self.broken:
            raise OSError(errno.EIO, os.strerror(errno.EIO), path)
        if not self.exists(path):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        self.synced.append(path)
        self.durable[path] = self.read(path)
        folder = os.path.dirname(path)
        self.named.update(
            each for each in (*self.maps, *self.small) if os.path.dirname(each) == folder
        )
        for each in [each for each in self.unlinked if os.path.dirname(each) == folder]:
            del self.unlinked[each]

    def is_in_memory(self, mapped: mmap.mmap, offset_bytes: int, length_bytes: int) -> bool:
        (path,) = (path for path, each in self.maps.items() if each is mapped)
        return not any((path, page) in self.cold for page in _pages(offset_bytes, length_bytes))

    def read_ahead(self, path: str, offset_bytes: int, length_bytes: int) -> bytes:
        self.read_ahead_of.append((path, offset_bytes, length_bytes))
        for page in _pages(offset_bytes, length_bytes):
            if (path, page) in self.cold:
                data = self.cold.pop((path, page))
                self.maps[path][page * PAGE_BYTES : page * PAGE_BYTES + len(data)] = data
        whole = self.maps.get(path)
        return b"" if whole is None else whole[offset_bytes : offset_bytes + length_bytes]

    def evict(self, under: str) -> None:
        """Removes all pages of files under a path from memory."""
        for path, mapped in self.maps.items():
            for page in _pages(0, len(mapped)) if path.startswith(under) else ():
                if (path, page) not in self.cold:
                    data = mapped[page * PAGE_BYTES : (page + 1) * PAGE_BYTES]
                    self.cold[path, page] = data
                    mapped[page * PAGE_BYTES : page * PAGE_BYTES + len(data)] = bytes(len(data))

    def modified_ms(self, path: str) -> int:
        return self.modified[path]

    def used_ratio(self, path: str) -> float:
        return self.ratio

    def free_bytes(self, path: str) -> int:
        return self.free

    def booted_ms(self) -> int:
        return self.boot_ms

    def lock(self, path: str, content: bytes) -> _Held | None:
        if path in self.held:
            return None
        self.held.add(path)
        self.small[path] = content
        return _Held(self.held, path)

    def after_kill(self) -> MemoryFiles:
        """Returns the same disk for a new process."""
        copy = MemoryFiles()
        copy.small = dict(self.small)
        copy.directories = set(self.directories)
        copy.modified = dict(self.modified)
        copy.durable = dict(self.durable)
        copy.named = set(self.named)
        copy.unlinked = dict(self.unlinked)
        copy.now_ms, copy.boot_ms = self.now_ms, self.boot_ms
        for path, mapped in self.maps.items():
            copy.map(path, len(mapped))[:] = mapped[:]
        return copy

    def after_power_loss(self) -> MemoryFiles:
        """Returns the disk after a power cut that only synced content survives; all names do."""
        copy = self.after_kill()
        copy.boot_ms = NOW_MS * 2
        for path, mapped in copy.maps.items():
            mapped[:] = self.durable.get(path, bytes(len(mapped)))
        return copy

    def after_power_cut(self, random: Random) -> MemoryFiles:
        """Returns the disk after a power cut that some unsynced data survives: see the module."""
        copy = MemoryFiles()
        copy.directories = set(self.directories)
        copy.now_ms = self.now_ms + 1
        copy.boot_ms = copy.now_ms
        share = random.choice((0.0, 0.1, 0.5, 0.9, 1.0))
        cut_off: set[str] = set()
        for path in sorted({*self.maps, *self.small}):
            folder, is_empty = os.path.dirname(path), False
            if path not in self.named:
                if folder in cut_off:
                    continue
                if random.random() > share:
                    cut_off.add(folder)
                    is_empty = random.random() < share
                    if not is_empty:
                        continue
            content = b"" if is_empty else self._survivor(path, share, random)
            copy._put_back(path, content, self.modified.get(path, self.now_ms))
        for path, content in sorted(self.unlinked.items()):
            if not copy.exists(path) and random.random() > share:
                copy._put_back(path, content, self.now_ms)
        return copy

    def _survivor(self, path: str, share: float, random: Random) -> bytes:
        """Returns what is in a file whose name survives."""
        content = self.read(path)
        synced = self.durable.get(path)
        if path in self.small:
            return content if random.random() < share else synced or b""
        if synced is None:
            synced = bytes(len(content))
        if len(synced) < len(content):  # it has grown since then
            if random.random() > share:
                content = content[: len(synced)]
            synced = synced.ljust(len(content), b"\0")
        pages = []
        for at in range(0, len(content), PAGE_BYTES):
            page = content[at : at + PAGE_BYTES]
            was = synced[at : at + PAGE_BYTES]
            pages.append(page if page == was or random.random() < share else was)
        return b"".join(pages)

    def _put_back(self, path: str, content: bytes, modified_ms: int) -> None:
        """Puts a file on the disk, durably."""
        self.small[path] = content  # mapped when somebody asks for that
        self.modified[path] = modified_ms
        self.durable[path] = content
        self.named.add(path)


class _Touched:
    """A mapping, and the numbers of the pages that were written, in the order of the first time."""

    def __init__(self, mapped: mmap.mmap, touched: list[int]) -> None:
        self._mapped = mapped
        self._touched = touched

    def __getattr__(self, name: str) -> Any:
        return getattr(self._mapped, name)

    def __getitem__(self, at: Any) -> Any:
        return self._mapped[at]

    def __setitem__(self, at: Any, data: Any) -> None:
        start, end = (at.start, at.stop) if isinstance(at, slice) else (at, at + 1)
        self._touched += [page for page in _pages(start, end - start) if page not in self._touched]
        self._mapped[at] = data


def pages_touched(file: MappedFile) -> list[int]:
    """Returns a list that gets the numbers of the pages of a file that are written from now on."""
    touched: list[int] = []
    mapped: Any = _Touched(file.map(), touched)
    file._map = mapped
    return touched
