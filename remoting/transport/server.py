# SPDX-License-Identifier: Apache-2.0
"""The server side: ports that accept peers, and the rules for idle ones.

Counterpart of NettyRemotingServer.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from twisted.internet.defer import Deferred, DeferredList, maybeDeferred
from twisted.internet.error import CannotListenError
from twisted.internet.interfaces import IAddress, IListeningPort
from twisted.internet.protocol import ServerFactory
from twisted.logger import Logger

from txrocketmq.remoting.call import Peer
from txrocketmq.remoting.codes import SerializeType
from txrocketmq.remoting.command import RemotingCommand
from txrocketmq.remoting.dispatch import Dispatcher
from txrocketmq.remoting.transport.clock import Clock
from txrocketmq.remoting.transport.peer import TcpPeer

MAX_IDLE_MS = 120_000
"""A peer that sends nothing for so long is closed (serverChannelMaxIdleTimeSeconds)."""
_SWEEP_MS = 1_000
_BACKLOG = 1024

log = Logger()


def configured_serialize_type() -> SerializeType:
    """How this process writes headers: $ROCKETMQ_SERIALIZE_TYPE, JSON unless it says ROCKETMQ.

    Headers are read in either form; answers are written in this one (RemotingCommand's statics).
    """
    name = os.environ.get("ROCKETMQ_SERIALIZE_TYPE", "").strip().upper()
    return SerializeType.ROCKETMQ if name == "ROCKETMQ" else SerializeType.JSON


def log_failure(command: RemotingCommand, peer: Peer, error: Exception) -> None:
    """Logs a handler's failure with the one-line form of what it was given."""
    log.error(
        "{command} of {peer} failed: {kind}: {error}",
        command=command,
        peer=peer.remote_address,
        kind=type(error).__name__,
        error=error,
        exc_info=error,
    )


class _PeerFactory(ServerFactory):
    noisy = False

    def __init__(self, server: RemotingServer, dispatcher: Dispatcher) -> None:
        self._server = server
        self._dispatcher = dispatcher

    def buildProtocol(self, addr: IAddress | None) -> TcpPeer:
        server = self._server
        peer = TcpPeer(server.clock, self._dispatcher.serve, server._peer_closed, plain_sends=True)
        self._server.peers.add(peer)
        return peer


class RemotingServer:
    """Listens on ports, keeps the peers, closes the idle ones.

    `disconnected(peer, now_ms)` is called for each peer whose connection has ended. With a
    `max_idle_ms` of 0 no peer is idle.
    """

    def __init__(
        self,
        clock: Clock,
        disconnected: Callable[[TcpPeer, int], None] | None = None,
        *,
        max_idle_ms: int = MAX_IDLE_MS,
    ) -> None:
        self.clock = clock
        self.peers: set[TcpPeer] = set()
        self._disconnected = disconnected
        self._max_idle_ms = max(max_idle_ms, 0)
        self._ports: list[IListeningPort] = []
        self._sweep = clock.every(_SWEEP_MS, self._sweep_peers)

    def listen(self, port: int, dispatcher: Dispatcher, interface: str = "") -> int:
        """Accepts on a port (0: a free one) and returns it. Raises CannotListenError."""
        if not 0 <= port < 65_536:
            raise CannotListenError(interface, port, ValueError("a port is 0 to 65535"))
        factory = _PeerFactory(self, dispatcher)
        listening = self.clock.reactor.listenTCP(port, factory, _BACKLOG, interface)
        self._ports.append(listening)
        address: Any = listening.getHost()
        return int(address.port)

    def stop(self) -> Deferred[Any]:
        """Accepts no more, then ends all connections."""
        self._sweep.cancel()
        stopped = DeferredList([maybeDeferred(port.stopListening) for port in self._ports])
        self._ports.clear()
        for peer in list(self.peers):
            peer.close()
        return stopped

    def _peer_closed(self, peer: TcpPeer) -> None:
        self.peers.discard(peer)
        if self._disconnected is not None:
            self._disconnected(peer, self.clock.now_ms())

    def _sweep_peers(self) -> None:
        now_ms = self.clock.now_ms()
        for peer in list(self.peers):
            peer.expire(now_ms)
            if not self._max_idle_ms and not peer.closing:
                continue
            if now_ms - peer.last_active_ms <= (self._max_idle_ms or MAX_IDLE_MS):
                continue
            if peer.closing:
                peer.abort()  # nor does it read what it was still sent
            else:
                log.info(
                    "closing {peer}: idle for {s} s",
                    peer=peer.remote_address,
                    s=self._max_idle_ms // 1000,
                )
                peer.close()
