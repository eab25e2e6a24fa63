# SPDX-License-Identifier: Apache-2.0
"""The options of a permanent table, kept in its schema, from which Spark hands them back.

Spark keeps the options of `CREATE TABLE ... USING rocketmq OPTIONS (...)` but gives them to nobody:
a Python source that reads the table gets only its schema. But the source made that schema, and
Spark keeps the metadata of its columns. So the options are metadata of the first column.

They cannot be changed for one read. `SELECT ... FROM t WITH (topic = 'A') UNION ALL SELECT ... FROM
t WITH (topic = 'B')` gives A twice: in one statement, Spark makes one source for a table, with the
options of the scan that it plans first, and a table in the cache is read whatever the options are.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from pyspark.sql.types import StructField, StructType

from txrocketmq.spark.errors import OptionError

_NAME: Final = "rocketmq.options"


def with_options(schema: StructType, options: Mapping[str, str]) -> StructType:
    """Returns the schema with these options in it."""
    first, *others = schema.fields
    metadata = {**(first.metadata or {}), _NAME: json.dumps(dict(options))}
    return StructType([StructField(first.name, first.dataType, first.nullable, metadata), *others])


def options_in(schema: StructType) -> dict[str, str]:
    """Returns the options that `with_options` has put there; empty if there are none."""
    for field in schema.fields:
        kept = (field.metadata or {}).get(_NAME)
        if kept is not None:
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
