# SPDX-License-Identifier: Apache-2.0
"""How fast a consumer pulls and consumes each topic, for administrators.

Sums only grow. They are sampled every ten seconds for the last minute and every ten minutes for the
last hour; a rate is the difference between the newest and the oldest sample.

Java: ConsumerStatsManager, StatsItem.
"""

from __future__ import annotations

from collections import deque
from typing import Final, NamedTuple

from txrocketmq.remoting.protocol.body.client import ConsumeStatus

SAMPLE_MS: Final = 10_000
SAMPLE_HOUR_MS: Final = 600_000
_SAMPLES: Final = 7


class _Sums(NamedTuple):
    pulled: int = 0
    pulls: int = 0
    pull_ms: int = 0
    consumed: int = 0
    failed: int = 0
    calls: int = 0
    calls_ms: int = 0


class TopicStatistics:
    """The sums of one topic."""

    def __init__(self) -> None:
        self._pulled = 0
        self._pulls = 0
        self._pull_ms = 0
        self._consumed = 0
        self._failed = 0
        self._calls = 0
        self._calls_ms = 0
        self.minute: deque[tuple[int, _Sums]] = deque(maxlen=_SAMPLES)
        self.hour: deque[tuple[int, _Sums]] = deque(maxlen=_SAMPLES)

    def pulled(self, messages: int, took_ms: int) -> None:
        """Counts a pull that has brought some messages."""
        self._pulled += messages
        self._pulls += 1
        self._pull_ms += took_ms

    def consumed_in(self, took_ms: int, calls: int = 1) -> None:
        """Counts calls of the listener that took `took_ms` together."""
        self._calls += calls
        self._calls_ms += took_ms

    def succeeded(self, messages: int) -> None:
        """Counts messages that were consumed."""
        self._consumed += messages

    def failed(self, messages: int) -> None:
        """Counts messages that could not be consumed."""
        self._failed += messages

    def sums(self) -> _Sums:
        """Returns the current sums."""
        return _Sums(
            self._pulled,
            self._pulls,
            self._pull_ms,
            self._consumed,
            self._failed,
            self._calls,
            self._calls_ms,
        )


class ConsumerStatistics:
    """The statistics of a consumer; `sample` and `sample_hour` are called at their periods."""

    def __init__(self) -> None:
        self._topics: dict[str, TopicStatistics] = {}

    def of(self, topic: str) -> TopicStatistics:
        """The statistics of a topic."""
        found = self._topics.get(topic)
        if found is None:
            found = self._topics[topic] = TopicStatistics()
        return found

    def sample(self, steady_ms: int) -> None:
        """Takes the samples of the last minute."""
        for each in self._topics.values():
            _sample(each.minute, each.sums(), steady_ms, SAMPLE_MS)

    def sample_hour(self, steady_ms: int) -> None:
        """Takes the samples of the last hour."""
        for each in self._topics.values():
            _sample(each.hour, each.sums(), steady_ms, SAMPLE_HOUR_MS)

    def status(self, topic: str) -> ConsumeStatus:
        """Returns the statistics of a topic in the form for administrators."""
        found = self.of(topic)
        ms, minute = _difference(found.minute)
        _, hour = _difference(found.hour)
        calls = minute if minute.calls_ms else hour
        return ConsumeStatus(
            pull_rt=_average(minute.pull_ms, minute.pulls),
            pull_tps=_per_second(minute.pulled, ms),
            consume_rt=_average(calls.calls_ms, calls.calls),
            consume_ok_tps=_per_second(minute.consumed, ms),
            consume_failed_tps=_per_second(minute.failed, ms),
            consume_failed_msgs=hour.failed,
        )


def _sample(samples: deque[tuple[int, _Sums]], sums: _Sums, steady_ms: int, period_ms: int) -> None:
    if not samples:
        samples.append((steady_ms - period_ms, _Sums()))
    samples.append((steady_ms, sums))


def _difference(samples: deque[tuple[int, _Sums]]) -> tuple[int, _Sums]:
    if not samples:
        return 0, _Sums()
    (first_ms, first), (last_ms, last) = samples[0], samples[-1]
    return last_ms - first_ms, _Sums(*(b - a for a, b in zip(first, last, strict=True)))


def _average(total: int, count: int) -> float:
    return total / count if count else 0.0


def _per_second(count: int, ms: int) -> float:
    return count * 1000 / ms if ms > 0 else 0.0
