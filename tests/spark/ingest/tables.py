# SPDX-License-Identifier: Apache-2.0
"""Stores that are copied into tables, and what is in a table, for tests."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from deltalake import DeltaTable

from tests.spark.stores import Draft, StoreWriter
from txrocketmq.spark.ingest.job import Commit, Job
from txrocketmq.spark.ingest.runner import run_here
from txrocketmq.spark.ingest.settings import TableSettings, chosen_columns
from txrocketmq.spark.ingest.table import Table
from txrocketmq.spark.store import Store

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


def job_of(stores: Iterable[Path], table: Path, **settings: Any) -> Job:
    """Returns a job whose tasks run in this process."""
    return Job(
        stores=[Store.open(str(each), broker_name=each.name) for each in stores],
        table=Table(str(table)),
        settings=settings.pop("settings", SETTINGS),
        start_runner=lambda: run_here,
        **settings,
    )


def run(stores: Iterable[Path], table: Path, **settings: Any) -> list[Commit]:
    """Copies what is new."""
    return list(job_of(stores, table, **settings).run())


def rows(table: Path) -> list[dict[str, Any]]:
    """Returns all rows of the table."""
    if not DeltaTable.is_deltatable(str(table)):
        return []
    found: list[dict[str, Any]] = (
        DeltaTable(table).to_pyarrow_table().to_pylist(maps_as_pydicts="strict")
    )
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
    return rows(table / "_quarantine")
