# SPDX-License-Identifier: Apache-2.0
"""Keeps damaged records: as rows of a table, and as Parquet files with badRecords=quarantine=PATH.

A file is named after the places in it. So a task that is repeated writes the same files again, and
no task overwrites what another one has found. `spark.read.parquet(PATH)` reads the files.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Protocol
from urllib.parse import quote
from zlib import crc32

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from txrocketmq.spark.arrow.errors import StoreError
from txrocketmq.spark.arrow.schema import Column, arrow_schema
from txrocketmq.spark.columns.decode import BadRecord
from txrocketmq.spark.store.files import ArrowFiles, files_of

COLUMNS: Final = (
    Column("brokerName", "string", "name of the broker"),
    Column("cluster", "string", "name of the broker's cluster"),
    Column("file", "string", "of the commit log"),
    Column("physicalOffset", "bigint", "where the damage begins, bytes"),
    Column("length", "int", "bytes up to the next sound record, or of the record"),
    Column("reason", "string", "magic, length, chain, crc, decompress, queue or index"),
    Column("detail", "string", "what was expected and what was found"),
    Column("data", "binary", "the bytes, at most 64 KiB of them"),
)
_MAX_ROWS: Final = 256
"""The most rows of a file, which are kept in memory with at most 64 KiB each."""


class LogOwner(Protocol):
    """A broker in whose log damage was found."""

    @property
    def broker_name(self) -> str: ...

    @property
    def cluster(self) -> str | None: ...


def rows(broker: LogOwner, found: Sequence[tuple[str, BadRecord]]) -> pa.RecordBatch:
    """Makes rows of the table `quarantine` from damaged records and the names of their files."""
    values = [
        (
            broker.broker_name, broker.cluster, file, bad.physical_offset,
            min(bad.length, (1 << 31) - 1), bad.reason, bad.detail, bad.data,
        )
        for file, bad in found
    ]  # fmt: skip
    schema = arrow_schema(COLUMNS)
    columns = zip(*values, strict=True) if values else ([] for _ in COLUMNS)
    arrays = [pa.array(column, each.type) for column, each in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


class Quarantine:
    """A folder for the damaged records of one task; `close` writes those that are left.

    In a local folder a file appears under its name only when it is complete.
    """

    def __init__(self, path: str, broker: LogOwner) -> None:
        self._broker = broker
        files, folder = files_of(path, option="badRecords=quarantine")
        if isinstance(files, ArrowFiles):
            self._files, self._folder = pafs.FileSystem.from_uri(files.uri)[0], folder
        else:
            self._files, self._folder = pafs.LocalFileSystem(), str(Path(folder).absolute())
        self._found: list[tuple[str, BadRecord]] = []

    def add(self, file: str, bad: BadRecord) -> None:
        """Adds a damaged record that lies in this file of the log."""
        self._found.append((file, bad))
        if len(self._found) >= _MAX_ROWS:
            self.close()

    def close(self) -> None:
        """Writes the records that have not been written yet."""
        if not self._found:
            return
        first = max(self._found[0][1].physical_offset, 0)
        places = [(file, bad.physical_offset) for file, bad in self._found]
        digest = crc32(repr((self._broker.cluster, places)).encode())
        name = f"bad-{quote(self._broker.broker_name, safe='')}-{first:020d}-{digest:08x}.parquet"
        target = f"{self._folder.rstrip('/')}/{name}"
        buffer = io.BytesIO()
        pq.write_table(pa.Table.from_batches([rows(self._broker, self._found)]), buffer)
        self._found = []
        local = isinstance(self._files, pafs.LocalFileSystem)
        written = f"{self._folder}/_{name}.partial" if local else target
        try:
            self._files.create_dir(self._folder, recursive=True)
            with self._files.open_output_stream(written) as stream:
                stream.write(buffer.getvalue())
            if local:
                self._files.move(written, target)
        except OSError as error:
            raise StoreError(
                f"damaged records cannot be written to {self._folder}: {error}; see badRecords"
            ) from error
