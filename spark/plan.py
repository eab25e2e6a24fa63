# SPDX-License-Identifier: Apache-2.0
"""From options to splits: which parts of which stores a batch reads.

An `Extent` is the range of a store's log that is read, and the filter of its records; asked for
what is gone, `extent_of` says so before any job starts. `splits` cuts an extent into what tasks
read: whole files of the log, or, where topics, queues, tags or offsets are chosen that make up less
than half of the bytes, the records that the consume queues name.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from txrocketmq.spark.conditions import Bounds
from txrocketmq.spark.errors import OptionError, UnsupportedLayout
from txrocketmq.spark.log_times import mean_record_bytes, offset_after, offset_before
from txrocketmq.spark.losses import lose, loss_text
from txrocketmq.spark.offsets import EARLIEST, LATEST, Offsets, queue_text
from txrocketmq.spark.options import SourceOptions
from txrocketmq.spark.picks import dispatched, indexes, tagged
from txrocketmq.spark.queue_files import Queue
from txrocketmq.spark.selection import RecordFilter, Selection
from txrocketmq.spark.split import LogRange, QueuePicks, Split
from txrocketmq.spark.store import Segment, Store

_EARLIEST: Final = Offsets(EARLIEST)
_LATEST: Final = Offsets(LATEST)
_SAMPLE_UNITS: Final = 256
"""Of each queue, to guess how large its messages are and how many have the tags."""
MOST_PARTITIONS: Final = 100_000
"""Of one store, whatever is asked for, besides one for each file of its log."""
_PICKS_BYTES: Final = 64 << 20
"""Neighbouring files of the log are one split of picks up to about so many bytes of records."""


@dataclass(frozen=True)
class Extent:
    """What is read of one store: the records that start in [start, end) and that are wanted."""

    store: Store
    start: int
    end: int
    wanted: RecordFilter

    def narrowed(self, selection: Selection) -> Extent:
        """The same with a selection that has the conditions of a query."""
        return replace(self, wanted=replace(self.wanted, selection=selection))


# ------------------------------------------------------------------------------------- extents


def extents_of(stores: Sequence[Store], options: SourceOptions) -> list[Extent]:
    """What the options say to read of each store.

    Raises OptionError for offsets that make no sense, DataLossError for what is gone,
    UnsupportedLayout when queues are to be compared that are not in files.
    """
    check_brokers(stores, options)
    return [extent_of(store, options) for store in stores]


def check_brokers(stores: Sequence[Store], options: SourceOptions) -> None:
    """OptionError when an option names a broker that none of the stores is of."""
    known = {store.broker_name for store in stores}
    named = {
        "assign": options.assign,
        "startingOffsets": options.starting_offsets,
        "endingOffsets": options.ending_offsets,
    }
    for name, value in named.items():
        for broker in sorted(value.brokers() - known) if value else ():
            raise OptionError(
                f"option {name} names the broker {broker}; the stores are of {sorted(known)}"
            )


def extent_of(store: Store, options: SourceOptions) -> Extent:
    """As extents_of, for one store whose broker the offsets may or may not name."""
    by_time = options.starting_timestamp_ms is not None
    starting = _EARLIEST if by_time else options.starting_offsets or _EARLIEST
    by_time = options.ending_timestamp_ms is not None
    ending = _LATEST if by_time else options.ending_offsets or _LATEST
    least, most = store.min_offset(), store.end_of_log()
    if options.verify == "store" and store.queue_kind != "files" and least < most:
        raise UnsupportedLayout(
            f"verify=store needs consume queue files, which {store.uri} has not; verify=crc is what"
            " can be looked at without"
        )
    start = _start_of_log(store, starting, least, most, fail=options.fail_on_data_loss)
    end = _end_of_log(store, ending, most, fail=options.fail_on_data_loss)
    queues = _queue_bounds(store, starting, ending, least, fail=options.fail_on_data_loss)
    wanted = Selection.of(options).on(store.broker_name, queues)
    return Extent(store, start, max(start, end), wanted)


def _start_of_log(store: Store, starting: Offsets, least: int, most: int, *, fail: bool) -> int:
    asked = starting.of_log(store.broker_name)
    if asked == EARLIEST:
        return least
    if asked == LATEST:
        return most
    if asked > most:
        raise OptionError(
            f"option startingOffsets: the log of {store.broker_name} ends at {most}, before {asked}"
        )
    if asked < least:
        lose(loss_text(store, asked, least), fail=fail)
    return max(asked, least)


def _end_of_log(store: Store, ending: Offsets, most: int, *, fail: bool) -> int:
    asked = ending.of_log(store.broker_name)
    if asked > most:
        lose(
            f"option endingOffsets: the log of {store.broker_name} ends at {most}, before {asked}",
            fail=fail,
        )
    return most if asked == LATEST else min(asked, most)


def _queue_bounds(
    store: Store, starting: Offsets, ending: Offsets, least: int, *, fail: bool
) -> dict[tuple[str, int], Bounds]:
    named = {
        (topic, queue_id)
        for topic, broker, queue_id in (*starting.queues, *ending.queues)
        if broker == store.broker_name
    }
    if named and store.queue_kind != "files":
        raise OptionError(
            f"offsets of queues need consume queue files, which {store.uri} has not; give offsets"
            ' of the log, {"log": {"%s": byteOffset}}, or timestamps' % store.broker_name
        )
    return {
        (topic, queue_id): _bounds(store, topic, queue_id, (starting, ending), least, fail=fail)
        for topic, queue_id in sorted(named)
    }


def _bounds(
    store: Store,
    topic: str,
    queue_id: int,
    asked: tuple[Offsets, Offsets],
    least: int,
    *,
    fail: bool,
) -> Bounds:
    queue = store.queue(topic, queue_id)
    place = queue_text(topic, store.broker_name, queue_id)
    if queue is None:
        raise OptionError(f"offsets are given for {place}, which {store.uri} does not have")
    first, end = queue.min_index(least), queue.max_index()
    low = asked[0].of_queue(topic, store.broker_name, queue_id)
    high = asked[1].of_queue(topic, store.broker_name, queue_id)
    if low > end:
        raise OptionError(f"option startingOffsets: {place} ends at {end}, before {low}")
    if low not in (EARLIEST, LATEST) and low < first:
        lose(f"{place} begins at {first}: the messages from {low} on are gone", fail=fail)
    if high > end:
        lose(f"option endingOffsets: {place} ends at {end}, before {high}", fail=fail)
    return Bounds(
        low=end if low == LATEST else max(low, 0),
        high=Bounds().high if high == LATEST else high,
    )


# ------------------------------------------------------------------------------------- splits


def splits(extent: Extent, options: SourceOptions) -> list[Split]:
    """The extent in pieces for tasks; none when nothing of it can be wanted."""
    extent = _within_time_and_place(extent)
    if extent.start >= extent.end or not extent.wanted.wants_broker():
        return []
    segments = _segments(extent, fail=options.fail_on_data_loss)
    picked = None if options.verify == "store" else _picks(extent, segments, options)
    return [*_ranges(extent, segments, options)] if picked is None else picked


def log_ranges(extent: Extent, options: SourceOptions) -> list[LogRange]:
    """The extent in ranges of the log, the same ones each time: a stream reads a batch again."""
    return _ranges(extent, _segments(extent, fail=options.fail_on_data_loss), options)


def _within_time_and_place(extent: Extent) -> Extent:
    places = extent.wanted.selection.conditions.bounds("physicalOffset")
    start, end = max(extent.start, places.low), min(extent.end, places.high)
    times = extent.wanted.times()
    if start < end and times.low > Bounds().low:
        start = offset_before(extent.store, times.low, start, end)
    if start < end and times.high < Bounds().high:
        end = offset_after(extent.store, times.high, start, end)
    return replace(extent, start=start, end=end)


def _segments(extent: Extent, *, fail: bool) -> list[Segment]:
    """Files of the log that the extent reaches into; what is missing between them is lost."""
    inside = [
        each
        for each in extent.store.segments()
        if each.first_offset < extent.end and each.end > extent.start
    ]
    at = extent.start
    for segment in inside:
        if segment.first_offset > at:
            lose(loss_text(extent.store, at, segment.first_offset), fail=fail)
        at = segment.end
    if at < extent.end:
        lose(loss_text(extent.store, at, extent.end), fail=fail)
    return inside


def _ranges(extent: Extent, segments: Sequence[Segment], options: SourceOptions) -> list[LogRange]:
    most = size = extent.end - extent.start
    if options.min_partitions is not None:
        most = min(most, -(-size // options.min_partitions))
    if options.max_records_per_partition is not None:
        mean = mean_record_bytes(extent.store, extent.start)
        most = min(most, options.max_records_per_partition * mean)
    most = max(most, -(-size // MOST_PARTITIONS))
    found: list[LogRange] = []
    for segment in segments:
        start = max(extent.start, segment.first_offset)
        end = min(extent.end, segment.end)
        count = -(-(end - start) // max(1, most))
        cuts = [start + (end - start) * number // count for number in range(count + 1)]
        for low, high in itertools.pairwise(cuts):
            found.append(LogRange(extent.store, low, high, low == segment.first_offset))
    return found


def _chosen_queues(extent: Extent) -> list[Queue]:
    """The queues that may hold what is wanted."""
    wanted, store = extent.wanted, extent.store
    selection = wanted.selection
    names = selection.topics or (selection.assign and selection.assign.topics())
    listed = [q for name in names for q in store.queues_of(name)] if names else store.queues()
    return [queue for queue in listed if wanted.wants_queue(queue.topic, queue.queue_id)]


def _picks(
    extent: Extent, segments: Sequence[Segment], options: SourceOptions
) -> list[Split] | None:
    """Splits by consume queues, and by the log where these do not reach yet.

    None when the queues cannot tell, or when reading the log as a whole is cheaper.
    """
    wanted, store = extent.wanted, extent.store
    if not (wanted.selection.logical and wanted.names_queues and store.queue_kind == "files"):
        return None
    # Before the queues are listed: of one that comes meanwhile nothing lies before this place.
    known_end = min(dispatched(store), extent.end)
    queues = _chosen_queues(extent)
    guessed = sum(_guess_bytes(queue, extent) for queue in queues)
    if guessed * 2 > extent.end - extent.start:
        return None
    found: list[Split] = []
    names = tuple((queue.topic, queue.queue_id) for queue in queues)
    if names and extent.start < known_end:
        pieces = -(-guessed // _PICKS_BYTES)
        pieces = max(1, min(pieces, len(segments)), options.min_partitions or 1)
        if options.max_records_per_partition is not None:
            units = sum(_count(queue, extent) for queue in queues)
            pieces = max(pieces, -(-units // options.max_records_per_partition))
        pieces = min(pieces, MOST_PARTITIONS)
        size = known_end - extent.start
        cuts = [extent.start + size * number // pieces for number in range(pieces + 1)]
        found += [
            QueuePicks(store, low, high, names)
            for low, high in itertools.pairwise(cuts)
            if low < high
        ]
    if known_end < extent.end:
        rest = replace(extent, start=max(known_end, extent.start))
        found += _ranges(rest, [s for s in segments if s.end > rest.start], options)
    return found


def _count(queue: Queue, extent: Extent) -> int:
    first, last = indexes(queue, extent.start, extent.end, extent.wanted)
    return last - first


def _guess_bytes(queue: Queue, extent: Extent) -> int:
    """About how many bytes of log the queue's wanted messages are, by a sample of the last."""
    first, last = indexes(queue, extent.start, extent.end, extent.wanted)
    sample = queue.units(max(first, last - _SAMPLE_UNITS), last)
    if not len(sample):
        return 0
    sizes = np.where(tagged(queue, sample, extent.wanted), sample["size"], 0)
    return int((last - first) * float(sizes.mean())) + 1
