# SPDX-License-Identifier: Apache-2.0
"""Which client of a group may consume a queue in order, and until when.

Counterpart of RebalanceLockManager. A lock lives 60 s after it was last taken; its owner takes it
again at will.
"""

from __future__ import annotations

from collections.abc import Iterable

from txrocketmq.remoting.message.message import MessageQueue

LOCK_LIVE_MS = 60_000
"""rocketmq.broker.rebalance.lockMaxLiveTime."""


class QueueLocks:
    """Locks by group and queue: owner and the time it was last taken."""

    def __init__(self) -> None:
        self._locks: dict[str, dict[MessageQueue, tuple[str, int]]] = {}

    def lock(
        self, group: str, client_id: str, queues: Iterable[MessageQueue], now_ms: int
    ) -> list[MessageQueue]:
        """Takes what is free, expired or the client's own; gives what it has now."""
        held = self._locks.setdefault(group, {})
        granted: list[MessageQueue] = []
        for queue in queues:
            owner, since_ms = held.get(queue, (client_id, now_ms))
            if owner == client_id or now_ms - since_ms > LOCK_LIVE_MS:
                held[queue] = (client_id, now_ms)
                granted.append(queue)
        return granted

    def unlock(self, group: str, client_id: str, queues: Iterable[MessageQueue]) -> None:
        """Gives back the client's own; those of others stay."""
        held = self._locks.get(group, {})
        for queue in queues:
            if held.get(queue, ("", 0))[0] == client_id:
                del held[queue]

    def expire(self, now_ms: int) -> None:
        """Forgets locks that are over, which anybody may take, so that they do not add up."""
        for group, held in list(self._locks.items()):
            live = {q: lock for q, lock in held.items() if now_ms - lock[1] <= LOCK_LIVE_MS}
            if live:
                self._locks[group] = live
            else:
                del self._locks[group]

    def all_expired(self, group: str, now_ms: int) -> bool:
        """Whether the group holds no live lock, so is no orderly one."""
        held = self._locks.get(group)
        if not held:
            return True
        return all(now_ms - since_ms > LOCK_LIVE_MS for _, since_ms in held.values())
