# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from pathlib import Path

import pytest

from tests.stored import NOW_MS, SETTINGS, contents, filled_store, put_message
from txrocketmq.broker.store.disk.dry_files import DryFiles
from txrocketmq.broker.store.disk.files import OsFiles
from txrocketmq.broker.store.formats.config import StoreConfig
from txrocketmq.broker.store.formats.errors import StoreLocked
from txrocketmq.broker.store.message_store import MessageStore


def test_what_is_written_is_seen_and_not_on_the_disk(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"abc")
    files, path = DryFiles([str(tmp_path / "extra")]), str(tmp_path / "f")
    mapped = files.map(path, 5)
    assert bytes(mapped) == b"abc\0\0"
    mapped[:2] = b"xy"
    files.sync(path)
    files.allocate(path, 0, 5)
    assert bytes(files.map(path, 5)) == b"xyc\0\0"
    assert files.filled(path) == 5
    assert bytes(files.map(str(tmp_path / "new"), 4)) == bytes(4)
    files.write(str(tmp_path / "small"), b"1")
    assert files.read(str(tmp_path / "small")) == b"1"
    assert [entry.name for entry in files.entries(str(tmp_path))] == ["extra", "f", "new", "small"]
    assert contents(tmp_path) == {"f": b"abc"}


def test_what_is_removed_and_moved_is_gone_and_still_on_the_disk(tmp_path: Path) -> None:
    for name in ("a", "b", "d/e", "d/f"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"1")
    before = contents(tmp_path)
    files = DryFiles()
    files.map(str(tmp_path / "a"), 1)
    files.remove(str(tmp_path / "a"))
    files.remove(str(tmp_path / "none"))
    files.move(str(tmp_path / "b"), str(tmp_path / "lost"))
    files.move(str(tmp_path / "d"), str(tmp_path / "lost"))
    assert files.entries(str(tmp_path)) == []
    assert not files.exists(str(tmp_path / "d" / "e"))
    with pytest.raises(FileNotFoundError):
        files.read(str(tmp_path / "b"))
    assert bytes(files.map(str(tmp_path / "a"), 2)) == bytes(2)
    assert files.removed == [str(tmp_path / "a")]
    assert [source for source, _ in files.moved] == [str(tmp_path / "b"), str(tmp_path / "d")]
    assert contents(tmp_path) == before


def test_a_store_is_opened_written_and_closed_without_a_trace(tmp_path: Path) -> None:
    filled_store(tmp_path)
    before = contents(tmp_path)
    store = MessageStore(
        StoreConfig(store_path_root_dir=str(tmp_path), **SETTINGS), files=DryFiles()
    )
    store.load(NOW_MS)
    assert store.put([put_message(1)], NOW_MS)[0].queue_offset == 75
    store.delete_topic("Topic0")
    store.stop(NOW_MS)
    assert contents(tmp_path) == before


def test_whoever_reads_keeps_writers_out_and_no_other_readers(tmp_path: Path) -> None:
    lock = str(tmp_path / "lock")
    held = OsFiles().lock(lock, b"lock")
    assert held is not None
    assert DryFiles().lock(lock, b"") is None
    assert DryFiles(needs_lock=False).lock(lock, b"") is not None
    held.release()
    for path in (lock, str(tmp_path / "none")):
        first, second = DryFiles().lock(path, b""), DryFiles().lock(path, b"")
        assert first is not None
        assert second is not None
        first.release()
        second.release()
    assert not (tmp_path / "none").exists()


def test_a_store_that_is_open_is_not_looked_at(tmp_path: Path) -> None:
    store = filled_store(tmp_path, closes=False)
    config = StoreConfig(store_path_root_dir=str(tmp_path), **SETTINGS)
    with pytest.raises(StoreLocked):
        MessageStore(config, files=DryFiles()).load(NOW_MS)
    store.stop(NOW_MS)
