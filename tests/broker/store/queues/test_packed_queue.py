# SPDX-License-Identifier: Apache-2.0
"""Units that come packed are written as others are."""

from __future__ import annotations

from errno import ENOSPC
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.broker.store.queues.test_consume_queue import FILE_UNITS, NOW_MS, SIZE, offsets, put
from txrocketmq.broker.kernel.run import packed_units
from txrocketmq.broker.store.disk.mapped_file import MappedFileQueue
from txrocketmq.broker.store.queues.consume_queue import UNIT, UNIT_BYTES, ConsumeQueue
from txrocketmq.broker.store.queues.packed_queue import PackedQueue, append_all, reserved


def new_queue(files: Any, name: str) -> ConsumeQueue:
    row = MappedFileQueue(files, f"/{name}", FILE_UNITS * UNIT_BYTES, "key")
    return ConsumeQueue("T", 3, 0, b"\1T", row)


def packed(places: list[int]) -> bytes:
    return b"".join([UNIT.pack(place, SIZE, place % 3) for place in places])


def bytes_of(queue: ConsumeQueue) -> list[bytes]:
    return [bytes(file.map()) for file in queue.files.mapped_files]


@given(counts=st.lists(st.integers(1, 2 * FILE_UNITS), max_size=5))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_they_are_the_same_bytes(files: Any, counts: list[int]) -> None:
    plain, other = new_queue(files, "plain"), new_queue(files, "other")
    queue = PackedQueue(other)
    assert (queue.topic, queue.queue_id) == ("T", 3)
    place = 0
    for count in counts:
        places = [*range(place, place + SIZE * count, SIZE)]
        place += SIZE * count
        put(plain, *places)
        assert reserved([(queue, count, 0)]) == [other.max_offset]
        append_all([(queue, other.max_offset, packed_units(packed(places)))], NOW_MS)
        assert (other.max_offset, other.next_offset) == (plain.max_offset, plain.next_offset)
        assert queue.max_offset == plain.max_offset
        assert other.max_physical_offset == plain.max_physical_offset
    assert bytes_of(other) == bytes_of(plain)
    for each in (plain, other):
        each.destroy()


def test_room_is_reserved_behind_what_waits(files: Any) -> None:
    queue = PackedQueue(new_queue(files, "queue"))
    assert reserved([(queue, 2, 0)]) == [0]
    queue.queue.next_offset = 2  # it waits to be confirmed
    assert reserved([(queue, 1, 0)]) == [2]
    assert queue.max_offset == 0


def test_only_what_is_missing_is_dispatched(files: Any) -> None:
    queue = PackedQueue(new_queue(files, "queue"))
    put(queue.queue, 0, 10)
    append_all([(queue, 0, packed_units(packed([0, 10, 20])))], NOW_MS)
    assert offsets(queue.queue) == [0, 10, 20]
    append_all([(queue, 1, packed_units(packed([10, 20])))], NOW_MS)
    assert offsets(queue.queue) == [0, 10, 20]
    assert not queue.dispatch_all(0, packed_units(packed([0, 10, 20])), NOW_MS)


def test_a_disk_without_room_says_so(files: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    queue = PackedQueue(new_queue(files, "queue"))

    def full(*_: object) -> None:
        raise OSError(ENOSPC, "no room")

    monkeypatch.setattr(MappedFileQueue, "prepare", full)
    with pytest.raises(OSError, match="no room"):
        reserved([(queue, 1, 0)])
