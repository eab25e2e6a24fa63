# SPDX-License-Identifier: Apache-2.0
"""From options to splits: which parts of which stores a batch reads.

An `Extent` is the range of a store's log that is read, with the filter of its records. If something
that was asked for is gone, `extent_of` reports it before any job starts. `splits` cuts an extent
into what tasks read: whole files of the log, or, if topics, queues, tags or offsets are chosen that
make up less than half of the bytes, the records that the consume queues name.

The options that choose messages decide between these two ways, but not the option `where`, since
they give different rows where queues do not have all that is in the log. Conditions of `where`
leave out what they are known not to want, and change nothing else. Where the log would be read,
tasks pick records by queues only as far as these are proven complete (`spark.covered`), and times
choose files only where the option clockStepMs vouches for the broker's clock.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from txrocketmq.remoting.message.topics import LMQ_PREFIX
from txrocketmq.spark.arrow.errors import OptionError, UnsupportedLayout
from txrocketmq.spark.arrow.threads import asked, in_threads
from txrocketmq.spark.columns.selection import RecordFilter, Selection
from txrocketmq.spark.log.log_end import end_of_log
from txrocketmq.spark.log.log_times import SLACK_MS, mean_record_bytes, offset_after, offset_before
from txrocketmq.spark.log.losses import lose, loss_text
from txrocketmq.spark.options.conditions import Bounds, Conditions
from txrocketmq.spark.options.offsets import EARLIEST, LATEST, Offsets, queue_text
from txrocketmq.spark.options.options import SourceOptions
from txrocketmq.spark.planning.known_names import check_queues, check_topics
from txrocketmq.spark.planning.picks import dispatched
from txrocketmq.spark.planning.queue_amounts import Amount, LogPart, amount_of, some_of
from txrocketmq.spark.planning.split import (
    CoveredPicks,
    LogRange,
    QueuePicks,
    Split,
    even_parts,
    joined,
)
from txrocketmq.spark.store.broker_names import check_brokers
from txrocketmq.spark.store.deleted_topics import all_known_from
from txrocketmq.spark.store.queue_files import Queue
from txrocketmq.spark.store.store import Segment, Store, resolve

_EARLIEST: Final = Offsets(EARLIEST)
_LATEST: Final = Offsets(LATEST)
MOST_PARTITIONS: Final = 100_000
"""The most partitions of one store, apart from those that begin with a file of its log."""
_PICKS_BYTES: Final = 64 << 20
"""A split of picks has about so many bytes of records."""
_COVERED_BYTES: Final = 4 << 30
"""The most bytes of log in one split in which queues have to account for every byte."""
_ASKING_BYTES: Final = 4 << 20
"""The bytes of a remote log that could be read while one queue is asked for its units."""
_ASKING_LOCALLY_BYTES: Final = 256 << 10
"""The same for a local log; queues are always asked about the conditions of `where`."""


@dataclass(frozen=True)
class Extent:
    """What is read of one store: the wanted ones of the records that start in [start, end)."""

    store: Store
    start: int
    end: int
    wanted: RecordFilter


class _Known(NamedTuple):
    """The queues of the topics that the options name."""

    start: int
    """The offset in the log from which on they have all messages: see `spark.deleted_topics`."""
    end: int
    """The offset in the log up to which the queues cover it."""
    queues: list[Queue]
    amount: Amount


# ------------------------------------------------------------------------------------- extents


def stores_of(options: SourceOptions) -> list[Store]:
    """Returns the stores that the option storePath names. Raises what `resolve` raises."""
    return resolve(
        options.store_path or "",
        broker_name=options.broker_name,
        cluster=options.cluster,
        max_record_bytes=options.max_record_bytes,
    )


def extents_of(stores: Sequence[Store], options: SourceOptions) -> list[Extent]:
    """Returns what the options say to read of each store.

    Raises OptionError for offsets that make no sense, DataLossError for what is gone,
    UnsupportedLayout when queues have to be compared that are not in files.
    """
    stores = in_threads(lambda store: store.at_once(all_queues=True), stores)
    check_brokers(stores, options)
    check_queues(stores, options)
    check_topics(stores, options)
    return in_threads(lambda store: extent_of(store, options), stores)


def extent_of(store: Store, options: SourceOptions) -> Extent:
    """Returns what extents_of does, for one store; the offsets may name other brokers."""
    by_time = options.starting_timestamp_ms is not None
    starting = _EARLIEST if by_time else options.starting_offsets or _EARLIEST
    by_time = options.ending_timestamp_ms is not None
    ending = _LATEST if by_time else options.ending_offsets or _LATEST
    starting = starting.of_broker(store.key, store.broker_name)
    ending = ending.of_broker(store.key, store.broker_name)
    store = store.at_once()
    least, most = store.min_offset(), end_of_log(store)
    if options.verify == "store" and store.queue_kind != "files" and least < most:
        raise UnsupportedLayout(
            f"verify=store needs consume queue files, which {store.uri} does not have; use"
            " verify=crc, which needs none"
        )
    start = _start_of_log(store, starting, least, most, fail=options.fail_on_data_loss)
    end = _end_of_log(store, ending, most, fail=options.fail_on_data_loss)
    ends = (least, most)
    queues = _queue_bounds(store, starting, ending, ends, fail=options.fail_on_data_loss)
    wanted = Selection.of(options).on(store.broker_name, queues, key=store.key)
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
    store: Store, starting: Offsets, ending: Offsets, ends: tuple[int, int], *, fail: bool
) -> dict[tuple[str, int], Bounds]:
    named = starting.queues_on(store.broker_name) | ending.queues_on(store.broker_name)
    if named and store.queue_kind != "files":
        raise OptionError(
            f"offsets of queues need consume queue files, which {store.uri} does not have; give"
            " offsets"
            ' of the log, {"log": {"%s": byteOffset}}, or timestamps' % store.broker_name
        )
    of_each = {queue for queue in named if _names_only_each(queue, store, starting, ending)}
    here = [queue for queue in sorted(named) if queue not in of_each or store.queue(*queue)]
    bounds = asked(
        lambda queue: _bounds(store, *queue, (starting, ending), ends, fail=fail),
        here,
        is_remote=store.files.is_remote,
    )
    return dict(zip(here, bounds, strict=True))


def _names_only_each(
    queue: tuple[str, int], store: Store, starting: Offsets, ending: Offsets
) -> bool:
    """Returns whether the offsets name the queue for each broker, but not for this one."""
    topic, queue_id = queue
    key = (topic, store.broker_name, queue_id)
    return key not in starting.queues and key not in ending.queues


def _bounds(
    store: Store,
    topic: str,
    queue_id: int,
    asked: tuple[Offsets, Offsets],
    ends: tuple[int, int],
    *,
    fail: bool,
) -> Bounds:
    queue = store.queue(topic, queue_id)
    place = queue_text(topic, store.broker_name, queue_id)
    if queue is None:
        raise OptionError(f"offsets are given for {place}, which {store.uri} does not have")
    first, end = queue.min_index(*ends), queue.max_index(ends[1])
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
    """Cuts the extent into pieces for tasks; into none if nothing in it can be wanted."""
    asked = _within_times(replace(extent, wanted=extent.wanted.narrowed(Conditions())), options)
    extent = _within_conditions(replace(asked, wanted=extent.wanted), options)
    if extent.start >= extent.end or not extent.wanted.wants_broker():
        return []
    segments = _segments(extent, fail=options.fail_on_data_loss)
    known = _known_queues(asked, options)
    if known is not None:
        return _picks(extent, asked, known, segments, options)
    return _by_log(segments, extent, options)


def log_ranges(extent: Extent, options: SourceOptions) -> list[LogRange]:
    """Cuts the extent into ranges of the log: always the same ones, as a repeated batch needs."""
    return _ranges(extent, _segments(extent, fail=options.fail_on_data_loss), options)


def stream_splits(extent: Extent, options: SourceOptions) -> list[LogRange | CoveredPicks]:
    """Returns `log_ranges`, as picks by proven queues if only little of them is wanted.

    Ranges and rows are the same either way, even if queues have learned more in the meantime: what
    they do not prove is read from the log.
    """
    ranges = log_ranges(extent, options)
    little = None
    if extent.wanted.names_queues or extent.wanted.conditions_name_queues:
        little = _little(extent, options, _ASKING_LOCALLY_BYTES)
    if little is None:
        return [*ranges]
    return [
        CoveredPicks(each.store, each.start, each.end, each.first_is_boundary) for each in ranges
    ]


def _within_times(extent: Extent, options: SourceOptions, *, by_conditions: bool = False) -> Extent:
    start, end = extent.start, extent.end
    times = extent.wanted.times(with_conditions=by_conditions)
    step_ms = SLACK_MS if options.clock_step_ms is None else options.clock_step_ms
    if start < end and times.low > Bounds().low:
        start = offset_before(extent.store, times.low, start, end, step_ms)
    if start < end and times.high < Bounds().high:
        end = offset_after(extent.store, times.high, start, end, step_ms)
    return replace(extent, start=start, end=end)


def _within_conditions(extent: Extent, options: SourceOptions) -> Extent:
    """Narrows the range to what the conditions may want."""
    places = extent.wanted.selection.conditions.bounds("physicalOffset")
    start, end = max(extent.start, places.low), min(extent.end, places.high)
    extent = replace(extent, start=start, end=end)
    if options.clock_step_ms is None:
        return extent
    return _within_times(extent, options, by_conditions=True)


def _segments(extent: Extent, *, fail: bool) -> list[Segment]:
    """Returns the files of the log in the extent; gaps between them are reported as lost."""
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
    firsts = {segment.first_offset for segment in segments}
    files = ((max(extent.start, each.first_offset), min(extent.end, each.end)) for each in segments)
    return [
        LogRange(extent.store, low, high, low in firsts)
        for start, end in joined(files, None if most == size else most)
        for low, high in even_parts(start, end, -(-(end - start) // max(1, most)))
    ]


def _known_queues(extent: Extent, options: SourceOptions) -> _Known | None:
    """Returns what the queues have of the messages in topics that the options name.

    Returns None if the options name none, or if it is cheaper to read the log.
    """
    wanted, store = extent.wanted, extent.store
    by_log = not wanted.selection.logical or options.verify == "store"
    if by_log or not wanted.names_queues or store.queue_kind != "files":
        return None
    names = wanted.selection.topics or (
        wanted.selection.assign and wanted.selection.assign.topics()
    )
    if not names:  # a topic that was deleted may be wanted as well
        return None
    # Before the queues are listed: a queue made after that has nothing before this place.
    end = min(dispatched(store), extent.end)
    of_topics = asked(store.queues_of, sorted(names), is_remote=store.files.is_remote)
    start = all_known_from([some_of(each) for each in of_topics], extent.start)
    queues = _wanted_queues([queue for queues in of_topics for queue in queues], extent)
    amount = _amount(queues, extent)
    return _Known(start, end, queues, amount) if _is_little(amount, extent) else None


def _wanted_queues(queues: Sequence[Queue], extent: Extent) -> list[Queue]:
    """Returns the queues that may hold what is wanted.

    Light ones repeat messages of others, so they are among them only if the options ask for them.
    """
    wanted = extent.wanted
    return [
        each
        for each in queues
        if (not each.topic.startswith(LMQ_PREFIX) or wanted.selection.is_light(each.topic))
        and wanted.wants_queue(each.topic, each.queue_id)
    ]


def _is_little(amount: Amount, extent: Extent) -> bool:
    return amount.bytes * 2 <= extent.end - extent.start


def _picks(
    extent: Extent,
    asked: Extent,
    known: _Known,
    segments: Sequence[Segment],
    options: SourceOptions,
) -> list[Split]:
    """Returns splits by consume queues, and splits of what these do not know, or not yet."""
    end = min(known.end, extent.end)
    start = min(max(known.start, extent.start), end)
    queues = _wanted_queues(known.queues, extent)
    before, after = replace(extent, end=start), replace(extent, start=max(end, extent.start))
    part = replace(extent, start=start, end=end)
    # The options may want more than their conditions, which leave out some.
    is_same = len(queues) == len(known.queues) and part == replace(asked, start=start, end=end)
    amount = known.amount if is_same else _amount(queues, part)
    found: list[Split] = []
    if before.start < before.end:
        found += _by_log([s for s in segments if s.first_offset < start], before, options)
    found += _by_queues(queues, amount, part, options)
    if after.start < after.end:
        found += _ranges(after, [s for s in segments if s.end > after.start], options)
    return found


def _by_log(segments: Sequence[Segment], extent: Extent, options: SourceOptions) -> list[Split]:
    covered = _covered_picks(extent, segments, options)
    return [*_ranges(extent, segments, options)] if covered is None else covered


def _by_queues(
    queues: Sequence[Queue], amount: Amount, extent: Extent, options: SourceOptions
) -> list[Split]:
    """Returns splits that read the units of queues, each light one by itself."""
    if extent.start >= extent.end:
        return []
    groups: dict[str, list[Queue]] = {}
    for each in queues:
        light_queue = each.topic if each.topic.startswith(LMQ_PREFIX) else ""
        groups.setdefault(light_queue, []).append(each)
    found: list[Split] = []
    for group in groups.values():
        of_group = amount if len(groups) == 1 else _amount(group, extent)
        pieces = _pieces(-(-of_group.bytes // _PICKS_BYTES), of_group, options)
        names = tuple((queue.topic, queue.queue_id) for queue in group)
        parts = even_parts(extent.start, extent.end, pieces)
        found += [QueuePicks(extent.store, low, high, names) for low, high in parts]
    return found


def _covered_picks(
    extent: Extent, segments: Sequence[Segment], options: SourceOptions
) -> list[Split] | None:
    """Returns splits that proven queues pick records for; None where reading the log is cheaper."""
    wanted = extent.wanted
    little = None
    if wanted.names_queues or wanted.conditions_name_queues:
        by_query = wanted.conditions_name_queues
        little = _little(extent, options, 0 if by_query else _ASKING_LOCALLY_BYTES)
    if little is None:
        return None
    store, size = extent.store, extent.end - extent.start
    pieces = max(-(-little.bytes // _PICKS_BYTES), -(-size // _COVERED_BYTES))
    pieces = _pieces(min(pieces, len(segments)), little, options)
    few = replace(options, max_records_per_partition=None, min_partitions=None)
    more = replace(few, min_partitions=pieces)
    ranges = _ranges(extent, segments, few if pieces <= len(segments) else more)
    return [
        CoveredPicks(store, ranges[low].start, ranges[high - 1].end, ranges[low].first_is_boundary)
        for low, high in even_parts(0, len(ranges), pieces)
    ]


def _little(extent: Extent, options: SourceOptions, asking_locally_bytes: int) -> Amount | None:
    """Returns what is wanted of the log if that is less than half of it and queues cover it.

    Returns None also if there are so many queues that reading the log is faster than asking them.
    """
    store, size = extent.store, extent.end - extent.start
    if options.verify == "store" or store.queue_kind != "files":
        return None
    if extent.wanted.selection.reads_light_queues:  # their messages are in the queues of others
        return None
    asking_bytes = _ASKING_BYTES if store.files.is_remote else asking_locally_bytes
    if asking_bytes and store.has_more_queues_than(size // (asking_bytes * 2)):
        return None
    amount = _amount(_wanted_queues(store.queues(), extent), extent)
    return amount if _is_little(amount, extent) else None


def _pieces(enough: int, amount: Amount, options: SourceOptions) -> int:
    """Returns the number of splits, at least `enough`, and more if the options want more."""
    pieces = max(1, enough, options.min_partitions or 1)
    if options.max_records_per_partition is not None:
        pieces = max(pieces, -(-amount.messages // options.max_records_per_partition))
    return min(pieces, MOST_PARTITIONS)


def _amount(queues: Sequence[Queue], extent: Extent) -> Amount:
    return amount_of(queues, LogPart(extent.store, extent.start, extent.end, extent.wanted))
