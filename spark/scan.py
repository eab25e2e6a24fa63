# SPDX-License-Identifier: Apache-2.0
"""What a task does with its split: read, filter, decode, and make rows of it.

    scan = Scan.of(options, output)
    for batch in scan.read(split, filter): ...        # Arrow batches with the schema of `output`

Damaged records and records that are gone meet the policies of badRecords and failOnDataLoss here.
What is left out by these is told in a warning of the logger `txrocketmq.spark`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from txrocketmq.remoting.message.compression import DEFAULT_MAX_BYTES
from txrocketmq.remoting.message.flags import MessageSysFlag
from txrocketmq.spark.covered import read_covered
from txrocketmq.spark.damage import Damage, Origin
from txrocketmq.spark.decode import BadRecord, Decoder
from txrocketmq.spark.files import files_of
from txrocketmq.spark.log_reader import Lost, read_log, read_picks
from txrocketmq.spark.losses import lose, loss_text
from txrocketmq.spark.option_values import BadRecordPolicy
from txrocketmq.spark.options import SourceOptions
from txrocketmq.spark.output import Output
from txrocketmq.spark.pace import Pace
from txrocketmq.spark.picks import units_of
from txrocketmq.spark.records import Records
from txrocketmq.spark.selection import RecordFilter
from txrocketmq.spark.split import CoveredPicks, LogRange, QueuePicks, Split
from txrocketmq.spark.verify import StoreCheck

_PLACE: Final = ("topic", "queueId", "queueOffset")


@dataclass(frozen=True)
class Scan:
    """How splits are read; goes with the tasks."""

    output: Output
    window_bytes: int
    batch_bytes: int
    decompress: bool
    check_crc: bool
    check_store: bool
    """Whether queues and index are compared with the log."""
    bad_records: BadRecordPolicy
    fail_on_data_loss: bool
    max_body_bytes: int = DEFAULT_MAX_BYTES
    """Of a decompressed body."""
    max_bytes_per_second: int | None = None
    """Of log that a task reads."""

    @classmethod
    def of(cls, options: SourceOptions, output: Output) -> Scan:
        """As the options say. OptionError, StoreError for a quarantine nobody can write to."""
        if options.bad_records.path is not None:
            files_of(options.bad_records.path, option="badRecords=quarantine")
        return cls(
            output=output,
            window_bytes=options.window_bytes,
            batch_bytes=options.batch_bytes,
            decompress=options.decompress,
            check_crc=options.verify in ("crc", "store"),
            check_store=options.verify == "store",
            bad_records=options.bad_records,
            fail_on_data_loss=options.fail_on_data_loss,
            max_body_bytes=options.max_record_bytes,
            max_bytes_per_second=options.max_bytes_per_second,
        )

    def read(self, split: Split, wanted: RecordFilter) -> Iterator[pa.RecordBatch]:
        """The rows of the split.

        Raises BadRecordError and DataLossError where the options say so.
        """
        rows = Rows(self, split.store, wanted)
        for found in _found(self, split, wanted):
            if isinstance(found, Lost):
                lose(loss_text(split.store, found.start, found.end), fail=self.fail_on_data_loss)
            elif isinstance(found, BadRecord):
                rows.complain(found)
            else:
                yield from rows.of(found)
        rows.end()


def _found(scan: Scan, split: Split, wanted: RecordFilter) -> Iterator[Records | BadRecord | Lost]:
    pace = Pace.of(scan.max_bytes_per_second)
    split = split._replace(store=split.store.at_once())
    if isinstance(split, QueuePicks):
        yield from _picked(scan, split, wanted, pace)
        return
    if not (isinstance(split, LogRange) and split.with_light_queues):
        wanted = wanted.of_log
    if isinstance(split, CoveredPicks):
        yield from read_covered(split, wanted, window_bytes=scan.window_bytes, pace=pace)
        return
    check = StoreCheck(split) if scan.check_store else None
    reading = read_log(
        split.store,
        split.start,
        split.end,
        window_bytes=scan.window_bytes,
        first_is_boundary=split.first_is_boundary,
        pace=pace,
    )
    for found in reading:
        if not isinstance(found, Records):
            yield found
            continue
        if check is not None:
            yield from check.queues(found)
        yield from wanted.seen(found)
    if check is not None:
        yield from check.index()


def _picked(
    scan: Scan, split: QueuePicks, wanted: RecordFilter, pace: Pace | None
) -> Iterator[Records | BadRecord | Lost]:
    light = split.light_queue
    wanted = wanted.of_log if light is None else wanted.of_light_queue(light)
    for units in units_of(split, wanted, fail_on_data_loss=scan.fail_on_data_loss):
        for found in read_picks(split.store, units, window_bytes=scan.window_bytes, pace=pace):
            if not isinstance(found, Records):
                yield found
                continue
            if light is not None:
                at = np.searchsorted(units["physical_offset"], found.physical_offset)
                found = found.in_light_queue(light, units["queue_offset"][at])  # noqa: PLW2901
            yield wanted.apply(found)


class Rows:
    """Makes rows of records of one origin; `end` when that is all."""

    def __init__(self, scan: Scan, origin: Origin, wanted: RecordFilter) -> None:
        self._scan = scan
        self._wanted = wanted
        names = list(scan.output.decoded)
        if wanted.tags is not None:
            names.append("tags")
        if wanted.queues:
            names += _PLACE
        self._decoder = Decoder(
            tuple(dict.fromkeys(names)),
            broker_name=origin.broker_name,
            cluster=origin.cluster,
            decompress=scan.decompress,
            properties_format=scan.output.properties_format,
            check_crc=scan.check_crc,
            max_body_bytes=scan.max_body_bytes,
        )
        self._tags = None if wanted.tags is None else pa.array(sorted(wanted.tags), pa.string())
        self._damage = Damage(scan.bad_records, origin)

    def of(self, records: Records) -> Iterator[pa.RecordBatch]:
        """Rows of the records, in batches of about batchBytes of log."""
        for start, end in pieces(records.total_size, self._scan.batch_bytes):
            for decoded in self._decoder.decode(records.slice(start, end)):
                for bad in decoded.bad:
                    self.complain(bad)
                batch = decoded.batch
                if self._tags is not None:
                    batch = batch.filter(pc.is_in(batch.column("tags"), value_set=self._tags))
                if self._wanted.queues and _has_inner(records):
                    batch = batch.filter(self._offsets_wanted(batch))
                if len(batch):
                    yield self._scan.output.batch(batch)

    def _offsets_wanted(self, batch: pa.RecordBatch) -> pa.BooleanArray:
        """Messages of inner batches have their own queue offsets, known only now."""
        topic, queue_id, offset = (batch.column(name) for name in _PLACE)
        wanted = np.ones(len(batch), np.bool_)
        for (name, number), bounds in self._wanted.queues.items():
            mine = pc.and_(pc.equal(topic, name), pc.equal(queue_id, number))
            at = offset.to_numpy()
            inside = (at >= bounds.low) & (at <= min(bounds.high, 1 << 63) - 1)
            wanted &= inside | ~mine.to_numpy(zero_copy_only=False)
        return pa.array(wanted)

    def complain(self, bad: BadRecord) -> None:
        """Treats a damaged record as badRecords says."""
        self._damage.add(bad)

    def end(self) -> None:
        """Tells what was left out."""
        self._damage.end()


def pieces(sizes: NDArray[Any], most: int) -> list[tuple[int, int]]:
    """Cuts rows of these sizes in bytes into runs of about `most` bytes, at least one row each."""
    if not len(sizes):
        return []
    ends = np.cumsum(sizes, dtype=np.int64)
    cuts = [0]
    while cuts[-1] < len(sizes):
        before = int(ends[cuts[-1] - 1]) if cuts[-1] else 0
        cuts.append(max(cuts[-1] + 1, int(np.searchsorted(ends, before + most, "right"))))
    return list(itertools.pairwise(cuts))


def _has_inner(records: Records) -> bool:
    return bool((records.sys_flag & MessageSysFlag.INNER_BATCH).any())
