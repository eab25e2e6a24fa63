# SPDX-License-Identifier: Apache-2.0
"""Turns options into queues of a cluster, and into the offsets at which reading begins and ends."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from txrocketmq.remoting.message.message import MessageQueue
from txrocketmq.spark.arrow.errors import ClusterError, OptionError
from txrocketmq.spark.live.pull import QueueRange
from txrocketmq.spark.live.wire.cluster import PULL_MESSAGES, Cluster
from txrocketmq.spark.live.wire.security import Security
from txrocketmq.spark.log.losses import lose
from txrocketmq.spark.options.offsets import (
    EARLIEST,
    LATEST,
    OffsetKey,
    Offsets,
    of_queue,
    queue_text,
)
from txrocketmq.spark.options.option_values import EVERY_BROKER
from txrocketmq.spark.options.options import SourceOptions
from txrocketmq.spark.planning.split import even_parts
from txrocketmq.spark.store.system_topics import is_system_topic

_MOST_MESSAGES: Final = 1_000_000
"""A task reads at most so many messages of a queue, which takes half a minute or so."""
_TOGETHER_MESSAGES: Final = 4096
"""Ranges of up to so many messages in all are read by one task, which costs 40 ms by itself."""


def cluster_of(options: SourceOptions, security: Security | None = None) -> Cluster:
    """The cluster that the options name; tasks give the security that the driver has found."""
    assert options.name_server is not None  # SourceOptions.use has made sure of it
    return Cluster(
        options.name_server,
        timeout_ms=options.pull_timeout_ms,
        security=security or Security.of(options),
    )


def queues_of(cluster: Cluster, options: SourceOptions) -> list[MessageQueue]:
    """Returns the queues to read, sorted. Raises ClusterError if a named topic or queue is missing.

    A pattern matches no system topics, and need not match anything yet.
    """
    queues = present_queues(cluster, options)
    present = {queue.topic for queue in queues}
    for topic in topics_named(options):
        if topic not in present:
            raise ClusterError(
                f"topic {topic} is not known at {cluster}, or may not be read, or does not have the"
                " brokers and queues that assign names"
            )
    for offsets, option in (
        (options.starting_offsets, "startingOffsets"),
        (options.ending_offsets, "endingOffsets"),
    ):
        _check_named(queues, () if offsets is None else offsets.queues, option)
    _check_named(queues, options.starting_times or (), "startingOffsetsByTimestamp")
    _check_named(queues, options.ending_times or (), "endingOffsetsByTimestamp")
    return queues


def present_queues(cluster: Cluster, options: SourceOptions) -> list[MessageQueue]:
    """Returns the queues to read that exist now; topics and brokers may be missing for a time."""
    topics = topics_named(options)
    if options.topic_pattern is not None:
        matches = options.topic_pattern.matches
        topics = [each for each in cluster.topics() if matches(each) and not is_system_topic(each)]
    queues: list[MessageQueue] = []
    for topic in topics:
        found = cluster.read_queues(topic, again=True)
        if options.assign is not None:
            assigned = options.assign
            found = [
                each for each in found if each.queue_id in assigned.of(topic, each.broker_name)
            ]
        queues += found
    return queues


def topics_named(options: SourceOptions) -> list[str]:
    """Returns the topics to read if they are given by name; none if they are given by a pattern."""
    if options.assign is not None:
        return sorted(options.assign.topics())
    return list(options.topics or ())


def _check_named(queues: Sequence[MessageQueue], named: Iterable[OffsetKey], option: str) -> None:
    known = {_key(queue) for queue in queues}
    known |= {(topic, EVERY_BROKER, queue_id) for topic, _, queue_id in known}
    for topic, broker_name, queue_id in named:
        if (topic, broker_name, queue_id) not in known:
            place = queue_text(topic, broker_name, queue_id)
            raise OptionError(f"option {option}: {place} is not there")


def starts(
    cluster: Cluster, queues: Sequence[MessageQueue], options: SourceOptions, *, default: int
) -> dict[MessageQueue, int]:
    """Returns the offset at which reading begins in each queue; `default` is EARLIEST or LATEST.

    An offset that the queue no longer has, or does not have yet, counts as data loss.
    """
    if options.starting_timestamp_ms is not None:
        return cluster.offsets_at(queues, options.starting_timestamp_ms)
    offsets = options.starting_offsets or Offsets(default)
    return _by_time(cluster, queues, options.starting_times, offsets, options)


def ends(
    cluster: Cluster, queues: Sequence[MessageQueue], options: SourceOptions
) -> dict[MessageQueue, int]:
    """Returns the end of the read in each queue: the first offset that is not read."""
    if options.ending_timestamp_ms is not None:
        return cluster.offsets_at(queues, options.ending_timestamp_ms)
    offsets = options.ending_offsets or Offsets(LATEST)
    return _by_time(cluster, queues, options.ending_times, offsets, options)


def _by_time(
    cluster: Cluster,
    queues: Sequence[MessageQueue],
    times: Mapping[OffsetKey, int] | None,
    offsets: Offsets,
    options: SourceOptions,
) -> dict[MessageQueue, int]:
    """Returns offsets by time for queues that have one in `times`, by `offsets` for others."""
    by_time: dict[int, list[MessageQueue]] = defaultdict(list)
    others: list[MessageQueue] = []
    for queue in queues:
        moment = of_queue(times or {}, _key(queue))
        (others if moment is None else by_time[moment]).append(queue)
    found = _resolved(cluster, others, offsets, options)
    for moment, some in by_time.items():
        found |= cluster.offsets_at(some, moment)
    return found


def _key(queue: MessageQueue) -> OffsetKey:
    return queue.topic, queue.broker_name, queue.queue_id


def _resolved(
    cluster: Cluster, queues: Sequence[MessageQueue], offsets: Offsets, options: SourceOptions
) -> dict[MessageQueue, int]:
    asked = {
        queue: offsets.of_queue(queue.topic, queue.broker_name, queue.queue_id) for queue in queues
    }
    first = cluster.min_offsets(queue for queue, offset in asked.items() if offset != LATEST)
    last = cluster.max_offsets(queue for queue, offset in asked.items() if offset != EARLIEST)
    found: dict[MessageQueue, int] = {}
    for queue, offset in asked.items():
        if offset == EARLIEST:
            found[queue] = first[queue]
        elif offset == LATEST:
            found[queue] = last[queue]
        else:
            found[queue] = min(max(offset, first[queue]), last[queue])
            if found[queue] != offset:
                lose(
                    f"offset {offset} of queue {queue.queue_id} of topic {queue.topic} on"
                    f" {queue.broker_name} is asked for, which has {first[queue]} to {last[queue]}",
                    fail=options.fail_on_data_loss,
                )
    return found


def cut(
    ranges: Mapping[MessageQueue, tuple[int, int]],
    *,
    min_partitions: int | None = None,
    max_records: int | None = None,
) -> list[tuple[QueueRange, ...]]:
    """Returns what each task reads of the ranges: a part of a long one, or several short ones.

    A range that is longer than the options allow, or than one task should read, is cut into even
    parts.
    """
    sizes = {queue: end - start for queue, (start, end) in ranges.items() if end > start}
    most = max_records or _MOST_MESSAGES
    if min_partitions is not None:
        most = min(most, max(sum(sizes.values()) // min_partitions, 1))
    parts: list[list[QueueRange]] = []
    room = 0
    for queue, size in sizes.items():
        for start, end in even_parts(*ranges[queue], -(-size // most)):
            cost = max(end - start, PULL_MESSAGES)
            if cost > room:
                parts.append([])
                room = min(most, _TOGETHER_MESSAGES)
            parts[-1].append(QueueRange(queue, start, end))
            room -= cost
    return [tuple(part) for part in parts]
