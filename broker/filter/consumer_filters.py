# SPDX-License-Identifier: Apache-2.0
"""The SQL92 subscriptions of groups, consumerFilter.json.

A group's expression for a topic is kept when its last consumer has left, as dead: should one come
back with the same expression, bitmaps made meanwhile are good for it. What has been dead for
filterDataCleanTimeSpan goes.

Java: ConsumerFilterManager, ConsumerFilterData, CommitLogDispatcherCalcBitMap.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Final

from txrocketmq.broker.clients import ConsumerGroup
from txrocketmq.broker.config import BrokerConfig
from txrocketmq.broker.filter.bloom import BloomFilter, BloomFilterData
from txrocketmq.broker.filter.expression import (
    LEAST_CHARS,
    MAX_KEPT_CHARS,
    Expression,
    ExpressionError,
    Expressions,
)
from txrocketmq.broker.json_file import JsonFile
from txrocketmq.broker.saving import Saving
from txrocketmq.remoting.message.message import record_properties
from txrocketmq.remoting.message.properties import decode_properties
from txrocketmq.remoting.message.tags import SQL92, TAG, SubscriptionData
from txrocketmq.remoting.serialize.json import encode_pretty

FILTERS_MS: Final = 10_000
"""How often `clean` wants to be called."""
MAX_FILTERS: Final = 100_000
"""So many are kept; of those that come then, dead ones make room, or they are not taken."""
MAX_FILTER_CHARS: Final = 16 * 1024 * 1024
"""Their texts, together; likewise."""
_FORGOTTEN: Final = 1_000
"""So many of the long dead are forgotten at a time."""
_HEARTBEAT_CHARS: Final = 32_768
"""New expressions of one heartbeat; the first is always taken, those beyond with the next one."""
_DEAD_SINCE_MS: Final = 30_000
"""A consumer that was alive when its broker stopped counts as dead so long before the start."""


@dataclass(frozen=True, slots=True)
class ConsumerFilterData:
    """What a group wants of a topic. Times are in ms since the epoch; dead_time 0: it is alive."""

    topic: str
    consumer_group: str
    expression: str
    expression_type: str
    born_time: int
    dead_time: int
    client_version: int
    bloom: BloomFilterData | None

    @property
    def is_dead(self) -> bool:
        return self.dead_time >= self.born_time

    def to_json(self) -> dict[str, Any]:
        """The object of the file."""
        bloom = self.bloom
        return {
            "bloomFilterData": None
            if bloom is None
            else {"bitNum": bloom.bit_num, "bitPos": list(bloom.bit_pos)},
            "bornTime": self.born_time,
            "clientVersion": self.client_version,
            "consumerGroup": self.consumer_group,
            "dead": self.is_dead,
            "deadTime": self.dead_time,
            "expression": self.expression,
            "expressionType": self.expression_type,
            "topic": self.topic,
        }

    @classmethod
    def from_json(cls, topic: str, group: str, value: Mapping[str, Any]) -> ConsumerFilterData:
        """Of the object of the file; ValueError, TypeError, AttributeError for anything else."""
        bloom = value.get("bloomFilterData")
        return cls(
            topic,
            group,
            str(value.get("expression") or ""),
            str(value.get("expressionType") or SQL92),
            int(value.get("bornTime") or 0),
            int(value.get("deadTime") or 0),
            int(value.get("clientVersion") or 0),
            None
            if bloom is None
            else BloomFilterData(
                tuple(map(int, bloom.get("bitPos") or ())), int(bloom.get("bitNum") or 0)
            ),
        )


class ConsumerFilters:
    """By topic and group. `born_ms` gives the time that a filter begins at: no message that is
    there already may be stored later.
    """

    def __init__(
        self,
        config: BrokerConfig,
        file: JsonFile,
        now_ms: Callable[[], int],
        born_ms: Callable[[], int],
    ) -> None:
        self._config = config
        self._file = file
        self._now_ms = now_ms
        self._born_ms = born_ms
        self.expressions = Expressions()
        self.bloom = BloomFilter(
            config.max_error_rate_of_bloom_filter, config.expect_consumer_num_use_filter
        )
        self.saving = Saving(file, self._snapshot)
        self._by_topic: dict[str, dict[str, ConsumerFilterData]] = {}
        self._topics: dict[str, set[str]] = {}
        """The topics of a group."""
        self._dead: dict[tuple[str, str], int] = {}
        """Topic and group of those that are dead, with their times of death, which rise."""
        self._count = self._chars = 0

    def __len__(self) -> int:
        return self._count

    # ---------------------------------------------------------------- file

    def load(self) -> None:
        """Takes what consumerFilter.json holds; raises JsonFileError.

        All of them are dead then. None is taken where bits are of another filter, since then
        bitmaps are, too.
        """
        found: list[ConsumerFilterData] = []
        with self._file.content() as content:
            for topic, groups in (content.get("filterDataByTopic") or {}).items():
                for group, value in (groups.get("groupFilterData") or {}).items():
                    found.append(ConsumerFilterData.from_json(topic, group, value))
        if not all(self.bloom.fits(each.bloom) for each in found):
            return
        dead_ms = self._now_ms() - _DEAD_SINCE_MS
        late = [
            each if each.dead_time else replace(each, dead_time=max(dead_ms, each.born_time))
            for each in found
        ]
        for each in sorted(late, key=lambda each: each.dead_time):
            self._put(each)

    def _snapshot(self) -> Callable[[], bytes]:
        table = {topic: dict(groups) for topic, groups in self._by_topic.items()}

        def encode() -> bytes:
            by_topic = {
                topic: {
                    "groupFilterData": {name: data.to_json() for name, data in groups.items()},
                    "topic": topic,
                }
                for topic, groups in table.items()
            }
            return encode_pretty({"filterDataByTopic": by_topic})

        return encode

    # ---------------------------------------------------------------- heartbeats

    def register(self, group: str, subscriptions: Iterable[SubscriptionData]) -> bool:
        """A heartbeat has told what a group wants; topics that it leaves out are dead.

        False when it has told more than is taken at once, and should do so again.
        """
        room = _HEARTBEAT_CHARS
        is_all = True
        wanted = set()
        for each in subscriptions:
            wanted.add(each.topic)
            if each.expression_type in (TAG, "") or not each.sub_string:
                continue
            known = self.get(each.topic, group)
            if known is not None and each.sub_version <= known.client_version:
                if each.sub_version == known.client_version and known.is_dead:
                    self._put(replace(known, dead_time=0))
                continue
            if not self.expressions.is_kept(each.sub_string):
                if room < len(each.sub_string) and room < _HEARTBEAT_CHARS:
                    is_all = False
                    continue
                room -= len(each.sub_string)
            self._register(known, group, each)
        for topic in self._topics.get(group, set()) - wanted:
            self._end(self._by_topic[topic][group])
        return is_all

    def _register(
        self, known: ConsumerFilterData | None, group: str, wanted: SubscriptionData
    ) -> None:
        """Takes a subscription that is newer than the known one."""
        bloom = self.bloom.data_of(group, wanted.topic)
        version, text, kind = wanted.sub_version, wanted.sub_string, wanted.expression_type
        new = ConsumerFilterData(
            wanted.topic, group, text, kind, self._born_ms(), 0, version, bloom
        )
        if known is not None and (known.expression, known.expression_type, known.bloom) == (
            text, kind, bloom,
        ):  # fmt: skip
            self._put(replace(known, client_version=version, dead_time=0))
        elif self.compiled(new) is None:
            if known is not None:
                self._remove(known)  # the consumer is told when it pulls
        elif self._has_room(len(text)):
            self._put(new)

    def changed(self, group: ConsumerGroup) -> None:
        """Hears of changed groups: the last consumer of one may have left."""
        if not group.members:
            for topic in self._topics.get(group.name, ()):
                self._end(self._by_topic[topic][group.name])

    def clean(self) -> None:
        """Forgets those that have been dead for long, and begins to write what has changed."""
        long_ago_ms = self._now_ms() - self._config.filter_data_clean_time_span
        oldest = islice(self._dead.items(), _FORGOTTEN)
        for topic, group in [key for key, dead_ms in oldest if dead_ms <= long_ago_ms]:
            self._remove(self._by_topic[topic][group])
        self.saving.begin()

    def _has_room(self, chars: int) -> bool:
        while self._count >= MAX_FILTERS or self._chars + chars > MAX_FILTER_CHARS:
            if not self._dead:
                return False
            topic, group = next(iter(self._dead))
            self._remove(self._by_topic[topic][group])
        return True

    def _end(self, data: ConsumerFilterData) -> None:
        if not data.is_dead:
            self._put(replace(data, dead_time=max(self._now_ms(), data.born_time)))

    def _put(self, data: ConsumerFilterData) -> None:
        topic, group = data.topic, data.consumer_group
        groups = self._by_topic.setdefault(topic, {})
        before = groups.get(group)
        self._chars += len(data.expression) - (len(before.expression) if before else 0)
        self._count += before is None
        groups[group] = data
        self._topics.setdefault(group, set()).add(topic)
        self._dead.pop((topic, group), None)
        if data.is_dead:
            self._dead[topic, group] = data.dead_time
        self._file.is_stale = True

    def _remove(self, data: ConsumerFilterData) -> None:
        topic, group = data.topic, data.consumer_group
        del self._by_topic[topic][group]
        if not self._by_topic[topic]:
            del self._by_topic[topic]
        self._topics[group].discard(topic)
        if not self._topics[group]:
            del self._topics[group]
        self._dead.pop((topic, group), None)
        self._count -= 1
        self._chars -= len(data.expression)
        self._file.is_stale = True

    # ---------------------------------------------------------------- use

    @property
    def is_enabled(self) -> bool:
        """Whether consumers may filter by expressions (enablePropertyFilter)."""
        return self._config.enable_property_filter

    def get(self, topic: str, group: str) -> ConsumerFilterData | None:
        """What a group wants of a topic."""
        groups = self._by_topic.get(topic)
        return None if groups is None else groups.get(group)

    def compile(self, expression: str, expression_type: str) -> Expression:
        """What is to be asked of messages; ExpressionError says why there is nothing."""
        if expression_type != SQL92:
            raise ExpressionError(
                f"messages are filtered by {TAG} and {SQL92}, not by {expression_type:.40}"
            )
        return self.expressions.compile(expression)

    def compiled(self, data: ConsumerFilterData) -> Expression | None:
        """The expression of these data; None if it is not valid."""
        try:
            return self.compile(data.expression, data.expression_type)
        except ExpressionError:
            return None

    def bitmap(self, topic: str, record: memoryview | None) -> bytes:
        """The bits of the groups that want a message; none at all where nobody filters its topic.

        Where not all expressions can be kept compiled at once, a group whose expression is not at
        hand gets its bits, so that its pull looks at the message.
        """
        groups = self._by_topic.get(topic)
        if not groups or record is None or not self._config.enable_calc_filter_bit_map:
            return b""
        properties = decode_properties(record_properties(record))
        fit_all = self._chars + LEAST_CHARS * self._count <= MAX_KEPT_CHARS
        hit: list[BloomFilterData] = []
        for data in groups.values():
            if data.bloom is None:
                continue
            if not fit_all and not self.expressions.is_kept(data.expression):
                hit.append(data.bloom)
                continue
            expression = self.compiled(data)
            if expression is not None and expression.matches(properties):
                hit.append(data.bloom)
        return self.bloom.bitmap(hit)
