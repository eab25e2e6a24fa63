# SPDX-License-Identifier: Apache-2.0
"""Reads in threads what is not in memory, and continues the requests that wait for it.

This way consumers of old messages do not stop the reactor's thread while the disk is slow. The
number of reads under way is limited, for all peers and for each one; further reads wait. Peers take
turns, and the reads of one peer keep their order. This module starts no threads: it is given a
function that runs work in one.

The original reads in the threads of its pull processor, which are many.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from txrocketmq.broker.store.disk.in_memory import ColdRead, NotInMemory
from txrocketmq.broker.store.disk.steps import MOST_READS, Ask
from txrocketmq.remoting.call import Peer, PendingReply, Reply
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.errors import ResponseError
from txrocketmq.remoting.host.life import Life

AT_ONCE: Final = 4
"""How many reads may be under way. There are more threads than that, so a sync always finds one."""
AT_ONCE_OF_PEER: Final = 2
MAX_WAITING: Final = 10_000
"""How many reads may wait; a further one is refused."""

BUSY: Final = "too many requests wait for messages that are not in memory: the disk is too slow"

Who = Any
"""Whoever something is read for: a peer, or a part of the broker."""
InThread = Callable[[Callable[[], None], Callable[[], None]], None]
"""Calls the first function where it may block, and then the second one in the caller's thread.

The second one is called even if the first one raises.
"""


def at_once(work: Callable[[], None], done: Callable[[], None]) -> None:
    """An InThread that runs both functions at once, for users without threads."""
    work()
    done()


class OneByOne:
    """An InThread for the broker's own reads: it runs those of all parts one after the other.

    So they never take all the threads that requests and syncs of the log need.
    """

    def __init__(self, in_thread: InThread) -> None:
        self._in_thread = in_thread
        self._waiting: deque[tuple[Callable[[], None], Callable[[], None]]] = deque()
        self._is_running = False

    def __call__(self, work: Callable[[], None], done: Callable[[], None]) -> None:
        """Runs `work` when those before it are done, and then calls `done`."""
        self._waiting.append((work, done))
        if not self._is_running:
            self._begin()

    def _begin(self) -> None:
        work, done = self._waiting.popleft()
        self._is_running = True
        self._in_thread(work, lambda: self._done(done))

    def _done(self, done: Callable[[], None]) -> None:
        self._is_running = False
        if self._waiting:
            self._begin()
        done()


@dataclass(slots=True, eq=False)
class _Waiting:
    read: ColdRead
    go_on: Callable[[], None] | None
    """None once the peer has gone."""


class _OfPeer:
    """The reads under way and the waiting reads of one peer."""

    __slots__ = ("under_way", "waiting")

    def __init__(self) -> None:
        self.under_way: dict[_Waiting, None] = {}
        self.waiting: deque[_Waiting] = deque()


class ColdReads:
    """All reads of what is not in memory."""

    def __init__(self, in_thread: InThread) -> None:
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

    def add(self, peer: Who, read: ColdRead, go_on: Callable[[], None]) -> bool:
        """Queues a read, and calls `go_on` when it is done; returns False when too many reads wait.

        `go_on` is not called when the peer has disconnected meanwhile. A continuation that must
        happen even then is added under another name than the peer.
        """
        if self._waiting >= MAX_WAITING or self._on_idle is not None:
            return False
        of_peer = self._peers.setdefault(peer, _OfPeer())
        of_peer.waiting.append(_Waiting(read, go_on))
        self._waiting += 1
        if len(of_peer.waiting) == 1 and len(of_peer.under_way) < AT_ONCE_OF_PEER:
            self._next.append(peer)
        self._begin()
        return True

    def answer(self, peer: Who, ask: Ask[Reply[Any] | PendingReply]) -> Reply[Any] | PendingReply:
        """Returns the result of `ask`, or a promise of it when data is not in memory.

        `ask` is called again after each read, and after the last one allowed without checking
        memory: on a machine that is very short of memory, what was read may already be gone again.
        """
        pending, left = PendingReply(), MOST_READS

        def go_on(read: ColdRead | None = None) -> Reply[Any] | PendingReply | None:
            nonlocal left
            left -= 1
            if read is not None and read.error is not None:
                raise unread(read.error)
            try:
                return ask(only_in_memory=left > 0)
            except NotInMemory as cold:
                wanted = cold.read
            if not self.add(peer, wanted, lambda: again(wanted)):
                raise ResponseError(ResponseCode.SYSTEM_BUSY, BUSY)
            return None

        def again(read: ColdRead) -> None:
            outcome: Reply[Any] | PendingReply | Exception | None
            try:
                outcome = go_on(read)
            except Exception as error:  # noqa: BLE001 - it is the answer
                outcome = error
            if isinstance(outcome, PendingReply):
                outcome.then(pending.resolve)
            elif outcome is not None:
                pending.resolve(outcome)

        return go_on() or pending

    def disconnected(self, peer: Peer, steady_ms: int) -> None:
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
        return Life("cold reads", forgets=self.disconnected)

    def stop(self, on_idle: Callable[[], None]) -> None:
        """Begins no further reads, and calls `on_idle` when no read is under way any more."""
        self._on_idle = on_idle
        for peer in list(self._peers):
            self.disconnected(peer, 0)
        if not self._under_way:
            on_idle()

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
            if of_peer.waiting and len(of_peer.under_way) < AT_ONCE_OF_PEER:
                self._next.append(peer)
            self._run(peer, of_peer, waiting)

    def _run(self, peer: Who, of_peer: _OfPeer, waiting: _Waiting) -> None:
        self._in_thread(waiting.read.run, lambda: self._done(peer, of_peer, waiting))

    def _done(self, peer: Who, of_peer: _OfPeer, waiting: _Waiting) -> None:
        self._under_way -= 1
        del of_peer.under_way[waiting]
        waiting.read.finish()
        if of_peer.waiting:
            if len(of_peer.under_way) == AT_ONCE_OF_PEER - 1:
                self._next.append(peer)
        elif not of_peer.under_way and self._peers.get(peer) is of_peer:
            del self._peers[peer]
        if waiting.go_on is not None:
            waiting.go_on()
        if self._on_idle is not None and not self._under_way:
            self._on_idle()
            return
        self._begin()


def unread(error: OSError) -> ResponseError:
    """Makes the answer to a request when the disk fails."""
    return ResponseError(
        ResponseCode.SYSTEM_ERROR, f"messages could not be read from the disk: {error}"
    )
