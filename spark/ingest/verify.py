# SPDX-License-Identifier: Apache-2.0
"""Holds a table against the stores that it was made of.

For each queue the messages are counted and summed in the table, in the log and in the consume
queues, over that range of each broker's log that the table has and the store still has. Damaged
records that are in quarantine are left out everywhere. The files are held against the manifest.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from txrocketmq.spark.ingest.counts import (
    Count,
    CountLog,
    CountQueues,
    Counts,
    CountTable,
    QueueName,
    Span,
    counted_of_json,
    counts_of_json,
    filter_of,
)
from txrocketmq.spark.ingest.documents import Commit, Part
from txrocketmq.spark.ingest.errors import RunFailed, TableError
from txrocketmq.spark.ingest.ledger import QUARANTINE, Ledger
from txrocketmq.spark.ingest.runner import Rate, Runner
from txrocketmq.spark.ingest.settings import TableSettings
from txrocketmq.spark.options import SourceOptions
from txrocketmq.spark.picks import dispatched
from txrocketmq.spark.store import Store

_LMQ_PREFIX: Final = "%LMQ%"
"""Of queues that name messages of other topics once more."""
_PARTS_OF_A_TASK: Final = 64
_BYTES_OF_A_TASK: Final = 512 << 20
_QUEUES_OF_A_TASK: Final = 128


class Difference(NamedTuple):
    """A queue of which the table has other messages than the store."""

    queue: QueueName
    beside: str
    """What the table was held against: log or queue."""
    table: Count
    store: Count

    def __str__(self) -> str:
        where = f"{self.queue.topic} queue {self.queue.queue_id} of {self.queue.broker_name}"
        if self.table.messages != self.store.messages:
            what = f"{self.table.messages} messages, the {self.beside} {self.store.messages}"
        else:
            what = f"{self.table.messages} messages, but not those of the {self.beside}"
        return f"{where}: the table has {what}"


@dataclass(frozen=True)
class Verification:
    """What was compared, and what differs."""

    spans: dict[str, Span]
    """By broker: the range of its log."""
    messages: int
    """Of the table, in these ranges."""
    queues: int
    without_queues: tuple[str, ...]
    """Brokers whose consume queues could not be held against the table."""
    differences: tuple[Difference, ...]
    without_store: tuple[str, ...]
    """Brokers of the table of which no store was given."""
    missing: tuple[str, ...]
    """Parts that a commit names and that are not there, or have another size."""
    damaged: tuple[str, ...]
    """Parts that cannot be read, with the reason."""
    strays: tuple[str, ...]
    """Files among the data that no commit names."""

    @property
    def is_good(self) -> bool:
        return not (self.differences or self.missing or self.damaged or self.strays)


def settings_of(ledger: Ledger) -> TableSettings:
    """Of a table that can be verified; TableError when nothing is there."""
    settings = ledger.settings()
    if settings is None or ledger.last_commit() is None:
        raise TableError(f"{ledger.folder.name} has nothing to verify: nothing was committed yet")
    return settings


def verify(
    ledger: Ledger, stores: Sequence[Store], runner: Runner, rate: Rate | None = None
) -> Verification:
    """Compares. TableError when there is no table, or nothing of these stores in it."""
    settings = settings_of(ledger)
    commits = list(ledger.commits())
    last = commits[-1]
    without_store = sorted(set(last.positions) - {store.broker_name for store in stores})
    if len(without_store) == len(last.positions):
        raise TableError(
            f"{ledger.folder.name} has nothing of {', '.join(each.broker_name for each in stores)}"
            f" to verify: it has the logs of {', '.join(without_store)}"
        )
    parts = [part for commit in commits for part in commit.parts]
    missing = [part.path for part in parts if ledger.folder.size(part.path) != part.size_bytes]
    strays = set(ledger.data_files()) - {part.path for part in parts}
    there = [part for part in parts if part.path not in set(missing)]
    logical = SourceOptions.of(dict(settings.source)).view == "logical"
    checks = [
        _Check(store, settings, _span(ledger, store, commits), has_queues=logical)
        for store in stores
        if store.broker_name in last.positions
    ]
    spans = {check.store.broker_name: check.span for check in checks}
    table = _table_tasks(ledger, there, spans)
    logs = [task for check in checks for task in check.log_tasks()]
    if rate is not None and logs:
        each = rate.of_each(len(logs))
        logs = [replace(task, max_bytes_per_second=each) for task in logs]
    queues = [task for check in checks for task in check.queue_tasks()]
    outcomes = runner([*table, *logs, *queues])
    given: list[bytes] = []
    for outcome in outcomes:
        if outcome.error is not None:
            raise outcome.error
        if outcome.given is None:
            raise RunFailed("a task gave neither counts nor an error")
        given.append(outcome.given)
    in_table, damaged = counted_of_json(given[: len(table)])
    in_log = counts_of_json(given[len(table) : len(table) + len(logs)])
    in_queues = counts_of_json(given[len(table) + len(logs) :])
    with_queues = {check.store.broker_name for check in checks if check.has_queues}
    beside_queues = {q: c for q, c in in_table.items() if q.broker_name in with_queues}
    return Verification(
        spans=spans,
        messages=sum(count.messages for count in in_table.values()),
        queues=len(in_table),
        without_queues=tuple(sorted(set(spans) - with_queues)),
        differences=(
            *_differences(in_table, in_log, "log"),
            *_differences(beside_queues, in_queues, "queue"),
        ),
        without_store=tuple(without_store),
        missing=tuple(sorted(missing)),
        damaged=tuple(sorted(damaged)),
        strays=tuple(sorted(strays)),
    )


class _Check:
    """What is counted of one store."""

    def __init__(
        self, store: Store, settings: TableSettings, span: Span, *, has_queues: bool
    ) -> None:
        self.store = store
        self._settings = settings
        wanted = filter_of(settings, store.broker_name)
        self._queues = [
            queue
            for queue in (store.queues() if has_queues else [])
            if not queue.topic.startswith(_LMQ_PREFIX)
        ]
        self.has_queues = bool(self._queues)
        if self._queues:
            # What was stored a moment ago is not in the queues yet.
            span = span._replace(end=max(span.start, min(span.end, dispatched(store))))
        self.span = span
        self._queues = [q for q in self._queues if wanted.wants_queue(q.topic, q.queue_id)]

    def log_tasks(self) -> Iterator[CountLog]:
        """One for each file of the log."""
        for segment in self.store.segments():
            start, end = max(segment.first_offset, self.span.start), min(segment.end, self.span.end)
            if start < end:
                yield CountLog(self.store, self._settings, start, end, self.span)

    def queue_tasks(self) -> Iterator[CountQueues]:
        """One for some queues."""
        if not self.has_queues:
            return
        for at in range(0, len(self._queues), _QUEUES_OF_A_TASK):
            some = self._queues[at : at + _QUEUES_OF_A_TASK]
            yield CountQueues(self.store, some, self.span)


def _span(ledger: Ledger, store: Store, commits: Sequence[Commit]) -> Span:
    """The range that both have, but for what is in quarantine and what was gone."""
    name, last = store.broker_name, commits[-1]
    start = max(last.starts[name], store.min_offset())
    end = max(start, last.positions[name].next)
    lost = [each[1:] for commit in commits for each in commit.lost if each.broker_name == name]
    return Span(start, end, tuple(sorted([*_damaged(ledger, name), *lost, *store.gaps()])))


def _damaged(ledger: Ledger, broker_name: str) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for name in ledger.folder.list(QUARANTINE):
        if not name.endswith(".parquet"):
            continue
        path = f"{QUARANTINE}/{name}"
        try:
            with ledger.folder.open(path) as file:
                rows = pq.read_table(file, columns=["brokerName", "physicalOffset", "length"])
        except (pa.ArrowException, OSError) as error:
            raise TableError(f"{ledger.folder.name}/{path} cannot be read: {error}") from None
        for broker, start, length in zip(*(c.to_pylist() for c in rows.columns), strict=True):
            if broker == broker_name:
                found.append((start, start + length))
    return found


def _table_tasks(ledger: Ledger, parts: Sequence[Part], spans: dict[str, Span]) -> list[CountTable]:
    """Some parts each."""
    tasks: list[CountTable] = []
    group: list[Part] = []
    for part in parts:
        group.append(part)
        full = sum(each.size_bytes for each in group) >= _BYTES_OF_A_TASK
        if full or len(group) >= _PARTS_OF_A_TASK:
            tasks.append(CountTable(ledger.folder, tuple(group), spans))
            group = []
    if group:
        tasks.append(CountTable(ledger.folder, tuple(group), spans))
    return tasks


def _differences(table: Counts, store: Counts, beside: str) -> Iterator[Difference]:
    for queue in sorted(set(table) | set(store)):
        here, there = table.get(queue, Count()), store.get(queue, Count())
        if here != there:
            yield Difference(queue, beside, here, there)
