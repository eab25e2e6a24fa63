# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from txrocketmq.broker.store.disk.mapped_file import MappedFileQueue
from txrocketmq.broker.store.queues.consume_queue import (
    PRE_BLANK_SIZE,
    UNIT,
    UNIT_BYTES,
    ConsumeQueue,
    Unit,
)
from txrocketmq.broker.store.queues.consume_queue_ext import ConsumeQueueExt

FILE_UNITS = 5
SIZE = 10
NOW_MS = 1_700_000_000_000


@pytest.fixture
def queue(files: Any) -> ConsumeQueue:
    return new_queue(files)


def new_queue(files: Any, *, ext: bool = False, load: bool = False) -> ConsumeQueue:
    row = MappedFileQueue(files, "/queue", FILE_UNITS * UNIT_BYTES, "mappedFileSizeConsumeQueue")
    ext_row = MappedFileQueue(files, "/ext", 64, "mappedFileSizeConsumeQueueExt")
    made = ConsumeQueue(
        "T", 0, 0, b"\1T", row, ConsumeQueueExt(ext_row) if ext else None, writes_ext=ext
    )
    if load:
        made.load()
        made.recover()
    return made


def put(queue: ConsumeQueue, *physical_offsets: int) -> None:
    for offset in physical_offsets:
        queue.pending += (offset, SIZE, offset % 3)
    queue.reserve_pending()
    units = queue.pending
    queue.drop_pending()
    queue.append(units, NOW_MS)


def offsets(queue: ConsumeQueue) -> list[int]:
    return [unit.physical_offset for unit in queue.units(0, 1000)]


def test_units_are_appended_over_the_ends_of_files(queue: ConsumeQueue, files: Any) -> None:
    put(queue, 0, 10, 20)
    put(queue, *range(30, 150, 10))
    assert queue.max_offset == queue.next_offset == 15
    assert queue.max_physical_offset == 150
    assert offsets(queue) == list(range(0, 150, 10))
    assert len(files.maps) == 3
    assert queue.pending == []
    assert queue.unit(14) == Unit(140, SIZE, 140 % 3)
    assert queue.unit(15) is None
    assert queue.unit(-1) is None


def test_units_of_one_file_are_read_at_once(queue: ConsumeQueue) -> None:
    put(queue, *range(0, 70, 10))

    def read(offset: int, count: int) -> int:
        data = queue.read(offset, count)
        return -1 if data is None else len(data) // UNIT_BYTES

    assert read(0, 3) == 3
    assert read(0, 100) == 5
    assert read(3, 100) == 2
    assert read(5, 100) == 2
    assert read(7, 1) == -1
    assert read(-1, 1) == -1
    assert read(0, 0) == -1
    queue.min_offset = 2
    assert read(1, 1) == -1
    assert queue.next_file_offset(3) == 5
    assert queue.next_file_offset(5) == 10


def test_without_room_nothing_is_pending_any_more(queue: ConsumeQueue, files: Any) -> None:
    put(queue, 0)
    files.room_bytes = 0
    queue.pending += (10, SIZE, 0) * 10
    with pytest.raises(OSError, match="No space"):
        queue.reserve_pending()
    queue.drop_pending()
    assert (queue.next_offset, queue.max_offset, queue.pending) == (1, 1, [])
    files.room_bytes = None
    put(queue, 10)
    assert offsets(queue) == [0, 10]


def test_dispatching_again_changes_nothing(queue: ConsumeQueue) -> None:
    assert queue.dispatch(0, 0, SIZE, 0, NOW_MS)
    assert queue.dispatch(1, 50, SIZE, 0, NOW_MS)
    assert not queue.dispatch(0, 0, SIZE, 0, NOW_MS)
    assert not queue.dispatch(1, 50, SIZE, 0, NOW_MS)
    assert not queue.dispatch(1, 60, SIZE, 0, NOW_MS), "the place is taken"
    assert offsets(queue) == [0, 50]
    assert queue.next_offset == 2


def test_a_queue_may_start_late(queue: ConsumeQueue, files: Any) -> None:
    assert queue.dispatch(13, 500, SIZE, 0, NOW_MS)
    assert (queue.min_offset, queue.max_offset, queue.next_offset) == (13, 14, 14)
    assert list(files.maps) == ["/queue/00000000000000000200"]
    data = files.maps["/queue/00000000000000000200"][:]
    assert data[:60] == UNIT.pack(0, PRE_BLANK_SIZE, 0) * 3
    assert data[60:80] == UNIT.pack(500, SIZE, 0)
    again = new_queue(files, load=True)
    assert again.max_physical_offset == 510
    again.correct_min_offset(0)
    assert (again.min_offset, again.max_offset) == (13, 14)


