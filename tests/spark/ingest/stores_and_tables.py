# SPDX-License-Identifier: Apache-2.0
"""Stores that are copied into tables, and what is in a table, for tests."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable
from pyiceberg.catalog import load_catalog
from pyiceberg.exceptions import NoSuchTableError
from pyiceberg.table import Table as Iceberg
from sqlalchemy.exc import OperationalError

from tests.spark.stores import Draft, StoreWriter
from txrocketmq.spark.ingest.job import Commit, IngestJob
from txrocketmq.spark.ingest.runners.runner import run_here
from txrocketmq.spark.ingest.settings import TableSettings, chosen_columns
from txrocketmq.spark.ingest.tables.delta_lake import DeltaLakeTable
from txrocketmq.spark.ingest.tables.destination import Destination
from txrocketmq.spark.ingest.tables.iceberg import CATALOG, CATALOG_NAME, IcebergTable
from txrocketmq.spark.store.store import Store

SETTINGS = TableSettings(columns=chosen_columns(None), source=(("view", "logical"),))
Key = tuple[str, int, int]
"""Topic, queue and queue offset of a message."""


def store_of(root: Path, messages: int = 60, *, segment_bytes: int = 4096) -> StoreWriter:
    """Writes a store with three topics, whose messages tell where they are."""
    writer = StoreWriter(root, segment_bytes=segment_bytes)
    put_some(writer, messages)
    writer.write_config()
    return writer


def put_some(writer: StoreWriter, messages: int) -> None:
    """Writes more messages."""
    first = len(writer.stored)
    writer.put_all(
        Draft(
            topic=("Orders", "Payments", "%RETRY%group")[number % 3],
            queue_id=number % 2,
            body=b"body %d" % number * 5,
            properties={"TAGS": f"Tag{number % 4}", "KEYS": str(number)},
        )
        for number in range(first, first + messages)
    )


def destination_of(table: Path) -> Destination:
    """Returns the table at this place, in the format that the name of the place says."""
    return IcebergTable(str(table)) if table.name == "iceberg" else DeltaLakeTable(str(table))


def iceberg(table: Path, name: str = "messages") -> Iceberg | None:
    """Returns an Iceberg table as others load it; None if there is none."""
    if not (table / CATALOG).exists():
        return None
    at = f"sqlite:///{table / CATALOG}"
    catalog = load_catalog(CATALOG_NAME, type="sql", uri=at, init_catalog_tables="false")
    try:
        return catalog.load_table(f"txrocketmq.{name}")
    except (NoSuchTableError, OperationalError):  # killed before there was one
        return None


def job_of(stores: Iterable[Path], table: Path, **settings: Any) -> IngestJob:
    """Returns a job whose tasks run in this process."""
    return IngestJob(
        stores=[Store.open(str(each), broker_name=each.name) for each in stores],
        table=destination_of(table),
        settings=settings.pop("settings", SETTINGS),
        start_runner=lambda: run_here,
        **settings,
    )


def run(stores: Iterable[Path], table: Path, **settings: Any) -> list[Commit]:
    """Copies what is new."""
    return list(job_of(stores, table, **settings).run())


def rows(table: Path) -> list[dict[str, Any]]:
    """Returns all rows of the table."""
    if table.name == "iceberg":
        there = iceberg(table)
        return _listed(there.scan().to_arrow()) if there is not None else []
    if not DeltaTable.is_deltatable(str(table)):
        return []
    return _listed(DeltaTable(table).to_pyarrow_table())


def _listed(table: pa.Table) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = table.to_pylist(maps_as_pydicts="strict")
    return found


def keys(table: Path) -> list[Key]:
    """Returns the keys of all rows, sorted; duplicates are kept."""
    return sorted((row["topic"], row["queueId"], row["queueOffset"]) for row in rows(table))


def keys_of(*writers: StoreWriter) -> list[Key]:
    """Returns the keys of all messages that were put, sorted."""
    return sorted(
        (stored.draft.topic, stored.draft.queue_id, stored.queue_offset)
        for writer in writers
        for stored in writer.stored
    )


def quarantined(table: Path) -> list[dict[str, Any]]:
    """Returns the rows in quarantine."""
    if table.name == "iceberg":
        there = iceberg(table, "messages_quarantine")
        return _listed(there.scan().to_arrow()) if there is not None else []
    return rows(table / "_quarantine")
