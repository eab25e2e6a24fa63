# SPDX-License-Identifier: Apache-2.0
"""How many records of the revive topic were written and read, and how many messages came back.

These are counts since the start, for people to see: nothing else depends on them. They are kept by
group and topic, so they are forgotten with the group or topic. Java: PopMetricsManager.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, Final, cast

from txrocketmq.broker.pop.records import MergeKey

CK: Final = "CK"
ACK: Final = "ACK"
"""The name of an ack in PopReviveMessageType."""
MOST: Final = 20_000
"""The most keys of each counter, since an ack may name any group. Others are not counted."""
_Keys = dict[str, dict[tuple[str, ...], None]]


class PopMetrics:
    """The counters of POP. Each key begins with group and topic."""

    def __init__(self) -> None:
        self.written: Counter[tuple[str, str, str, str]] = Counter()
        """Records that were written; the key ends with their type and the store's status."""
        self.read: Counter[tuple[str, str, str, str]] = Counter()
        """Records that were read; the key ends with the id of the revive queue and their type."""
        self.brought_back: Counter[tuple[str, str, str]] = Counter()
        """Messages that were brought back; the key ends with the store's status."""
        self._keys: tuple[_Keys, _Keys] = ({}, {})
        """The keys of all counters by group and by topic: one that goes costs what it has."""

    def wrote(self, key: MergeKey, kind: str, status: str) -> None:
        """Counts a check point, or an ack for it, that was put."""
        self._count(self.written, (key.group, key.topic, kind, status))

    def has_read(self, key: MergeKey, kind: str, queue_id: int) -> None:
        """Counts a record that was read from a queue of the revive topic."""
        self._count(self.read, (key.group, key.topic, str(queue_id), kind))

    def retried(self, key: MergeKey, status: str) -> None:
        """Counts a message that was put into a retry topic."""
        self._count(self.brought_back, (key.group, key.topic, status))

    def forget_topic(self, topic: str) -> None:
        """Forgets the counts of a topic that was deleted."""
        self._forget(1, topic)

    def forget_group(self, group: str) -> None:
        """Forgets the counts of a group that was deleted."""
        self._forget(0, group)

    def _count(self, counts: Counter[Any], key: tuple[str, ...]) -> None:
        if key not in counts:
            if len(counts) >= MOST:
                return
            for keys, name in zip(self._keys, key[:2], strict=True):
                keys.setdefault(name, {})[key] = None
        counts[key] += 1

    def _forget(self, at: int, name: str) -> None:
        for key in self._keys[at].pop(name, ()):
            for counts in (self.written, self.read, self.brought_back):
                counts.pop(cast("Any", key), None)
            of_other = self._keys[1 - at].get(key[1 - at], {})
            of_other.pop(key, None)
            if not of_other:
                self._keys[1 - at].pop(key[1 - at], None)
