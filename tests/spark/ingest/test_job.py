# SPDX-License-Identifier: Apache-2.0
"""Whole runs in one process; killed processes are in tests/process/test_ingest_killed.py."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from deltalake import DeltaTable

from tests.spark.clock import Clock
from tests.spark.ingest.stores_and_tables import (
    SETTINGS,
    job_of,
    keys,
    keys_of,
    put_some,
    quarantined,
    run,
    store_of,
)
from tests.spark.stores import Draft, StoreWriter
from txrocketmq.spark.arrow.errors import (
    BadRecordError,
    DataLossError,
    StoreError,
    TableBusy,
    TableError,
)
from txrocketmq.spark.ingest import job, task
from txrocketmq.spark.ingest.copy_plan import Plan, Wishes
from txrocketmq.spark.ingest.job import Commit
from txrocketmq.spark.ingest.runners.runner import Outcome, Rate, Task, outcome_of, run_here
from txrocketmq.spark.ingest.tables.delta_lake import DeltaLakeTable
from txrocketmq.spark.ingest.task import SplitResult
from txrocketmq.spark.options.pace import Pace


class Killed(BaseException):
    """As sudden as SIGKILL, but for one process."""


@pytest.fixture
def store(tmp_path: Path) -> StoreWriter:
    return store_of(tmp_path / "broker-a")


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return tmp_path / "table"


def test_a_run_takes_all_and_the_next_only_what_is_new(store: StoreWriter, table: Path) -> None:
    (first,) = run([store.root], table)
    assert keys(table) == keys_of(store)
    assert (first.rows, first.records) == (60, 60)
    assert first.topics == {"Orders": 20, "Payments": 20, "%RETRY%group": 20}
    assert positions(table)["DefaultCluster/broker-a"] == store.end
    assert run([store.root], table) == []
    put_some(store, 25)
    (second,) = run([store.root], table)
    assert second.rows == 25
    assert second.version > first.version
    assert keys(table) == keys_of(store)


def positions(table: Path) -> dict[str, int]:
    """How far each log is in the table."""
    return {broker: at.next for broker, at in DeltaLakeTable(str(table)).positions().items()}


def test_several_brokers(store: StoreWriter, table: Path, tmp_path: Path) -> None:
    other = store_of(tmp_path / "broker-b", 10)
    run([store.root, other.root], table)
    assert positions(table) == {
        "DefaultCluster/broker-a": store.end,
        "DefaultCluster/broker-b": other.end,
    }
    assert keys(table) == keys_of(store, other)
    put_some(store, 5)
    run([store.root], table)
    assert positions(table) == {
        "DefaultCluster/broker-a": store.end,
        "DefaultCluster/broker-b": other.end,
    }


@pytest.mark.parametrize("where", ["Table.expect", "Table.quarantine", "Table.commit", "after"])
@pytest.mark.parametrize("times", [1, 2])
def test_killed_between_any_two_steps_nothing_is_lost_or_doubled(
    store: StoreWriter, table: Path, monkeypatch: pytest.MonkeyPatch, where: str, times: int
) -> None:
    """With a commit for each file of the log."""
    monkeypatch.setattr(job, "COMMIT_BYTES", 1)
    damaged = [store.stored[number] for number in (3, 30)]
    for each in damaged:
        _overwrite(store, each.physical_offset + 4, b"oops")
    left = [times if where != "Table.expect" else 1]

    def or_killed(step: Callable[..., object], *, afterwards: bool) -> Callable[..., object]:
        def stepped(*given: object) -> object:
            left[0] -= 1
            if left[0] == 0 and not afterwards:
                raise Killed
            done = step(*given)
            if left[0] == 0:
                raise Killed
            return done

        return stepped

    with monkeypatch.context() as patch:
        name = "commit" if where == "after" else where.partition(".")[2]
        step = or_killed(getattr(DeltaLakeTable, name), afterwards=where == "after")
        patch.setattr(DeltaLakeTable, name, step)
        with pytest.raises(Killed):
            run([store.root], table)
    put_some(store, 30)
    run([store.root], table)
    gone = {(s.draft.topic, s.draft.queue_id, s.queue_offset) for s in damaged}
    assert keys(table) == [key for key in keys_of(store) if key not in gone]
    assert sorted(row["physicalOffset"] for row in quarantined(table)) == [
        each.physical_offset for each in damaged
    ]
    assert positions(table) == {"DefaultCluster/broker-a": store.end}


def test_what_was_committed_is_not_done_again(
    store: StoreWriter, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job, "COMMIT_BYTES", 1)
    commits = job_of([store.root], table).run()
    next(commits)
    commits.close()  # type: ignore[attr-defined]
    assert positions(table) == {"DefaultCluster/broker-a": 4096}
    commits = job_of([store.root], table).run()
    assert next(commits).results[0].split.start == 4096
    list(commits)
    assert keys(table) == keys_of(store)


def test_tasks_end_in_any_order(
    store: StoreWriter, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job, "COMMIT_BYTES", 1)

    def backwards(tasks: Sequence[Task]) -> Iterator[tuple[int, Outcome]]:
        yield from reversed(list(run_here(tasks)))

    commits = list(replace(job_of([store.root], table), start_runner=lambda: backwards).run())
    assert len(commits) == 1, "nothing is there without what comes before it"
    assert keys(table) == keys_of(store)


def test_a_log_is_not_taken_again_under_another_name(
    store: StoreWriter, table: Path, tmp_path: Path
) -> None:
    """A store that tells no name has that of its folder, which a copy has not."""
    run([store.root], table)
    put_some(store, 10)
    copy = tmp_path / "snapshot-2"
    shutil.copytree(store.root, copy)
    with pytest.raises(
        StoreError,
        match="already, as that of DefaultCluster/broker-a, and not of DefaultCluster/snapshot-2",
    ):
        run([copy], table)
    assert len(keys(table)) == 60
    (commit,) = run([store.root, store_of(tmp_path / "broker-b", 5).root], table)
    assert commit.rows == 15


def test_a_dry_run_writes_nothing(store: StoreWriter, table: Path) -> None:
    plan = job_of([store.root], table).dry_run()
    assert plan is not None
    assert plan.size_bytes == store.end
    assert not table.exists()
    run([store.root], table)
    assert job_of([store.root], table).dry_run() is None


def test_runs_can_be_small(store: StoreWriter, table: Path) -> None:
    wishes = Wishes(max_bytes=4096)
    runs = 0
    while commits := run([store.root], table, wishes=wishes):
        runs += 1
        assert commits[0].log_bytes <= 4096
    assert runs == -(-store.end // 4096)
    assert keys(table) == keys_of(store)


def test_splits_within_a_file_take_each_message_once(
    store: StoreWriter, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A commit ends only where a record begins, since the next run begins there."""
    monkeypatch.setattr(job, "COMMIT_BYTES", 1)
    starts = {stored.physical_offset for stored in store.stored} | {store.end}
    for commit in job_of([store.root], table, wishes=Wishes(split_bytes=333)).run():
        end = commit.results[-1].split.end
        assert end in starts or end % store.segment_bytes == 0
    assert keys(table) == keys_of(store)


