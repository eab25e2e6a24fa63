# SPDX-License-Identifier: Apache-2.0
"""Copies what is new in some stores into a table: the order of the steps.

    settings -> positions -> plan -> tasks -> commits

The files of finished tasks are committed to the table together, in the order of the log, as soon as
they cover COMMIT_BYTES of it. A run that is killed loses no more than that: the next run goes on
after the last commit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

import pyarrow as pa

from txrocketmq.spark.arrow.errors import SparkSourceError, StoreError
from txrocketmq.spark.ingest.copy_plan import (
    CopiedRange,
    IngestSplit,
    LostRange,
    Plan,
    StoreBounds,
    Wishes,
    plan_run,
)
from txrocketmq.spark.ingest.quarantine_rows import gone
from txrocketmq.spark.ingest.runners.runner import Outcome, Rate, Runner
from txrocketmq.spark.ingest.settings import TableSettings
from txrocketmq.spark.ingest.tables.destination import Destination
from txrocketmq.spark.ingest.task import IngestTask, SplitResult
from txrocketmq.spark.log.fingerprint import fingerprint, is_same_log
from txrocketmq.spark.log.log_end import end_of_log
from txrocketmq.spark.store.store import DEFAULT_CLUSTER, Store

COMMIT_BYTES: Final = 8 << 30
"""The amount of log that one commit covers, in bytes."""


@dataclass(frozen=True)
class Commit:
    """What one commit has added to the table."""

    version: int
    """The version of the table that the commit made."""
    results: tuple[SplitResult, ...]
    lost: tuple[LostRange, ...]
    """Ranges that were gone before the run began; those found later are in the results."""

    @property
    def rows(self) -> int:
        return sum(each.rows for each in self.results)

    @property
    def records(self) -> int:
        """The number of records that were read."""
        return sum(each.records for each in self.results)

    @property
    def log_bytes(self) -> int:
        return sum(each.split.size_bytes for each in self.results)

    @property
    def topics(self) -> Counter[str]:
        """The number of rows by topic."""
        return sum((each.topics for each in self.results), Counter())

    @property
    def damaged(self) -> Counter[str]:
        """The number of damaged records by reason."""
        return sum((each.damaged for each in self.results), Counter())

    @property
    def all_lost(self) -> list[LostRange]:
        return [*self.lost, *(lost for each in self.results for lost in each.lost)]


class IngestListener(Protocol):
    """Is told about the progress of a run."""

    def planned(self, plan: Plan) -> None:
        """The run begins with this plan."""

    def split_done(self, result: SplitResult) -> None:
        """One split of the run was read."""

    def committed(self, commit: Commit) -> None:
        """Splits have become part of the table."""


class Silent(IngestListener):
    """A listener that ignores everything."""


@dataclass(frozen=True)
class IngestJob:
    """A job. `start_runner` is called only when there are tasks to run."""

    stores: Sequence[Store]
    table: Destination
    settings: TableSettings
    start_runner: Callable[[], Runner]
    wishes: Wishes = field(default_factory=Wishes)
    quarantines: bool = True
    rate: Rate | None = None
    listener: IngestListener = field(default_factory=Silent)

    def run(self) -> Iterator[Commit]:
        """Copies what is new; yields each commit once it is made.

        Raises StoreError and OptionError before anything is written. Raises DataLossError,
        BadRecordError, RunFailed and others for splits that failed: the next run takes them up.
        """
        there = self._check_settings()
        positions = self._positions()
        plan = self._plan(positions)
        if there is None:
            self.table.create(self.settings)
        if plan is not None:
            yield from self._take(plan, positions)

    def dry_run(self) -> Plan | None:
        """Returns the plan for what is new, without writing anything; None if nothing is new."""
        self._check_settings()
        return self._plan(self._positions())

    def _check_settings(self) -> TableSettings | None:
        there = self.table.settings()
        if there is None:
            self.table.check_empty()
        else:
            there.check_equal(self.settings, self.table.name)
        return there

    def _positions(self) -> dict[str, CopiedRange]:
        return {} if self.table.settings() is None else self.table.positions()

    def _plan(self, positions: Mapping[str, CopiedRange]) -> Plan | None:
        for store in self.stores:
            position = positions.get(store.key)
            if position is None:
                check_not_there(store, positions)
            else:
                check_unchanged(store, position)
        return plan_run([bounds_of(store) for store in self.stores], positions, self.wishes)

    def _take(self, plan: Plan, positions: Mapping[str, CopiedRange]) -> Iterator[Commit]:
        self.table.expect(store.key for store in self.stores)
        self.listener.planned(plan)
        taken = _Taken(plan, positions, {store.key: store for store in self.stores})
        for number, outcome in self.start_runner()(self._tasks(plan)) if plan.splits else ():
            result = taken.add(number, outcome)
            if result is not None:
                self.listener.split_done(result)
            if taken.whole_bytes >= COMMIT_BYTES:
                yield self._commit(taken)
        if taken.whole_bytes or not plan.splits:
            yield self._commit(taken)
        taken.raise_first()

    def _commit(self, taken: _Taken) -> Commit:
        results, lost = taken.whole()
        before, positions = taken.moved(results, lost)
        rows = [table for result in results for table in result.quarantine]
        rows += [gone(*each) for each in lost]
        if rows:
            self.table.quarantine(positions, pa.concat_tables(rows))
        version = self.table.commit(
            [part for each in results for part in each.parts], positions, before
        )
        commit = Commit(version, tuple(results), lost)
        self.listener.committed(commit)
        return commit

    def _tasks(self, plan: Plan) -> list[IngestTask]:
        stores = {store.key: store for store in self.stores}
        rate = self.rate.of_each(len(plan.splits)) if self.rate is not None else None
        layout = self.table.layout(self.settings)
        return [
            IngestTask(
                self.table.uri, self.settings, layout, split, stores[split.broker],
                self.wishes.check_crc, self.quarantines, self.wishes.allow_data_loss, rate,
            )
            for split in plan.splits
        ]  # fmt: skip


class _Taken:
    """Collects finished splits, and hands out those that follow the last commit without a gap."""

    def __init__(
        self, plan: Plan, positions: Mapping[str, CopiedRange], stores: Mapping[str, Store]
    ) -> None:
        self._splits: Sequence[IngestSplit] = plan.splits
        self._lost = plan.lost
        self._positions = dict(positions)
        self._stores = stores
        self._done: dict[int, SplitResult] = {}
        self._errors: dict[int, SparkSourceError] = {}
        self._first = 0
        """The number of the first split that is not committed."""
        self._end = 0
        """The end of the splits that can be committed; the next one begins where a record does."""
        self.whole_bytes = 0
        """Bytes of log in the splits from `_first` up to, not including, `_end`."""

    def add(self, number: int, outcome: Outcome) -> SplitResult | None:
        """Notes the outcome of a split; returns its result, or None if it failed."""
        if outcome.error is not None:
            self._errors[number] = outcome.error
            return None
        result: SplitResult = outcome.given
        self._done[number] = result
        at = self._end
        while at in self._done:
            at += 1
            if at == len(self._splits) or self._splits[at].first_is_boundary:
                self.whole_bytes += sum(s.size_bytes for s in self._splits[self._end : at])
                self._end = at
        return result

    def whole(self) -> tuple[list[SplitResult], tuple[LostRange, ...]]:
        """Returns the results that can be committed, each once, and ranges lost before the run."""
        results = [self._done.pop(number) for number in range(self._first, self._end)]
        lost, self._lost = self._lost, ()
        self._first, self.whole_bytes = self._end, 0
        return results, lost

    def moved(
        self, results: Sequence[SplitResult], lost: Sequence[LostRange]
    ) -> tuple[dict[str, CopiedRange], dict[str, CopiedRange]]:
        """Returns the positions of the brokers in these results, before them and after them."""
        ends = {each.broker: each.end for each in lost}
        ends |= {each.split.broker: each.split.end for each in results}
        starts = {each.split.broker: each.split.start for each in reversed(results)}
        old = {name: at for name, at in self._positions.items() if name in ends}
        for broker, end in ends.items():
            before = self._positions.get(broker)
            start = starts.get(broker, end) if before is None else before.start
            self._positions[broker] = CopiedRange(
                end, fingerprint(self._stores[broker], end), start
            )
        return old, {broker: self._positions[broker] for broker in ends}

    def raise_first(self) -> None:
        """Raises the first error, with the number of errors, if there is any."""
        if self._errors:
            first = self._errors[min(self._errors)]
            if len(self._errors) == 1:
                raise first
            raise type(first)(f"{first}; splits that failed: {len(self._errors)}")


def bounds_of(store: Store) -> StoreBounds:
    """Returns what the store has at this moment."""
    segments = store.segments()
    starts = [segment.first_offset for segment in segments]
    first = starts[0] if starts else 0
    return StoreBounds(store.uri, store.key, first, end_of_log(store), starts)


def check_unchanged(store: Store, position: CopiedRange) -> None:
    """Raises StoreError if the log before the position is not the one that the table has."""
    if is_same_log(store, position.next, position.fingerprint):
        return
    raise StoreError(
        f"the log of {store.key} in {store.uri} is another broker's, or was cut and"
        f" rewritten: before offset {position.next} it has other records than at the last run;"
        " write it to another table"
    )


def check_not_there(store: Store, positions: Mapping[str, CopiedRange]) -> None:
    """Raises StoreError if the table has the store's log under another broker name."""
    for name, position in positions.items():
        if position.fingerprint and fingerprint(store, position.next) == position.fingerprint:
            raise StoreError(
                f"the log in {store.uri} is in the table already, as that of {name}, and not of"
                f" {store.key}: a store without config/topics.json has the name of its folder, in"
                f" the cluster that --cluster says, or in {DEFAULT_CLUSTER}; give it those it had"
            )
