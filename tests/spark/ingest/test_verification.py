# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from deltalake import DeltaTable, write_deltalake

from tests.spark.clock import Clock
from tests.spark.deletions import delete_topic
from tests.spark.ingest.stores_and_tables import SETTINGS, job_of, put_some, run, store_of
from tests.spark.stores import Draft, StoreWriter
from txrocketmq.spark.arrow.errors import TableError
from txrocketmq.spark.ingest import verification as module
from txrocketmq.spark.ingest.copy_plan import Wishes
from txrocketmq.spark.ingest.runners.runner import Rate, run_here
from txrocketmq.spark.ingest.settings import TableSettings
from txrocketmq.spark.ingest.verification import Verification
from txrocketmq.spark.options.pace import Pace


@pytest.fixture
def store(tmp_path: Path) -> StoreWriter:
    return store_of(tmp_path / "broker-a")


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return tmp_path / "table"


def verify(table: Path, *stores: Path) -> Verification:
    job = job_of(stores, table)
    return module.verify(job.table, job.stores, run_here)


def test_a_good_table(store: StoreWriter, table: Path, tmp_path: Path) -> None:
    other = store_of(tmp_path / "broker-b", 7)
    run([store.root, other.root], table)
    found = verify(table, store.root, other.root)
    assert found.is_good
    assert (found.messages, found.without_queues) == (67, ())
    assert found.spans["DefaultCluster/broker-a"][:2] == (0, store.end)
    assert found.queues == 12


def test_a_golden_store(
    golden_version: str, golden_store: Callable[[str], Path], table: Path
) -> None:
    store = golden_store(golden_version) / "clean"
    run([store], table)
    found = verify(table, store)
    assert found.is_good, found.differences
    assert found.messages > 300
    assert found.without_queues == ()


@pytest.mark.parametrize("noted", [False, True])
def test_topics_that_were_deleted_are_compared_with_the_log(
    store: StoreWriter, table: Path, noted: bool
) -> None:
    run([store.root], table)
    delete_topic(store, "Orders", noted=noted)
    delete_topic(store, "Payments", noted=noted)
    store.put_all([Draft("Payments", 0)] * 3)  # made again, with fewer queues
    store.write_config()
    run([store.root], table)
    found = verify(table, store.root)
    assert found.is_good, found.differences
    assert (found.messages, found.deleted) == (63, ("Orders", "Payments"))

    DeltaTable(table).delete("topic = 'Orders' AND \"queueOffset\" = 3")
    DeltaTable(table).delete('topic = \'Payments\' AND "queueOffset" = 1 AND "queueId" = 0')
    texts = sorted(map(str, verify(table, store.root).differences))
    assert [text.partition(" of Default")[0] for text in texts] == [
        "Orders queue 0", "Orders queue 1", "Payments queue 0",
    ]  # fmt: skip
    assert all("the log" in text for text in texts)


@pytest.mark.parametrize("noted", [False, True])
def test_light_queues_that_were_deleted_are_compared_with_the_log(
    tmp_path: Path, table: Path, noted: bool
) -> None:
    store = StoreWriter(tmp_path / "broker-a", segment_bytes=4096)
    entering = [Draft("Orders", light=("%LMQ%a", "%LMQ%b")), Draft("Orders")] * 20
    store.put_all(entering)
    settings = TableSettings(columns=SETTINGS.columns, source=(("topic", "%LMQ%a,%LMQ%b,Orders"),))
    run([store.root], table, settings=settings)
    delete_topic(store, "%LMQ%a", noted=noted)
    delete_topic(store, "%LMQ%b", noted=noted)
    store.put_all([Draft("Orders", light=("%LMQ%b",))] * 3)
    store.write_config()
    run([store.root], table, settings=settings)
    found = verify(table, store.root)
    assert found.is_good, found.differences
    assert (found.messages, found.deleted) == (86, ("%LMQ%a", "%LMQ%b"))

    DeltaTable(table).delete("topic = '%LMQ%a' AND \"queueOffset\" = 3")
    DeltaTable(table).delete("topic = '%LMQ%b' AND \"queueOffset\" = 1")
    texts = sorted(map(str, verify(table, store.root).differences))
    assert [text.partition(" of Default")[0] for text in texts] == [
        "%LMQ%a queue 0", "%LMQ%b queue 0",
    ]  # fmt: skip
    assert all("the log" in text for text in texts)


def test_a_topic_that_lost_its_queues_was_not_deleted(store: StoreWriter, table: Path) -> None:
    run([store.root], table)
    shutil.rmtree(store.root / "consumequeue" / "Orders")
    found = verify(table, store.root)
    assert found.deleted == ()
    assert {each.beside for each in found.differences} == {"queue"}


@pytest.mark.parametrize("split_bytes", [None, 500])
def test_what_is_new_does_not_matter(
    store: StoreWriter, table: Path, split_bytes: int | None
) -> None:
    run([store.root], table, wishes=Wishes(split_bytes=split_bytes))
    put_some(store, 10)
    assert verify(table, store.root).messages == 60
    assert verify(table, store.root).is_good


def test_what_is_not_in_the_queues_yet_is_not_compared(store: StoreWriter, table: Path) -> None:
    end = store.end
    store.put(Draft(topic="Orders"), dispatch=False)
    run([store.root], table)
    found = verify(table, store.root)
    assert found.is_good
    assert found.spans["DefaultCluster/broker-a"].end == end


