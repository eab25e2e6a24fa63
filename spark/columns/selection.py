# SPDX-License-Identifier: Apache-2.0
"""Selects the wanted records of a store by their headers, before any body is gathered.

`Selection` is what the options say of all stores; `Selection.on(broker)` is the `RecordFilter` of
one store. Both are small and go with the tasks. Tags are an exception, since they are in the
properties: consume queues prune by their hash, and `RecordFilter.tags` are for the decoded rows.

What consumers see follows CommitLogDispatcherBuildConsumeQueue (neither prepared nor rolled back
records reach a queue) and TopicValidator (system topics).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from txrocketmq.remoting.message.flags import MessageSysFlag
from txrocketmq.remoting.message.topics import LMQ_PREFIX
from txrocketmq.spark.arrow.records import Records
from txrocketmq.spark.columns.light_queues import in_light_queues
from txrocketmq.spark.options.conditions import Bounds, Conditions
from txrocketmq.spark.options.option_values import Assignment, TopicPattern
from txrocketmq.spark.options.options import SourceOptions
from txrocketmq.spark.options.zones import WIDEST_MS
from txrocketmq.spark.store.system_topics import is_system_topic


@dataclass(frozen=True, kw_only=True)
class Selection:
    """What is wanted of all stores, according to the options."""

    topics: frozenset[str] | None = None
    pattern: TopicPattern | None = None
    assign: Assignment | None = None
    tags: frozenset[str] | None = None
    times: Bounds = field(default_factory=Bounds)
    """The wanted store timestamps, in ms."""
    logical: bool = True
    """Whether only records that consumers see are wanted."""
    conditions: Conditions = field(default_factory=Conditions)
    """The conditions of the option `where`."""

    @classmethod
    def of(cls, options: SourceOptions) -> Selection:
        """Takes what the options say, but not offsets of queues: `RecordFilter.queues` has them."""
        times = Bounds()
        local = options.local_times if options.tasks_know_zone else frozenset()
        if options.starting_timestamp_ms is not None:
            early_ms = WIDEST_MS if "starting_timestamp_ms" in local else 0
            times = replace(times, low=options.starting_timestamp_ms - early_ms)
        if options.ending_timestamp_ms is not None:
            late_ms = WIDEST_MS if "ending_timestamp_ms" in local else 0
            times = replace(times, high=options.ending_timestamp_ms + late_ms)
        return cls(
            topics=None if options.topics is None else frozenset(options.topics),
            pattern=options.topic_pattern,
            assign=options.assign,
            tags=options.tags,
            times=times,
            logical=options.view == "logical",
            conditions=Conditions.of(options.where, any_zone="where" in local),
        )

    @property
    def light_queues(self) -> frozenset[str]:
        """The named topics that are light queues."""
        return frozenset(each for each in self.topics or () if each.startswith(LMQ_PREFIX))

    @property
    def reads_light_queues(self) -> bool:
        """Whether light queues are wanted, by their names or by a pattern for such names."""
        return bool(self.light_queues) or (self.pattern is not None and self.pattern.is_light)

    def is_light(self, topic: str) -> bool:
        """Returns whether the topic is one of the light queues that are wanted."""
        if not topic.startswith(LMQ_PREFIX):
            return False
        if self.pattern is not None:
            return self.pattern.is_light and self.pattern.matches(topic)
        return topic in self.light_queues

    def at(self, options: SourceOptions) -> Selection:
        """Returns the selection with the times of the options, which are known exactly by now."""
        exact = Selection.of(options)
        return replace(self, times=exact.times, conditions=exact.conditions)

    def on(
        self,
        broker_name: str,
        queues: Mapping[tuple[str, int], Bounds] | None = None,
        *,
        key: str | None = None,
    ) -> RecordFilter:
        """Returns the filter for a broker's store; `queues` are bounds of queue offsets, if any.

        `key` is the `Store.key`, by which the options may name the broker as well.
        """
        chosen = self
        if self.assign is not None and key is not None:
            chosen = replace(self, assign=self.assign.of_broker(key, broker_name))
        return RecordFilter(chosen, broker_name, dict(queues or {}))


@dataclass(frozen=True)
class RecordFilter:
    """Which records of one broker's store are wanted."""

    selection: Selection
    broker_name: str
    queues: Mapping[tuple[str, int], Bounds] = field(default_factory=dict)
    """Bounds of queue offsets, by topic and queue; other queues have no bounds."""

    @property
    def tags(self) -> frozenset[str] | None:
        """Tags of which a message must have one; None when tags do not matter."""
        return self.selection.tags

    @property
    def pruning_tags(self) -> frozenset[str] | None:
        """The tags to prune by: those of the options and of their conditions."""
        asked = self.selection.conditions.texts.get("tags")
        if asked is None or self.tags is None:
            return asked if self.tags is None else self.tags
        return asked & self.tags

    def narrowed(self, conditions: Conditions) -> RecordFilter:
        """Returns the filter with these conditions in place of its own."""
        return replace(self, selection=replace(self.selection, conditions=conditions))

    def at(self, options: SourceOptions) -> RecordFilter:
        """Returns the filter with the times of the options, which are known exactly by now."""
        return replace(self, selection=self.selection.at(options))

    @property
    def of_log(self) -> RecordFilter:
        """The filter without light queues, for records in the topics that they were sent to."""
        chosen = self.selection
        if not chosen.reads_light_queues:
            return self
        return self._with_topics((chosen.topics or frozenset()) - chosen.light_queues)

    def of_light_queue(self, topic: str) -> RecordFilter:
        """Returns the filter for messages of this light queue: see Records.in_light_queue."""
        return self._with_topics(frozenset({topic}))

    def _with_topics(self, topics: frozenset[str]) -> RecordFilter:
        return replace(self, selection=replace(self.selection, topics=topics))

    @property
    def names_queues(self) -> bool:
        """Whether the options choose topics, queues or tags, which consume queues can find."""
        chosen = self.selection
        return (
            chosen.topics is not None
            or chosen.pattern is not None
            or chosen.assign is not None
            or bool(self.queues)
            or self.tags is not None
        )

    @property
    def conditions_name_queues(self) -> bool:
        """Whether the conditions leave only some topics, queues or tags."""
        conditions = self.selection.conditions
        by_text = conditions.texts.keys() & {"topic", "tags"} | conditions.prefixes.keys() & {
            "topic"
        }
        return bool(by_text or conditions.numbers.keys() & {"queueId", "queueOffset"})

    def wants_broker(self) -> bool:
        """Returns whether the conditions leave anything of this broker."""
        return self.selection.conditions.allows("brokerName", self.broker_name)

    def wants_topic(self, topic: str) -> bool:
        """Returns whether messages of the topic may be wanted."""
        chosen = self.selection
        if not chosen.conditions.allows("topic", topic):
            return False
        if chosen.topics is not None:
            return topic in chosen.topics
        if chosen.assign is not None:
            return bool(chosen.assign.of(topic, self.broker_name))
        if chosen.logical and is_system_topic(topic):
            return False
        return chosen.pattern is None or chosen.pattern.matches(topic)

    def wants_queue(self, topic: str, queue_id: int) -> bool:
        """Returns whether messages of the queue may be wanted."""
        ids = self.selection.conditions.bounds("queueId")
        assign = self.selection.assign
        if assign is not None and queue_id not in assign.of(topic, self.broker_name):
            return False
        return ids.low <= queue_id < ids.high and self.wants_topic(topic)

    def offsets(self, topic: str, queue_id: int) -> Bounds:
        """Returns the bounds of the queue offsets that may be wanted."""
        asked = self.selection.conditions.bounds("queueOffset")
        return self.queues.get((topic, queue_id), Bounds()).within(asked.low, asked.high)

    def times(self, *, with_conditions: bool) -> Bounds:
        """Returns the bounds of the store timestamps that may be wanted, in ms."""
        times = self.selection.times
        if not with_conditions:
            return times
        asked = self.selection.conditions.bounds("storeTimestamp")
        return times.within(asked.low, asked.high)

    def seen(self, records: Records) -> Iterator[Records]:
        """Yields the wanted records as consumers see them: first in the topics they were sent to.

        Then they are yielded in the wanted light queues, as far as the log tells.
        """
        yield self.of_log.apply(records)
        if self.selection.reads_light_queues:
            for each in in_light_queues(records, self.selection.is_light):
                yield self.apply(each)

    def apply(self, records: Records) -> Records:
        """Returns the wanted records, with all inner batches that may hold a wanted message."""
        mask = self._headers(records)
        if not mask.all():
            records = records.where(mask)
        if not len(records):
            return records
        mask = self._queues(records)
        return records if mask.all() else records.where(mask)

    def _headers(self, records: Records) -> NDArray[np.bool_]:
        mask = self.selection.conditions.mask(records)
        if mask is None:
            mask = np.ones(len(records), np.bool_)
        if self.selection.times != Bounds():
            mask &= self.selection.times.hold(records.store_timestamp)
        if self.selection.logical:
            kind = records.sys_flag & MessageSysFlag.TRANSACTION_ROLLBACK_TYPE
            mask &= (kind & MessageSysFlag.TRANSACTION_PREPARED_TYPE) == 0
        return mask

    def _queues(self, records: Records) -> NDArray[np.bool_]:
        codes, topics = records.topics()
        wanted = np.array([self.wants_topic(topic) for topic in topics], np.bool_)
        mask: NDArray[np.bool_] = wanted[codes]
        for code, topic in enumerate(topics):
            if not wanted[code]:
                continue
            if self.selection.assign is not None:
                ids = list(self.selection.assign.of(topic, self.broker_name))
                mask &= (codes != code) | np.isin(records.queue_id, ids)
            bounded = {queue: at for (name, queue), at in self.queues.items() if name == topic}
            if bounded:
                mask &= (codes != code) | _within(records, bounded)
        return mask


def _within(records: Records, bounded: Mapping[int, Bounds]) -> NDArray[np.bool_]:
    """Returns which records have a queue offset within the bounds of their queue."""
    most = (1 << 63) - 1
    unnamed = max(bounded) + 1  # the last row of the tables is for queues without bounds
    lows, highs = np.zeros(unnamed + 1, np.int64), np.full(unnamed + 1, most)
    for queue_id, bounds in bounded.items():
        lows[queue_id] = max(0, min(bounds.low, most))
        highs[queue_id] = max(0, min(bounds.high, most))
    place = np.where(records.queue_id < 0, unnamed, np.minimum(records.queue_id, unnamed))
    inner = (records.sys_flag & MessageSysFlag.INNER_BATCH) != 0
    from_low: NDArray[np.bool_] = (records.queue_offset >= lows[place]) | inner
    to_high: NDArray[np.bool_] = records.queue_offset < highs[place]
    return from_low & to_high
