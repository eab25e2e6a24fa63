# SPDX-License-Identifier: Apache-2.0
"""Patience: whatever needs what is not in memory waits until a thread has read it, and asks again.

    return self._patience.answer(request.peer, partial(self._found, request))

Nothing waits for the disk where everybody waits. The store raises NotInMemory instead, for whoever
asks; above the store this module alone catches it, and repeats what was asked once the disk has
delivered. In the end a question is asked without that condition (steps.py). There are three ways to
wait: `answer` for a request that looks something up, a walk (walks.py) for one that is served in
steps, and `Reading` for what the broker does by itself. Requests wait in the same way for whatever
else is NotYet: an expression that is still being compiled.

The number of reads under way is limited, for all together and for each peer; further reads wait,
and peers take turns. What the broker reads by itself comes first, but one read at a time, so that
neither takes the place of the other. When too many reads of peers wait, the next one is refused.
This module starts no threads: it is given a function that runs work in one.

The original reads in the threads of its pull processor, which are many.

Java: ColdDataCheckService, ColdDataCgCtrService, which slow consumers of old messages down.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeVar, cast

from txrocketmq.broker.store.disk.in_memory import ColdRead, NotInMemory, NotYet
from txrocketmq.broker.store.disk.steps import Steps, when_in_memory
from txrocketmq.broker.work.in_thread import InThread, at_once
from txrocketmq.remoting.call import Peer, PendingReply, Response
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.errors import ResponseError
from txrocketmq.remoting.host.life import Life
from txrocketmq.remoting.primitives.listeners import tell_all

AT_ONCE: Final = 4
"""How many reads may be under way. There are more threads than that, so a sync always finds one."""
AT_ONCE_OF_PEER: Final = 2
MAX_WAITING: Final = 10_000
"""How many reads of peers may wait; a further one is refused."""
RETRY_MS: Final = 10_000
"""How long the broker's own work pauses after a failure, in ms."""

BUSY: Final = (
    "too many requests wait for messages that are not in memory: the disk is too slow; try again"
    " later"
)

T = TypeVar("T")


Who = Any
"""Whoever something is read for: a peer, a part that serves many of them, or None: the broker."""
Until = Callable[[Peer, Callable[[], None]], None]
"""Something else than a read that a NotYet may ask to be awaited: it calls a function when it is
there, unless the peer has gone."""


def attempt(ask: Callable[[], T]) -> T | ColdRead:
    """Returns the result of `ask`, or the read that it has to wait for."""
    try:
        return ask()
    except NotInMemory as cold:
        return cold.read


@dataclass(slots=True, eq=False)
class _Waiting:
    read: ColdRead
    go_on: Callable[[ResponseError | None], None] | None
    """None once the peer has gone."""


class _OfPeer:
    """The reads under way and the waiting reads of one peer, or of the broker."""

    __slots__ = ("most", "under_way", "waiting")

    def __init__(self, most: int) -> None:
        self.most = most
        self.under_way: dict[_Waiting, None] = {}
        self.waiting: deque[_Waiting] = deque()


