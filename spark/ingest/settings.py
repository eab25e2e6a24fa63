# SPDX-License-Identifier: Apache-2.0
"""What a table is made of: fixed by the run that creates it, the same for all that follow."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

from txrocketmq.spark import schema
from txrocketmq.spark.errors import OptionError
from txrocketmq.spark.ingest.errors import TableError
from txrocketmq.spark.ingest.partition import PARTITION_COLUMNS

PLACE_COLUMNS: Final = (
    "topic", "queueId", "queueOffset", "brokerName", "storeTimestamp", "physicalOffset",
    "storeSize",
)  # fmt: skip
"""Columns that every table has: where a message is from, and what verification counts."""
_VERSION: Final = 1


@dataclass(frozen=True, kw_only=True, slots=True)
class TableSettings:
    """Columns, folders and choice of messages of a table."""

    columns: tuple[str, ...]
    """In the order of the files; see `chosen_columns`."""
    partition_by: tuple[str, ...] = PARTITION_COLUMNS
    source: tuple[tuple[str, str], ...] = ()
    """Options of `format("rocketmq")` that choose messages and say how columns look, by name."""

    def to_json(self) -> bytes:
        return json.dumps({"v": _VERSION, **asdict(self)}, ensure_ascii=False, indent=1).encode()

    @classmethod
    def from_json(cls, document: bytes, table: str) -> TableSettings:
        """What `to_json` gave; TableError when it is something else."""
        try:
            values: dict[str, Any] = json.loads(document)
            version = values.pop("v")
            if version == _VERSION:
                return cls(
                    columns=tuple(values["columns"]),
                    partition_by=tuple(values["partition_by"]),
                    source=tuple((name, value) for name, value in values["source"]),
                )
        except (ValueError, KeyError, TypeError, AttributeError):
            raise TableError(f"{table}/_ingest/table.json is damaged") from None
        raise TableError(f"{table} was made by other software: its version is {version}")

    def check_equal(self, wanted: TableSettings, table: str) -> None:
        """TableError when a run wants another table than the one that is there."""
        here, there = self._by_name(), wanted._by_name()
        for name in here | there:
            if here.get(name) != there.get(name):
                raise TableError(
                    f"{table} was made {_with(name, here)}, not {_with(name, there)}:"
                    " run with the same settings, or write to another folder"
                )

    def _by_name(self) -> dict[str, str]:
        folders = ",".join(self.partition_by) or "none"
        return {"columns": ",".join(self.columns), "partition-by": folders, **dict(self.source)}


def chosen_columns(names: tuple[str, ...] | None) -> tuple[str, ...]:
    """The columns of a table: those asked for and PLACE_COLUMNS, in the order of the schema.

    All that are not on demand when none are named; OptionError for names that are unknown.
    """
    if names is None:
        asked = schema.default_columns(schema.MESSAGES)
    else:
        asked = schema.columns_named(names, schema.MESSAGES)
    wanted = {column.name for column in asked} | set(PLACE_COLUMNS)
    return tuple(column.name for column in schema.MESSAGES if column.name in wanted)


def partition_columns(text: str) -> tuple[str, ...]:
    """`topic,dt`, `topic`, `dt` or `none`."""
    if text == "none":
        return ()
    names = tuple(text.replace(" ", "").split(","))
    if not set(names) <= set(PARTITION_COLUMNS) or len(set(names)) < len(names):
        raise OptionError.of("partition-by", text, "topic,dt; topic; dt; none")
    return names


def _with(name: str, settings: Mapping[str, str]) -> str:
    return f"with {name}={settings[name]}" if name in settings else f"without {name}"
