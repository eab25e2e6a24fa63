# SPDX-License-Identifier: Apache-2.0
"""Whole runs in one process; killed processes are in tests/engine/test_ingest_killed.py."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from tests.spark.clock import Clock
from tests.spark.ingest.tables import SETTINGS, job_of, keys, keys_of, put_some, run, store_of
from tests.spark.stores import Draft, StoreWriter
from txrocketmq.spark.errors import BadRecordError, DataLossError, StoreError
from txrocketmq.spark.ingest import job, ledger, parts, stages, task
from txrocketmq.spark.ingest.documents import Commit, Lost, Plan, SplitResult
from txrocketmq.spark.ingest.errors import RunFailed, TableBusy, TableError
from txrocketmq.spark.ingest.plan import Wishes
from txrocketmq.spark.ingest.runner import Outcome, Rate, Task, outcome_of, run_here
from txrocketmq.spark.ingest.stages import Stage
from txrocketmq.spark.pace import Pace

ONCE_IN_A_RUN = {
    Stage.BEFORE_PLAN, Stage.PLANNED, Stage.BEFORE_COMMIT, Stage.COMMITTED, Stage.HALF_SWEPT,
}  # fmt: skip
KILLED_AT = [
    (stage, times) for stage in Stage for times in ((1,) if stage in ONCE_IN_A_RUN else (1, 2))
]


class Killed(BaseException):
    """As sudden as SIGKILL, but for one process."""


@pytest.fixture
def store(tmp_path: Path) -> StoreWriter:
    return store_of(tmp_path / "broker-a")


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return tmp_path / "table"


@pytest.fixture
def kill(monkeypatch: pytest.MonkeyPatch) -> Callable[[Stage, int], None]:
    """Kills the run when it comes to a stage for the n-th time; afterwards never."""

    def arm(wanted: Stage, times: int) -> None:
        left = [times]

        def reached(stage: Stage) -> None:
            if stage is wanted:
                left[0] -= 1
                if left[0] == 0:
                    raise Killed

        for module in (ledger, parts, task):
            monkeypatch.setattr(module, "reached", reached)

    return arm


def test_a_run_takes_all_and_the_next_only_what_is_new(store: StoreWriter, table: Path) -> None:
    (first,) = run([store.root], table)
    assert keys(table) == keys_of(store)
    assert (first.run, first.rows, first.records) == (1, 60, 60)
    assert first.topics == {"Orders": 20, "Payments": 20, "%RETRY%group": 20}
    assert first.positions["broker-a"].next == store.end
    assert run([store.root], table) == []
    put_some(store, 25)
    (second,) = run([store.root], table)
    assert (second.run, second.rows, second.total_rows) == (2, 25, 85)
    assert keys(table) == keys_of(store)
    assert {part.path for part in first.parts} & {part.path for part in second.parts} == set()


def test_several_brokers(store: StoreWriter, table: Path, tmp_path: Path) -> None:
    other = store_of(tmp_path / "broker-b", 10)
    (commit,) = run([store.root, other.root], table)
    assert set(commit.positions) == {"broker-a", "broker-b"}
    assert keys(table) == keys_of(store, other)
    put_some(store, 5)
    (later,) = run([store.root], table)
    assert later.positions["broker-b"] == commit.positions["broker-b"]


@pytest.mark.parametrize(("stage", "times"), KILLED_AT)
def test_killed_anywhere_nothing_is_lost_or_doubled(
    store: StoreWriter,
    table: Path,
    kill: Callable[[Stage, int], None],
    stage: Stage,
    times: int,
) -> None:
    kill(stage, times)
    with pytest.raises(Killed):
        run([store.root], table)
    put_some(store, 30)
    commits = run([store.root], table)
    assert keys(table) == keys_of(store)
    assert sum(commit.rows for commit in job_of([], table).ledger.commits()) == 90
    assert commits[-1].positions["broker-a"].next == store.end
    left = [path for path in (table / "_ingest").rglob("*") if path.is_file()]
    assert {path.name for path in left} == {"table.json", "lock"}


def test_what_was_done_is_not_done_again(
    store: StoreWriter, table: Path, kill: Callable[[Stage, int], None]
) -> None:
    kill(Stage.SPLIT_DONE, 2)
    with pytest.raises(Killed):
        run([store.root], table)
    written = {path: path.stat().st_mtime_ns for path in table.glob("topic=*/dt=*/*")}
    run([store.root], table)
    assert {path: path.stat().st_mtime_ns for path in written} == written
    assert keys(table) == keys_of(store)


def test_an_interrupted_run_is_not_ended_with_another_log(
    store: StoreWriter, table: Path, tmp_path: Path, kill: Callable[[Stage, int], None]
) -> None:
    """What is done is of the one, what is left would be of the other."""
    kill(Stage.SPLIT_DONE, 1)
    with pytest.raises(Killed):
        run([store.root], table)
    other = another_store(tmp_path / "other" / "broker-a")
    with pytest.raises(StoreError, match="it has other records than at the last run"):
        run([other.root], table)
    assert job_of([], table).ledger.last_commit() is None
    run([store.root], table)
    assert keys(table) == keys_of(store)


def test_a_log_is_not_taken_again_under_another_name(
    store: StoreWriter, table: Path, tmp_path: Path
) -> None:
    """A store that tells no name has that of its folder, which a copy has not."""
    run([store.root], table)
    put_some(store, 10)
    copy = tmp_path / "snapshot-2"
    shutil.copytree(store.root, copy)
    with pytest.raises(StoreError, match="already, as that of broker-a, and not of snapshot-2"):
        run([copy], table)
    assert len(keys(table)) == 60
    (commit,) = run([store.root, store_of(tmp_path / "broker-b", 5).root], table)
    assert commit.rows == 15


def test_an_interrupted_run_wants_its_stores(
    store: StoreWriter, table: Path, tmp_path: Path, kill: Callable[[Stage, int], None]
) -> None:
    kill(Stage.PLANNED, 1)
    with pytest.raises(Killed):
        run([store.root], table)
    other = store_of(tmp_path / "broker-b", 3)
    with pytest.raises(TableError, match="--store must name the store of broker-a"):
        run([other.root], table)
    moved = tmp_path / "elsewhere" / "broker-a"
    shutil.move(store.root, moved)
    run([moved], table)
    assert keys(table) == keys_of(store)


def test_a_dry_run_writes_nothing(
    store: StoreWriter, table: Path, kill: Callable[[Stage, int], None]
) -> None:
    pending, new = job_of([store.root], table).dry_run()
    assert pending is None
    assert new is not None
    assert new.size_bytes == store.end
    assert not table.exists()
    kill(Stage.PLANNED, 1)
    with pytest.raises(Killed):
        run([store.root], table)
    put_some(store, 5)
    pending, new = job_of([store.root], table).dry_run()
    assert pending is not None
    assert new is not None
    assert new.splits[0].start == pending.ends["broker-a"].next


def test_runs_can_be_small(store: StoreWriter, table: Path) -> None:
    wishes = Wishes(max_bytes=4096)
    runs = 0
    while commits := run([store.root], table, wishes=wishes):
        runs += 1
        assert commits[0].log_bytes <= 4096
    assert runs == -(-store.end // 4096)
    assert keys(table) == keys_of(store)


def test_splits_within_a_file_take_each_message_once(store: StoreWriter, table: Path) -> None:
    run([store.root], table, wishes=Wishes(split_bytes=333))
    assert keys(table) == keys_of(store)


def test_a_slow_run_writes_the_same_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Time goes on here when a task waits."""
    store = StoreWriter(tmp_path / "broker-a", segment_bytes=1 << 20)
    store.put_all(
        Draft(topic="AB"[number % 2], body=os.urandom(20_000 + number)) for number in range(90)
    )
    clock = Clock()
    monkeypatch.setattr(Pace, "of", lambda rate: Pace(rate, now=clock.now, sleep=clock.sleep))
    monkeypatch.setattr(task, "WINDOW_BYTES", 500_000)
    contents = []
    for number, rate in enumerate((1 << 40, 300_000, 130_000)):
        table = tmp_path / f"table-{number}"
        clock.slept.clear()
        run([store.root], table, rate=Rate(rate, 1))
        contents.append(
            {str(path.relative_to(table)): path.read_bytes() for path in table.glob("*/*/*")}
        )
        assert clock.now() == pytest.approx(store.end / rate, rel=0.2)
        assert all(each <= 1 for each in clock.slept)
    assert len(contents[0]) > 2
    assert contents[0] == contents[1] == contents[2]


