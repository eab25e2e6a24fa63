# SPDX-License-Identifier: Apache-2.0
"""Writes the Parquet files of a split into its spool: one for each partition, within a bound.

Rows wait until they make a row group of their partition, or until all that wait is too much: then
the largest goes first. So the memory of a task does not depend on how many topics a log has. When
too many files are open the one that was opened first is ended; more rows of its partition go to a
next file. All of this follows from the rows alone: a split that is done again gives the same files.

Bodies, keys and property values hardly repeat, so that a dictionary costs CPU and saves nothing:
only columns of few values have one. Statistics are kept where a query can skip by them.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from txrocketmq.spark.ingest.partition import folder_name, slices
from txrocketmq.spark.ingest.stages import Stage, reached

COMPRESSION: Final = "zstd"
ROW_GROUP_BYTES: Final = 16 << 20
WAITING_BYTES: Final = 32 << 20
OPEN_FILES: Final = 64
_FEW_VALUES: Final = frozenset(
    {
        "topic", "queueId", "brokerName", "flag", "tags", "bornHost", "storeHost", "sysFlag",
        "reconsumeTimes", "preparedTransactionOffset", "transactionState", "compression", "cluster",
        "crcOk", "properties.key_value.key", "reason", "file",
    }
)  # fmt: skip
_SKIPPED_BY: Final = frozenset(
    {"queueId", "queueOffset", "physicalOffset", "storeTimestamp", "bornTimestamp"}
)


def open_parquet(path: str, schema: pa.Schema) -> pq.ParquetWriter:
    """A writer of a file of a table."""
    leaves = [*schema.names, "properties.key_value.key"]
    return pq.ParquetWriter(
        path,
        schema,
        compression=COMPRESSION,
        use_dictionary=[name for name in leaves if name in _FEW_VALUES],
        write_statistics=[name for name in leaves if name in _SKIPPED_BY],
        store_schema=False,
    )


class Spooled(NamedTuple):
    """A finished file in the spool."""

    spooled: str
    path: str
    """Its place in the table."""
    partition: dict[str, str]
    rows: int
    first_ms: int
    last_ms: int


@dataclass(slots=True)
class _Part:
    """A partition of the split: rows that wait, and the file that is being written."""

    folder: str
    partition: dict[str, str]
    waiting: list[pa.RecordBatch] = field(default_factory=list)
    waiting_bytes: int = 0
    files: int = 0
    writer: Any = None
    spooled: str = ""
    rows: int = 0
    first_ms: int = 1 << 62
    last_ms: int = -(1 << 62)


class Parts:
    """The files of a split. `add` rows in the order of the log, then `finish`."""

    def __init__(
        self, spool: str, split_name: str, columns: pa.Schema, partition_by: Sequence[str]
    ) -> None:
        self._spool = Path(spool)
        self._split_name = split_name
        self._partition_by = tuple(partition_by)
        kept = [name for name in columns.names if name not in self._partition_by]
        self._schema = pa.schema([columns.field(name) for name in kept])
        self._parts: dict[tuple[str, ...], _Part] = {}
        self._open: OrderedDict[tuple[str, ...], _Part] = OrderedDict()
        self._waiting_bytes = 0
        self._finished: list[Spooled] = []

    def add(self, batch: pa.RecordBatch) -> None:
        """Takes the rows of a batch that has at least the columns of the table."""
        for partition, rows in slices(batch, self._partition_by):
            part = self._parts.get(partition) or self._new(partition)
            stored = pc.min_max(rows.column("storeTimestamp").cast(pa.int64()))
            part.first_ms = min(part.first_ms, stored["min"].as_py() // 1000)
            part.last_ms = max(part.last_ms, stored["max"].as_py() // 1000)
            part.waiting.append(rows.select(self._schema.names))
            part.waiting_bytes += rows.nbytes
            self._waiting_bytes += rows.nbytes
            if part.waiting_bytes >= ROW_GROUP_BYTES:
                self._write(partition)
        if self._waiting_bytes > WAITING_BYTES:
            self._make_room()

    def finish(self) -> list[Spooled]:
        """Writes what waits and ends all files; they are in order of their paths."""
        for partition in list(self._parts):
            self._write(partition)
            if partition in self._open:
                self._close(partition)
        return sorted(self._finished, key=lambda each: each.path)

    def _new(self, partition: tuple[str, ...]) -> _Part:
        named = dict(zip(self._partition_by, partition, strict=True))
        folders = [folder_name(column, value) for column, value in named.items()]
        part = _Part("/".join(folders), named)
        self._parts[partition] = part
        return part

    def _make_room(self) -> None:
        """Writes the largest of what waits until half of the bound is free."""
        largest = sorted(self._parts, key=lambda each: -self._parts[each].waiting_bytes)
        for partition in largest:
            if self._waiting_bytes <= WAITING_BYTES // 2:
                break
            self._write(partition)

    def _write(self, partition: tuple[str, ...]) -> None:
        part = self._parts[partition]
        if not part.waiting:
            return
        if part.writer is None:
            if len(self._open) >= OPEN_FILES:
                self._close(next(iter(self._open)))
            number = len(self._finished) + len(self._open)
            part.spooled = str(self._spool / f"{number}.parquet")
            part.writer = open_parquet(part.spooled, self._schema)
            self._open[partition] = part
        table = pa.Table.from_batches(part.waiting, self._schema)
        part.writer.write_table(table, row_group_size=max(1, table.num_rows))
        reached(Stage.PART_HALF_WRITTEN)
        part.rows += table.num_rows
        self._waiting_bytes -= part.waiting_bytes
        part.waiting, part.waiting_bytes = [], 0

    def _close(self, partition: tuple[str, ...]) -> None:
        part = self._open.pop(partition)
        part.writer.close()
        number = f"-{part.files:04d}" if part.files else ""
        name = f"part-{self._split_name}{number}.parquet"
        path = f"{part.folder}/{name}" if part.folder else name
        self._finished.append(
            Spooled(part.spooled, path, part.partition, part.rows, part.first_ms, part.last_ms)
        )
        part.writer, part.rows, part.files = None, 0, part.files + 1
