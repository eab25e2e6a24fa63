# SPDX-License-Identifier: Apache-2.0
"""Rows of what reports read, made from the columns that a test cares about."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pyarrow as pa

from txrocketmq.spark.arrow import schema
from txrocketmq.spark.tables.reading import TABLES

START: Final = datetime(2026, 11, 20, 12, tzinfo=UTC)

_USUAL: Final = {
    "topic": "orders", "queueId": 0, "queueOffset": 0, "brokerName": "broker-a",
    "cluster": "east", "flag": 0,
    "bornTimestamp": START, "storeTimestamp": START, "bornHost": "10.0.0.1:50000",
    "storeHost": "10.0.0.9:10911", "storeSize": 200, "bodySize": 100, "sysFlag": 0,
    "reconsumeTimes": 0, "preparedTransactionOffset": 0, "compression": "none",
}  # fmt: skip


def after(seconds: float) -> datetime:
    """Returns a time, so many seconds after the start."""
    return START + timedelta(seconds=seconds)


def messages(rows: Iterable[Mapping[str, Any]]) -> pa.Table:
    """Returns the rows with all columns; missing values are the usual ones or NULL."""
    whole = pa.schema([column.arrow for column in schema.MESSAGES])
    return pa.Table.from_pylist([{**_USUAL, **row} for row in rows], schema=whole)


def table(name: str, rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """Returns a table of the source with these rows."""
    whole = schema.arrow_schema(TABLES[name].columns)
    usual = {"brokerName": "broker-a", "cluster": "east"}
    return pa.Table.from_pylist([{**usual, **row} for row in rows], schema=whole)


def offsets(*rows: tuple[Any, ...]) -> pa.Table:
    """Returns the table of offsets; lag is computed."""
    names = ("group", "topic", "queueId", "offset", "minOffset", "maxOffset", "oldestUnread")
    made = [dict(zip(names, row, strict=True)) for row in rows]
    return table("offsets", [{**row, "lag": row["maxOffset"] - row["offset"]} for row in made])


def several(count: int, **columns: Any) -> list[dict[str, Any]]:
    """Returns so many consecutive messages of a queue."""
    first = columns.pop("queueOffset", 0)
    return [{**columns, "queueOffset": first + n} for n in range(count)]
