# SPDX-License-Identifier: Apache-2.0
"""What the store's tests share: a file system in memory that fails on demand, stores, messages."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.broker.store.filled import Filled
from tests.disk import MemoryFiles
from txrocketmq.broker.store.formats.config import StoreConfig
from txrocketmq.broker.store.log.commit_point import Policy
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
}
GOLDEN: dict[str, Any] = {
    "mapped_file_size_commit_log": 262_144,
    "mapped_file_size_consume_queue": 2_000,
    "mapped_file_size_consume_queue_ext": 65_536,
    "max_hash_slot_num": 500,
    "max_index_num": 2_000,
}


@pytest.fixture
def files() -> MemoryFiles:
    return MemoryFiles()


@pytest.fixture
def config() -> Callable[..., StoreConfig]:
    """Makes a configuration with small files and the given settings."""

    def build(**settings: Any) -> StoreConfig:
        return StoreConfig(store_path_root_dir=ROOT, **{**SMALL, **settings})

    return build


@pytest.fixture
def open_store(
    files: MemoryFiles, config: Callable[..., StoreConfig]
) -> Callable[..., MessageStore]:
    """Loads a store, by default on the `files` fixture."""

    def load(
        on: MemoryFiles | None = None, *, policy: Policy | None = None, **settings: Any
    ) -> MessageStore:
        store = MessageStore(config(**settings), files=on or files, policy=policy)
        store.load(NOW_MS)
        return store

    return load


@pytest.fixture
def message() -> Callable[..., PutMessage]:
    """Makes a message with defaults; its properties have what the index needs."""

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


@pytest.fixture(params=["closed", "killed"])
def filled(
    request: pytest.FixtureRequest,
    files: Any,
    config: Callable[..., StoreConfig],
    message: Callable[..., PutMessage],
) -> Filled:
    return Filled(files, config, message, closed=request.param == "closed")


@pytest.fixture
def closed(
    files: Any, config: Callable[..., StoreConfig], message: Callable[..., PutMessage]
) -> Filled:
    return Filled(files, config, message, closed=True)


@pytest.fixture
def golden_copy(golden_store: Callable[[str], Path], tmp_path: Path) -> Callable[[str, str], Path]:
    """Makes a copy of a golden store, "clean" or "crashed", that a test may change.

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
    """Loads a store with the file sizes of the golden ones; it is stopped at the end."""
    opened: list[MessageStore] = []

    def load(path: Path, **settings: Any) -> MessageStore:
        store = MessageStore(StoreConfig(store_path_root_dir=str(path), **{**GOLDEN, **settings}))
        store.load(NOW_MS)
        opened.append(store)
        return store

    yield load
    for store in opened:
        store.stop(NOW_MS)
