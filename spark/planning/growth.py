# SPDX-License-Identifier: Apache-2.0
"""What a store has got since its read was planned, for executions of an old plan.

A plan ends where the log ended. When its DataFrame or view is used again, a task finds out what the
log has got since, and plans and reads that too, as a new load would. It is one task for each store,
so all that is read of a log is still a piece of it without holes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from txrocketmq.spark.columns.selection import RecordFilter
from txrocketmq.spark.log.fingerprint import fingerprint, is_same_log
from txrocketmq.spark.log.log_end import TailRecord, last_record, remember
from txrocketmq.spark.options.options import SourceOptions
from txrocketmq.spark.planning.plan import Extent, extent_of, splits
from txrocketmq.spark.planning.split import QueuePicks, Split
from txrocketmq.spark.store.store import Store


class Growth(NamedTuple):
    """The log of a store from the end of a plan on, whatever comes there."""

    store: Store
    start: int
    fingerprint: str
    """Of the log before it, by which it is seen whether a record begins there."""
    last: TailRecord | None
    """The last record before it, so that the new end is found soon."""

    @classmethod
    def after(cls, extent: Extent) -> Growth | None:
        """Returns what comes after an extent; None if nothing of the broker can be wanted."""
        if not extent.wanted.wants_broker():
            return None
        store = extent.store.at_once()
        return cls(store, extent.end, fingerprint(store, extent.end), last_record(store))

    def splits(self, options: SourceOptions) -> Iterator[tuple[Split, RecordFilter]]:
        """Yields what has come, cut as for tasks, and the filter of its records.

        Raises DataLossError if offsets that the options name are gone.
        """
        store = self.store.at_once()
        remember(store, self.last)
        extent = extent_of(store, options)
        if extent.end <= self.start:
            return
        is_boundary = is_same_log(store, self.start, self.fingerprint)
        extent = replace(extent, start=max(extent.start, self.start))
        for split in splits(extent, options):
            if not isinstance(split, QueuePicks) and split.start == self.start and is_boundary:
                yield split._replace(first_is_boundary=True), extent.wanted
            else:
                yield split, extent.wanted
