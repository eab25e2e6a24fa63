# SPDX-License-Identifier: Apache-2.0
"""A TCP connection as a Peer: pumps a sans-I/O Connection, with bounded buffers in both directions.

While the peer does not read what it is sent, it is not read from and its requests are not served,
so what one connection can hold is its socket buffers, one read's requests and a few answers.
Answers go to the socket at once when nothing waits before them, which saves the reactor two rounds
and the buffers a copy.
Counterpart of Netty's channel and NettyServerHandler / NettyClientHandler.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterable, Iterator, Sequence
from ipaddress import ip_address
from typing import Any

from twisted.internet.interfaces import IPushProducer
from twisted.internet.protocol import Protocol
from twisted.internet.tcp import Connection as TcpConnection
from twisted.logger import Logger
from twisted.python.failure import Failure
from zope.interface import implementer

from txrocketmq.remoting.call import Buffer, Call, PendingReply
from txrocketmq.remoting.connection import Connection
from txrocketmq.remoting.errors import RemotingError, SendError
from txrocketmq.remoting.header import Header
from txrocketmq.remoting.serialize.plain_sends import Received
from txrocketmq.remoting.transport.clock import Clock

READ_BYTES = 256 * 1024
"""How much one read takes at most; all whole frames in it are served together."""
MAX_BUFFERED_BYTES = 64 * 1024 * 1024
"""Unsent bytes at which a peer that does not read is given up."""
SILENT_MS = 3_000
"""A peer that has let an answer's time pass, and has said nothing for so long, is not there."""
_MAX_VECTORS = 64

Serve = Callable[[Any, Iterable[Received]], None]

log = Logger()


