# SPDX-License-Identifier: Apache-2.0
"""Which parts of the log the queues do not cover: what recovery has to dispatch again.

Each message of the log is named by exactly one unit of one queue, apart from light queues, which
are not examined here. So, for each file of the log, the sizes in all units must add up to the bytes
of the file without the blank at its end. Since each message begins where another ends, the
differences of the squares of ends and starts must add up as well, which reveals wrong offsets, too.
If they do not, the units of that file are sorted, and the gaps between them are what no queue
covers. That is one pass over all units, 20 bytes a message, at the speed of C.

Messages that enter no queue and those of deleted topics are not covered either; recovery examines
them and leaves them alone.

Java: has no counterpart; ConsumeQueueStore recovers only from the end of the queues on.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable
from operator import mul
from typing import Final

from txrocketmq.broker.store.disk.mapped_file import MappedFileQueue
from txrocketmq.broker.store.log.log_walk import agrees, record_at
from txrocketmq.broker.store.opening.inventory import Inventory
from txrocketmq.broker.store.queues.batch_queue import BatchQueue
from txrocketmq.broker.store.queues.consume_queue import ConsumeQueue
from txrocketmq.broker.store.queues.consume_queues import ConsumeQueues
from txrocketmq.broker.store.queues.light_queues import parts_with_places
from txrocketmq.broker.store.queues.units import PRE_BLANK_SIZE, UNIT_BYTES, columns, is_written
from txrocketmq.remoting.message import record
from txrocketmq.remoting.primitives.packing import fixed

Range = tuple[int, int]
"""A part of the log: its first offset and the offset after it."""
_BLANK: Final = fixed(record.BLANK).struct
_CHUNK_UNITS: Final = 65_536


def uncovered(files: MappedFileQueue, queues: Iterable[ConsumeQueue], end: int) -> list[Range]:
    """The parts of the log before `end` that no unit names, in their order."""
    queues = [queue for queue in queues if not queue.is_light]
    file_bytes = files.file_bytes
    covered = [0] * len(files.mapped_files)
    squares = [0] * len(files.mapped_files)
    ends = [file.from_offset for file in files.mapped_files]
    """For each file of the log, the offset after the last message that a unit names."""
    for queue in queues:
        for offsets, sizes in _written_columns(queue):
            for index, first, after in _by_file(files, offsets):
                some, their = sizes[first:after], offsets[first:after]
                covered[index] += sum(some)
                squares[index] += 2 * sum(map(mul, their, some)) + sum(map(mul, some, some))
                ends[index] = max(ends[index], their[-1] + some[-1])
    lacking: list[Range] = []
    for index, file in enumerate(files.mapped_files):
        start = file.from_offset
        stop = min(start + file_bytes, end)
        if stop <= start:
            continue
        last = ends[index]
        is_whole = covered[index] == last - start and squares[index] == last**2 - start**2
        if not is_whole or not (last == stop or _is_blank(files, last)):
            lacking += _holes(queues, start, stop, files)
    return lacking


def missing(
    files: MappedFileQueue, queues: ConsumeQueues, inventory: Inventory, end: int
) -> list[Range]:
    """The parts of the log for which queues lack units that they had when the store was closed.

    Only the first and the last unit of each file are examined, so this costs little. Units that
    were added after the store was closed are removed.
    """
    start = max(files.min_offset, 0)
    lacking: list[Range] = []
    for topic, ids in inventory.queues.items():
        for queue_id, (first, after) in ids.items():
            queue = queues.find(topic, int(queue_id))
            if queue is None:
                if after > first:
                    return [(start, end)]
                continue
            if queue.max_offset > after:
                queue.cut(after)
            if isinstance(queue, BatchQueue):
                lacking += [] if _is_whole(files, queue, (first, after)) else [(start, end)]
            else:
                lacking += _broken_edges(files, queue, (first, after), (start, end))
    return lacking


def lacking_light(files: MappedFileQueue, queues: Iterable[ConsumeQueue], end: int) -> list[Range]:
    """The parts of the log that light queues may lack, if their units are not all sound."""
    rows = list(queues)
    return [] if _are_sound(files, rows) else parts_with_places(files, end)


def _are_sound(files: MappedFileQueue, rows: list[ConsumeQueue]) -> bool:
    """Whether each unit of light queues names a message that another queue names as well, or that
    itself says so, like messages of deleted topics.
    """
    start = max(files.min_offset, 0)
    named: set[tuple[int, int]] = set()
    for queue in rows if any(each.is_light for each in rows) else ():
        for offsets, sizes in () if queue.is_light else _written_columns(queue):
            named.update(zip(offsets, sizes, strict=True))
    for queue in rows:
        for offset in range(queue.min_offset, queue.max_offset) if queue.is_light else ():
            unit = queue.stored(offset)
            if unit is None:
                return False
            if unit[1] == PRE_BLANK_SIZE or unit[:2] in named or (0 <= unit[0] < start and unit[1]):
                continue
            if not agrees(files, queue, offset):
                return False
    return True


def _is_whole(files: MappedFileQueue, queue: BatchQueue, offsets: Range) -> bool:
    """Whether a queue of batches has these offsets, and sound units at the edges of its files."""
    first, after = offsets
    if first == after:
        return True
    return (
        queue.max_offset == after
        and queue.batch_at(first) is not None
        and all(
            unit.physical_offset < files.min_offset or agrees(files, queue, unit.queue_offset)
            for unit in queue.edges()
        )
    )


def _broken_edges(
    files: MappedFileQueue, queue: ConsumeQueue, units: Range, log: Range
) -> list[Range]:
    """The parts of the log around edges of a queue's files whose units are not sound."""
    first, after = units
    per_file = queue.files.file_bytes // UNIT_BYTES
    lower, is_broken = log[0], False
    lacking: list[Range] = []
    for file_first in range(first - first % per_file, after, per_file):
        for offset in sorted({max(file_first, first), min(file_first + per_file, after) - 1}):
            unit = queue.stored(offset)
            if unit is not None and unit[1] == PRE_BLANK_SIZE:
                continue
            is_sound = unit is not None and (0 <= unit[0] < log[0] or agrees(files, queue, offset))
            if unit is None or not is_sound:
                is_broken = True
                continue
            if is_broken:
                lacking.append((lower, max(unit[0], lower)))
                is_broken = False
            lower = max(unit[0] + unit[1], log[0])
    if is_broken:
        lacking.append((lower, log[1]))
    return lacking


