# SPDX-License-Identifier: Apache-2.0
"""Writes the Parquet files of a split into the table, each into the folder of its partition.

Files get new names each time, and no file is part of the table before a commit names it. Files that
a killed run has left are removed by the format's vacuum.

Rows wait until they fill a row group of their partition. If too many rows wait in all, those of the
largest partition are written first, so the memory of a task does not depend on the number of topics
in a log. When too many files are open, the one that was opened first is closed, and later rows of
its partition go into another file.

Bodies, keys and property values hardly repeat, so a dictionary would cost CPU and save nothing:
only columns with few values have one. Statistics are kept for columns by which queries skip files.
"""

from __future__ import annotations

import json
import os
import time
import uuid
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import fs

from txrocketmq.spark.ingest.partition import DAY, date_of, folder_of, slices
from txrocketmq.spark.store.files import ArrowFiles, files_of

COMPRESSION: Final = "zstd"
ROW_GROUP_BYTES: Final = 16 << 20
WAITING_BYTES: Final = 32 << 20
OPEN_FILES: Final = 64
_FEW_VALUES: Final = frozenset(
    {
        "topic", "queueId", "brokerName", "flag", "tags", "bornHost", "storeHost", "sysFlag",
        "reconsumeTimes", "preparedTransactionOffset", "transactionState", "compression", "cluster",
        "crcOk", "properties.key_value.key",
    }
)  # fmt: skip
_SKIPPED_BY: Final = frozenset(
    {"queueId", "queueOffset", "physicalOffset", "storeTimestamp", "bornTimestamp"}
)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_YEARS_US: Final = 1_000 * 365 * 86_400 * 1_000_000
"""Times of broken clocks, beyond this bound, are left out of the statistics."""


class TableFile(NamedTuple):
    """A finished file."""

    path: str
    """The path inside the table."""
    rows: int
    size_bytes: int
    partition: dict[str, str | None]
    written_ms: int
    stats: str
    """Statistics in JSON, as Delta has them: the number of rows, least and greatest values."""
    bounds: dict[str, tuple[int, int]] = {}  # noqa: RUF012 - never changed
    """Least and greatest values of numbers, and of times in microseconds, by column."""


class TableLayout(NamedTuple):
    """How the files of a table are written."""

    folder: str
    """The folder for the files, inside the table; empty: one for each partition, as Hive has it."""
    schema: pa.Schema
    """The columns in the files."""
    partition_by: tuple[str, ...]

    @classmethod
    def of_hive(cls, columns: pa.Schema, partition_by: Sequence[str]) -> TableLayout:
        """Returns the layout in which the names of folders have the values of partitions."""
        kept = [name for name in columns.names if name not in partition_by]
        return cls("", pa.schema([columns.field(name) for name in kept]), tuple(partition_by))


class Place:
    """The folder of a table's files; local ones are made durable before a commit names them."""

    def __init__(self, uri: str) -> None:
        files, self._path = files_of(uri, option="out")
        self._is_local = not isinstance(files, ArrowFiles)
        self._fs = (
            fs.FileSystem.from_uri(files.uri)[0]
            if isinstance(files, ArrowFiles)
            else fs.LocalFileSystem()
        )

    def open(self, name: str) -> Any:
        """Opens a new file for writing, in folders that are made if need be."""
        path = f"{self._path}/{name}"
        if self._is_local:
            self._fs.create_dir(path.rpartition("/")[0])
        return self._fs.open_output_stream(path)

    def settle(self, name: str) -> int:
        """Makes a closed file durable where it is local; returns its size in bytes."""
        path = f"{self._path}/{name}"
        if self._is_local:
            _sync(path)
            folder, _, _ = name.rpartition("/")
            while folder:  # the folders may be new, too
                _sync(f"{self._path}/{folder}")
                folder, _, _ = folder.rpartition("/")
            _sync(self._path)
        return int(self._fs.get_file_info(path).size)


