# SPDX-License-Identifier: Apache-2.0
"""Turns the Parquet files and the ledger of earlier versions into a Delta table.

The files stay where they are. One commit makes them a table, with the positions of the newest
committed run. Files of runs that were never committed do not become part of it. The ledger is
deleted last, so a migration that was interrupted can be repeated.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from txrocketmq.spark.errors import TableError
from txrocketmq.spark.files import ArrowFiles, files_of
from txrocketmq.spark.ingest.parts import Part
from txrocketmq.spark.ingest.plan import Position
from txrocketmq.spark.ingest.quarantine import gone
from txrocketmq.spark.ingest.settings import TableSettings
from txrocketmq.spark.ingest.table import OLD_SETTINGS, QUARANTINE, Table
from txrocketmq.spark.quarantine import COLUMNS
from txrocketmq.spark.schema import arrow_schema

_VERSION: Final = 1
_MANIFEST: Final = "_manifest"
_OLD_QUARANTINE: Final = re.compile(r"part-.+-\d{20}-\d{20}\.parquet")


class Migrated:
    """The result of a migration."""

    def __init__(self, files: int, rows: int) -> None:
        self.files = files
        self.rows = rows


def migrate(uri: str) -> Migrated:
    """Makes a Delta table at this place. Raises TableError if there is no older table."""
    folder = _Folder(uri)
    document = folder.read(OLD_SETTINGS)
    table = Table(uri)
    if document is None:
        raise TableError(f"{table.name} holds no table of an earlier version: nothing to migrate")
    try:
        settings = _settings(json.loads(document))
        commits = list(folder.commits())
    except (ValueError, KeyError, TypeError) as error:
        raise TableError(
            f"{table.name} cannot be migrated: its ledger is damaged ({error!r})"
        ) from error
    if table.settings_of_delta() is None:
        table.create(settings)
    parts = [part for commit in commits for part in _parts(commit)]
    if commits:
        last = commits[-1]
        positions = {
            broker: Position(at["next"], at["fingerprint"], last["starts"].get(broker, 0))
            for broker, at in last["positions"].items()
        }
        table.expect(positions)
        lost = [gone(*each.values()) for commit in commits for each in commit["lost"]]
        table.quarantine(positions, pa.concat_tables([*folder.quarantined(), *lost]))
        if not table.positions():
            table.commit(parts, positions, {})
    folder.delete_ledger()
    return Migrated(len(parts), sum(part.rows for part in parts))


def _settings(values: dict[str, Any]) -> TableSettings:
    if values["v"] != _VERSION:
        raise ValueError(f"a ledger of version {values['v']}")
    return TableSettings(
        columns=tuple(values["columns"]),
        partition_by=tuple(values["partition_by"]),
        source=tuple((name, value) for name, value in values["source"]),
    )


def _parts(commit: dict[str, Any]) -> Iterator[Part]:
    for part in commit["parts"]:
        values = {name: value or None for name, value in part["partition"].items()}
        stats = json.dumps({"numRecords": part["rows"]})
        yield Part(
            part["path"], part["rows"], part["size_bytes"], values, commit["committed_ms"], stats
        )


class _Folder:
    """The folder of a table of an earlier version."""

    def __init__(self, uri: str) -> None:
        files, self._path = files_of(uri, option="out")
        self._fs: Any = (
            fs.FileSystem.from_uri(files.uri)[0]
            if isinstance(files, ArrowFiles)
            else fs.LocalFileSystem()
        )

    def read(self, name: str) -> bytes | None:
        """Reads a file; returns None when it does not exist."""
        try:
            with self._fs.open_input_stream(f"{self._path}/{name}") as file:
                content: bytes = file.read()
                return content
        except (FileNotFoundError, NotADirectoryError):
            return None

    def commits(self) -> Iterator[dict[str, Any]]:
        """Yields the ledger entry of each run, from the first on."""
        for name in self._names(_MANIFEST, ".json"):
            commit = json.loads(self.read(f"{_MANIFEST}/{name}") or b"")
            if commit["v"] != _VERSION:
                raise ValueError(f"a commit of version {commit['v']}")
            yield commit

    def quarantined(self) -> list[pa.Table]:
        """Returns the rows in quarantine."""
        schema = arrow_schema(COLUMNS)
        tables = [schema.empty_table()]
        for name in self._names(QUARANTINE, ".parquet"):
            if _OLD_QUARANTINE.fullmatch(name):
                with self._fs.open_input_file(f"{self._path}/{QUARANTINE}/{name}") as file:
                    tables.append(pq.read_table(file).select(schema.names).cast(schema))
        return tables

    def delete_ledger(self) -> None:
        """Deletes the files that have no meaning any more; the settings go last."""
        for name in self._names(QUARANTINE, ".parquet"):
            if _OLD_QUARANTINE.fullmatch(name):
                self._fs.delete_file(f"{self._path}/{QUARANTINE}/{name}")
        for name in (_MANIFEST, "_ingest/plans", "_ingest/done", "_ingest/tmp", "_ingest"):
            path = f"{self._path}/{name}"
            if self._fs.get_file_info(path).type == fs.FileType.Directory:
                self._fs.delete_dir(path)

    def _names(self, folder: str, ending: str) -> list[str]:
        chosen = fs.FileSelector(f"{self._path}/{folder}", allow_not_found=True)
        found = [info.base_name for info in self._fs.get_file_info(chosen)]
        return sorted(name for name in found if name.endswith(ending))
