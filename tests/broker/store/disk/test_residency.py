# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import ctypes
import mmap
import os
import sys
from pathlib import Path

import pytest

from txrocketmq.broker.store.disk import residency
from txrocketmq.broker.store.disk.residency import is_resident

SIZE = 64 * mmap.PAGESIZE


@pytest.fixture
def mapped(tmp_path: Path) -> mmap.mmap:
    """A file that is in memory: it was just written."""
    path = tmp_path / "file"
    path.write_bytes(bytes(SIZE))
    with path.open("r+b") as file:
        return mmap.mmap(file.fileno(), SIZE)


def test_what_was_just_written_is_in_memory(mapped: mmap.mmap) -> None:
    assert is_resident(mapped, 0, SIZE)
    assert is_resident(mapped, 4 * mmap.PAGESIZE, 1)
    assert is_resident(mapped, 0, 0)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere pages cannot be given up")
def test_what_was_given_up_is_not_until_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(bytes(SIZE))
    with path.open("r+b") as file:
        mapped = mmap.mmap(file.fileno(), SIZE)
        for _ in range(100):  # pages that another processor holds are not given up at once
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            if not is_resident(mapped, 0, SIZE):
                break
        else:
            pytest.skip("this file system keeps pages, as one in memory does")
        assert not is_resident(mapped, SIZE - mmap.PAGESIZE, mmap.PAGESIZE)
        os.pread(file.fileno(), SIZE, 0)
        assert is_resident(mapped, 0, SIZE)


def test_a_call_that_fails_and_a_library_without_it_tell_nothing(
    mapped: mmap.mmap, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(residency, "_mincore", lambda *_: -1)
    assert is_resident(mapped, 0, SIZE)
    monkeypatch.setattr(residency, "_mincore", None)
    assert is_resident(mapped, 0, SIZE)


def test_a_single_page_that_is_missing_tells(
    mapped: mmap.mmap, monkeypatch: pytest.MonkeyPatch
) -> None:
    def all_but_one(_: object, length_bytes: int, found: ctypes.Array[ctypes.c_char]) -> int:
        found.raw = bytes([0x81] * (length_bytes // mmap.PAGESIZE - 1) + [0x80])
        return 0

    monkeypatch.setattr(residency, "_mincore", all_but_one)
    assert not is_resident(mapped, 0, SIZE)


def test_the_mapping_can_be_closed_after_it_was_asked_about(mapped: mmap.mmap) -> None:
    assert is_resident(mapped, 0, SIZE)
    mapped.close()