def merged(ranges: Iterable[Range]) -> list[Range]:
    """The same parts in order, without overlaps."""
    found: list[Range] = []
    for start, end in sorted(ranges):
        if found and start <= found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], end)
        elif start < end:
            found.append((start, end))
    return found


def _written_columns(queue: ConsumeQueue) -> Iterable[tuple[array[int], array[int]]]:
    """The offsets and sizes of the queue's units that are not blank, in portions."""
    if isinstance(queue, BatchQueue):
        written = [unit for unit in queue.columns() if unit.is_written]
        offsets = array("q", [unit.physical_offset for unit in written])
        yield offsets, array("i", [unit.size_bytes for unit in written])
        return
    for file in queue.files.mapped_files:
        for start in range(0, file.wrote_bytes, _CHUNK_UNITS * UNIT_BYTES):
            end = min(start + _CHUNK_UNITS * UNIT_BYTES, file.wrote_bytes)
            units = file.view[start:end]
            offsets, sizes = columns(units[: len(units) // UNIT_BYTES * UNIT_BYTES])
            if not sizes:
                continue
            if min(sizes) <= 0 or not is_written(min(offsets), max(sizes)):
                kept = [at for at in zip(offsets, sizes, strict=True) if is_written(*at)]
                offsets = array("q", [each[0] for each in kept])
                sizes = array("i", [each[1] for each in kept])
            yield offsets, sizes


def _by_file(files: MappedFileQueue, offsets: array[int]) -> Iterable[tuple[int, int, int]]:
    """For each file of the log: its index, and the range of the offsets that lie in it."""
    if not offsets:
        return
    values = offsets.tolist()
    if values != sorted(values):  # some unit is wrong
        for at, value in enumerate(values):
            index = files.index_of(value)
            if index >= 0:
                yield index, at, at + 1
        return
    at = 0
    while at < len(values):
        index = files.index_of(values[at])
        if index < 0:  # of messages that the log no longer has, or not yet
            later = next((f for f in files.mapped_files if f.from_offset > values[at]), None)
            if later is None:
                return
            at = bisect_left(values, later.from_offset, at)
            continue
        after = bisect_left(values, files.mapped_files[index].from_offset + files.file_bytes, at)
        yield index, at, after
        at = after


def _holes(
    queues: Iterable[ConsumeQueue], start: int, stop: int, files: MappedFileQueue
) -> list[Range]:
    """What no unit names between two log offsets within one file.

    Each part begins with the message before the hole, so that it begins with a message.
    """
    spans: list[Range] = []
    for queue in queues:
        for offsets, sizes in _written_columns(queue):
            if offsets[-1:] and max(offsets) < start:
                continue
            spans += [
                (offset, offset + size)
                for offset, size in zip(offsets, sizes, strict=True)
                if start <= offset < stop
            ]
    spans.sort()
    holes: list[Range] = []
    before = at = start
    for first, after in [*spans, (stop, stop)]:
        if first < at:  # two units name the same bytes, so one of them is wrong
            return [(start, stop)]
        if first > at and not (first == stop and _is_blank(files, at)):
            # The unit before the hole may be the wrong one: too short, or with a wrong offset.
            if record_at(files, before, check_crc=False) is None:
                return [(start, stop)]
            holes.append((before, first))
        before, at = first, after
    return holes


def _is_blank(files: MappedFileQueue, offset: int) -> bool:
    """Whether the blank that ends a file of the log begins at this offset."""
    head = files.select(offset, _BLANK.size)
    if head is None:
        return False
    size, magic = _BLANK.unpack(head)
    return bool(magic == record.MAGIC_BLANK and (offset + size) % files.file_bytes == 0)
