# SPDX-License-Identifier: Apache-2.0
"""Where a new stream over stores begins, by startingTimestamp, startingOffsets, or at the end.

This is decided once: the result goes into the checkpoint, and a stream that resumes ignores the
options.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from txrocketmq.spark.log.fingerprint import fingerprint
from txrocketmq.spark.log.log_cut import first_boundary, first_stored_since
from txrocketmq.spark.log.log_end import end_of_log
from txrocketmq.spark.log.log_position import LogPosition
from txrocketmq.spark.log.log_times import offset_before
from txrocketmq.spark.options.offsets import LATEST, Offsets
from txrocketmq.spark.options.options import SourceOptions
from txrocketmq.spark.planning.known_names import check_queues, check_topics
from txrocketmq.spark.planning.picks import dispatched
from txrocketmq.spark.planning.plan import Extent, extents_of
from txrocketmq.spark.store.broker_names import check_brokers
from txrocketmq.spark.store.store import Store

_LATEST: Final = Offsets(LATEST)


def first_positions(stores: Sequence[Store], options: SourceOptions) -> dict[str, LogPosition]:
    """Returns where the stream begins in each store, by `Store.key`.

    Raises OptionError for offsets that make no sense, DataLossError for what is gone.
    """
    check_brokers(stores, options)
    check_queues(stores, options)
    check_topics(stores, options)
    timestamp_ms = options.starting_timestamp_ms
    if timestamp_ms is not None:
        return {store.key: _at_time(store, timestamp_ms) for store in stores}
    if options.starting_offsets is None:
        options = replace(options, starting_offsets=_LATEST)
    return {each.store.key: _at_offsets(each) for each in extents_of(stores, options)}


def _at_time(store: Store, timestamp_ms: int) -> LogPosition:
    least, most = store.min_offset(), end_of_log(store)
    near = offset_before(store, timestamp_ms, least, most)
    found = first_stored_since(store, timestamp_ms, near, most)
    if found is None:  # the time may be in the future
        return LogPosition(log=most, fingerprint=fingerprint(store, most), since_ms=timestamp_ms)
    return LogPosition(log=found, fingerprint=fingerprint(store, found))


def _at_offsets(extent: Extent) -> LogPosition:
    """Returns the place of the first message in the log that is in one of the queues."""
    store, start = extent.store, extent.start
    first = {queue: bounds.low for queue, bounds in extent.wanted.queues.items() if bounds.low > 0}
    if first:
        start = max(start, _first_wanted(extent))
    if start not in (store.min_offset(), extent.end):
        start = first_boundary(store, start, extent.end)
    # Asked again: bounds may name messages that came since the extent's end was looked up.
    until = end_of_log(store) if first else extent.end
    return LogPosition(log=start, fingerprint=fingerprint(store, start), first=first, until=until)


def _first_wanted(extent: Extent) -> int:
    # Asked before the queues: messages that they do not have yet may be asked for, too.
    place = min(dispatched(extent.store), extent.end)
    for queue in extent.store.queues():
        if extent.wanted.wants_queue(queue.topic, queue.queue_id):
            low = extent.wanted.offsets(queue.topic, queue.queue_id).low
            unit = queue.first_unit(max(low, queue.min_index(extent.start)))
            if unit is not None:
                place = min(place, int(unit["physical_offset"][0]))
    return place
