# SPDX-License-Identifier: Apache-2.0
"""Counters of what went in and out, and their last minute, hour and day.

Counting is one addition for a batch; windows are made of samples that `tick` takes every 10 s, 10
minutes and hour. Counterpart of BrokerStatsManager, StatsItem and BrokerStats; StoreStatsService is
store/stats.py.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

TOPIC_PUT_NUMS = "TOPIC_PUT_NUMS"
TOPIC_PUT_SIZE = "TOPIC_PUT_SIZE"
GROUP_GET_NUMS = "GROUP_GET_NUMS"
GROUP_GET_SIZE = "GROUP_GET_SIZE"
SNDBCK_PUT_NUMS = "SNDBCK_PUT_NUMS"
BROKER_PUT_NUMS = "BROKER_PUT_NUMS"
BROKER_GET_NUMS = "BROKER_GET_NUMS"

_MINUTE_SAMPLE_MS = 10_000
_HOUR_SAMPLE_MS = 600_000
_DAY_SAMPLE_MS = 3_600_000


@dataclass(frozen=True, slots=True)
class StatsSnapshot:
    """A window: sum of values, sum a second, value per event."""

    sum: int = 0
    tps: float = 0.0
    avgpt: float = 0.0


@dataclass(slots=True)
class Window:
    """Samples (time in ms, value, events) of one period, the oldest dropped at `size`."""

    samples: deque[tuple[int, int, int]]

    def snapshot(self) -> StatsSnapshot:
        """From the oldest sample to the newest."""
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
    """One counter: `value` and how many events made it up."""

    value: int = 0
    times: int = 0
    minute: Window = field(default_factory=lambda: _window(7))
    hour: Window = field(default_factory=lambda: _window(7))
    day: Window = field(default_factory=lambda: _window(25))

    def add(self, value: int, times: int = 1) -> None:
        """Counts."""
        self.value += value
        self.times += times

    def sample(self, window: Window, now_ms: int) -> None:
        """Adds the present state to a window."""
        window.samples.append((now_ms, self.value, self.times))


class BrokerStats:
    """All counters of a broker; `cluster` is the key of those of the broker as a whole."""

    def __init__(self, cluster: str, is_system: Callable[[str], bool], now_ms: int) -> None:
        self._is_system = is_system
        self._topics: dict[str, tuple[StatsItem, StatsItem, bool]] = {}
        self._groups: dict[tuple[str, str], tuple[StatsItem, StatsItem, bool]] = {}
        self._items: dict[tuple[str, str], StatsItem] = {}
        self.put_total = self._item(BROKER_PUT_NUMS, cluster, now_ms)
        self.get_total = self._item(BROKER_GET_NUMS, cluster, now_ms)
        self._user_put = self._user_get = 0
        self._now_ms = now_ms
        self._due = {_MINUTE_SAMPLE_MS: now_ms, _HOUR_SAMPLE_MS: now_ms, _DAY_SAMPLE_MS: now_ms}
        self._today: int | None = None
        self.put_mornings = self.get_mornings = (0, 0)
        """Totals at yesterday's and today's midnight, of topics that are no system topics."""

    # ---------------------------------------------------------------- counts

    def put(self, topic: str, count: int, size_bytes: int) -> None:
        """Messages were stored."""
        entry = self._topics.get(topic)
        if entry is None:
            entry = self._topics[topic] = (
                self._item(TOPIC_PUT_NUMS, topic, self._now_ms),
                self._item(TOPIC_PUT_SIZE, topic, self._now_ms),
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
        """A pull found messages."""
        entry = self._groups.get((topic, group))
        if entry is None:
            key = f"{topic}@{group}"
            entry = self._groups[topic, group] = (
                self._item(GROUP_GET_NUMS, key, self._now_ms),
                self._item(GROUP_GET_SIZE, key, self._now_ms),
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
        """A consumer sent a message back."""
        self._item(SNDBCK_PUT_NUMS, f"{topic}@{group}", self._now_ms).add(1)

    # --------------------------------------------------------------- queries

    def item(self, name: str, key: str) -> StatsItem | None:
        """A counter that was used; keys are `topic`, `topic@group` or the cluster."""
        return self._items.get((name, key))

    def topic_put_tps(self, topic: str) -> float:
        """Messages a second to a topic, over the last minute."""
        item = self.item(TOPIC_PUT_NUMS, topic)
        return item.minute.snapshot().tps if item else 0.0

    def group_get_tps(self, group: str, topic: str) -> float:
        """Messages a second a group gets of a topic, over the last minute."""
        item = self.item(GROUP_GET_NUMS, f"{topic}@{group}")
        return item.minute.snapshot().tps if item else 0.0

    def totals_now(self) -> tuple[int, int]:
        """Messages put and got since the start, of topics that are no system topics."""
        return self._user_put, self._user_get

    # ------------------------------------------------------------------ time

    def tick(self, now_ms: int, day: int) -> None:
        """Takes the samples that are due; call each second. `day` is the local date's ordinal."""
        self._now_ms = now_ms
        for period_ms, due_ms in self._due.items():
            if now_ms >= due_ms:
                self._due[period_ms] = now_ms + period_ms
                self._sample(period_ms, now_ms)
        if self._today is not None and day != self._today:
            self.put_mornings = (self.put_mornings[1], self._user_put)
            self.get_mornings = (self.get_mornings[1], self._user_get)
        self._today = day

    def _sample(self, period_ms: int, now_ms: int) -> None:
        for item in self._items.values():
            if period_ms == _MINUTE_SAMPLE_MS:
                item.sample(item.minute, now_ms)
            elif period_ms == _HOUR_SAMPLE_MS:
                item.sample(item.hour, now_ms)
            else:
                item.sample(item.day, now_ms)

    def remove_topic(self, topic: str) -> None:
        """Forgets the counters of a topic that is deleted."""
        self._topics.pop(topic, None)
        for pair in [pair for pair in self._groups if pair[0] == topic]:
            del self._groups[pair]
        for key in [k for k in self._items if k[1] == topic or k[1].startswith(topic + "@")]:
            if key[0] not in {BROKER_PUT_NUMS, BROKER_GET_NUMS}:
                del self._items[key]

    def _item(self, name: str, key: str, now_ms: int) -> StatsItem:
        item = self._items.get((name, key))
        if item is None:
            item = self._items[name, key] = StatsItem()
            for window in (item.minute, item.hour, item.day):
                item.sample(window, now_ms)
        return item
