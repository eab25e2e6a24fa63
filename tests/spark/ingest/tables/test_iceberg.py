# SPDX-License-Identifier: Apache-2.0
"""The Iceberg table; the command is killed at random in tests/process/test_ingest_killed.py."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import Table as Iceberg

from tests.spark.ingest.stores_and_tables import (
    SETTINGS,
    iceberg,
    job_of,
    keys,
    keys_of,
    put_some,
    quarantined,
    run,
    store_of,
)
from tests.spark.stores import Draft, StoreWriter
from txrocketmq.spark.arrow.errors import OptionError, TableBusy, TableError
from txrocketmq.spark.ingest import job
from txrocketmq.spark.ingest.copy_plan import CopiedRange
from txrocketmq.spark.ingest.quarantine_rows import gone
from txrocketmq.spark.ingest.runners.runner import run_here
from txrocketmq.spark.ingest.tables.iceberg import IcebergTable
from txrocketmq.spark.ingest.verification import verify

BROKER = "DefaultCluster/broker-a"


class Killed(BaseException):
    """Stands for a kill."""


@pytest.fixture
def store(tmp_path: Path) -> StoreWriter:
    return store_of(tmp_path / "broker-a")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "iceberg"


@pytest.fixture
def table(path: Path) -> IcebergTable:
    made = IcebergTable(str(path))
    assert made.settings() is None
    assert not path.exists(), "looking makes nothing"
    made.create(SETTINGS)
    return made


def opened(path: Path) -> Iceberg:
    found = iceberg(path)
    assert found is not None
    return found


def test_runs_copy_what_is_new_and_verification_is_content(store: StoreWriter, path: Path) -> None:
    assert [commit.rows for commit in run([store.root], path)] == [60]
    put_some(store, 10)
    assert [commit.rows for commit in run([store.root], path)] == [10]
    assert run([store.root], path) == []
    assert keys(path) == keys_of(store)
    made = job_of([store.root], path)
    found = verify(made.table, made.stores, run_here)
    assert found.is_good, found.differences
    assert (found.messages, made.table.row_count(), made.table.version()) == (70, 70, 2)
    assert made.table.committed_ms() > 1 << 40
    opened(path).delete("topic = 'Orders'")
    again = job_of([store.root], path)
    assert not verify(again.table, again.stores, run_here).is_good


def test_engines_read_it(store: StoreWriter, path: Path) -> None:
    store.put_all(Draft(topic="Orders", after_ms=40_000_000) for _ in range(10))
    run([store.root], path)
    found = opened(path)
    counts = Counter(each.draft.topic for each in store.stored)
    for topic, count in counts.items():
        some = found.scan(f"topic = '{topic}'")
        assert some.to_arrow().num_rows == some.count() == count
        lazy = pl.scan_iceberg(found).filter(pl.col("topic") == topic)
        assert lazy.select(pl.len()).collect().item() == count
        messages = found.scan().to_arrow_batch_reader()  # noqa: F841 - DuckDB finds it by its name
        asked = duckdb.execute("SELECT count(*) FROM messages WHERE topic = ?", [topic])
        assert asked.fetchall() == [(count,)]
    day = store.stored[-4].store_timestamp // 86_400_000 * 86_400_000
    later = sum(each.store_timestamp >= day for each in store.stored)
    since = datetime.fromtimestamp(day / 1000, UTC).isoformat()
    scan = found.scan(f"storeTimestamp >= '{since}'")
    assert scan.to_arrow().num_rows == later
    assert len(list(scan.plan_files())) < len(list(found.scan().plan_files())), "days choose files"


def test_days_beyond_the_calendar_are_found_by_their_times(store: StoreWriter, path: Path) -> None:
    store.put(Draft(topic="Orders", after_ms=1 << 50))
    run([store.root], path)
    since = "storeTimestamp >= '2100-01-01T00:00:00+00:00'"
    assert opened(path).scan(since).to_arrow().num_rows == 1
    assert opened(path).scan().count() == 61


@pytest.mark.parametrize("partition_by", [(), ("dt",), ("topic",)])
def test_other_partitions(store: StoreWriter, path: Path, partition_by: tuple[str, ...]) -> None:
    run([store.root], path, settings=replace(SETTINGS, partition_by=partition_by))
    assert keys(path) == keys_of(store)
    assert [each.name for each in opened(path).spec().fields] == list(partition_by)


@pytest.mark.parametrize("afterwards", [False, True])
@pytest.mark.parametrize("times", [1, 2, 3, 4, 5])
def test_killed_before_or_after_any_commit_nothing_is_lost_or_doubled(
    store: StoreWriter, path: Path, monkeypatch: pytest.MonkeyPatch, times: int, afterwards: bool
) -> None:
    """With a commit for each file of the log, and one of damaged records."""
    monkeypatch.setattr(job, "COMMIT_BYTES", 1)
    damaged = store.stored[30]
    with store.segment(damaged.physical_offset // 4096 * 4096).open("r+b") as file:
        file.seek(damaged.physical_offset % 4096 + 4)
        file.write(b"oops")
    left = [times]
    commit = SqlCatalog.commit_table

    def or_killed(*given: Any) -> Any:
        left[0] -= 1
        if left[0] == 0 and not afterwards:
            raise Killed
        done = commit(*given)
        if left[0] == 0:
            raise Killed
        return done

    with monkeypatch.context() as patch:
        patch.setattr(SqlCatalog, "commit_table", or_killed)
        with pytest.raises(Killed):
            run([store.root], path)
    put_some(store, 30)
    run([store.root], path)
    lost = (damaged.draft.topic, damaged.draft.queue_id, damaged.queue_offset)
    assert keys(path) == [key for key in keys_of(store) if key != lost]
    assert [row["physicalOffset"] for row in quarantined(path)] == [damaged.physical_offset]


def test_settings_come_back(table: IcebergTable, path: Path, tmp_path: Path) -> None:
    assert IcebergTable(str(path)).settings() == SETTINGS
    assert IcebergTable(str(tmp_path / "nothing")).settings() is None
    with pytest.raises(TableBusy):
        IcebergTable(str(path)).create(SETTINGS)


def test_positions_are_committed_with_files(table: IcebergTable, path: Path) -> None:
    assert table.positions() == {}
    at = {"c/b": CopiedRange(1 << 40, "00000a1f", 7), "c/a": CopiedRange(3)}
    version = table.commit([], at, {})
    assert IcebergTable(str(path)).positions() == at
    moved = {"c/a": CopiedRange(9, "ffffffff", 0)}
    assert table.commit([], moved, {"c/a": CopiedRange(3)}) == version + 1
    assert IcebergTable(str(path)).positions() == {**at, **moved}


def test_a_position_moves_from_where_it_was(table: IcebergTable, path: Path) -> None:
    other = IcebergTable(str(path))
    other.version()
    table.commit([], {"c/a": CopiedRange(5)}, {})
    for before in ({}, {"c/a": CopiedRange(4)}):
        with pytest.raises(TableBusy, match="has taken a part of the log of c/a"):
            other.commit([], {"c/a": CopiedRange(6)}, before)
    other.commit([], {"c/b": CopiedRange(7)}, {})
    assert table.positions() != other.positions(), "as it was opened before"
    assert IcebergTable(str(path)).positions() == {"c/a": CopiedRange(5), "c/b": CopiedRange(7)}


def test_of_two_that_commit_at_once_the_second_looks_again(
    table: IcebergTable, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between what it has read and its commit, another run has committed."""

    def meanwhile(step: Callable[[], object]) -> None:
        commit = SqlCatalog.commit_table

        def after(*given: Any) -> Any:
            monkeypatch.setattr(SqlCatalog, "commit_table", commit)
            step()
            return commit(*given)

        monkeypatch.setattr(SqlCatalog, "commit_table", after)

    other = IcebergTable(str(path))
    meanwhile(lambda: other.commit([], {"c/b": CopiedRange(7)}, {}))
    table.commit([], {"c/a": CopiedRange(5)}, {})
    assert IcebergTable(str(path)).positions() == {"c/a": CopiedRange(5), "c/b": CopiedRange(7)}
    opened(path).transaction().set_properties(
        {"commit.retry.num-retries": "9"}
    ).commit_transaction()
    meanwhile(lambda: other.commit([], {"c/a": CopiedRange(6)}, {"c/a": CopiedRange(5)}))
    with pytest.raises(TableBusy, match="has taken a part of the log of c/a"):
        table.commit([], {"c/a": CopiedRange(8)}, {"c/a": CopiedRange(5)})
    assert IcebergTable(str(path)).positions()["c/a"] == CopiedRange(6)


