# SPDX-License-Identifier: Apache-2.0
"""A queue as a kernel's runs see it: its units come packed, and are written as they are.

It stands for the queue in what follows from records (dispatch.py), where it has the names of one.
"""

from __future__ import annotations

from collections.abc import Iterable

from txrocketmq.broker.store.formats.packed import PackedEnd, PackedUnits, QueueUnits
from txrocketmq.broker.store.queues.consume_queue import ConsumeQueue
from txrocketmq.broker.store.queues.units import UNIT, UNIT_BYTES


class PackedQueue:
    """The queue, which must be neither one of batches nor have ext units."""

    __slots__ = ("files", "queue", "queue_id", "topic")

    def __init__(self, queue: ConsumeQueue) -> None:
        self.queue = queue
        self.files = queue.files
        self.topic = queue.topic
        self.queue_id = queue.queue_id

    @property
    def max_offset(self) -> int:
        """Where its units end."""
        return self.queue.max_offset

    @property
    def max_physical_offset(self) -> int:
        """The log offset after the last message that has a unit."""
        return self.queue.max_physical_offset

    def dispatch_all(self, first_offset: int, units: PackedUnits, stored_ms: int) -> bool:
        """Writes those of these units that are missing; returns whether there were any."""
        fields = [field for unit in UNIT.iter_unpack(units[1]) for field in unit]
        return self.queue.dispatch_all(first_offset, fields, stored_ms)


# All reads of sends pass through these two, which therefore make no call for a queue that they can
# avoid, and ask for no property.


def reserved(ends: Iterable[PackedEnd]) -> list[int]:
    """Reserves room for the next units of queues; returns the offset of the first of each.

    Raises OSError when the disk has no room.
    """
    firsts = []
    for place, count, _ in ends:
        queue = place.queue
        first = queue.next_offset
        end = (first + count) * UNIT_BYTES
        row = place.files.mapped_files
        if not row or end - row[-1].from_offset > row[-1].reserved_bytes:
            queue.reserve(end)
        firsts.append(first)
    return firsts


def append_all(rows: Iterable[QueueUnits], stored_ms: int) -> None:
    """Writes units after the last of each queue, or those of them that are missing.

    Raises OSError without room; then all units of a queue are written, or none of them.
    """
    for place, first, units in rows:
        queue = place.queue
        offset, data, end_offset = units
        if first != queue.max_offset or offset < queue.max_physical_offset:
            place.dispatch_all(first, units, stored_ms)
            continue
        row = place.files.mapped_files
        file = row[-1] if row else None
        if file is not None and file.wrote_bytes + len(data) <= file.size_bytes:
            file.append(data)
        else:
            queue.append_across(data)
        queue.max_offset = end = first + len(data) // UNIT_BYTES
        queue.max_physical_offset = end_offset
        if queue.next_offset < end:  # noqa: PLR1730 - for each queue of each read
            queue.next_offset = end
