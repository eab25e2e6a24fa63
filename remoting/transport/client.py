# SPDX-License-Identifier: Apache-2.0
"""The client side: one connection for each address, made when it is first needed.

Counterpart of NettyRemotingClient. What is asked while a connection is being made waits for it;
when it cannot be made, all of that fails with ConnectError. One whose peer lets the time of a
request pass and says nothing more is given up, as with clientCloseSocketIfTimeout: a network that
drops a connection tells nobody. Peers may ask back: their requests go to the dispatcher that was
given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.endpoints import HostnameEndpoint
from twisted.internet.interfaces import IAddress
from twisted.internet.protocol import Factory
from twisted.python.failure import Failure

from txrocketmq.remoting.call import Call, PendingReply, Reply
from txrocketmq.remoting.dispatch import Dispatcher, Registry
from txrocketmq.remoting.errors import ConnectError, RequestTimeout
from txrocketmq.remoting.header import Header
from txrocketmq.remoting.serialize.plain_sends import Received
from txrocketmq.remoting.transport.clock import Clock
from txrocketmq.remoting.transport.peer import TcpPeer

CONNECT_TIMEOUT_MS = 3_000
"""How long a connection may take to be made (connectTimeoutMillis)."""
_EXPIRE_MS = 200


def parse_address(address: str) -> tuple[str, int]:
    """Host and port of "host:port" or "[ip6]:port". Raises ValueError naming what is wrong."""
    host, colon, port = address.strip().rpartition(":")
    is_port = port.isascii() and port.isdigit() and 0 < int(port) < 65_536
    if not colon or not is_port or not host:
        raise ValueError(f'"{address}" is no address: it should look like 127.0.0.1:9876')
    return host.strip("[]"), int(port)


def as_deferred(pending: PendingReply) -> Deferred[Reply[Any]]:
    """A pending reply for code that awaits."""
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


class Connections:
    """Connections by address; `invoke` and `invoke_oneway` find or make the one they need."""

    def __init__(self, clock: Clock, dispatcher: Dispatcher | None = None) -> None:
        self._clock = clock
        self._dispatcher = dispatcher or Dispatcher(Registry(), clock.now_ms)
        self._peers: dict[str, TcpPeer] = {}
        self._connecting: dict[str, list[Callable[[TcpPeer | ConnectError], None]]] = {}
        self._attempts: dict[str, Deferred[Any]] = {}
        self._closed = False
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
        """Asks the peer at an address; resolved with its Reply, whatever its code, or an error."""
        peer = self._peers.get(address)
        if peer is not None:
            return peer.invoke(call, header, body, timeout_ms=timeout_ms)
        promise = PendingReply()
        deadline_ms = self._clock.now_ms() + timeout_ms

        def connected(outcome: TcpPeer | ConnectError) -> None:
            if isinstance(outcome, ConnectError):
                promise.resolve(outcome)
                return
            left_ms = deadline_ms - self._clock.now_ms()
            if left_ms <= 0:
                promise.resolve(RequestTimeout(f"no connection to {address} in {timeout_ms} ms"))
                return
            outcome.invoke(call, header, body, timeout_ms=left_ms).then(promise.resolve)

        self._connect(address, connected)
        return promise

    def invoke_oneway(
        self, address: str, call: Call[Any, Any], header: Header, body: bytes = b""
    ) -> None:
        """Tells the peer at an address something; it is lost when no connection can be made."""

        def connected(outcome: TcpPeer | ConnectError) -> None:
            if isinstance(outcome, TcpPeer):
                outcome.invoke_oneway(call, header, body)

        self._connect(address, connected)

    def close(self) -> None:
        """Ends all connections; nothing can be asked afterwards."""
        self._closed = True
        self._expire.cancel()
        for attempt in list(self._attempts.values()):
            attempt.cancel()
        for peer in list(self._peers.values()):
            peer.close()

    def _connect(self, address: str, then: Callable[[TcpPeer | ConnectError], None]) -> None:
        peer = self._peers.get(address)
        if peer is not None:
            then(peer)
            return
        if self._closed:
            then(ConnectError(f"connect to {address} failed: this client is closed"))
            return
        waiting = self._connecting.setdefault(address, [])
        waiting.append(then)
        if len(waiting) > 1:
            return
        try:
            host, port = parse_address(address)
        except ValueError as error:
            self._connected(address, ConnectError(str(error)))
            return
        endpoint = HostnameEndpoint(
            self._clock.reactor, host, port, timeout=CONNECT_TIMEOUT_MS / 1000
        )
        factory = _PeerFactory(
            lambda: TcpPeer(self._clock, self._serve, self._peer_closed(address))
        )
        attempt = endpoint.connect(factory)
        self._attempts[address] = attempt
        attempt.addCallbacks(
            lambda peer: self._connected(address, peer),
            lambda failure: self._connected(
                address, ConnectError(f"connect to {address} failed: {failure.getErrorMessage()}")
            ),
        )

    def _serve(self, peer: TcpPeer, commands: Iterable[Received]) -> None:
        self._dispatcher.serve(peer, commands)

    def _connected(self, address: str, outcome: Any) -> None:
        self._attempts.pop(address, None)
        waiting = self._connecting.pop(address, [])
        if isinstance(outcome, TcpPeer):
            if self._closed:
                outcome.close()
            self._peers[address] = outcome
        for then in waiting:
            then(outcome)

    def _peer_closed(self, address: str) -> Callable[[TcpPeer], None]:
        def closed(peer: TcpPeer) -> None:
            if self._peers.get(address) is peer:
                del self._peers[address]

        return closed

    def _expire_all(self) -> None:
        now_ms = self._clock.now_ms()
        for address, peer in list(self._peers.items()):
            if peer.is_lost(now_ms):
                # First, so that what is tried again makes a connection of its own.
                del self._peers[address]
                peer.abort()
            peer.expire(now_ms)
