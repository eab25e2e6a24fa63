# SPDX-License-Identifier: Apache-2.0
"""Which client of a group may consume a queue in order, and for how long.

Counterpart of RebalanceLockManager. A lock lasts 60 s after it was last taken; its owner may take
it again at any time.
"""

from __future__ import annotations

from collections.abc import Iterable

from txrocketmq.broker.store.disk.steps import Steps
from txrocketmq.broker.work.life import EXPIRE_MS, Life, WalkBeat
from txrocketmq.remoting.message.message import MessageQueue

_LOCKS_A_STEP = 32
LOCK_LIVE_MS = 60_000
"""How long a lock lasts, in ms: the original's rocketmq.broker.rebalance.lockMaxLiveTime."""


class QueueLocks:
    """Locks by group and queue, with the owner and the time of the last renewal."""

    def __init__(self) -> None:
        self._locks: dict[str, dict[MessageQueue, tuple[str, int]]] = {}

    def lock(
        self, group: str, client_id: str, queues: Iterable[MessageQueue], steady_ms: int
    ) -> list[MessageQueue]:
        """Locks queues that are free, expired or the client's own; returns those that it holds
        now.
        """
        held = self._locks.setdefault(group, {})
        granted: list[MessageQueue] = []
        for queue in queues:
            owner, since_ms = held.get(queue, (client_id, steady_ms))
            if owner == client_id or steady_ms - since_ms > LOCK_LIVE_MS:
                held[queue] = (client_id, steady_ms)
                granted.append(queue)
        return granted

    def unlock(self, group: str, client_id: str, queues: Iterable[MessageQueue]) -> None:
        """Releases the client's own locks; those of others stay."""
        held = self._locks.get(group, {})
        for queue in queues:
            if held.get(queue, ("", 0))[0] == client_id:
                del held[queue]

    def expire(self, steady_ms: int) -> Steps[None]:
        """Forgets expired locks, so that they do not add up."""
        for group, held in list(self._locks.items()):
            for count, queue in enumerate(list(held), 1):
                lock = held.get(queue)
                if lock is not None and steady_ms - lock[1] > LOCK_LIVE_MS:
                    del held[queue]
                if count % _LOCKS_A_STEP == 0:
                    yield
            if not held and self._locks.get(group) is held:
                del self._locks[group]
            yield

    def life(self) -> Life:
        """Expired locks are forgotten."""
        expire = WalkBeat(EXPIRE_MS, "forgetting locks", lambda _, steady: self.expire(steady))
        return Life("locks of queues", beats=(expire,))

    def all_expired(self, group: str, steady_ms: int) -> bool:
        """Whether the group holds no live lock, so does not consume in order now."""
        held = self._locks.get(group)
        if not held:
            return True
        return all(steady_ms - since_ms > LOCK_LIVE_MS for _, since_ms in held.values())
