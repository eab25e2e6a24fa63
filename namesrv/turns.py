# SPDX-License-Identifier: Apache-2.0
"""Requests with much to do, such as a registration with all topics, served a slice at a time.

Between two slices everybody else is served. The requests of a peer are served in their order, and
peers take turns. What waits is held in memory, so its bytes are limited, for each peer and in all.

Java: has no counterpart; its requests run in pools of threads.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator
from typing import Any, Final, TypeVar

from txrocketmq.remoting.call import Peer, PendingReply, Reply
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.errors import ResponseError

SLICE_S: Final = 0.002
"""How long a request goes on, in seconds, while everybody else waits."""
MAX_BYTES_OF_PEER: Final = 32 * 1024 * 1024
MAX_BYTES: Final = 256 * 1024 * 1024
"""How many bytes of requests may wait."""
_A_REQUEST: Final = 1_024
"""How many bytes a request counts in addition to its body."""

Steps = Generator[None, None, Reply[Any]]
"""Serves a request, with a pause after each small step."""
Own = Generator[None, None, bool]
"""Work of the server itself; what it returns has no meaning, but is not None."""
T = TypeVar("T")


class Turns:
    """Serves requests in turns.

    `later` calls a function when all that is ready has been served; `timer` returns the seconds of
    a clock that nobody sets.
    """

    def __init__(
        self, later: Callable[[Callable[[], None]], object], timer: Callable[[], float]
    ) -> None:
        self._later = later
        self._timer = timer
        self._peers: dict[Peer, deque[tuple[Steps, PendingReply, int]]] = {}
        """The requests of each peer that are not answered yet, in their order."""
        self._in_turn: deque[Peer | None] = deque()
        """Those whose turn comes next; None is the server itself."""
        self._own: deque[tuple[Own, Callable[[Exception], None]]] = deque()
        """What the server does by itself, which has its turns like the requests of a peer."""
        self._is_due = False
        self._bytes: dict[Peer, int] = {}
        self._all_bytes = 0

    def answer(self, peer: Peer, steps: Steps, size_bytes: int = 0) -> Reply[Any] | PendingReply:
        """Returns the answer of a short request, or the promise of the answer of a long one.

        Raises what the first steps raise, and ResponseError when too much waits already.
        """
        waiting = self._peers.get(peer)
        if waiting is None:
            outcome = self._slice(steps)
            if outcome is not None:
                return outcome
        size_bytes += _A_REQUEST
        of_peer = self._bytes.get(peer, 0) + size_bytes
        if of_peer > MAX_BYTES_OF_PEER or self._all_bytes + size_bytes > MAX_BYTES:
            steps.close()
            raise ResponseError(
                ResponseCode.SYSTEM_BUSY, "too many registrations are waiting; try again later"
            )
        self._bytes[peer] = of_peer
        self._all_bytes += size_bytes
        pending = PendingReply(is_work=True)
        if waiting is None:
            waiting = self._peers[peer] = deque()
            self._add(peer)
        waiting.append((steps, pending, size_bytes))
        return pending

    def run(self, steps: Own, failed: Callable[[Exception], None]) -> None:
        """Takes steps that nobody waits for, in turns with all requests."""
        self._own.append((steps, failed))
        if len(self._own) == 1:
            self._add(None)

    def _add(self, peer: Peer | None) -> None:
        self._in_turn.append(peer)
        self._wake()

    def _wake(self) -> None:
        if not self._is_due:
            self._is_due = True
            self._later(self._go_on)

    def _run_own(self) -> bool:
        """Takes some steps of the server's own work; returns whether there are more."""
        steps, failed = self._own[0]
        try:
            is_over = self._slice(steps) is not None
        except Exception as error:  # noqa: BLE001 - it ends this work, and nothing else
            is_over = True
            failed(error)
        if is_over:
            self._own.popleft()
        return bool(self._own)

    def _slice(self, steps: Generator[None, None, T]) -> T | None:
        timer = self._timer
        end_s = timer() + SLICE_S
        try:
            next(steps)
            while timer() < end_s:
                next(steps)
        except StopIteration as end:
            answer: T = end.value
            return answer
        return None

    def _go_on(self) -> None:
        self._is_due = False
        peer = self._in_turn.popleft()
        if peer is not None:
            self._serve(peer)
            return
        if self._run_own():
            self._in_turn.append(None)
        if self._in_turn:
            self._wake()

    def _serve(self, peer: Peer) -> None:
        """Goes on with the first request of a peer."""
        waiting = self._peers[peer]
        outcome: Reply[Any] | Exception | None = None
        steps, pending, _ = waiting[0]
        if peer.connected:
            try:
                outcome = self._slice(steps)
            except Exception as error:  # noqa: BLE001 - it is the answer
                outcome = error
            if outcome is not None:
                self._done(peer)
        else:
            while waiting:
                waiting[0][0].close()
                self._done(peer)
        if waiting:
            self._in_turn.append(peer)
        else:
            del self._peers[peer], self._bytes[peer]
        if self._in_turn:
            self._wake()
        if outcome is not None:
            pending.resolve(outcome)  # last: whatever comes of it, the others have their turns

    def _done(self, peer: Peer) -> None:
        _, _, size_bytes = self._peers[peer].popleft()
        self._bytes[peer] -= size_bytes
        self._all_bytes -= size_bytes
