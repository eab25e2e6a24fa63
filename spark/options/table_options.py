# SPDX-License-Identifier: Apache-2.0
"""The options of a permanent table, kept in its schema, from which Spark hands them back.

Spark keeps the options of `CREATE TABLE ... USING rocketmq OPTIONS (...)` but gives them to nobody:
a Python source that reads the table gets only its schema. But the source made that schema, and
Spark keeps the metadata of its columns. So the options are metadata of the first column.

They cannot be changed for one read. `SELECT ... FROM t WITH (topic = 'A') UNION ALL SELECT ... FROM
t WITH (topic = 'B')` gives A twice: in one statement, Spark makes one source for a table, with the
options of the scan that it plans first, and a table in the cache is read whatever the options are.

Spark does not ask a source either whether a table may be altered, so a table whose columns were
changed, if only by a comment or a default, is refused when it is read. Of other changes, such as
those of its properties, a source learns nothing: ADR 33 tells what was tried.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from pyspark.sql.types import StructField, StructType

from txrocketmq.spark.arrow.errors import OptionError

_NAME: Final = "rocketmq.options"
_COLUMNS: Final = "rocketmq.columns"


def with_options(schema: StructType, options: Mapping[str, str]) -> StructType:
    """Returns the schema with these options in it."""
    first, *others = schema.fields
    kept = {_NAME: json.dumps(dict(options)), _COLUMNS: json.dumps(_columns(schema))}
    metadata = {**(first.metadata or {}), **kept}
    return StructType([StructField(first.name, first.dataType, first.nullable, metadata), *others])


def options_in(schema: StructType) -> dict[str, str]:
    """Returns the options that `with_options` has put there; empty if there are none.

    Raises OptionError if the columns are not those of that time.
    """
    for field in schema.fields:
        metadata = field.metadata or {}
        kept = metadata.get(_NAME)
        if kept is not None:
            _check_unaltered(metadata.get(_COLUMNS), schema)
            return {str(name): str(value) for name, value in json.loads(kept).items()}
    return {}


def check_not_changed(kept: Mapping[str, str], given: Mapping[str, str]) -> None:
    """Raises OptionError if options that are given for one read of a table differ from its own."""
    for name, value in given.items():
        if kept.get(name.lower()) != value:
            raise OptionError(
                f"option {name} is given for a read of a permanent table, whose options cannot be"
                " changed for one read, since Spark would use them for other reads of the table,"
                " too: put a condition into the query, or create another table or view with it"
            )


def _check_unaltered(kept: str | None, schema: StructType) -> None:
    if kept is not None and json.loads(kept) != _columns(schema):
        raise OptionError(
            "the columns of the table were changed by ALTER TABLE, which tables of RocketMQ do not"
            " allow: drop the table, which deletes no message, and create it with other options"
        )


def _columns(schema: StructType) -> list[list[object]]:
    """What ALTER TABLE can change of columns: names, types, NOT NULL, comments and defaults."""
    return [
        [
            field.name,
            field.dataType.simpleString(),
            field.nullable,
            {
                name: value
                for name, value in (field.metadata or {}).items()
                if name not in (_NAME, _COLUMNS)
            },
        ]
        for field in schema.fields
    ]