def test_a_gap_is_filled_so_that_units_stay_in_place(queue: ConsumeQueue) -> None:
    put(queue, 0)
    assert queue.dispatch(8, 500, SIZE, 0, NOW_MS)
    assert queue.max_offset == 9
    assert queue.unit(8) == Unit(500, SIZE, 0)
    assert queue.unit(4) == Unit(0, PRE_BLANK_SIZE, 0)


def test_a_dispatch_without_room_leaves_the_queue_as_it_was(
    queue: ConsumeQueue, files: Any
) -> None:
    files.room_bytes = 0
    with pytest.raises(OSError, match="No space"):
        queue.dispatch(0, 0, SIZE, 0, NOW_MS)
    assert queue.pending == []
    files.room_bytes = None
    assert queue.dispatch(0, 0, SIZE, 0, NOW_MS)


@pytest.mark.parametrize("count", [0, 1, 4, 5, 6, 14, 15, 16, 23])
def test_recovery_finds_the_end(files: Any, count: int) -> None:
    queue = new_queue(files)
    for each in range(count):
        put(queue, each * 10)
    again = new_queue(files, load=True)
    assert (again.max_offset, again.next_offset) == (count, count)
    assert again.max_physical_offset == (count * 10 if count else -1)
    assert offsets(again) == [each * 10 for each in range(count)]
    put(again, 1000)
    assert offsets(again)[-1] == 1000


def test_a_gap_in_the_middle_does_not_end_the_queue(files: Any) -> None:
    queue = new_queue(files)
    put(queue, *range(0, 230, 10))
    files.maps["/queue/00000000000000000300"][20:40] = UNIT.pack(160, 0, 0)
    again = new_queue(files, load=True)
    assert again.max_offset == 23
    assert again.written_from(16) == 17
    assert again.written_before(17) == 15


def test_a_gap_misleads_no_search(files: Any) -> None:
    """Units 0 to 9 are there, 10 to 17 never were, and so the first message is at 0."""
    queue = new_queue(files)
    put(queue, *range(0, 100, 10))
    assert queue.dispatch(18, 500, SIZE, 0, NOW_MS)
    put(queue, 510, 520)
    queue.correct_min_offset(0)
    assert queue.min_offset == 0
    assert [queue.offset_of(at) for at in (0, 5, 90, 91, 500, 501, 520, 521)] == [
        0, 1, 9, 10, 10, 19, 20, 21,
    ]  # fmt: skip
    queue.correct_min_offset(95)
    assert queue.min_offset == 18, "the first unit that is not blank"
    queue.find_min_offset(20)
    assert queue.min_offset == 2


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_searches_are_right_whatever_is_blank(files: Any, data: st.DataObject) -> None:
    disk = type(files)()
    queue = new_queue(disk)
    count = data.draw(st.integers(1, 25))
    put(queue, *range(0, count * 10, 10))
    blank = data.draw(st.sets(st.integers(0, count - 1)))
    for offset in blank:
        file = queue.files.find(offset * UNIT_BYTES)
        assert file is not None
        kind = data.draw(st.sampled_from([bytes(UNIT_BYTES), UNIT.pack(0, PRE_BLANK_SIZE, 0)]))
        file.overwrite(offset * UNIT_BYTES - file.from_offset, kind)
    written = [offset for offset in range(count) if offset not in blank]
    for offset in range(count + 1):
        assert queue.written_from(offset) == min((w for w in written if w >= offset), default=count)
        assert queue.written_before(offset) == max((w for w in written if w < offset), default=-1)
    queue.max_physical_offset = max(written, default=-1) * 10 + SIZE if written else -1
    for physical_offset in range(0, count * 10 + 5, 5):
        queue.find_min_offset(physical_offset)
        expected = min((w for w in written if w * 10 >= physical_offset), default=count)
        assert queue.min_offset == expected


def test_recovery_looks_further_back_when_the_last_files_are_empty(files: Any) -> None:
    queue = new_queue(files)
    put(queue, *range(0, 230, 10))
    for path in sorted(files.maps)[1:]:
        files.maps[path][:] = bytes(100)
    again = new_queue(files, load=True)
    assert offsets(again) == list(range(0, 50, 10))
    files.maps[min(files.maps)][:] = bytes(100)
    again = new_queue(files, load=True)
    assert again.max_offset == 0
    put(again, 7)
    assert offsets(again) == [7]


