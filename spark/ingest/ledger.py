# SPDX-License-Identifier: Apache-2.0
"""The log of a table, beside its data: settings, plans, results, commits.

    _ingest/table.json             settings, written once
    _ingest/plans/<run>.json       what a run takes; created only when there is none
    _ingest/done/<run>/<split>.json  what became of a split, written after its parts
    _ingest/tmp/                   what tasks have not finished
    _manifest/<run>.json           the commit: the run is part of the table

The order makes a run exactly once: a plan is fixed before anything is written, parts are named by
their split, a split is done once its result lies there, and the commit comes when all are. Killed
between any two, a run is taken up by the next one, which does the splits again that are not done.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from typing import Final, TypeVar

from txrocketmq.spark.ingest.documents import Commit, Plan, Split, SplitResult
from txrocketmq.spark.ingest.errors import TableBusy, TableError
from txrocketmq.spark.ingest.folder import Folder
from txrocketmq.spark.ingest.settings import TableSettings
from txrocketmq.spark.ingest.stages import Stage, reached

MANIFEST: Final = "_manifest"
QUARANTINE: Final = "_quarantine"
_TABLE: Final = "_ingest/table.json"
_PLANS: Final = "_ingest/plans"
_DONE: Final = "_ingest/done"
_D = TypeVar("_D", Plan, SplitResult, Commit)


class Ledger:
    """Reads and writes the log of the table in a folder. One process writes at a time."""

    def __init__(self, folder: Folder) -> None:
        self.folder = folder

    def settings(self) -> TableSettings | None:
        """Of the table; None when there is none. TableError when other things lie there."""
        document = self.folder.read(_TABLE)
        if document is not None:
            return TableSettings.from_json(document, self.folder.name)
        strangers = [name for name in self.folder.list("") if name != "_ingest"]
        if strangers:
            raise TableError(
                f"{self.folder.name} holds {strangers[0]!r} and is no table of txrocketmq ingest:"
                " choose an empty folder or a new one"
            )
        return None

    def create_table(self, settings: TableSettings) -> bool:
        """Fixes the settings of a new table; False when another run was faster."""
        return self.folder.create(_TABLE, settings.to_json())

    # --- plans ---

    def plan(self, run: int) -> Plan | None:
        """Of a run that was interrupted before its commit, or before all was swept after it."""
        return self._document(_plan_path(run), Plan.from_json)

    def write_plan(self, plan: Plan) -> None:
        """Fixes a plan; TableBusy when another run was faster."""
        reached(Stage.BEFORE_PLAN)
        if not self.folder.create(_plan_path(plan.run), plan.to_json()):
            raise TableBusy(f"another run is writing to {self.folder.name}: it has fixed its plan")
        reached(Stage.PLANNED)

    def check_plan(self, plan: Plan) -> None:
        """TableBusy when the plan is not the one that lies there: two runs wrote at once, or this
        is an attempt at a task that nobody waits for any more.
        """
        there = self.plan(plan.run)
        if there is None or there.id != plan.id:
            raise TableBusy(
                f"another run wrote to {self.folder.name} at the same time and replaced the plan of"
                f" run {plan.run}; nothing was committed. Parts that this run has written and no"
                " commit names are found by --verify"
            )

    # --- results of splits ---

    def write_result(self, plan: Plan, result: SplitResult) -> None:
        """The split is done."""
        self.folder.write(_result_path(plan.run, result.split), result.to_json())

    def results(self, plan: Plan, known: Container[str] = ()) -> dict[str, SplitResult]:
        """Of the splits that are done, by name; without those that are known."""
        found: dict[str, SplitResult] = {}
        names = set(self.folder.list(f"{_DONE}/{_number(plan.run)}"))
        for split in plan.splits:
            if f"{split.name}.json" in names and split.name not in known:
                result = self.result(plan, split)
                if result is not None:
                    found[split.name] = result
        return found

    def result(self, plan: Plan, split: Split) -> SplitResult | None:
        """Of a split; None while it is not done."""
        result = self._document(_result_path(plan.run, split.name), SplitResult.from_json)
        return result if result is not None and result.plan_id == plan.id else None

    # --- commits ---

    def commits(self) -> Iterator[Commit]:
        """All commits, from the first."""
        for name in self._commit_names():
            yield self._commit(name)

    def last_commit(self) -> Commit | None:
        """The newest commit."""
        names = self._commit_names()
        return self._commit(names[-1]) if names else None

    def _commit_names(self) -> list[str]:
        names = self.folder.list(MANIFEST)
        return [name for name in names if name.endswith(".json") and name[:-5].isdecimal()]

    def _commit(self, name: str) -> Commit:
        commit = self._document(f"{MANIFEST}/{name}", Commit.from_json)
        if commit is None:
            raise TableError(f"{self.folder.name}/{MANIFEST}/{name} was deleted while it was read")
        return commit

    def _document(self, path: str, parse: Callable[[bytes], _D]) -> _D | None:
        """What lies there, if anything does; TableError when it cannot be read."""
        document = self.folder.read(path)
        if document is None:
            return None
        try:
            return parse(document)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise TableError(f"{self.folder.name}/{path} is damaged: {error}") from None

    def commit(self, plan: Plan, commit: Commit) -> None:
        """Makes the run part of the table; TableBusy when another run was faster."""
        reached(Stage.BEFORE_COMMIT)
        self.check_plan(plan)
        path = f"{MANIFEST}/{_number(commit.run)}.json"
        if not self.folder.create(path, commit.to_json()):
            raise TableBusy(f"another run has committed run {commit.run} of {self.folder.name}")
        reached(Stage.COMMITTED)

    # --- what a run leaves behind ---

    def sweep(self, last: Commit | None) -> None:
        """Deletes what runs left that are committed, and spools of runs that ended early."""
        committed = last.run if last else 0
        for name in self.folder.list(_DONE):
            if name.isdecimal() and int(name) <= committed:
                self.folder.delete_folder(f"{_DONE}/{name}")
        reached(Stage.HALF_SWEPT)
        for name in self.folder.list(_PLANS):
            number = name.removesuffix(".json")
            if number.isdecimal() and int(number) <= committed:
                self.folder.delete(f"{_PLANS}/{name}")
        self.folder.sweep_spools()

    def delete_strays(self, plan: Plan, commit: Commit) -> list[str]:
        """Deletes parts of the plan's splits that the commit does not name; their paths.

        A split that was done again writes the same parts, unless what it read was gone by then.
        """
        named = {part.path for part in commit.parts}
        prefixes = tuple(f"part-{split.name}" for split in plan.splits)
        strays = [
            path
            for path in self.data_files()
            if path.rpartition("/")[2].startswith(prefixes) and path not in named
        ]
        for path in strays:
            self.folder.delete(path)
        return strays

    def data_files(self) -> Iterator[str]:
        """Paths of all Parquet files of the table, committed or not."""
        for name in self.folder.list(""):
            if name.startswith(("_", ".")):
                continue
            if name.endswith(".parquet"):
                yield name
            else:
                found = self.folder.walk(name)
                yield from (path for path in found if path.endswith(".parquet"))


def _number(run: int) -> str:
    return f"{run:010d}"


def _plan_path(run: int) -> str:
    return f"{_PLANS}/{_number(run)}.json"


def _result_path(run: int, split: str) -> str:
    return f"{_DONE}/{_number(run)}/{split}.json"
