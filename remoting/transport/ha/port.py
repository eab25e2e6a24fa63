# SPDX-License-Identifier: Apache-2.0
"""The port on which a master serves its slaves (HA).

What is sent is not kept here: a source gives out the next pieces and is told how many bytes the
socket took, so a slave that reads slowly costs nothing. There is one gathered write for each
connection and turn of the reactor, and another one when the socket has room again.

Java: HAService.AcceptSocketService, HAConnection.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Protocol

from twisted.internet.defer import Deferred, DeferredList, maybeDeferred
from twisted.internet.error import CannotListenError
from twisted.internet.interfaces import IAddress, IListeningPort
from twisted.internet.protocol import Protocol as TwistedProtocol
from twisted.internet.protocol import ServerFactory, connectionDone
from twisted.logger import Logger
from twisted.python.failure import Failure

from txrocketmq.remoting.host.clock import Clock
from txrocketmq.remoting.primitives.networks import Networks
from txrocketmq.remoting.process.log_limit import Seldom, and_more

REPORTS_BYTES: Final = 4_096
"""How much of a slave's reports is read at once; memory for so much is taken for each read."""
_BACKLOG: Final = 64
_TOLD_A_MINUTE: Final = 5

log = Logger()


class Source(Protocol):
    """What a connection gets its bytes from, and gives those that arrive to."""

    def received(self, data: bytes) -> None:
        """Takes bytes of the slave."""

    def pieces(self) -> Sequence[bytes | memoryview]:
        """The bytes to be sent next, in at most 64 pieces; none if there are none now."""

    def sent(self, count: int) -> bool:
        """Hears how many of these bytes have left; returns whether there are more."""

    def ended(self, why: str) -> None:
        """Hears that the connection has ended."""


class Sources(Protocol):
    """Makes the sources of connections."""

    def begin(self, host: str, port: int, connection: HaConnection) -> Source | None:
        """The source for a connection from there; None if it is not wanted."""


class HaConnection(TwistedProtocol):
    """The connection of a slave."""

    def __init__(self, sources: Sources) -> None:
        self._sources = sources
        self._source: Source | None = None
        self._is_waiting = False
        """Whether the socket is full."""

    def connectionMade(self) -> None:
        """Makes the source; closes the connection if it is not wanted."""
        transport: Any = self.transport
        peer = transport.getPeer()
        transport.setTcpNoDelay(True)
        transport.setTcpKeepAlive(True)
        transport.bufferSize = REPORTS_BYTES
        self._source = self._sources.begin(peer.host, peer.port, self)
        if self._source is None:
            self.close()
        else:
            transport.registerProducer(self, False)

    def dataReceived(self, data: bytes) -> None:
        """Hands on what the slave says."""
        if self._source is not None:
            self._source.received(data)

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """Tells the source."""
        source, self._source = self._source, None
        if source is not None:
            source.ended(reason.getErrorMessage())

    def wake(self) -> None:
        """Sends what there is to send, unless the socket is full: then it is sent later."""
        if not self._is_waiting:
            self.resumeProducing()

    def close(self) -> None:
        """Ends the connection at once; the source is told later."""
        transport: Any = self.transport
        transport.abortConnection()

    def resumeProducing(self) -> None:
        """Writes once; Twisted calls this when the socket has room again."""
        self._is_waiting = False
        source = self._source
        pieces = source.pieces() if source is not None else ()
        if source is None or not pieces:
            return
        transport: Any = self.transport
        try:
            count = transport.socket.sendmsg(pieces)
        except BlockingIOError:
            count = 0
        except OSError:
            self.close()
            return
        if source.sent(count):
            self._is_waiting = True
            transport.startWriting()

    def stopProducing(self) -> None:
        """Does nothing: the connection has ended."""


class _HaFactory(ServerFactory):
    noisy = False

    def __init__(self, port: HaPort, allowed: Networks) -> None:
        self._port = port
        self._allowed = allowed

    def buildProtocol(self, addr: IAddress | None) -> HaConnection | None:
        host = str(getattr(addr, "host", ""))
        if host in self._allowed:
            return self._port.connected()
        self._port.refuse(host)
        return None  # Twisted closes the socket


class HaPort:
    """Listens for slaves. Those that do not come from allowed networks are turned away."""

    def __init__(self, clock: Clock, sources: Sources) -> None:
        self._clock = clock
        self._sources = sources
        self._ports: list[IListeningPort] = []
        self._connections: list[HaConnection] = []
        self._seldom = Seldom(_TOLD_A_MINUTE)

    def listen(
        self, port: int, interface: str, allowed: Networks, *, is_wanted: bool = True
    ) -> int:
        """Listens on a port (0: any free one); returns its number.

        If it cannot be had, raises CannotListenError; if nobody has asked for this one, logs it
        instead, and returns 0.
        """
        factory = _HaFactory(self, allowed)
        try:
            listening = self._opened(port, factory, interface)
        except CannotListenError as error:
            if is_wanted:
                raise
            log.warn(
                "no slaves are served, since port {port} cannot be opened ({why}): set haListenPort"
                " if there are slaves",
                port=port,
                why=error.socketError,
            )
            return 0
        self._ports.append(listening)
        address: Any = listening.getHost()
        return int(address.port)

    def _opened(self, port: int, factory: ServerFactory, interface: str) -> IListeningPort:
        if not 0 <= port < 65_536:
            raise CannotListenError(interface, port, ValueError("a port is 0 to 65535"))
        found: IListeningPort = self._clock.reactor.listenTCP(port, factory, _BACKLOG, interface)
        return found

    def connected(self) -> HaConnection:
        """Makes the protocol of a connection."""
        self._connections = [each for each in self._connections if each.connected]
        self._connections.append(HaConnection(self._sources))
        return self._connections[-1]

    def refuse(self, host: str) -> None:
        """Logs, but not often, that somebody was turned away."""
        missed = self._seldom.more(self._clock.steady_ms())
        if missed is not None:
            log.warn(
                "a connection of {host} to the port for slaves was closed: haAllowedAddresses does"
                " not contain it{more}",
                host=host,
                more=and_more(missed),
            )

    def stop(self) -> Deferred[Any]:
        """Stops listening and closes all connections; fires when the port is closed."""
        for each in self._connections:
            if each.connected:
                each.close()
        ports, self._ports = self._ports, []
        return DeferredList(
            [maybeDeferred(each.stopListening) for each in ports], consumeErrors=True
        )
