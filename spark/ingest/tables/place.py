# SPDX-License-Identifier: Apache-2.0
"""The place of a table, whatever its format: a folder or URI where nothing needs to exist yet."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar, Final

import pyarrow as pa
import pyarrow.compute as pc

from txrocketmq.spark.arrow.errors import OptionError, TableBusy, TableError
from txrocketmq.spark.ingest.quarantine_rows import Broker
from txrocketmq.spark.store.files import LocalFiles, files_of, shown

QUARANTINE: Final = "_quarantine"
"""The folder of the table of damaged records and of ranges that were gone."""
QUARANTINED: Final = ("cluster", "brokerName", "physicalOffset", "length", "reason")
"""The columns of that table that say which records these are."""


class TablePlace:
    """Base of the tables: what they have in common because they lie in a folder."""

    KIND: ClassVar[str]
    """The name of such a table in sentences, with its article."""
    OWN: ClassVar[tuple[str, ...]]
    """How the names of files begin that a killed run may have left."""

    def __init__(self, uri: str) -> None:
        if not uri.strip():
            raise OptionError("option out is empty: name a folder, or a URI")
        self._files, self._path = files_of(uri, option="out")
        self._is_local = isinstance(self._files, LocalFiles)
        if self._is_local:
            uri = self._path = os.path.abspath(self._path)  # noqa: PTH100 - the shell expands "~"
        self.uri = uri
        self.name = shown(uri)
        if self._is_local:
            self._check_folders()

    def _check_folders(self) -> None:
        """Raises TableError if no folder is at the path, and none can be made there."""
        path = Path(self._path)
        try:
            self._path.encode()
        except UnicodeEncodeError:
            raise TableError(
                f"{self.name} has bytes that are not UTF-8: choose another name"
            ) from None
        for each in (path, *path.parents):
            try:
                is_folder = stat.S_ISDIR(each.stat().st_mode)
            except (FileNotFoundError, NotADirectoryError):
                continue
            except OSError as error:
                raise TableError(f"{self.name} cannot be used: {error.strerror}") from None
            if not is_folder:
                raise TableError(f"{each} is not a folder")
            return

    def check_empty(self) -> None:
        """See Destination."""
        try:
            strangers = sorted(entry.name for entry in self._files.list(self._path))
        except NotADirectoryError:
            raise TableError(f"{self.name} is not a folder") from None
        except FileNotFoundError:
            return
        strangers = [name for name in strangers if not name.startswith(self.OWN)]
        if strangers:
            raise TableError(
                f"{self.name} holds {strangers[0]!r} and is not {self.KIND} of txrocketmq ingest:"
                " choose an empty folder or a new one"
            )

    def _busy(self, error: object) -> TableBusy:
        return TableBusy(
            f"another run wrote to {self.name} at the same time; what this one was about to commit"
            f" was not ({error})"
        )


def not_written(rows: pa.Table, known: Mapping[str, int]) -> pa.Table:
    """Returns the rows of quarantine but those of parts of logs that are `known`, by broker."""
    for broker, end in known.items():
        cluster, name = Broker.of(broker)
        its = pc.and_(pc.equal(rows["cluster"], cluster), pc.equal(rows["brokerName"], name))
        rows = rows.filter(pc.invert(pc.and_(its, pc.less(rows["physicalOffset"], end))))
    return rows
