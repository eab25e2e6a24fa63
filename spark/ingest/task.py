# SPDX-License-Identifier: Apache-2.0
"""Copies one split: reads its records, decodes them, writes its files.

The files are not part of the table before the driver commits them, so a task may be killed and
repeated at any time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import pyarrow as pa

from txrocketmq.spark.arrow.errors import BadRecordError, DataLossError
from txrocketmq.spark.arrow.records import Records
from txrocketmq.spark.columns.decode import BadRecord, Decoder
from txrocketmq.spark.columns.selection import Selection
from txrocketmq.spark.ingest.copy_plan import IngestSplit, LostRange
from txrocketmq.spark.ingest.parts import Parts, Place, TableFile, TableLayout
from txrocketmq.spark.ingest.quarantine_rows import SplitQuarantine, gone
from txrocketmq.spark.ingest.settings import TableSettings
from txrocketmq.spark.log.log_reader import LogFinding, LostBytes, read_log
from txrocketmq.spark.log.losses import loss_text
from txrocketmq.spark.options.options import SourceOptions
from txrocketmq.spark.options.pace import Pace
from txrocketmq.spark.planning.scan import decoded
from txrocketmq.spark.store.store import Store

WINDOW_BYTES: Final = 8 << 20
BATCH_BYTES: Final = 8 << 20


@dataclass(slots=True)
class SplitResult:
    """The result of copying a split."""

    split: IngestSplit
    parts: list[TableFile] = field(default_factory=list)
    records: int = 0
    """The number of records that were read."""
    rows: int = 0
    topics: Counter[str] = field(default_factory=Counter)
    damaged: Counter[str] = field(default_factory=Counter)
    """The number of damaged records by reason."""
    lost: list[LostRange] = field(default_factory=list)
    quarantine: list[pa.Table] = field(default_factory=list)
    """Rows of the table `quarantine`."""


@dataclass(frozen=True)
class IngestTask:
    """A task that copies one split; it is pickled and sent to a worker, which calls it."""

    uri: str
    """The URI of the table."""
    settings: TableSettings
    layout: TableLayout
    split: IngestSplit
    store: Store
    check_crc: bool = False
    quarantines: bool = True
    """Whether damaged records go into quarantine; otherwise they are errors."""
    allow_data_loss: bool = False
    max_bytes_per_second: int | None = None
    """The most bytes of log to read per second; None: no limit."""

    def __call__(self) -> SplitResult:
        """Copies the split. Raises BadRecordError and DataLossError."""
        return _Taking(self).result()


class _Taking:
    """The work on one split."""

    def __init__(self, task: IngestTask) -> None:
        split = task.split
        options = SourceOptions.of(dict(task.settings.source))
        self._task = task
        self._store = task.store
        self._wanted = Selection.of(options).on(task.store.broker_name)
        self._decoder = Decoder(
            task.settings.columns,
            broker_name=task.store.broker_name,
            cluster=task.store.cluster,
            decompress=options.decompress,
            properties_format=options.properties_format,
            check_crc=task.check_crc,
        )
        place = Place(task.uri)
        self._parts = Parts(place, task.layout)
        self._quarantine = SplitQuarantine(task.store.key)
        self._result = SplitResult(split)

    def result(self) -> SplitResult:
        """Copies the split."""
        result = self._result
        for _, batch in decoded(self._reading(), self._decoder, self._tell, BATCH_BYTES):
            for count in batch.column("topic").value_counts().to_pylist():
                result.topics[count["values"]] += count["counts"]
            result.rows += batch.num_rows
            self._parts.add(batch)
        result.parts = self._parts.finish()
        result.damaged = self._quarantine.reasons
        result.quarantine.append(self._quarantine.rows())
        return result

    def _reading(self) -> Iterator[LogFinding]:
        split = self._task.split
        reading = read_log(
            self._store,
            split.start,
            split.end,
            window_bytes=WINDOW_BYTES,
            first_is_boundary=split.first_is_boundary,
            pace=Pace.of(self._task.max_bytes_per_second),
        )
        for found in reading:
            if not isinstance(found, Records):
                yield found
                continue
            self._result.records += len(found)
            yield from map(self._by_topic, self._wanted.seen(found))

    def _by_topic(self, records: Records) -> Records:
        """Sorts records by topic, so that the rows of a partition are runs: none is picked out.

        It costs nothing extra, since columns can be gathered in any order at the same price.
        """
        topics = records.topics()[0]
        if "topic" in self._task.settings.partition_by and (topics[:-1] > topics[1:]).any():
            return records.take(np.argsort(topics, kind="stable"))
        return records

    def _tell(self, found: BadRecord | LostBytes) -> None:
        if not isinstance(found, BadRecord):
            self._lost(found)
            return
        file = self._store.file_of(found.physical_offset)
        if not self._task.quarantines:
            raise BadRecordError(
                f"damaged record in {file} at physical offset {found.physical_offset}"
                f" ({found.length} bytes), {found.reason}: {found.detail};"
                " with --bad-records quarantine the run continues without it"
            )
        self._quarantine.add(file, found)

    def _lost(self, lost: LostBytes) -> None:
        if not self._task.allow_data_loss:
            text = loss_text(self._store, lost.start, lost.end)
            raise DataLossError(f"{text}; with --allow-data-loss the run continues without them")
        name = self._task.split.broker
        self._result.lost.append(LostRange(name, lost.start, lost.end))
        self._result.quarantine.append(gone(name, lost.start, lost.end))
