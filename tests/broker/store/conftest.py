# SPDX-License-Identifier: Apache-2.0
"""What the store's tests share: a file system in memory that fails on demand, stores, messages."""

from __future__ import annotations

import errno
import mmap
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from txrocketmq.broker.store.config import StoreConfig
from txrocketmq.broker.store.files import Entry
from txrocketmq.broker.store.message_store import MessageStore, PutMessage

NOW_MS = 1_700_000_000_000
ROOT = "/store"
HOST = bytes([127, 0, 0, 1]) + (10911).to_bytes(4, "big")
IPV6_HOST = bytes(15) + b"\1" + (10911).to_bytes(4, "big")

SMALL: dict[str, Any] = {
    "mapped_file_size_commit_log": 8192,
    "mapped_file_size_consume_queue": 100,
    "mapped_file_size_consume_queue_ext": 128,
    "max_hash_slot_num": 7,
    "max_index_num": 40,
    "commit_log_recover_max_num": 1000,
}
GOLDEN: dict[str, Any] = {
    "mapped_file_size_commit_log": 262_144,
    "mapped_file_size_consume_queue": 2_000,
    "mapped_file_size_consume_queue_ext": 65_536,
    "max_hash_slot_num": 500,
    "max_index_num": 2_000,
}


class _Held:
    def __init__(self, held: set[str], path: str) -> None:
        self._held = held
        self._path = path

    def release(self) -> None:
        self._held.discard(self._path)


class MemoryFiles:
    """Files in memory. `room_bytes` is what the disk still has; `broken` paths fail to sync.

    `after_power_loss` is the disk as it would be then: files with what was synced last.
    """

    def __init__(self) -> None:
        self.maps: dict[str, mmap.mmap] = {}
        self.small: dict[str, bytes] = {}
        self.durable: dict[str, bytes] = {}
        self.directories: set[str] = set()
        self.modified: dict[str, int] = {}
        self.room_bytes: int | None = None
        self.broken: set[str] = set()
        self.ratio = 0.1
        self.boot_ms = 0
        self.held: set[str] = set()
        self.synced: list[str] = []

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

    def write(self, path: str, data: bytes) -> None:
        self.small[path] = data
        self.modified.setdefault(path, NOW_MS)

    def remove(self, path: str) -> None:
        if self.maps.pop(path, None) is None:
            del self.small[path]
        self.durable.pop(path, None)

    def map(self, path: str, size_bytes: int) -> mmap.mmap:
        if path not in self.maps:
            self.maps[path] = mmap.mmap(-1, size_bytes)
            self.modified.setdefault(path, NOW_MS)
        return self.maps[path]

    def allocate(self, path: str, offset_bytes: int, length_bytes: int) -> None:
        if self.room_bytes is None:
            return
        if length_bytes > self.room_bytes:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
        self.room_bytes -= length_bytes

    def sync(self, path: str) -> None:
        if path in self.broken:
            raise OSError(errno.EIO, os.strerror(errno.EIO), path)
        self.synced.append(path)
        self.durable[path] = self.read(path)

    def modified_ms(self, path: str) -> int:
        return self.modified[path]

    def used_ratio(self, path: str) -> float:
        return self.ratio

    def booted_ms(self) -> int:
        return self.boot_ms

    def lock(self, path: str, content: bytes) -> _Held | None:
        if path in self.held:
            return None
        self.held.add(path)
        self.small[path] = content
        return _Held(self.held, path)

    def after_kill(self) -> MemoryFiles:
        """The same disk for a new process."""
        copy = MemoryFiles()
        copy.small = dict(self.small)
        copy.directories = set(self.directories)
        copy.modified = dict(self.modified)
        copy.durable = dict(self.durable)
        for path, mapped in self.maps.items():
            copy.map(path, len(mapped))[:] = mapped[:]
        return copy

    def after_power_loss(self) -> MemoryFiles:
        copy = self.after_kill()
        copy.boot_ms = NOW_MS * 2
        for path, mapped in copy.maps.items():
            mapped[:] = self.durable.get(path, bytes(len(mapped)))
        return copy


@pytest.fixture
def files() -> MemoryFiles:
    return MemoryFiles()


@pytest.fixture
def config() -> Callable[..., StoreConfig]:
    """A configuration with small files, and what is given."""

    def build(**settings: Any) -> StoreConfig:
        return StoreConfig(store_path_root_dir=ROOT, **{**SMALL, **settings})

    return build


@pytest.fixture
def open_store(
    files: MemoryFiles, config: Callable[..., StoreConfig]
) -> Callable[..., MessageStore]:
    """Loads a store, on the `files` fixture if no others are given."""

    def load(on: MemoryFiles | None = None, **settings: Any) -> MessageStore:
        store = MessageStore(config(**settings), files=on or files)
        store.load(NOW_MS)
        return store

    return load


@pytest.fixture
def message() -> Callable[..., PutMessage]:
    """A message with defaults; properties are made of what is indexed."""

    def build(
        topic: str = "Topic",
        queue_id: int = 0,
        body: bytes = b"body",
        *,
        uniq_key: str | None = None,
        keys: str | None = None,
        tags: str | None = None,
        **fields: Any,
    ) -> PutMessage:
        values = {"UNIQ_KEY": uniq_key, "KEYS": keys, "TAGS": tags}
        text = "".join(f"{name}\x01{value}\x02" for name, value in values.items() if value)
        plain = {"tags_code": 0, "born_timestamp_ms": 1, "born_host": HOST, "store_host": HOST}
        return PutMessage(
            topic,
            queue_id,
            body,
            text.encode(),
            uniq_key=uniq_key,
            keys=keys,
            tags=tags,
            **{**plain, **fields},
        )

    return build


@pytest.fixture
def golden_copy(golden_store: Callable[[str], Path], tmp_path: Path) -> Callable[[str, str], Path]:
    """A copy of a golden store that a test may change: of a version, "clean" or "crashed".

    The crashed one looks as if the machine had gone down.
    """

    def copy(version: str, state: str) -> Path:
        source, target = golden_store(version) / state, tmp_path / f"{version}-{state}"
        target.mkdir()
        for name in ("commitlog", "consumequeue", "consumequeue_ext", "index"):
            shutil.copytree(source / name, target / name)
        for name in ("checkpoint", "abort", "lock"):
            if (source / name).exists():
                shutil.copy(source / name, target / name)
        if (target / "abort").exists():
            os.utime(target / "abort", (0, 0))
        return target

    return copy


@pytest.fixture
def open_golden() -> Iterator[Callable[..., MessageStore]]:
    """Loads a store at a path, with the file sizes of the golden ones; it is stopped at the end."""
    opened: list[MessageStore] = []

    def load(path: Path, **settings: Any) -> MessageStore:
        store = MessageStore(StoreConfig(store_path_root_dir=str(path), **{**GOLDEN, **settings}))
        store.load(NOW_MS)
        opened.append(store)
        return store

    yield load
    for store in opened:
        store.stop(NOW_MS)
