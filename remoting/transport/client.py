# SPDX-License-Identifier: Apache-2.0
"""The client side: one connection for each address, opened when it is first needed.

Counterpart of NettyRemotingClient. Requests that come while a connection is being opened wait for
it; if it cannot be opened, they fail with ConnectError. A connection is given up if the time of a
request passes and its peer sends nothing else either, as with clientCloseSocketIfTimeout: a network
that drops a connection tells nobody. Peers may send requests, too; these go to the dispatcher that
was given.

A server that stops in order answers GO_AWAY to the requests it no longer serves. Such a request is
repeated once, within its time, on a new connection, where a load balancer may lead to another
server; the old connection is closed when all its answers have come (enableReconnectForGoAway).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from twisted.internet.abstract import isIPAddress, isIPv6Address
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.error import ConnectingCancelledError, DNSLookupError
from twisted.internet.error import TimeoutError as ConnectTimeout
from twisted.internet.interfaces import IAddress
from twisted.internet.protocol import Factory
from twisted.python.failure import Failure

from txrocketmq.remoting.call import Call, PendingReply, Reply
from txrocketmq.remoting.command import RemotingCommand
from txrocketmq.remoting.dispatch import Dispatcher, Registry
from txrocketmq.remoting.errors import ConnectError, RequestTimeout, SendError
from txrocketmq.remoting.frame.connection import InFlight, Seal
from txrocketmq.remoting.header import Header
from txrocketmq.remoting.host.clock import Clock
from txrocketmq.remoting.primitives.listeners import tell_all
from txrocketmq.remoting.transport.asking.asking_peer import AskingPeer
from txrocketmq.remoting.transport.peer import TcpPeer

if TYPE_CHECKING:
    import ssl

CONNECT_TIMEOUT_MS = 3_000
"""How many ms it may take to open a connection (connectTimeoutMillis)."""
_LOOK_UP_MS = 1_000
"""How many more ms are allowed for looking up a name."""
_EXPIRE_MS = 200
_READS_FIRST = 4
"""For how many turns of the reactor, in which answers are read, it is waited before requests fail
whose time is over: the answers may be there already, if a turn was long."""
_FIRST_PAUSE_MS = 100
"""How many ms no connection is tried after the second failure in a row. Each further failure
doubles the pause, up to _LAST_PAUSE_MS."""
_LAST_PAUSE_MS = 1_000
GOING_MS = 1_000
"""For how many ms no connection to an address is tried after a request that had been repeated on a
new connection was answered GO_AWAY there, too."""
_MAX_FAILURES = 10_000
_PATIENCE_MS = 3_000
"""For how long after a long turn of the reactor requests have more time."""
_NOT_IN_HOSTS = frozenset(" ,;/")
"""What separates addresses, or is a part of a URL."""


def parse_address(address: str) -> tuple[str, int]:
    """Returns host and port of "host:port" or "[ip6]:port". Raises ValueError for others."""
    host, colon, port = address.strip().rpartition(":")
    is_port = port.isascii() and port.isdigit() and 0 < int(port) < 65_536
    if not colon or not is_port or not host or not _NOT_IN_HOSTS.isdisjoint(host):
        raise ValueError(f'"{address}" is not an address: it should look like 127.0.0.1:9876')
    return host.strip("[]"), int(port)


def _reason(failure: Failure) -> str:
    """Returns the operating system's text for an error, if it has one; Twisted's says it twice.

    For an attempt that was given up, Twisted's text is the repr of an address.
    """
    if failure.check(ConnectingCancelledError, ConnectTimeout, CancelledError):
        return f"no answer within {CONNECT_TIMEOUT_MS // 1000} s"
    if failure.check(DNSLookupError):
        return "the name of the host is not found"
    number = getattr(failure.value, "osError", None)
    if isinstance(number, int):
        return os.strerror(number)
    return failure.getErrorMessage()


def _endpoint(reactor: Any, host: str, port: int) -> Any:
    """Returns an endpoint for a host; it looks up names only, because that takes a thread.

    It does not give up by itself: it would not notice that a connection was opened while the
    reactor was busy.
    """
    # Imported at the first use, for the sake of name servers, which hardly ever connect to anyone.
    from twisted.internet import endpoints  # noqa: PLC0415

    if isIPAddress(host):
        make: Any = endpoints.TCP4ClientEndpoint
    else:
        make = endpoints.TCP6ClientEndpoint if isIPv6Address(host) else endpoints.HostnameEndpoint
    return make(reactor, host, port, timeout=None)


def as_deferred(pending: PendingReply) -> Deferred[Reply[Any]]:
    """Wraps a pending reply in a Deferred, for code that awaits it."""
    deferred: Deferred[Reply[Any]] = Deferred()
    pending.then(
        lambda outcome: (
            deferred.errback(Failure(outcome))
            if isinstance(outcome, Exception)
            else deferred.callback(outcome)
        )
    )
    return deferred


class _PeerFactory(Factory):
    noisy = False

    def __init__(self, make: Callable[[], TcpPeer]) -> None:
        self._make = make

    def buildProtocol(self, addr: IAddress | None) -> TcpPeer:
        return self._make()


def _plain(*arguments: Any, **named: Any) -> TcpPeer:
    return AskingPeer(*arguments, **named)


def _secured(tls: Callable[[], ssl.SSLContext], host: str) -> Callable[..., TcpPeer]:
    # Not at the top: whoever does not encrypt does without it.
    from txrocketmq.remoting.transport.tls.secured_peer import SecuredPeer  # noqa: PLC0415

    return partial(SecuredPeer, tls(), host)


class LongTurns:
    """The time by which requests are judged: what a long turn of the reactor took does not count.

    A program may begin very many requests in one turn, and nothing can leave or arrive before it
    ends. In the few seconds after it, requests are judged by a time before the turn; those after
    that by the steady clock again, so that a lost peer is noticed also by a program that is always
    busy. `looked` is to be called every _EXPIRE_MS, from which follows how long a turn was.
    """

    def __init__(self, steady_ms: int) -> None:
        self._looked_ms = steady_ms
        self._took_ms = 0
        self._until_ms = 0

    def looked(self, steady_ms: int) -> int:
        """Returns the time to judge by, and notes that the reactor is free at this moment."""
        judged_ms = self.judged_ms(steady_ms)
        self._looked_ms = steady_ms
        return judged_ms

    def judged_ms(self, steady_ms: int) -> int:
        """Returns the time to judge by."""
        took_ms = steady_ms - self._looked_ms - _EXPIRE_MS
        if steady_ms >= self._until_ms:
            self._took_ms = 0
        if took_ms > _EXPIRE_MS:
            self._took_ms = max(took_ms, self._took_ms)
            self._until_ms = steady_ms + _PATIENCE_MS
        return steady_ms - self._took_ms


class Connections:
    """Connections by address; `invoke` and `invoke_oneway` find or open the one they need.

    `seal` sees each request before it leaves. With `tls`, connections are encrypted by what it
    returns when they begin. After repeated
    failures to connect to an address, no attempt is made for a while, which grows with each
    failure; meanwhile requests to this address fail at once.
    """

    def __init__(
        self,
        clock: Clock,
        dispatcher: Dispatcher | None = None,
        *,
        seal: Seal | None = None,
        tls: Callable[[], ssl.SSLContext] | None = None,
    ) -> None:
        self._clock = clock
        self._seal = seal
        self._tls = tls
        self.places: dict[str, str] = {}
        """Where an address is really found, if others are told another one than is true here."""
        self.on_connected: Callable[[str], None] | None = None
        """Called with the address of each connection that was opened."""
        self._failures: dict[str, tuple[int, int]] = {}
        """By address: how many attempts in a row have failed, and before which time (of the steady
        clock) none is made."""
        self._dispatcher = dispatcher or Dispatcher(Registry(), clock.now_ms, clock.steady_ms)
        self._peers: dict[str, TcpPeer] = {}
        self._leaving: set[TcpPeer] = set()
        """Peers that have said GO_AWAY and still owe answers, for example to pulls that wait."""
        self._repeated: set[PendingReply] = set()
        """Requests that were sent again because of GO_AWAY, and have no answer yet."""
        self._connecting: dict[str, list[Callable[[TcpPeer | ConnectError], None]]] = {}
        self._attempts: dict[str, Deferred[Any]] = {}
        self._given_up_ms: dict[str, int] = {}
        """By address: when to give up an attempt, which may last, as when a name is looked up."""
        self._when_free: dict[str, list[Callable[[], None]]] = {}
        """By address: what waits until a connection, whose peer does not read, takes more."""
        self._closed = False
        self._turns = LongTurns(clock.steady_ms())
        self._expire = clock.every(_EXPIRE_MS, self._expire_all)

    def invoke(
        self,
        address: str,
        call: Call[Any, Any],
        header: Header,
        body: bytes = b"",
        *,
        timeout_ms: int,
    ) -> PendingReply:
        """Sends a request to an address.

        Returns a pending reply, which gets the Reply, whatever its code, or a RemotingError.
        """
        peer = self._peers.get(address)
        if peer is not None:
            return peer.invoke(call, header, body, timeout_ms=timeout_ms)
        promise = PendingReply()
        self._ask(
            address,
            self._clock.steady_ms() + timeout_ms,
            lambda peer, left_ms: peer.invoke(call, header, body, timeout_ms=left_ms),
            promise.resolve,
        )
        return promise

    def invoke_oneway(
        self, address: str, call: Call[Any, Any], header: Header, body: bytes = b""
    ) -> bool:
        """Sends a request that has no answer; it is lost if no connection can be opened.

        Returns whether the connection takes more. Otherwise more has been written than its peer has
        read, or it is being opened; what is written all the same waits in memory.
        """
        peer = self._peers.get(address)
        if peer is not None:
            peer.invoke_oneway(call, header, body)
            return peer.reads

        def connected(outcome: TcpPeer | ConnectError) -> None:
            if isinstance(outcome, TcpPeer):
                outcome.invoke_oneway(call, header, body)

        self._connect(address, connected)
        return address not in self._connecting

    def takes_more(self, address: str) -> bool:
        """Returns whether the connection to an address takes more; one is opened if there is none.

        Otherwise more has been written than its peer has read, or it is being opened.
        """
        peer = self._peers.get(address)
        return address not in self._connecting if peer is None else peer.reads

    def when_free(self, address: str, then: Callable[[], None]) -> None:
        """Calls a function once when the connection to an address takes more, or has ended."""
        if address in self._connecting:
            self._connecting[address].append(lambda _: then())
        elif (peer := self._peers.get(address)) is not None and not peer.reads:
            peer.on_free = partial(self._freed, address)
            self._when_free.setdefault(address, []).append(then)
        else:
            then()

    def close(self) -> None:
        """Closes all connections; requests fail from then on."""
        self._closed = True
        self._expire.cancel()
        for attempt in list(self._attempts.values()):
            attempt.cancel()
        for peer in [*self._peers.values(), *self._leaving]:
            peer.close()

    def _ask(
        self,
        address: str,
        deadline_ms: int,
        ask: Callable[[TcpPeer, int], PendingReply],
        then: Callable[[Reply[Any] | Exception], None],
    ) -> None:
        """Sends a request as soon as there is a connection, within the time that is left."""

        def connected(outcome: TcpPeer | ConnectError) -> None:
            if isinstance(outcome, ConnectError):
                then(outcome)
                return
            left_ms = deadline_ms - self._turns.judged_ms(self._clock.steady_ms())
            if left_ms <= 0:
                then(RequestTimeout(f"no connection to {address} in time"))
                return
            ask(outcome, left_ms).then(then)

        self._connect(address, connected)

    def _told_to_go(self, address: str) -> Callable[[TcpPeer, InFlight], None]:
        def told(peer: TcpPeer, asked: InFlight) -> None:
            if self._peers.get(address) is peer:
                del self._peers[address]
                self._leaving.add(peer)
            if asked not in self._repeated:
                self._repeat(address, asked)
                return
            # The servers at this address are stopping: no connection is made for each request.
            self._failures[address] = 0, self._clock.steady_ms() + GOING_MS
            asked.resolve(SendError(f"{address} stops: it said GO_AWAY on a new connection too"))

        return told

    def _repeat(self, address: str, asked: InFlight) -> None:
        repeated: list[PendingReply] = []

        def ask(peer: TcpPeer, left_ms: int) -> PendingReply:
            again = peer.invoke(asked.call, asked.header, asked.body, timeout_ms=left_ms)
            self._repeated.add(again)
            repeated.append(again)
            return again

        def answered(outcome: Reply[Any] | Exception) -> None:
            self._repeated.difference_update(repeated)
            asked.resolve(outcome)

        self._ask(address, asked.deadline_ms, ask, answered)

    def _connect(self, address: str, then: Callable[[TcpPeer | ConnectError], None]) -> None:
        peer = self._peers.get(address)
        if peer is not None:
            then(peer)
            return
        if self._closed:
            then(ConnectError(f"connect to {address} failed: this client is closed"))
            return
        count, not_before_ms = self._failures.get(address, (0, 0))
        again_in_ms = not_before_ms - self._clock.steady_ms()
        if address not in self._connecting and again_in_ms > 0:
            why = f"failed {count} times, the last time just now" if count else "waits: it stops"
            then(ConnectError(f"connect to {address} {why}", again_in_ms))
            return
        waiting = self._connecting.setdefault(address, [])
        waiting.append(then)
        if len(waiting) > 1:
            return
        try:
            host, port = parse_address(self.places.get(address, address))
        except ValueError as error:
            self._connected(address, ConnectError(str(error)))
            return
        endpoint = _endpoint(self._clock.reactor, host, port)
        kind: Callable[..., TcpPeer] = _plain if self._tls is None else _secured(self._tls, host)
        factory = _PeerFactory(
            lambda: kind(
                self._clock,
                self._serve,
                self._peer_closed(address),
                seal=self._seal,
                gathers=True,
                told_to_go=self._told_to_go(address),
            )
        )
        attempt: Deferred[Any] = endpoint.connect(factory)
        if self._tls is not None:
            attempt.addCallback(lambda peer: peer.secured)
        self._attempts[address] = attempt
        is_name = not (isIPAddress(host) or isIPv6Address(host))
        self._given_up_ms[address] = (
            self._clock.steady_ms() + CONNECT_TIMEOUT_MS + (_LOOK_UP_MS if is_name else 0)
        )
        attempt.addCallbacks(
            lambda peer: self._connected(address, peer),
            lambda failure: self._connected(
                address, ConnectError(f"connect to {address} failed: {self._why(failure)}")
            ),
        )

    def _serve(
        self, peer: TcpPeer, commands: list[RemotingCommand], goes_on: Callable[[], bool]
    ) -> int:
        return self._dispatcher.serve(peer, commands, goes_on)

    def _connected(self, address: str, outcome: Any) -> None:
        self._attempts.pop(address, None)
        self._given_up_ms.pop(address, None)
        waiting = self._connecting.pop(address, [])
        if isinstance(outcome, TcpPeer):
            if self._closed:
                outcome.close()
            self._failures.pop(address, None)
            self._peers[address] = outcome
        else:
            self._failed(address)
        try:
            tell_all(waiting, outcome)
        finally:
            if isinstance(outcome, TcpPeer) and self.on_connected and not self._closed:
                self.on_connected(address)

    def _why(self, failure: Failure) -> str:
        return "this client is closed" if self._closed else _reason(failure)

    def _failed(self, address: str) -> None:
        count = self._failures.get(address, (0, 0))[0] + 1
        pause_ms = min(_FIRST_PAUSE_MS << min(count - 2, 16), _LAST_PAUSE_MS) if count > 1 else 0
        if len(self._failures) >= _MAX_FAILURES:
            self._failures.clear()
        self._failures[address] = count, self._clock.steady_ms() + pause_ms

    def _peer_closed(self, address: str) -> Callable[[TcpPeer], None]:
        def closed(peer: TcpPeer) -> None:
            self._leaving.discard(peer)
            if self._peers.get(address) is peer:
                del self._peers[address]
            if peer.on_free is not None:
                peer.on_free()

        return closed

    def _freed(self, address: str) -> None:
        tell_all(self._when_free.pop(address, ()))

    def _expire_all(self) -> None:
        steady_ms = self._clock.steady_ms()
        judged_ms = self._turns.looked(steady_ms)
        has_late = any(judged_ms >= its for its in self._given_up_ms.values())
        for peer in (*self._peers.values(), *self._leaving):
            peer.idle_ms(steady_ms)  # which notes that there were reads since the last time
            has_late |= peer.owes(late_ms=judged_ms)
            if peer in self._leaving and not peer.owes():
                peer.close()
        if has_late:
            self._clock.later(0, self._expire_requests, judged_ms, _READS_FIRST)

    def _expire_requests(self, judged_ms: int, reads_left: int) -> None:
        """Fails requests and attempts to connect that were late, unless they succeed first."""
        if reads_left:
            self._clock.later(0, self._expire_requests, judged_ms, reads_left - 1)
            return
        for address, deadline_ms in list(self._given_up_ms.items()):
            if judged_ms >= deadline_ms:
                self._attempts[address].cancel()
        for address, peer in list(self._peers.items()):
            if peer.is_lost(judged_ms):
                # This comes first, so that a request that is tried again opens a new connection.
                del self._peers[address]
                peer.abort()
            peer.expire(judged_ms)
        for peer in list(self._leaving):
            if peer.is_lost(judged_ms):
                peer.abort()
            peer.expire(judged_ms)
