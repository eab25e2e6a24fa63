# SPDX-License-Identifier: Apache-2.0
"""The SQL92 subscriptions of groups, consumerFilter.json.

When the last consumer of a group has left, its expression for a topic is marked as dead and kept:
if a consumer comes back with the same expression, the bitmaps made meanwhile are still good for it.
Dead expressions are removed after filterDataCleanTimeSpan.

Java: ConsumerFilterManager, ConsumerFilterData, CommitLogDispatcherCalcBitMap.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Final

from txrocketmq.broker.filter.bloom import BloomFilter, BloomFilterData
from txrocketmq.broker.filter.expression import (
    LEAST_CHARS,
    MAX_CHARS,
    MAX_KEPT_CHARS,
    Expression,
    ExpressionError,
    Expressions,
    NotCompiled,
)
from txrocketmq.broker.settings.config import BrokerConfig
from txrocketmq.broker.store.disk.steps import Steps, finished
from txrocketmq.broker.store.get.get_result import work_of
from txrocketmq.broker.tables.clients import ConsumerGroup, Consumers
from txrocketmq.broker.work.config_table import ConfigTable, no_listeners
from txrocketmq.broker.work.in_thread import InThread, at_once
from txrocketmq.broker.work.json_file import JsonFile
from txrocketmq.broker.work.life import Beat, Hears, Life
from txrocketmq.remoting.errors import ResponseError
from txrocketmq.remoting.message.message import record_properties
from txrocketmq.remoting.message.properties import decode_properties
from txrocketmq.remoting.message.tags import SQL92, TAG, SubscriptionData
from txrocketmq.remoting.serialize.json import encode_pretty

FILTERS_MS: Final = 10_000
"""How often the owner is to call `clean`, in ms."""
MAX_FILTERS: Final = 100_000
"""How many filters are kept. Beyond this, a new one replaces a dead one, or is not taken."""
MAX_FILTER_CHARS: Final = 16 * 1024 * 1024
"""How many characters all expressions may have together; the same happens beyond this limit."""
_FORGOTTEN: Final = 1_000
"""How many filters that have been dead for long are removed in one call of `clean`."""
_HEARTBEAT_CHARS: Final = 65_536
"""How many characters of new expressions are taken from one heartbeat, with LEAST_CHARS for a
shorter one. The first one is always taken; those beyond the limit come with the next heartbeat."""
_BITMAP_WORK: Final = 1_000
"""How much work the bitmap of one message may be, as `work_of` counts it: some 0.5 ms."""
_DEAD_SINCE_MS: Final = 30_000
"""How long before the start, in ms, a filter died whose consumers were alive at the stop."""


@dataclass(frozen=True, slots=True)
class ConsumerFilterData:
    """The filter of a group for a topic.

    Times are in ms since the epoch; `dead_time` is 0 while the group has consumers.
    """

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
        """Returns the object that represents these data in the file."""
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
        """Reads the object of the file; raises ValueError, TypeError or AttributeError."""
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


class ConsumerFilters(ConfigTable[list[ConsumerFilterData]]):
    """The filters by topic and group.

    `born_ms` returns the time from which a new filter's bitmaps count: no message that is in the
    log already has a later store time.
    """

    def __init__(
        self,
        config: BrokerConfig,
        file: JsonFile,
        now_ms: Callable[[], int],
        born_ms: Callable[[], int],
        in_thread: InThread = at_once,
        in_turns: Callable[[Steps[None]], None] = finished,
    ) -> None:
        super().__init__(file)
        self._config = config
        self._now_ms = now_ms
        self._born_ms = born_ms
        self.expressions = Expressions(in_thread=in_thread, in_turns=in_turns)
        self.bloom = BloomFilter(
            config.max_error_rate_of_bloom_filter, config.expect_consumer_num_use_filter
        )
        self._by_topic: dict[str, dict[str, ConsumerFilterData]] = {}
        self._topics: dict[str, set[str]] = {}
        """The topics that each group has filters for."""
        self._dead: dict[tuple[str, str], int] = {}
        """The dead filters by (topic, group), with their times of death in rising order."""
        self._count = self._chars = 0

    def __len__(self) -> int:
        return self._count

    # ---------------------------------------------------------------- file

    def decode(self, content: Mapping[str, Any]) -> list[ConsumerFilterData]:
        """Reads the filters; none when their bits, as the bitmaps, are of another filter size."""
        found = [
            ConsumerFilterData.from_json(topic, group, value)
            for topic, groups in (content.get("filterDataByTopic") or {}).items()
            for group, value in (groups.get("groupFilterData") or {}).items()
        ]
        return found if all(self.bloom.fits(each.bloom) for each in found) else []

    def _hold(self, held: list[ConsumerFilterData]) -> Steps[None]:
        """All filters are dead at first."""
        for table in (self._by_topic, self._topics, self._dead):
            table.clear()
        self._count = self._chars = 0
        dead_ms = self._now_ms() - _DEAD_SINCE_MS
        late = [
            each if each.dead_time else replace(each, dead_time=max(dead_ms, each.born_time))
            for each in held
        ]
        for each in sorted(late, key=lambda each: each.dead_time):
            self._put(each)
        return no_listeners()

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

    def new_texts(self, told: Iterable[tuple[str, Iterable[SubscriptionData]]]) -> list[str]:
        """The expressions that are to be compiled before the groups of a heartbeat are registered.

        If there are too many new ones, the rest is left for the next heartbeat.
        """
        room = _HEARTBEAT_CHARS
        texts: list[str] = []
        for group, subscriptions in told:
            for each in subscriptions:
                if each.expression_type != SQL92:
                    continue
                text, known = each.sub_string, self.get(each.topic, group)
                if not 0 < len(text) <= MAX_CHARS or self.expressions.is_kept(text):
                    continue
                if known is not None and each.sub_version <= known.client_version:
                    continue
                weight = max(len(text), LEAST_CHARS)
                if texts and weight > room:
                    continue
                room -= weight
                texts.append(text)
        return texts

    def register(
        self, group: str, subscriptions: Iterable[SubscriptionData], *, only_kept: bool = False
    ) -> bool:
        """Takes a group's subscriptions from a heartbeat; its filters for other topics become dead.

        With `only_kept`, expressions that are not compiled yet are left out. Returns False when
        some are left out: the client should then repeat the heartbeat.
        """
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
            text = each.sub_string
            if only_kept and len(text) <= MAX_CHARS and not self.expressions.is_kept(text):
                is_all &= each.expression_type != SQL92
                continue
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
        """Hears of changed groups, the last consumer of which may have left."""
        if not group.members:
            for topic in self._topics.get(group.name, ()):
                self._end(self._by_topic[topic][group.name])

    def clean(self) -> None:
        """Removes filters that have been dead for long, and begins to save what has changed."""
        long_ago_ms = self._now_ms() - self._config.filter_data_clean_time_span
        oldest = islice(self._dead.items(), _FORGOTTEN)
        for topic, group in [key for key, dead_ms in oldest if dead_ms <= long_ago_ms]:
            self._remove(self._by_topic[topic][group])
        self.saving.begin()

    def life(self, consumers: Consumers) -> Life:
        """The filters are kept in consumerFilter.json."""
        return Life(
            "filters of consumers",
            table=self,
            hears=(Hears(consumers.on_change, self.changed),),
            beats=(Beat(FILTERS_MS, self.clean),),
        )

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
        """Returns the filter of a group for a topic, or None if it has none."""
        groups = self._by_topic.get(topic)
        return None if groups is None else groups.get(group)

    def compile(self, expression: str, expression_type: str, *, at_once: bool = True) -> Expression:
        """Compiles an expression; raises ExpressionError with the reason when that is impossible,
        and what Expressions.compile raises while it takes long.
        """
        if expression_type != SQL92:
            raise ExpressionError(
                f"messages are filtered by {TAG} and {SQL92}, not by {expression_type:.40}"
            )
        return self.expressions.compile(expression, at_once=at_once)

    def compiled(self, data: ConsumerFilterData) -> Expression | None:
        """Returns the compiled expression, None if it is not valid. May raise NotCompiled."""
        try:
            return self.compile(data.expression, data.expression_type)
        except ExpressionError:
            return None

    def bitmap(self, topic: str, record: memoryview | None) -> bytes:
        """Makes the bitmap of a message: the bits of all groups that select it.

        It is empty when no group filters the topic. A group gets its bits without a look, so that
        its pull looks at the message, if its expression is not compiled, and there is no room to
        keep all expressions compiled or it takes long; and if the expressions of the groups before
        it had too many terms already. The original evaluates all of them, in a thread.
        """
        groups = self._by_topic.get(topic)
        if not groups or record is None or not self._config.enable_calc_filter_bit_map:
            return b""
        text = record_properties(record)
        properties = decode_properties(text)
        fit_all = self._chars + LEAST_CHARS * self._count <= MAX_KEPT_CHARS
        hit: list[BloomFilterData] = []
        left = _BITMAP_WORK - work_of(0, text)
        for data in groups.values():
            if data.bloom is None:
                continue
            if left <= 0 or (not fit_all and not self.expressions.is_kept(data.expression)):
                hit.append(data.bloom)
                continue
            try:
                expression = self.compiled(data)
            except (NotCompiled, ResponseError):
                hit.append(data.bloom)
                continue
            if expression is None:
                continue
            left -= work_of(expression.terms, text)
            if expression.matches(properties):
                hit.append(data.bloom)
        return self.bloom.bitmap(hit)
