# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.spark.clock import Clock
from tests.spark.ingest.tables import SETTINGS, job_of, put_some, run, store_of
from tests.spark.stores import Draft, StoreWriter
from txrocketmq.spark.ingest import verify as module
from txrocketmq.spark.ingest.errors import TableError
from txrocketmq.spark.ingest.folder import LocalFolder
from txrocketmq.spark.ingest.plan import Wishes
from txrocketmq.spark.ingest.runner import Rate, run_here
from txrocketmq.spark.ingest.settings import TableSettings
from txrocketmq.spark.ingest.verify import Verification
from txrocketmq.spark.pace import Pace


@pytest.fixture
def store(tmp_path: Path) -> StoreWriter:
    return store_of(tmp_path / "broker-a")


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return tmp_path / "table"


def verify(table: Path, *stores: Path) -> Verification:
    job = job_of(stores, table)
    return module.verify(job.ledger, job.stores, run_here)


def test_a_good_table(store: StoreWriter, table: Path, tmp_path: Path) -> None:
    other = store_of(tmp_path / "broker-b", 7)
    run([store.root, other.root], table)
    found = verify(table, store.root, other.root)
    assert found.is_good
    assert (found.messages, found.without_queues) == (67, ())
    assert found.spans["broker-a"][:2] == (0, store.end)
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
    assert found.spans["broker-a"].end == end


def test_rows_that_are_missing_or_doubled(
    store: StoreWriter, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run([store.root], table)
    monkeypatch.setattr(type(job_of([], table).folder), "size", _sizes_of_manifest(table))
    path = next(iter(sorted(table.glob("topic=Orders/dt=*/*.parquet"))))
    content = pq.ParquetFile(path).read()
    pq.write_table(content.slice(1), path)
    found = verify(table, store.root)
    assert not found.is_good
    assert {each.beside for each in found.differences} == {"log", "queue"}
    first = found.differences[0]
    assert first.table.messages == first.store.messages - 1
    assert str(first) == (
        f"Orders queue {first.queue.queue_id} of broker-a: the table has"
        f" {first.table.messages} messages, the log {first.store.messages}"
    )
    pq.write_table(pa.concat_tables([content.slice(1), content.slice(1, 1)]), path)
    assert not verify(table, store.root).is_good
    pq.write_table(content, path)
    assert verify(table, store.root).is_good


def _sizes_of_manifest(table: Path) -> Callable[[object, str], int | None]:
    (commit,) = job_of([], table).ledger.commits()
    sizes = {part.path: part.size_bytes for part in commit.parts}
    return lambda _folder, path: sizes.get(path)


def test_files_are_held_against_the_manifest(store: StoreWriter, table: Path) -> None:
    (commit,) = run([store.root], table)
    first, second = sorted(part.path for part in commit.parts)[:2]
    stray = table / "topic=Orders" / "stray.parquet"
    shutil.copy(table / first, stray)
    (table / first).unlink()
    with (table / second).open("ab") as file:
        file.write(b"more")
    found = verify(table, store.root)
    assert found.missing == (first, second)
    assert found.strays == ("topic=Orders/stray.parquet",)
    assert not found.is_good


def test_parts_that_cannot_be_read_are_named(store: StoreWriter, table: Path) -> None:
    (commit,) = run([store.root], table)
    first, second = sorted(part.path for part in commit.parts)[:2]
    for path, at in ((first, -8), (second, 4)):
        with (table / path).open("r+b") as file:
            file.seek(at, 2 if at < 0 else 0)
            file.write(b"\xff" * 4)
    found = verify(table, store.root)
    assert not found.is_good
    assert [text.partition(": ")[0] for text in found.damaged] == [first, second]
    assert found.missing == ()


def test_a_quarantine_that_cannot_be_read_is_named(store: StoreWriter, table: Path) -> None:
    run([store.root], table)
    LocalFolder(str(table)).write("_quarantine/part-x.parquet", b"oops")
    with pytest.raises(TableError, match=r"_quarantine/part-x.parquet cannot be read: "):
        verify(table, store.root)


def test_a_table_is_not_good_beside_stores_that_it_is_not_of(
    store: StoreWriter, table: Path, tmp_path: Path
) -> None:
    other = store_of(tmp_path / "broker-b", 7)
    run([store.root, other.root], table)
    found = verify(table, other.root)
    assert found.is_good
    assert (found.messages, found.without_store) == (7, ("broker-a",))
    third = store_of(tmp_path / "broker-c", 7)
    with pytest.raises(TableError, match="nothing of broker-c to verify: .* broker-a, broker-b$"):
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
    assert found.spans["broker-a"].start == 4096
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
    assert found.without_queues == (("broker-a",) if physical else ())


def test_without_queues_the_log_is_left(store: StoreWriter, table: Path) -> None:
    shutil.rmtree(store.root / "consumequeue")
    run([store.root], table)
    found = verify(table, store.root)
    assert found.is_good
    assert found.without_queues == ("broker-a",)


def test_logs_are_counted_as_fast_as_is_allowed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = StoreWriter(tmp_path / "broker-a", segment_bytes=1 << 20)
    store.put_all(Draft(body=bytes(20_000)) for _ in range(90))
    run([store.root], tmp_path / "table")
    clock = Clock()
    monkeypatch.setattr(Pace, "of", lambda rate: Pace(rate, now=clock.now, sleep=clock.sleep))
    job = job_of([store.root], tmp_path / "table")
    assert module.verify(job.ledger, job.stores, run_here, Rate(200_000, 2)).is_good
    assert clock.now() == pytest.approx(store.end / 100_000, rel=0.2), "two tasks share it"


def test_without_a_commit_there_is_nothing_to_verify(table: Path) -> None:
    with pytest.raises(TableError, match="nothing was committed"):
        verify(table)