def _sync(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@dataclass(slots=True)
class _Part:
    """A partition of the split: its waiting rows, and the file that is being written."""

    values: dict[str, str | None]
    waiting: list[pa.RecordBatch] = field(default_factory=list)
    waiting_bytes: int = 0
    writer: Any = None
    file: Any = None
    name: str = ""
    rows: int = 0
    least: dict[str, int] = field(default_factory=dict)
    greatest: dict[str, int] = field(default_factory=dict)


class Parts:
    """Writes the files of a split: `add` rows in the order of the log, then call `finish`."""

    def __init__(self, place: Place, layout: TableLayout) -> None:
        self._place = place
        self._folder = layout.folder
        self._partition_by = layout.partition_by
        self._schema = layout.schema
        self._summed = [name for name in self._schema.names if name in _SKIPPED_BY]
        self._parts: dict[tuple[str, ...], _Part] = {}
        self._open: OrderedDict[tuple[str, ...], _Part] = OrderedDict()
        self._waiting_bytes = 0
        self._finished: list[TableFile] = []

    def add(self, batch: pa.RecordBatch) -> None:
        """Takes the rows of a batch, which has at least the columns of the table."""
        for partition, rows in slices(batch, self._partition_by):
            part = self._parts.get(partition)
            if part is None:
                part = _Part(self._values(partition))
                self._parts[partition] = part
            part.waiting.append(rows.select(self._schema.names))
            part.waiting_bytes += rows.nbytes
            self._waiting_bytes += rows.nbytes
            if part.waiting_bytes >= ROW_GROUP_BYTES:
                self._write(partition)
        if self._waiting_bytes > WAITING_BYTES:
            self._make_room()

    def finish(self) -> list[TableFile]:
        """Writes the waiting rows and closes all files; returns the files."""
        for partition in list(self._parts):
            self._write(partition)
            if partition in self._open:
                self._close(partition)
        return self._finished

    def _values(self, partition: tuple[str, ...]) -> dict[str, str | None]:
        # Delta writes an empty partition value as NULL.
        values: dict[str, str | None] = {
            name: value or None for name, value in zip(self._partition_by, partition, strict=True)
        }
        if DAY in values and not self._folder:
            values[DAY] = date_of(values[DAY] or "")
        return values

    def _make_room(self) -> None:
        """Writes the rows of the fullest partitions until half of the limit is free again."""
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
            folder = f"{self._folder}/" if self._folder else folder_of(part.values)
            part.name = f"{folder}part-{uuid.uuid4()}.zstd.parquet"
            part.file = self._place.open(part.name)
            part.writer = _parquet(part.file, self._schema)
            self._open[partition] = part
        table = pa.Table.from_batches(part.waiting).cast(self._schema)
        part.writer.write_table(table, row_group_size=max(1, table.num_rows))
        part.rows += table.num_rows
        self._sum(part, table)
        self._waiting_bytes -= part.waiting_bytes
        part.waiting, part.waiting_bytes = [], 0

    def _sum(self, part: _Part, table: pa.Table) -> None:
        for name in self._summed:
            column = table[name]
            if pa.types.is_timestamp(column.type):
                column = column.cast(pa.int64())
            found = pc.min_max(column).as_py()
            if found["min"] is not None:
                part.least[name] = min(part.least.get(name, found["min"]), found["min"])
                part.greatest[name] = max(part.greatest.get(name, found["max"]), found["max"])

    def _close(self, partition: tuple[str, ...]) -> None:
        part = self._open.pop(partition)
        part.writer.close()
        part.file.close()
        stats = {
            "numRecords": part.rows,
            "minValues": self._shown(part.least, up_us=0),
            "maxValues": self._shown(part.greatest, up_us=999),
            "nullCount": {},
        }
        self._finished.append(
            TableFile(
                part.name, part.rows, self._place.settle(part.name), part.values,
                time.time_ns() // 1_000_000, json.dumps(stats),
                {name: (least, part.greatest[name]) for name, least in part.least.items()},
            )
        )  # fmt: skip
        part.writer, part.rows, part.least, part.greatest = None, 0, {}, {}

    def _shown(self, values: dict[str, int], *, up_us: int) -> dict[str, Any]:
        """Returns values as the format has them: times as text in ms, none beyond _YEARS_US."""
        shown: dict[str, Any] = {}
        for name, value in values.items():
            if not pa.types.is_timestamp(self._schema.field(name).type):
                shown[name] = value
            elif abs(value) < _YEARS_US:
                time_of = _EPOCH + timedelta(milliseconds=(value + up_us) // 1000)
                shown[name] = time_of.strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"
        return shown


def _parquet(file: Any, schema: pa.Schema) -> pq.ParquetWriter:
    leaves = [*schema.names, "properties.key_value.key"]
    return pq.ParquetWriter(
        file,
        schema,
        compression=COMPRESSION,
        use_dictionary=[name for name in leaves if name in _FEW_VALUES],
        write_statistics=[name for name in leaves if name in _SKIPPED_BY],
        store_schema=False,
    )
