# SPDX-License-Identifier: Apache-2.0
"""Skips records whose units are in their queues already, when a store is opened after a crash.

After the crash of a process the system has kept what it wrote, so nearly all records that recovery
would dispatch again have their units. With the compiled kernel many records are examined at once,
CRC included, and the units that they should have are compared with those that their queues have.
What is equal is skipped; all else is left to whoever dispatches records one by one, who would have
found the same, and changed nothing.

Java: has no counterpart; ReputMessageService dispatches all of them again.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

from txrocketmq.broker.store.disk.mapped_file import MappedFileQueue
from txrocketmq.broker.store.formats.packed import PackedUnits
from txrocketmq.broker.store.formats.scan import Record
from txrocketmq.broker.store.log.log_walk import LogWalk
from txrocketmq.broker.store.queues.consume_queues import ConsumeQueues
from txrocketmq.broker.store.queues.units import UNIT_BYTES
from txrocketmq.broker.store.upkeep.unit_repair import UnitRepair
from txrocketmq.remoting.process.compiled_kernel import wanted_kernel

_ONE_BY_ONE: Final = 256
"""How many records are left to be dispatched one by one before skipping is tried again: at first,
and then twice as many each time, as long as nothing can be skipped."""
_MOST_ONE_BY_ONE: Final = 65_536


class KnownUnits:
    """Skips them in one log, whose queues get what they lack from `repair`.

    Records from `index_from` on are never skipped, since the index lacks them.
    """

    def __init__(
        self,
        log: MappedFileQueue,
        queues: ConsumeQueues,
        repair: UnitRepair,
        index_from: int,
        check_crc: bool,  # noqa: FBT001 - as in the walk
    ) -> None:
        self._log = log
        self._queues = queues
        self._repair = repair
        self._index_from = index_from
        self._check_crc = check_crc

    def others(self, walk: LogWalk, start: int, end: int) -> Iterator[Record]:
        """Yields the records of a walk from `start` up to `end`, without those that are skipped."""
        kernel = wanted_kernel()
        if kernel is None:
            yield from walk.records(start, end)
            return
        at, most = start, _ONE_BY_ONE
        while True:
            skipped = self._skipped(kernel, at, min(end, self._index_from))
            most = _ONE_BY_ONE if skipped > at else min(2 * most, _MOST_ONE_BY_ONE)
            count = 0
            for record in islice(walk.records(skipped, end), most):
                count += 1
                yield record
            if count < most:
                return
            at = walk.position

    def _skipped(self, kernel: Any, at: int, end: int) -> int:
        """The log offset behind the records from `at` on that can be skipped."""
        while at < end and (file := self._log.find(at)) is not None:
            view, from_offset = file.view, file.from_offset
            try:
                sound, count, _ = kernel.walk(
                    view, from_offset, at - from_offset, end - from_offset, self._check_crc
                )
                while at < from_offset + sound:
                    after, count, _, units = kernel.follow(
                        view, from_offset, at - from_offset, sound, None
                    )
                    if not count or not all(self._are_there(*each) for each in units):
                        return at
                    at = from_offset + after
            except RuntimeError:  # the compiled form has failed
                return at
            if not count:
                return at
        return at

    def _are_there(self, topic: bytes, queue_id: int, first: int, units: PackedUnits) -> bool:
        """Whether a queue of plain units has these from this offset on."""
        queue = self._queues.find(topic.decode(), queue_id)
        if queue is None or queue.is_batch or queue.is_light or queue.ext is not None:
            return False
        self._repair.confirm(queue)
        packed = units[1]
        if first < queue.min_offset or first + len(packed) // UNIT_BYTES > queue.max_offset:
            return False
        row, at = queue.files, first * UNIT_BYTES
        while packed:
            here, packed = _parted(packed, row.file_bytes - at % row.file_bytes)
            found = row.select(at, len(here))
            if found is None or bytes(found) != here:
                return False
            at += len(here)
        return True


def _parted(data: bytes, at: int) -> tuple[bytes, bytes]:
    return data[:at], data[at:]
