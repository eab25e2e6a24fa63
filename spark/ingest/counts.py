# SPDX-License-Identifier: Apache-2.0
"""Counts and sums the messages of each queue in the table, in the log and in the consume queues.

Three ways that read independently of one another what a table and its stores have; `verify`
compares what they give. The log and the queues are counted by tasks, the table by one query.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from txrocketmq.spark.columns.decode import Decoder
from txrocketmq.spark.columns.selection import RecordFilter, Selection
from txrocketmq.spark.ingest.quarantine_rows import Broker
from txrocketmq.spark.ingest.settings import TableSettings
from txrocketmq.spark.ingest.tables.destination import Destination
from txrocketmq.spark.log.log_reader import read_log
from txrocketmq.spark.options.options import SourceOptions
from txrocketmq.spark.options.pace import Pace
from txrocketmq.spark.planning.scan import decoded, seen
from txrocketmq.spark.store.deleted_topics import DeletedTopics
from txrocketmq.spark.store.queue_files import Queue
from txrocketmq.spark.store.store import Store

_WIDE: Final = 'CAST("queueOffset" AS DECIMAL(19, 0))'
_COUNT: Final = (
    f'SELECT topic, "queueId", count(*), sum({_WIDE}), sum({_WIDE} * {_WIDE}), sum("storeSize")'  # noqa: S608 - our own names
    " FROM messages"
)
COUNTED: Final = ("topic", "queueId", "queueOffset", "storeSize", "physicalOffset")
_BATCH_BYTES: Final = 16 << 20
OffsetArray = NDArray[np.int64]


class BrokerQueue(NamedTuple):
    """A queue of a broker, which is named by its `Store.key`."""

    broker: str
    topic: str
    queue_id: int


class Count(NamedTuple):
    """Counts and sums of messages; they are equal for different messages only by a miracle."""

    messages: int = 0
    offsets: int = 0
    """The sum of the queue offsets."""
    squares: int = 0
    """The sum of the squares of the queue offsets, modulo 2 to the 64."""
    size_bytes: int = 0
    """The sum of the sizes of the records."""

    def plus(self, other: Count) -> Count:
        """Returns the sum of two counts."""
        return Count(
            self.messages + other.messages,
            self.offsets + other.offsets,
            (self.squares + other.squares) % (1 << 64),
            self.size_bytes + other.size_bytes,
        )

    def minus(self, other: Count) -> Count:
        """Returns the difference of two counts."""
        return Count(
            self.messages - other.messages,
            self.offsets - other.offsets,
            (self.squares - other.squares) % (1 << 64),
            self.size_bytes - other.size_bytes,
        )


Counts = dict[BrokerQueue, Count]


class LogCounts(NamedTuple):
    """What is in a piece of a log."""

    all: Counts
    deleted: Counts
    """Those of all that are of topics from before these were deleted, so that no queue has them."""


class CountedRange(NamedTuple):
    """A range of a broker's log; `damaged`: ascending ranges in it that are not counted."""

    start: int
    end: int
    damaged: tuple[tuple[int, int], ...] = ()

    def holds(self, physical_offsets: OffsetArray) -> NDArray[np.bool_]:
        """Returns which of the records at these offsets are counted."""
        inside = (physical_offsets >= self.start) & (physical_offsets < self.end)
        if self.damaged:
            starts, ends = np.array(self.damaged, np.int64).T
            at = np.searchsorted(starts, physical_offsets, "right") - 1
            inside &= (at < 0) | (physical_offsets >= ends[at])
        return inside


def count_table(table: Destination, spans: Mapping[str, CountedRange]) -> Counts:
    """Counts the rows of a table that lie in the spans of their brokers."""
    counts: Counts = {}
    for broker, span in spans.items():
        cluster, name = (each.replace("'", "''") for each in Broker.of(broker))
        outside = "".join(
            f' AND NOT ("physicalOffset" >= {start} AND "physicalOffset" < {end})'
            for start, end in span.damaged
        )
        found = table.query(
            _COUNT + f""" WHERE cluster = '{cluster}' AND "brokerName" = '{name}'"""
            f' AND "physicalOffset" >= {span.start}'
            f' AND "physicalOffset" < {span.end}{outside} GROUP BY topic, "queueId"'
        )
        for topic, queue_id, messages, offsets, squares, size in zip(
            *(column.to_pylist() for column in found.columns), strict=True
        ):
            counts[BrokerQueue(broker, topic or "", queue_id)] = Count(
                int(messages), int(offsets), int(squares) % (1 << 64), int(size)
            )
    return counts


