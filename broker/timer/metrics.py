# SPDX-License-Identifier: Apache-2.0
"""How many timer messages of each topic wait (config/timermetrics), and how many came and went.

These are counts for people, and nothing else depends on them: a message counts when it is put into
the wheel, one that withdraws another counts as -1, and a message that leaves the wheel is
subtracted. After a crash the counts are off by what came since the file was written, as the
original's.

Java: timer.TimerMetrics.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from txrocketmq.broker.store.disk.steps import Steps
from txrocketmq.broker.work.config_table import VersionedTable, no_listeners
from txrocketmq.broker.work.json_file import JsonFile
from txrocketmq.remoting.process.histogram import Histogram
from txrocketmq.remoting.serialize.json import encode_body

_DELAY_BOUNDS_S: Final = (60, 600, 3600, 12 * 3600, 24 * 3600, 3 * 24 * 3600)
"""The bounds of the original's histogram, in seconds."""


TimerCounts = dict[str, tuple[int, int]]
"""By topic: a number, and when it changed, in ms."""


@dataclass(slots=True)
class Flow:
    """What went through the wheel since the start, for one topic."""

    entered: int = 0
    left: int = 0
    delays_s: Histogram = field(default_factory=lambda: Histogram(_DELAY_BOUNDS_S))
    """How long messages had to wait, from when they were sent, in seconds."""


class TimerMetrics(VersionedTable[TimerCounts]):
    """Counts by topic; `saving` writes the file in the compact form of the original."""

    def __init__(self, file: JsonFile, now_ms: Callable[[], int]) -> None:
        super().__init__(file, now_ms)
        self._counts: TimerCounts = {}
        """By topic: the number of waiting messages, and when it changed."""
        self.flows: dict[str, Flow] = {}

    def decode(self, content: Mapping[str, Any]) -> TimerCounts:
        """Reads the counts and their times by topic."""
        return {
            topic: (int(metric.get("count")), int(metric.get("timeStamp") or 0))
            for topic, metric in (content.get("timingCount") or {}).items()
        }

    def _hold(self, held: TimerCounts) -> Steps[None]:
        self._counts = held
        return no_listeners()

    def add(self, topic: str, number: int) -> None:
        """Adds to the number of waiting messages of a topic; `number` may be negative."""
        if not topic:
            return  # of a message that does not say where it is to go
        count, _ = self._counts.get(topic, (0, 0))
        self._counts[topic] = count + number, self._now_ms()
        self._file.is_stale = True

    def entered(self, topic: str, delay_ms: int) -> None:
        """Counts a message that was put into the wheel to wait for `delay_ms`."""
        flow = self._flow(topic)
        flow.entered += 1
        flow.delays_s.add(max(delay_ms, 0) // 1000)

    def left(self, topic: str) -> None:
        """Counts a message that was delivered, or put at the end of the timer topic again."""
        self._flow(topic).left += 1

    def forget(self, topic: str) -> None:
        """Forgets the counts of a topic that was deleted."""
        self.flows.pop(topic, None)
        if self._counts.pop(topic, None) is not None:
            self._file.is_stale = True

    def count(self, topic: str) -> int:
        """How many messages of a topic wait."""
        return self._counts.get(topic, (0, 0))[0]

    def counts(self) -> dict[str, int]:
        """How many messages wait, by topic."""
        return {topic: count for topic, (count, _) in self._counts.items()}

    def encode(self) -> bytes:
        """Encodes the counts as the answer to GET_TIMER_METRICS."""
        return _encode(self.data_version.to_json(), self._counts)

    def _flow(self, topic: str) -> Flow:
        flow = self.flows.get(topic)
        if flow is None:
            flow = self.flows[topic] = Flow()
        return flow

    def _snapshot(self) -> Callable[[], bytes]:
        version, counts = self.data_version.to_json(), dict(self._counts)
        return lambda: _encode(version, counts)


def _encode(version: Any, counts: Mapping[str, tuple[int, int]]) -> bytes:
    table = {
        topic: {"count": count, "timeStamp": at_ms} for topic, (count, at_ms) in counts.items()
    }
    return encode_body({"dataVersion": version, "timingCount": table})
