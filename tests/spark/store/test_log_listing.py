# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.spark.far_files import FarFiles
from txrocketmq.spark.store.files import Entry, LocalFiles
from txrocketmq.spark.store.log_listing import log_files


@dataclass(frozen=True)
class CountedFiles(LocalFiles):
    """Remembers what was asked of the disk."""

    asked: list[str] = field(default_factory=list, compare=False)

    def list(self, path: str) -> list[Entry]:
        self.asked.append("list")
        return super().list(path)

    def size_of(self, path: str) -> int:
        self.asked.append(f"size of {int(path[-20:])}")
        return super().size_of(path)


def _make(folder: Path, offset: int, size: int = 100) -> Path:
    path = folder / f"{offset:020d}"
    path.write_bytes(bytes(size))
    return path


def _age(folder: Path, ago_s: int) -> None:
    """As if nothing had come into the folder since."""
    at_ns = time.time_ns() - ago_s * 1_000_000_000
    os.utime(folder, ns=(at_ns, at_ns))


Sizes = Callable[[CountedFiles], list[tuple[int, int]]]


@pytest.fixture
def sizes(tmp_path: Path) -> Sizes:
    _make(tmp_path, 0)
    _make(tmp_path, 100)
    (tmp_path / "notes").write_text("no file of the log")
    _age(tmp_path, 60)

    def sizes_of(files: CountedFiles) -> list[tuple[int, int]]:
        return [(each.first_offset, each.size) for each in log_files(files, str(tmp_path))]

    return sizes_of


def test_a_folder_that_has_not_changed_is_listed_once(sizes: Sizes) -> None:
    files = CountedFiles()
    for _ in range(3):
        assert sizes(files) == [(0, 100), (100, 100)]
    assert files.asked == ["list"]


def test_asking_again_costs_no_more_with_many_files(tmp_path: Path, sizes: Sizes) -> None:
    files = CountedFiles()
    sizes(files)
    assert log_files(files, str(tmp_path)) is log_files(files, str(tmp_path))


def test_files_come_and_go(tmp_path: Path, sizes: Sizes) -> None:
    files = CountedFiles()
    sizes(files)
    _make(tmp_path, 200)
    _age(tmp_path, 50)
    assert sizes(files) == [(0, 100), (100, 100), (200, 100)]
    (tmp_path / f"{0:020d}").unlink()
    _age(tmp_path, 40)
    assert sizes(files) == [(100, 100), (200, 100)]
    assert files.asked == ["list"] * 3


def test_a_folder_that_has_just_changed_may_change_again_in_the_same_instant(
    tmp_path: Path, sizes: Sizes
) -> None:
    files = CountedFiles()
    _make(tmp_path, 200)
    _age(tmp_path, 0)
    sizes(files)
    sizes(files)
    assert files.asked == ["list"] * 2


def test_a_copy_that_is_under_way_grows(tmp_path: Path, sizes: Sizes) -> None:
    files = CountedFiles()
    late = _make(tmp_path, 200, 30)
    _age(tmp_path, 50)
    assert sizes(files)[-1] == (200, 30)
    with late.open("ab") as file:
        file.write(bytes(40))
    assert sizes(files)[-1] == (200, 70)
    assert files.asked == ["list", "size of 200"]
    late.unlink()
    _age(tmp_path, 50)
    assert sizes(files) == [(0, 100), (100, 100)]


def test_an_empty_file_may_become_one_of_the_log(tmp_path: Path, sizes: Sizes) -> None:
    files = CountedFiles()
    late = _make(tmp_path, 200, 0)
    _age(tmp_path, 50)
    assert len(sizes(files)) == 2
    late.write_bytes(bytes(100))
    _age(tmp_path, 50)
    assert len(sizes(files)) == 3


def test_files_of_a_network_and_folders_that_are_not_there(tmp_path: Path, sizes: Sizes) -> None:
    far = FarFiles()
    for _ in range(2):
        assert len(log_files(far, str(tmp_path))) == 2
    assert far.counts["list"] == 2, "a caller with many questions takes Store.at_once"
    with pytest.raises(FileNotFoundError):
        log_files(LocalFiles(), str(tmp_path / "gone"))
