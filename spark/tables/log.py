# SPDX-License-Identifier: Apache-2.0
"""Tables of the commit log's files: segments, checkpoint, damage and losses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

from txrocketmq.spark.arrow.schema import Column
from txrocketmq.spark.columns.decode import BadRecord, Decoder
from txrocketmq.spark.log import quarantine
from txrocketmq.spark.log.log_end import end_of_log
from txrocketmq.spark.log.log_reader import LostBytes, read_log
from txrocketmq.spark.log.log_times import last_record
from txrocketmq.spark.options.offsets import EARLIEST, LATEST
from txrocketmq.spark.planning.plan import extent_of, log_ranges
from txrocketmq.spark.planning.scan import decoded
from txrocketmq.spark.planning.split import LogRange
from txrocketmq.spark.planning.store_verification import StoreCheck
from txrocketmq.spark.tables.table import BROKER_NAME, CLUSTER, ColumnValues, Request, Row, Table


def _segments(request: Request, _: Any) -> Iterator[Row]:
    store = request.store
    end = end_of_log(store)
    for segment in store.segments():
        first, upto = segment.first_offset, min(segment.end, end)
        last = last_record(store, segment, upto) if upto > first else None
        used = last.end - first if last else 0
        since = store.stored_at(first) if last else None
        until = last.store_timestamp if last else None
        yield segment.path, first, segment.size, used, since, until


SEGMENTS: Final = Table(
    "segments",
    "Files of the commit log.",
    (
        BROKER_NAME,
        Column("file", "string", "path"),
        Column("firstOffset", "bigint", "physical offset of its first byte"),
        Column("size", "bigint", "bytes of the file"),
        Column("usedBytes", "bigint", "bytes up to the end of its last record, as far as is known"),
        Column("firstTimestamp", "timestamp", "when its first record was stored"),
        Column("lastTimestamp", "timestamp", "when its last record was stored"),
        CLUSTER,
    ),
    _segments,
)


def _checkpoint(request: Request, _: Any) -> Iterator[Row]:
    store = request.store
    found = store.config.checkpoint()
    names = ("physic_msg_timestamp", "logics_msg_timestamp", "index_msg_timestamp")
    times = [found.get(name) or None for name in names]
    offsets = [found.get(name) for name in ("master_flushed_offset", "confirm_physical_offset")]
    abort = store.files.exists(f"{store.path}/abort")
    yield *times, *offsets, store.min_offset(), end_of_log(store), abort


CHECKPOINT: Final = Table(
    "checkpoint",
    "The checkpoint of a store, and where its log is.",
    (
        BROKER_NAME,
        Column(
            "physicMsgTimestamp",
            "timestamp",
            "the time up to which the log is known to be on the disk",
        ),
        Column("logicsMsgTimestamp", "timestamp", "the same for the consume queues"),
        Column("indexMsgTimestamp", "timestamp", "the same for the index"),
        Column("masterFlushedOffset", "bigint", "5.x"),
        Column("confirmPhysicalOffset", "bigint", "5.x"),
        Column("minOffset", "bigint", "where the log begins now"),
        Column("endOfLog", "bigint", "where the last complete record ends"),
        Column("abort", "boolean", "whether a broker uses the store or was killed"),
        CLUSTER,
    ),
    _checkpoint,
)


def _ranges(request: Request) -> Sequence[LogRange]:
    return log_ranges(extent_of(request.store, request.options), request.options)


def _new_ranges(request: Request, planned: Sequence[LogRange]) -> Sequence[LogRange]:
    extent = extent_of(request.store, request.options)
    start = max([extent.start, *(each.end for each in planned)])
    if start >= extent.end:
        return []
    return log_ranges(replace(extent, start=start), request.options)


def _damaged(request: Request, split: LogRange) -> Iterator[ColumnValues]:
    """Yields damaged records; looks at every record as a read of all columns does."""
    store, options = request.store, request.options
    decoder = Decoder(
        ("topic", "body", "properties"),
        broker_name=store.broker_name,
        check_crc=options.verify in ("crc", "store"),
    )
    reading = read_log(
        store,
        split.start,
        split.end,
        window_bytes=options.window_bytes,
        first_is_boundary=split.first_is_boundary,
        pace=request.pace,
    )
    bad: list[BadRecord] = []

    def tell(found: BadRecord | LostBytes) -> None:
        if isinstance(found, BadRecord):
            bad.append(found)
        else:
            request.tell(found)

    found = StoreCheck(split).all(reading) if options.verify == "store" else reading
    for _ in decoded(found, decoder, tell, options.batch_bytes):
        if bad:
            yield _rows(request, bad)
            bad.clear()
    yield _rows(request, bad)


def _rows(request: Request, bad: Sequence[BadRecord]) -> ColumnValues:
    store = request.store
    batch = quarantine.rows(store, [(store.file_of(each.physical_offset), each) for each in bad])
    return dict(zip(batch.schema.names, batch.columns, strict=True))


QUARANTINE: Final = Table(
    "quarantine",
    "Damaged records of the log; with verify=crc also bodies that do not match their CRC, with"
    " verify=store also what consume queues and index name wrongly.",
    quarantine.COLUMNS,
    _damaged,
    _ranges,
    _new_ranges,
    frozenset(
        {
            "startingOffsets",
            "minPartitions",
            "windowBytes",
            "batchBytes",
            "maxBytesPerSecond",
            "failOnDataLoss",
            "verify",
        }
    ),
)


def _losses(request: Request, _: Any) -> Iterator[Row]:
    store, starting = request.store, request.options.starting_offsets
    if starting is not None:
        starting = starting.of_broker(store.key, store.broker_name)
    least = store.min_offset()
    asked = starting.of_log(store.broker_name) if starting else EARLIEST
    if (asked == EARLIEST and least > 0) or 0 <= asked < least:
        yield None, None, max(asked, 0), least, "deleted"
    for start, end in store.gaps():
        yield None, None, start, end, "missing"
    for topic, queue_id in sorted(starting.queues_on(store.broker_name) if starting else ()):
        queue = store.queue(topic, queue_id)
        if queue is None or starting is None:
            continue
        offset = starting.of_queue(topic, store.broker_name, queue_id)
        first = queue.min_index(least)
        if offset != LATEST and max(offset, 0) < first:
            yield topic, queue_id, max(offset, 0), first, "deleted"


DATALOSS: Final = Table(
    "dataloss",
    "What is no longer in the store, from its beginning or from startingOffsets on.",
    (
        BROKER_NAME,
        Column("topic", "string", "of a queue; null for the log itself"),
        Column("queueId", "int", "of a queue"),
        Column(
            "fromOffset",
            "bigint",
            "the first offset that is gone: in the queue, or in bytes of the log",
        ),
        Column("toOffset", "bigint", "the first offset after it that is there"),
        Column(
            "reason", "string", "deleted: in front of what is there; missing: a file in between"
        ),
        CLUSTER,
    ),
    _losses,
    options=frozenset({"startingOffsets"}),
)
