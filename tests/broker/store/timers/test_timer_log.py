# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest

from tests.disk import MemoryFiles
from txrocketmq.broker.store.disk.mapped_file import MappedFile
from txrocketmq.broker.store.formats import formats
from txrocketmq.broker.store.timers import timer_log
from txrocketmq.broker.store.timers.timer_log import NONE, UNIT_BYTES, TimerLog, TimerUnit
from txrocketmq.remoting.message.record import MAGIC_BLANK

FILE_BYTES = 4096
A_FILE = (FILE_BYTES - 16) // UNIT_BYTES
LATE_MS = 1 << 60


def opened(files: MemoryFiles) -> TimerLog:
    log = TimerLog(files, "/store/timerlog", FILE_BYTES)
    assert log.load()
    return log


def walked(log: TimerLog, file: MappedFile, least_ms: int = 0) -> list[tuple[int, TimerUnit]]:
    """What a walk through a file finds."""
    return [each for _, found in log.walk(file, least_ms) for each in found]


def test_units_are_the_originals() -> None:
    files = MemoryFiles()
    log = opened(files)
    assert log.append(NONE, 1, 1_000, 4_000, (77, 200, -5)) == 0
    assert log.append(0, 3, 2_000, 1_500, (99, 201, 6)) == UNIT_BYTES
    data = files.read("/store/timerlog/00000000000000000000")
    assert len(data) == FILE_BYTES
    unit = formats.TIMER_LOG_UNIT.parse(data)
    assert dict(unit, _io=None) == {
        "_io": None, "size": 52, "prev_pos": -1, "magic": 1, "curr_write_time": 1_000,
        "delayed_time": 3_000, "physical_offset": 77, "physical_size": 200,
        "real_topic_hash": -5, "reserved": 0,
    }  # fmt: skip
    second = log.unit(UNIT_BYTES)
    assert second is not None
    assert (second.prev_pos, second.due_ms, second.place) == (0, 1_500, (99, 201, 6))
    assert (second.is_rolled, second.takes_back) == (True, False)
    assert log.end == 2 * UNIT_BYTES


def test_a_file_ends_with_a_blank() -> None:
    files = MemoryFiles()
    log = opened(files)
    for n in range(A_FILE + 1):
        position = log.append(NONE, 1, 0, n, (n, 1, 0))
    assert position == FILE_BYTES
    data = files.read("/store/timerlog/00000000000000000000")
    blank = formats.TIMER_LOG_BLANK.parse(data[A_FILE * UNIT_BYTES :])
    room = FILE_BYTES - A_FILE * UNIT_BYTES
    assert (blank.room, blank.prev_pos, blank.magic) == (room, 0, MAGIC_BLANK)
    again = opened(files.after_kill())
    first, last = again.files.mapped_files
    found_there = walked(again, first)
    assert [unit.physical_offset for _, unit in found_there] == list(range(A_FILE))
    assert again.is_end_of_file(first, A_FILE * UNIT_BYTES)
    assert len(walked(again, last)) == 1
    assert not again.is_end_of_file(last, FILE_BYTES + UNIT_BYTES)
    found = again.last_unit_of(first)
    assert found is not None
    assert found.physical_offset == A_FILE - 1


@pytest.mark.parametrize(
    ("at", "data"),
    [
        (0, b"\0\0\0\x35"),  # size
        (4, (UNIT_BYTES).to_bytes(8, "big")),  # a chain to itself
        (4, (UNIT_BYTES + 1).to_bytes(8, "big")),  # a chain ahead
        (4, (-2).to_bytes(8, "big", signed=True)),
        (12, b"\0\0\0\0"),  # no mark
        (12, b"\0\0\0\x10"),
        (28, (-1).to_bytes(8, "big", signed=True)),  # offset
        (36, b"\0\0\0\0"),  # size of the message
    ],
)
def test_what_is_no_unit(at: int, data: bytes) -> None:
    log = opened(MemoryFiles())
    for n in range(3):
        log.append(NONE, 1, 0, n, (n, 1, 0))
    file = log.files.mapped_files[0]
    file.map()[UNIT_BYTES + at : UNIT_BYTES + at + len(data)] = data
    assert log.unit(UNIT_BYTES) is None
    assert [position for position, _ in walked(log, file)] == [0]
    ((end, _),) = log.walk(file, 0)
    assert end == UNIT_BYTES


