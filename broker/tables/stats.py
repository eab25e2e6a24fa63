# SPDX-License-Identifier: Apache-2.0
"""Counters of stored and delivered messages, and their last minute, hour and day.

Counting is one addition for a batch; windows are made of samples that `tick` takes every 10 s, 10
minutes and hour. Counterpart of BrokerStatsManager, StatsItem and BrokerStats; StoreStatsService is
store/formats/stats.py.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from txrocketmq.broker.store.disk.steps import Steps
from txrocketmq.broker.work.life import SECOND_MS, Life, WalkBeat
from txrocketmq.remoting.message.topics import LMQ_PREFIX
from txrocketmq.remoting.process.histogram import Histogram

TOPIC_PUT_NUMS = "TOPIC_PUT_NUMS"
TOPIC_PUT_SIZE = "TOPIC_PUT_SIZE"
GROUP_GET_NUMS = "GROUP_GET_NUMS"
GROUP_GET_SIZE = "GROUP_GET_SIZE"
SNDBCK_PUT_NUMS = "SNDBCK_PUT_NUMS"
BROKER_PUT_NUMS = "BROKER_PUT_NUMS"
BROKER_GET_NUMS = "BROKER_GET_NUMS"

SIZE_BOUNDS: Final = (1 << 10, 4 << 10, 512 << 10, 1 << 20, 2 << 20, 4 << 20)
"""The bounds of the original's histogram of message sizes, in bytes."""
_MINUTE_SAMPLE_MS = 10_000
_HOUR_SAMPLE_MS = 600_000
_DAY_SAMPLE_MS = 3_600_000
_ITEMS_A_STEP = 16


def _counted(name: str) -> str:
    """The name under which a topic or group is counted; light queues, of which there may be any
    number, share one.
    """
    return LMQ_PREFIX if name.startswith(LMQ_PREFIX) else name


@dataclass(frozen=True, slots=True)
class StatsSnapshot:
    """The figures of a window: sum of values, sum per second, and value per event."""

    sum: int = 0
    tps: float = 0.0
    avgpt: float = 0.0


@dataclass(slots=True)
class Window:
    """Samples (time in ms, value, events) of one period; of `size`, the oldest is dropped."""

    samples: deque[tuple[int, int, int]]

    def snapshot(self) -> StatsSnapshot:
        """Returns the difference between the oldest sample and the newest."""
        if len(self.samples) < 2:
            return StatsSnapshot()
        (start_ms, start, first), (end_ms, end, last) = self.samples[0], self.samples[-1]
        total, events = end - start, last - first
        return StatsSnapshot(
            total,
            total * 1000 / (end_ms - start_ms) if end_ms > start_ms else 0.0,
            total / events if events > 0 else 0.0,
        )


def _window(size: int) -> Window:
    return Window(deque(maxlen=size))


@dataclass(slots=True)
class StatsItem:
    """One counter: its total `value`, and the number of events that made it up."""

    value: int = 0
    times: int = 0
    minute: Window = field(default_factory=lambda: _window(7))
    hour: Window = field(default_factory=lambda: _window(7))
    day: Window = field(default_factory=lambda: _window(25))

    def add(self, value: int, times: int = 1) -> None:
        """Adds a value and a number of events."""
        self.value += value
        self.times += times

    def window(self, period_ms: int) -> Window:
        """Returns the window that has a sample in each such period."""
        if period_ms == _MINUTE_SAMPLE_MS:
            return self.minute
        return self.hour if period_ms == _HOUR_SAMPLE_MS else self.day

    def sample(self, window: Window, steady_ms: int) -> None:
        """Adds the present totals to a window."""
        window.samples.append((steady_ms, self.value, self.times))


