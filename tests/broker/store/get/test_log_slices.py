# SPDX-License-Identifier: Apache-2.0
"""What is no record is never given, wherever the damage is: in the log, or in a queue's unit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.broker.store.get.test_get_message import FOUND, MANY, NOW_MS, REMOVING, Rig
from txrocketmq.broker.store.formats.config import StoreConfig
from txrocketmq.broker.store.formats.put_message import PutMessage
from txrocketmq.broker.store.get.get_message import get_message
from txrocketmq.broker.store.get.get_result import Request
from txrocketmq.broker.store.log.dispatch import dispatch_units
from txrocketmq.broker.store.queues.consume_queue import UNIT

RECORD_BYTES = 200
QUEUE_FILE = "/store/consumequeue/Topic/0/" + "0" * 20
LOG_FILE = "/store/commitlog/" + "0" * 20
DAMAGES: dict[str, Callable[[Any, int], None]] = {}
"""What spoils a place: each gets the files, and the queue offset of the message."""


def damages(spoil: Callable[[Any, int], None]) -> Callable[[Any, int], None]:
    DAMAGES[spoil.__name__] = spoil
    return spoil


def unit_at(files: Any, offset: int) -> tuple[int, int, int]:
    return UNIT.unpack_from(files.maps[QUEUE_FILE], offset * UNIT.size)


def put_unit(files: Any, offset: int, physical_offset: int, size: int) -> None:
    code = unit_at(files, offset)[2]
    UNIT.pack_into(files.maps[QUEUE_FILE], offset * UNIT.size, physical_offset, size, code)


@damages
def zeroed_record(files: Any, offset: int) -> None:
    at, size, _ = unit_at(files, offset)
    files.maps[LOG_FILE][at : at + size] = bytes(size)


@damages
def size_in_the_record(files: Any, offset: int) -> None:
    at = unit_at(files, offset)[0]
    files.maps[LOG_FILE][at + 3] ^= 1


@damages
def magic_of_the_record(files: Any, offset: int) -> None:
    files.maps[LOG_FILE][unit_at(files, offset)[0] + 7] ^= 1


@damages
def offset_in_the_record(files: Any, offset: int) -> None:
    files.maps[LOG_FILE][unit_at(files, offset)[0] + 35] ^= 1


@damages
def unit_into_the_middle(files: Any, offset: int) -> None:
    at, size, _ = unit_at(files, offset)
    put_unit(files, offset, at + 8, size)


@damages
def unit_with_a_size_too_small(files: Any, offset: int) -> None:
    at, size, _ = unit_at(files, offset)
    put_unit(files, offset, at, size - 1)


@damages
def unit_with_a_size_too_large(files: Any, offset: int) -> None:
    at, size, _ = unit_at(files, offset)
    put_unit(files, offset, at, size + 1)


@damages
def unit_beyond_the_log(files: Any, offset: int) -> None:
    put_unit(files, offset, 1 << 40, unit_at(files, offset)[1])


@damages
def unit_over_the_end_of_what_is_written(files: Any, offset: int) -> None:
    put_unit(files, offset, unit_at(files, offset)[0], 60_000)


@pytest.fixture
def wide(files: Any, config: Callable[..., StoreConfig], message: Callable[..., PutMessage]) -> Rig:
    """A rig whose files hold all."""
    sizes = {"mapped_file_size_commit_log": 1 << 20, "mapped_file_size_consume_queue": 20_000}
    return Rig(files, config(**sizes), message)


def drained(rig: Rig, count: int, codes: set[int] | None) -> tuple[list[int], list[int]]:
    """All messages of the queue in pulls of so many, and where each pull went on."""
    found: list[int] = []
    nexts = [0]
    while nexts[-1] < rig.queue.max_offset:
        result = rig.get(nexts[-1], count, codes=codes)
        assert result.status in (FOUND, REMOVING)
        assert result.next_begin_offset > nexts[-1]
        found += rig.offsets(result)
        nexts.append(result.next_begin_offset)
    return found, nexts


@pytest.mark.parametrize("codes", [None, {7}])
@pytest.mark.parametrize("interleaved", [False, True])
@pytest.mark.parametrize("spoil", DAMAGES.values(), ids=DAMAGES)
def test_what_is_no_record_is_never_given(
    wide: Rig,
    files: Any,
    spoil: Callable[[Any, int], None],
    interleaved: bool,
    codes: set[int] | None,
) -> None:
    others = [(1, 7)] if interleaved else []
    for _ in range(40):
        wide.put((0, 7), *others, size=RECORD_BYTES)
    spoil(files, 20)
    rest = [each for each in range(40) if each != 20]
    found, nexts = drained(wide, 32, codes)
    assert found == rest
    assert nexts == [0, 20, 40], "it ends before the bad one, and goes on behind it"
    alone = wide.get(20, 1, codes=codes)
    assert alone.count in (0, 1)
    assert 20 not in wide.offsets(alone)
    assert drained(wide, 1, codes)[0] == rest
    assert wide.damaged.count == 1
    wide.damaged.tick()
    (damage,) = wide.found
    assert (damage.queue, damage.queue_offset) == ("Topic/0", 20)
    if damage.physical_offset < 1 << 20:
        assert (damage.path, damage.position) == (LOG_FILE, damage.physical_offset)
    else:
        assert (damage.path, damage.position) == ("", -1)


@pytest.mark.parametrize("codes", [None, {7}])
def test_a_zeroed_page_costs_what_was_in_it(wide: Rig, files: Any, codes: set[int] | None) -> None:
    wide.put(*[(0, 7)] * 64, size=RECORD_BYTES)
    units = [unit_at(files, offset) for offset in range(64)]
    lost = [each for each, (at, size, _) in enumerate(units) if at < 8192 and at + size > 4096]
    files.maps[LOG_FILE][4096:8192] = bytes(4096)
    found, _ = drained(wide, 32, codes)
    assert units[lost[0]][0] < 4096, "the first of them has its start and lacks its end"
    assert found == [offset for offset in range(64) if offset not in lost]
    assert wide.damaged.count == len(lost)


def test_a_body_that_has_changed_is_given_as_the_original_gives_it(wide: Rig, files: Any) -> None:
    wide.put((0, 7), size=RECORD_BYTES)
    files.maps[LOG_FILE][120] ^= 1
    assert wide.get(0).count == 1


def test_records_of_long_topics_are_records(wide: Rig, message: Callable[..., PutMessage]) -> None:
    topic = "T" * 200
    batch = wide.log.encode([message(topic, 0)] * 3, wide.queues, NOW_MS)
    wide.log.write(batch)
    dispatch_units(batch)
    for codes in (None, frozenset({0})):
        request = Request(0, 32, MANY, codes, None)
        assert get_message(wide.records, wide.queues.open(topic, 0), request).count == 3


def test_nothing_there_alone_is_told_with_a_next_offset(wide: Rig, files: Any) -> None:
    wide.put(*[(0, 7)] * 3)
    for offset in range(3):
        zeroed_record(files, offset)
    result = wide.get(0)
    assert (result.status, result.next_begin_offset, result.count) == (REMOVING, 3, 0)