def test_snapshots_of_others_change_no_positions(store: StoreWriter, path: Path) -> None:
    run([store.root], path)
    opened(path).delete("topic = 'Orders'")
    first, second = (each.snapshot_id for each in opened(path).snapshots())
    at = IcebergTable(str(path)).positions()
    assert at[BROKER].next == store.end
    opened(path).maintenance.expire_snapshots().by_id(first).commit()
    assert [each.snapshot_id for each in opened(path).snapshots()] == [second]
    assert IcebergTable(str(path)).positions() == at, "by the property"
    put_some(store, 5)
    assert [commit.rows for commit in run([store.root], path)] == [5]


def test_a_table_that_was_rolled_back_is_filled_again(store: StoreWriter, path: Path) -> None:
    run([store.root], path)
    first = opened(path).snapshots()[0].snapshot_id
    put_some(store, 5)
    run([store.root], path)
    opened(path).manage_snapshots().rollback_to_snapshot(first).commit()
    assert [commit.rows for commit in run([store.root], path)] == [5]
    assert keys(path) == keys_of(store)


def test_what_is_in_quarantine_is_not_put_there_again(table: IcebergTable, path: Path) -> None:
    assert table.quarantined().num_rows == 0
    table.quarantine({"c/a": CopiedRange(10)}, gone("c/a", 2, 4))
    again = pa.concat_tables([gone("c/a", 2, 4), gone("c/a", 12, 14)])
    table.quarantine({"c/a": CopiedRange(20)}, again)
    table.quarantine({"c/b": CopiedRange(20)}, gone("c/b", 2, 4))
    found = sorted((row["brokerName"], row["physicalOffset"]) for row in quarantined(path))
    assert found == [("a", 2), ("a", 12), ("b", 2)]
    assert table.quarantined().num_rows == 3


