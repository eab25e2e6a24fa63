# SPDX-License-Identifier: Apache-2.0
"""An Iceberg table of messages: which parts of which logs it contains, and how more is added.

A commit adds files and, in the summary of the same snapshot, says how far the log of each broker is
in the table, for all brokers of the table. A catalog swaps the table's metadata for that of a
commit only if nobody else has swapped it, so of two runs that write the same part of a log the
second one's commit is refused. Snapshots of others, such as a compaction, have no such summary:
positions are those of the newest ancestor that has one. If that has been expired, they are taken
from a property of the table, which each commit sets as well; it counts only if the table has not
been rolled back since.

The catalog is a file of SQLite in the folder of the table unless another one is named. Damaged
records, and ranges that were gone, are rows of a second table, whose files lie in `_quarantine`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import duckdb
import pyarrow as pa
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.conversions import to_bytes
from pyiceberg.exceptions import (
    CommitFailedException,
    NoSuchNamespaceError,
    NoSuchTableError,
    TableAlreadyExistsError,
)
from pyiceberg.io.pyarrow import schema_to_pyarrow
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.table import Table as Iceberg
from pyiceberg.transforms import DayTransform, IdentityTransform
from pyiceberg.typedef import Record
from pyiceberg.types import PrimitiveType

from txrocketmq.spark.arrow.errors import OptionError, TableError
from txrocketmq.spark.arrow.schema import arrow_schema
from txrocketmq.spark.ingest.copy_plan import CopiedRange
from txrocketmq.spark.ingest.partition import DAY, day_number
from txrocketmq.spark.ingest.parts import TableFile, TableLayout
from txrocketmq.spark.ingest.settings import TableSettings
from txrocketmq.spark.ingest.tables.delta_lake import location
from txrocketmq.spark.ingest.tables.place import QUARANTINE, QUARANTINED, TablePlace, not_written
from txrocketmq.spark.log.quarantine import COLUMNS

IDENTIFIER: Final = "txrocketmq.messages"
CATALOG: Final = "catalog.db"
CATALOG_NAME: Final = "txrocketmq"
"""The name of our tables in a file of SQLite."""
_DATA: Final = "data"
_SETTINGS: Final = "txrocketmq.settings"
_POSITIONS: Final = "txrocketmq.positions"
_SEQUENCE: Final = "txrocketmq.sequence-number"
"""The sequence number of the commit that has set _POSITIONS as a property."""
_NO_RETRIES: Final = {"commit.retry.num-retries": "0"}
"""The package would repeat a commit that was refused, whatever the other run has taken."""
_ATTEMPTS: Final = 10
"""Commits that others prevent are tried so often, as long as positions are what they were."""


class IcebergTable(TablePlace):
    """The table at a place; `catalog` has properties as pyiceberg takes them."""

    KIND = "an Iceberg table"
    OWN = (CATALOG, _DATA, "metadata", QUARANTINE)

    def __init__(
        self, uri: str, catalog: Mapping[str, str] | None = None, identifier: str = IDENTIFIER
    ) -> None:
        if uri.strip() and (identifier.count(".") != 1 or not all(identifier.split("."))):
            raise OptionError.of("table", identifier, "NAMESPACE.NAME")
        super().__init__(uri)
        uri = self.uri
        if not self._is_local and not catalog:
            raise OptionError(
                f"{self.name} has no room for a catalog, which is a file of SQLite on a disk:"
                " name one with --catalog, such as --catalog type=rest --catalog uri=..."
            )
        if self._is_local and set(uri) & set("%?#"):
            raise OptionError(f"{uri} cannot be the folder of an Iceberg table: it has %, ? or #")
        self._at = f"file://{uri}" if self._is_local else location(uri)[0]
        self._identifier = identifier
        self._properties = catalog
        self._catalog: Catalog | None = None
        self._opened: Iceberg | None = None

    def settings(self) -> TableSettings | None:
        """See Destination."""
        table = self._find(self._identifier)
        if table is None:
            return None
        try:
            values = json.loads(table.properties[_SETTINGS])
            return TableSettings(
                columns=tuple(values["columns"]),
                partition_by=tuple(values["partition_by"]),
                source=tuple((name, value) for name, value in values["source"]),
            )
        except (KeyError, ValueError, TypeError):
            raise TableError(
                f"{self.name} is an Iceberg table that txrocketmq ingest has not made: choose an"
                " empty folder or a new one, and another name in the catalog"
            ) from None

    def create(self, settings: TableSettings) -> None:
        """See Destination."""
        values = {
            "columns": settings.columns,
            "partition_by": settings.partition_by,
            "source": settings.source,
        }
        self._create(
            self._identifier,
            _without_day(settings.schema),
            self._at,
            settings.partition_by,
            {_SETTINGS: json.dumps(values)},
        )

    def layout(self, settings: TableSettings) -> TableLayout:
        """See Destination."""
        schema = schema_to_pyarrow(self._table().schema(), include_field_ids=True)
        return TableLayout(_DATA, schema, settings.partition_by)

    def positions(self) -> dict[str, CopiedRange]:
        """See Destination."""
        return self._positions_of(self._table())

    def expect(self, brokers: Iterable[str]) -> None:
        """See Destination; here commits say it themselves."""

    def commit(
        self,
        parts: Sequence[TableFile],
        positions: Mapping[str, CopiedRange],
        before: Mapping[str, CopiedRange],
    ) -> int:
        """See Destination."""
        for _ in range(_ATTEMPTS):
            self._opened = None
            table = self._table()
            known = self._positions_of(table)
            for broker in positions:
                if known.get(broker) != before.get(broker):
                    raise self._busy(f"it has taken a part of the log of {broker}")
            try:
                self._append(table, parts, {**known, **positions})
            except CommitFailedException:
                continue  # by somebody else who, perhaps, has taken nothing of these logs
            except Exception as error:  # whatever the catalog raises
                raise TableError(f"{self.name} could not be committed to: {error}") from error
            self._opened = None
            return self.version()
        raise self._busy("others have committed to it again and again")

    def _append(
        self, table: Iceberg, parts: Sequence[TableFile], positions: Mapping[str, CopiedRange]
    ) -> None:
        text = json.dumps({broker: list(at) for broker, at in sorted(positions.items())})
        table.metadata.properties.update(_NO_RETRIES)  # in this copy, whatever the table has
        transaction = table.transaction()
        newest = table.current_snapshot()
        sequence = 1 if newest is None else int(newest.sequence_number or 0) + 1
        transaction.set_properties({_POSITIONS: text, _SEQUENCE: str(sequence)})
        with transaction.update_snapshot({_POSITIONS: text}).fast_append() as append:
            for part in parts:
                append.append_data_file(self._data_file(table, part))
        transaction.commit_transaction()

    def version(self) -> int:
        """See Destination: the sequence number of the newest snapshot, 0 without one."""
        snapshot = self._table().current_snapshot()
        return 0 if snapshot is None else int(snapshot.sequence_number or 0)

    def committed_ms(self) -> int:
        """See Destination."""
        snapshot = self._table().current_snapshot()
        return self._table().metadata.last_updated_ms if snapshot is None else snapshot.timestamp_ms

    def row_count(self) -> int:
        """See Destination."""
        return int(self._table().scan().count())

    def query(self, sql: str) -> pa.Table:
        """See Destination; DuckDB runs the query."""
        try:
            messages = self._table().scan().to_arrow_batch_reader()
            with duckdb.connect() as connection:
                connection.register("messages", messages)
                return connection.sql(sql).to_arrow_table()
        except Exception as error:  # whatever one of the two raises
            raise TableError(f"{self.name} cannot be read: {error}") from error

    def quarantine(self, positions: Mapping[str, CopiedRange], rows: pa.Table) -> None:
        """See Destination."""
        if not rows.num_rows:
            return
        identifier = f"{self._identifier}{QUARANTINE}"
        schema = arrow_schema(COLUMNS)
        table = self._find(identifier)
        if table is None:
            self._create(identifier, schema, f"{self._at}/{QUARANTINE}", (), {})
            table = self._loaded().load_table(identifier)
        known = self._positions_of(table)
        rows = not_written(rows, {name: known[name].next for name in positions if name in known})
        if rows.num_rows:
            marks = json.dumps({b: list(at) for b, at in {**known, **positions}.items()})
            table.metadata.properties.update(_NO_RETRIES)
            try:
                table.append(rows.cast(schema), snapshot_properties={_POSITIONS: marks})
            except CommitFailedException as error:
                raise self._busy(error) from error

    def quarantined(self) -> pa.Table:
        """See Destination."""
        table = self._find(f"{self._identifier}{QUARANTINE}")
        if table is None:
            return arrow_schema(COLUMNS).empty_table().select(QUARANTINED)
        return table.scan(selected_fields=QUARANTINED).to_arrow().select(QUARANTINED)

    # --- positions and files ---

    def _positions_of(self, table: Iceberg) -> dict[str, CopiedRange]:
        snapshot = newest = table.current_snapshot()
        while snapshot is not None:
            text = snapshot.summary and snapshot.summary.additional_properties.get(_POSITIONS)
            if text:
                return _parsed(text)
            parent = snapshot.parent_snapshot_id
            snapshot = None if parent is None else table.snapshot_by_id(parent)
        if newest is None or _POSITIONS not in table.properties:
            return {}
        if int(newest.sequence_number or 0) < int(table.properties[_SEQUENCE]):
            raise TableError(
                f"{self.name} was rolled back to a snapshot, and it is unknown how much of the"
                " logs it has, as those before it were expired: write to another table"
            )
        return _parsed(table.properties[_POSITIONS])

    def _data_file(self, table: Iceberg, part: TableFile) -> DataFile:
        schema, spec = table.schema(), table.spec()
        lower, upper = {}, {}
        for name, (least, greatest) in part.bounds.items():
            column = schema.find_field(name)
            assert isinstance(column.field_type, PrimitiveType)
            lower[column.field_id] = to_bytes(column.field_type, least)
            upper[column.field_id] = to_bytes(column.field_type, greatest)
        values: list[Any] = []
        for each in spec.fields:
            value = part.partition[each.name]
            values.append(day_number(value) if each.name == DAY else value)
        file = DataFile.from_args(
            content=DataFileContent.DATA,
            file_path=f"{self._at}/{part.path}",
            file_format=FileFormat.PARQUET,
            partition=Record(*values),
            record_count=part.rows,
            file_size_in_bytes=part.size_bytes,
            column_sizes={},
            value_counts={},
            null_value_counts={},
            nan_value_counts={},
            lower_bounds=lower,
            upper_bounds=upper,
        )
        file.spec_id = spec.spec_id
        return file

    # --- the catalog ---

    def _loaded(self) -> Catalog:
        if self._catalog is None:
            properties = dict(self._properties or {})
            if not properties:
                os.makedirs(self._path, exist_ok=True)  # noqa: PTH103 - as elsewhere here
                properties = {"type": "sql", "uri": f"sqlite:///{self._path}/{CATALOG}"}
            try:
                self._catalog = load_catalog(CATALOG_NAME, **properties)
            except Exception as error:  # whatever a kind of catalog raises
                raise TableError(f"the catalog of {self.name} cannot be opened: {error}") from error
        return self._catalog

    def _find(self, identifier: str) -> Iceberg | None:
        """Returns a table of the catalog; makes no file where there is no catalog."""
        if not self._properties and not self._files.exists(f"{self._path}/{CATALOG}"):
            return None
        try:
            return self._loaded().load_table(identifier)
        except (NoSuchTableError, NoSuchNamespaceError):
            return None

    def _table(self) -> Iceberg:
        if self._opened is None:
            self._opened = self._find(self._identifier)
        if self._opened is None:
            raise TableError(f"{self.name} cannot be opened: it is no table any more")
        return self._opened

    def _create(
        self,
        identifier: str,
        schema: pa.Schema,
        at: str,
        partition_by: Sequence[str],
        properties: Mapping[str, str],
    ) -> None:
        catalog = self._loaded()
        try:
            catalog.create_namespace_if_not_exists(identifier.partition(".")[0])
            made = catalog.create_table_transaction(
                identifier, schema, location=at, properties={**properties, **_NO_RETRIES}
            )
            with made:
                if partition_by:
                    with made.update_spec() as spec:
                        for name in partition_by:
                            if name == DAY:
                                spec.add_field("storeTimestamp", DayTransform(), DAY)
                            else:
                                spec.add_field(name, IdentityTransform(), name)
        except (TableAlreadyExistsError, CommitFailedException) as error:
            raise self._busy(error) from error


def _parsed(text: str) -> dict[str, CopiedRange]:
    return {broker: CopiedRange(*at) for broker, at in json.loads(text).items()}


def _without_day(schema: pa.Schema) -> pa.Schema:
    """Returns the schema without `dt`: the format computes the day from storeTimestamp."""
    index = schema.get_field_index(DAY)
    return schema if index < 0 else schema.remove(index)
