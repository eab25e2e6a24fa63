# SPDX-License-Identifier: Apache-2.0
"""Engines that are not ours read the Delta table: each column of each row, and by partitions.

What Spark reads is in tests/engine/test_ingest_delta.py.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import datafusion
import duckdb
import pandas as pd
import polars as pl
import pytest
from deltalake import DeltaTable

from tests.spark.ingest.stores_and_tables import run, store_of
from tests.spark.stores import Draft
from txrocketmq.spark.ingest.partition import LONG_NAMES, NO_VALUE

TOPICS = ("Orders", "%RETRY%group", "a|b", "x=y z", "Größe/ß:+")
COLUMNS = ["topic", "dt", "physicalOffset"]
Row = tuple[str, date, int]
"""Topic, day and physical offset."""


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Row]]:
    """A table of topics whose names have to be encoded, of three days, by two runs."""
    folder = tmp_path_factory.mktemp("readers")
    store = store_of(folder / "broker-a", 0)
    table = folder / "table"
    for _ in range(2):
        store.put_all(
            Draft(topic=TOPICS[number % 5], body=b"%d" % number, after_ms=4_000_000)
            for number in range(30)
        )
        run([store.root], table)
    rows = [
        (
            each.draft.topic,
            pd.Timestamp(each.store_timestamp, unit="ms").date(),
            each.physical_offset,
        )
        for each in store.stored
    ]
    assert len({day for _, day, _ in rows}) > 2
    return table, rows


def by_deltalake(table: Path, topic: str) -> tuple[list[Row], int]:
    delta = DeltaTable(table)
    some = delta.to_pyarrow_table(filters=[("topic", "=", topic)])
    return tuples(delta.to_pyarrow_table(columns=COLUMNS).to_pylist()), some.num_rows


def by_pandas(table: Path, topic: str) -> tuple[list[Row], int]:
    delta = DeltaTable(table)
    some = delta.to_pandas(filters=[("topic", "=", topic)])
    return tuples(delta.to_pandas(columns=COLUMNS).to_dict("records")), len(some)


def by_duckdb(table: Path, topic: str) -> tuple[list[Row], int]:
    messages = DeltaTable(table).to_pyarrow_dataset()  # noqa: F841 - DuckDB finds it by its name
    rows = duckdb.execute('SELECT topic, dt, "physicalOffset" FROM messages').fetchall()
    asked = duckdb.execute("SELECT count(*) FROM messages WHERE topic = ?", [topic]).fetchall()
    return rows, asked[0][0]


def by_polars(table: Path, topic: str) -> tuple[list[Row], int]:
    read = pl.read_delta(str(table), columns=COLUMNS)
    return tuples(read.to_dicts()), read.filter(pl.col("topic") == topic).height


def by_lazy_polars(table: Path, topic: str) -> tuple[list[Row], int]:
    scan = pl.scan_delta(str(table))
    some = scan.filter(pl.col("topic") == topic).select(pl.len()).collect().item()
    return tuples(scan.select(COLUMNS).collect().to_dicts()), some


def by_datafusion(table: Path, topic: str) -> tuple[list[Row], int]:
    context = datafusion.SessionContext()
    context.register_table("messages", DeltaTable(table))
    rows = context.sql('SELECT topic, dt, "physicalOffset" FROM messages').to_pylist()
    some = context.sql(f"SELECT topic FROM messages WHERE topic = '{topic}'").count()  # noqa: S608
    return tuples(rows), some


def tuples(rows: list[dict[str, Any]]) -> list[Row]:
    return [(row["topic"], row["dt"], row["physicalOffset"]) for row in rows]


READERS = (by_deltalake, by_pandas, by_duckdb, by_polars, by_lazy_polars, by_datafusion)
Reader = Callable[[Path, str], tuple[list[Row], int]]


@pytest.mark.parametrize("read", READERS)
def test_every_engine_reads_every_row(read: Reader, written: tuple[Path, list[Row]]) -> None:
    table, rows = written
    counts = Counter(topic for topic, _, _ in rows)
    for topic in TOPICS:
        found, of_topic = read(table, topic)
        assert sorted(found) == sorted(rows)
        assert of_topic == counts[topic]


def test_days_choose_rows(written: tuple[Path, list[Row]]) -> None:
    table, rows = written
    _, day, _ = rows[-1]
    wanted = sum(each == day for _, each, _ in rows)
    assert 0 < wanted < len(rows)
    assert pl.scan_delta(str(table)).filter(pl.col("dt") == day).collect().height == wanted
    delta = DeltaTable(table)
    assert delta.to_pyarrow_table(filters=[("dt", "=", day)]).num_rows == wanted
    context = datafusion.SessionContext()
    context.register_table("messages", delta)
    assert context.sql(f"SELECT dt FROM messages WHERE dt = DATE '{day}'").count() == wanted  # noqa: S608


def test_a_day_beyond_the_calendar_is_null_for_all(tmp_path: Path) -> None:
    store = store_of(tmp_path / "broker-a", 3)
    store.put(Draft(topic="Orders", after_ms=1 << 50))
    run([store.root], tmp_path / "table")
    (folder,) = (tmp_path / "table" / "topic=Orders").glob(f"dt={NO_VALUE}")
    assert list(folder.glob("*.parquet"))
    for read in (by_deltalake, by_duckdb, by_polars, by_lazy_polars, by_datafusion):
        found, _ = read(tmp_path / "table", "Orders")
        assert [day for _, day, _ in found].count(None) == 1, read  # type: ignore[arg-type]


def test_a_name_that_is_too_long_for_a_folder(tmp_path: Path) -> None:
    """Engines that read the table's log know it; Polars fails, rather than say that it is null."""
    store = store_of(tmp_path / "broker-a", 3)
    name = "L" * 250
    store.put(Draft(topic=name))
    run([store.root], tmp_path / "table")
    assert (tmp_path / "table" / LONG_NAMES).is_dir()
    for read in (by_deltalake, by_pandas, by_duckdb, by_datafusion):
        found, of_topic = read(tmp_path / "table", name)
        assert (len(found), of_topic) == (4, 1)
    with pytest.raises(pl.exceptions.PolarsError):
        pl.read_delta(str(tmp_path / "table"))