def test_rows_that_are_missing_or_doubled(store: StoreWriter, table: Path) -> None:
    run([store.root], table)
    DeltaTable(table).delete('topic = \'Orders\' AND "queueOffset" = 0 AND "queueId" = 0')
    found = verify(table, store.root)
    assert not found.is_good
    assert {each.beside for each in found.differences} == {"log", "queue"}
    first = found.differences[0]
    assert first.table.messages == first.store.messages - 1
    assert str(first) == (
        f"Orders queue {first.queue.queue_id} of DefaultCluster/broker-a: the table has"
        f" {first.table.messages} messages, the log {first.store.messages}"
    )
    one = DeltaTable(table).to_pyarrow_table(
        filters=[("topic", "=", "Orders"), ("queueId", "=", 0), ("queueOffset", "=", 1)]
    )
    write_deltalake(table, one, mode="append")
    assert one.num_rows == 1
    found = verify(table, store.root)
    assert "but not those of the log" in str(found.differences[0])


def test_compaction_and_vacuum_change_nothing(store: StoreWriter, table: Path) -> None:
    """What docs/ingest.md tells to do."""
    damaged = store.stored[5]
    with store.segment(0).open("r+b") as file:
        file.seek(damaged.physical_offset + 4)
        file.write(b"oops")
    run([store.root], table)
    put_some(store, 40)
    run([store.root], table)
    (table / "part-of-a-killed-run.parquet").touch()
    assert DeltaTable(table).optimize.compact()["numFilesAdded"]
    DeltaTable(table).vacuum(0, dry_run=False, enforce_retention_duration=False, full=True)
    DeltaTable(table).create_checkpoint()
    left = [path for path in table.rglob("*.parquet") if "_quarantine" not in path.parts]
    left = [path for path in left if "_delta_log" not in path.parts]
    assert len(left) == len(DeltaTable(table).file_uris())
    found = verify(table, store.root)
    assert found.is_good
    assert found.messages == 99
    put_some(store, 10)
    assert [commit.rows for commit in run([store.root], table)] == [10]
    assert verify(table, store.root).is_good


def test_a_file_that_cannot_be_read_is_told(store: StoreWriter, table: Path) -> None:
    run([store.root], table)
    path = next(table.rglob("*.parquet"))
    path.write_bytes(path.read_bytes()[:-8] + b"\xff" * 8)
    found = verify(table, store.root)
    assert not found.is_good
    assert "table cannot be read: " in found.unreadable


def test_a_table_is_not_good_beside_stores_that_it_is_not_of(
    store: StoreWriter, table: Path, tmp_path: Path
) -> None:
    other = store_of(tmp_path / "broker-b", 7)
    run([store.root, other.root], table)
    found = verify(table, other.root)
    assert found.is_good
    assert (found.messages, found.without_store) == (7, ("DefaultCluster/broker-a",))
    third = store_of(tmp_path / "broker-c", 7)
    with pytest.raises(
        TableError, match="nothing of .*broker-c to verify: .*broker-a, DefaultCluster/broker-b$"
    ):
        verify(table, third.root)


def test_quarantine_and_losses_are_no_differences(store: StoreWriter, table: Path) -> None:
    damaged = store.stored[5]
    with store.segment(0).open("r+b") as file:
        file.seek(damaged.physical_offset + 4)
        file.write(b"oops")
    (store.root / "commitlog" / f"{4096:020d}").unlink()
    run([store.root], table, wishes=Wishes(allow_data_loss=True))
    found = verify(table, store.root)
    assert found.is_good, found.differences
    assert 0 < found.messages < 59


def test_what_retention_deleted_since_is_not_compared(store: StoreWriter, table: Path) -> None:
    run([store.root], table)
    store.delete_segment()
    found = verify(table, store.root)
    assert found.is_good
    assert found.spans["DefaultCluster/broker-a"].start == 4096
    assert 0 < found.messages < 60


@pytest.mark.parametrize(
    "settings",
    [
        replace(SETTINGS, source=(("view", "physical"),)),
        replace(SETTINGS, source=(("topicPattern", "Or.*"),), partition_by=()),
        replace(SETTINGS, partition_by=("dt",)),
    ],
)
def test_every_kind_of_table(store: StoreWriter, table: Path, settings: TableSettings) -> None:
    run([store.root], table, settings=settings)
    found = verify(table, store.root)
    assert found.is_good
    assert found.messages == (20 if settings.partition_by == () else 60)
    physical = settings.source == (("view", "physical"),)
    assert found.without_queues == (("DefaultCluster/broker-a",) if physical else ())


def test_without_queues_the_log_is_left(store: StoreWriter, table: Path) -> None:
    shutil.rmtree(store.root / "consumequeue")
    run([store.root], table)
    found = verify(table, store.root)
    assert found.is_good
    assert found.without_queues == ("DefaultCluster/broker-a",)


def test_logs_are_counted_as_fast_as_is_allowed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = StoreWriter(tmp_path / "broker-a", segment_bytes=1 << 20)
    store.put_all(Draft(body=bytes(20_000)) for _ in range(90))
    run([store.root], tmp_path / "table")
    clock = Clock()
    monkeypatch.setattr(Pace, "of", lambda rate: Pace(rate, now=clock.now, sleep=clock.sleep))
    job = job_of([store.root], tmp_path / "table")
    assert module.verify(job.table, job.stores, run_here, Rate(200_000, 2)).is_good
    assert clock.now() == pytest.approx(store.end / 100_000, rel=0.2), "two tasks share it"


def test_without_a_commit_there_is_nothing_to_verify(table: Path) -> None:
    with pytest.raises(TableError, match="nothing was committed"):
        verify(table)
