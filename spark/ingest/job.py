# SPDX-License-Identifier: Apache-2.0
"""Takes what is new in some stores into a table: the order of things.

    lock -> settings -> sweep -> the run that was interrupted, if any -> a run for what is new
    a run: plan -> tasks -> commit -> sweep

Each arrow may be the last thing that happens: see `ledger`.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Final, Protocol

from txrocketmq.spark.errors import SparkSourceError, StoreError
from txrocketmq.spark.fingerprint import fingerprint, is_same_log
from txrocketmq.spark.ingest.documents import Commit, Plan, Position, SplitResult, commit_of
from txrocketmq.spark.ingest.errors import RunFailed, TableError
from txrocketmq.spark.ingest.folder import Folder
from txrocketmq.spark.ingest.ledger import Ledger
from txrocketmq.spark.ingest.plan import StoreBounds, Wishes, plan_run
from txrocketmq.spark.ingest.runner import Outcome, Rate, Runner
from txrocketmq.spark.ingest.settings import TableSettings
from txrocketmq.spark.ingest.task import IngestTask
from txrocketmq.spark.store import Store

LOOK_EVERY_S: Final = 0.5
"""How often the results of tasks are looked for while they run."""


class Listener(Protocol):
    """Is told how a run goes; `split_done` is called from another thread."""

    def planned(self, plan: Plan, done: int, *, resumed: bool) -> None:
        """A run begins, of which `done` bytes are done already."""

    def split_done(self, result: SplitResult) -> None:
        """A split of the run is done."""

    def committed(self, plan: Plan, commit: Commit) -> None:
        """The run is part of the table."""


class Silent:
    """A listener that tells nobody."""

    def planned(self, plan: Plan, done: int, *, resumed: bool) -> None: ...

    def split_done(self, result: SplitResult) -> None: ...

    def committed(self, plan: Plan, commit: Commit) -> None: ...


@dataclass(frozen=True)
class Job:
    """What is to be done. `start_runner` is called only when there is something to run."""

    stores: Sequence[Store]
    folder: Folder
    settings: TableSettings
    start_runner: Callable[[], Runner]
    wishes: Wishes = field(default_factory=Wishes)
    quarantines: bool = True
    rate: Rate | None = None
    listener: Listener = field(default_factory=Silent)

    @property
    def ledger(self) -> Ledger:
        return Ledger(self.folder)

    def run(self) -> Iterator[Commit]:
        """Ends a run that was interrupted, then takes what is new; each commit when it is made.

        Raises StoreError and OptionError before anything is written; DataLossError, BadRecordError,
        RunFailed and others for a run that did not come to its commit: the next one takes it up.
        """
        self._check_settings()  # before there is a lock in a folder that is somebody else's
        with self.folder.lock():
            yield from self._run()

    def dry_run(self) -> tuple[Plan | None, Plan | None]:
        """The plan that was interrupted, and the one for what is new; nothing is written."""
        self._check_settings()
        last = self.ledger.last_commit()
        run = last.run + 1 if last else 1
        pending = self.ledger.plan(run)
        positions = dict(last.positions) if last else {}
        if pending is not None:
            positions |= pending.ends
        return pending, self._plan(run, positions)

    def _run(self) -> Iterator[Commit]:
        ledger = self.ledger
        if self._check_settings() is None and not ledger.create_table(self.settings):
            self._check_settings()
        last = ledger.last_commit()
        if last is not None and (half_swept := ledger.plan(last.run)) is not None:
            ledger.delete_strays(half_swept, last)
        ledger.sweep(last)
        pending = ledger.plan(last.run + 1 if last else 1)
        if pending is not None:
            self._check_logs(pending.ends)
            last = self._take(pending, last, resumed=True)
            yield last
        plan = self._plan(last.run + 1 if last else 1, last.positions if last else {})
        if plan is not None:
            ledger.write_plan(plan)
            yield self._take(plan, last, resumed=False)

    def _check_settings(self) -> TableSettings | None:
        there = self.ledger.settings()
        if there is not None:
            there.check_equal(self.settings, self.folder.name)
        return there

    def _plan(self, run: int, positions: Mapping[str, Position]) -> Plan | None:
        self._check_logs(positions)
        bounds = [bounds_of(store) for store in self.stores]
        plan = plan_run(run, uuid.uuid4().hex, _now_ms(), bounds, positions, self.wishes)
        return None if plan is None else replace(plan, ends=dict(self._fingerprinted(plan)))

    def _check_logs(self, positions: Mapping[str, Position]) -> None:
        """StoreError when the log of a store is not the one that was taken under its name."""
        for store in self.stores:
            position = positions.get(store.broker_name)
            if position is None:
                check_not_there(store, positions)
            else:
                check_unchanged(store, position)

    def _fingerprinted(self, plan: Plan) -> Iterator[tuple[str, Position]]:
        for store in self.stores:
            end = plan.ends.get(store.broker_name)
            if end is not None:
                yield store.broker_name, Position(end.next, fingerprint(store, end.next))

    def _take(self, plan: Plan, last: Commit | None, *, resumed: bool) -> Commit:
        ledger = self.ledger
        results = ledger.results(plan)
        self.listener.planned(
            plan, sum(result.size_bytes for result in results.values()), resumed=resumed
        )
        tasks = self._tasks(plan, set(results))
        if tasks:
            runner = self.start_runner()
            with _watched(ledger, plan, set(results), self.listener):
                outcomes = runner(tasks)
            for each in _given(outcomes):
                result = SplitResult.from_json(each)
                results[result.split] = result
        commit = commit_of(plan, [results[split.name] for split in plan.splits], last, _now_ms())
        ledger.commit(plan, commit)
        if resumed:
            ledger.delete_strays(plan, commit)
        ledger.sweep(commit)
        self.listener.committed(plan, commit)
        return commit

    def _tasks(self, plan: Plan, done: set[str]) -> list[IngestTask]:
        stores = {store.broker_name: store for store in self.stores}
        missing = {split.broker_name for split in plan.splits} - set(stores)
        if missing:
            raise TableError(
                f"run {plan.run} of {self.folder.name} was interrupted and has to be ended first:"
                f" --store must name the store of {', '.join(sorted(missing))}, too"
            )
        small = replace(plan, splits=())
        splits = [split for split in plan.splits if split.name not in done]
        rate = self.rate.of_each(len(splits)) if self.rate is not None and splits else None
        return [
            IngestTask(
                self.folder, self.settings, small, split, stores[split.broker_name],
                self.quarantines, self.wishes.allow_data_loss, rate,
            )
            for split in splits
        ]  # fmt: skip


def bounds_of(store: Store) -> StoreBounds:
    """What the store has at this moment."""
    segments = store.segments()
    starts = [segment.first_offset for segment in segments]
    first = starts[0] if starts else 0
    return StoreBounds(store.uri, store.broker_name, first, store.end_of_log(), starts)


def check_unchanged(store: Store, position: Position) -> None:
    """StoreError when the log before the position is not the one that was taken."""
    if is_same_log(store, position.next, position.fingerprint):
        return
    raise StoreError(
        f"the log of {store.broker_name} in {store.uri} is another broker's, or was cut and"
        f" rewritten: before offset {position.next} it has other records than at the last run;"
        " write it to another table"
    )


def check_not_there(store: Store, positions: Mapping[str, Position]) -> None:
    """StoreError when the table has the log of the store under another name."""
    for name, position in positions.items():
        if position.fingerprint and fingerprint(store, position.next) == position.fingerprint:
            raise StoreError(
                f"the log in {store.uri} is in the table already, as that of {name}, and not of"
                f" {store.broker_name}: a store without config/topics.json has the name of its"
                " folder; give it the one it had"
            )


def _given(outcomes: Sequence[Outcome]) -> Iterator[bytes]:
    """What the tasks gave; the first error when there is one."""
    errors = [outcome.error for outcome in outcomes if outcome.error is not None]
    if errors:
        raise _first(errors)
    for outcome in outcomes:
        if outcome.given is None:
            raise RunFailed("a task gave neither a result nor an error")
        yield outcome.given


def _first(errors: Sequence[SparkSourceError]) -> SparkSourceError:
    if len(errors) == 1:
        return errors[0]
    return type(errors[0])(f"{errors[0]}; splits that failed: {len(errors)}")


@contextmanager
def _watched(ledger: Ledger, plan: Plan, known: set[str], listener: Listener) -> Iterator[None]:
    """Tells the listener of splits as they are done."""
    ended = threading.Event()

    def look() -> None:
        is_last = False
        while not is_last:
            is_last = ended.wait(LOOK_EVERY_S)
            with suppress(SparkSourceError, OSError):  # whoever needs the results raises them
                for name, result in ledger.results(plan, known).items():
                    known.add(name)
                    listener.split_done(result)

    thread = threading.Thread(target=look, name="ingest-progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
