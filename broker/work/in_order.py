# SPDX-License-Identifier: Apache-2.0
"""Requests of one peer that are served one after another, although some take several turns.

A client that says that it leaves must not be registered by its own heartbeat that is still under
way, and of two heartbeats the later one counts. Java: has no counterpart; its heartbeats and
unregistrations run in a pool of threads, where the one may overtake the other.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from txrocketmq.broker.store.disk.steps import Steps
from txrocketmq.broker.work.walks import Walks
from txrocketmq.remoting.call import Peer, PendingReply, Reply, Response
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.errors import ResponseError
from txrocketmq.remoting.host.life import Life

MAX_WAITING: Final = 64
"""How many requests of a peer may wait behind one that is under way."""

Serve = Callable[[], Response]


class InOrder:
    """The requests that are under way, and those that wait behind them; `walks` serves the latter
    in turns with everything else.
    """

    def __init__(self, walks: Walks) -> None:
        self._walks = walks
        self._waiting: dict[Peer, deque[tuple[Serve, PendingReply]]] = {}
        """By peers that have a request under way: what waits for it."""

    def answer(self, peer: Peer, serve: Serve) -> Response:
        """Returns what `serve` returns, at once or when the earlier requests are answered.

        Raises what it raises, and ResponseError when too many wait.
        """
        waiting = self._waiting.get(peer)
        if waiting is None:
            outcome = serve()
            if not isinstance(outcome, PendingReply) or outcome.done:
                return outcome
            pending = PendingReply(is_work=outcome.is_work)
            self._waiting[peer] = deque()
            outcome.then(partial(self._ended, peer, pending))
            return pending
        if len(waiting) >= MAX_WAITING:
            raise ResponseError(
                ResponseCode.SYSTEM_BUSY,
                f"{MAX_WAITING} heartbeats and unregistrations of this connection wait already:"
                " try again later",
            )
        pending = PendingReply(is_work=True)
        waiting.append((serve, pending))
        return pending

    def disconnected(self, peer: Peer, steady_ms: int) -> None:
        """Forgets what a peer that has gone still wanted."""
        self._waiting.pop(peer, None)

    def life(self) -> Life:
        """What waits is forgotten when its peer goes."""
        return Life("requests in order", forgets=self.disconnected)

    def _ended(self, peer: Peer, pending: PendingReply, outcome: Reply[Any] | Exception) -> None:
        try:
            pending.resolve(outcome)
        finally:
            waiting = self._waiting.get(peer)
            if waiting:
                self._walks.run(self._go_on(peer, waiting), pending.resolve)
            else:
                self._waiting.pop(peer, None)

    def _go_on(self, peer: Peer, waiting: deque[tuple[Serve, PendingReply]]) -> Steps[None]:
        """Serves what waits, until one of it takes several turns."""
        while waiting and self._waiting.get(peer) is waiting:
            serve, pending = waiting.popleft()
            outcome: Response | Exception
            try:
                outcome = serve()
            except Exception as error:  # noqa: BLE001 - it is the answer of this one
                outcome = error
            if isinstance(outcome, PendingReply):
                if not outcome.done:
                    outcome.then(partial(self._ended, peer, pending))
                    return
                outcome.then(pending.resolve)
            else:
                pending.resolve(outcome)
            yield
        if self._waiting.get(peer) is waiting:
            del self._waiting[peer]