def test_tasks_share_what_may_be_read(store: StoreWriter, table: Path) -> None:
    def rates(rate: Rate | None, *, done: int = 0) -> list[int | None]:
        its = job_of([store.root], table, rate=rate)
        _, plan = its.dry_run()
        assert plan is not None
        names = {split.name for split in plan.splits[:done]}
        return [each.max_bytes_per_second for each in its._tasks(plan, names)]

    assert rates(None) == [None] * 3
    assert rates(Rate(900, 2)) == [450] * 3
    assert rates(Rate(900, 16)) == [300] * 3
    assert rates(Rate(900, 16), done=2) == [900]
    assert rates(Rate(900, 16), done=3) == []


def test_settings_are_those_of_the_table(store: StoreWriter, table: Path) -> None:
    run([store.root], table)
    with pytest.raises(TableError, match="partition-by"):
        run([store.root], table, settings=replace(SETTINGS, partition_by=()))


def test_another_run_makes_the_table_meanwhile(
    store: StoreWriter, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As can be where there are no locks."""
    others = replace(SETTINGS, partition_by=())

    def too_late(its: ledger.Ledger, _settings: object) -> bool:
        its.folder.write("_ingest/table.json", others.to_json())
        return False

    monkeypatch.setattr(ledger.Ledger, "create_table", too_late)
    with pytest.raises(TableError, match="made with partition-by=none"):
        run([store.root], table)


def test_a_run_whose_plan_was_replaced_puts_nothing_in_its_place(
    store: StoreWriter, table: Path
) -> None:
    """As can be where there are no locks: the sooner it is noticed, the fewer strays there are."""
    its = job_of([store.root], table)

    def too_late(tasks: Sequence[Task]) -> list[Outcome]:
        path = "_ingest/plans/0000000001.json"
        its.folder.write(path, Plan(1, "of another run", 0, (), {}).to_json())
        return run_here(tasks)

    with pytest.raises(TableBusy, match="replaced the plan of run 1"):
        list(replace(its, start_runner=lambda: too_late).run())
    assert list(its.ledger.data_files()) == []


def test_an_attempt_that_ends_after_the_commit_puts_nothing_in_its_place(
    store: StoreWriter, table: Path
) -> None:
    tasks: list[Task] = []
    its = job_of([store.root], table)

    def remembering(given: Sequence[Task]) -> list[Outcome]:
        tasks.extend(given)
        return run_here(given)

    list(replace(its, start_runner=lambda: remembering).run())
    written = {path: path.stat().st_mtime_ns for path in table.glob("topic=*/dt=*/*")}
    assert all(isinstance(outcome_of(each).error, TableBusy) for each in tasks)
    assert {path: path.stat().st_mtime_ns for path in written} == written
    assert its.ledger.folder.list("_ingest/done") == []


def test_progress_that_cannot_be_told_hides_no_error(
    table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreachable(*_: object) -> None:
        raise OSError("the bucket does not answer")

    monkeypatch.setattr(ledger.Ledger, "results", unreachable)
    monkeypatch.setattr(job, "LOOK_EVERY_S", 0)
    plan = Plan(1, "one", 0, (), {})
    with (
        pytest.raises(Killed),
        job._watched(job_of([], table).ledger, plan, set(), job.Silent()),
    ):
        raise Killed


def test_two_runs_at_once(store: StoreWriter, table: Path) -> None:
    first = job_of([store.root], table)
    with first.folder.lock(), pytest.raises(TableBusy):
        run([store.root], table)


def test_what_retention_deleted(store: StoreWriter, table: Path) -> None:
    run([store.root], table)
    put_some(store, 90)
    before = store.end
    while min(int(path.name) for path in (store.root / "commitlog").iterdir()) < before - 9000:
        store.delete_segment()
    with pytest.raises(DataLossError, match="--allow-data-loss"):
        run([store.root], table)
    (commit,) = run([store.root], table, wishes=Wishes(allow_data_loss=True))
    (lost,) = commit.lost
    taken = [s for s in store.stored if not lost.start <= s.physical_offset < lost.end]
    expected = sorted((s.draft.topic, s.draft.queue_id, s.queue_offset) for s in taken)
    assert len(expected) < len(store.stored)
    assert keys(table) == expected


def test_what_is_deleted_during_a_run_leaves_no_stray_parts(
    store: StoreWriter, table: Path, kill: Callable[[Stage, int], None]
) -> None:
    """The first attempt wrote a part of it, the second finds nothing."""
    kill(Stage.ONE_PART_IN_PLACE, 1)
    with pytest.raises(Killed):
        run([store.root], table)
    assert keys(table) != []
    gone = store.delete_segment()
    with pytest.raises(DataLossError, match="has no bytes from 0 to 4096"):
        run([store.root], table)
    kill(Stage.COMMITTED, 1)
    with pytest.raises(Killed):
        run([store.root], table, wishes=Wishes(allow_data_loss=True))
    assert run([store.root], table) == []
    (commit,) = job_of([], table).ledger.commits()
    assert commit.lost == (Lost("broker-a", 0, 4096),)
    assert keys(table) == sorted(
        (s.draft.topic, s.draft.queue_id, s.queue_offset)
        for s in store.stored
        if s.physical_offset >= 4096
    )
    assert gone.name == "0" * 20


def another_store(root: Path) -> StoreWriter:
    """Longer, and with other messages."""
    other = StoreWriter(root, segment_bytes=4096)
    other._next["Orders", 0] = 1000
    put_some(other, 90)
    return other


def test_nothing_is_written_into_a_folder_that_is_no_table(store: StoreWriter, table: Path) -> None:
    table.mkdir()
    (table / "holiday.jpg").touch()
    with pytest.raises(TableError, match="holiday"):
        run([store.root], table)
    assert [path.name for path in table.iterdir()] == ["holiday.jpg"]


def test_another_store_of_the_same_name(store: StoreWriter, table: Path, tmp_path: Path) -> None:
    run([store.root], table)
    shorter = store_of(tmp_path / "other" / "broker-a", 10)
    with pytest.raises(StoreError, match="another broker's store, or was cut and rewritten"):
        run([shorter.root], table)
    longer = another_store(tmp_path / "third" / "broker-a")
    with pytest.raises(StoreError, match="was cut and rewritten: before offset"):
        run([longer.root], table)


def test_errors_of_tasks(store: StoreWriter, table: Path) -> None:
    damaged = store.stored[3]
    _overwrite(store, damaged.physical_offset + 4, b"\0\0\0\0")
    with pytest.raises(BadRecordError, match=r"--bad-records quarantine goes on without it$"):
        run([store.root], table, quarantines=False)
    _overwrite(store, store.stored[50].physical_offset + 4, b"\0\0\0\0")
    with pytest.raises(BadRecordError, match=r"; splits that failed: 2$"):
        run([store.root], table.with_name("other"), quarantines=False)


def test_attempts_at_a_task_may_overlap(store: StoreWriter, table: Path) -> None:
    """As when Spark begins a second one beside the first."""

    def each_three_times(tasks: Sequence[Task]) -> list[Outcome]:
        with ThreadPoolExecutor(3 * len(tasks)) as pool:
            return list(pool.map(outcome_of, [*tasks, *tasks, *tasks]))[: len(tasks)]

    its = replace(job_of([store.root], table), start_runner=lambda: each_three_times)
    (commit,) = its.run()
    assert commit.rows == 60
    assert keys(table) == keys_of(store)
    named = {part.path: part.size_bytes for part in commit.parts}
    assert {path: its.folder.size(path) for path in its.ledger.data_files()} == named


def test_a_task_that_gives_nothing_is_a_failure(store: StoreWriter, table: Path) -> None:
    lazy = replace(
        job_of([store.root], table), start_runner=lambda: lambda tasks: [Outcome(None, None)]
    )
    with pytest.raises(RunFailed):
        list(lazy.run())


class Ear:
    """Remembers what it was told."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    def planned(self, plan: Plan, done: int, *, resumed: bool) -> None:
        self.heard.append(f"planned {plan.run} {done} {resumed}")

    def split_done(self, result: SplitResult) -> None:
        self.heard.append(f"split {result.size_bytes}")

    def committed(self, plan: Plan, commit: Commit) -> None:
        self.heard.append(f"committed {commit.run} {commit.rows}")


def test_the_listener_hears_of_every_split_once(
    store: StoreWriter, table: Path, kill: Callable[[Stage, int], None]
) -> None:
    ear = Ear()
    kill(Stage.SPLIT_DONE, 1)
    with pytest.raises(Killed):
        run([store.root], table, listener=ear)
    assert ear.heard == ["planned 1 0 False", "split 4096"]
    ear.heard.clear()
    run([store.root], table, listener=ear)
    sizes = [int(each.split()[1]) for each in ear.heard if each.startswith("split")]
    assert sum(sizes) == store.end - 4096
    assert ear.heard[0] == "planned 1 4096 True"
    assert ear.heard[-1] == "committed 1 60"


def _overwrite(store: StoreWriter, at: int, data: bytes) -> None:
    first = at // store.segment_bytes * store.segment_bytes
    with store.segment(first).open("r+b") as file:
        file.seek(at - first)
        file.write(data)


def test_stages_are_all_of_a_run() -> None:
    """A stage that nothing reaches would be a test that tests nothing."""
    sources = "".join(
        Path(module.__file__).read_text("utf-8")
        for module in (job, ledger, parts, task)
        if module.__file__
    )
    assert {stage for stage in Stage if f"Stage.{stage.name})" in sources} == set(stages.Stage)
