# SPDX-License-Identifier: Apache-2.0
"""The options of a permanent table, kept in its schema, from which Spark hands them back.

Of `CREATE TABLE ... USING rocketmq OPTIONS (...)` Spark keeps the options and gives them to nobody:
a Python source that reads the table gets its schema only. But the schema was asked of the source,
and Spark keeps what stands beside a column. So the options stand beside the first one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from pyspark.sql.types import StructField, StructType

_NAME: Final = "rocketmq.options"


def with_options(schema: StructType, options: Mapping[str, str]) -> StructType:
    """The schema with these options in it."""
    first, *others = schema.fields
    metadata = {**(first.metadata or {}), _NAME: json.dumps(dict(options))}
    return StructType([StructField(first.name, first.dataType, first.nullable, metadata), *others])


def options_in(schema: StructType) -> dict[str, str]:
    """The options that `with_options` has put there; none where nobody has."""
    for field in schema.fields:
        kept = (field.metadata or {}).get(_NAME)
        if kept is not None:
            return {str(name): str(value) for name, value in json.loads(kept).items()}
    return {}
