# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest

from tests.disk import MemoryFiles
from txrocketmq.broker.store.formats import formats
from txrocketmq.broker.store.timers.timer_wheel import FILE_BYTES, SLOTS, Slot, TimerWheel

PATH = "/store/timerwheel"
TIME_MS = 1_700_000_005_000


def test_slots_are_the_originals() -> None:
    files = MemoryFiles()
    wheel = TimerWheel(files, PATH, 1_000)
    assert wheel.slot(TIME_MS) is None
    assert not files.exists(PATH)
    wheel.make()
    wheel.add(TIME_MS + 999, 52, 1)
    wheel.add(TIME_MS, 520, 1)
    wheel.add(TIME_MS, 5_200, -1)
    assert wheel.slot(TIME_MS) == wheel.slot(TIME_MS + 1) == Slot(52, 5_200, 1)
    data = files.read(PATH)
    assert len(data) == FILE_BYTES == 38_707_200
    slot = formats.TIMER_WHEEL_SLOT.parse(data[TIME_MS // 1000 % SLOTS * 32 :])
    assert (slot.time, slot.first_pos, slot.last_pos, slot.num, slot.magic) == (
        TIME_MS // 1000, 52, 5_200, 1, 0,
    )  # fmt: skip


def test_a_slot_belongs_to_one_time() -> None:
    wheel = TimerWheel(MemoryFiles(), PATH, 1_000)
    wheel.make()
    wheel.add(TIME_MS, 52, 1)
    later_ms = TIME_MS + SLOTS * 1_000
    assert wheel.slot(later_ms) is None
    wheel.clear(later_ms)
    assert wheel.slot(TIME_MS) is not None
    wheel.add(later_ms, 104, 1)
    assert wheel.slot(TIME_MS) is None
    assert wheel.slot(later_ms) == Slot(104, 104, 1)
    wheel.clear(later_ms)
    assert wheel.slot(later_ms) is None


def test_what_was_there_does_not_count() -> None:
    files = MemoryFiles()
    files.write(PATH, b"\1" * 100)
    wheel = TimerWheel(files, PATH, 100)
    wheel.make()
    assert not any(files.read(PATH))
    assert wheel.floored(1_234) == 1_200
    wheel.remove()
    assert not files.exists(PATH)
    wheel.close()


def test_without_room_there_is_no_wheel() -> None:
    files = MemoryFiles()
    files.room_bytes = 100
    wheel = TimerWheel(files, PATH, 1_000)
    with pytest.raises(OSError, match="space"):
        wheel.make()
    assert not wheel.is_made
    files.room_bytes = None
    wheel.make()
    assert wheel.is_made