def address_text(host: str, port: int) -> str:
    """The address as "ip:port", in brackets when it is IPv6."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def host_bytes(host: str, port: int) -> bytes:
    """An address as records hold it: 4 or 16 bytes of IP, 4 of port; IPv4 in IPv6 is IPv4."""
    ip = ip_address(host.partition("%")[0])
    mapped = getattr(ip, "ipv4_mapped", None)
    return (mapped or ip).packed + port.to_bytes(4, "big")


@implementer(IPushProducer)
class TcpPeer(Protocol):
    """One connection; `serve` gets the requests of each read, `closed` the peer once at its end."""

    def __init__(
        self,
        clock: Clock,
        serve: Serve,
        closed: Callable[[TcpPeer], None] | None = None,
        *,
        plain_sends: bool = False,
    ) -> None:
        self._clock = clock
        self._serve = serve
        self._closed = closed
        self._connection = Connection(plain_sends=plain_sends)
        self._socket: socket.socket | None = None
        self._paused = False
        self._closing = False
        self._held: list[Received] = []
        self.connected_now = False
        self.last_active_ms = 0
        self.remote_address = self.local_address = ""
        self.remote_host = self.local_host = b""

    # ------------------------------------------------------------------ Peer

    @property
    def connected(self) -> bool:
        return self.connected_now

    @connected.setter
    def connected(self, value: int) -> None:  # BaseProtocol.makeConnection sets it
        self.connected_now = bool(value)

    def write(self, buffers: Sequence[Buffer]) -> None:
        """Sends encoded frames."""
        if not self.connected_now:
            return
        transport: Any = self.transport
        if self._socket is not None and not transport.dataBuffer and not transport._tempDataBuffer:
            rest = self._send_now(buffers)
            if not rest:
                return
            buffers = rest
        transport.writeSequence([part if type(part) is bytes else bytes(part) for part in buffers])
        if self._paused or self._closing:  # nobody pauses us any more once we are closing
            self._check_unsent(transport)

    def invoke(
        self, call: Call[Any, Any], header: Header, body: bytes = b"", *, timeout_ms: int
    ) -> PendingReply:
        """Asks the peer; see call.Peer."""
        if not self.connected_now:
            pending = PendingReply()
            pending.resolve(SendError(f"the connection to {self.remote_address} is closed"))
            return pending
        try:
            pending, buffers = self._connection.request(
                call, header, body, self._clock.now_ms() + timeout_ms
            )
        except RemotingError as error:
            pending = PendingReply()
            pending.resolve(error)
            return pending
        self.write(buffers)
        return pending

    def invoke_oneway(self, call: Call[Any, Any], header: Header, body: bytes = b"") -> None:
        """Tells the peer something; no answer."""
        if self.connected_now:
            self.write(self._connection.oneway(call, header, body))

    def close(self) -> None:
        """Ends the connection; what was written before still leaves."""
        transport: Any = self.transport
        if transport is None or self._closing:
            return
        self._closing = True
        transport.unregisterProducer()  # Twisted would wait for ever for one that is paused
        transport.loseConnection()

    def abort(self) -> None:
        """Ends the connection at once; what has not left yet is lost."""
        transport: Any = self.transport
        if transport is not None:
            self._closing = True
            transport.abortConnection()

    @property
    def closing(self) -> bool:
        """Whether we have ended the connection, though what was written may still be leaving."""
        return self._closing

    def is_lost(self, now_ms: int) -> bool:
        """Whether an answer's time is over and nothing else has come for long: nobody may be there.

        What may take long, as a pull that waits, has a time of its own: it is not late before.
        """
        return now_ms - self.last_active_ms >= SILENT_MS and self._connection.is_late(now_ms)

    def expire(self, now_ms: int) -> None:
        """Fails our requests that have waited too long."""
        if self._connection.in_flight:
            self._connection.expire(now_ms)

    # -------------------------------------------------------------- Protocol

    def connectionMade(self) -> None:
        transport: Any = self.transport
        there, here = transport.getPeer(), transport.getHost()
        self.remote_address = address_text(there.host, there.port)
        self.local_address = address_text(here.host, here.port)
        self.remote_host = host_bytes(there.host, there.port)
        self.local_host = host_bytes(here.host, here.port)
        self.last_active_ms = self._clock.now_ms()
        transport.setTcpNoDelay(True)
        transport.bufferSize = READ_BYTES
        transport.registerProducer(self, True)
        if isinstance(transport, TcpConnection) and not getattr(transport, "TLS", False):
            self._socket = transport.socket

    def dataReceived(self, data: bytes) -> None:
        self.last_active_ms = self._clock.now_ms()
        commands = self._connection.receive(data)
        if self._held:  # it is being paused, and this had come already
            self._held += commands
        elif commands:
            self._serve(self, self._while_it_reads(commands))
        if self._connection.error is not None and not self._closing:
            log.warn(
                "closing {peer}: {error}", peer=self.remote_address, error=self._connection.error
            )
            self.close()

    def connectionLost(self, reason: Failure = Failure(Exception("lost"))) -> None:  # noqa: B008
        self.connected_now = False
        self._socket = None
        self._held = []
        self._connection.lost(SendError(f"the connection to {self.remote_address} was lost"))
        if self._closed is not None:
            self._closed(self)

    # --------------------------------------------------------- IPushProducer

    def pauseProducing(self) -> None:
        """The peer does not read: do not read from it either."""
        self._paused = True
        transport: Any = self.transport
        transport.pauseProducing()

    def resumeProducing(self) -> None:
        """The peer has caught up: what it asked before comes first."""
        self._paused = False
        transport: Any = self.transport
        if not self.connected_now or transport.disconnecting:
            return
        held, self._held = self._held, []
        if held:
            self._serve(self, self._while_it_reads(held))
        if not self._paused:
            transport.resumeProducing()

    def stopProducing(self) -> None:
        """The connection is gone; connectionLost does what is to be done."""

    # ------------------------------------------------------------- internals

    def _while_it_reads(self, commands: list[Received]) -> Iterator[Received]:
        """The commands, until too much is unsent; the rest is held until the peer has read."""
        for index, command in enumerate(commands):
            if self._paused:
                self._held = commands[index:]
                return
            yield command

    def _send_now(self, buffers: Sequence[Buffer]) -> Sequence[Buffer]:
        """Hands the buffers to the socket; what it does not take comes back."""
        assert self._socket is not None
        try:
            if len(buffers) > _MAX_VECTORS:
                buffers = [b"".join(buffers)]
            sent = self._socket.sendmsg(buffers)
        except OSError:  # would block, or broken: the transport finds out
            return buffers
        for index, part in enumerate(buffers):
            if sent < len(part):
                return [memoryview(part)[sent:], *buffers[index + 1 :]]
            sent -= len(part)
        return ()

    def _check_unsent(self, transport: Any) -> None:
        unsent = len(transport.dataBuffer) - transport.offset + transport._tempDataLen
        if unsent > MAX_BUFFERED_BYTES:
            log.warn(
                "closing {peer}: it does not read {n} bytes", peer=self.remote_address, n=unsent
            )
            self.abort()
