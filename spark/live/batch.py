# SPDX-License-Identifier: Apache-2.0
"""A batch from a live cluster: all messages of some queues between two offsets or times.

The ends are fixed when the query is planned, so messages that arrive later are not read, as with
Spark's Kafka source. When the same DataFrame or view is used again, its last task asks for the ends
anew, and reads what has come since the plan (`spark.execution`); messages that have been deleted
since are left out. So each use sees what a new load would see.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from txrocketmq.remoting.message.message import MessageQueue
from txrocketmq.spark.arrow.errors import OptionError
from txrocketmq.spark.columns.output import Output
from txrocketmq.spark.live.bounds import cluster_of, cut, ends, queues_of, starts
from txrocketmq.spark.live.pull import QueueRange
from txrocketmq.spark.live.task import LiveScan
from txrocketmq.spark.options.offsets import EARLIEST
from txrocketmq.spark.options.options import SourceOptions
from txrocketmq.spark.options.zones import check_zone
from txrocketmq.spark.planning.execution import is_later, now_ms

Ranges = Mapping[MessageQueue, tuple[int, int]]


class LivePart(NamedTuple):
    """What one task reads."""

    ranges: Sequence[QueueRange]
    planned: Ranges | None = None
    """In the last part, all that was planned; what is there besides is read in later executions."""


class LiveReader(DataSourceReader):
    """The batch reader for options with nameServer."""

    def __init__(self, options: SourceOptions, output: Output) -> None:
        self._planned_ms = now_ms()
        self._options = options
        self._scan = LiveScan.of(options, output)

    def partitions(self) -> Sequence[InputPartition]:
        """Returns what each task reads. Raises OptionError, ClusterError, DataLossError."""
        options = self._options
        ranges = self._ranges()
        for queue, (first, after) in ranges.items():
            if first > after and options.ending_offsets is not None:
                raise OptionError(
                    f"queue {queue.queue_id} of topic {queue.topic} on {queue.broker_name}: the"
                    f" read begins at {first} and ends before, at {after}: see"
                    " startingOffsets and endingOffsets"
                )
        parts = cut(
            ranges,
            min_partitions=options.min_partitions,
            max_records=options.max_records_per_partition,
        )
        last = LivePart(parts[-1] if parts else (), ranges)
        return [*(InputPartition(LivePart(part)) for part in parts[:-1]), InputPartition(last)]

    def read(self, partition: InputPartition | None) -> Iterator[pa.RecordBatch]:
        """Yields rows of parts of queues. Raises ClusterError, DataLossError, BadRecordError."""
        if partition is None or partition.value is None:  # Spark's own, when there is none
            return
        check_zone(self._options.zone)
        part: LivePart = partition.value
        is_old = is_later(self._planned_ms)
        for each in part.ranges:
            yield from self._scan.read(each, is_old=is_old)
        if part.planned is not None and is_old:
            for each in self._since(part.planned):
                yield from self._scan.read(each)

    def _ranges(self) -> dict[MessageQueue, tuple[int, int]]:
        """Returns where the read begins and ends in each queue, as it is now."""
        options = self._options
        cluster = cluster_of(options, self._scan.security)
        queues = queues_of(cluster, options)
        first = starts(cluster, queues, options, default=EARLIEST)
        after = ends(cluster, queues, options)
        return {queue: (first[queue], after[queue]) for queue in queues}

    def _since(self, planned: Ranges) -> list[QueueRange]:
        """Returns what has come since the plan.

        That is what follows it in each queue, and what is before it if a topic was made anew.
        """
        before, behind = {}, {}
        for queue, (first, after) in self._ranges().items():
            start, end = planned.get(queue, (first, first))
            before[queue] = first, min(start, after)
            behind[queue] = max(first, end), after
        return [each for ranges in (before, behind) for part in cut(ranges) for each in part]
