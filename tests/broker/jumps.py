# SPDX-License-Identifier: Apache-2.0
"""A log that has lost its first files, and the readers that say so."""

from __future__ import annotations

from tests.broker.conftest import Parts
from txrocketmq.broker.store.get.jumps import Jump


def lost_before(parts: Parts, topic: str, queue_id: int, offset: int) -> None:
    """Lets a queue begin at an offset, as it does when the log has lost the messages before it."""
    queue = parts.store._queues.find(topic, queue_id)
    assert queue is not None
    queue.min_offset = offset


def told_jumps(parts: Parts) -> list[tuple[Jump, int]]:
    """Returns what is told of jumps with the next tick, and is not told again."""
    told: list[tuple[Jump, int]] = []
    parts.store.jumps.listeners = [lambda *what: told.append(what)]
    parts.store.jumps.tick()
    parts.store.jumps.tick()
    return told
