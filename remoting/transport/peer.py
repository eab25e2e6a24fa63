# SPDX-License-Identifier: Apache-2.0
"""A TCP connection as a Peer: drives a Connection without I/O, with limited buffers both ways.

While the peer does not read what it is sent, it is not read from and its requests are not served,
so what one connection can hold is its socket buffers, one read's requests and a few answers. The
table in `peer_state.py` says what can happen to a connection in each of its states, and `outlet.py`
has the ways in which bytes leave. Counterpart of Netty's channel and NettyServerHandler /
NettyClientHandler.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from ipaddress import ip_address
from typing import Any

from twisted.internet.interfaces import IPushProducer
from twisted.internet.protocol import Protocol
from twisted.logger import Logger
from twisted.python.failure import Failure
from zope.interface import implementer

from txrocketmq.remoting.call import Buffer, Call, PendingReply
from txrocketmq.remoting.command import RemotingCommand
from txrocketmq.remoting.connection import Connection, InFlight, Seal
from txrocketmq.remoting.errors import RemotingError, SendError, TlsError
from txrocketmq.remoting.header import Header
from txrocketmq.remoting.message.ids import pack_host
from txrocketmq.remoting.proxy_protocol import may_begin_header, read_header
from txrocketmq.remoting.seldom import Seldom, and_more
from txrocketmq.remoting.transport.clock import Clock
from txrocketmq.remoting.transport.outlet import (
    Choose,
    GatheringOutlet,
    Outlet,
    plain_outlet,
)
from txrocketmq.remoting.transport.peer_state import CLOSING, NEW, OPEN, TRANSITIONS, Event, State
from txrocketmq.remoting.transport.strangers import stranger

READ_BYTES = 256 * 1024
"""How many bytes one read takes at most; all whole frames in them are served together."""
MAX_BUFFERED_BYTES = 64 * 1024 * 1024
"""If more bytes than this wait for a peer that does not read, its connection is closed."""
SILENT_MS = 3_000
"""How long a peer must have sent nothing, while an answer from it is overdue, to be taken for
lost."""

Serve = Callable[[Any, Iterable[RemotingCommand]], None]

log = Logger()


def address_text(host: str, port: int) -> str:
    """Returns the address as "ip:port", with the IP in brackets if it is IPv6."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def host_bytes(host: str, port: int) -> bytes:
    """Returns an address as records hold it: 4 or 16 bytes of IP and 4 bytes of port.

    An IPv4 address that is mapped into IPv6 is held as IPv4.
    """
    ip = ip_address(host.partition("%")[0])
    mapped = getattr(ip, "ipv4_mapped", None)
    return pack_host((mapped or ip).packed, port)


