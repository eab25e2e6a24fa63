# SPDX-License-Identifier: Apache-2.0
"""What a task does with its split: it reads, filters and decodes records, and makes rows of them.

    scan = Scan.of(options, output)
    for batch in scan.read(split, filter): ...        # Arrow batches with the schema of `output`

The policies badRecords and failOnDataLoss are applied here to damaged and lost records. What they
leave out is told in a warning of the logger `txrocketmq.spark`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from txrocketmq.remoting.message.flags import MessageSysFlag
from txrocketmq.spark.arrow.arrays import numbers_of, of_numbers, of_texts
from txrocketmq.spark.arrow.records import Records
from txrocketmq.spark.columns.decode import BadRecord, Decoder
from txrocketmq.spark.columns.output import Output
from txrocketmq.spark.columns.selection import RecordFilter
from txrocketmq.spark.log.damage import Damage, Origin
from txrocketmq.spark.log.log_reader import LogFinding, LostBytes, pieces, read_log, read_picks
from txrocketmq.spark.log.losses import is_outside, lose, loss_text, names_all
from txrocketmq.spark.options.options import SourceOptions
from txrocketmq.spark.options.pace import Pace
from txrocketmq.spark.planning.picks import still_stand, units_of
from txrocketmq.spark.planning.queue_coverage import read_covered
from txrocketmq.spark.planning.split import CoveredPicks, LogRange, QueuePicks, Split
from txrocketmq.spark.planning.store_verification import StoreCheck
from txrocketmq.spark.store.files import files_of
from txrocketmq.spark.store.store import Store

Loss = TypeVar("Loss")
"""What stands in the place of messages that are lost."""
_PLACE: Final = ("topic", "queueId", "queueOffset")


@dataclass(frozen=True)
class Scan:
    """How splits are read; it is sent to the tasks."""

    options: SourceOptions
    output: Output

    @classmethod
    def of(cls, options: SourceOptions, output: Output) -> Scan:
        """Takes the options. Raises OptionError, StoreError if a quarantine cannot be written."""
        if options.bad_records.path is not None:
            files_of(options.bad_records.path, option="badRecords=quarantine")
        return cls(options, output)

    def read(
        self, split: Split, wanted: RecordFilter, *, is_old: bool = False
    ) -> Iterator[pa.RecordBatch]:
        """Yields the rows of the split.

        Raises BadRecordError and DataLossError where the options say so. In an old plan, what a new
        plan would not read is left out with a warning instead.
        """
        options, store = self.options, split.store
        is_old = is_old and not names_all(options, store.broker_name, store.key)

        def lost(found: LostBytes) -> None:
            is_excused = is_old and is_outside(store, found.start, found.end)
            text = loss_text(store, found.start, found.end)
            lose(text, fail=options.fail_on_data_loss and not is_excused)

        found = _found(options, split, wanted, is_old=is_old)
        yield from ScanRows(self, store, wanted, lost).of(
            _inside(found, store) if is_old else found
        )


def _inside(reading: Iterable[LogFinding], store: Store) -> Iterator[LogFinding]:
    """Yields what is read, but as lost what a log no longer has that was cut off."""
    for each in reading:
        if isinstance(each, BadRecord):
            start, end = each.physical_offset, each.physical_offset + each.length
            if is_outside(store, start, end):
                yield LostBytes(start, end)
                continue
        yield each


def _found(
    options: SourceOptions, split: Split, wanted: RecordFilter, *, is_old: bool
) -> Iterator[LogFinding]:
    pace = Pace.of(options.max_bytes_per_second)
    split = split._replace(store=split.store.at_once())
    if isinstance(split, QueuePicks):
        light = split.light_queue
        wanted = wanted.of_log if light is None else wanted.of_light_queue(light)
        if still_stand(split):
            yield from _picked(options, split, wanted, pace, is_old=is_old)
            return
        split = LogRange(split.store, split.start, split.end, first_is_boundary=False)
    if isinstance(split, CoveredPicks):
        yield from read_covered(split, wanted, window_bytes=options.window_bytes, pace=pace)
        return
    check = StoreCheck(split) if options.verify == "store" else None
    reading = read_log(
        split.store,
        split.start,
        split.end,
        window_bytes=options.window_bytes,
        first_is_boundary=split.first_is_boundary,
        pace=pace,
    )
    yield from seen(reading if check is None else check.all(reading), wanted)


def _picked(
    options: SourceOptions,
    split: QueuePicks,
    wanted: RecordFilter,
    pace: Pace | None,
    *,
    is_old: bool,
) -> Iterator[LogFinding]:
    light = split.light_queue
    for units in units_of(
        split, wanted, fail_on_data_loss=options.fail_on_data_loss, is_old=is_old
    ):
        for found in read_picks(split.store, units, window_bytes=options.window_bytes, pace=pace):
            if not isinstance(found, Records):
                yield found
                continue
            if light is not None:
                at = np.searchsorted(units["physical_offset"], found.physical_offset)
                found = found.in_light_queue(light, units["queue_offset"][at])  # noqa: PLW2901
            yield wanted.apply(found)


class ScanRows(Generic[Loss]):
    """Makes rows of what is read from one origin; `lost` is called for messages that are gone."""

    def __init__(
        self, scan: Scan, origin: Origin, wanted: RecordFilter, lost: Callable[[Loss], None]
    ) -> None:
        options = scan.options
        self._batch_bytes = options.batch_bytes
        self._output = scan.output
        self._wanted = wanted
        self._lost = lost
        names = list(scan.output.decoded)
        if wanted.tags is not None:
            names.append("tags")
        if wanted.queues:
            names += _PLACE
        self._conditions = wanted.selection.conditions
        names += self._conditions.columns
        self._decoder = Decoder(
            tuple(dict.fromkeys(names)),
            broker_name=origin.broker_name,
            cluster=origin.cluster,
            decompress=options.decompress,
            properties_format=scan.output.properties_format,
            check_crc=options.verify in ("crc", "store"),
            max_body_bytes=options.max_record_bytes,
        )
        self._tags = None if wanted.tags is None else of_texts(sorted(wanted.tags))
        self._damage = Damage(options.bad_records, origin)

    def of(self, reading: Iterable[Records | BadRecord | Loss]) -> Iterator[pa.RecordBatch]:
        """Yields rows of the records, in batches of about batchBytes of log.

        Damaged records are treated as badRecords says.
        """
        for records, batch in decoded(reading, self._decoder, self._tell, self._batch_bytes):
            chosen = batch
            if self._tags is not None:
                chosen = chosen.filter(pc.is_in(chosen.column("tags"), value_set=self._tags))
            if self._wanted.queues and _has_inner(records):
                chosen = chosen.filter(self._offsets_wanted(chosen))
            chosen = self._conditions.rows(chosen)
            if len(chosen):
                yield self._output.batch(chosen)
        self._damage.end()

    def _tell(self, found: BadRecord | Loss) -> None:
        if isinstance(found, BadRecord):
            self._damage.add(found)
        else:
            self._lost(found)

    def _offsets_wanted(self, batch: pa.RecordBatch) -> pa.BooleanArray:
        """Returns which rows are wanted by the queue offsets of messages of inner batches."""
        topic, queue_id, offset = (batch.column(name) for name in _PLACE)
        wanted = np.ones(len(batch), np.bool_)
        for (name, number), bounds in self._wanted.queues.items():
            mine = numbers_of(pc.is_in(topic, value_set=of_texts([name])))
            mine &= numbers_of(queue_id) == number
            wanted &= bounds.hold(numbers_of(offset)) | ~mine
        return of_numbers(wanted)


def decoded(
    reading: Iterable[Records | BadRecord | Loss],
    decoder: Decoder,
    tell: Callable[[BadRecord | Loss], None],
    batch_bytes: int,
) -> Iterator[tuple[Records, pa.RecordBatch]]:
    """Yields messages in batches of about `batch_bytes` of log, with the records they are from.

    `tell` is called for damage and losses, and for records that no message can be made from.
    """
    for found in reading:
        if not isinstance(found, Records):
            tell(found)
            continue
        for start, end in pieces(found.total_size, batch_bytes):
            records = found.slice(start, end)
            for batch, bad in decoder.decode(records):
                for each in bad:
                    tell(each)
                yield records, batch


def seen(reading: Iterable[LogFinding], wanted: RecordFilter) -> Iterator[LogFinding]:
    """Yields what is read of the log, but only wanted records, in the form that consumers see."""
    for found in reading:
        if isinstance(found, Records):
            yield from wanted.seen(found)
        else:
            yield found


def _has_inner(records: Records) -> bool:
    return bool((records.sys_flag & MessageSysFlag.INNER_BATCH).any())
