# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from typing import Any

import pytest

from tests.broker.store.log.test_log_walk import Opened
from tests.broker.store.log.test_log_walk import opened as opened  # noqa: PLC0414 - a fixture
from tests.broker.store.opening.test_coverage import overwrite, places, queue_of
from txrocketmq.broker.store.formats.scan import Record
from txrocketmq.broker.store.log.log_walk import record_at
from txrocketmq.broker.store.queues.consume_queue import (
    PRE_BLANK_SIZE,
    UNIT,
    UNIT_BYTES,
    ConsumeQueue,
)
from txrocketmq.broker.store.upkeep.unit_repair import UnitRepair


def record_of(opened: Opened, offset: int) -> Record:
    found = record_at(opened.log, places(opened, "A", 0)[offset][0], check_crc=True)
    assert found is not None
    return found


def fields_of(record: Record, tags_code: int) -> list[int]:
    return [record.physical_offset, record.size_bytes, tags_code]


@pytest.fixture
def queue(opened: Opened) -> ConsumeQueue:
    return queue_of(opened, "A", 0)


def fields(queue: ConsumeQueue, offset: int) -> tuple[int, int]:
    unit = queue.stored(offset)
    assert unit is not None
    return unit[:2]


def test_a_unit_that_is_there_stays(opened: Opened, queue: ConsumeQueue) -> None:
    assert not UnitRepair(opened.log).put(
        queue, record_of(opened, 3), fields_of(record_of(opened, 3), 77)
    )


@pytest.mark.parametrize(
    "wrong", [bytes(UNIT_BYTES), UNIT.pack(0, PRE_BLANK_SIZE, 0), UNIT.pack(40_000, 9, 9)]
)
def test_gaps_and_wrong_units_are_filled_in_place(
    opened: Opened, queue: ConsumeQueue, wrong: bytes
) -> None:
    for offset in (2, 3, 4, 5):
        overwrite(queue, offset, wrong)
    repair = UnitRepair(opened.log)
    for offset in (2, 3, 5):
        record = record_of(opened, offset)
        assert repair.put(queue, record, fields_of(record, 77))
        assert fields(queue, offset) == (record.physical_offset, record.size_bytes)
    assert queue.stored(3) == (*fields(queue, 3), 77)
    if not any(wrong):
        assert fields(queue, 4) == (0, PRE_BLANK_SIZE), "or an original would end the queue there"
    assert queue.max_offset == 10
    assert queue.files.flushed_offset <= 2 * UNIT_BYTES


@pytest.mark.parametrize("offset", [0, 7])
def test_a_file_that_is_missing_is_made(
    opened: Opened, queue: ConsumeQueue, files: Any, offset: int
) -> None:
    row = queue.files
    gone = next(file for file in row.mapped_files if file.from_offset == offset // 5 * 100)
    row.mapped_files.remove(gone)
    gone.remove()
    repair = UnitRepair(opened.log)
    if offset == 7:
        assert queue.max_offset == 10
        queue.cut(5)
        assert repair.put(queue, record_of(opened, 7), fields_of(record_of(opened, 7), 0)), (
            "behind a gap"
        )
        assert fields(queue, 5) == (0, PRE_BLANK_SIZE)
    else:
        assert repair.put(queue, record_of(opened, 0), fields_of(record_of(opened, 0), 0))
        assert fields(queue, 1) == (0, PRE_BLANK_SIZE)
        assert gone.path in files.maps


def test_a_message_of_an_earlier_life_does_not_get_in(opened: Opened, queue: ConsumeQueue) -> None:
    overwrite(queue, 6, bytes(UNIT_BYTES))
    early = record_of(opened, 2)._replace(queue_offset=6)
    late = record_of(opened, 9)._replace(queue_offset=6)
    repair = UnitRepair(opened.log)
    assert not repair.put(queue, early, fields_of(early, 0))
    assert not repair.put(queue, late, fields_of(late, 0))
    assert not repair.put(queue, early._replace(queue_offset=30), fields_of(early, 0))
    assert repair.put(queue, record_of(opened, 6), fields_of(record_of(opened, 6), 0))


def test_a_first_message_behind_all_others_begins_the_queue_anew(
    opened: Opened, queue: ConsumeQueue
) -> None:
    last = record_of(opened, 9)
    anew = last._replace(queue_offset=0, physical_offset=last.physical_offset + 5000)
    assert UnitRepair(opened.log).put(queue, anew, fields_of(anew, 5))
    assert (queue.min_offset, queue.max_offset) == (0, 1)
    assert fields(queue, 0) == (anew.physical_offset, anew.size_bytes)


def test_what_cannot_be_read_in_a_damaged_part_gets_fillers(
    opened: Opened, queue: ConsumeQueue
) -> None:
    at, size = fields(queue, 3)
    overwrite_log(opened, at + size - 8, b"\xff" * 8)
    UnitRepair(opened.log).blank(queue, fields(queue, 2)[0], fields(queue, 5)[0])
    assert fields(queue, 2)[1] != PRE_BLANK_SIZE
    assert fields(queue, 3) == (0, PRE_BLANK_SIZE)
    assert fields(queue, 4)[1] != PRE_BLANK_SIZE


def overwrite_log(opened: Opened, at: int, data: bytes) -> None:
    file = opened.log.find(at)
    assert file is not None
    start = at - file.from_offset
    file.map()[start : start + len(data)] = data
