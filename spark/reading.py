# SPDX-License-Identifier: Apache-2.0
"""Reads the table `messages` of stores in parts, for Spark, reports and other callers.

    reading = Reading(options, Output.of(options))
    for part in reading.parts(): ...
        for batch in reading.batches(part): ...

A reading can be pickled before and after it is asked for its parts. It does not need pyspark.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa

from txrocketmq.spark.conditions import Conditions
from txrocketmq.spark.options import SourceOptions
from txrocketmq.spark.output import Output
from txrocketmq.spark.plan import extents_of, splits, stores_of
from txrocketmq.spark.scan import Scan
from txrocketmq.spark.split import Split


class Reading:
    """A read of messages according to options, with the columns of an output."""

    def __init__(self, options: SourceOptions, output: Output) -> None:
        self._options = options
        self._extents = extents_of(stores_of(options), options)
        self._scan = Scan.of(options, output)
        self.schema: pa.Schema = output.schema

    def narrow(self, conditions: Conditions) -> None:
        """Leaves out what these conditions exclude, as far as that is known beforehand.

        They replace the conditions of an earlier call.
        """
        self._extents = [extent.narrowed(conditions) for extent in self._extents]

    def use_zone(self, zone: str) -> None:
        """Takes times that name no zone as those of clocks in this one, if only tasks know it."""
        if self._options.tasks_know_zone and self._options.local_times:
            self._options = self._options.in_zone(zone)
            self._extents = [
                replace(each, wanted=each.wanted.at(self._options)) for each in self._extents
            ]

    def parts(self) -> list[Split]:
        """Returns the parts, which can be read in any order and in any process."""
        return [split for extent in self._extents for split in splits(extent, self._options)]

    def batches(self, part: Split) -> Iterator[pa.RecordBatch]:
        """Yields the rows of a part."""
        name = part.store.broker_name
        (extent,) = (each for each in self._extents if each.store.broker_name == name)
        yield from self._scan.read(part, extent.wanted)
