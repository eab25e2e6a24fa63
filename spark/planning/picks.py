# SPDX-License-Identifier: Apache-2.0
"""Records that are chosen by consume queues: the units that a split stands for.

A unit names a record and has the hash of its tag, so the cost of reading a small topic depends on
its own size and not on that of the log. The records still have to pass the filter.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from txrocketmq.broker.store.formats.formats import CONSUME_QUEUE_EXT_ADDRESS_MAX
from txrocketmq.remoting.message.tags import java_string_hashes
from txrocketmq.remoting.message.topics import SCHEDULE_TOPIC
from txrocketmq.spark.arrow.threads import asked
from txrocketmq.spark.columns.selection import RecordFilter
from txrocketmq.spark.log.log_end import newest_units
from txrocketmq.spark.log.losses import lose, loss_text
from txrocketmq.spark.planning.split import QueuePicks
from txrocketmq.spark.store.deleted_topics import all_known_from
from txrocketmq.spark.store.queue_files import UNITS, Queue
from txrocketmq.spark.store.store import Store

_MOST_UNITS: Final = 1 << 20
"""How many units are in memory at once: some 70 MB while they are sorted."""


def units_of(
    split: QueuePicks, wanted: RecordFilter, *, fail_on_data_loss: bool, is_old: bool = False
) -> Iterator[NDArray[Any]]:
    """Yields the split's units that may be wanted, in pieces, sorted by physical offset.

    Raises DataLossError, or warns, if a queue or a part of it is gone, or if the beginning of the
    split's log has been deleted since it was planned. An old plan only warns where a new one would
    not read what is gone.
    """
    queues = []
    for topic, queue_id in split.queues:
        queue = split.store.queue(topic, queue_id)
        if queue is None:
            text = f"queue {queue_id} of {topic} in {split.store.uri} has just been deleted"
            lose(text, fail=fail_on_data_loss and not is_old)
        else:
            queues.append(queue)
    yield from _between(queues, split, wanted, fail=fail_on_data_loss, is_old=is_old)


def still_stand(split: QueuePicks) -> bool:
    """Returns whether the queues of a split still have all that they stood for when it was planned.

    They do not if a topic was deleted, even if it was made again since; then the log alone has its
    messages. One queue of a topic that begins early enough proves that it is the same topic.
    """
    store = split.store
    if any(store.queue(topic, queue_id) is None for topic, queue_id in split.queues):
        return False
    topics = {topic for topic, _ in split.queues}
    of_topics = [store.queues_of(topic) for topic in topics]
    return all_known_from(of_topics, split.start) <= split.start


def _between(
    queues: Sequence[Queue], split: QueuePicks, wanted: RecordFilter, *, fail: bool, is_old: bool
) -> Iterator[NDArray[Any]]:
    """Yields the units of these queues in pieces of limited size, and reports what is lost."""
    store, start, end = split.store, split.start, split.end
    is_remote = store.files.is_remote
    spans = asked(lambda each: indexes(each, start, end, wanted), queues, is_remote=is_remote)
    ranges = [(queue, *span) for queue, span in zip(queues, spans, strict=True)]
    middle = (start + end) // 2
    if sum(last - first for _, first, last in ranges) > _MOST_UNITS and start < middle:
        yield from _between(queues, split._replace(end=middle), wanted, fail=fail, is_old=is_old)
        yield from _between(queues, split._replace(start=middle), wanted, fail=fail, is_old=is_old)
        return

    def wanted_units(taken: tuple[Queue, int, int]) -> NDArray[Any]:
        queue, first, last = taken
        units = queue.units(first, last)
        starts, ends = units["queue_offset"], units["queue_offset"] + units["count"]
        known = int((np.minimum(ends, last) - np.maximum(starts, first)).sum())
        if known < last - first:
            lose(_missing_text(store, queue, first, last, last - first - known), fail=fail)
        at = units["physical_offset"]
        return units[(at >= start) & (at < end) & tagged(queue, units, wanted)]

    taken = [(queue, first, last) for queue, first, last in ranges if first < last]
    found = asked(wanted_units, taken, is_remote=is_remote)
    # Retention deletes files of the log first, and then those of queues that refer to them.
    least = store.min_offset()
    if start < least:
        lose(loss_text(store, start, min(least, end)), fail=fail and not is_old)
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
    """Returns the range of queue offsets whose units may be wanted and lie in [start, end)."""
    bounds = wanted.offsets(queue.topic, queue.queue_id)
    found = queue.span(start, end, bounds.low, bounds.high)
    return found.first, found.last


def tagged(queue: Queue, units: NDArray[Any], wanted: RecordFilter) -> NDArray[np.bool_]:
    """Returns which units are of messages that may have one of the wanted tags."""
    if queue.topic == SCHEDULE_TOPIC or queue.is_batch:
        return np.ones(len(units), np.bool_)
    return has_tag(units["tags_code"], wanted)


def has_tag(codes: NDArray[np.int64], wanted: RecordFilter) -> NDArray[np.bool_]:
    """Returns which of these hashes may be of a wanted tag."""
    tags = wanted.pruning_tags
    if tags is None:
        return np.ones(len(codes), np.bool_)
    unknown: NDArray[np.bool_] = codes <= CONSUME_QUEUE_EXT_ADDRESS_MAX
    return unknown | np.isin(codes, java_string_hashes(sorted(tags)))


def dispatched(store: Store) -> int:
    """Returns the end of the last record that any consume queue has a unit for.

    In a remote store, and in one with very many queues, only some of them are asked, so the result
    may be a little smaller.
    """
    return max((place + size for place, size in newest_units(store)), default=0)
