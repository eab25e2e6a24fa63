# SPDX-License-Identifier: Apache-2.0
"""How many half messages of each topic are open: config/transactionMetrics.

These are counts for people, and nothing else depends on them: they change when a half message
comes, when its transaction ends and when it is given up. After a crash they are off by what came
since the file was written, as the original's. Counterpart of TransactionMetrics.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from txrocketmq.broker.store.disk.steps import Steps
from txrocketmq.broker.work.config_table import VersionedTable, no_listeners
from txrocketmq.broker.work.json_file import JsonFile
from txrocketmq.broker.work.life import Beat, Life
from txrocketmq.remoting.process.histogram import Histogram
from txrocketmq.remoting.serialize.json import encode_body

_AGE_BOUNDS_S: Final = (5, 60, 600, 3600, 12 * 3600, 24 * 3600)
"""The bounds of the original's histogram, in seconds."""


_NONE: Final = (0, 0)
TransactionCounts = dict[str, tuple[int, int]]
"""By topic: a number, and when it changed, in ms."""


@dataclass(slots=True)
class Ends:
    """How transactions of a topic ended since the start."""

    committed: int = 0
    rolled_back: int = 0
    ages_s: Histogram = field(default_factory=lambda: Histogram(_AGE_BOUNDS_S))
    """How old the half messages of committed transactions were, in seconds."""


class TransactionMetrics(VersionedTable[TransactionCounts]):
    """Counts by topic; `saving` writes the file in the compact form of the original."""

    def __init__(self, file: JsonFile, now_ms: Callable[[], int]) -> None:
        super().__init__(file, now_ms)
        self.ends: dict[str, Ends] = {}
        self._counts: TransactionCounts = {}
        """By topic: the number of open half messages, and when it changed."""

    def decode(self, content: Mapping[str, Any]) -> TransactionCounts:
        """Reads the counts and their times by topic."""
        return {
            topic: (int(metric.get("count")), int(metric.get("timeStamp") or 0))
            for topic, metric in (content.get("transactionCount") or {}).items()
        }

    def _hold(self, held: TransactionCounts) -> Steps[None]:
        self._counts = held
        return no_listeners()

    def add(self, topic: str, number: int) -> None:
        """Adds to the number of open half messages of a topic; `number` may be negative."""
        if topic:  # a half message may not say where it is to go
            self._add(topic, number, self._now_ms())

    def _add(self, topic: str, number: int, now_ms: int) -> None:
        count = self._counts.get(topic, _NONE)[0]
        self._counts[topic] = count + number, now_ms
        self._file.is_stale = True

    def ended(self, topic: str, ages_s: Sequence[int], now_ms: int, *, is_committed: bool) -> None:
        """Counts ends of transactions whose half messages were of this topic and so old."""
        if not topic:
            return
        found = self.ends.get(topic)
        if found is None:
            found = self.ends[topic] = Ends()
        if is_committed:
            found.committed += len(ages_s)
            found.ages_s.add_all(ages_s)
        else:
            found.rolled_back += len(ages_s)
        self._add(topic, -len(ages_s), now_ms)

    def counts(self) -> dict[str, int]:
        """How many half messages are open, by topic."""
        return {topic: count for topic, (count, _) in list(self._counts.items())}

    def count(self, topic: str) -> int:
        """How many half messages of a topic are open."""
        return self._counts.get(topic, _NONE)[0]

    def life(self, period_ms: int) -> Life:
        """The counts of open half messages are kept in transactionMetrics."""
        beat = Beat(period_ms, self.saving.begin)
        return Life("counts of transactions", table=self, beats=(beat,))

    def _snapshot(self) -> Callable[[], bytes]:
        version, counts = self.data_version.to_json(), dict(self._counts)

        def encode() -> bytes:
            table: Mapping[str, Any] = {
                topic: {"count": count, "timeStamp": at_ms}
                for topic, (count, at_ms) in counts.items()
            }
            return encode_body({"dataVersion": version, "transactionCount": table})

        return encode