class Patience:
    """All reads of what is not in memory, and those who wait for them."""

    def __init__(self, in_thread: InThread = at_once) -> None:
        self._in_thread = in_thread
        self._peers: dict[Who, _OfPeer] = {}
        self._next: deque[Who] = deque()
        """The peers that have a waiting read which may begin, each of them once."""
        self._waiting = 0
        self._under_way = 0
        self._on_idle: Callable[[], None] | None = None

    def __len__(self) -> int:
        """How many reads are under way or waiting."""
        return self._under_way + self._waiting

    def answer(self, peer: Who, ask: Callable[[], Response]) -> Response:
        """Returns the result of `ask`, or a promise of it when that has to wait.

        `ask` is called again after each read. Its errors are raised, or are the outcome of the
        promise. Nothing comes when the peer has disconnected meanwhile.
        """
        try:
            return ask()
        except NotYet as reason:
            awaited = reason.awaited
        pending = PendingReply()
        self._go_on(peer, awaited, when_in_memory(ask), pending)
        return pending

    def _go_on(
        self, peer: Who, awaited: object, steps: Steps[Response], pending: PendingReply
    ) -> None:
        """Waits, and then takes steps to an answer, which only pause to wait once more."""

        def go_on(error: ResponseError | None) -> None:
            outcome: Response | Exception
            if error is not None:
                pending.resolve(error)
                return
            try:
                following = next(steps)
            except StopIteration as end:
                outcome = end.value
            except Exception as failure:  # noqa: BLE001 - it is the answer
                outcome = failure
            else:
                self._go_on(peer, following, steps, pending)
                return
            if isinstance(outcome, PendingReply):
                outcome.then(pending.resolve)
            else:
                pending.resolve(outcome)

        self.wait(peer, awaited, go_on)

    def wait(
        self,
        peer: Who,
        awaited: object,
        go_on: Callable[[ResponseError | None], None],
    ) -> None:
        """Calls `go_on` when what a NotYet awaits is there, or with the error why it will not be.

        It is not called at all when the peer has disconnected meanwhile. A continuation that must
        happen even then is awaited under another name than the peer.
        """
        if not isinstance(awaited, ColdRead):
            until: Until = cast("Until", awaited)
            until(peer, partial(go_on, None))
        elif self._on_idle is not None or (peer is not None and self._waiting >= MAX_WAITING):
            go_on(ResponseError(ResponseCode.SYSTEM_BUSY, BUSY))
        else:
            self._add(peer, _Waiting(awaited, go_on))

    def _add(self, peer: Who, waiting: _Waiting) -> None:
        of_peer = self._peers.get(peer)
        if of_peer is None:
            of_peer = self._peers[peer] = _OfPeer(1 if peer is None else AT_ONCE_OF_PEER)
        of_peer.waiting.append(waiting)
        self._waiting += 1
        if len(of_peer.waiting) == 1 and len(of_peer.under_way) < of_peer.most:
            self._comes_next(peer)
        self._begin()

    def disconnected(self, peer: Who, steady_ms: int) -> None:
        """Forgets the reads of a peer that has disconnected."""
        of_peer = self._peers.get(peer)
        if of_peer is None:
            return
        for under_way in of_peer.under_way:
            under_way.go_on = None
        self._waiting -= len(of_peer.waiting)
        of_peer.waiting.clear()
        if not of_peer.under_way:
            del self._peers[peer]

    def life(self) -> Life:
        """What peers wait for is forgotten when they go."""
        return Life("patience", forgets=self.disconnected)

    def stop(self, on_idle: Callable[[], None]) -> None:
        """Begins no further reads, and calls `on_idle` when no read is under way any more."""
        self._on_idle = on_idle
        for peer in list(self._peers):
            self.disconnected(peer, 0)
        if not self._under_way:
            on_idle()

    def _comes_next(self, peer: Who) -> None:
        if peer is None:
            self._next.appendleft(peer)
        else:
            self._next.append(peer)

    def _begin(self) -> None:
        while self._next and self._under_way < AT_ONCE:
            peer = self._next.popleft()
            of_peer = self._peers.get(peer)
            if of_peer is None or not of_peer.waiting:
                continue
            waiting = of_peer.waiting.popleft()
            of_peer.under_way[waiting] = None
            self._waiting -= 1
            self._under_way += 1
            if of_peer.waiting and len(of_peer.under_way) < of_peer.most:
                self._comes_next(peer)
            self._in_thread(waiting.read.run, partial(self._done, peer, of_peer, waiting))

    def _done(
        self, peer: Who, of_peer: _OfPeer, waiting: _Waiting, failure: Exception | None
    ) -> None:
        self._under_way -= 1
        del of_peer.under_way[waiting]
        read = waiting.read
        if failure is None:
            read.finish()
            failure = read.error
        if of_peer.waiting:
            if len(of_peer.under_way) == of_peer.most - 1:
                self._comes_next(peer)
        elif not of_peer.under_way and self._peers.get(peer) is of_peer:
            del self._peers[peer]
        try:
            if waiting.go_on is not None:
                waiting.go_on(None if failure is None else _unread(failure))
        finally:
            if self._on_idle is not None and not self._under_way:
                self._on_idle()
            else:
                self._begin()


def _unread(error: Exception) -> ResponseError:
    """Makes the answer to a request when the disk fails."""
    return ResponseError(
        ResponseCode.SYSTEM_ERROR, f"messages could not be read from the disk: {error}"
    )


class Reading:
    """Lets work that the broker does by itself wait for reads, or for a failure to end.

    Timers, delay levels, the check of transactions and the revival of popped messages have one
    each. Each function in `on_end` is called after a read.
    """

    def __init__(self, patience: Patience) -> None:
        self._patience = patience
        self._is_reading = False
        self._paused_until_ms: int | None = None
        self._has_failed = False
        self.is_to_go_on = False
        """Whether the last work was only a step of it, and is to be done again."""
        self.on_end: list[Callable[[], None]] = []

    def is_busy(self, steady_ms: int) -> bool:
        """Whether the work has to wait now, for a read or for the end of a pause."""
        if self._has_failed:
            self._has_failed = False
            self.pause(steady_ms)
        if self._paused_until_ms is not None and steady_ms >= self._paused_until_ms:
            self._paused_until_ms = None
        return self._is_reading or self._paused_until_ms is not None

    def pause(self, steady_ms: int) -> None:
        """Pauses the work for RETRY_MS."""
        self._paused_until_ms = steady_ms + RETRY_MS

    def work(self, do: Callable[[], T], steady_ms: int) -> T | None:
        """Does some work; returns None when it has to wait, and is to be done again after a read,
        or in the next slice: then `is_to_go_on` is set.

        One read is enough: another part of the work that has to wait meanwhile begins none.
        """
        self.is_to_go_on = False
        try:
            done = attempt(do)
        except NotYet:
            self.is_to_go_on = True
            return None
        if not isinstance(done, ColdRead):
            return done
        if not self.is_busy(steady_ms):
            self._is_reading = True
            self._patience.wait(None, done, self._ended)
        return None

    def _ended(self, error: ResponseError | None) -> None:
        self._is_reading = False
        self._has_failed = error is not None
        tell_all(self.on_end)
