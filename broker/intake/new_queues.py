# SPDX-License-Identifier: Apache-2.0
"""Counts the queues that come into being with the messages of one write.

Making the folder and the file of a queue takes as long as storing a hundred messages. So whoever
stores messages for many queues in a turn ends the turn once enough of them are new. Requests count
their work by themselves (processors/send/writes.py); this is for what the broker does without
being asked. Java: has no counterpart; its threads may take as long as they like.
"""

from __future__ import annotations

from typing import Final

from txrocketmq.broker.store.message_store import MessageStore

ENOUGH: Final = 8
"""How many new queues are enough for one write; each takes some 0.3 ms."""


class NewQueues:
    """The queues of one write that the store does not have yet."""

    def __init__(self, store: MessageStore) -> None:
        self._store = store
        self.seen: set[tuple[str, int]] = set()
        """Topics and ids of the queues so far."""
        self._new = 0

    def are_enough_with(self, topic: str, queue_id: int) -> bool:
        """Notes the queue of one more message; returns whether the write should end with it."""
        place = topic, queue_id
        if place not in self.seen:
            self.seen.add(place)
            self._new += not self._store.has_queue(topic, queue_id)
        return self._new >= ENOUGH
