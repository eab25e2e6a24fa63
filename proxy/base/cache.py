# SPDX-License-Identifier: Apache-2.0
"""What was asked of servers, kept for a while: routes, types of topics, settings of groups.

What is used is asked for again after a while, once at a time, and the old value serves until the
answer has come; if asking fails, it serves on. What is not used is forgotten, and so is the oldest
when there is too much. There is no work but what a use causes.

Java: the LoadingCaches of TopicRouteService and ClusterMetadataService (refreshAfterWrite,
expireAfterAccess).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Coroutine
from typing import Any, Final, Generic, TypeVar

from twisted.internet.defer import Deferred
from twisted.logger import Logger
from twisted.python.failure import Failure

from txrocketmq.client.base.errors import MQClientError
from txrocketmq.remoting.errors import RemotingError
from txrocketmq.remoting.host.clock import Clock

MAX_KEPT: Final = 20_000
"""How many values are kept at most."""
RETRY_MS: Final = 1_000
"""After which time it is asked again after a failure, while there is an old value."""
K = TypeVar("K")
V = TypeVar("V")

log = Logger()


class _Kept(Generic[V]):
    __slots__ = ("asked_ms", "due_ms", "used_ms", "value")

    def __init__(self, value: V, now_ms: int, refresh_ms: int) -> None:
        self.value = value
        self.asked_ms = self.used_ms = now_ms
        self.due_ms = now_ms + refresh_ms


class Cache(Generic[K, V]):
    """Values by key; `ask` returns one, or None for a key that has none, which is not kept."""

    def __init__(
        self,
        clock: Clock,
        ask: Callable[[K], Coroutine[Any, Any, V | None]],
        refresh_ms: int,
        expire_ms: int,
        max_kept: int = MAX_KEPT,
    ) -> None:
        self._clock = clock
        self._ask = ask
        self._refresh_ms = refresh_ms
        self._expire_ms = expire_ms
        self._max_kept = max_kept
        self._kept: OrderedDict[K, _Kept[V]] = OrderedDict()
        self._asking: dict[K, list[Deferred[V | None]]] = {}

    def __len__(self) -> int:
        return len(self._kept)

    def known(self, key: K) -> V | None:
        """Returns the value if there is one, without waiting."""
        kept = self._kept.get(key)
        if kept is None:
            return None
        now_ms = self._clock.steady_ms()
        if now_ms - kept.used_ms > self._expire_ms:
            del self._kept[key]
            return None
        if kept.used_ms != now_ms:  # else it is among the last already
            kept.used_ms = now_ms
            self._kept.move_to_end(key)
        if now_ms >= kept.due_ms:
            kept.asked_ms, kept.due_ms = now_ms, now_ms + RETRY_MS
            self.refresh(key).addErrback(self._log, key)
        return kept.value

    async def get(self, key: K) -> V | None:
        """Returns the value, or None if there is none. Raises what asking for it raises."""
        value = self.known(key)
        return await self.refresh(key) if value is None else value

    def doubt(self, key: K) -> None:
        """Has a value asked for again at its next use, but not more often than every second."""
        kept = self._kept.get(key)
        if kept is not None:
            kept.due_ms = min(kept.due_ms, kept.asked_ms + RETRY_MS)

    def refresh(self, key: K) -> Deferred[V | None]:
        """Asks for a value now, once at a time."""
        result: Deferred[V | None] = Deferred()
        waiting = self._asking.setdefault(key, [])
        waiting.append(result)
        if len(waiting) == 1:
            Deferred.fromCoroutine(self._ask(key)).addBoth(self._answered, key)
        return result

    def _answered(self, outcome: V | Failure | None, key: K) -> None:
        waiting = self._asking.pop(key)
        if not isinstance(outcome, Failure):
            self._kept.pop(key, None)
            if outcome is not None:
                self._kept[key] = _Kept(outcome, self._clock.steady_ms(), self._refresh_ms)
                self._forget_old()
        for each in waiting:
            if not each.called:  # otherwise its call was cancelled
                each.callback(outcome)

    def _forget_old(self) -> None:
        now_ms = self._clock.steady_ms()
        for _ in range(2):  # more than come in, so that all that is old goes at some time
            key, first = next(iter(self._kept.items()))
            if len(self._kept) <= self._max_kept and now_ms - first.used_ms <= self._expire_ms:
                break
            del self._kept[key]

    def _log(self, failure: Failure, key: K) -> None:
        if failure.check(MQClientError, RemotingError) is None:
            log.failure("asking about {key} failed", failure, key=key)
        else:
            log.warn("asking about {key} failed: {e}", key=key, e=failure.getErrorMessage())
