# SPDX-License-Identifier: Apache-2.0
"""How many records of the revive topic were written and read, and how many messages came back.

These are counts since the start, for people to see: nothing else depends on them. They are kept by
group and topic, so they are forgotten with the group or topic. Java: PopMetricsManager.
"""

from __future__ import annotations

from collections import Counter
from typing import Final, TypeVar

from txrocketmq.broker.pop.records import Key

CK: Final = "CK"
ACK: Final = "ACK"
"""The name of an ack in PopReviveMessageType."""
MOST: Final = 20_000
"""How many keys each counter has at most, since an ack may name any group. Others are not
counted."""

K = TypeVar("K", bound=tuple[str, ...])


class PopMetrics:
    """The counters of POP. Each key begins with group and topic."""

    def __init__(self) -> None:
        self.written: Counter[tuple[str, str, str, str]] = Counter()
        """Records that were written; the key ends with the type of the record and the store's
        status."""
        self.read: Counter[tuple[str, str, str, str]] = Counter()
        """Records that were read; the key ends with the id of the revive queue and the type of the
        record."""
        self.brought_back: Counter[tuple[str, str, str]] = Counter()
        """Messages that were brought back; the key ends with the store's status."""

    def wrote(self, key: Key, kind: str, status: str) -> None:
        """Counts a check point, or an ack for it, that was put."""
        _count(self.written, (key.group, key.topic, kind, status))

    def has_read(self, key: Key, kind: str, queue_id: int) -> None:
        """Counts a record that was read from a queue of the revive topic."""
        _count(self.read, (key.group, key.topic, str(queue_id), kind))

    def retried(self, key: Key, status: str) -> None:
        """Counts a message that was put into a retry topic."""
        _count(self.brought_back, (key.group, key.topic, status))

    def forget_topic(self, topic: str) -> None:
        """Forgets the counts of a topic that was deleted."""
        self._forget(1, topic)

    def forget_group(self, group: str) -> None:
        """Forgets the counts of a group that was deleted."""
        self._forget(0, group)

    def _forget(self, at: int, name: str) -> None:
        for counts in (self.written, self.read, self.brought_back):
            for key in [key for key in counts if key[at] == name]:
                del counts[key]


def _count(counts: Counter[K], key: K) -> None:
    if key in counts or len(counts) < MOST:
        counts[key] += 1
