# SPDX-License-Identifier: Apache-2.0
"""The interface of tables that messages are copied to: of `table.Table` and `iceberg.IcebergTable`.

Both add files to the table and move positions in one commit, and refuse it if another run has moved
one of the positions meanwhile. That is what makes runs exactly once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

import pyarrow as pa

from txrocketmq.spark.ingest.copy_plan import CopiedRange
from txrocketmq.spark.ingest.parts import TableFile, TableLayout
from txrocketmq.spark.ingest.settings import TableSettings


class Destination(Protocol):
    """A table at a place where nothing needs to exist yet."""

    uri: str
    name: str

    def settings(self) -> TableSettings | None:
        """Returns the settings; None if nothing is there. Raises TableError if other things are."""

    def check_empty(self) -> None:
        """Raises TableError when there are files although there is no table."""

    def create(self, settings: TableSettings) -> None:
        """Makes an empty table with these settings. Raises TableBusy if another run was faster."""

    def layout(self, settings: TableSettings) -> TableLayout:
        """Returns how the files of the table, which has these settings, are to be written."""

    def positions(self) -> dict[str, CopiedRange]:
        """Returns by broker how far its log is in the table."""

    def expect(self, brokers: Iterable[str]) -> None:
        """Notes brokers that are about to have positions."""

    def commit(
        self,
        parts: Sequence[TableFile],
        positions: Mapping[str, CopiedRange],
        before: Mapping[str, CopiedRange],
    ) -> int:
        """Makes files part of the table and moves positions; returns the version of the table.

        Raises TableBusy when another run has moved one of the positions from where it was `before`.
        """

    def version(self) -> int:
        """The version that the newest commit has made."""

    def committed_ms(self) -> int:
        """The time of the newest commit, in ms since the epoch."""

    def row_count(self) -> int:
        """The number of messages in the table."""

    def query(self, sql: str) -> pa.Table:
        """Returns the result of a query over the table `messages`.

        Raises TableError when a file of the table cannot be read.
        """

    def quarantine(self, positions: Mapping[str, CopiedRange], rows: pa.Table) -> None:
        """Adds rows, found in the logs up to these positions, to the table `quarantine`."""

    def quarantined(self) -> pa.Table:
        """Returns cluster, broker, offset, length and reason of damage and of gone ranges."""
