# SPDX-License-Identifier: Apache-2.0
"""verify=store: compares consume queues and index with the records of the log.

A disagreement becomes a BadRecord of reason `queue` or `index`, to which badRecords applies; the
record itself is sound and is read all the same. The readers of the log and the decoder check that
records lie end to end, have their own offset and match their CRC.

Java: CommitLogDispatcherBuildConsumeQueue, CommitLogDispatcherBuildIndex.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress

import numpy as np
from numpy.typing import NDArray

from txrocketmq.remoting.message.flags import MessageSysFlag
from txrocketmq.spark.arrow.records import Records
from txrocketmq.spark.columns.decode import BadRecord
from txrocketmq.spark.log.log_reader import LogFinding
from txrocketmq.spark.planning.picks import dispatched
from txrocketmq.spark.planning.split import LogRange
from txrocketmq.spark.store.deleted_topics import DeletedTopics
from txrocketmq.spark.store.index_files import IndexFile
from txrocketmq.spark.store.queue_files import MAX_UNITS, UNITS, Queue


class StoreCheck:
    """Checks the records of one split: `queues` for each piece of it, then `index` once."""

    def __init__(self, split: LogRange) -> None:
        self._split = split
        self._store = split.store
        self._has_queues = split.store.queue_kind == "files"
        self._dispatched = dispatched(split.store) if self._has_queues else 0
        self._deleted = DeletedTopics(split.store) if self._has_queues else None
        self._known: dict[tuple[str, int], Queue | None] = {}
        self._starts: list[NDArray[np.int64]] = []

    def all(self, reading: Iterable[LogFinding]) -> Iterator[LogFinding]:
        """Yields what is read of the split, and the disagreements."""
        for found in reading:
            if isinstance(found, Records):
                yield from self.queues(found)
            yield found
        yield from self.index()

    def queues(self, records: Records) -> Iterator[BadRecord]:
        """Yields records that have no unit or a wrong one in their consume queue."""
        self._starts.append(records.physical_offset)
        kind = records.sys_flag & MessageSysFlag.TRANSACTION_PREPARED_TYPE
        mask = (kind == 0) & (records.physical_offset < self._dispatched)
        if self._deleted is None or not mask.any():
            return
        records = records.where(mask)
        codes, topics = records.topics()
        for code in np.unique(codes).tolist():
            of_topic = records.where(codes == code)
            # What is left of a topic that was deleted has lost its queues, and that is no damage.
            is_there = of_topic.physical_offset >= self._deleted.until(topics[code])
            of_topic = of_topic.where(is_there)
            for queue_id in np.unique(of_topic.queue_id).tolist():
                of_queue = of_topic.where(of_topic.queue_id == queue_id)
                yield from self._in_queue(topics[code], queue_id, of_queue)

    def _in_queue(self, topic: str, queue_id: int, records: Records) -> Iterator[BadRecord]:
        name = (topic, queue_id)
        if name not in self._known:
            self._known[name] = self._store.queue(topic, queue_id)
        queue = self._known[name]
        if queue is None:
            yield from _bad(records, "queue", f"queue {queue_id} of {topic} has no files")
            return
        offsets, places, sizes = records.queue_offset, records.physical_offset, records.total_size
        units = _units(queue, int(offsets.min()), int(offsets.max()) + 1)
        at = np.searchsorted(units["queue_offset"], offsets)
        found = units[np.minimum(at, max(0, len(units) - 1))] if len(units) else None
        same = np.zeros(len(records), np.bool_)
        if found is not None:
            same = (found["queue_offset"] == offsets) & (found["physical_offset"] == places)
            same &= found["size"] == sizes
        if not same.all():
            text = f"queue {queue_id} of {topic} does not name the record at its queue offset"
            yield from _bad(records.where(~same), "queue", text)

    def index(self) -> Iterator[BadRecord]:
        """Yields items of the index that name a place in the split where no record begins."""
        starts = np.sort(np.concatenate(self._starts)) if self._starts else np.empty(0, np.int64)
        for file in self._store.index_files():
            with suppress(FileNotFoundError):  # deleted, since what it names is gone
                yield from self._in_file(file, starts)

    def _in_file(self, file: IndexFile, starts: NDArray[np.int64]) -> Iterator[BadRecord]:
        header = file.header()
        if header["end_physical_offset"] < self._split.start:
            return
        if header["begin_physical_offset"] >= self._split.end:
            return
        for entries in file.entries():
            places = np.unique(entries["physical_offset"])
            places = places[(places >= self._split.start) & (places < self._split.end)]
            for place in places[~np.isin(places, starts)].tolist():
                text = f"{file.path} names this place, where no sound record begins"
                yield BadRecord(place, 0, "index", text, b"")


def _units(queue: Queue, first: int, end: int) -> NDArray[np.void]:
    if end - first > MAX_UNITS:  # a record has an impossible offset
        return np.empty(0, UNITS)
    return queue.units(max(0, first), max(0, end))


def _bad(records: Records, reason: str, text: str) -> Iterator[BadRecord]:
    numbers = zip(
        records.physical_offset.tolist(),
        records.total_size.tolist(),
        records.queue_offset.tolist(),
        strict=True,
    )
    for place, size, queue_offset in numbers:
        yield BadRecord(place, size, reason, f"{text} ({queue_offset})", b"")
