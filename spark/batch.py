# SPDX-License-Identifier: Apache-2.0
"""Spark's batch reader of the table `messages` over stores.

The reader is made, and asked for conditions and partitions, by a planner process; it is pickled
before `partitions()` is called. So all that tasks need is settled in the constructor and in
`pushFilters`, and a partition is a split and no more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition

from txrocketmq.spark.conditions import Conditions
from txrocketmq.spark.options import SourceOptions
from txrocketmq.spark.output import Output
from txrocketmq.spark.plan import extents_of, splits
from txrocketmq.spark.scan import Scan
from txrocketmq.spark.store import resolve


class StoreReader(DataSourceReader):
    """Reads what the options say, wherever the query's conditions are checked later.

    Does not override pushFilters: where Spark has that switched off, it would refuse the reader.
    """

    def __init__(self, options: SourceOptions, output: Output) -> None:
        stores = resolve(
            options.store_path or "", broker_name=options.broker_name, cluster=options.cluster
        )
        self._options = options
        self._extents = extents_of(stores, options)
        self._scan = Scan.of(options, output)

    def partitions(self) -> list[InputPartition]:
        return [
            InputPartition(split)
            for extent in self._extents
            for split in splits(extent, self._options)
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        split = partition.value
        if split is None:  # Spark's own, when there are no partitions
            return
        name = split.store.broker_name
        (extent,) = (each for each in self._extents if each.store.broker_name == name)
        yield from self._scan.read(split, extent.wanted)


class PushdownStoreReader(StoreReader):
    """Lets the query's conditions choose what is read."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802 - Spark's
        """Narrows what is read; Spark is to check all the conditions again.

        Called for each planning, so nothing adds up from call to call.
        """
        conditions = Conditions.of(filters)
        self._extents = [
            extent.narrowed(extent.wanted.selection.narrowed(conditions))
            for extent in self._extents
        ]
        return filters
