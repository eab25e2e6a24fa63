# SPDX-License-Identifier: Apache-2.0
"""The connection of a slave to its master (HA).

A report leaves at once, before what came with it is dispatched, because senders may wait for it.
If the master does not read, the last report waits alone: an earlier one says nothing more.

Java: HAClient, DefaultHAClient.
"""

from __future__ import annotations

from typing import Any, Final, Protocol

from twisted.internet.error import ConnectionDone
from twisted.internet.interfaces import IAddress, IConnector
from twisted.internet.protocol import ClientFactory, connectionDone
from twisted.internet.protocol import Protocol as TwistedProtocol
from twisted.python.failure import Failure

from txrocketmq.remoting.host.clock import Clock
from txrocketmq.remoting.transport.client import parse_address

CONNECT_TIMEOUT_S: Final = 5


class Sink(Protocol):
    """What takes the bytes of a connection, which is attempted once."""

    def connected(self, connection: MasterConnection) -> None:
        """Hears that the connection has been made."""

    def received(self, data: bytes) -> None:
        """Takes bytes of the master."""

    def ended(self, why: str) -> None:
        """Hears that the connection has ended, or that none could be made."""


class MasterConnection(TwistedProtocol):
    """The connection to a master."""

    def __init__(self, sink: Sink) -> None:
        self._sink: Sink | None = sink
        self._left = b""
        """What the socket has not taken yet: a part of a report, and the last whole one."""

    def connectionMade(self) -> None:
        """Tells the sink."""
        transport: Any = self.transport
        transport.setTcpNoDelay(True)
        transport.setTcpKeepAlive(True)
        transport.registerProducer(self, False)
        if self._sink is not None:
            self._sink.connected(self)

    def dataReceived(self, data: bytes) -> None:
        """Hands on what the master sends."""
        if self._sink is not None:
            self._sink.received(data)

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """Tells the sink."""
        why = "the master has closed the connection"
        self._end(why if reason.check(ConnectionDone) else reason.getErrorMessage())

    def _end(self, why: str) -> None:
        sink, self._sink = self._sink, None
        if sink is not None:
            sink.ended(why)

    def send(self, report: bytes) -> None:
        """Sends a report, in place of a whole one that the socket has not taken."""
        self._left = self._left[: len(self._left) % len(report)] + report
        self.resumeProducing()

    def close(self) -> None:
        """Ends the connection at once; the sink hears nothing more."""
        self._sink = None
        transport: Any = self.transport
        transport.abortConnection()

    def resumeProducing(self) -> None:
        """Writes once; Twisted calls this when the socket has room again."""
        if not self._left:
            return
        transport: Any = self.transport
        try:
            count = transport.socket.send(self._left)
        except BlockingIOError:
            count = 0
        except OSError as error:
            transport.abortConnection()
            self._end(str(error))
            return
        self._left = self._left[count:]
        if self._left:
            transport.startWriting()

    def stopProducing(self) -> None:
        """Does nothing: the connection has ended."""


class _HaClientFactory(ClientFactory):
    noisy = False

    def __init__(self, client: HaClient, sink: Sink) -> None:
        self._client = client
        self._sink = sink

    def buildProtocol(self, addr: IAddress | None) -> MasterConnection:
        self._client.connection = MasterConnection(self._sink)
        return self._client.connection

    def clientConnectionFailed(self, connector: IConnector, reason: Failure) -> None:  # noqa: N802
        self._sink.ended(reason.getErrorMessage())


class HaClient:
    """Connects to masters, to one at a time."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._connector: Any = None
        self.connection: MasterConnection | None = None
        """The last connection that was made; None while another one is attempted."""

    def connect(self, address: str, sink: Sink) -> None:
        """Connects to "host:port"; the sink hears of it, or why it cannot be."""
        try:
            host, port = parse_address(address)
        except ValueError as error:
            sink.ended(str(error))
            return
        self.connection = None
        factory = _HaClientFactory(self, sink)
        self._connector = self._clock.reactor.connectTCP(
            host, port, factory, timeout=CONNECT_TIMEOUT_S
        )

    def stop(self) -> None:
        """Ends the connection, or the attempt to make one."""
        if self.connection is not None:
            self.connection.close()
        elif self._connector is not None and self._connector.state == "connecting":
            self._connector.stopConnecting()