def test_what_is_refused(tmp_path: Path) -> None:
    for catalog, name, said in (
        (None, "messages", "option table='messages'"),
        (None, "a.", "option table='a.'"),
    ):
        with pytest.raises(OptionError, match=said):
            IcebergTable(str(tmp_path), catalog, name)
    with pytest.raises(OptionError, match="has no room for a catalog.*--catalog type=rest"):
        IcebergTable("s3://lake/messages?region=eu-1")
    with pytest.raises(OptionError, match="option out is empty"):
        IcebergTable(" ")
    with pytest.raises(OptionError, match=r"cannot be the folder of an Iceberg table"):
        IcebergTable(str(tmp_path / "50%"))
    (tmp_path / "file").touch()
    with pytest.raises(TableError, match="holds 'file' and is not an Iceberg table"):
        IcebergTable(str(tmp_path)).check_empty()
    with pytest.raises(TableError, match="catalog of .* cannot be opened"):
        IcebergTable(str(tmp_path / "x"), {"type": "nothing"}).settings()
    with pytest.raises(TableError, match="is no table any more"):
        IcebergTable(str(tmp_path / "y")).positions()


def test_a_table_of_somebody_else(table: IcebergTable, path: Path) -> None:
    opened(path).transaction().remove_properties("txrocketmq.settings").commit_transaction()
    with pytest.raises(TableError, match="that txrocketmq ingest has not made"):
        IcebergTable(str(path)).settings()
