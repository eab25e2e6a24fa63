# SPDX-License-Identifier: Apache-2.0
"""The port for gRPC: accepts connections, and ends them in order.

Turns, held bytes, idle connections, TLS and load balancers are those of all servers
(transport/server.py). Counterpart of GrpcServer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from twisted.internet.defer import Deferred, DeferredList, maybeDeferred
from twisted.logger import Logger

from txrocketmq.proxy.config import ProxyConfig
from txrocketmq.proxy.grpc.deadlines import STEP_MS
from txrocketmq.proxy.grpc.peer import GrpcPeer, Service
from txrocketmq.proxy.grpc.service import Rpcs
from txrocketmq.remoting.host.clock import Clock
from txrocketmq.remoting.primitives.networks import Networks
from txrocketmq.remoting.settings.tls import TlsConfig
from txrocketmq.remoting.transport.peer import TcpPeer
from txrocketmq.remoting.transport.server import RemotingServer

_LOOK_MS: Final = 20
ALPN: Final = ("h2",)

log = Logger()


class GrpcServer(RemotingServer):
    """Listens for clients of gRPC, and has their calls served by `rpcs`."""

    def __init__(
        self,
        clock: Clock,
        config: ProxyConfig,
        rpcs: Rpcs,
        tls: TlsConfig | None = None,
        max_held_bytes: Callable[[], int] | None = None,
    ) -> None:
        super().__init__(
            clock,
            max_idle_ms=config.grpc_client_idle_time_mills,
            tls=tls,
            max_held_bytes=max_held_bytes or (lambda: config.max_bytes_held_for_peers),
            balancers=Networks(config.proxy_protocol_from),
            alpn=ALPN,
        )
        self.service = Service(
            rpcs,
            config.grpc_max_inbound_message_size,
            config.max_concurrent_calls_per_connection,
        )
        self._most = config.max_connections
        self._closed: list[Deferred[Any]] = []
        self._deadlines = clock.every(
            STEP_MS, lambda: self.service.deadlines.tick(clock.steady_ms())
        )

    def listen(self, port: int, dispatcher: Any = None, interface: str = "") -> int:
        """Listens on a port (0: any free one) and returns its number. Raises CannotListenError."""
        return super().listen(port, dispatcher, interface)

    def adopt(self, listening: Any, dispatcher: Any = None) -> int:
        """Accepts connections of a port that listens already; returns its number."""
        return super().adopt(listening, dispatcher)

    def new_peer(self, dispatcher: Any) -> TcpPeer:
        """Returns the peer for a connection that is just accepted."""
        return GrpcPeer(
            self.clock, self.service, self._peer_closed, choose=self.choose, shared=self.shared
        )

    def takes_one_more(self) -> bool:
        """Returns whether a just accepted connection can stay; logs that refusing begins."""
        if len(self.peers) < self._most:
            return super().takes_one_more()
        if self.shared.seldom.more(self.clock.steady_ms(), GrpcServer) is not None:
            log.warn("connections are refused: maxConnections={n} are open", n=self._most)
        return False

    def end(self, grace_ms: int) -> Deferred[Any]:
        """Takes no new connections and calls; fires when all calls have ended, or the time is over.

        Calls that may take for ever are ended at once, with UNAVAILABLE: their clients connect
        again, to another proxy or to this one when it is back.
        """
        done: Deferred[Any] = Deferred()
        self._closed = [maybeDeferred(port.stopListening) for port in self._ports]
        self._ports.clear()
        until_ms = self.clock.steady_ms() + grace_ms
        for peer in list(self.peers):
            assert isinstance(peer, GrpcPeer)
            peer.leave()
        self._look(until_ms, done)
        return done

    def _look(self, until_ms: int, done: Deferred[Any]) -> None:
        if not self.peers or self.clock.steady_ms() >= until_ms:
            self._deadlines.cancel()
            DeferredList([*self._closed, self.stop()]).chainDeferred(done)
        else:
            self.clock.later(_LOOK_MS, self._look, until_ms, done)
