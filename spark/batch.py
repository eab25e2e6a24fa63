# SPDX-License-Identifier: Apache-2.0
"""Spark's batch reader of the table `messages` over stores.

The reader is made, and asked for conditions and partitions, by a planner process; it is pickled
before `partitions()` is called. So all that tasks need is settled in the constructor and in
`pushFilters`, and a partition is a split and no more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from txrocketmq.spark.conditions import Conditions
from txrocketmq.spark.options import SourceOptions
from txrocketmq.spark.output import Output
from txrocketmq.spark.reading import Reading
from txrocketmq.spark.zones import zone_of_task

if TYPE_CHECKING:
    from pyspark.sql.datasource import Filter  # PySpark 4.1


class StoreReader(DataSourceReader):
    """Reads what the options say; Spark checks the query's conditions on every row afterwards.

    It does not override pushFilters: Spark refuses readers that do unless push-down is enabled.
    """

    def __init__(self, options: SourceOptions, output: Output) -> None:
        self._reading = Reading(options, output)

    def partitions(self) -> list[InputPartition]:
        return [InputPartition(part) for part in self._reading.parts()]

    def read(self, partition: InputPartition | None) -> Iterator[pa.RecordBatch]:
        if partition is not None and partition.value is not None:  # Spark's own, when there is none
            self._reading.use_zone(zone_of_task() or "UTC")
            yield from self._reading.batches(partition.value)


class PushdownStoreReader(StoreReader):
    """Lets the query's conditions choose what is read."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802 - Spark's
        """Narrows what is read by the query's conditions; Spark checks all of them again.

        It may be called for each planning: each call replaces the conditions of the one before.
        """
        self._reading.narrow(Conditions.of(filters))
        return filters
