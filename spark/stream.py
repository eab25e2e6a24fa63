# SPDX-License-Identifier: Apache-2.0
"""Streams over stores: reads what brokers append to their logs, while they write.

Each micro-batch is a range of every broker's log, with whole records only, kept in Spark's
checkpoint as `LogPosition`s. A batch that is planned again after a crash gives the same partitions
with the same rows in the same order, as long as the files are there: ranges are cut by files and
bytes, never by what the consume queues happen to know. If little of a range is wanted, queues pick
it, as far as they are proven to know all of it (`spark.covered`).

Before a stream reads on, it checks whether the log is still the one that it has read. Records that
retention has deleted, a log that ends before the stream's place, and a log that was written anew
are data loss. With failOnDataLoss=false the stream continues with what is there.

maxBytesPerTrigger is shared out among brokers by what waits in each; a broker gives at least one
record, however large. Brokers that appear, in directories that match a pattern, are read from their
start.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    SupportsTriggerAvailableNow,
)

from txrocketmq.spark.arrow.errors import NotAStore, SparkSourceError
from txrocketmq.spark.arrow.threads import in_threads
from txrocketmq.spark.columns.output import Output
from txrocketmq.spark.columns.selection import RecordFilter, Selection
from txrocketmq.spark.live.wire.share import share
from txrocketmq.spark.log.fingerprint import fingerprint, is_same_log
from txrocketmq.spark.log.log_cut import cut_within, first_boundary
from txrocketmq.spark.log.log_end import end_of_log
from txrocketmq.spark.log.log_position import LogPosition, of_offset, to_offset
from txrocketmq.spark.log.losses import lose, loss_text
from txrocketmq.spark.options.conditions import Bounds
from txrocketmq.spark.options.options import SourceOptions
from txrocketmq.spark.options.zones import check_zone
from txrocketmq.spark.planning.log_start import first_positions
from txrocketmq.spark.planning.plan import Extent, stores_of, stream_splits
from txrocketmq.spark.planning.scan import Scan
from txrocketmq.spark.planning.split import CoveredPicks, LogRange
from txrocketmq.spark.store.store import Store, has_pattern

log = logging.getLogger("txrocketmq.spark")


class _Part(NamedTuple):
    """What a task reads."""

    split: LogRange | CoveredPicks
    wanted: RecordFilter


class StoreStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """The stream reader for options with storePath."""

    def __init__(self, options: SourceOptions, output: Output) -> None:
        self._options = options
        self._stores = self._resolved()
        self._scan = Scan.of(options, output)
        # The positions have the times and offsets at which the stream was to start.
        self._selection = replace(Selection.of(options), times=Bounds())
        self._target: Mapping[str, int] | None = None
        self._seen: dict[str, int] = {}

    def initialOffset(self) -> dict[str, Any]:
        """Returns where a new stream begins. Raises OptionError, DataLossError."""
        return to_offset(first_positions(list(self._stores.values()), self._options))

    def getDefaultReadLimit(self) -> ReadLimit:
        limit = self._options.max_bytes_per_trigger
        return ReadAllAvailable() if limit is None else ReadMaxBytes(limit)

    def prepareForTriggerAvailableNow(self) -> None:
        """Limits the stream to what is there now."""
        self._look_for_stores()
        self._target = self._ends()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """Returns the end of the next micro-batch, or `start` when there is nothing to read.

        Raises DataLossError.
        """
        self._look_for_stores()
        positions = of_offset(start)
        self._check_brokers(positions)
        self._seen = self._ends()
        ends = {name: self._end_to_read(name) for name in self._seen}
        new = {
            name: LogPosition(log=store.min_offset(), begin=store.min_offset())
            for name, store in self._stores.items()
            if name not in positions and ends[name] > store.min_offset()
        }
        froms = {
            name: self._where_to_go_on(store, positions[name])
            for name, store in self._stores.items()
            if name in positions
        } | {name: position.log for name, position in new.items()}
        after = dict(positions)
        for name, step in self._steps(froms, ends, limit).items():
            to = froms[name]
            if step > 0:
                to = cut_within(self._stores[name], to, ends[name], step)
            position = positions.get(name) or new[name]
            if to != position.log:
                after[name] = self._moved(name, position, to)
        return start if after == positions else to_offset(after)

    def reportLatestOffset(self) -> dict[str, Any] | None:
        """Returns the ends of the logs when they were last looked up."""
        if not self._seen:
            return None
        return to_offset({name: LogPosition(log=end) for name, end in self._seen.items()})

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Returns a part for each file of a log that is read, or more as minPartitions says.

        Raises DataLossError.
        """
        self._look_for_stores()
        befores, afters = of_offset(start), of_offset(end)
        self._check_brokers(afters)
        return [
            InputPartition(part)
            for name, after in afters.items()
            if name in self._stores
            for part in self._parts(self._stores[name], befores.get(name), after)
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yields rows of a range of a log. Raises DataLossError, BadRecordError."""
        check_zone(self._options.zone)
        part: _Part = partition.value
        return self._scan.read(part.split, part.wanted)

    # ------------------------------------------------------------------ stores

    def _resolved(self) -> dict[str, Store]:
        return {store.key: store for store in stores_of(self._options)}

    def _look_for_stores(self) -> None:
        if not has_pattern(self._options.store_path or ""):
            return
        try:
            self._stores = self._resolved()
        except NotAStore as error:  # a broker may just be making it
            log.warning("%s; the stream goes on with the stores that it has", error)

    def _check_brokers(self, positions: Mapping[str, LogPosition]) -> None:
        for name in sorted(positions.keys() - self._stores.keys()):
            lose(
                f"the stream has read {name} up to {positions[name].log}, but the stores are of"
                f" {sorted(self._stores)}; where a broker has got another name, brokerName says"
                " which one it is",
                fail=self._options.fail_on_data_loss,
            )

    # --------------------------------------------------------------- positions

    def _ends(self) -> dict[str, int]:
        ends = in_threads(end_of_log, list(self._stores.values()))
        return dict(zip(self._stores, ends, strict=True))

    def _end_to_read(self, name: str) -> int:
        end = self._seen[name]
        return end if self._target is None else min(end, self._target.get(name, 0))

    def _where_to_go_on(self, store: Store, position: LogPosition) -> int:
        """Returns the stream's position in the present log. Raises DataLossError if it is gone."""
        fail = self._options.fail_on_data_loss
        least, end = store.min_offset(), self._seen[store.key]
        if position.log < least:
            lose(loss_text(store, position.log, least), fail=fail)
            return least
        if position.log > end:
            lose(_shortened(store, position.log, end), fail=fail)
            return end
        if not is_same_log(store, position.log, position.fingerprint):
            lose(_rewritten(store, position.log), fail=fail)
            return first_boundary(store, position.log, end)
        return position.log

    def _steps(
        self, froms: Mapping[str, int], ends: Mapping[str, int], limit: ReadLimit
    ) -> dict[str, int]:
        """Returns how many bytes of each broker's log to read."""
        backlogs = {name: max(0, ends[name] - at) for name, at in froms.items()}
        if isinstance(limit, ReadAllAvailable):
            return backlogs
        if isinstance(limit, ReadMaxBytes):
            return share(limit.max_bytes, backlogs, sum(froms.values()))
        raise SparkSourceError(f"a stream over stores does not support the limit {limit}")

    def _moved(self, name: str, position: LogPosition, to: int) -> LogPosition:
        return replace(
            position,
            log=to,
            fingerprint=fingerprint(self._stores[name], to),
            begin=position.begin if position.log == position.begin else None,
        )

    # -------------------------------------------------------------- partitions

    def _parts(self, store: Store, before: LogPosition | None, after: LogPosition) -> list[_Part]:
        start = after.begin if before is None else before.log
        if start is None or start >= after.log:
            return []
        is_boundary = True
        if before is not None and not is_same_log(store, start, before.fingerprint):
            lose(_rewritten(store, start), fail=self._options.fail_on_data_loss)
            is_boundary = False
        end = end_of_log(store)
        if end < after.log:
            lose(_shortened(store, after.log, end), fail=self._options.fail_on_data_loss)
        end = min(end, after.log)
        begin = before or after
        parts: list[_Part] = []
        # Offsets of queues at which the stream was to start mean nothing later: their topic may
        # have been made anew.
        cut = begin.until if begin.first and start < begin.until < end else end
        for low, high in ((start, cut), (cut, end)) if cut < end else ((start, end),):
            extent = Extent(store, low, high, self._wanted(store, begin, low))
            parts += (
                _Part(self._known(split, low) if is_boundary else split, extent.wanted)
                for split in stream_splits(extent, self._options)
            )
            is_boundary = True
        return parts

    def _known(self, split: LogRange | CoveredPicks, boundary: int) -> LogRange | CoveredPicks:
        return split._replace(first_is_boundary=split.first_is_boundary or split.start == boundary)

    def _wanted(self, store: Store, position: LogPosition, low: int) -> RecordFilter:
        selection = self._selection
        if position.since_ms is not None:
            selection = replace(selection, times=Bounds(low=position.since_ms))
        queues = {}
        if low < position.until:
            queues = {queue: Bounds(low=offset) for queue, offset in position.first.items()}
        return selection.on(store.broker_name, queues, key=store.key)


def _shortened(store: Store, at: int, end: int) -> str:
    return (
        f"the commit log of {store.broker_name} ({store.uri}) ends at {end}, before {at}, where the"
        " stream is: it was cut off, perhaps by a change of masters"
    )


def _rewritten(store: Store, at: int) -> str:
    return (
        f"the commit log of {store.broker_name} ({store.uri}) is not what it was when the stream"
        f" read it up to {at}: it was cut off and written anew, perhaps by a change of masters"
    )
