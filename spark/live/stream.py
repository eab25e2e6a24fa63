# SPDX-License-Identifier: Apache-2.0
"""Streams from a live cluster, over name servers and pull requests: no store is touched.

Each micro-batch is a range of every queue, kept in Spark's checkpoint as a `Position`. Brokers hold
no state of a stream, so any number of streams can read the same topic. Queues that appear while a
stream runs, because queues or brokers were added, are read from their start. Queues that disappear
for a time, because a broker is down, are continued where the stream was.

With commitGroupOffsets brokers are told the group's next offsets when a micro-batch is done, so
that consumerProgress and dashboards show the stream's lag. The stream itself never reads them. It
follows Spark's Kafka source; its offsets are those of DefaultLitePullConsumer.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from time import monotonic
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from txrocketmq.remoting.message.message import MessageQueue
from txrocketmq.spark.errors import ClusterError
from txrocketmq.spark.live.bounds import (
    cluster_of,
    cut,
    present_queues,
    queues_of,
    starts,
    topics_named,
)
from txrocketmq.spark.live.cluster import is_passing
from txrocketmq.spark.live.position import Position
from txrocketmq.spark.live.rpc import Refused, Unreachable, close_connections
from txrocketmq.spark.live.share import share
from txrocketmq.spark.live.task import LiveScan
from txrocketmq.spark.losses import lose
from txrocketmq.spark.offsets import LATEST
from txrocketmq.spark.options import SourceOptions
from txrocketmq.spark.output import Output

_ATTEMPTS = 2
"""How often a broker is asked for the ends of its queues, or told the group's offsets; after that
the next micro-batch tries again.
"""

log = logging.getLogger("txrocketmq.spark")
Ends = Mapping[MessageQueue, int]
_broker_name = attrgetter("broker_name")


class LiveStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """The stream reader for options with nameServer."""

    def __init__(self, options: SourceOptions, output: Output) -> None:
        self._options = options
        self._scan = LiveScan.of(options, output)
        self._cluster = cluster_of(options)
        self._target: Ends | None = None
        self._seen: Ends = {}
        self._missing: set[str] = set()
        self._to_report: Ends = {}
        self._reported: dict[MessageQueue, int] = {}
        self._waits_since_s: float | None = None

    def initialOffset(self) -> dict[str, Any]:
        """Returns where a new stream begins. Raises OptionError, ClusterError, DataLossError."""
        queues = queues_of(self._cluster, self._options)
        first = starts(self._cluster, queues, self._options, default=LATEST)
        return Position(first).to_json()

    def getDefaultReadLimit(self) -> ReadLimit:
        limit = self._options.max_offsets_per_trigger
        return ReadAllAvailable() if limit is None else ReadMaxRows(limit)

    def prepareForTriggerAvailableNow(self) -> None:
        """Limits the stream to what is there now. Raises ClusterError when a broker is away."""
        queues = queues_of(self._cluster, self._options)
        self._target = self._seen = self._cluster.max_offsets(queues)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """Returns the end of the next micro-batch, or `start` when there is nothing to read."""
        begin = Position.of_json(start)
        self._report(begin)
        if self._target is None:
            self._seen = self._reachable_ends()
        ends = self._seen if self._target is None else self._target
        first = self._cluster.min_offsets(ends.keys() - begin.next_offsets.keys())
        froms = {**begin.next_offsets, **first}
        backlogs = {queue: ends.get(queue, offset) - offset for queue, offset in froms.items()}
        shrunk = {queue: backlog for queue, backlog in backlogs.items() if backlog < 0}
        for queue in sorted(shrunk):
            shrunk[queue] = self._shrink(queue, froms[queue], shrunk[queue])
        if not shrunk and self._waits_for_more(sum(backlogs.values())):
            return start
        if isinstance(limit, ReadMaxRows):
            turn = sum(begin.next_offsets.values())
            steps = share(limit.max_rows, backlogs, turn)
        else:
            steps = {queue: max(backlog, 0) for queue, backlog in backlogs.items()}
        steps |= shrunk
        if not any(steps.values()):
            return start
        after = {queue: offset + steps[queue] for queue, offset in froms.items()}
        return Position(after, first).to_json()

    def reportLatestOffset(self) -> dict[str, Any] | None:
        """Returns the ends of the queues when they were last asked for."""
        return Position(self._seen).to_json() if self._seen else None

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        ranges = Position.of_json(end).ranges_from(Position.of_json(start))
        parts = cut(ranges, min_partitions=self._options.min_partitions)
        return [InputPartition(part) for part in parts]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yields rows of a part of a queue. Raises ClusterError, DataLossError, BadRecordError."""
        return self._scan.read(partition.value)

    def commit(self, end: dict[str, Any]) -> None:
        self._report(Position.of_json(end))

    def stop(self) -> None:
        close_connections()

    def _waits_for_more(self, backlog: int) -> bool:
        """Returns whether so few messages wait that the stream should wait for more."""
        least = self._options.min_offsets_per_trigger
        if least is None or self._target is not None or not 0 < backlog < least:
            self._waits_since_s = None
            return False
        now_s = monotonic()
        if self._waits_since_s is None:
            self._waits_since_s = now_s
        if now_s - self._waits_since_s < self._options.max_trigger_delay_s:
            return True
        self._waits_since_s = None
        return False

    def _reachable_ends(self) -> Ends:
        """Returns the ends of the queues, without those of brokers that cannot answer now."""
        queues = present_queues(self._cluster, self._options)
        self._tell_missing({queue.topic for queue in queues})
        ends: dict[MessageQueue, int] = {}
        trouble: ClusterError | None = None
        for broker_name, its in groupby(sorted(queues, key=_broker_name), _broker_name):
            try:
                ends |= self._cluster.max_offsets(list(its), attempts=_ATTEMPTS)
            except (Unreachable, Refused) as error:
                if not is_passing(error):
                    raise
                log.warning("broker %s is left out for the moment: %s", broker_name, error)
                trouble = error
        if trouble is not None and not ends:
            raise trouble
        return ends

    def _tell_missing(self, present: set[str]) -> None:
        """Warns of topics that are missing and were not missing before."""
        missing = set(topics_named(self._options)) - present
        for topic in sorted(missing - self._missing):
            log.warning(
                "topic %s is not known at %s: nothing of it is read for the moment",
                topic,
                self._cluster,
            )
        self._missing = missing

    def _shrink(self, queue: MessageQueue, offset: int, backlog: int) -> int:
        """Returns by how much to go back in a queue that now ends before the stream's offset."""
        if not self._cluster.has_master(queue.broker_name):
            return 0  # a slave may lag behind its master
        lose(
            f"queue {queue.queue_id} of topic {queue.topic} on {queue.broker_name} ends at"
            f" {offset + backlog}, before {offset}, where the stream is: the topic was made anew,"
            " or the broker has lost messages",
            fail=self._options.fail_on_data_loss,
        )
        return backlog

    def _report(self, position: Position) -> None:
        """Tells the brokers the group's offsets; a broker that does not take them is logged."""
        group = self._options.group
        if not self._options.commit_group_offsets or group is None:
            return
        if position.next_offsets == self._to_report:
            return  # what a broker did not take goes with later offsets
        self._to_report = position.next_offsets
        news = {
            queue: offset
            for queue, offset in position.next_offsets.items()
            if self._reported.get(queue) != offset
        }
        for broker_name, its in groupby(sorted(news, key=_broker_name), _broker_name):
            some = {queue: news[queue] for queue in its}
            try:
                self._cluster.commit_offsets(group, some, attempts=_ATTEMPTS)
                self._reported |= some
            except ClusterError as error:
                log.warning("offsets of %s are not told to %s: %s", group, broker_name, error)
