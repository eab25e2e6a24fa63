# SPDX-License-Identifier: Apache-2.0
"""A queue as a kernel's runs see it: its units come packed, and are written as they are.

It stands for the queue in what follows from records (dispatch.py), where it has the names of one.
"""

from __future__ import annotations

from typing import Final

from txrocketmq.broker.store.formats.packed import PackedUnits
from txrocketmq.broker.store.queues.consume_queue import ConsumeQueue
from txrocketmq.broker.store.queues.units import UNIT, UNIT_BYTES

_FIELDS: Final = UNIT.unpack_from


class PackedQueue:
    """The queue, which must be neither one of batches nor have ext units."""

    __slots__ = ("_files", "queue", "queue_id", "topic")

    def __init__(self, queue: ConsumeQueue) -> None:
        self.queue = queue
        self._files = queue.files
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

    def reserve(self, count: int) -> int:
        """Reserves room for the next units; returns the offset of the first.

        Raises OSError when the disk has no room.
        """
        queue = self.queue
        first = queue.next_offset
        end = (first + count) * UNIT_BYTES
        row = self._files.mapped_files
        if not row or end - row[-1].from_offset > row[-1].reserved_bytes:
            queue.reserve(end)
        return first

    def append(self, units: PackedUnits, _: int) -> None:
        """Writes units after the last one; raises OSError, and writes nothing, without room."""
        queue = self.queue
        _, data, end_offset = units
        row = self._files.mapped_files
        file = row[-1] if row else None
        if file is not None and file.wrote_bytes + len(data) <= file.size_bytes:
            file.append(data)
        else:
            queue.append_across(data)
        queue.max_offset += len(data) // UNIT_BYTES
        queue.max_physical_offset = end_offset
        if queue.next_offset < queue.max_offset:  # noqa: PLR1730 - for each queue of each read
            queue.next_offset = queue.max_offset

    def dispatch_all(self, first_offset: int, units: PackedUnits, stored_ms: int) -> bool:
        """Writes those of these units that are missing; returns whether there were any."""
        fields = [field for unit in UNIT.iter_unpack(units[1]) for field in unit]
        return self.queue.dispatch_all(first_offset, fields, stored_ms)


def packed_units(data: bytes) -> PackedUnits:
    """Returns units with the log offsets between which their messages lie."""
    place, size_bytes, _ = _FIELDS(data, len(data) - UNIT_BYTES)
    return _FIELDS(data)[0], data, place + size_bytes
