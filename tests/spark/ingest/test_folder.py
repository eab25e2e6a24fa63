# SPDX-License-Identifier: Apache-2.0
"""On a local disk; S3 is in tests/engine/test_ingest_remote.py."""

from __future__ import annotations

import errno
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from pyarrow import fs

from txrocketmq.spark.errors import OptionError
from txrocketmq.spark.ingest.errors import TableBusy
from txrocketmq.spark.ingest.folder import Folder, LocalFolder, RemoteFolder, folder_of


class DiskBehindArrow(RemoteFolder):
    """A remote folder whose file system is a local one: uploads, then renames."""

    def _open(self) -> tuple[fs.FileSystem, str]:
        return fs.LocalFileSystem(), self._uri


@pytest.fixture(params=["local", "remote"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Folder:
    if request.param == "local":
        return LocalFolder(str(tmp_path / "table"))
    return DiskBehindArrow(str(tmp_path / "table"))


def spooled(folder: Folder, content: bytes) -> str:
    path = Path(folder.spool()) / "0.parquet"
    path.write_bytes(content)
    return str(path)


def test_what_is_not_there(folder: Folder) -> None:
    assert folder.list("a") == []
    assert list(folder.walk("a")) == []
    assert folder.read("a/b") is None
    assert folder.size("a/b") is None
    with pytest.raises(FileNotFoundError):
        folder.open("a/b")
    folder.delete("a/b")
    folder.delete_folder("a")


def test_files_are_written_replaced_listed_and_deleted(folder: Folder) -> None:
    folder.write("a/b/two", b"1")
    folder.write("a/b/two", b"22")
    folder.write("a/one", b"")
    assert folder.list("a") == ["b", "one"]
    assert list(folder.walk("a")) in (["a/b/two", "a/one"], ["a/one", "a/b/two"])
    assert folder.read("a/b/two") == b"22"
    assert folder.size("a/b/two") == 2
    assert folder.size("a/b") is None
    with folder.open("a/b/two") as file:
        assert file.read() == b"22"
    folder.delete("a/one")
    folder.delete_folder("a/b")
    assert list(folder.walk("a")) == []


def test_a_file_is_created_once(folder: Folder) -> None:
    assert folder.create("plans/1", b"first")
    assert not folder.create("plans/1", b"second")
    assert folder.read("plans/1") == b"first"
    assert folder.list("plans") == ["1"]


def test_a_file_that_cannot_be_written_leaves_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_handle: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    folder = LocalFolder(str(tmp_path))
    monkeypatch.setattr("os.fsync", full)
    for put in (folder.write, folder.create):
        with pytest.raises(OSError, match="No space"):
            put("a", b"1")
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_what_was_killed_while_it_wrote_a_file_is_swept(tmp_path: Path) -> None:
    folder = LocalFolder(str(tmp_path))
    writing = folder._written(b"1")
    left = writing.__enter__()
    assert left.is_file()
    folder.sweep_spools()
    assert not left.exists()


def test_a_part_that_is_there_is_there_all_the_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second attempt puts the same in its place; the first may be committed by then."""
    folder = DiskBehindArrow(str(tmp_path / "table"))
    folder.publish(spooled(folder, b"part"), "topic=a/part.parquet")
    monkeypatch.setattr(folder, "delete", lambda path: pytest.fail(f"{path} is gone for a moment"))
    second = spooled(folder, b"part")
    assert folder.publish(second, "topic=a/part.parquet") == 4
    assert not Path(second).exists()


def test_a_part_leaves_the_spool_for_its_place(folder: Folder) -> None:
    for content in (b"old", b"newer"):
        path = spooled(folder, content)
        assert folder.publish(path, "topic=a/part.parquet") == len(content)
        assert folder.read("topic=a/part.parquet") == content
        assert not Path(path).exists()
    assert folder.list("topic=a") == ["part.parquet"]


def test_folders_are_on_the_disk_before_what_lies_in_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = LocalFolder(str(tmp_path / "table"))
    path = spooled(folder, b"part")
    synced: list[Path] = []
    monkeypatch.setattr("txrocketmq.spark.ingest.folder._sync_folder", synced.append)
    folder.publish(path, "topic=a/dt=b/part.parquet")
    inside = [str(each.relative_to(tmp_path)) for each in synced]
    assert inside == ["table", "table/topic=a", "table/topic=a/dt=b"]


def test_folders_travel_to_workers(folder: Folder) -> None:
    folder.write("a", b"1")
    assert pickle.loads(pickle.dumps(folder)).read("a") == b"1"  # noqa: S301


def test_spools_are_swept(tmp_path: Path) -> None:
    folder = LocalFolder(str(tmp_path))
    path = spooled(folder, b"left behind")
    folder.sweep_spools()
    assert not Path(path).exists()
    assert folder.list("_ingest") == []


@pytest.mark.parametrize("sweep", [RemoteFolder.spool, RemoteFolder.sweep_spools])
def test_a_remote_folder_sweeps_the_spools_of_processes_that_are_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sweep: Callable[[RemoteFolder], object]
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    folder = DiskBehindArrow(str(tmp_path / "table"))
    mine = Path(folder.spool())
    gone = mine.with_name(mine.name.replace(f"-{os.getpid()}-", "-99999999-"))
    gone.mkdir()
    other = tmp_path / "somebody-else"
    other.mkdir()
    sweep(folder)
    assert mine.is_dir()
    assert other.is_dir()
    assert not gone.exists()


def test_one_run_writes_at_a_time(tmp_path: Path) -> None:
    folder = LocalFolder(str(tmp_path / "table"))
    program = (
        "import sys\nfrom txrocketmq.spark.ingest.folder import LocalFolder\n"
        "from txrocketmq.spark.ingest.errors import TableBusy\n"
        "try:\n  with LocalFolder(sys.argv[1]).lock(): print('held')\n"
        "except TableBusy as error: print(error)"
    )

    def other() -> str:
        command = [sys.executable, "-c", program, str(tmp_path / "table")]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    with folder.lock():
        assert "another run is writing to" in other()
        with pytest.raises(TableBusy), folder.lock():
            pass
    assert other() == "held\n"


def test_a_disk_that_knows_no_locks_is_not_a_busy_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(_file: object, _how: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("fcntl.flock", refused)
    with pytest.raises(OSError, match="No locks"), LocalFolder(str(tmp_path)).lock():
        pass


def test_a_path_or_uri_says_which_folder(tmp_path: Path) -> None:
    assert isinstance(folder_of(str(tmp_path)), LocalFolder)
    assert folder_of(f"file://{tmp_path}").name == str(tmp_path)
    remote = folder_of("s3://key:secret@bucket/table?endpoint_override=127.0.0.1:9&scheme=http")
    assert isinstance(remote, RemoteFolder)
    assert remote.name == "s3://bucket/table"
    with pytest.raises(OptionError, match="ftp"):
        folder_of("ftp://host/table")


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path in (tmp_path / "file", tmp_path / "file" / "in" / "it"):
        with pytest.raises(OptionError, match=f"{tmp_path / 'file'} is a file"):
            folder_of(str(path))
    with pytest.raises(OptionError, match="option out is empty"):
        folder_of(" ")
