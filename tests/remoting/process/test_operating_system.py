# SPDX-License-Identifier: Apache-2.0
"""Each choice with what Linux has, and without: both have to do the same."""

from __future__ import annotations

import errno
import fcntl
import mmap
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import pytest

from txrocketmq.remoting.process import operating_system
from txrocketmq.remoting.process.operating_system import (
    PAGE_BYTES,
    cores,
    forget,
    is_running,
    make_hole,
    private_file,
    read_cached,
    read_no_further,
    reserve,
    sync_data,
)

SIZE = 4 * PAGE_BYTES


@pytest.fixture(params=["linux", "elsewhere"])
def system(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Linux, or a system that has only what macOS has."""
    if request.param == "elsewhere":
        for name in (
            *("posix_fallocate", "fdatasync", "posix_fadvise", "sched_getaffinity", "RWF_NOWAIT"),
            *("POSIX_FADV_DONTNEED", "memfd_create"),
        ):
            monkeypatch.delattr(os, name)
        monkeypatch.delattr(mmap, "MADV_REMOVE")
    return str(request.param)


@pytest.fixture
def descriptor(tmp_path: Path) -> Iterator[int]:
    """A sparse file with a few bytes in its second page."""
    opened = os.open(tmp_path / "file", os.O_RDWR | os.O_CREAT)
    os.ftruncate(opened, SIZE)
    os.pwrite(opened, b"data", PAGE_BYTES + 7)
    yield opened
    os.close(opened)


def room(descriptor: int) -> int:
    return os.fstat(descriptor).st_blocks * 512


def test_a_range_gets_room_and_keeps_what_is_in_it(system: str, descriptor: int) -> None:
    before = os.pread(descriptor, SIZE, 0)
    assert room(descriptor) < SIZE
    reserve(descriptor, 0, SIZE)
    assert room(descriptor) >= SIZE
    assert os.pread(descriptor, SIZE + 1, 0) == before


def test_a_range_beyond_the_end_makes_the_file_longer(system: str, descriptor: int) -> None:
    reserve(descriptor, SIZE - 1, PAGE_BYTES + 1)
    assert os.fstat(descriptor).st_size == SIZE + PAGE_BYTES
    assert os.pread(descriptor, 4, PAGE_BYTES + 7) == b"data"


def test_what_is_there_is_not_written_again(
    monkeypatch: pytest.MonkeyPatch, descriptor: int
) -> None:
    """A mapping may be writing to that page."""
    monkeypatch.delattr(os, "posix_fallocate")
    written: list[int] = []

    def pwrite(descriptor: int, data: memoryview, offset: int) -> int:
        written.append(offset)
        return len(data)

    monkeypatch.setattr(os, "pwrite", pwrite)
    reserve(descriptor, 0, SIZE)
    assert written == [0, 2 * PAGE_BYTES, 3 * PAGE_BYTES]


def test_a_full_disk_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """/dev/full is one."""
    monkeypatch.delattr(os, "posix_fallocate")
    full = os.open("/dev/full", os.O_RDWR)
    try:
        with pytest.raises(OSError, match="No space left"):
            reserve(full, 0, PAGE_BYTES)
    finally:
        os.close(full)


def test_what_a_mapping_has_is_synced(
    system: str, descriptor: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    monkeypatch.setattr(os, "fsync", lambda _: asked.append("fsync"))
    if system == "linux":
        monkeypatch.setattr(os, "fdatasync", lambda _: asked.append("fdatasync"))
    else:
        flushed = operating_system._mapped_whole(descriptor)
        monkeypatch.setattr(operating_system, "_mapped_whole", lambda _: Flushes(flushed, asked))
    sync_data(descriptor)
    assert asked == (["fdatasync"] if system == "linux" else ["flush", "fsync"])


class Flushes:
    """A mapping that notes when it is flushed."""

    def __init__(self, mapped: mmap.mmap, asked: list[str]) -> None:
        self._mapped = mapped
        self._asked = asked

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._mapped.close()

    def flush(self) -> None:
        self._mapped.flush()
        self._asked.append("flush")


@pytest.mark.parametrize(
    ("error", "asked"), [(None, ["full"]), (errno.ENOTSUP, ["full", "fsync"]), (errno.EIO, None)]
)
def test_macos_is_asked_in_its_own_way(
    descriptor: int, monkeypatch: pytest.MonkeyPatch, error: int | None, asked: list[str] | None
) -> None:
    """And as usual for a file system that does not know it; a failing disk is no such thing."""
    did: list[str] = []

    def control(_: int, command: int) -> int:
        assert command == 51
        did.append("full")
        if error is not None:
            raise OSError(error, os.strerror(error))
        return 0

    monkeypatch.delattr(os, "fdatasync")
    monkeypatch.setattr(fcntl, "F_FULLFSYNC", 51, raising=False)
    monkeypatch.setattr(fcntl, "fcntl", control)
    monkeypatch.setattr(os, "fsync", lambda _: did.append("fsync"))
    if asked is None:
        with pytest.raises(OSError, match="Input/output error"):
            sync_data(descriptor)
        return
    sync_data(descriptor)
    assert did == asked


def test_an_empty_file_can_be_synced(system: str, tmp_path: Path) -> None:
    opened = os.open(tmp_path / "empty", os.O_RDWR | os.O_CREAT)
    sync_data(opened)
    os.close(opened)


def test_a_hole_reads_as_zeros_or_is_refused(system: str, descriptor: int) -> None:
    reserve(descriptor, 0, SIZE)
    with mmap.mmap(descriptor, SIZE) as mapped:
        if system == "elsewhere":
            with pytest.raises(OSError, match="not supported"):
                make_hole(mapped, PAGE_BYTES, PAGE_BYTES)
            return
        make_hole(mapped, PAGE_BYTES, PAGE_BYTES)
        assert mapped[PAGE_BYTES : 2 * PAGE_BYTES] == bytes(PAGE_BYTES)


def test_what_is_in_memory_is_read_or_it_is_said_that_nobody_knows(
    system: str, descriptor: int
) -> None:
    found = bytearray(4)
    if system == "elsewhere":
        with pytest.raises(OSError, match="not supported") as raised:
            read_cached(descriptor, memoryview(found), PAGE_BYTES + 7)
        assert raised.value.errno == errno.EOPNOTSUPP
        return
    try:
        assert read_cached(descriptor, memoryview(found), PAGE_BYTES + 7) == 4
    except OSError as error:
        assert error.errno in (errno.EOPNOTSUPP, errno.EAGAIN)


def test_advice_is_given_where_it_is_taken(system: str, descriptor: int) -> None:
    read_no_further(descriptor)
    forget(descriptor, 0, SIZE)


def test_there_is_a_core(system: str) -> None:
    assert 1 <= cores() <= (os.cpu_count() or 1)


def test_a_process_is_running_until_it_has_ended() -> None:
    assert is_running(os.getpid())
    assert is_running(1)
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    assert not is_running(ended.pid)
    assert not is_running(1 << 70)


def test_pages_are_brought_one_by_one_where_that_can_be_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told: list[tuple[int, int, int]] = []

    class Mapped:
        def madvise(self, *advice: int) -> None:
            told.append(advice)  # type: ignore[arg-type]
            raise OSError(22, "Invalid argument")

    mapped: Any = Mapped()
    monkeypatch.setattr(mmap, "MADV_RANDOM", 1, raising=False)
    operating_system.fault_page_by_page(mapped, 0, 0)
    operating_system.fault_page_by_page(mapped, 3 * operating_system.PAGE_BYTES + 7, 100)
    monkeypatch.delattr(mmap, "MADV_RANDOM")
    operating_system.fault_page_by_page(mapped, 0, 100)
    assert told == [(1, 3 * operating_system.PAGE_BYTES, 107)]


def test_pages_are_loaded_that_begin_where_nothing_is_written() -> None:
    size = operating_system.PAGE_BYTES
    with mmap.mmap(-1, 6 * size) as mapped:
        mapped[:] = b"x" * len(mapped)
        operating_system.load_unwritten(mapped, size + 1, 4 * size + 1)
        operating_system.load_unwritten(mapped, 5 * size, 5 * size)
        zeros = [at for at, byte in enumerate(mapped[:]) if not byte]
    assert zeros == [2 * size, 3 * size, 4 * size]


@pytest.mark.usefixtures("system")
def test_a_private_file_is_there_for_as_long_as_it_is_needed() -> None:
    with private_file(b"secret") as path:
        assert Path(path).read_bytes() == b"secret"
        assert Path(path).read_bytes() == b"secret", "it can be read more than once"
        if not path.startswith("/proc/self/fd/"):
            assert Path(path).stat().st_mode & 0o077 == 0
    assert not Path(path).exists()
