# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest

from tests.disk import MemoryFiles
from txrocketmq.broker.store.formats import formats
from txrocketmq.broker.store.timers.timer_check import TimerCheck, TimerProgress

PATH = "/store/config/timercheck"
PROGRESS = TimerProgress(1_700_000_000_000, 104, 2, 0, 1_700_000_000_123, 7)


def test_it_is_the_originals() -> None:
    files = MemoryFiles()
    check = TimerCheck(files, PATH)
    assert check.read() is None
    check.write(PROGRESS)
    data = files.read(PATH)
    assert len(data) == formats.TIMER_CHECK_FILE_BYTES
    found = formats.TIMER_CHECK.parse(data)
    assert (found.last_read_time_ms, found.last_timer_log_flush_pos) == (1_700_000_000_000, 104)
    assert (found.last_timer_queue_offset, found.master_timer_queue_offset) == (2, 2)
    assert (found.timestamp, found.counter) == (1_700_000_000_123, 7)
    assert TimerCheck(files.after_kill(), PATH).read() == PROGRESS
    check.close()


@pytest.mark.parametrize(
    "data", [b"", bytes(55), bytes(4096), b"\xff" * 4096, TimerProgress(5, -1).encode()]
)
def test_what_says_nothing(data: bytes) -> None:
    files = MemoryFiles()
    files.write(PATH, data)
    assert TimerCheck(files, PATH).read() is None


def test_what_a_slave_has_not_read_yet() -> None:
    files = MemoryFiles()
    data = PROGRESS.encode()
    files.write(PATH, data[:24] + (1).to_bytes(8, "big") + data[32:])
    found = TimerCheck(files, PATH).read()
    assert found is not None
    assert found.queue_offset == 1


def test_a_slave_notes_how_far_its_master_has_come() -> None:
    files = MemoryFiles()
    progress = PROGRESS._replace(queue_offset=1, master_offset=9)
    files.write(PATH, progress.encode())
    assert TimerCheck(files, PATH).read() == progress
    assert formats.TIMER_CHECK.parse(files.read(PATH)).master_timer_queue_offset == 9
