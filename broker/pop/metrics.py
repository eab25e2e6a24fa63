# SPDX-License-Identifier: Apache-2.0
"""How many records of the revive topic were written and read, and how many messages came back.

Counts since the start, for people: nothing follows from them. They are kept by group and topic, so
what a group or a topic leaves behind is forgotten with it. Java: PopMetricsManager.
"""

from __future__ import annotations

from collections import Counter
from typing import Final, TypeVar

from txrocketmq.broker.pop.records import Key

CK: Final = "CK"
ACK: Final = "ACK"
"""PopReviveMessageType."""
MOST: Final = 20_000
"""So many are told apart of each kind; an ack may name any group. Others are not counted."""

K = TypeVar("K", bound=tuple[str, ...])


class PopMetrics:
    """The counters of POP; each key begins with group and topic."""

    def __init__(self) -> None:
        self.written: Counter[tuple[str, str, str, str]] = Counter()
        """By the type of the record too, and by what the store said."""
        self.read: Counter[tuple[str, str, str, str]] = Counter()
        """By the queue of the revive topic too, and by the type of the record."""
        self.brought_back: Counter[tuple[str, str, str]] = Counter()
        """Messages, by what the store said too."""

    def wrote(self, key: Key, kind: str, status: str) -> None:
        """A record of a check point, or of an ack for it, was put."""
        _count(self.written, (key.group, key.topic, kind, status))

    def has_read(self, key: Key, kind: str, queue_id: int) -> None:
        """A record was read of a queue of the revive topic."""
        _count(self.read, (key.group, key.topic, str(queue_id), kind))

    def retried(self, key: Key, status: str) -> None:
        """A message was put into a retry topic."""
        _count(self.brought_back, (key.group, key.topic, status))

    def forget_topic(self, topic: str) -> None:
        """The topic is no more."""
        self._forget(1, topic)

    def forget_group(self, group: str) -> None:
        """The group is no more."""
        self._forget(0, group)

    def _forget(self, at: int, name: str) -> None:
        for counts in (self.written, self.read, self.brought_back):
            for key in [key for key in counts if key[at] == name]:
                del counts[key]


def _count(counts: Counter[K], key: K) -> None:
    if key in counts or len(counts) < MOST:
        counts[key] += 1
