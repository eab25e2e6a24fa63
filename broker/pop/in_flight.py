# SPDX-License-Identifier: Apache-2.0
"""How many messages of each queue a group has popped that are not yet settled.

It begins anew with each start, so it is an estimate: good enough to stop groups that pop and never
acknowledge (enablePopMessageThreshold). Counterpart of PopInflightMessageCounter.
"""

from __future__ import annotations

QueueKey = tuple[str, str, int]
"""A topic, a group and a queue id."""


class InFlight:
    """How many messages are in flight by topic, group and queue; none takes no room."""

    def __init__(self) -> None:
        self._counts: dict[QueueKey, int] = {}

    def get(self, topic: str, group: str, queue_id: int) -> int:
        """How many messages of a queue are in flight."""
        return self._counts.get((topic, group, queue_id), 0)

    def add(self, topic: str, group: str, queue_id: int, count: int) -> None:
        """Adds to the number of messages in flight; `count` may be negative."""
        key = topic, group, queue_id
        left = self._counts.get(key, 0) + count
        if left > 0:
            self._counts[key] = left
        else:
            self._counts.pop(key, None)

    def clear(self, topic: str, group: str, queue_id: int) -> None:
        """Resets the number, since the offset was set or the queue is popped in order."""
        self._counts.pop((topic, group, queue_id), None)
