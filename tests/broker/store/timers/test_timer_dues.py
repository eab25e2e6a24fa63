# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest

from tests.disk import MemoryFiles
from txrocketmq.broker.store.timers.timer_dues import TimerDues

PATH = "/store/timerlog.dues"


def opened(files: MemoryFiles) -> TimerDues:
    dues = TimerDues(files, PATH)
    dues.load()
    return dues


def kept(files: MemoryFiles) -> TimerDues:
    """Of two files of a timer log."""
    dues = opened(files)
    dues.note(0, 1_700_000_000_000, 77)
    dues.note(4_096, 1_600_000_000_000, 78)
    dues.keep([0, 4_096, 8_192])
    return dues


def test_what_was_kept_is_there_again() -> None:
    files = MemoryFiles()
    for dues in (kept(files), opened(files)):
        assert dues.latest_ms(0, 77) == 1_700_000_000_000
        assert dues.latest_ms(4_096, 78) == 1_600_000_000_000
        assert dues.latest_ms(0, 78) is None, "another file"
        assert dues.latest_ms(8_192, 78) is None


def test_files_that_are_gone_are_forgotten() -> None:
    files = MemoryFiles()
    dues = kept(files)
    dues.note(8_192, 5, 79)
    dues.keep([4_096, 8_192])
    again = opened(files)
    assert (again.latest_ms(0, 77), again.latest_ms(8_192, 79)) == (None, 5)
    again.forget_from(8_192)
    assert again.latest_ms(8_192, 79) is None
    assert again.latest_ms(4_096, 78) is not None


def test_nothing_is_written_without_a_change() -> None:
    files = MemoryFiles()
    dues = kept(files)
    files.remove(PATH)
    dues.note(0, 1_700_000_000_000, 77)
    dues.keep([0, 4_096])
    assert not files.exists(PATH)


def test_a_damaged_file_tells_nothing() -> None:
    files = MemoryFiles()
    kept(files)
    data = files.read(PATH)
    for at in range(len(data)):
        for changed in (data[:at], data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]):
            files.write(PATH, changed)
            found = opened(files)
            assert found.latest_ms(0, 77) in (None, 1_700_000_000_000)
            assert found.latest_ms(4_096, 78) in (None, 1_600_000_000_000)


@pytest.mark.parametrize(
    "data", [b"", b"{}", b"[]", b"null", b"7", b'{"files":7,"version":1}', b"\xff"]
)
def test_what_is_something_else(data: bytes) -> None:
    files = MemoryFiles()
    files.write(PATH, data)
    assert opened(files).latest_ms(0, 77) is None


def test_without_room_it_is_found_out_again(monkeypatch: pytest.MonkeyPatch) -> None:
    files = MemoryFiles()

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files, "write", full)
    assert kept(files).latest_ms(0, 77) is not None
    assert opened(files).latest_ms(0, 77) is None
