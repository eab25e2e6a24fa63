# SPDX-License-Identifier: Apache-2.0
"""Gives queues and index what they lack of usual records, when a store is opened.

After the crash of a process the system has kept what it wrote, so nearly all records that recovery
would dispatch again have their units. After a crash of the machine, or without a folder of queues
or index, many records lack theirs. With the compiled kernel many of either kind are examined at
once, CRC included: units that their queues have are skipped, units that would follow the last one
of their queue are added, and what the index lacks is added to it. All else is left to whoever
dispatches records one by one, who would have done the same: gaps and wrong units, messages of
topics that were deleted and made anew, and queues of other kinds.

Java: has no counterpart; ReputMessageService dispatches all of them again, one by one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import Any, Final, NamedTuple

from txrocketmq.broker.store.disk.mapped_file import MappedFile, MappedFileQueue
from txrocketmq.broker.store.formats.packed import PackedUnits, QueueUnits
from txrocketmq.broker.store.formats.scan import Record
from txrocketmq.broker.store.index.packed_index import PackedIndex, RunEntries
from txrocketmq.broker.store.log.log_walk import LogWalk
from txrocketmq.broker.store.log.packed_run import PackedRun
from txrocketmq.broker.store.log.packed_walk import ROW_LONGS, STORED_MS
from txrocketmq.broker.store.queues.consume_queue import ConsumeQueue
from txrocketmq.broker.store.queues.consume_queues import ConsumeQueues
from txrocketmq.broker.store.queues.packed_queue import PackedQueue
from txrocketmq.broker.store.queues.units import UNIT, UNIT_BYTES
from txrocketmq.broker.store.upkeep.reput import Reput
from txrocketmq.broker.store.upkeep.unit_repair import UnitRepair
from txrocketmq.remoting.process.compiled_kernel import wanted_kernel

_MOST_ONE_BY_ONE: Final = 65_536
"""How many records are left to be dispatched one by one, at most, before many are tried again. It
is one at first, and then twice as many each time, as long as nothing can be done with many."""


class UsualRecords:
    """Does it in one log, whose queues `repair` repairs."""

    def __init__(
        self,
        log: MappedFileQueue,
        queues: ConsumeQueues,
        repair: UnitRepair,
        reput: Reput,
        check_crc: bool,  # noqa: FBT001 - as in the walk
    ) -> None:
        self._log = log
        self._queues = queues
        self._repair = repair
        self._reput = reput
        self._check_crc = check_crc
        self.indexed_messages = 0
        """How many messages were indexed."""
        self.dispatched_messages = 0
        """How many messages got a unit."""
        self._sound = _Sound(0, 0, 0, 0, 0)

    def others(self, walk: LogWalk, start: int, end: int) -> Iterator[Record]:
        """Yields the records of a walk from `start` up to `end` that are to be dispatched one by
        one, before the next is asked for. Raises OSError when the disk has no room for the others.
        """
        kernel = wanted_kernel()
        if kernel is None:
            yield from walk.records(start, end)
            return
        at, most = start, 1
        while True:
            done = self._done(kernel, walk, at, end)
            if done > at:
                most = 1
            count = 0
            for record in islice(walk.records(done, end), most):
                count += 1
                yield record
            if count < most:
                return
            at, most = walk.position, min(2 * most, _MOST_ONE_BY_ONE)

    def _done(self, kernel: Any, walk: LogWalk, at: int, end: int) -> int:
        """Does what it can with many records from this log offset on; returns where it ends."""
        while at < end and (file := self._log.find(at)) is not None:
            try:
                sound = self._sound
                if not sound.start <= at < sound.end:
                    sound = self._sound = self._look(kernel, file, at, end)
                after = self._pass(kernel, file, at)
            except RuntimeError:  # the compiled form has failed
                return at
            if after == at:
                return at
            at = after
            if at == sound.end:
                walk.last_ms = sound.last_ms
        return at

    def _look(self, kernel: Any, file: MappedFile, at: int, end: int) -> _Sound:
        """Examines the records of a file from this log offset on."""
        from_offset = file.from_offset
        after, count, rows = kernel.walk(
            file.view, from_offset, at - from_offset, end - from_offset, self._check_crc
        )
        if not count:
            return _Sound(at, at, 0, 0, 0)
        stored_ms = memoryview(rows).cast("q")[STORED_MS::ROW_LONGS].tolist()
        return _Sound(at, from_offset + after, min(stored_ms), max(stored_ms), stored_ms[-1])

    def _pass(self, kernel: Any, file: MappedFile, at: int) -> int:
        """Does it with some of the sound records; returns where these end, or `at`."""
        end, rows, dispatchers = self._sound.end, None, self._reput.dispatchers
        if at < dispatchers.index_from:
            end = min(end, dispatchers.index_from)
        elif isinstance(dispatchers.index, PackedIndex) and (
            dispatchers.index.new_rows is kernel.Rows
        ):
            rows = dispatchers.index.new_rows()
        else:
            return at
        from_offset = file.from_offset
        after, count, stored_ms, units = kernel.follow(
            file.view, from_offset, at - from_offset, end - from_offset, rows
        )
        following = PackedRun(at, from_offset + after, stored_ms, [])
        lacking = _Lacking()
        for topic, queue_id, first, its_units in units:
            if not self._add(lacking, topic.decode(), queue_id, first, its_units):
                return at
        following.units = list(lacking.units.values())
        following.entries = () if rows is None else RunEntries(rows, count)
        self._reput.dispatch_packed(following)
        self._reput.unknown.update(lacking.unknown)
        self.dispatched_messages += sum(
            len(packed) // UNIT_BYTES for _, _, (_, packed, _) in following.units
        )
        self.indexed_messages += 0 if rows is None else count
        return following.end_offset

    def _add(
        self, lacking: _Lacking, topic: str, queue_id: int, first: int, units: PackedUnits
    ) -> bool:
        """Adds what a queue lacks of these units; False if that has to be found one by one."""
        start, packed, end_offset = units
        deleted_end = self._queues.deleted.end_of(topic)
        if start < deleted_end:
            return end_offset <= deleted_end
        count = len(packed) // UNIT_BYTES
        queue = self._queues.find(topic, queue_id)
        if queue is None:
            queue = self._opened(topic, queue_id)
            if queue is None:
                lacking.unknown[topic] += count
                return self._are_unknown(topic, queue_id)
        if queue.is_batch or queue.is_light or queue.ext is not None or queue in lacking.units:
            return False
        self._repair.confirm(queue)
        there = min(queue.max_offset - first, count)
        if there < 0 or first < queue.min_offset:
            return False
        if not _has(queue, first, packed[: there * UNIT_BYTES]):
            return False
        if there < count:
            rest = packed[there * UNIT_BYTES :]
            start = UNIT.unpack_from(rest)[0]
            lacking.units[queue] = PackedQueue(queue), first + there, (start, rest, end_offset)
        return start >= queue.max_physical_offset or there == count

    def _opened(self, topic: str, queue_id: int) -> ConsumeQueue | None:
        """Creates a queue, if it may be created for all of the sound records."""
        reput = self._reput
        if (
            reput.is_known is not None
            and self._sound.oldest_ms < reput.known_before_ms
            and not reput.is_known(topic, queue_id)
        ):
            return None
        try:
            return self._queues.open(topic, queue_id)
        except ValueError:
            return None

    def _are_unknown(self, topic: str, queue_id: int) -> bool:
        """Whether the queue may be created for none of the sound records."""
        reput = self._reput
        return (
            reput.is_known is not None
            and self._sound.newest_ms < reput.known_before_ms
            and not reput.is_known(topic, queue_id)
        )


class _Sound(NamedTuple):
    """A part of the log whose records are sound; the times are the least and the greatest at which
    they were stored, and that of the last.
    """

    start: int
    end: int
    oldest_ms: int
    newest_ms: int
    last_ms: int


class _Lacking:
    """What queues lack, and by topic how many messages are of queues that may not be created."""

    def __init__(self) -> None:
        self.units: dict[ConsumeQueue, QueueUnits] = {}
        self.unknown: Counter[str] = Counter()


def _has(queue: ConsumeQueue, first: int, packed: bytes) -> bool:
    """Whether a queue has these units from this offset on."""
    row, at = queue.files, first * UNIT_BYTES
    while packed:
        room = row.file_bytes - at % row.file_bytes
        here, packed = packed[:room], packed[room:]
        found = row.select(at, len(here))
        if found is None or bytes(found) != here:
            return False
        at += len(here)
    return True
