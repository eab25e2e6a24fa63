# SPDX-License-Identifier: Apache-2.0
"""A batch from a live cluster: all messages of some queues between two offsets or times.

The ends are fixed when the query is planned, so messages that arrive later are not read, as with
Spark's Kafka source.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from txrocketmq.spark.errors import OptionError
from txrocketmq.spark.live.bounds import cluster_of, cut, ends, queues_of, starts
from txrocketmq.spark.live.task import LiveScan
from txrocketmq.spark.offsets import EARLIEST
from txrocketmq.spark.options import SourceOptions
from txrocketmq.spark.output import Output
from txrocketmq.spark.zones import check_zone


class LiveReader(DataSourceReader):
    """The batch reader for options with nameServer."""

    def __init__(self, options: SourceOptions, output: Output) -> None:
        self._options = options
        self._scan = LiveScan.of(options, output)

    def partitions(self) -> Sequence[InputPartition]:
        """Returns what each task reads. Raises OptionError, ClusterError, DataLossError."""
        options = self._options
        cluster = cluster_of(options)
        queues = queues_of(cluster, options)
        first = starts(cluster, queues, options, default=EARLIEST)
        after = ends(cluster, queues, options)
        for queue in queues:
            if first[queue] > after[queue] and options.ending_offsets is not None:
                raise OptionError(
                    f"queue {queue.queue_id} of topic {queue.topic} on {queue.broker_name}: the"
                    f" read begins at {first[queue]} and ends before, at {after[queue]}: see"
                    " startingOffsets and endingOffsets"
                )
        parts = cut(
            {queue: (first[queue], after[queue]) for queue in queues},
            min_partitions=options.min_partitions,
            max_records=options.max_records_per_partition,
        )
        return [InputPartition(part) for part in parts]

    def read(self, partition: InputPartition | None) -> Iterator[pa.RecordBatch]:
        """Yields rows of a part of a queue. Raises ClusterError, DataLossError, BadRecordError."""
        if partition is None or partition.value is None:  # Spark's own, when there is none
            return iter(())
        check_zone(self._options.zone)
        return self._scan.read(partition.value)
