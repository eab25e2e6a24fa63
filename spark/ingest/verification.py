# SPDX-License-Identifier: Apache-2.0
"""Compares a table with the stores from which it was made.

For each queue, messages are counted and summed in the table, in the log and in the consume queues,
over the range of each broker's log that the table has and the store still has. Damaged records in
quarantine are left out everywhere. Messages from before their topic was deleted are in the table
and in the log, but in no queue: see `spark.deleted_topics`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from txrocketmq.remoting.message.topics import LMQ_PREFIX
from txrocketmq.spark.arrow.errors import TableError
from txrocketmq.spark.ingest.copy_plan import CopiedRange
from txrocketmq.spark.ingest.counts import (
    BrokerQueue,
    Count,
    CountedRange,
    CountLog,
    CountQueues,
    Counts,
    count_table,
    filter_of,
    together,
)
from txrocketmq.spark.ingest.runners.runner import Rate, Runner
from txrocketmq.spark.ingest.settings import TableSettings
from txrocketmq.spark.ingest.tables.destination import Destination
from txrocketmq.spark.options.options import SourceOptions
from txrocketmq.spark.planning.picks import dispatched
from txrocketmq.spark.store.store import Store

_QUEUES_OF_A_TASK: Final = 128


class Difference(NamedTuple):
    """A queue whose messages in the table differ from those in the store."""

    queue: BrokerQueue
    beside: str
    """What the table was compared with: log or queue."""
    table: Count
    store: Count

    def __str__(self) -> str:
        where = f"{self.queue.topic} queue {self.queue.queue_id} of {self.queue.broker}"
        if self.table.messages != self.store.messages:
            what = f"{self.table.messages} messages, the {self.beside} {self.store.messages}"
        else:
            what = f"{self.table.messages} messages, but not those of the {self.beside}"
        return f"{where}: the table has {what}"


@dataclass(frozen=True)
class Verification:
    """What was compared, and the differences."""

    spans: dict[str, CountedRange]
    """The range of each broker's log that was compared."""
    messages: int
    """The number of the table's messages in these ranges."""
    queues: int
    without_queues: tuple[str, ...]
    """Brokers whose consume queues could not be compared with the table."""
    differences: tuple[Difference, ...]
    without_store: tuple[str, ...]
    """Brokers in the table whose stores were not given."""
    deleted: tuple[str, ...] = ()
    """Topics with messages that no queue has, since the topics were deleted."""

    unreadable: str = ""
    """Why the table cannot be read; empty if it can be."""

    @property
    def is_good(self) -> bool:
        return not (self.differences or self.unreadable)


def settings_of(table: Destination) -> TableSettings:
    """Returns the settings of a table to be verified. Raises TableError if there is none."""
    settings = table.settings()
    if settings is None or not table.positions():
        raise TableError(f"{table.name} has nothing to verify: nothing was committed yet")
    return settings


def verify(
    table: Destination, stores: Sequence[Store], runner: Runner, rate: Rate | None = None
) -> Verification:
    """Compares. Raises TableError when there is no table, or it has nothing of these stores."""
    settings = settings_of(table)
    positions = table.positions()
    without_store = sorted(set(positions) - {store.key for store in stores})
    if len(without_store) == len(positions):
        raise TableError(
            f"{table.name} has nothing of {', '.join(each.key for each in stores)}"
            f" to verify: it has the logs of {', '.join(without_store)}"
        )
    logical = SourceOptions.of(dict(settings.source)).view == "logical"
    missing = _missing(table)
    checks = [
        _Check(
            store,
            settings,
            _span(store, positions[store.key], missing.get(store.key, [])),
            has_queues=logical,
        )
        for store in stores
        if store.key in positions
    ]
    spans = {check.store.key: check.span for check in checks}
    logs = [task for check in checks for task in check.log_tasks()]
    if rate is not None and logs:
        each = rate.of_each(len(logs))
        logs = [replace(task, max_bytes_per_second=each) for task in logs]
    queues = [task for check in checks for task in check.queue_tasks()]
    given = {number: outcome.result() for number, outcome in runner([*logs, *queues])}
    in_table, unreadable = _counted(table, spans)
    in_log = together(given[number].all for number in range(len(logs)))
    deleted = together(given[number].deleted for number in range(len(logs)))
    in_queues = together(given[number] for number in range(len(logs), len(given)))
    with_queues = frozenset(check.store.key for check in checks if check.has_queues)
    return Verification(
        spans=spans,
        messages=sum(count.messages for count in in_table.values()),
        queues=len(in_table),
        without_queues=tuple(sorted(set(spans) - with_queues)),
        differences=()
        if unreadable
        else (
            *_differences(in_table, in_log, "log"),
            *_differences(
                *_beside_queues(in_table, in_log, deleted, in_queues, with_queues), "queue"
            ),
        ),
        unreadable=unreadable,
        without_store=tuple(without_store),
        deleted=tuple(sorted({queue.topic for queue in deleted if queue.broker in with_queues})),
    )


