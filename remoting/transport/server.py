# SPDX-License-Identifier: Apache-2.0
"""The server side: ports that accept peers, the rules for idle connections, and an orderly stop.

Counterpart of NettyRemotingServer.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol

from twisted.internet import tcp
from twisted.internet.defer import Deferred, DeferredList, maybeDeferred
from twisted.internet.error import CannotListenError
from twisted.internet.interfaces import IAddress, IListeningPort
from twisted.internet.main import CONNECTION_DONE, CONNECTION_LOST
from twisted.internet.protocol import ServerFactory
from twisted.logger import Logger
from twisted.python.failure import Failure

from txrocketmq.remoting.call import Peer
from txrocketmq.remoting.codes import MQVersion, ResponseCode, SerializeType
from txrocketmq.remoting.command import RemotingCommand
from txrocketmq.remoting.dispatch import Dispatcher
from txrocketmq.remoting.errors import ResponseError
from txrocketmq.remoting.host.clock import Clock
from txrocketmq.remoting.host.limits import ConnectionLimit, file_limit, reserved_files
from txrocketmq.remoting.host.memory import Peaks, give_back, reserve
from txrocketmq.remoting.primitives.networks import Networks
from txrocketmq.remoting.process.log_limit import Seldom, and_more
from txrocketmq.remoting.settings import open_ports
from txrocketmq.remoting.settings.tls import TlsConfig
from txrocketmq.remoting.transport.held_bytes import MAX_HELD_BYTES, HeldBytes, unread_bytes
from txrocketmq.remoting.transport.outlet import Choose
from txrocketmq.remoting.transport.peer import PORTION_BYTES, PORTION_COMMANDS, TcpPeer
from txrocketmq.remoting.transport.peer_state import CLOSING
from txrocketmq.remoting.transport.raw.raw_connection import RawConnection, RawHandler
from txrocketmq.remoting.transport.strangers import NOBODY, Shared
from txrocketmq.remoting.transport.tls.encryption import Encryption
from txrocketmq.remoting.transport.turns import TURN_S, Turns

MAX_IDLE_MS = 120_000
"""A connection that brings nothing for so many ms is closed (serverChannelMaxIdleTimeSeconds)."""
_SWEEP_MS = 1_000
_LEAST_READ_BYTES = 4_096
"""How many bytes are read at once while memory is short."""
_BACKLOG = 1024
_TOLD_A_MINUTE = 5

log = Logger()


def configured_serialize_type() -> SerializeType:
    """Returns how this process writes headers: as $ROCKETMQ_SERIALIZE_TYPE says, or as JSON.

    Headers are read in either form; answers are written in this one (RemotingCommand's statics).
    """
    name = os.environ.get("ROCKETMQ_SERIALIZE_TYPE", "").strip().upper()
    return SerializeType.ROCKETMQ if name == "ROCKETMQ" else SerializeType.JSON


class GracefulStop(Protocol):
    """The settings of an orderly stop: whether clients are sent away first, and for how long."""

    @property
    def enable_shutdown_gracefully(self) -> bool: ...

    @property
    def shutdown_wait_time_seconds(self) -> int: ...


def go_away(_: Peer, command: RemotingCommand) -> None:
    """A guard that answers GO_AWAY to clients that support it; they repeat the request elsewhere.

    Requests without an answer are still served, since their senders could not repeat them.
    """
    if command.version > MQVersion.V5_3_1 and not command.is_oneway:
        raise ResponseError(ResponseCode.GO_AWAY, "please go away")


def memory_is_short() -> None:
    """Releases the memory reserve, and logs an error unless memory was short already."""
    if reserve.give():
        log.error(
            "there is no memory for some requests, which are refused: allow the process more"
            " address space (ulimit -v, or the limit of its service or container)"
        )


class ServerSocket(tcp.Server):
    """The transport of a peer, which goes on with small reads while memory is short.

    The connection ends if there is no memory even for these, or for what was read. (Twisted would
    end it at the first read that fails, and log a traceback.) When no more requests are to be
    served in a turn of the reactor, nothing is read either: the socket waits for its turn, and what
    was sent waits in it.
    """

    protocol: TcpPeer

    def doRead(self) -> Any:
        """Reads once; the name and the values that are returned are those of Twisted."""
        turns = self.protocol.turns
        if turns.spent_s >= TURN_S:
            if not turns.waits(self):
                turns.join(self, unread_bytes(self.socket), is_known=self.protocol.is_known())
            return None
        return self._read()

    def doWrite(self) -> Any:
        """Writes some of what waits, and has it counted."""
        outcome = super().doWrite()  # type: ignore[no-untyped-call]
        if self.connected:
            self.protocol.has_sent()
        return outcome

    def take_turn(self) -> None:
        """Reads once, if the peer is still to be read from."""
        if self.connected and self.protocol.state.serves:
            why = self._read()
            if why is not None:
                self.connectionLost(Failure(why))

    def took_long(self) -> None:
        """Has it counted."""
        self.protocol.took_long()

    def give_up(self) -> None:
        """Ends the connection."""
        self.abortConnection()  # type: ignore[no-untyped-call]

    def _read(self) -> Any:
        try:
            try:
                data = self.socket.recv(self.bufferSize)
            except MemoryError:
                memory_is_short()
                data = self.socket.recv(_LEAST_READ_BYTES)
        except BlockingIOError:
            return None
        except OSError:
            return CONNECTION_LOST
        except MemoryError:
            return CONNECTION_LOST  # unfinished frames, perhaps of this peer, take it all
        if not data:
            return CONNECTION_DONE
        try:
            self.protocol.dataReceived(data)
        except MemoryError:  # the place in its stream is lost now
            memory_is_short()
            return CONNECTION_LOST
        return None


def _turn_failed(error: Exception) -> None:
    if isinstance(error, MemoryError):
        memory_is_short()
    else:
        log.failure("the turn of a peer failed", Failure(error))


class _PeerFactory(ServerFactory):
    noisy = False

    def __init__(self, server: RemotingServer, dispatcher: Dispatcher) -> None:
        self._server = server
        self._dispatcher = dispatcher

    def buildProtocol(self, addr: IAddress | None) -> TcpPeer | None:
        server = self._server
        host = getattr(addr, "host", "")
        if not server.takes_one_more() or not server.takes_one_more_of(host):
            return None  # Twisted closes the socket
        peer = server.new_peer(self._dispatcher)
        server.peers.add(peer)
        server.admit(peer, host)
        return peer


class RemotingServer:
    """Listens on ports, keeps the peers, and closes those that are idle.

    `disconnected(peer, steady_ms)` is called for each peer whose connection has ended. With a
    `max_idle_ms` of 0 no peer counts as idle; one that takes longer for a frame does otherwise.
    `tls` says which connections may be encrypted. `max_held_bytes` returns how many bytes may be
    held for all peers together. The time of the reactor and these bytes are shared by the peers of
    all ports. `balancers` are the addresses of load balancers that are believed when they say for
    whom a connection is. `alpn` are the protocols that are spoken within TLS, where clients ask.

    When connections have used all the descriptors that they may have (see limits.py), another one
    is accepted and closed at once. Its client sees an error right away and tries again or
    elsewhere; if the port did not accept, the client would wait in its backlog until the time of
    its requests is over.
    """

    def __init__(
        self,
        clock: Clock,
        disconnected: Callable[[TcpPeer, int], None] | None = None,
        *,
        max_idle_ms: int = MAX_IDLE_MS,
        tls: TlsConfig | None = None,
        max_held_bytes: Callable[[], int] = lambda: MAX_HELD_BYTES,
        balancers: Networks = NOBODY,
        max_per_address: Callable[[], int] = lambda: 0,
        has_accounts: bool = False,
        alpn: Sequence[str] = (),
    ) -> None:
        self._has_accounts = has_accounts
        self._max_per_address = max_per_address
        self._hosts: dict[TcpPeer, str] = {}
        self._connections_of: Counter[str] = Counter()
        self.clock = clock
        self.peers: set[TcpPeer] = set()
        self._tls = tls or TlsConfig()
        self.encryption = Encryption(self._tls, alpn)
        self.choose: Choose = self.encryption.choose
        """Makes the outlets of connections that are accepted from now on."""
        self.raw_requests: Sequence[RawHandler] = ()
        """Serve requests of later connections from their bytes, before all others."""
        self._disconnected = disconnected
        self._max_idle_ms = max(max_idle_ms, 0)
        self._ports: list[IListeningPort] = []
        self._dispatchers: list[Dispatcher] = []
        self._limit = ConnectionLimit()
        seldom = Seldom(_TOLD_A_MINUTE)
        self.shared = Shared(
            Turns(clock.timer, partial(clock.later, 0), _turn_failed, time.thread_time),
            HeldBytes(max_held_bytes, seldom, clock.steady_ms),
            seldom,
            balancers,
        )
        self._peaks = Peaks()
        self._sweep = clock.every(_SWEEP_MS, self._sweep_peers)

    def listen(self, port: int, dispatcher: Dispatcher, interface: str = "") -> int:
        """Listens on a port (0: any free one) and returns its number. Raises CannotListenError."""
        if not 0 <= port < 65_536:
            raise CannotListenError(interface, port, ValueError("a port is 0 to 65535"))
        factory = _PeerFactory(self, dispatcher)
        listening = self.clock.reactor.listenTCP(port, factory, _BACKLOG, interface)
        number = self._opened(listening, dispatcher)
        warning = open_ports.of_requests(
            interface, number, self._tls, has_accounts=self._has_accounts
        )
        if warning:
            log.warn("{warning}", warning=warning)
        return number

    def adopt(self, listening: Any, dispatcher: Dispatcher) -> int:
        """Accepts connections of a port that listens already; returns its number."""
        listening.factory = _PeerFactory(self, dispatcher)
        return self._opened(listening, dispatcher)

    def _opened(self, listening: Any, dispatcher: Dispatcher) -> int:
        listening.transport = ServerSocket
        self._ports.append(listening)
        self._dispatchers.append(dispatcher)
        return int(listening.getHost().port)

    def new_peer(self, dispatcher: Dispatcher) -> TcpPeer:
        """Returns the peer for a connection that is just accepted."""
        handlers = [each for each in self.raw_requests if dispatcher.knows(each.request_codes)]
        connection = (
            RawConnection(dispatcher, handlers, PORTION_COMMANDS, PORTION_BYTES)
            if handlers
            else None
        )
        peer = TcpPeer(
            self.clock,
            dispatcher.serve,
            self._peer_closed,
            choose=self.choose,
            shared=self.shared,
            connection=connection,
        )
        if connection is not None:
            connection.peer = peer
        return peer

    def see_off(self, config: GracefulStop, then: Callable[[], object]) -> None:
        """Sends clients away for as long as the settings say, then calls `then`.

        Everything else goes on meanwhile, and clients without GO_AWAY are served. If the
        settings do not ask for it, `then` is called at once.
        """
        if not config.enable_shutdown_gracefully:
            then()
            return
        for dispatcher in self._dispatchers:
            if go_away not in dispatcher.guards:  # the list may be that of several ports
                dispatcher.guards.append(go_away)
        log.info(
            "clients are told for {s} s to connect elsewhere", s=config.shutdown_wait_time_seconds
        )
        self.clock.later(config.shutdown_wait_time_seconds * 1000, then)

    def stop(self) -> Deferred[Any]:
        """Stops listening and closes all connections; fires when all ports are closed."""
        self._sweep.cancel()
        stopped = DeferredList([maybeDeferred(port.stopListening) for port in self._ports])
        self._ports.clear()
        for peer in list(self.peers):
            peer.close()
        return stopped

    def takes_one_more(self) -> bool:
        """Returns whether a just accepted connection can stay; logs that refusing begins."""
        begins = not self._limit.refused
        if self._limit.takes():
            return True
        if begins:
            limit = file_limit()
            log.error(
                "connections are refused: {n} are open, and of the {limit} files that this process"
                " may have open {reserved} are kept for other uses; raise the limit (ulimit -n)",
                n=len(self.peers),
                limit=limit,
                reserved=reserved_files(limit),
            )
        return False

    def takes_one_more_of(self, host: str) -> bool:
        """Returns whether this address may have another connection; logs sometimes if not."""
        most = self._max_per_address()
        if not most or self._connections_of[host] < most:
            return True
        more = self.shared.seldom.more(self.clock.steady_ms(), "connections of an address")
        if more is not None:
            log.warn(
                "connections of {host} are refused: it has {n} (maxConnectionsPerAddress){more}",
                host=host,
                n=most,
                more=and_more(more),
            )
        return False

    def admit(self, peer: TcpPeer, host: str) -> None:
        """Counts a connection of this address."""
        self._hosts[peer] = host
        self._connections_of[host] += 1

    def _peer_closed(self, peer: TcpPeer) -> None:
        self.peers.discard(peer)
        host = self._hosts.pop(peer, None)
        if host is not None:
            self._connections_of[host] -= 1
            if not self._connections_of[host]:
                del self._connections_of[host]
        if self._disconnected is not None:
            self._disconnected(peer, self.clock.steady_ms())

    def _sweep_peers(self) -> None:
        refused = self._limit.sweep()
        if refused:
            log.info("connections are accepted again; {n} were refused", n=refused)
        if reserve.is_given and reserve.take():
            log.info("there is memory for all requests again")
        steady_ms = self.clock.steady_ms()
        self.shared.held.tick()
        if self.shared.held.has_fallen() or self._peaks.has_passed(steady_ms):
            give_back()
            self._peaks.given_back()
        for peer in list(self.peers):
            peer.expire(steady_ms)
            idle_ms = peer.idle_ms(steady_ms)
            if not self._max_idle_ms and peer.state is not CLOSING:
                continue
            if peer.unfinished_ms(steady_ms) > self._max_idle_ms:
                log.info(
                    "closing {peer}: it has not finished one frame within {s} s",
                    peer=peer.remote_address,
                    s=self._max_idle_ms // 1000,
                )
                peer.close()
                continue
            if idle_ms <= (self._max_idle_ms or MAX_IDLE_MS):
                continue
            if peer.state is CLOSING:
                peer.abort()  # it does not read what it was sent last, either
            else:
                log.info(
                    "closing {peer}: idle for {s} s",
                    peer=peer.remote_address,
                    s=self._max_idle_ms // 1000,
                )
                peer.close()