class BrokerStats:
    """All counters of a broker; `cluster` is the key of those for the broker as a whole."""

    def __init__(self, cluster: str, is_system: Callable[[str], bool], steady_ms: int) -> None:
        self._is_system = is_system
        self._topics: dict[str, tuple[StatsItem, StatsItem, bool]] = {}
        self._groups: dict[tuple[str, str], tuple[StatsItem, StatsItem, bool]] = {}
        self._items: dict[tuple[str, str], StatsItem] = {}
        self._keys_of: dict[str, list[tuple[str, str]]] = {}
        """By topic: the keys of its items, so that deleting it looks at no others."""
        self.sizes: dict[str, Histogram] | None = None
        """The sizes of each topic's messages; None as long as nobody needs them."""
        self._dead: dict[str, dict[str, int]] = {}
        """Dead letters by topic and group."""
        self._steady_ms = steady_ms
        self.put_total = self._new_item(BROKER_PUT_NUMS, cluster)
        self.get_total = self._new_item(BROKER_GET_NUMS, cluster)
        self._user_put = self._user_get = 0
        self._due = {
            _MINUTE_SAMPLE_MS: steady_ms,
            _HOUR_SAMPLE_MS: steady_ms,
            _DAY_SAMPLE_MS: steady_ms,
        }
        self._today: int | None = None
        self.put_mornings = self.get_mornings = (0, 0)
        """Totals at yesterday's and today's midnight, without those of system topics."""

    # ---------------------------------------------------------------- counts

    def put(self, topic: str, count: int, size_bytes: int) -> None:
        """Counts messages that were stored."""
        entry = self._topics.get(topic)
        if entry is None:
            entry = self._topics[topic] = (
                self._item(TOPIC_PUT_NUMS, topic),
                self._item(TOPIC_PUT_SIZE, topic),
                self._is_system(topic),
            )
        nums, size, system = entry
        nums.value += count
        nums.times += count
        size.value += size_bytes
        size.times += count
        self.put_total.value += count
        self.put_total.times += count
        if not system:
            self._user_put += count

    def got(self, group: str, topic: str, count: int, size_bytes: int) -> None:
        """Counts messages of a pull, all light queues as one (LmqBrokerStatsManager)."""
        entry = self._groups.get((topic, group))
        if entry is None:
            topic, group = _counted(topic), _counted(group)
            entry = self._groups.get((topic, group))
        if entry is None:
            entry = self._groups[topic, group] = (
                self._item(GROUP_GET_NUMS, topic, group),
                self._item(GROUP_GET_SIZE, topic, group),
                self._is_system(topic),
            )
        nums, size, system = entry
        nums.value += count
        nums.times += 1
        size.value += size_bytes
        size.times += 1
        self.get_total.value += count
        self.get_total.times += 1
        if not system:
            self._user_get += count

    def sent_back(self, group: str, topic: str) -> None:
        """Counts a message that a consumer sent back."""
        self._item(SNDBCK_PUT_NUMS, _counted(topic), _counted(group)).add(1)

    def sized(self, topic: str, sizes: Sequence[int]) -> None:
        """Counts the sizes of stored messages; only to be called while `sizes` is not None."""
        if self.sizes is None:
            return
        histogram = self.sizes.get(topic)
        if histogram is None:
            histogram = self.sizes[topic] = Histogram(SIZE_BOUNDS)
        histogram.add_all(sizes)

    def died(self, group: str, topic: str) -> None:
        """Counts a message of the topic that became a dead letter of the group."""
        of_topic = self._dead.setdefault(topic, {})
        of_topic[group] = of_topic.get(group, 0) + 1

    # --------------------------------------------------------------- queries

    def item(self, name: str, key: str) -> StatsItem | None:
        """Returns a counter that was used, by `topic`, `topic@group` or the cluster; or None."""
        return self._items.get((name, key))

    def topic_put_tps(self, topic: str) -> float:
        """The messages per second sent to a topic, over the last minute."""
        item = self.item(TOPIC_PUT_NUMS, topic)
        return item.minute.snapshot().tps if item else 0.0

    def group_get_tps(self, group: str, topic: str) -> float:
        """The messages per second that a group gets of a topic, over the last minute."""
        item = self.item(GROUP_GET_NUMS, f"{topic}@{group}")
        return item.minute.snapshot().tps if item else 0.0

    def totals_now(self) -> tuple[int, int]:
        """The messages put and got since the start, without those of system topics."""
        return self._user_put, self._user_get

    def topics_put(self) -> Iterator[tuple[str, int, int, bool]]:
        """Iterates over topics, with messages and bytes since the start, and if it is a system's.

        Topics may come and go meanwhile.
        """
        for topic in list(self._topics):
            entry = self._topics.get(topic)
            if entry is not None:
                nums, size, is_system = entry
                yield topic, nums.value, size.value, is_system

    def groups_got(self) -> Iterator[tuple[str, str, int, int, bool]]:
        """Iterates over topics and groups, with messages and bytes since the start and whether it
        is a system topic.
        """
        for key in list(self._groups):
            entry = self._groups.get(key)
            if entry is not None:
                nums, size, is_system = entry
                yield *key, nums.value, size.value, is_system

    def dead_letters(self) -> list[tuple[str, str, int]]:
        """Returns topic, group and number of dead letters since the start."""
        return [
            (topic, group, count)
            for topic, groups in self._dead.items()
            for group, count in groups.items()
        ]

    # ------------------------------------------------------------------ time

    def tick(self, steady_ms: int, day: int) -> Steps[None]:
        """Takes the samples that are due, each second. `day` is the local date's ordinal."""
        self._steady_ms = steady_ms
        if self._today is not None and day != self._today:
            self.put_mornings = (self.put_mornings[1], self._user_put)
            self.get_mornings = (self.get_mornings[1], self._user_get)
        self._today = day
        due = [period_ms for period_ms, due_ms in self._due.items() if steady_ms >= due_ms]
        for period_ms in due:
            self._due[period_ms] = steady_ms + period_ms
        if not due:
            return
        for count, item in enumerate(list(self._items.values()), 1):
            for period_ms in due:
                item.sample(item.window(period_ms), steady_ms)
            if count % _ITEMS_A_STEP == 0:
                yield

    def life(self) -> Life:
        """The counters are sampled."""

        def sample(now_ms: int, steady_ms: int) -> Steps[None]:
            today = datetime.fromtimestamp(now_ms / 1000)  # noqa: DTZ006 - local days
            return self.tick(steady_ms, today.toordinal())

        return Life("counters", beats=(WalkBeat(SECOND_MS, "sampling the counters", sample),))

    def remove_topic(self, topic: str) -> Steps[None]:
        """Forgets the counters of a topic that was deleted."""
        self._topics.pop(topic, None)
        self._dead.pop(topic, None)
        if self.sizes is not None:
            self.sizes.pop(topic, None)
        for count, key in enumerate(self._keys_of.pop(topic, ()), 1):
            self._items.pop(key, None)
            self._groups.pop((topic, key[1][len(topic) + 1 :]), None)
            if count % _ITEMS_A_STEP == 0:
                yield

    def _item(self, name: str, topic: str, group: str | None = None) -> StatsItem:
        """Returns a counter of a topic, or of a group in it, which is made if there is none."""
        key = name, topic if group is None else f"{topic}@{group}"
        item = self._items.get(key)
        if item is None:
            item = self._new_item(*key)
            self._keys_of.setdefault(topic, []).append(key)
        return item

    def _new_item(self, name: str, key: str) -> StatsItem:
        item = self._items[name, key] = StatsItem()
        for window in (item.minute, item.hour, item.day):
            item.sample(window, self._steady_ms)
        return item