def _beside_queues(
    in_table: Counts, in_log: Counts, deleted: Counts, in_queues: Counts, brokers: frozenset[str]
) -> tuple[Counts, Counts]:
    """Returns what is to be compared of the table, and of the queues of these brokers."""
    # Where the table differs from the log, that is said, and what was deleted cannot be taken away.
    unclear = {queue for queue in deleted if in_table.get(queue) != in_log.get(queue)}
    table = {
        queue: count.minus(deleted.get(queue, Count()))
        for queue, count in in_table.items()
        if queue.broker in brokers and queue not in unclear
    }
    return table, {queue: count for queue, count in in_queues.items() if queue not in unclear}


def _counted(table: Destination, spans: dict[str, CountedRange]) -> tuple[Counts, str]:
    """Counts the table; returns the counts, and why it cannot be read, or ""."""
    try:
        return count_table(table, spans), ""
    except TableError as error:
        return {}, str(error)


class _Check:
    """What is counted of one store."""

    def __init__(
        self, store: Store, settings: TableSettings, span: CountedRange, *, has_queues: bool
    ) -> None:
        self.store = store
        self._settings = settings
        wanted = filter_of(settings, store.broker_name)
        self._queues = [
            queue
            for queue in (store.queues() if has_queues else [])
            if wanted.selection.is_light(queue.topic) or not queue.topic.startswith(LMQ_PREFIX)
        ]
        self.has_queues = bool(self._queues)
        if self._queues:
            # What was stored a moment ago is not in the queues yet.
            span = span._replace(end=max(span.start, min(span.end, dispatched(store))))
        self.span = span
        self._queues = [q for q in self._queues if wanted.wants_queue(q.topic, q.queue_id)]

    def log_tasks(self) -> Iterator[CountLog]:
        """Yields one task for each file of the log."""
        for segment in self.store.segments():
            start, end = max(segment.first_offset, self.span.start), min(segment.end, self.span.end)
            if start < end:
                yield CountLog(self.store, self._settings, start, end, self.span)

    def queue_tasks(self) -> Iterator[CountQueues]:
        """Yields one task for each group of queues."""
        if not self.has_queues:
            return
        for at in range(0, len(self._queues), _QUEUES_OF_A_TASK):
            some = self._queues[at : at + _QUEUES_OF_A_TASK]
            yield CountQueues(self.store, some, self.span)


def _span(store: Store, position: CopiedRange, missing: Sequence[tuple[int, int]]) -> CountedRange:
    """Returns the range that the table and the store have, and what is missing inside it."""
    start = max(position.start, store.min_offset())
    end = max(start, position.next)
    inside = [(first, last) for first, last in missing if last > start and first < end]
    return CountedRange(start, end, tuple(sorted([*inside, *store.gaps()])))


def _missing(table: Destination) -> dict[str, list[tuple[int, int]]]:
    """Returns by broker the ranges that the table lacks because they were damaged or gone."""
    found: dict[str, list[tuple[int, int]]] = {}
    rows = table.quarantined()
    names = ("cluster", "brokerName", "physicalOffset", "length")
    columns = (rows[name].to_pylist() for name in names)
    for cluster, broker, start, length in zip(*columns, strict=True):
        found.setdefault(f"{cluster}/{broker}", []).append((start, start + length))
    return found


def _differences(table: Counts, store: Counts, beside: str) -> Iterator[Difference]:
    for queue in sorted(set(table) | set(store)):
        here, there = table.get(queue, Count()), store.get(queue, Count())
        if here != there:
            yield Difference(queue, beside, here, there)
