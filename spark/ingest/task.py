# SPDX-License-Identifier: Apache-2.0
"""Takes one split: reads its records, decodes them, writes its parts, puts them in their place.

Everything is first in the spool; the parts are put in their place when all are complete, and the
result is written last. A split that has a result is not done again.
"""

from __future__ import annotations

import shutil
import time
from dataclasses import dataclass
from typing import Final

import numpy as np

from txrocketmq.spark.decode import BadRecord, Decoder
from txrocketmq.spark.errors import BadRecordError, DataLossError
from txrocketmq.spark.ingest.documents import Lost, Part, Plan, Split, SplitResult
from txrocketmq.spark.ingest.folder import Folder
from txrocketmq.spark.ingest.ledger import Ledger
from txrocketmq.spark.ingest.parts import Parts
from txrocketmq.spark.ingest.quarantine import SplitQuarantine
from txrocketmq.spark.ingest.settings import TableSettings
from txrocketmq.spark.ingest.stages import Stage, reached
from txrocketmq.spark.log_reader import Lost as LostOfLog
from txrocketmq.spark.log_reader import read_log
from txrocketmq.spark.losses import loss_text
from txrocketmq.spark.options import SourceOptions
from txrocketmq.spark.pace import Pace
from txrocketmq.spark.records import Records
from txrocketmq.spark.scan import pieces
from txrocketmq.spark.selection import RecordFilter, Selection
from txrocketmq.spark.store import Store

WINDOW_BYTES: Final = 8 << 20
BATCH_BYTES: Final = 4 << 20


@dataclass(frozen=True)
class IngestTask:
    """Picklable: travels to a worker, which calls it."""

    folder: Folder
    settings: TableSettings
    plan: Plan
    """Without its splits: there may be thousands."""
    split: Split
    store: Store
    quarantines: bool = True
    """Else a damaged record is an error."""
    allow_data_loss: bool = False
    max_bytes_per_second: int | None = None
    """Of log; says when it is read, not how the split is cut: the parts are the same."""

    def __call__(self) -> bytes:
        """The SplitResult as JSON. Raises BadRecordError and DataLossError."""
        ledger = Ledger(self.folder)
        result = ledger.result(self.plan, self.split)
        if result is None:
            spool = self.folder.spool()
            try:
                result = _Taking(self, spool).result()
            finally:
                shutil.rmtree(spool, ignore_errors=True)
            ledger.write_result(self.plan, result)
            reached(Stage.SPLIT_DONE)
        return result.to_json()


class _Taking:
    """The work on one split."""

    def __init__(self, task: IngestTask, spool: str) -> None:
        split = task.split
        options = SourceOptions.of(dict(task.settings.source))
        self._task = task
        self._store = task.store
        self._wanted = Selection.of(options).on(split.broker_name)
        self._decoder = Decoder(
            task.settings.columns,
            broker_name=split.broker_name,
            cluster=task.store.cluster,
            decompress=options.decompress,
            properties_format=options.properties_format,
            check_crc=task.plan.check_crc,
        )
        self._parts = Parts(spool, split.name, self._decoder.schema, task.settings.partition_by)
        self._quarantine = SplitQuarantine(spool, split.name, split.broker_name)
        self._result = SplitResult(split.name, task.plan.id, size_bytes=split.size_bytes)

    def result(self) -> SplitResult:
        """Takes the split."""
        cpu = time.process_time()
        split = self._task.split
        counting = _Counting(self._wanted)
        found = read_log(
            self._store,
            split.start,
            split.end,
            window_bytes=WINDOW_BYTES,
            first_is_boundary=split.first_is_boundary,
            keep=counting.apply,
            pace=Pace.of(self._task.max_bytes_per_second),
        )
        for each in found:
            if isinstance(each, BadRecord):
                self._bad(each)
            elif isinstance(each, LostOfLog):
                self._lost(each)
            else:
                self._take(each)
        self._put_in_place()
        self._result.records = counting.records
        self._result.quarantined = self._quarantine.reasons
        self._result.cpu_ms = round((time.process_time() - cpu) * 1000)
        return self._result

    def _take(self, records: Records) -> None:
        if "topic" in self._task.settings.partition_by:
            # The columns are gathered in any order at the same price: by topic, so that the
            # partitions are runs of rows that need not be picked out once more.
            topics = records.topics()[0]
            if (topics[:-1] > topics[1:]).any():
                records = records.take(np.argsort(topics, kind="stable"))
        for start, end in pieces(records.total_size, BATCH_BYTES):
            for batch, bad in self._decoder.decode(records.slice(start, end)):
                for each in bad:
                    self._bad(each)
                for count in batch.column("topic").value_counts().to_pylist():
                    self._result.topics[count["values"]] += count["counts"]
                self._result.rows += batch.num_rows
                self._parts.add(batch)

    def _bad(self, bad: BadRecord) -> None:
        file = self._store.file_of(bad.physical_offset)
        if not self._task.quarantines:
            raise BadRecordError(
                f"damaged record in {file} at physical offset {bad.physical_offset}"
                f" ({bad.length} bytes), {bad.reason}: {bad.detail};"
                " --bad-records quarantine goes on without it"
            )
        self._quarantine.add(file, bad)

    def _lost(self, lost: LostOfLog) -> None:
        if not self._task.allow_data_loss:
            text = loss_text(self._store, lost.start, lost.end)
            raise DataLossError(f"{text}; --allow-data-loss goes on without them")
        self._result.lost.append(Lost(self._task.split.broker_name, lost.start, lost.end))

    def _put_in_place(self) -> None:
        spooled = self._parts.finish()
        damaged = self._quarantine.finish()
        reached(Stage.PARTS_WRITTEN)
        folder = self._task.folder
        Ledger(folder).check_plan(self._task.plan)
        for each in spooled:
            size_bytes = folder.publish(each.spooled, each.path)
            reached(Stage.ONE_PART_IN_PLACE)
            self._result.parts.append(
                Part(
                    each.path, each.rows, size_bytes, self._task.split.broker_name,
                    each.partition, each.first_ms, each.last_ms,
                )
            )  # fmt: skip
        if damaged:
            folder.publish(self._quarantine.spooled, self._quarantine.path)
        reached(Stage.PARTS_IN_PLACE)


class _Counting:
    """A filter that counts what it is shown."""

    def __init__(self, wanted: RecordFilter) -> None:
        self._wanted = wanted
        self.records = 0

    def apply(self, records: Records) -> Records:
        """The records that are wanted."""
        self.records += len(records)
        return self._wanted.apply(records)
