# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import errno
import gc
import weakref
from pathlib import Path
from typing import Any

import pytest

from txrocketmq.broker.store.disk import mapped_file
from txrocketmq.broker.store.disk.files import OsFiles
from txrocketmq.broker.store.disk.mapped_file import MappedFile, MappedFileQueue, file_name
from txrocketmq.broker.store.formats.errors import FileSizeError

KEY = "mappedFileSizeCommitLog"


@pytest.fixture
def row(files: Any) -> MappedFileQueue:
    return MappedFileQueue(files, "/row", 8192, KEY)


def test_names_have_20_digits() -> None:
    assert file_name(0) == "0" * 20
    assert file_name(1 << 30) == "00000000001073741824"


def test_what_is_appended_can_be_selected(files: Any) -> None:
    file = MappedFile(files, "/file", 100, from_offset=300)
    file.append(b"abc")
    file.append(b"de")
    assert file.wrote_bytes == 5
    assert file.end_offset == 305
    assert file.select(1, 3) == b"bcd"
    assert file.select(0, 6) is None
    assert file.select(-1, 2) is None
    assert file.select(3, -1) is None
    assert file.select(5, 0) == b""
    assert not file.is_full


def test_readers_cannot_write(files: Any) -> None:
    file = MappedFile(files, "/file", 100)
    file.append(b"abc")
    view = file.select(0, 3)
    assert view is not None
    with pytest.raises(TypeError):
        view[0] = 1


def test_room_is_reserved_ahead_and_grows(files: Any) -> None:
    asked: list[tuple[int, int]] = []
    files.allocate = lambda path, offset, length: asked.append((offset, length))
    file = MappedFile(files, "/file", 1 << 20)
    for _ in range(40):
        file.append(bytes(1000))
    starts = [offset for offset, _ in asked]
    assert starts == sorted(set(starts)), "nothing is reserved twice"
    assert all(
        start + size == following
        for (start, size), following in zip(asked, starts[1:], strict=False)
    )
    assert len(asked) < 10
    assert sum(size for _, size in asked) >= 40_000


def test_a_full_disk_is_an_error_and_changes_nothing(files: Any) -> None:
    file = MappedFile(files, "/file", 1 << 20)
    file.append(b"abc")
    files.room_bytes = 0
    with pytest.raises(OSError, match="No space") as raised:
        file.append(bytes(100_000))
    assert raised.value.errno == errno.ENOSPC
    assert file.wrote_bytes == 3
    file.append(b"d")  # that much was reserved before


def test_the_tail_can_be_cleared(files: Any) -> None:
    file = MappedFile(files, "/file", 20_000)
    file.append(b"x" * 20_000)
    file.wrote_bytes = 5
    file.clear_tail()
    assert file.map()[:] == b"x" * 5 + bytes(19_995)
    file.append(b"y")
    assert file.map()[:7] == b"xxxxxy\0"


def test_the_tail_is_cleared_where_files_have_no_holes(files: Any) -> None:
    class NoHoles:
        def __init__(self, data: bytes) -> None:
            self.data = bytearray(data)

        def madvise(self, *args: int) -> None:
            raise OSError(errno.EOPNOTSUPP, "no")

        def __getitem__(self, key: slice) -> bytes:
            return bytes(self.data[key])

        def __setitem__(self, key: slice, value: bytes) -> None:
            self.data[key] = value

    mapped = NoHoles(b"x" * 10_000)
    files.map = lambda path, size: mapped
    file = MappedFile(files, "/file", 10_000, wrote_bytes=5)
    file.clear_tail()
    assert mapped.data == b"x" * 5 + bytes(9_995)


