# SPDX-License-Identifier: Apache-2.0
"""Spark's batch reader of the table `messages` over stores.

The reader is made, and asked for partitions, by a planner process; it is pickled before
`partitions()` is called. So all that tasks need is settled in the constructor, and a partition is a
part and no more.

It does not override pushFilters. Spark keeps one reader and its partitions for each load, and does
not ask again for a scan without conditions: what one query pushed would take effect in others.
docs/adr/0029-no-query-changes-another.md has the details.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from txrocketmq.spark.columns.output import Output
from txrocketmq.spark.options.options import SourceOptions
from txrocketmq.spark.planning.reading import Reading


class StoreReader(DataSourceReader):
    """Reads what the options say; Spark checks the query's conditions on every row afterwards."""

    def __init__(self, options: SourceOptions, output: Output) -> None:
        self._reading = Reading(options, output)

    def partitions(self) -> list[InputPartition]:
        return [InputPartition(part) for part in self._reading.parts()]

    def read(self, partition: InputPartition | None) -> Iterator[pa.RecordBatch]:
        if partition is not None and partition.value is not None:  # Spark's own, when there is none
            self._reading.use_zone()
            yield from self._reading.batches(partition.value)