def test_a_slow_run_takes_its_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Time goes on here when a task waits."""
    store = StoreWriter(tmp_path / "broker-a", segment_bytes=1 << 20)
    store.put_all(Draft(topic="AB"[number % 2], body=bytes(20_000)) for number in range(90))
    clock = Clock()
    monkeypatch.setattr(Pace, "of", lambda rate: Pace(rate, now=clock.now, sleep=clock.sleep))
    monkeypatch.setattr(task, "WINDOW_BYTES", 500_000)
    run([store.root], tmp_path / "table", rate=Rate(130_000, 1))
    assert clock.now() == pytest.approx(store.end / 130_000, rel=0.2)
    assert all(each <= 1 for each in clock.slept)
    assert keys(tmp_path / "table") == keys_of(store)


def test_tasks_share_what_may_be_read(store: StoreWriter, table: Path) -> None:
    def rates(rate: Rate | None) -> list[int | None]:
        its = job_of([store.root], table, rate=rate)
        plan = its.dry_run()
        assert plan is not None
        return [each.max_bytes_per_second for each in its._tasks(plan)]

    assert rates(None) == [None] * 3
    assert rates(Rate(900, 2)) == [450] * 3
    assert rates(Rate(900, 16)) == [300] * 3


def test_settings_are_those_of_the_table(store: StoreWriter, table: Path) -> None:
    run([store.root], table)
    with pytest.raises(TableError, match="partition-by"):
        run([store.root], table, settings=replace(SETTINGS, partition_by=()))


def test_another_run_makes_the_table_meanwhile(
    store: StoreWriter, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    others = replace(SETTINGS, partition_by=())
    create = DeltaLakeTable.create

    def too_late(its: DeltaLakeTable, settings: object) -> None:
        create(its, others)
        create(its, SETTINGS)

    monkeypatch.setattr(DeltaLakeTable, "create", too_late)
    with pytest.raises(TableBusy, match="another run wrote to"):
        run([store.root], table)
    with pytest.raises(TableError, match="made with partition-by=none"):
        run([store.root], table)


@pytest.mark.parametrize("late", [False, True])
def test_of_two_runs_at_once_one_is_committed(
    store: StoreWriter, table: Path, monkeypatch: pytest.MonkeyPatch, late: bool
) -> None:
    """Whether the second one comes while the first one reads or while it commits."""
    its = job_of([store.root], table)

    def meanwhile(tasks: Sequence[Task]) -> Iterator[tuple[int, Outcome]]:
        if not late:
            run([store.root], table)
        yield from run_here(tasks)

    if late:
        known = DeltaLakeTable.quarantine

        def quarantine(table_: DeltaLakeTable, *given: object) -> None:
            monkeypatch.undo()
            table_.version()  # what it will commit upon
            run([store.root], table)
            known(table_, *given)  # type: ignore[arg-type]

        monkeypatch.setattr(DeltaLakeTable, "quarantine", quarantine)
    with pytest.raises(TableBusy, match="another run wrote to"):
        list(replace(its, start_runner=lambda: meanwhile).run())
    assert keys(table) == keys_of(store)


def test_another_kind_of_writer_does_no_harm(store: StoreWriter, table: Path) -> None:
    """Such as a compaction while a run reads."""
    run([store.root], table)
    put_some(store, 20)

    def meanwhile(tasks: Sequence[Task]) -> Iterator[tuple[int, Outcome]]:
        yield from run_here(tasks)
        DeltaTable(table).optimize.compact()

    list(replace(job_of([store.root], table), start_runner=lambda: meanwhile).run())
    assert keys(table) == keys_of(store)


def test_what_retention_deleted(store: StoreWriter, table: Path) -> None:
    run([store.root], table)
    put_some(store, 90)
    before = store.end
    while min(int(path.name) for path in (store.root / "commitlog").iterdir()) < before - 9000:
        store.delete_segment()
    with pytest.raises(DataLossError, match="--allow-data-loss"):
        run([store.root], table)
    (commit,) = run([store.root], table, wishes=Wishes(allow_data_loss=True))
    (lost,) = commit.all_lost
    taken = [s for s in store.stored if not lost.start <= s.physical_offset < lost.end]
    expected = sorted((s.draft.topic, s.draft.queue_id, s.queue_offset) for s in taken)
    assert len(expected) < len(store.stored)
    assert keys(table) == expected


def test_all_that_is_new_was_deleted(store: StoreWriter, table: Path) -> None:
    """Nothing is left to take, but the table goes on behind it."""
    run([store.root], table)
    put_some(store, 90)
    while list((store.root / "commitlog").iterdir()):
        store.delete_segment()
    start = -(-store.end // 4096) * 4096
    (store.root / "commitlog" / f"{start:020d}").write_bytes(bytes(4096))
    shutil.rmtree(store.root / "consumequeue")
    (commit,) = run([store.root], table, wishes=Wishes(allow_data_loss=True))
    assert (commit.rows, commit.results) == (0, ())
    assert positions(table) == {"DefaultCluster/broker-a": start}
    assert len(keys(table)) == 60


def test_what_is_deleted_during_a_run(store: StoreWriter, table: Path) -> None:
    def meanwhile(tasks: Sequence[Task]) -> Iterator[tuple[int, Outcome]]:
        (store.root / "commitlog" / f"{4096:020d}").unlink(missing_ok=True)
        yield from run_here(tasks)

    its = replace(job_of([store.root], table), start_runner=lambda: meanwhile)
    with pytest.raises(DataLossError, match="from 4096 to 8192"):
        list(its.run())
    assert positions(table) == {"DefaultCluster/broker-a": 4096}, (
        "what comes before is in the table"
    )
    its = replace(its, table=DeltaLakeTable(str(table)), wishes=Wishes(allow_data_loss=True))
    list(its.run())
    assert keys(table) == sorted(
        (s.draft.topic, s.draft.queue_id, s.queue_offset)
        for s in store.stored
        if not 4096 <= s.physical_offset < 8192
    )
    (row,) = quarantined(table)
    assert (row["physicalOffset"], row["length"], row["reason"]) == (4096, 4096, "gone")


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
    with pytest.raises(
        BadRecordError, match=r"with --bad-records quarantine the run continues without it$"
    ):
        run([store.root], table, quarantines=False)
    _overwrite(store, store.stored[50].physical_offset + 4, b"\0\0\0\0")
    with pytest.raises(BadRecordError, match=r"; splits that failed: 2$"):
        run([store.root], table.with_name("other"), quarantines=False)


def test_attempts_at_a_task_may_overlap(store: StoreWriter, table: Path) -> None:
    """As when Spark begins a second one: its files are nobody's."""

    def each_twice(tasks: Sequence[Task]) -> Iterator[tuple[int, Outcome]]:
        for number, each in enumerate(tasks):
            outcome_of(each)
            yield number, outcome_of(each)

    (commit,) = replace(job_of([store.root], table), start_runner=lambda: each_twice).run()
    assert commit.rows == 60
    assert keys(table) == keys_of(store)


class Ear:
    """Remembers what it was told."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    def planned(self, plan: Plan) -> None:
        self.heard.append(f"planned {plan.size_bytes}")

    def split_done(self, result: SplitResult) -> None:
        self.heard.append(f"split {result.split.size_bytes}")

    def committed(self, commit: Commit) -> None:
        self.heard.append(f"committed {commit.rows}")


def test_the_listener_hears_of_every_split_once(store: StoreWriter, table: Path) -> None:
    ear = Ear()
    run([store.root], table, listener=ear)
    sizes = [int(each.split()[1]) for each in ear.heard if each.startswith("split")]
    assert len(sizes) == 3
    assert sum(sizes) == store.end
    assert ear.heard[0] == f"planned {store.end}"
    assert ear.heard[-1] == "committed 60"


def _overwrite(store: StoreWriter, at: int, data: bytes) -> None:
    first = at // store.segment_bytes * store.segment_bytes
    with store.segment(first).open("r+b") as file:
        file.seek(at - first)
        file.write(data)
