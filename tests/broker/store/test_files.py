# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from txrocketmq.broker.store.files import Entry, OsFiles


@pytest.fixture
def files() -> OsFiles:
    return OsFiles()


def test_entries_come_by_name(files: OsFiles, tmp_path: Path) -> None:
    (tmp_path / "b").write_bytes(b"123")
    (tmp_path / "a").mkdir()
    assert files.entries(str(tmp_path)) == [Entry("a", 0, True), Entry("b", 3, False)]
    assert files.entries(str(tmp_path / "none")) == []


def test_directories_come_and_go(files: OsFiles, tmp_path: Path) -> None:
    path = str(tmp_path / "x" / "y")
    files.make_directory(path)
    files.make_directory(path)
    assert files.exists(path)
    files.write(path + "/file", b"z")
    files.remove_directory(path)
    assert files.exists(path), "one with something in it stays"
    files.remove(path + "/file")
    files.remove_directory(path)
    files.remove_directory(path)
    assert not files.exists(path)


def test_mapped_files_are_sparse_and_shared(files: OsFiles, tmp_path: Path) -> None:
    path = str(tmp_path / "file")
    mapped = files.map(path, 1 << 20)
    assert os.stat(path).st_size == 1 << 20
    assert os.stat(path).st_blocks == 0
    files.allocate(path, 0, 4096)
    assert os.stat(path).st_blocks * 512 >= 4096
    mapped[:3] = b"abc"
    files.sync(path)
    assert files.read(path)[:4] == b"abc\0"
    again = files.map(path, 1 << 20)
    again[3:4] = b"d"
    assert mapped[:4] == b"abcd"


def test_a_mapping_outlives_its_file(files: OsFiles, tmp_path: Path) -> None:
    path = str(tmp_path / "file")
    mapped = files.map(path, 4096)
    mapped[:1] = b"x"
    view = memoryview(mapped)
    files.remove(path)
    files.remove(path)
    del mapped
    assert bytes(view[:2]) == b"x\0"


def test_a_file_that_is_longer_keeps_its_end(files: OsFiles, tmp_path: Path) -> None:
    path = str(tmp_path / "file")
    files.write(path, bytes(8192))
    files.map(path, 4096)
    assert os.stat(path).st_size == 8192


def test_times_and_disks(files: OsFiles, tmp_path: Path) -> None:
    path = str(tmp_path / "file")
    assert files.modified_ms(path) == 0
    files.write(path, b"")
    os.utime(path, (1, 2.5))
    assert files.modified_ms(path) == 2500
    assert 0 <= files.used_ratio(path) <= 1
    assert files.used_ratio(str(tmp_path / "none")) == -1.0
    assert files.booted_ms() > 1_500_000_000_000


def test_the_lock_holds_within_the_process(files: OsFiles, tmp_path: Path) -> None:
    path = str(tmp_path / "lock")
    held = files.lock(path, b"lock")
    assert held is not None
    assert files.read(path) == b"lock"
    assert files.lock(path, b"lock") is None
    assert OsFiles().lock(path, b"lock") is None
    held.release()
    held.release()
    again = files.lock(path, b"lock")
    assert again is not None
    again.release()


LOCKS = (
    "import sys; from txrocketmq.broker.store.files import OsFiles;"
    "sys.exit(OsFiles().lock(sys.argv[1], b'lock') is None)"
)


def test_the_lock_holds_between_processes(files: OsFiles, tmp_path: Path) -> None:
    path = str(tmp_path / "lock")
    held = files.lock(path, b"lock")
    assert held is not None
    assert files.lock(path, b"lock") is None, "looking does not lose it"
    other = [sys.executable, "-c", LOCKS, path]
    assert subprocess.run(other, check=False).returncode == 1
    held.release()
    assert subprocess.run(other, check=False).returncode == 0
