# SPDX-License-Identifier: Apache-2.0
"""Runs a stream as Spark does, without Spark: offsets in a checkpoint, repeated batches."""

from __future__ import annotations

import json
import pickle
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from txrocketmq.spark.columns.output import Output
from txrocketmq.spark.options.option import Use
from txrocketmq.spark.options.options import SourceOptions
from txrocketmq.spark.stream import StoreStreamReader


def reader(path: Path | str, **options: str) -> StoreStreamReader:
    """Returns a reader as in a new process, pickled and unpickled as on its way to the tasks."""
    given = {"storePath": str(path), "columns": "topic,queueId,physicalOffset,body", **options}
    parsed = SourceOptions.of(given)
    parsed.check(Use.STORE_STREAM)
    made = StoreStreamReader(parsed, Output.of(parsed))
    copy: StoreStreamReader = pickle.loads(pickle.dumps(made))  # noqa: S301
    return copy


def through_json(offset: dict[str, Any]) -> dict[str, Any]:
    """Returns an offset as it comes out of a checkpoint."""
    loaded: dict[str, Any] = json.loads(json.dumps(offset))
    return loaded


@dataclass
class Query:
    """A streaming query: its checkpoint, and the rows that its sink has, by batch."""

    offsets: list[dict[str, Any]] = field(default_factory=list)
    """The start of the query, and the planned end of each batch."""
    batches: list[list[dict[str, Any]]] = field(default_factory=list)
    """The rows of each batch that is done."""

    @property
    def rows(self) -> list[dict[str, Any]]:
        return [row for batch in self.batches for row in batch]

    @property
    def places(self) -> list[int]:
        """The physical offsets of the rows."""
        return [row["physicalOffset"] for row in self.rows]

    def run(
        self, stream: StoreStreamReader, *, most_batches: int = 1000, all_now: bool = False
    ) -> Query:
        """Runs micro-batches until nothing is left; first repeats a batch that was only planned."""
        if all_now:
            stream.prepareForTriggerAvailableNow()
        if not self.offsets:
            self.offsets.append(through_json(stream.initialOffset()))
        for _ in range(most_batches):
            if len(self.offsets) == len(self.batches) + 1 and not self.plan(stream):
                return self
            start, end = self.offsets[-2:]
            self.batches.append(read(stream, start, end))
            stream.commit(end)
        return self

    def plan(self, stream: StoreStreamReader) -> bool:
        """Plans a batch, as if the query were killed before running it; false if nothing is new."""
        limit = stream.getDefaultReadLimit()
        end = through_json(stream.latestOffset(self.offsets[-1], limit))
        if end == self.offsets[-1]:
            return False
        self.offsets.append(end)
        return True


def read(
    stream: StoreStreamReader, start: dict[str, Any], end: dict[str, Any]
) -> list[dict[str, Any]]:
    """Returns the rows of a batch."""
    parts = [pickle.loads(pickle.dumps(part)) for part in stream.partitions(start, end)]  # noqa: S301
    batches = [batch for part in parts for batch in stream.read(part)]
    assert all(isinstance(batch, pa.RecordBatch) for batch in batches)
    return [row for batch in batches for row in batch.to_pylist()]