def test_what_nobody_waits_for_is_passed_over() -> None:
    """Unless it is no unit, where the walk ends."""
    log = opened(MemoryFiles())
    dues = [5, 90, 3, 70, 69, 71]
    for n, due_ms in enumerate(dues):
        log.append(NONE, 1, 0, due_ms, (n, 1, 0))
    file = log.files.mapped_files[0]
    found = [(position // UNIT_BYTES, unit.due_ms) for position, unit in walked(log, file, 70)]
    assert found == [(1, 90), (3, 70), (5, 71)]
    assert [end for end, _ in log.walk(file, 1_000)] == [len(dues) * UNIT_BYTES]
    for at, data in ((0, b"\0\0\0\x35"), (12, b"\0\0\0\0"), (12, b"\0\0\0\x10")):
        before = bytes(file.view[2 * UNIT_BYTES + at :][: len(data)])
        file.map()[2 * UNIT_BYTES + at : 2 * UNIT_BYTES + at + len(data)] = data
        ((end, there),) = log.walk(file, 70)
        assert end == 2 * UNIT_BYTES
        assert [position for position, _ in there] == [UNIT_BYTES]
        file.map()[2 * UNIT_BYTES + at : 2 * UNIT_BYTES + at + len(data)] = before


def test_a_walk_has_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timer_log, "_WALK", 10)
    log = opened(MemoryFiles())
    for n in range(25):
        log.append(NONE, 1, 0, n, (n, 1, 0))
    steps = list(log.walk(log.files.mapped_files[0], 8))
    assert [end // UNIT_BYTES for end, _ in steps] == [10, 20, 25]
    assert [len(found) for _, found in steps] == [2, 10, 5]


def test_of_full_files_it_is_known_until_when_they_are_due() -> None:
    files = MemoryFiles()
    log = opened(files)
    for n in range(2 * A_FILE + 3):
        log.append(NONE, 1, 0, 500 if n == 7 else n % 40, (n, 1, 0))
    first, second, last = log.files.mapped_files
    for each in (log, opened(files.after_kill())):
        assert (each.is_past(first, 500), each.is_past(first, 501)) == (False, True)
        assert (each.is_past(second, 39), each.is_past(second, 40)) == (False, True)
        assert not each.is_past(last, 1_000)


def test_what_is_written_after_a_walk_counts_too() -> None:
    files = MemoryFiles()
    log = opened(files)
    for n in range(10):
        log.append(NONE, 1, 0, 1_000 - n, (n, 1, 0))
    again = opened(files.after_kill())
    file = again.files.mapped_files[0]
    for end, _ in again.walk(file, 0):
        again.end_at(end, 0)
    for n in range(A_FILE):
        again.append(NONE, 1, 0, n, (10 + n, 1, 0))
    assert (again.is_past(file, 1_000), again.is_past(file, 1_001)) == (False, True)


def test_a_file_that_was_made_anew_is_not_known() -> None:
    files = MemoryFiles()
    log = opened(files)
    for n in range(A_FILE + 1):
        log.append(NONE, 1, 0, 5, (n, 1, 0))
    file = log.files.mapped_files[0]
    assert log.is_past(file, 6)
    kept = files.read(log.dues.path)
    log.end_at(0, 0)
    for n in range(A_FILE + 1):
        log.append(NONE, 1, 0, 5_000, (n, 1, 0))
    assert not log.is_past(log.files.mapped_files[0], 6)
    files.write(log.dues.path, kept)
    again = opened(files)
    assert not again.is_past(again.files.mapped_files[0], 6)


@pytest.mark.parametrize("position", [-1, 1, UNIT_BYTES, FILE_BYTES, 1 << 60])
def test_where_no_unit_is(position: int) -> None:
    log = opened(MemoryFiles())
    log.append(NONE, 1, 0, 0, (0, 1, 0))
    assert log.unit(position) is None


def test_what_lies_behind_the_end_is_no_more() -> None:
    files = MemoryFiles()
    log = opened(files)
    for n in range(A_FILE + 5):
        log.append(NONE, 1, 0, n, (n, 1, 0))
    log.end_at(2 * UNIT_BYTES, 0)
    assert (log.end, log.files.flushed_offset) == (2 * UNIT_BYTES, 0)
    data = files.read("/store/timerlog/00000000000000000000")
    assert not any(data[2 * UNIT_BYTES :])
    assert len(files.entries("/store/timerlog")) == 1


def test_expired_files() -> None:
    log = opened(MemoryFiles())
    for n in range(3 * A_FILE):
        log.append(NONE, 1, 0, n, (n, 1, 0))
    assert log.take_expired(A_FILE - 1, LATE_MS) == []
    assert log.take_expired(2 * A_FILE, A_FILE - 1) == [], "one of the first file still waits"
    taken = log.take_expired(2 * A_FILE, LATE_MS)
    assert [file.from_offset for file in taken] == [0, FILE_BYTES]
    assert log.take_expired(1 << 60, LATE_MS) == []


def test_files_that_are_not_such() -> None:
    files = MemoryFiles()
    files.write("/store/timerlog/00000000000000000000", bytes(100))
    assert not TimerLog(files, "/store/timerlog", FILE_BYTES).load()
    files = MemoryFiles()
    for name in ("00000000000000000000", "00000000000000008192"):
        files.write(f"/store/timerlog/{name}", bytes(FILE_BYTES))
    assert not TimerLog(files, "/store/timerlog", FILE_BYTES).load()


def test_without_room_nothing_is_added() -> None:
    files = MemoryFiles()
    log = opened(files)
    files.room_bytes = 0
    with pytest.raises(OSError, match="space"):
        log.append(NONE, 1, 0, 0, (0, 1, 0))
    assert log.end == 0
    files.room_bytes = None
    assert log.append(NONE, 1, 0, 0, (0, 1, 0)) == 0
    log.close()
