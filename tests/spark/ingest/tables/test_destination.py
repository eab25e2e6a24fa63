# SPDX-License-Identifier: Apache-2.0
"""What holds for the tables of both formats."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

from tests.spark.ingest.stores_and_tables import (
    SETTINGS,
    destination_of,
    job_of,
    keys,
    keys_of,
    put_some,
    run,
    store_of,
)
from txrocketmq.spark.arrow.errors import TableBusy
from txrocketmq.spark.ingest.copy_plan import CopiedRange
from txrocketmq.spark.ingest.tables.delta_lake import DeltaLakeTable
from txrocketmq.spark.ingest.tables.destination import Destination
from txrocketmq.spark.ingest.tables.iceberg import IcebergTable


@pytest.fixture(params=["delta", "iceberg"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return tmp_path / str(request.param)


@pytest.mark.parametrize("kind", [DeltaLakeTable, IcebergTable])
def test_both_have_what_the_interface_has(kind: type) -> None:
    for name, wanted in inspect.getmembers(Destination, inspect.isfunction):
        if not name.startswith("_"):
            assert inspect.signature(getattr(kind, name)) == inspect.signature(wanted), name


def test_an_empty_table(path: Path) -> None:
    table = destination_of(path)
    assert table.settings() is None
    table.check_empty()
    table.create(SETTINGS)
    assert destination_of(path).settings() == SETTINGS
    assert (table.positions(), table.row_count()) == ({}, 0)
    layout = table.layout(SETTINGS)
    assert set(SETTINGS.columns) - set(layout.schema.names) <= {"topic"}
    assert layout.partition_by == ("topic", "dt")


def test_one_of_two_that_take_the_same_is_refused(path: Path) -> None:
    destination_of(path).create(SETTINGS)
    first, second = destination_of(path), destination_of(path)
    second.expect(["c/a"])
    assert first.positions() == second.positions() == {}
    at = {"c/a": CopiedRange(5, "00000a1f", 1)}
    second.commit([], at, {})
    with pytest.raises(TableBusy):
        first.commit([], {"c/a": CopiedRange(4)}, {})
    assert destination_of(path).positions() == at


def test_two_brokers_do_not_prevent_each_other(path: Path, tmp_path: Path) -> None:
    stores = [store_of(tmp_path / "broker-a", 9), store_of(tmp_path / "broker-b", 7)]
    run([stores[0].root], path)
    runs = [job_of([store.root], path).run() for store in stores]
    for store in stores:
        put_some(store, 3)
    assert [sum(commit.rows for commit in commits) for commits in runs] == [3, 10]
    assert keys(path) == keys_of(*stores)
