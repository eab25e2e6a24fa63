# SPDX-License-Identifier: Apache-2.0
"""Reads the table `messages` of stores in parts, for Spark, reports and other callers.

    reading = Reading(options, Output.of(options))
    for part in reading.parts(): ...
        for batch in reading.batches(part): ...

A reading can be pickled before and after it is asked for its parts. It does not need pyspark.

Spark uses the parts of a plan again and again (`spark.execution`). In later executions, the last
part of each store reads what its log has got since (`spark.growth`), and what retention has deleted
since is left out, as a new load would do.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import pyarrow as pa

from txrocketmq.spark.arrow.threads import in_threads
from txrocketmq.spark.columns.output import Output
from txrocketmq.spark.options.options import SourceOptions
from txrocketmq.spark.planning.execution import is_later, now_ms
from txrocketmq.spark.planning.growth import Growth
from txrocketmq.spark.planning.plan import extents_of, splits, stores_of
from txrocketmq.spark.planning.scan import Scan
from txrocketmq.spark.planning.split import Split


class MessagesPart(NamedTuple):
    """What one task reads."""

    split: Split | None
    growth: Growth | None = None
    """What is read after it in later executions."""


class Reading:
    """A read of messages according to options, with the columns of an output."""

    def __init__(self, options: SourceOptions, output: Output) -> None:
        self._planned_ms = now_ms()
        self._options = options
        self._extents = extents_of(stores_of(options), options)
        self._scan = Scan.of(options, output)
        self.schema: pa.Schema = output.schema

    def use_zone(self, zone: str) -> None:
        """Takes times that name no zone as those of clocks in this one, if only tasks know it."""
        if self._options.tasks_know_zone and self._options.local_times:
            self._options = self._options.in_zone(zone)
            self._extents = [
                replace(each, wanted=each.wanted.at(self._options)) for each in self._extents
            ]

    def parts(self) -> list[MessagesPart]:
        """Returns the parts, which can be read in any order and in any process."""
        found: list[MessagesPart] = []
        of_each = in_threads(lambda each: splits(each, self._options), self._extents)
        for extent, its in zip(self._extents, of_each, strict=True):
            found += _parts(its, Growth.after(extent))
        return found

    def batches(self, part: MessagesPart) -> Iterator[pa.RecordBatch]:
        """Yields the rows of a part."""
        is_old = is_later(self._planned_ms)
        if part.split is not None:
            key = part.split.store.key
            (extent,) = (each for each in self._extents if each.store.key == key)
            yield from self._scan.read(part.split, extent.wanted, is_old=is_old)
        if part.growth is not None and is_old:
            for split, wanted in part.growth.splits(self._options):
                yield from self._scan.read(split, wanted)


def _parts(found: Sequence[Split], growth: Growth | None) -> list[MessagesPart]:
    if growth is None:
        return [MessagesPart(split) for split in found]
    if not found:
        return [MessagesPart(None, growth)]
    return [*(MessagesPart(split) for split in found[:-1]), MessagesPart(found[-1], growth)]
