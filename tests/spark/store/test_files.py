# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import errno
import os
import pickle
from pathlib import Path

import pytest

from txrocketmq.spark.arrow.errors import OptionError, StoreError
from txrocketmq.spark.store.files import ArrowFiles, Entry, Files, LocalFiles, files_of, shown


@pytest.fixture(params=["local", "sparing", "arrow"])
def files(request: pytest.FixtureRequest) -> Files:
    # pyarrow's own local files stand for remote ones here; see tests/engine/test_remote.py.
    made: dict[str, Files] = {
        "local": LocalFiles(),
        "sparing": LocalFiles(spares_cache=True),
        "arrow": ArrowFiles("file:///"),
    }
    return made[str(request.param)]


def test_list_by_name_with_sizes(files: Files, tmp_path: Path) -> None:
    (tmp_path / "b").write_bytes(b"12345")
    (tmp_path / "a").mkdir()
    assert files.list(str(tmp_path)) == [Entry("a", 0, True), Entry("b", 5, False)]


def test_what_is_not_there(files: Files, tmp_path: Path) -> None:
    missing = str(tmp_path / "missing")
    assert not files.exists(missing)
    for call in (files.list, files.read):
        with pytest.raises(FileNotFoundError):
            call(missing)
    with pytest.raises(FileNotFoundError):
        files.read_into(missing, 0, memoryview(bytearray(1)))


def test_read(files: Files, tmp_path: Path) -> None:
    path = tmp_path / "file"
    data = os.urandom(10_000)
    path.write_bytes(data)
    assert files.exists(str(path))
    assert files.read(str(path)) == data
    for offset, length in ((0, 10), (9_000, 1_000), (9_990, 100), (10_000, 5), (20_000, 5), (3, 0)):
        buffer = bytearray(length)
        got = files.read_into(str(path), offset, memoryview(buffer))
        assert buffer[:got] == data[offset : offset + length]
        assert got == len(data[offset : offset + length])


def test_read_pieces(files: Files, tmp_path: Path) -> None:
    path = tmp_path / "file"
    data = os.urandom(1000)
    path.write_bytes(data)
    for pieces in (
        [],
        [(0, 1000)],
        [(990, 10), (5, 1), (5, 3)],
        [(n, 7) for n in range(0, 900, 9)],
    ):
        wanted = b"".join(data[at : at + length] for at, length in pieces)
        buffer = bytearray(len(wanted))
        assert files.read_pieces(str(path), pieces, memoryview(buffer)) == len(wanted)
        assert buffer == wanted
    buffer = bytearray(30)
    assert files.read_pieces(str(path), [(0, 10), (995, 10), (2000, 10)], memoryview(buffer)) == 15
    assert buffer[:15] == data[:10] + data[995:]
    with pytest.raises(FileNotFoundError):
        files.read_pieces(str(tmp_path / "missing"), [(0, 1)], memoryview(buffer))


def test_a_read_sees_what_was_appended(files: Files, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"one")
    buffer = bytearray(6)
    assert files.read_into(str(path), 0, memoryview(buffer)) == 3
    with path.open("ab") as file:
        file.write(b"two")
    assert files.read_into(str(path), 0, memoryview(buffer)) == 6
    assert buffer == b"onetwo"


def test_a_file_deleted_after_it_was_read(files: Files, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"one")
    files.read_into(str(path), 0, memoryview(bytearray(3)))
    path.unlink()
    if files.is_remote:
        return  # an open local file stays readable; a server answers that it is gone
    with pytest.raises(FileNotFoundError):
        files.read_into(str(path), 0, memoryview(bytearray(3)))


def test_reads_across_chunks_that_are_and_are_not_cached(tmp_path: Path) -> None:
    path = tmp_path / "file"
    data = os.urandom(9 << 20)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_SYNC)  # only what is clean can go
    assert os.write(descriptor, data) == len(data)
    os.posix_fadvise(descriptor, 4 << 20, 4 << 20, os.POSIX_FADV_DONTNEED)
    os.close(descriptor)
    buffer = bytearray(len(data))
    got = LocalFiles(spares_cache=True).read_into(str(path), 1, memoryview(buffer))
    assert got == len(data) - 1
    assert buffer[:got] == data[1:]


def test_a_file_too_large_to_be_configuration(
    files: Files, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("txrocketmq.spark.store.files._MAX_READ_BYTES", 10)
    path = tmp_path / "file"
    path.write_bytes(bytes(11))
    with pytest.raises(StoreError, match="larger than 10 bytes"):
        files.read(str(path))


def test_they_travel(files: Files) -> None:
    assert pickle.loads(pickle.dumps(files)) == files  # noqa: S301 - our own bytes


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("/data/store/", "/data/store"),
        ("/", "/"),
        ("data/store", "data/store"),
        ("./a:b/c", "./a:b/c"),
        ("file:/data/store", "/data/store"),
        ("file:///data/my%20store/", "/data/my store"),
    ],
)
def test_local_paths(uri: str, path: str) -> None:
    assert files_of(uri) == (LocalFiles(), path)


