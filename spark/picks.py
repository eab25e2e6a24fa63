# SPDX-License-Identifier: Apache-2.0
"""Records that are chosen by consume queues: the units for which a split stands.

A unit names a record without reading it, and carries the hash of its tag: so a small topic costs
what it holds and not what the log holds. The records still have to pass the filter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from txrocketmq.broker.store.formats import CONSUME_QUEUE_EXT_ADDRESS_MAX
from txrocketmq.remoting.message.tags import java_string_hashes
from txrocketmq.remoting.message.topics import SCHEDULE_TOPIC
from txrocketmq.spark.log_end import newest_units
from txrocketmq.spark.losses import lose, loss_text
from txrocketmq.spark.queue_files import UNITS, Queue
from txrocketmq.spark.selection import RecordFilter
from txrocketmq.spark.split import QueuePicks
from txrocketmq.spark.store import Store

_MOST_UNITS: Final = 1 << 20
"""In memory at once: some 70 MB while they are put in order."""


def units_of(
    split: QueuePicks, wanted: RecordFilter, *, fail_on_data_loss: bool
) -> Iterator[NDArray[Any]]:
    """The units of the split that may be wanted, in pieces, by physical offset.

    DataLossError, or a warning, where a queue or a part of it is gone, or the beginning of the log
    since the split was planned.
    """
    lost = partial(lose, fail=fail_on_data_loss)
    queues = []
    for topic, queue_id in split.queues:
        queue = split.store.queue(topic, queue_id)
        if queue is None:
            lost(f"queue {queue_id} of {topic} in {split.store.uri} has just been deleted")
        else:
            queues.append(queue)
    yield from _between(queues, split, wanted, lost)


def _between(
    queues: Sequence[Queue], split: QueuePicks, wanted: RecordFilter, lost: Callable[[str], None]
) -> Iterator[NDArray[Any]]:
    """The units of these queues in pieces of bounded size; tells what is lost."""
    store, start, end = split.store, split.start, split.end
    ranges = [(queue, *indexes(queue, start, end, wanted)) for queue in queues]
    middle = (start + end) // 2
    if sum(last - first for _, first, last in ranges) > _MOST_UNITS and start < middle:
        yield from _between(queues, split._replace(end=middle), wanted, lost)
        yield from _between(queues, split._replace(start=middle), wanted, lost)
        return
    found = []
    for queue, first, last in ranges:
        if first < last:
            units = queue.units(first, last)
            starts, ends = units["queue_offset"], units["queue_offset"] + units["count"]
            known = int((np.minimum(ends, last) - np.maximum(starts, first)).sum())
            if known < last - first:
                lost(_missing_text(store, queue, first, last, last - first - known))
            at = units["physical_offset"]
            found.append(units[(at >= start) & (at < end) & tagged(queue, units, wanted)])
    # Retention takes files of the log first, then those of the queues that named their messages.
    least = store.min_offset()
    if start < least:
        lost(loss_text(store, start, min(least, end)))
    units = np.concatenate(found or [np.empty(0, UNITS)])
    if len(units):
        yield units[np.argsort(units["physical_offset"], kind="stable")]


def _missing_text(store: Store, queue: Queue, first: int, last: int, count: int) -> str:
    return (
        f"queue {queue.queue_id} of {queue.topic} in {store.uri} has no units of {count} messages"
        f" from {first} up to {last}: files of it are gone or damaged; verify=store with"
        " badRecords=skip finds those that are in the log"
    )


def indexes(queue: Queue, start: int, end: int, wanted: RecordFilter) -> tuple[int, int]:
    """Queue offsets from and to before which units may be wanted and lie in [start, end)."""
    bounds = wanted.offsets(queue.topic, queue.queue_id)
    first = max(queue.min_index(start), bounds.low)
    return first, max(first, min(queue.min_index(end), bounds.high))


def tagged(queue: Queue, units: NDArray[Any], wanted: RecordFilter) -> NDArray[np.bool_]:
    """Units whose message may have one of the wanted tags."""
    tags = wanted.pruning_tags
    if tags is None or queue.topic == SCHEDULE_TOPIC or queue.is_batch:
        return np.ones(len(units), np.bool_)
    codes = units["tags_code"]
    unknown: NDArray[np.bool_] = codes <= CONSUME_QUEUE_EXT_ADDRESS_MAX
    return unknown | np.isin(codes, java_string_hashes(sorted(tags)))


def dispatched(store: Store) -> int:
    """Up to where the consume queues know the log: the end of the last record in any of them.

    Of a remote store perhaps somewhat less: of some of them.
    """
    if store.files.is_remote:
        return max((place + size for place, size in newest_units(store)), default=0)
    ends = [0]
    for queue in store.queues():
        unit = queue.last_unit()
        if unit is not None:
            ends.append(int(unit["physical_offset"][0] + unit["size"][0]))
    return max(ends)
