# SPDX-License-Identifier: Apache-2.0
"""The settings of a table, fixed by the run that creates it and the same for all later runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from txrocketmq.spark.arrow import schema
from txrocketmq.spark.arrow.errors import OptionError, TableError
from txrocketmq.spark.ingest.partition import DAY, PARTITION_COLUMNS

PLACE_COLUMNS: Final = (
    "topic", "queueId", "queueOffset", "brokerName", "storeTimestamp", "physicalOffset",
    "storeSize", "cluster",
)  # fmt: skip
"""Columns that every table has: they tell where a message is from, and verification counts them."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TableSettings:
    """The columns and partitions of a table, and the choice of messages in it."""

    columns: tuple[str, ...]
    """Names of columns in the order of the schema; see `chosen_columns`."""
    partition_by: tuple[str, ...] = PARTITION_COLUMNS
    source: tuple[tuple[str, str], ...] = ()
    """Options of `format("rocketmq")` that choose messages or the form of columns, by name."""

    @property
    def schema(self) -> pa.Schema:
        """The schema of the table: its columns, and the day if the table is partitioned by it."""
        kind = schema.PROPERTIES_TYPES[dict(self.source).get("propertiesFormat", "map")]
        by_name = {column.name: column for column in schema.MESSAGES}
        by_name["properties"] = by_name["properties"]._replace(type=kind)
        fields = [by_name[name].arrow for name in self.columns]
        if DAY in self.partition_by:
            fields.append(pa.field(DAY, pa.date32()))
        return pa.schema(fields)

    def check_equal(self, wanted: TableSettings, table: str) -> None:
        """Raises TableError if a run wants other settings than the table has."""
        here, there = self._by_name(), wanted._by_name()
        for name in here | there:
            if here.get(name) != there.get(name):
                raise TableError(
                    f"{table} was made {_with(name, here)}, not {_with(name, there)}:"
                    " run with the same settings, or write to another table"
                )

    def _by_name(self) -> dict[str, str]:
        folders = ",".join(self.partition_by) or "none"
        return {"columns": ",".join(self.columns), "partition-by": folders, **dict(self.source)}


def chosen_columns(names: tuple[str, ...] | None) -> tuple[str, ...]:
    """Returns the columns of a table: the named ones and PLACE_COLUMNS, in the order of the schema.

    Without names, these are all columns but those on demand. Raises OptionError for unknown names.
    """
    if names is None:
        asked = schema.default_columns(schema.MESSAGES)
    else:
        asked = schema.columns_named(names, schema.MESSAGES)
    wanted = {column.name for column in asked} | set(PLACE_COLUMNS)
    return tuple(column.name for column in schema.MESSAGES if column.name in wanted)


def partition_columns(text: str) -> tuple[str, ...]:
    """Parses `topic,dt`, `topic`, `dt` or `none`."""
    if text == "none":
        return ()
    names = tuple(text.replace(" ", "").split(","))
    if not set(names) <= set(PARTITION_COLUMNS) or len(set(names)) < len(names):
        raise OptionError.of("partition-by", text, "topic,dt; topic; dt; none")
    return names


def _with(name: str, settings: Mapping[str, str]) -> str:
    return f"with {name}={settings[name]}" if name in settings else f"without {name}"
