# SPDX-License-Identifier: Apache-2.0
"""The rows of the table `quarantine`: damaged records of a split, and ranges that are gone.

They travel to the driver, which commits them to the Delta table in the folder `_quarantine`. So
their size is limited: after DATA_BYTES of damaged records in a split, rows leave the bytes out.
"""

from __future__ import annotations

from collections import Counter
from typing import Final, NamedTuple

import pyarrow as pa

from txrocketmq.spark.arrow.schema import arrow_schema
from txrocketmq.spark.columns.decode import BadRecord
from txrocketmq.spark.log.quarantine import COLUMNS, rows

GONE: Final = "gone"
"""The reason in rows of ranges that were deleted before they were copied, and accepted as lost."""
DATA_BYTES: Final = 16 << 20
_LENGTH: Final = 1 << 30
"""The longest range in one row; a longer one is spread over several rows."""


class Broker(NamedTuple):
    """What rows say of a broker."""

    cluster: str
    broker_name: str

    @classmethod
    def of(cls, key: str) -> Broker:
        """Takes a `Store.key` apart."""
        cluster, _, name = key.partition("/")
        return cls(cluster, name)


class SplitQuarantine:
    """Collects the rows of a split; `broker` is the `Store.key`."""

    def __init__(self, broker: str) -> None:
        self.reasons: Counter[str] = Counter()
        """The number of damaged records by reason."""
        self._broker = Broker.of(broker)
        self._data_bytes = 0
        self._batches: list[pa.RecordBatch] = []

    def add(self, file: str, bad: BadRecord) -> None:
        """Adds a damaged record that lies in this file of the log."""
        self.reasons[bad.reason] += 1
        self._data_bytes += len(bad.data)
        if self._data_bytes > DATA_BYTES:
            bad = bad._replace(data=b"")
        self._batches.append(rows(self._broker, [(file, bad)]))

    def rows(self) -> pa.Table:
        """Returns all rows."""
        return pa.Table.from_batches(self._batches, arrow_schema(COLUMNS))


def gone(broker: str, start: int, end: int) -> pa.Table:
    """Returns the rows for a range that is gone."""
    detail = "deleted before it was copied, and accepted with --allow-data-loss"
    found = [
        ("", BadRecord(at, min(_LENGTH, end - at), GONE, detail, b""))
        for at in range(start, end, _LENGTH)
    ]
    return pa.Table.from_batches([rows(Broker.of(broker), found)])