@dataclass(frozen=True)
class CountLog:
    """A task: counts the messages that the table should have of a piece of a log."""

    store: Store
    settings: TableSettings
    start: int
    end: int
    span: CountedRange
    max_bytes_per_second: int | None = None

    def __call__(self) -> LogCounts:
        """Reads the piece, and returns its counts."""
        decoder = Decoder(COUNTED, broker_name=self.store.broker_name)
        counts = LogCounts({}, {})
        deleted = DeletedTopics(self.store) if self.store.queue_kind == "files" else None
        wanted = filter_of(self.settings, self.store.broker_name)
        pace = Pace.of(self.max_bytes_per_second)
        log = read_log(self.store, self.start, self.end, first_is_boundary=True, pace=pace)
        # What is damaged or lost is not in the table either.
        found = decoded(seen(log, wanted), decoder, lambda _: None, _BATCH_BYTES)
        for _, batch in found:
            held = self.span.holds(batch.column("physicalOffset").to_numpy())
            rows = batch.filter(pa.array(held))
            _add(counts.all, self.store.key, rows)
            if deleted is not None:
                _add(counts.deleted, self.store.key, _deleted(rows, deleted))
        return counts


@dataclass(frozen=True)
class CountQueues:
    """A task: counts the units of some consume queues."""

    store: Store
    queues: Sequence[Queue]
    span: CountedRange

    def __call__(self) -> Counts:
        """Reads the queues, and returns their counts."""
        counts: Counts = {}
        for queue in self.queues:
            total = Count()
            for units in _units(queue, self.span):
                total = total.plus(_of_units(units))
            if total.messages:
                counts[BrokerQueue(self.store.key, queue.topic, queue.queue_id)] = total
        return counts


def filter_of(settings: TableSettings, broker_name: str) -> RecordFilter:
    """Returns the filter for those records of a broker's store that the table should have."""
    return Selection.of(SourceOptions.of(dict(settings.source))).on(broker_name)


def together(counted: Iterable[Counts]) -> Counts:
    """Adds up the counts of several tasks."""
    counts: Counts = {}
    for each in counted:
        for queue, count in each.items():
            counts[queue] = counts.get(queue, Count()).plus(count)
    return counts


def _deleted(batch: pa.RecordBatch, deleted: DeletedTopics) -> pa.RecordBatch:
    """Returns the rows of topics from before these were deleted."""
    topics = pc.dictionary_encode(batch.column("topic"))
    names = topics.dictionary.to_pylist()
    until = np.array([deleted.until(name) for name in names], np.uint64)
    places = batch.column("physicalOffset").to_numpy().astype(np.uint64)
    return batch.filter(pa.array(places < until[topics.indices.to_numpy()]))


def _add(counts: Counts, broker: str, batch: pa.RecordBatch) -> None:
    """Adds the rows of a batch to the counts."""
    by_queue = pa.Table.from_batches([batch]).group_by(["topic", "queueId"])
    found = by_queue.aggregate([("queueOffset", "list"), ("storeSize", "sum")])
    for row in range(found.num_rows):
        queue = BrokerQueue(broker, found["topic"][row].as_py(), found["queueId"][row].as_py())
        offsets = found["queueOffset_list"][row].values.to_numpy()
        count = _of_offsets(offsets, found["storeSize_sum"][row].as_py())
        counts[queue] = counts.get(queue, Count()).plus(count)


def _of_offsets(offsets: OffsetArray, size_bytes: int) -> Count:
    unsigned = offsets.astype(np.uint64)
    squares = int((unsigned * unsigned).sum(dtype=np.uint64))
    return Count(len(offsets), sum_of(offsets), squares, size_bytes)


def sum_of(values: OffsetArray) -> int:
    """Returns the sum, which is exact even where it exceeds 64 bits."""
    low = int((values & 0xFFFFFFFF).sum(dtype=np.int64))
    return low + (int((values >> 32).sum(dtype=np.int64)) << 32)


def _units(queue: Queue, span: CountedRange) -> Iterator[NDArray[Any]]:
    """Yields the units of a queue that are in a span, some at a time."""
    for units in queue.units_in_steps(queue.min_index(span.start), queue.max_index()):
        yield units[span.holds(units["physical_offset"])]
        if units["physical_offset"][-1] >= span.end:
            break


def _of_units(units: NDArray[Any]) -> Count:
    """Counts the messages of units; a unit of a batch queue stands for several of them."""
    counts = units["count"].astype(np.int64)
    first = np.repeat(units["queue_offset"].astype(np.int64), counts)
    before = np.repeat(np.cumsum(counts) - counts, counts)
    offsets = first + np.arange(len(first)) - before
    return _of_offsets(offsets, int(units["size"].sum(dtype=np.int64)))
