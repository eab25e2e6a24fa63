# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from tests.spark.far_files import FarFiles
from txrocketmq.spark.store.listed_files import ListedFiles


def test_each_folder_is_listed_once(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "file").write_bytes(b"12")
    far = FarFiles()
    files = ListedFiles(far)
    for _ in range(3):
        assert [each.name for each in files.list(f"{tmp_path}/a")] == ["b"]
        assert files.exists(f"{tmp_path}/a/b")
        assert not files.exists(f"{tmp_path}/a/c")
        with pytest.raises(FileNotFoundError):
            files.list(f"{tmp_path}/x")
        assert not files.exists(f"{tmp_path}/x/y")
    assert far.counts == {"list": 2}
    files.look_through(f"{tmp_path}/a/b")
    files.look_through(f"{tmp_path}/gone")
    (tmp_path / "a" / "b" / "late").write_bytes(b"")
    assert [each.name for each in files.list(f"{tmp_path}/a/b")] == ["file"]
    with pytest.raises(FileNotFoundError):
        files.list(f"{tmp_path}/gone")
    assert far.counts == {"list": 2, "tree": 2}


def test_what_is_below_a_missing_directory_is_not_asked_for(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    far = FarFiles()
    files = ListedFiles(far)
    files.list(str(tmp_path))
    for path in ("x", "x/y", "x/y/z"):
        with pytest.raises(FileNotFoundError):
            files.list(f"{tmp_path}/{path}")
    assert files.list(f"{tmp_path}/a") == []
    assert far.counts == {"list": 2}


def test_small_reads_next_to_each_other_are_one(tmp_path: Path) -> None:
    path = tmp_path / "file"
    data = bytes(number % 251 for number in range(50_000))
    path.write_bytes(data)
    far = FarFiles()
    files = ListedFiles(far)
    for at in (0, 20, 7990, 40, 49_990, 60_000):
        view = bytearray(20)
        got = files.read_into(str(path), at, memoryview(view))
        assert view[:got] == data[at : at + 20]
    assert far.counts["read"] == 4, "the blocks 0, 1, 6 and 7"
    view = bytearray(40_000)
    assert files.read_into(str(path), 5, memoryview(view)) == 40_000
    assert bytes(view) == data[5:40_005]
    assert far.counts["read"] == 5
    with pytest.raises(FileNotFoundError):
        files.read_into(str(tmp_path / "none"), 0, memoryview(bytearray(1)))


def test_it_travels_as_the_files_themselves() -> None:
    assert isinstance(pickle.loads(pickle.dumps(ListedFiles(FarFiles()))), FarFiles)  # noqa: S301
    assert repr(ListedFiles(FarFiles())) == repr(FarFiles())