def test_clearing_gives_the_room_back(tmp_path: Path) -> None:
    path = tmp_path / "file"
    file = MappedFile(OsFiles(), str(path), 1 << 20)
    file.append(b"x" * (1 << 19))
    OsFiles().sync(str(path))
    before = path.stat().st_blocks
    file.wrote_bytes = 5
    file.clear_tail()
    assert path.stat().st_blocks < before
    assert path.read_bytes() == b"x" * 5 + bytes((1 << 20) - 5)
    file.append(b"y" * 5000)
    assert path.read_bytes()[:5006] == b"x" * 5 + b"y" * 5000 + b"\0"


def test_slices_outlive_the_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    file = MappedFile(OsFiles(), str(path), 4096)
    file.append(b"abc")
    held = file.select(0, 3)
    mapping = weakref.ref(file.map())
    file.remove()
    assert not path.exists()
    gc.collect()
    assert held == b"abc"
    assert mapping() is not None
    del held
    gc.collect()
    assert mapping() is None, "the last slice took the mapping with it"


def test_a_row_rolls_from_file_to_file(files: Any, row: MappedFileQueue) -> None:
    assert (row.min_offset, row.max_offset, row.last) == (-1, 0, None)
    assert row.find(0) is None
    first = row.roll()
    first.append(bytes(8192))
    second = row.roll()
    second.append(b"abc")
    assert (first.from_offset, second.from_offset) == (0, 8192)
    assert (row.min_offset, row.max_offset) == (0, 8195)
    assert row.find(8191) is first
    assert row.find(8192) is second
    assert row.find(16_383) is second, "written or not"
    assert row.find(16_384) is None
    assert row.find(-1) is None
    assert row.select(8193, 2) == b"bc"
    assert row.select(8190, 4) is None, "no slice crosses files"
    assert sorted(files.maps) == ["/row/" + file_name(0), "/row/" + file_name(8192)]


def test_a_row_may_start_anywhere(row: MappedFileQueue) -> None:
    assert row.roll(20_000).from_offset == 16_384
    assert row.flushed_offset == 16_384


def test_prepared_files_are_used_in_turn_or_discarded(files: Any, row: MappedFileQueue) -> None:
    second = row.prepare(1, 5000)
    first = row.prepare(0, 8192)
    assert row.last is None
    assert row.roll() is first
    assert row.roll() is second
    row.prepare(0, 1)
    assert len(files.maps) == 3
    row.discard_prepared()
    assert len(files.maps) == 2


def loaded(files: Any, sizes: dict[str, int]) -> MappedFileQueue:
    for name, size in sizes.items():
        if size:
            files.map("/row/" + name, size)
        else:
            files.small["/row/" + name] = b""
    row = MappedFileQueue(files, "/row", 8192, KEY)
    row.load()
    return row


def test_loaded_files_are_taken_to_be_full(files: Any) -> None:
    row = loaded(files, {file_name(8192): 8192, file_name(16_384): 8192})
    assert (row.min_offset, row.max_offset, row.flushed_offset) == (8192, 24_576, 24_576)
    assert row.gaps() == []


def test_an_empty_last_file_counts_as_not_there(files: Any) -> None:
    row = loaded(files, {file_name(0): 8192, file_name(8192): 0})
    assert row.max_offset == 8192
    assert row.misfits == []
    assert files.small, "nothing is removed by looking"


@pytest.mark.parametrize("sizes", [{file_name(0): 4096}, {file_name(0): 0, file_name(8192): 8192}])
def test_a_file_of_another_size_is_found(files: Any, sizes: dict[str, int]) -> None:
    row = loaded(files, sizes)
    assert len(row.misfits) == 1
    assert row.fits is (len(sizes) > 1)
    with pytest.raises(FileSizeError, match=f"{KEY} makes it 8192"):
        row.refuse_misfits()


def test_a_file_that_is_too_long_is_not_of_the_row(files: Any) -> None:
    row = loaded(files, {file_name(0): 8192, file_name(8192): 9000})
    assert row.max_offset == 8192
    assert [entry.size_bytes for entry in row.misfits] == [9000]


