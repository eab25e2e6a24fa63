# SPDX-License-Identifier: Apache-2.0
"""What follows from the records of a run of sends that a kernel has written.

Whoever dispatches takes it as what follows from any records (dispatch.py): its queues and the items
for the index have the same names there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from txrocketmq.broker.store.formats.packed import PackedEnd, PackedUnits
from txrocketmq.broker.store.queues.consume_queue import ConsumeQueue
from txrocketmq.broker.store.queues.packed_queue import PackedQueue
from txrocketmq.broker.store.queues.units import UNIT


class PackedRun:
    """The units of each queue, and what is to be indexed."""

    __slots__ = ("copies", "end_offset", "ends", "entries", "start_offset", "stored_ms", "units")

    def __init__(
        self, start_offset: int, end_offset: int, stored_ms: int, ends: list[PackedEnd]
    ) -> None:
        self.start_offset = start_offset
        self.end_offset = end_offset
        self.stored_ms = stored_ms
        self.ends = ends
        """The queues, and how many messages and bytes each of them gets."""
        self.units: list[Any] = []
        """For each queue: itself, the offset of the first unit in it, and the units."""
        self.copies: list[Any] = []
        self.entries: Any = ()

    def queues(self) -> list[ConsumeQueue]:
        """The queues that get units."""
        return [each[0].queue for each in self.units]

    def sizes(self) -> Iterator[tuple[PackedQueue, list[int]]]:
        """The sizes of the messages of each queue, in bytes."""
        queue: PackedQueue
        units: PackedUnits
        for queue, _, units in self.units:
            yield queue, [size_bytes for _, size_bytes, _ in UNIT.iter_unpack(units[1])]
