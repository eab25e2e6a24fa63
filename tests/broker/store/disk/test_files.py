# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from txrocketmq.broker.store.disk.files import Entry, OsFiles


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


def test_what_is_read_ahead_is_in_memory(files: OsFiles, tmp_path: Path) -> None:
    path = str(tmp_path / "file")
    mapped = files.map(path, 1 << 20)
    files.read_ahead(path, 4096, 1 << 18)
    assert files.is_in_memory(mapped, 4096, 1 << 18)
    files.read_ahead(path, 1 << 20, 4096)
    with pytest.raises(FileNotFoundError):
        files.read_ahead(path + "2", 0, 4096)


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


def test_a_file_is_made_with_its_first_bytes(files: OsFiles, tmp_path: Path) -> None:
    path = str(tmp_path / "file")
    files.create(path, 1 << 20, b"content")
    assert os.stat(path).st_size == 1 << 20
    assert files.map(path, 1 << 20)[:8] == b"content\0"
    assert files.has_data(path, 0)
    assert not files.has_data(path, 64 * 1024)
    with pytest.raises(OSError, match="too large"):
        files.create(path + "2", 1 << 62, b"content")
    assert not files.exists(path + "2")


def test_times_and_disks(files: OsFiles, tmp_path: Path) -> None:
    path = str(tmp_path / "file")
    assert files.modified_ms(path) == 0
    files.write(path, b"")
    os.utime(path, (1, 2.5))
    assert files.modified_ms(path) == 2500
    assert 0 <= files.used_ratio(path) <= 1
    assert files.used_ratio(str(tmp_path / "none")) == -1.0
    assert files.free_bytes(path) > 0
    assert files.free_bytes(str(tmp_path / "none")) == -1
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
    "import sys; from txrocketmq.broker.store.disk.files import OsFiles;"
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


def test_a_held_file_is_synced_though_its_name_is_gone(files: OsFiles, tmp_path: Path) -> None:
    path = str(tmp_path / "file")
    files.hold(path)
    files.hold(path)
    mapped = files.map(path, 8192)
    files.allocate(path, 0, 4096)
    mapped[:1] = b"x"
    files.remove(path)
    files.sync(path)
    files.release(path)
    files.release(path)
    with pytest.raises(FileNotFoundError):
        files.sync(path)


def test_a_file_that_is_released_while_it_is_synced_is_closed_afterwards(
    files: OsFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[int] = []

    def sync(descriptor: int) -> None:
        files.release(path)
        os.fstat(descriptor)  # still open
        synced.append(descriptor)

    path = str(tmp_path / "file")
    files.hold(path)
    monkeypatch.setattr(os, "fdatasync", sync)
    files.sync(path)
    (descriptor,) = synced
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)


WITHOUT_DESCRIPTORS = """
import os, resource, sys
from txrocketmq.broker.store.disk.files import OsFiles
files = OsFiles()
held, other, more = (os.path.join(sys.argv[1], name) for name in ("held", "other", "more"))
lock = files.lock(os.path.join(sys.argv[1], "lock"), b"lock")
mapped = files.map(other, 8192)
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
taken = []
try:
    while True:
        taken.append(os.open(os.devnull, os.O_RDONLY))
except OSError:
    pass
for _ in range(100):
    files.sync(other)
    files.allocate(other, 0, 4096)
files.hold(held)
files.map(held, 8192)[:1] = b"x"
for _ in range(100):
    files.sync(held)
    files.sync(other)
try:
    files.map(more, 8192)
except OSError as error:
    print(error.strerror)
print(os.path.exists(more))
"""


def test_what_must_be_opened_takes_a_spare_descriptor(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_DESCRIPTORS, str(tmp_path)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines() == ["Too many open files", "False"]


def test_on_a_disk_all_of_a_file_can_be_read_without_room(files: OsFiles, tmp_path: Path) -> None:
    path = str(tmp_path / "file")
    files.map(path, 1 << 20)
    assert files.filled(path) == 1 << 20
    assert os.stat(path).st_blocks == 0


def test_in_memory_a_file_can_be_read_to_its_last_page(files: OsFiles) -> None:
    place = Path("/dev/shm")
    if not place.is_dir() or not os.access(place, os.W_OK):
        pytest.skip("there is no file system in memory")
    path = str(place / f"txrocketmq-{os.getpid()}")
    try:
        files.map(path, 1 << 20)
        if files.filled(path) == 1 << 20:
            pytest.skip("/dev/shm is not in memory")
        assert files.filled(path) == 0
        files.map(path, 1 << 20)[40_000:40_001] = b"x"
        assert files.filled(path) == 40_960
        assert os.stat(path).st_blocks * 512 == 40_960, "and the hole before it has its pages"
    finally:
        files.remove(path)
