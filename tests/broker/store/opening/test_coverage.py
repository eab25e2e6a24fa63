# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.broker.store.log.test_log_walk import Opened
from tests.broker.store.log.test_log_walk import opened as opened  # noqa: PLC0414 - a fixture
from txrocketmq.broker.store.opening.coverage import merged, missing, uncovered
from txrocketmq.broker.store.opening.inventory import Inventory
from txrocketmq.broker.store.queues.consume_queue import UNIT, UNIT_BYTES, ConsumeQueue


def queue_of(opened: Opened, topic: str, queue_id: int) -> ConsumeQueue:
    queue = opened.queues.find(topic, queue_id)
    assert queue is not None
    return queue


def overwrite(queue: ConsumeQueue, offset: int, unit: bytes) -> None:
    file = queue.files.find(offset * UNIT_BYTES)
    assert file is not None
    file.overwrite(offset * UNIT_BYTES - file.from_offset, unit)


def lacking(opened: Opened) -> list[tuple[int, int]]:
    return uncovered(opened.log, opened.queues, opened.ends[-1])


def places(opened: Opened, topic: str, queue_id: int) -> list[tuple[int, int]]:
    return [
        (result.physical_offset, result.physical_offset + result.size)
        for number, result in enumerate(opened.stored)
        if ("AB"[number % 2], number % 3) == (topic, queue_id)
    ]


def test_a_whole_store_lacks_nothing(opened: Opened) -> None:
    assert lacking(opened) == []
    assert len(opened.log.mapped_files) > 2, "each but the last ends with a blank"


@pytest.mark.parametrize("offset", [0, 4, 9])
def test_a_message_without_unit_is_found(opened: Opened, offset: int) -> None:
    overwrite(queue_of(opened, "A", 0), offset, bytes(UNIT_BYTES))
    start, end = places(opened, "A", 0)[offset]
    before = [each.physical_offset for each in opened.stored if each.physical_offset < start]
    assert lacking(opened) == [(max(before, default=start), end)], "with the message before it"


def test_a_wrong_offset_is_found(opened: Opened) -> None:
    queue = queue_of(opened, "A", 0)
    unit = queue.stored(4)
    assert unit is not None
    overwrite(queue, 4, UNIT.pack(unit[0] ^ 8, *unit[1:]))
    assert lacking(opened)


def test_all_messages_of_a_queue_are_found(opened: Opened) -> None:
    opened.queues.table["B"].pop(1)
    found = lacking(opened)
    assert len(found) == 10
    for (start, end), hole in zip(places(opened, "B", 1), found, strict=True):
        assert hole[0] <= start
        assert end <= hole[1]


def test_what_wrong_units_name_is_looked_at_whole(opened: Opened) -> None:
    first, _ = places(opened, "A", 0)[4]
    overwrite(queue_of(opened, "A", 0), 4, UNIT.pack(first + 3, 900, 0))
    (hole,) = (each for each in lacking(opened) if each[0] <= first < each[1])
    assert hole[0] % 8192 == 0, "two units overlap, so nobody knows which is wrong"


def test_edges_of_files_are_held_against_the_inventory(
    opened: Opened, files: Any, config: Callable[..., Any]
) -> None:
    counts = {"A": {"0": [0, 10], "2": [0, 10]}, "B": {"1": [0, 10]}}
    inventory = Inventory(queues=counts)
    end = opened.ends[-1]
    assert missing(opened.log, opened.queues, inventory, end) == []
    overwrite(queue_of(opened, "A", 0), 2, bytes(UNIT_BYTES))
    assert missing(opened.log, opened.queues, inventory, end) == [], "not at the edge of a file"
    overwrite(queue_of(opened, "A", 0), 4, bytes(UNIT_BYTES))
    where = places(opened, "A", 0)
    assert missing(opened.log, opened.queues, inventory, end) == [(where[0][1], where[5][0])]
    overwrite(queue_of(opened, "A", 2), 9, UNIT.pack(5, 90, 0))
    assert (places(opened, "A", 2)[5][1], end) in missing(opened.log, opened.queues, inventory, end)
    opened.queues.table["B"].pop(1)
    assert missing(opened.log, opened.queues, inventory, end) == [(0, end)]


def test_units_behind_those_of_the_inventory_are_taken_off(opened: Opened) -> None:
    inventory = Inventory(queues={"A": {"0": [0, 7]}})
    assert missing(opened.log, opened.queues, inventory, opened.ends[-1]) == []
    assert queue_of(opened, "A", 0).max_offset == 7


def test_parts_are_merged() -> None:
    assert merged([(5, 9), (0, 3), (2, 4), (9, 9), (8, 12), (20, 20)]) == [(0, 4), (5, 12)]
