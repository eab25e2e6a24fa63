# SPDX-License-Identifier: Apache-2.0
"""Damaged records of a split, kept for people to look at: `_quarantine/part-<split>.parquet`.

Their columns are those of the table `quarantine`. A folder that starts with an underscore is not
read with the table; `spark.read.parquet` of the folder itself gives the rows.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from txrocketmq.spark.decode import BadRecord
from txrocketmq.spark.ingest.parts import open_parquet
from txrocketmq.spark.quarantine import COLUMNS, rows
from txrocketmq.spark.schema import arrow_schema

_WAITING_ROWS: Final = 64
"""At most 64 KiB each."""


class SplitQuarantine:
    """Writes the damaged records of a split into its spool; no file when there are none."""

    def __init__(self, spool: str, split_name: str, broker_name: str) -> None:
        self.path = quarantine_path(split_name)
        self.spooled = str(Path(spool) / "quarantine.parquet")
        self.reasons: Counter[str] = Counter()
        self._broker_name = broker_name
        self._waiting: list[tuple[str, BadRecord]] = []
        self._writer: Any = None

    def add(self, file: str, bad: BadRecord) -> None:
        """Takes a damaged record that lies in this file of the log."""
        self.reasons[bad.reason] += 1
        self._waiting.append((file, bad))
        if len(self._waiting) >= _WAITING_ROWS:
            self._write()

    def finish(self) -> bool:
        """Ends the file; whether there is one."""
        if self._waiting:
            self._write()
        if self._writer is None:
            return False
        self._writer.close()
        return True

    def _write(self) -> None:
        if self._writer is None:
            self._writer = open_parquet(self.spooled, arrow_schema(COLUMNS))
        self._writer.write_table(pa.Table.from_batches([rows(self._broker_name, self._waiting)]))
        self._waiting = []


def quarantine_path(split_name: str) -> str:
    """Where the damaged records of a split are, if it has any."""
    return f"_quarantine/part-{split_name}.parquet"