@implementer(IPushProducer)
class TcpPeer(Protocol):
    """One connection; `serve` gets the requests of each read, `closed` the peer once at its end.

    It writes to a plain outlet unless `choose` creates another one when the first bytes arrive. A
    connection with `choose` may begin with a header that says for whom a load balancer has opened
    it; that changes `remote_address` only. If the peer `gathers`, everything that is written in one
    turn of the reactor leaves together. `seldom` limits the log lines about peers that are closed
    because of what they have sent. `told_to_go` gets the requests that the peer answers with
    GO_AWAY.
    """

    def __init__(
        self,
        clock: Clock,
        serve: Serve,
        closed: Callable[[TcpPeer], None] | None = None,
        *,
        choose: Choose | None = None,
        seldom: Seldom | None = None,
        seal: Seal | None = None,
        gathers: bool = False,
        told_to_go: Callable[[TcpPeer, InFlight], None] | None = None,
    ) -> None:
        self._clock = clock
        self._gathers = gathers
        self._serve = serve
        self._closed = closed
        self._connection = Connection(
            seal=seal, told_to_go=None if told_to_go is None else partial(told_to_go, self)
        )
        self._state: State = NEW
        self._outlet: Outlet
        self._choose = choose
        self._header: bytes | None = b""
        """What has arrived of a header of the PROXY protocol; None once it cannot come any more."""
        self._seldom = seldom
        self._held: list[RemotingCommand] = []
        self._refused = ""
        """Why the connection was closed, if what the peer has sent is the reason. (The error itself
        would hold the frames it was raised in, and these the peer: memory that comes back late.)"""
        self._has_spoken = False
        """Whether something has arrived since `idle_ms` was called, so that the clock is not read
        for each arrival."""
        self._last_active_ms = 0
        self.remote_address = self.local_address = ""
        self.remote_host = self.local_host = b""

    # ------------------------------------------------------------------ Peer

    @property
    def connected(self) -> bool:
        return self._state.is_connected

    @connected.setter
    def connected(self, value: int) -> None:  # BaseProtocol.makeConnection sets it
        assert value
        self._happened(Event.CONNECT)

    @property
    def reads(self) -> bool:
        return self._state is OPEN

    def write(self, buffers: Sequence[Buffer]) -> None:
        """Sends encoded frames."""
        if not self._state.is_connected:
            return
        self._outlet.write(buffers)
        if self._state is not OPEN:  # in OPEN the transport pauses the peer in time
            self._check_unsent()

    def invoke(
        self, call: Call[Any, Any], header: Header, body: bytes = b"", *, timeout_ms: int
    ) -> PendingReply:
        """Sends a request; see `call.Peer.invoke`. Fails with SendError on a closed connection."""
        if not self._state.is_connected:
            pending = PendingReply()
            pending.resolve(SendError(f"the connection to {self.remote_address} is closed"))
            return pending
        try:
            pending, buffers = self._connection.request(
                call, header, body, self._clock.steady_ms() + timeout_ms
            )
        except RemotingError as error:
            pending = PendingReply()
            pending.resolve(error)
            return pending
        self.write(buffers)
        return pending

    def invoke_oneway(self, call: Call[Any, Any], header: Header, body: bytes = b"") -> None:
        """Sends a request that has no answer; does nothing if the connection is closed."""
        if self._state.is_connected:
            self.write(self._connection.oneway(call, header, body))

    def close(self) -> None:
        """Closes the connection after everything that was written has been sent."""
        if self._happened(Event.CLOSE):
            transport: Any = self.transport
            transport.unregisterProducer()  # Twisted would wait for ever for a paused one
            self._outlet.resume()
            self._outlet.end()
            transport.loseConnection()

    def abort(self) -> None:
        """Closes the connection at once; what has not been sent yet is lost."""
        self._happened(Event.CLOSE)
        if self._state.is_connected:
            transport: Any = self.transport
            transport.abortConnection()

    @property
    def state(self) -> State:
        """The state, which says what may be done with the connection now."""
        return self._state

    @property
    def owes(self) -> bool:
        """Whether answers to our requests are still to come."""
        return self._connection.in_flight > 0

    def is_lost(self, steady_ms: int) -> bool:
        """Returns whether the peer seems to be gone: an answer is overdue, and nothing else comes.

        Nothing must have arrived for SILENT_MS. A request that may take long, such as a pull that
        waits for messages, has a later deadline of its own and is not overdue before that.
        """
        return self.idle_ms(steady_ms) >= SILENT_MS and self._connection.is_late(steady_ms)

    def idle_ms(self, steady_ms: int) -> int:
        """Returns for how many ms nothing has arrived, to within the time between two calls."""
        if self._has_spoken:
            self._has_spoken = False
            self._last_active_ms = steady_ms
        return steady_ms - self._last_active_ms

    def expire(self, steady_ms: int) -> None:
        """Fails our requests that have waited too long."""
        if self._connection.in_flight:
            self._connection.expire(steady_ms)

    # -------------------------------------------------------------- Protocol

    def connectionMade(self) -> None:
        transport: Any = self.transport
        there, here = transport.getPeer(), transport.getHost()
        self.remote_address = address_text(there.host, there.port)
        self.local_address = address_text(here.host, here.port)
        self.remote_host = host_bytes(there.host, there.port)
        self.local_host = host_bytes(here.host, here.port)
        self._last_active_ms = self._clock.steady_ms()
        transport.setTcpNoDelay(True)
        transport.bufferSize = READ_BYTES
        transport.registerProducer(self, True)
        self._outlet = self._first_outlet(plain_outlet(transport))
        if self._gathers:
            self._outlet = GatheringOutlet(self._outlet, self._clock.at_end_of_turn)

    def dataReceived(self, data: bytes) -> None:
        self._has_spoken = True
        try:
            if self._choose is not None:
                data = self._behind_header(data)
                if not data:
                    return
                choose, self._choose = self._choose, None
                self._outlet = choose(self._outlet, data)
            said = self._outlet.take(data)
        except RemotingError as error:
            self._refuse(error)
            return
        connection = self._connection
        commands = connection.receive(said)
        if commands:
            state = self._state
            if state.serves:
                # If there is only one, nothing is left to be held.
                one = len(commands) == 1
                self._serve(self, commands if one else self._while_it_reads(commands))
            elif state.holds:  # these had arrived when it was paused
                self._held += commands
        if connection.error is not None:
            self._refuse(connection.error, stranger(data))

    def connectionLost(self, reason: Failure = Failure(Exception("lost"))) -> None:  # noqa: B008
        self._happened(Event.LOSE)
        self._held = []
        if self._closed is not None:  # first, so that what is tried again finds another connection
            self._closed(self)
        why = f": {self._refused}" if self._refused else ""
        self._connection.lost(SendError(f"the connection to {self.remote_address} was lost{why}"))

    # --------------------------------------------------------- IPushProducer

    def pauseProducing(self) -> None:
        """Stops reading from the peer, because it does not read what it is sent."""
        self._outlet.pause()
        if self._happened(Event.PAUSE):
            transport: Any = self.transport
            transport.pauseProducing()

    def resumeProducing(self) -> None:
        """Goes on when the peer has read what it was sent.

        The rest of what was written comes first; then the requests that were held are served, and
        then the peer is read from again.
        """
        if not self._outlet.resume() or not self._happened(Event.RESUME):
            return
        held, self._held = self._held, []
        if held:
            self._serve(self, self._while_it_reads(held))
        if self._state.serves:  # still: what was held may have had long answers
            transport: Any = self.transport
            transport.resumeProducing()

    def stopProducing(self) -> None:
        """Does nothing, since `connectionLost` follows."""

    # ------------------------------------------------------------- internals

    def _first_outlet(self, plain: Outlet) -> Outlet:
        """Returns the outlet before anything has arrived, given the one that does not encrypt."""
        return plain

    def _happened(self, event: Event) -> bool:
        """Changes the state as the event demands; returns whether it is another one now."""
        before, self._state = self._state, TRANSITIONS[self._state][event]
        return self._state is not before

    def _while_it_reads(self, commands: list[RemotingCommand]) -> Iterator[RemotingCommand]:
        """Yields commands until too much is unsent; the rest is held until the peer has read."""
        for index, command in enumerate(commands):
            if self._state is not OPEN:
                if self._state.holds:
                    self._held = commands[index:]
                return
            yield command

    def _behind_header(self, data: bytes) -> bytes:
        """Returns what has arrived behind the header of a load balancer, if there is a header.

        Only the first bytes can be one: what follows comes from the client, who must not pretend to
        be another. Raises RemotingError.
        """
        if self._header is None:
            return data
        data = self._header + data
        if may_begin_header(data):
            header = read_header(data)
            if header is None:
                self._header = data
                return b""
            if header.host:
                self.remote_address = address_text(header.host, header.port)
            data = data[header.length_bytes :]
        self._header = None
        return data

    def _refuse(self, error: RemotingError, why: str = "") -> None:
        if self._state is CLOSING:
            return
        self._refused = str(error)
        # The text of any other error may contain what the peer has sent, and so be new each time.
        kind = self._refused if isinstance(error, TlsError) else why
        more = self._seldom.more(self._clock.steady_ms(), kind) if self._seldom is not None else 0
        if more is not None:
            log.warn(
                "closing {peer}: {why}{more}",
                peer=self.remote_address,
                why=why or self._refused,
                more=and_more(more),
            )
        self.close()

    def _check_unsent(self) -> None:
        unsent = self._outlet.unsent_bytes()
        if unsent > MAX_BUFFERED_BYTES:
            log.warn(
                "closing {peer}: it does not read {n} bytes", peer=self.remote_address, n=unsent
            )
            self.abort()
