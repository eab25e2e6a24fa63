# SPDX-License-Identifier: Apache-2.0
"""A connection some of whose requests are served from their bytes, before they become commands.

What such a handler takes is always the beginning of what has arrived, so all requests are served in
their order. It owns nothing of the stream: bytes that it leaves, and those of an unfinished frame,
are the decoder's, who hands them over when the frame is whole. While guards look at requests,
nothing is taken, unless there is only the one whose checks the handlers make. Whoever sends nothing
that is taken is soon asked for seldom.

There is a handler for each kind of request. The one that has served something last is asked first;
which other one might, the code says, which is looked up in the bytes.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Final, Protocol

from txrocketmq.remoting.call import Peer
from txrocketmq.remoting.command import RemotingCommand
from txrocketmq.remoting.dispatch import Dispatcher
from txrocketmq.remoting.frame.connection import Connection
from txrocketmq.remoting.frame.frame import begins_whole, first_code
from txrocketmq.remoting.guards import Guard, SigningGuard
from txrocketmq.remoting.rpc_times import RpcTimes
from txrocketmq.remoting.transport.peer_state import OPEN

if TYPE_CHECKING:
    from txrocketmq.remoting.transport.peer import TcpPeer

_MISSES: Final = 16
"""After how many reads in a row of which nothing was taken some are not looked at."""
_MOST_SKIPPED: Final = 1_024
"""How many reads are not looked at then, at most."""


class RawHandler(Protocol):
    """Serves requests from their bytes."""

    @property
    def request_codes(self) -> Collection[int]:
        """The codes of these requests."""

    @property
    def guard(self) -> SigningGuard | None:
        """The guard whose checks it makes, the same for all handlers of a server."""

    @property
    def taken(self) -> int:
        """How many requests were served so since the start."""

    def serve(self, peer: Peer, data: bytes, times: RpcTimes | None, origin: int) -> int:
        """Serves the requests with which the bytes begin; returns how many bytes they have.

        `origin` is the number that the guard has for the peer: then it serves only those that are
        signed and allowed from there. It is 0 if there is no guard.

        It serves only a limited number of them, and writes the answers to the peer. It counts in
        `times` how long they took.
        """

    def learn(self, peer: Peer, data: bytes, origin: int) -> bool:
        """Learns from the first request, which was not served; returns whether it is known now."""


class RawConnection(Connection):
    """The connection. `peer` is to be set before anything arrives."""

    peer: TcpPeer | None = None

    def __init__(
        self, dispatcher: Dispatcher, handlers: Sequence[RawHandler], portion_commands: int,
        portion_bytes: int,
    ) -> None:  # fmt: skip
        super().__init__(portion_commands=portion_commands, portion_bytes=portion_bytes)
        self._dispatcher = dispatcher
        self._handlers = handlers
        self._handler = handlers[0]
        """The one that has served something last."""
        self._guard = handlers[0].guard
        self._known_origin = 0
        self._misses = 0
        """How many reads in a row there were of which nothing was taken."""
        self._skips = 0
        """How many reads are not to be looked at."""

    # Every read passes here, so no call is made that can be avoided.
    def receive(self, data: bytes) -> list[RemotingCommand]:
        """Takes bytes that arrived, serves what it can, and returns the requests behind that."""
        peer, decoder = self.peer, self.decoder
        if self._skips:
            self._skips -= 1
            return super().receive(data)
        if peer is None or peer.state is not OPEN:
            return super().receive(data)
        origin, guards = 0, self._dispatcher.guards
        if guards and not (origin := self._origin(peer, guards)):
            return super().receive(data)
        if decoder.held_bytes:
            if decoder.has_commands:
                return super().receive(data)
            data = decoder.take_held(data)
            if not data:
                return []
        elif decoder.error is not None:
            return []
        at = self._handler.serve(peer, data, self._dispatcher.times, origin)
        if at == len(data):
            self._misses = 0
            return []
        at = self._serve_on(peer, data, at, origin)
        if at:
            if at == len(data):
                return []
            data = data[at:]
            if peer.state is not OPEN or not peer.turns.goes_on():
                decoder.keep(data)
                return []
        return super().receive(data)

    def lost(self, reason: Exception) -> None:
        """Fails all requests, because the connection is lost."""
        self.peer = None
        super().lost(reason)  # type: ignore[arg-type]

    def _origin(self, peer: TcpPeer, guards: Sequence[Guard]) -> int:
        """The number of where the peer asks from; 0 if nothing can be served from bytes."""
        guard = self._guard
        if guard is None or len(guards) > 1 or guards[0] is not guard:
            return 0
        if not self._known_origin:
            self._known_origin = guard.origin(peer)
        return self._known_origin

    def _serve_on(self, peer: TcpPeer, data: bytes, at: int, origin: int) -> int:
        """Serves what is behind the first requests, as long as it is the peer's turn, and learns
        what is not known; returns up to where.
        """
        times = self._dispatcher.times
        size = len(data)
        while at < size and begins_whole(data, at):
            if at and (peer.state is not OPEN or not peer.turns.goes_on()):
                break
            rest = data[at:] if at else data
            served = self._handler.serve(peer, rest, times, origin) if at else 0
            if not served:
                served = self._serve_by_code(peer, rest, times, origin)
            if not served:
                self._count(is_hit=at > 0)
                return at
            at += served
        if at:
            self._misses = 0
        return at

    def _serve_by_code(
        self, peer: TcpPeer, data: bytes, times: RpcTimes | None, origin: int
    ) -> int:
        """Has the first request served by the handler that its code belongs to, if that can."""
        code = first_code(data)
        for handler in self._handlers:
            if code in handler.request_codes:
                served = 0
                if handler is not self._handler:
                    served = handler.serve(peer, data, times, origin)
                if not served and handler.learn(peer, data, origin):
                    served = handler.serve(peer, data, times, origin)
                if served:
                    self._handler = handler
                return served
        return 0

    def _count(self, *, is_hit: bool) -> None:
        if is_hit:
            self._misses = 0
            return
        self._misses += 1
        if self._misses > _MISSES:
            self._skips = min(1 << (self._misses - _MISSES), _MOST_SKIPPED)