@pytest.mark.parametrize("name", ["notes.txt", "12", "0000000000000000000x", ".nfs0000000001"])
def test_what_does_not_belong_there_is_named_and_left_alone(files: Any, name: str) -> None:
    row = loaded(files, {name: 8192, file_name(0): 8192})
    assert row.foreign == ["/row/" + name]
    assert row.max_offset == 8192
    assert "/row/" + name in files.maps


def test_a_missing_file_is_told_and_lived_with(files: Any) -> None:
    row = loaded(files, {file_name(0): 8192, file_name(16_384): 8192, file_name(24_576): 8192})
    assert row.gaps() == [(8192, 16_384)]
    last = row.find(25_000)
    assert last is not None
    assert last.from_offset == 24_576
    assert row.find(16_384) is row.mapped_files[1]
    assert row.find(9000) is None
    made = row.insert(9000, b"ab")
    assert row.find(9000) is made
    assert bytes(made.view[:4]) == b"abab"
    assert row.gaps() == []
    assert row.flushed_offset == 8192


def test_truncating_removes_what_is_behind(files: Any) -> None:
    row = loaded(files, {file_name(each * 8192): 8192 for each in range(4)})
    row.truncate(10_000)
    assert row.max_offset == 10_000
    assert row.flushed_offset == 10_000
    assert sorted(files.maps) == ["/row/" + file_name(0), "/row/" + file_name(8192)]
    row.truncate(8192)
    assert row.max_offset == 8192
    assert len(row.mapped_files) == 2, "the file that begins there stays, empty"


def test_an_end_leaves_what_is_behind_alone_until_it_is_removed(files: Any) -> None:
    row = loaded(files, {file_name(each * 8192): 8192 for each in range(4)})
    row.end_at(10_000)
    assert row.max_offset == 10_000
    assert [file.from_offset for file in row.behind] == [16_384, 24_576]
    assert len(files.maps) == 4
    row.remove_behind()
    assert sorted(files.maps) == ["/row/" + file_name(0), "/row/" + file_name(8192)]


def test_overwriting_needs_room(files: Any) -> None:
    row = loaded(files, {file_name(0): 8192})
    files.room_bytes = 4096
    with pytest.raises(OSError, match="No space"):
        row.mapped_files[0].overwrite(100, b"xy")
    files.room_bytes = 8192
    row.mapped_files[0].overwrite(100, b"xy")
    row.mapped_files[0].overwrite(102, b"z")
    assert files.maps["/row/" + file_name(0)][99:104] == b"\0xyz\0"


def test_files_go_first_or_last(files: Any) -> None:
    row = loaded(files, {file_name(each * 8192): 8192 for each in range(4)})
    for file in row.take_first(2):
        file.remove()
    assert row.min_offset == 16_384
    row.remove_last()
    assert row.max_offset == 24_576
    row.destroy()
    assert not files.maps
    assert (row.min_offset, row.max_offset, row.flushed_offset) == (-1, 0, 0)


def test_unflushed_are_the_files_after_the_flushed_offset(row: MappedFileQueue) -> None:
    assert row.unflushed() == []
    for _ in range(3):
        row.roll().append(bytes(8192))
    assert row.unflushed() == row.mapped_files
    row.flushed_offset = 8192
    assert row.unflushed() == row.mapped_files[1:]
    row.flushed_offset = 24_576
    assert row.unflushed() == []
    row.roll().append(b"x")
    assert row.unflushed() == row.mapped_files[3:]


@pytest.mark.parametrize("held", [True, False])
def test_what_is_reserved_of_the_log_is_brought_page_by_page(
    files: Any, monkeypatch: pytest.MonkeyPatch, held: bool
) -> None:
    told: list[tuple[int, int]] = []
    monkeypatch.setattr(
        mapped_file, "fault_page_by_page", lambda _, start, length: told.append((start, length))
    )
    file = MappedFile(files, "/store/log/" + "0" * 20, 65_536, held=held)
    file.append(b"x" * 5_000)
    assert told == ([(0, file.reserved_bytes)] if held else [])
