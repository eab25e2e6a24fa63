# SPDX-License-Identifier: Apache-2.0
"""Reads the records of the log one after the other, and continues behind damaged ones.

Behind damage, reading continues at the next place that is *proven* to hold a record: a unit of a
queue points at it and its record agrees with the unit, CRC included, or a file of the log begins
there with a sound record that is not older than what was read before. Nothing else is taken for a
record, however much it looks like one: what an original broker cut off stays behind the end of its
log, and must not come back to life.

Java: CommitLog.recoverNormally and recoverAbnormally, which end the log at the first damage.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import heapify, heappop, heappush
from itertools import islice
from typing import Final, NamedTuple, Protocol

from txrocketmq.broker.store.disk.mapped_file import MappedFileQueue
from txrocketmq.broker.store.formats.scan import PROPERTIES_LENGTH_BYTES, Record, RecordWalk
from txrocketmq.broker.store.log.packed_walk import (
    ROW_LONGS,
    STORED_MS,
    PackedWalk,
    compiled_walk,
)
from txrocketmq.broker.store.log.visibility import enters_queue
from txrocketmq.broker.store.queues.consume_queue import ConsumeQueue
from txrocketmq.broker.store.queues.light_queues import offset_in

END: Final = 1 << 63
_RECORDS_AT_ONCE: Final = 16_384


class UnreadableStretch(NamedTuple):
    """A stretch of the log that cannot be read; queues refer to so many `messages` of it."""

    start: int
    end: int
    messages: int


class Run(NamedTuple):
    """Messages of one queue, in the order of the log."""

    topic: bytes
    queue_id: int
    queue_offsets: array[int]
    offsets: array[int]
    sizes: array[int]


class SoundRecords(Protocol):
    """Sound records that were read together."""

    def __len__(self) -> int: ...

    def records(self) -> Iterable[Record]:
        """The records, one after the other."""

    def runs(self) -> Iterator[Run]:
        """Those records that have units, as runs by queue."""


class RecordBatch:
    """Records that were read one by one."""

    def __init__(self, records: Sequence[Record]) -> None:
        self._records = records

    def __len__(self) -> int:
        return len(self._records)

    def records(self) -> Sequence[Record]:
        """The records, one after the other."""
        return self._records

    def runs(self) -> Iterator[Run]:
        """Those records that have units, as runs by queue."""
        seen: dict[tuple[bytes, int], list[int]] = {}
        find = seen.get
        for found in self._records:
            offset, size, queue_id, queue_offset, sys_flag, _, view, topic_at, text_at, _ = found
            if sys_flag and not enters_queue(sys_flag):
                continue
            key = bytes(view[topic_at : text_at - PROPERTIES_LENGTH_BYTES]), queue_id
            rows = find(key)
            if rows is None:
                rows = seen[key] = []
            rows += (queue_offset, offset, size)
        return runs_of(seen)


def runs_of(seen: Mapping[tuple[bytes, int], Sequence[int]]) -> Iterator[Run]:
    """Makes runs from lists by queue that repeat queue offset, log offset and size."""
    for key, rows in seen.items():
        columns = array("q", rows[0::3]), array("q", rows[1::3]), array("i", rows[2::3])
        yield Run(*key, *columns)


class LogWalk:
    """One walk over the log; `position` is where the next record would start.

    `damages` are the stretches that were skipped, `newest_ms` the highest store timestamp so far.
    The walk ends where nothing more is proven.
    """

    def __init__(
        self, files: MappedFileQueue, queues: Iterable[ConsumeQueue], *, check_crc: bool
    ) -> None:
        self._files = files
        self._queues = queues
        self._check_crc = check_crc
        self._units: _Units | None = None
        self.position = max(files.min_offset, 0)
        self.damages: list[UnreadableStretch] = []
        self.last_ms = 0
        """The store timestamp of the last record, in ms."""
        self.newest_ms = 0
        self.known_end: tuple[int, int] | None = None
        """Where the log ends and when its last message was stored, as noted when it was closed;
        `pass_all` relies on it. It is meant for users that read all of the log anyway."""

    def records(self, start: int, end: int = END) -> Iterator[Record]:
        """Yields the sound records up to `end`, from `start` on, where a record begins."""
        self.position = start
        while self.position < end:
            file = self._files.find(self.position)
            if file is not None:
                walk = RecordWalk(file, self.position - file.from_offset, check_crc=self._check_crc)
                for record in walk:
                    self.last_ms = stored_ms = record.store_timestamp_ms
                    if stored_ms > self.newest_ms:  # noqa: PLR1730 - max() takes five times as long
                        self.newest_ms = stored_ms
                    self.position = record.physical_offset + record.size_bytes
                    yield record
                    if self.position >= end:
                        return
                if walk.ended_by_blank:
                    self.position = file.from_offset + file.size_bytes
                    if record_at(self._files, self.position, check_crc=self._check_crc) is not None:
                        continue
            found = self._next_proven()
            if found is None:
                return
            self._skip_to(min(found, end))

    def batches(self, start: int, end: int = END) -> Iterator[SoundRecords]:
        """Yields the same records, many at a time."""
        self.position = start
        while found := list(islice(self.records(self.position, end), _RECORDS_AT_ONCE)):
            yield RecordBatch(found)
            if len(found) < _RECORDS_AT_ONCE:
                return

    def pass_all(self, start: int) -> int:
        """Walks from `start` to where nothing more is proven; returns the number of records."""
        if self._goes_to_known_end(start):
            return 0
        walk = compiled_walk()
        if walk is None:
            return sum(1 for _ in self.records(start))
        self.position, count = start, 0
        while True:
            count += self._pass_sound(walk)
            # What ends a file, and what is damaged, is left to the walk over single records.
            if next(self.records(self.position), None) is None:
                return count
            count += 1

    def _pass_sound(self, walk: PackedWalk) -> int:
        """Passes the sound records from the position on, in one file; returns their number."""
        file = self._files.find(self.position)
        if file is None:
            return 0
        view, from_offset, passed = file.view, file.from_offset, 0
        while True:
            start = self.position - from_offset
            try:
                end, count, rows = walk(view, from_offset, start, len(view), self._check_crc)
            except RuntimeError:  # the compiled form has failed
                return passed
            if not count:
                return passed
            stored_ms = memoryview(rows).cast("q")[STORED_MS::ROW_LONGS]
            self.last_ms = stored_ms[-1]
            self.newest_ms = max(self.newest_ms, *stored_ms)
            self.position, passed = from_offset + end, passed + count

    def _goes_to_known_end(self, start: int) -> bool:
        """Goes to the known end, if there is one and nothing more is proven behind it."""
        if self.known_end is None or not start <= self.known_end[0] <= self._files.max_offset:
            return False
        end, self.last_ms = self.known_end
        if not any(self.records(end)) and self.position == end:
            self.newest_ms = self.last_ms
            return True
        self.last_ms = self.newest_ms = 0
        self.damages, self._units = [], None
        return False

    def names_records(self, items: memoryview, start: int, end: int) -> bool:
        """Whether all these items of an index name records of the log between `start` and `end`.

        Items before `start` have expired. False means: not all do, or each has to be examined.
        """
        return False

    def units_behind(self) -> int:
        """After the walk: how many messages queues refer to at its end or behind."""
        return 0 if self._units is None else self._units.count_up_to(END)

    def _next_proven(self) -> int | None:
        """The next place behind the position where a record is proven; None if there is none."""
        if self._units is None:
            self._units = _Units(self._queues, self.position)
        self._units.pass_by(self.position)
        starts = (
            file.from_offset
            for file in self._files.mapped_files
            if file.from_offset > self.position and self._starts_soundly(file.from_offset)
        )
        next_start = next(starts, END)
        found = self._units.next_sound(self.position, next_start, self._files)
        if found is not None:
            return found
        return next_start if next_start < END else None

    def _starts_soundly(self, offset: int) -> bool:
        """Whether a file begins there with a record that continues what was read."""
        file = self._files.find(offset)
        if file is None or file.from_offset != offset:
            return False
        first = next(iter(RecordWalk(file, 0, check_crc=True)), None)
        return first is not None and first.store_timestamp_ms >= self.last_ms

    def _skip_to(self, offset: int) -> None:
        messages = 0 if self._units is None else self._units.count_up_to(offset)
        self.damages.append(UnreadableStretch(self.position, offset, messages))
        self.position = offset


class _Units:
    """The units of all queues in the order of the log, from an offset on; each is taken once."""

    def __init__(self, queues: Iterable[ConsumeQueue], position: int) -> None:
        self._heap: list[tuple[int, int, int, ConsumeQueue]] = []
        self._passed = 0
        """How many units were taken since the last `pass_by`."""
        for number, queue in enumerate(queues):
            if queue.max_physical_offset > position and not queue.is_light:
                self._add(number, queue, queue.offset_of(position))
        heapify(self._heap)

    def pass_by(self, position: int) -> None:
        """Takes the units of messages before this log offset, without counting them."""
        while self._heap and self._heap[0][0] < position:
            self._take()
        self._passed = 0

    def count_up_to(self, position: int) -> int:
        """How many of the counted messages begin before this log offset."""
        while self._heap and self._heap[0][0] < position:
            self._take()
        return self._passed

    def next_sound(self, after: int, end: int, files: MappedFileQueue) -> int | None:
        """The next log offset between these two whose record agrees with its unit."""
        heap = self._heap
        while heap and heap[0][0] < end:
            physical_offset, _, offset, queue = heap[0]
            if physical_offset > after and agrees(files, queue, offset, check_crc=True):
                return physical_offset
            self._take()
        return None

    def _take(self) -> None:
        _, number, offset, queue = heappop(self._heap)
        self._passed += 1
        self._add(number, queue, offset + 1, push=True)

    def _add(self, number: int, queue: ConsumeQueue, offset: int, *, push: bool = False) -> None:
        offset = queue.written_from(offset)
        unit = queue.stored(offset)
        if unit is None:
            return
        entry = unit[0], number, offset, queue
        if push:
            heappush(self._heap, entry)
        else:
            self._heap.append(entry)


def record_at(files: MappedFileQueue, offset: int, *, check_crc: bool) -> Record | None:
    """The sound record that begins at this log offset; None when there is none."""
    file = files.find(offset)
    if file is None:
        return None
    return next(iter(RecordWalk(file, offset - file.from_offset, check_crc=check_crc)), None)


def has_since(files: MappedFileQueue, time_ms: int) -> bool:
    """Whether the log has a message stored then or later; the clock may have been set back."""
    records = LogWalk(files, (), check_crc=False).records(max(files.min_offset, 0))
    return any(record.store_timestamp_ms >= time_ms for record in records)


def agrees(
    files: MappedFileQueue, queue: ConsumeQueue, offset: int, *, check_crc: bool = False
) -> bool:
    """Whether a queue's unit points at a record of the log that belongs to this unit."""
    unit = queue.stored(offset)
    record = None if unit is None else record_at(files, unit[0], check_crc=check_crc)
    if unit is None or record is None or record.size_bytes != unit[1]:
        return False
    return (
        record.queue_offset == offset
        and record.queue_id == queue.queue_id
        and record.topic == queue.topic.encode("utf-8", "replace")
    ) or (queue.is_light and offset_in(record, queue.topic) == offset)
