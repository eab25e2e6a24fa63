# SPDX-License-Identifier: Apache-2.0
"""A Delta table of messages: which parts of which logs it contains, and how more is added.

A commit adds files and, with them, transaction identifiers of the format that say how far the log
of each broker is in the table. So both are there or neither is, whatever is killed when; and of two
runs that write the same part of a log the second one's commit is refused.

    txrocketmq:<broker>          version: the first offset of the log that the table does not have
    txrocketmq:<broker>:start    version: the first offset that it has
    txrocketmq:<broker>:crc      version: the fingerprint of the log before the former; see
                                 `spark.fingerprint`

A broker is named with its cluster here, see `Store.key`.

Damaged records, and ranges that were gone, are rows of a second table in the folder `_quarantine`
of the first. It is written before: rows of a part of the log that it has are not written again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

import pyarrow as pa
from deltalake import (
    CommitProperties,
    DeltaTable,
    QueryBuilder,
    Schema,
    Transaction,
    write_deltalake,
)
from deltalake.exceptions import CommitFailedError, DeltaError
from deltalake.transaction import AddAction, RemoveAction

from txrocketmq.spark.arrow.errors import TableError
from txrocketmq.spark.arrow.schema import arrow_schema
from txrocketmq.spark.ingest.copy_plan import CopiedRange
from txrocketmq.spark.ingest.parts import TableFile, TableLayout
from txrocketmq.spark.ingest.settings import TableSettings
from txrocketmq.spark.ingest.tables.place import QUARANTINE, QUARANTINED, TablePlace, not_written
from txrocketmq.spark.log.quarantine import COLUMNS
from txrocketmq.spark.store.files import ArrowFiles, files_of

_SOURCE: Final = "txrocketmq.source"
_COLUMNS: Final = "txrocketmq.columns"
_BROKERS: Final = "txrocketmq.brokers"
"""Table properties whose values are JSON."""
_APP: Final = "txrocketmq:"


class DeltaLakeTable(TablePlace):
    """The table at a place."""

    KIND = "a table"
    OWN = ("_delta_log", ".tmp")

    def __init__(self, uri: str) -> None:
        super().__init__(uri)
        self._at, self._options = location(self.uri)
        self._quarantine_at = f"{self._at.rstrip('/')}/{QUARANTINE}"
        self._opened: DeltaTable | None = None

    def settings(self) -> TableSettings | None:
        """Returns the settings; None if nothing is there. Raises TableError if other things are."""
        if not DeltaTable.is_deltatable(self._at, self._options):
            return None
        metadata = self._delta().metadata()
        try:
            return TableSettings(
                columns=tuple(json.loads(metadata.configuration[_COLUMNS])),
                partition_by=tuple(metadata.partition_columns),
                source=tuple((n, v) for n, v in json.loads(metadata.configuration[_SOURCE])),
            )
        except (KeyError, ValueError, TypeError):
            raise TableError(
                f"{self.name} is a Delta table that txrocketmq ingest has not made: choose an empty"
                " folder or a new one"
            ) from None

    def create(self, settings: TableSettings) -> None:
        """Makes an empty table with these settings. Raises TableBusy if another run was faster."""
        configuration = {
            _SOURCE: json.dumps(settings.source),
            _COLUMNS: json.dumps(settings.columns),
        }
        self._create(self._at, settings.schema, settings.partition_by, configuration)

    def layout(self, settings: TableSettings) -> TableLayout:
        """Returns how the files of the table, which has these settings, are to be written."""
        return TableLayout.of_hive(settings.schema, settings.partition_by)

    def positions(self) -> dict[str, CopiedRange]:
        """Returns by broker how far its log is in the table."""
        delta = self._delta()
        found = {}
        for broker in self._brokers():
            name = _APP + broker
            at = delta.transaction_version(name)
            if at is not None:
                crc = delta.transaction_version(f"{name}:crc")
                known = "" if crc is None or crc < 0 else f"{crc:08x}"
                found[broker] = CopiedRange(
                    at, known, delta.transaction_version(f"{name}:start") or 0
                )
        return found

    def expect(self, brokers: Iterable[str]) -> None:
        """Notes brokers that are about to have positions, since the format cannot list them."""
        known, expected = set(self._brokers()), set(brokers)
        if not expected <= known:
            names = json.dumps(sorted(known | expected))
            try:
                self._delta().alter.set_table_properties(
                    {_BROKERS: names}, raise_if_not_exists=False
                )
            except CommitFailedError as error:
                raise self._busy(error) from error
            self._opened = None

    def commit(
        self,
        parts: Sequence[TableFile],
        positions: Mapping[str, CopiedRange],
        before: Mapping[str, CopiedRange],
    ) -> int:
        """Makes files part of the table and moves positions; returns the version of the table.

        Raises TableBusy when another run has moved one of the positions from where it was `before`.
        """
        transactions = []
        for broker, at in positions.items():
            name = _APP + broker
            crc = int(at.fingerprint, 16) if at.fingerprint else -1
            transactions += [
                Transaction(name, at.next),
                Transaction(f"{name}:start", at.start),
                Transaction(f"{name}:crc", crc),
            ]
        delta = self._delta()
        for broker in positions:
            known = before[broker].next if broker in before else None
            if delta.transaction_version(_APP + broker) != known:
                raise self._busy(f"it has taken a part of the log of {broker}")
        actions: list[AddAction | RemoveAction] = [
            AddAction(
                part.path, part.size_bytes, part.partition, part.written_ms, True,  # noqa: FBT003 - theirs
                part.stats,
            )
            for part in parts
        ]  # fmt: skip
        try:
            delta.create_write_transaction(
                actions,
                "append",
                delta.schema(),
                delta.metadata().partition_columns,
                commit_properties=CommitProperties(app_transactions=transactions),
            )
        except CommitFailedError as error:
            raise self._busy(error) from error
        except DeltaError as error:
            raise TableError(f"{self.name} could not be committed to: {error}") from error
        self._opened = None
        return self.version()

    def version(self) -> int:
        """The version that the newest commit has made."""
        return self._delta().version()

    def committed_ms(self) -> int:
        """The time of the newest commit, in ms since the epoch."""
        return int(self._delta().history(1)[0]["timestamp"])

    def row_count(self) -> int:
        """The number of messages in the table."""
        return int(self._delta().count())

    def query(self, sql: str) -> pa.Table:
        """Returns the result of a query over the table `messages`, which DataFusion runs.

        Raises TableError when a file of the table cannot be read.
        """
        delta = self._delta()
        try:
            return pa.table(QueryBuilder().register("messages", delta).execute(sql).read_all())
        except Exception as error:  # whatever the engine raises
            raise TableError(f"{self.name} cannot be read: {error}") from error

    def quarantine(self, positions: Mapping[str, CopiedRange], rows: pa.Table) -> None:
        """Adds rows, found in the logs up to these positions, to the table `quarantine`."""
        if not rows.num_rows:
            return
        at = self._quarantine_at
        if not DeltaTable.is_deltatable(at, self._options):
            self._create(at, arrow_schema(COLUMNS), (), {})
        delta = DeltaTable(at, storage_options=self._options)
        known = {broker: delta.transaction_version(_APP + broker) for broker in positions}
        rows = not_written(rows, {name: end for name, end in known.items() if end is not None})
        if rows.num_rows:
            marks = [Transaction(_APP + broker, each.next) for broker, each in positions.items()]
            try:
                write_deltalake(
                    delta,
                    rows,
                    mode="append",
                    commit_properties=CommitProperties(app_transactions=marks),
                )
            except CommitFailedError as error:
                raise self._busy(error) from error

    def quarantined(self) -> pa.Table:
        """Returns cluster, broker, offset, length and reason of damaged records and gone ranges."""
        names = list(QUARANTINED)
        at = self._quarantine_at
        if not DeltaTable.is_deltatable(at, self._options):
            return arrow_schema([c for c in COLUMNS if c.name in names]).empty_table().select(names)
        return DeltaTable(at, storage_options=self._options).to_pyarrow_table(columns=names)

    def _delta(self) -> DeltaTable:
        if self._opened is None:
            try:
                self._opened = DeltaTable(self._at, storage_options=self._options)
            except DeltaError as error:
                raise TableError(f"{self.name} cannot be opened: {error}") from error
        return self._opened

    def _brokers(self) -> list[str]:
        return [
            str(each)
            for each in json.loads(self._delta().metadata().configuration.get(_BROKERS, "[]"))
        ]

    def _create(
        self, at: str, schema: pa.Schema, partition_by: Sequence[str], configuration: dict[str, Any]
    ) -> None:
        try:
            DeltaTable.create(
                at,
                Schema.from_arrow(schema),
                partition_by=list(partition_by),
                configuration=configuration,
                storage_options=self._options,
                raise_if_key_not_exists=False,
            )
        except DeltaError as error:
            if DeltaTable.is_deltatable(at, self._options):
                raise self._busy(error) from error
            raise TableError(f"{self.name} could not be made: {error}") from error


def location(uri: str) -> tuple[str, dict[str, str]]:
    """Returns a URI as the deltalake package takes it, and its storage options.

    What pyarrow understands in a URI of S3 is understood here as well.
    """
    files, path = files_of(uri, option="out")
    if not isinstance(files, ArrowFiles):
        return path, {}
    parts = urlsplit(files.uri)
    if parts.scheme != "s3":
        return parts._replace(path="/" + path.partition("/")[2]).geturl(), {}
    given = {name: values[-1] for name, values in parse_qs(parts.query).items()}
    options = {}
    if "region" in given:
        options["AWS_REGION"] = given["region"]
    if "endpoint_override" in given:
        scheme = given.get("scheme", "https")
        host = given["endpoint_override"].rpartition("://")[2]
        options["AWS_ENDPOINT_URL"] = f"{scheme}://{host}"
        options["AWS_ALLOW_HTTP"] = str(scheme == "http").lower()
    if parts.username:
        options["AWS_ACCESS_KEY_ID"] = parts.username
        options["AWS_SECRET_ACCESS_KEY"] = parts.password or ""
    return f"s3://{path}", options
