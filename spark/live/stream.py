# SPDX-License-Identifier: Apache-2.0
"""Streams from a live cluster, over name servers and pull requests: no store is touched.

Each micro-batch is a range of every queue, kept in Spark's checkpoint as a `Position`. Brokers hold
no state of a stream, so any number of streams can read the same topic. Queues that appear while a
stream runs, because queues or brokers were added, are read from their start. Queues that disappear
for a time, because a broker is down, are continued where the stream was.

If a topic is deleted and made again, its queues are others, and the stream's offsets mean nothing
in them (`spark.live.life`). Before a micro-batch moves an offset, it makes sure that the queue is
still the one that was read; queues that do not move are looked at once a minute. A queue that was
made anew is data loss; with failOnDataLoss=false the stream reads all that was stored in it since.

With commitGroupOffsets brokers are told the group's next offsets when a micro-batch is done, so
that consumerProgress and dashboards show the stream's lag. The stream itself never reads them. It
follows Spark's Kafka source; its offsets are those of DefaultLitePullConsumer.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, groupby
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
from txrocketmq.spark.arrow.errors import ClusterError
from txrocketmq.spark.columns.output import Output
from txrocketmq.spark.live.bounds import (
    cluster_of,
    cut,
    present_queues,
    queues_of,
    starts,
    topics_named,
)
from txrocketmq.spark.live.life import EXPIRED, Times, is_other, stored_before
from txrocketmq.spark.live.position import Position
from txrocketmq.spark.live.task import LiveScan
from txrocketmq.spark.live.wire.cluster import is_passing
from txrocketmq.spark.live.wire.rpc import Refused, Unreachable, close_connections
from txrocketmq.spark.live.wire.share import share
from txrocketmq.spark.log.losses import lose
from txrocketmq.spark.options.offsets import LATEST
from txrocketmq.spark.options.options import SourceOptions
from txrocketmq.spark.options.zones import check_zone

_ATTEMPTS = 2
"""How often a broker is asked for the ends of its queues, or told the group's offsets; after that
the next micro-batch tries again.
"""

_ANEW = "the topic was made anew, or the broker has lost messages"
_LOOK_S = 60
"""How often queues in which nothing moves are looked at, whether they are still the same."""

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
        self._is_one_away = False
        self._to_report: Ends = {}
        self._reported: dict[MessageQueue, int] = {}
        self._waits_since_s: float | None = None
        self._looked_at_s: dict[MessageQueue, float] = {}
        self._planned: Position | None = None

    def initialOffset(self) -> dict[str, Any]:
        """Returns where a new stream begins. Raises OptionError, ClusterError, DataLossError."""
        queues = queues_of(self._cluster, self._options)
        first = starts(self._cluster, queues, self._options, default=LATEST)
        return Position(first, stored=self._stored_before(first)).to_json()

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
        try:
            end = self._next(begin, ends, limit)
        except (Unreachable, Refused) as error:
            if not is_passing(error) or self._target is not None:
                raise
            log.warning("nothing is read for the moment: %s", error)
            end = None
        self._planned = end
        return start if end is None else end.to_json()

    def reportLatestOffset(self) -> dict[str, Any] | None:
        """Returns the ends of the queues when they were last asked for."""
        return Position(self._seen).to_json() if self._seen else None

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Returns what tasks read, see `cut`.

        Raises DataLossError.
        """
        after = Position.of_json(end)
        ranges = after.ranges_from(Position.of_json(start))
        if after != self._planned:
            self._check_again(after, ranges)
        parts = cut(ranges, min_partitions=self._options.min_partitions)
        return [InputPartition(part) for part in parts]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yields rows of parts of queues. Raises ClusterError, DataLossError, BadRecordError."""
        check_zone(self._options.zone)
        return chain.from_iterable(map(self._scan.read, partition.value))

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
        trouble: ClusterError | None = None
        if not self._is_one_away:
            try:
                return self._cluster.max_offsets(queues, attempts=1)
            except (Unreachable, Refused) as error:
                if not is_passing(error):
                    raise
        ends: dict[MessageQueue, int] = {}
        for broker_name, its in groupby(sorted(queues, key=_broker_name), _broker_name):
            try:
                ends |= self._cluster.max_offsets(list(its), attempts=_ATTEMPTS)
            except (Unreachable, Refused) as error:
                if not is_passing(error):
                    raise
                log.warning("broker %s is left out for the moment: %s", broker_name, error)
                trouble = error
        self._is_one_away = trouble is not None
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

    def _next(self, begin: Position, ends: Ends, limit: ReadLimit) -> Position | None:
        """Returns the end of the next micro-batch; None if it would be empty."""
        news = self._cluster.min_offsets(ends.keys() - begin.next_offsets.keys())
        while True:
            after = self._after(begin, ends, news, limit)
            moved = {
                queue
                for queue, offset in after.items()
                if queue in news or offset != begin.next_offsets[queue]
            }
            unknown = ends.keys() & after.keys() - begin.stored.keys()
            stored = self._stored_before({queue: after[queue] for queue in moved | unknown})
            # The last question: if the queues are still the same, all answers before are of them.
            others = self._others(begin, moved | self._long_not_looked_at(begin, ends), news)
            if not others:
                break
            ends = {**ends}
            for queue, why in others.items():
                news[queue], ends[queue] = self._anew(queue, begin, ends, why)
        if not after:
            return None
        kept = {queue: at for queue, at in begin.stored.items() if queue not in moved}
        return Position(after, news, {**kept, **stored})

    def _after(
        self, begin: Position, ends: Ends, news: dict[MessageQueue, int], limit: ReadLimit
    ) -> Ends:
        """Returns the next offsets after the next micro-batch; none if it would be empty.

        `news` are the offsets where queues begin that are read for the first time, or anew.
        """
        froms = {**begin.next_offsets, **news}
        backlogs = {
            queue: max(ends.get(queue, offset) - offset, 0) for queue, offset in froms.items()
        }
        is_anew = not news.keys().isdisjoint(begin.next_offsets)
        if not is_anew and self._waits_for_more(sum(backlogs.values())):
            return {}
        if isinstance(limit, ReadMaxRows):
            backlogs = share(limit.max_rows, backlogs, turn=sum(begin.next_offsets.values()))
        if not is_anew and not any(backlogs.values()):
            return {}
        return {queue: offset + backlogs[queue] for queue, offset in froms.items()}

    # ---------------------------------------------------------- lives of queues

    def _stored_before(self, offsets: Ends) -> Times:
        group = self._options.group
        return stored_before(self._cluster, offsets, group=group, attempts=_ATTEMPTS)

    def _long_not_looked_at(self, begin: Position, ends: Ends) -> set[MessageQueue]:
        """Returns the queues in which nothing moves, but which may have become others."""
        before_s = monotonic() - _LOOK_S
        return {
            queue
            for queue, offset in begin.next_offsets.items()
            if queue in ends
            and (ends[queue] < offset or self._looked_at_s.get(queue, before_s) <= before_s)
        }

    def _others(
        self, begin: Position, queues: set[MessageQueue], news: dict[MessageQueue, int]
    ) -> dict[MessageQueue, str]:
        """Returns which of these are not the queues that the stream has read, and why not."""
        kept = {
            queue: begin.next_offsets[queue]
            for queue in sorted(queues)
            if queue in begin.next_offsets and queue not in news
        }
        now = self._stored_before(kept)
        self._looked_at_s |= dict.fromkeys(kept, monotonic())
        found: dict[MessageQueue, str] = {}
        for queue, offset in kept.items():
            before = begin.stored.get(queue)
            has_master = self._cluster.has_master(queue.broker_name)
            if self._seen.get(queue, offset) < offset and has_master:
                found[queue] = f"ends at {self._seen[queue]}, before {offset}, where the stream is"
            elif is_other(before, now.get(queue)) and (has_master or before != EXPIRED):
                found[queue] = f"has another message before {offset}, where the stream is"
        return found

    def _anew(self, queue: MessageQueue, begin: Position, ends: Ends, why: str) -> tuple[int, int]:
        """Returns where to begin and to end in a queue that is not the one that was read.

        Begins at the first message that is younger than the last one read: at the first of all, if
        the topic was made anew. Raises DataLossError.
        """
        lose(f"{_text(queue)} {why}: {_ANEW}", fail=self._options.fail_on_data_loss)
        stored_ms = begin.stored.get(queue, EXPIRED)
        if stored_ms == EXPIRED:
            first = self._cluster.min_offsets([queue])[queue]
        else:
            first = self._cluster.offsets_at([queue], stored_ms + 1)[queue]
        end = min(self._cluster.max_offsets([queue])[queue], ends[queue])
        return first, max(first, end)

    def _check_again(self, after: Position, ranges: dict[MessageQueue, tuple[int, int]]) -> None:
        """Leaves out what can no longer be read of a micro-batch that was planned earlier.

        Raises DataLossError.
        """
        kept = {queue: end for queue, (start, end) in ranges.items() if start < end}
        now = self._stored_before(kept)
        for queue, end in kept.items():
            if is_other(after.stored.get(queue), now.get(queue)):
                lose(
                    f"messages up to {end} of {_text(queue)} are gone: {_ANEW}",
                    fail=self._options.fail_on_data_loss,
                )
                del ranges[queue]

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
                log.warning("offsets of %s are not committed at %s: %s", group, broker_name, error)


def _text(queue: MessageQueue) -> str:
    return f"queue {queue.queue_id} of topic {queue.topic} on {queue.broker_name}"