@pytest.mark.parametrize("cut", [0, 1, 5, 95, 100, 101, 149, 150])
def test_units_of_messages_that_are_gone_are_taken_off(files: Any, cut: int) -> None:
    queue = new_queue(files)
    put(queue, *range(0, 150, 10))
    queue.truncate(cut)
    kept = [offset for offset in range(0, 150, 10) if offset < cut]
    assert offsets(queue) == kept
    assert queue.next_offset == len(kept)
    assert queue.max_physical_offset == (kept[-1] + SIZE if kept else -1)
    again = new_queue(files, load=True)
    assert offsets(again) == kept, "nothing is left behind the end"


def test_the_minimum_follows_the_log(files: Any) -> None:
    queue = new_queue(files)
    put(queue, *range(0, 150, 10))
    for minimum, expected in ((0, 0), (1, 1), (10, 1), (75, 8), (140, 14), (141, 15), (999, 15)):
        queue.correct_min_offset(minimum)
        assert queue.min_offset == expected
    assert queue.max_offset == 15


def test_files_behind_the_minimum_go_but_never_the_last(files: Any) -> None:
    queue = new_queue(files)
    put(queue, *range(0, 150, 10))
    first, second, _ = sorted(files.maps)
    assert queue.take_files_before(40) == []
    assert [file.path for file in queue.take_files_before(41)] == [first]
    assert queue.min_offset == 5
    assert [file.path for file in queue.take_files_before(9999)] == [second]
    assert (queue.min_offset, queue.max_offset) == (15, 15)
    assert files.removed == [], "that is done elsewhere"
    del files.maps[first], files.maps[second]
    again = new_queue(files, load=True)
    again.correct_min_offset(9999)
    assert (again.min_offset, again.max_offset) == (15, 15)
    put(again, 10_000)
    assert offsets(again) == [10_000]


def test_a_destroyed_queue_starts_anew(queue: ConsumeQueue, files: Any) -> None:
    put(queue, *range(0, 150, 10))
    queue.destroy()
    assert not files.maps
    assert (queue.min_offset, queue.max_offset, queue.next_offset) == (0, 0, 0)
    put(queue, 7)
    assert offsets(queue) == [7]


def test_ext_units_hold_the_tags(files: Any) -> None:
    queue = new_queue(files, ext=True)
    put(queue, *range(0, 120, 10))
    assert [unit.tags_code for unit in queue.units(0, 99)] == [
        each % 3 for each in range(0, 120, 10)
    ]
    unit = queue.read(0, 1)
    assert unit is not None
    stored = UNIT.unpack(unit)[2]
    assert stored == -(1 << 63)
    again = new_queue(files, ext=True, load=True)
    assert [unit.tags_code for unit in again.units(0, 99)][-1] == 110 % 3
    put(again, 121)
    assert again.unit(12) == Unit(121, SIZE, 1)
    again.take_files_before(100)
    assert again.unit(11) == Unit(110, SIZE, 2)
    files.maps = {path: each for path, each in files.maps.items() if "ext" not in path}
    lost = new_queue(files, ext=True, load=True)
    assert lost.tags_code(stored) is None
    assert lost.unit(11) == Unit(110, SIZE, 0)


TIMES = [5, 5, 7, 7, 7, 9, 9, 12]


@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("removed", [0, 3])
def test_offsets_by_time(queue: ConsumeQueue, upper: bool, removed: int) -> None:
    put(queue, *range(0, 80, 10))
    queue.correct_min_offset(removed * 10)
    there = range(removed, len(TIMES))

    def stored_ms(offset: int) -> int:
        return TIMES[offset]

    for time_ms in range(15):
        if upper:
            expected = max([each for each in there if TIMES[each] <= time_ms], default=removed)
        else:
            expected = min([each for each in there if TIMES[each] >= time_ms], default=len(TIMES))
        assert queue.offset_by_time(time_ms, stored_ms, upper=upper) == expected, time_ms


def test_offsets_by_time_of_an_empty_queue(queue: ConsumeQueue) -> None:
    assert queue.offset_by_time(5, lambda _: 0, upper=False) == 0
    assert queue.offset_by_time(5, lambda _: 0, upper=True) == 0
