# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Thread, current_thread, main_thread

import pytest
from hypothesis import given
from hypothesis import strategies as st

from txrocketmq.spark.options.pace import Pace
from txrocketmq.spark.store import windows as module
from txrocketmq.spark.store.files import LocalFiles
from txrocketmq.spark.store.windows import Windows

_DATA = os.urandom(10_000)


class RemoteFiles(LocalFiles):
    """Local files that are read as remote ones are; notes what was read."""

    is_remote = True
    reads: list[tuple[int, int]] = []  # noqa: RUF012 - of the class, which is frozen

    def read_into(self, path: str, offset: int, view: memoryview) -> int:
        self.reads.append((offset, len(view)))
        return super().read_into(path, offset, view)


class SmallSteps(Pace):
    """Waits for nothing."""

    def steps(self, byte_count: int) -> Iterator[tuple[int, int]]:
        for start in range(0, byte_count, 100):
            yield start, min(start + 100, byte_count)


@given(
    st.booleans(),
    st.booleans(),
    st.integers(1, 3000),
    st.lists(st.tuples(st.floats(0, 1), st.integers(1, 4000)), max_size=20),
)
def test_what_is_read_is_in_the_file(
    is_remote: bool, has_pace: bool, window_bytes: int, steps: list[tuple[float, int]]
) -> None:
    with TemporaryDirectory() as name:
        path = str(Path(name) / "file")
        Path(path).write_bytes(_DATA)
        files = RemoteFiles() if is_remote else LocalFiles()
        windows = Windows(files, window_bytes, SmallSteps(1) if has_pace else None)
        at = 0
        for share, length in steps:
            view = windows.read(path, at, length, len(_DATA))
            assert len(view) >= min(length, len(_DATA) - at)
            assert view.tobytes() == _DATA[at : at + len(view)]
            at += int(len(view) * share)
        windows.close()


def test_remote_files_are_read_ahead_and_once(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(_DATA)
    RemoteFiles.reads.clear()
    windows = Windows(RemoteFiles(), 3000)
    at = 0
    while at < len(_DATA):
        view = windows.read(str(path), at, min(3000, len(_DATA) - at), len(_DATA))
        assert view.tobytes() == _DATA[at : at + len(view)]
        at += len(view) - 7 if at + len(view) < len(_DATA) else len(view)  # a record goes on
    windows.close()
    assert RemoteFiles.reads == [(0, 3000), (3000, 3000), (6000, 3000), (9000, 1000)]


def test_what_is_read_ahead_and_not_wanted_is_not_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(_DATA)
    waits, goes_on = Event(), Event()

    class SlowAhead(SmallSteps):
        def wait(self, byte_count: int) -> None:
            if current_thread() is not main_thread():
                waits.set()
                goes_on.wait()

        def steps(self, byte_count: int) -> Iterator[tuple[int, int]]:
            for step in super().steps(byte_count):
                self.wait(0)
                yield step

    RemoteFiles.reads.clear()
    windows = Windows(RemoteFiles(), 1000, SlowAhead(1))
    windows.read(str(path), 0, 1000, len(_DATA))
    waits.wait()
    closing = Thread(target=windows.close)
    closing.start()
    while windows._is_ahead_wanted:
        closing.join(0.001)
    goes_on.set()
    closing.join()
    assert RemoteFiles.reads == [(at, 100) for at in range(0, 1000, 100)]


@pytest.mark.parametrize("has_pace", [False, True])
@pytest.mark.parametrize("files", [LocalFiles(), RemoteFiles()])
def test_pieces_lie_end_to_end(tmp_path: Path, files: LocalFiles, has_pace: bool) -> None:
    path = tmp_path / "file"
    path.write_bytes(_DATA)
    windows = Windows(files, 1000, SmallSteps(1) if has_pace else None)
    windows.read(str(path), 0, 1000, len(_DATA))
    assert windows.pieces(str(path), [(5, 10), (100, 3)]).tobytes() == _DATA[5:15] + _DATA[100:103]
    assert windows.pieces(str(path), [(0, 5000)]).tobytes() == _DATA[:5000]
    assert windows.pieces(str(path), [(0, 4), (9999, 10)]).tobytes() == _DATA[:4] + _DATA[9999:]
    windows.close()


def test_a_window_stays_while_the_next_is_read_ahead(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(_DATA)
    windows = Windows(RemoteFiles(), 1000)
    view = windows.read(str(path), 0, 1000, len(_DATA))
    windows._drop_ahead()  # it has been read by now
    assert view.tobytes() == _DATA[:1000]
    windows.close()


@pytest.mark.parametrize("files", [LocalFiles(), RemoteFiles()])
def test_a_file_that_goes(tmp_path: Path, files: LocalFiles) -> None:
    path = tmp_path / "file"
    path.write_bytes(_DATA)
    windows = Windows(files, 1000)
    windows.read(str(path), 0, 1000, 1000)
    path.unlink()
    with pytest.raises(FileNotFoundError):
        windows.read(str(path), 1000, 1000, len(_DATA))
    windows.close()


def test_buffers_are_used_again() -> None:
    module._free.clear()
    first = Windows(LocalFiles(), 1000)
    buffer = first._buffer
    second = Windows(LocalFiles(), 1000)
    assert second._buffer is not buffer
    first.close()
    second.close()
    assert any(each is buffer for each in module._free)
    for _ in range(5):
        Windows(LocalFiles(), 1000).close()
    assert len(module._free) == 2
    Windows(LocalFiles(), 2000).close()
    assert len(module._free) == 1