def test_buckets() -> None:
    options = "endpoint_override=localhost:1&scheme=http&region=x"
    for scheme in ("s3", "s3a", "S3"):
        found = files_of(f"{scheme}://key:secret@bucket/a/store/?{options}")
        assert found == (ArrowFiles(f"s3://key:secret@bucket/?{options}"), "bucket/a/store")
    assert files_of("gs://anonymous@bucket/store")[1] == "bucket/store"
    assert files_of("abfs://box@account.dfs.core.windows.net/a/store")[1] == "box/a/store"


def test_wrong_uris() -> None:
    with pytest.raises(OptionError, match=r"option storePath: s3://\[::1 is not a valid URI"):
        files_of("s3://[::1")
    with pytest.raises(OptionError, match="option storePath='ftp://host/store' is not valid"):
        files_of("ftp://host/store")
    with pytest.raises(StoreError, match=r"^s3://bucket/store cannot be opened: .*nonsense"):
        files_of("s3://key:secret@bucket/store?nonsense=1")
    with pytest.raises(OptionError, match="option out='ftp://host/store' is not valid"):
        files_of("ftp://user:secret@host/store", option="out")
    with pytest.raises(StoreError) as raised:
        files_of("s3://key:secret@bucket:no port/store")
    assert "secret" not in str(raised.value)


def test_shown_without_secrets() -> None:
    assert shown("s3://key:secret@bucket/store?region=x") == "s3://bucket/store"
    assert shown("s3://key:sec/r/et@bucket/store") == "s3://bucket/store"
    assert shown("s3://key:sec/") == "s3:///"
    assert shown("hdfs://[::1]/a@b") == "hdfs://[::1]/a@b"
    assert shown("hdfs://host:8020/a@b") == "hdfs://host:8020/a@b"
    assert shown("/data/store") == "/data/store"


def test_all_that_is_below_a_directory(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "file").write_bytes(b"123")
    for files in (LocalFiles(), ArrowFiles(f"file://{tmp_path}")):
        found = files.tree(f"{tmp_path}/a")
        assert found == {
            f"{tmp_path}/a": [Entry("b", 0, is_dir=True), Entry("file", 3, is_dir=False)],
            f"{tmp_path}/a/b": [],
        }
        assert files.tree(f"{tmp_path}/none") == {}


@pytest.mark.parametrize("spares_cache", [False, True])
def test_a_file_that_is_open_for_small_reads(tmp_path: Path, *, spares_cache: bool) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"0123456789")
    with path.open("r+b") as file:
        file.truncate(1 << 20)
    found = LocalFiles(spares_cache=spares_cache).open(str(path))
    assert found.read(3, 4) == b"3456"
    assert found.read((1 << 20) - 2, 10) == bytes(2), "the file ends"
    assert 10 <= found.first_hole() <= 1 << 20
    path.write_bytes(b"")
    assert found.first_hole() == 0
    found.close()
    with pytest.raises(OSError, match="descriptor"):
        found.read(0, 1)
    with pytest.raises(FileNotFoundError):
        LocalFiles().open(str(tmp_path / "gone"))


def test_a_file_system_that_does_not_know_holes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    path.write_bytes(bytes(10))
    found = LocalFiles().open(str(path))
    code = errno.EOPNOTSUPP

    def fail(*_: int) -> int:
        raise OSError(code, "no holes")

    monkeypatch.setattr(os, "lseek", fail)
    assert found.first_hole() == 10, "all of it may have been written"
    code = errno.EIO
    with pytest.raises(OSError, match="no holes"):
        found.first_hole()
    found.close()


def test_when_a_folder_changed_and_how_large_a_file_is(tmp_path: Path) -> None:
    before_ns = LocalFiles().changed_ns(str(tmp_path))
    os.utime(tmp_path, ns=(5, 5))
    assert before_ns > LocalFiles().changed_ns(str(tmp_path)) == 5
    (tmp_path / "file").write_bytes(bytes(7))
    assert LocalFiles().size_of(str(tmp_path / "file")) == 7
    assert LocalFiles().size_of(str(tmp_path / "gone")) == 0
    with pytest.raises(FileNotFoundError):
        LocalFiles().changed_ns(str(tmp_path / "gone"))


@pytest.mark.parametrize("what", ["list", "read", "read_into", "read_pieces"])
def test_what_may_not_be_read_is_said_in_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """Root may read everything, so that the refusal of the system is made up."""

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", str(tmp_path))

    for name in ("os.open", "os.scandir", "builtins.open"):
        monkeypatch.setattr(name, refuse)
    view = memoryview(bytearray(1))
    arguments = {"read_into": (0, view), "read_pieces": ([(0, 1)], view)}.get(what, ())
    with pytest.raises(StoreError, match=f"^{tmp_path} may not be read by this process, .* right"):
        getattr(LocalFiles(), what)(str(tmp_path), *arguments)


def test_when_a_file_was_written(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_text("x")
    os.utime(path, (1_700_000_000.5, 1_700_000_000.5))
    assert LocalFiles().modified_ms(str(path)) == 1_700_000_000_500
    assert LocalFiles().modified_ms(str(tmp_path / "none")) == 0
