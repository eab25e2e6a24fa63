# SPDX-License-Identifier: Apache-2.0
"""A TCP connection as a Peer: drives a Connection without I/O, with limited buffers both ways.

While a client does not read what it is sent, it is not read from and its requests are not served,
so what one connection can hold is its socket buffers, one read's requests and a few answers. What
has arrived is decoded and served in portions, until the peer's part of a turn of the reactor is
over (turns.py), and what is held for all peers together has a limit as well (held_bytes.py). The
table in `peer_state.py` says what can happen to a connection in each of its states, and `outlet.py`
has the ways in which bytes leave. Counterpart of Netty's channel and NettyServerHandler /
NettyClientHandler.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from twisted.internet.interfaces import IPushProducer
from twisted.internet.protocol import Protocol
from twisted.logger import Logger
from twisted.python.failure import Failure
from zope.interface import implementer

from txrocketmq.remoting.call import WAITING_BYTES, Buffer, Call, PendingReply
from txrocketmq.remoting.command import RemotingCommand
from txrocketmq.remoting.errors import RemotingError, SendError, TlsError
from txrocketmq.remoting.frame.connection import Connection, InFlight, Seal
from txrocketmq.remoting.frame.proxy_protocol import Beginning
from txrocketmq.remoting.header import Header
from txrocketmq.remoting.host.clock import Clock
from txrocketmq.remoting.process.log_limit import and_more
from txrocketmq.remoting.transport.address import address_text, host_bytes
from txrocketmq.remoting.transport.held_bytes import PARKED_BYTES
from txrocketmq.remoting.transport.outlet import Choose, GatheringOutlet, Outlet, plain_outlet
from txrocketmq.remoting.transport.peer_state import (
    CLOSING,
    NEW,
    OPEN,
    TRANSITIONS,
    WAITING,
    Event,
    State,
)
from txrocketmq.remoting.transport.strangers import Shared, stranger
from txrocketmq.remoting.transport.turns import (
    ENDLESS,
    LIGHT_READS,
    LITTLE_BYTES,
    LONG_TURN,
    MOST_LIGHT_READS,
    TURN_S,
)

READ_BYTES = 256 * 1024
"""How many bytes one read takes at most."""
PORTION_BYTES = 256 * 1024
PORTION_COMMANDS = 256
"""How many bytes and how many requests are decoded and served together at most. A longer frame is
served by itself. So many small requests take some two milliseconds, and requests with bodies of a
kilobyte do not take longer: their bytes are copied and summed, but not looked at."""
MAX_BUFFERED_BYTES = 64 * 1024 * 1024
"""If more bytes than this wait for a peer that does not read, its connection is closed."""
MOST_WORKS = 2
"""For how many answers, each of which may fill a frame, work may be under way for one peer. What
else it asks is served when one of them has been written, and the peer has read so much of that as
it has to read of any answer."""
SILENT_MS = 3_000
"""How long a peer that owes an answer must have sent nothing to be taken for lost."""

Serve = Callable[[Any, list[RemotingCommand], Callable[[], bool]], int]
"""Serves requests for as long as the last argument says so; returns how many were served."""

log = Logger()


@implementer(IPushProducer)
class TcpPeer(Protocol):
    """One connection; `serve` gets the requests, `closed` the peer once at its end.

    It writes to a plain outlet unless `choose` creates another one when the first bytes arrive. A
    connection with `choose` may begin with a header that says for whom a load balancer has opened
    it; if that is one of the balancers in `shared`, `remote_address` changes, and nothing else. If
    the peer `gathers`, everything that is written in one turn of the reactor leaves together.
    `told_to_go` gets the requests that the peer answers with GO_AWAY. What it shares with other
    peers is limited by `shared`; without that, its requests are served at once.
    """

    on_free: Callable[[], None] | None = None  # called when the peer reads again

    def __init__(
        self,
        clock: Clock,
        serve: Serve,
        closed: Callable[[TcpPeer], None] | None = None,
        *,
        choose: Choose | None = None,
        shared: Shared | None = None,
        seal: Seal | None = None,
        gathers: bool = False,
        told_to_go: Callable[[TcpPeer, InFlight], None] | None = None,
        connection: Connection | None = None,
    ) -> None:
        self.turns = ENDLESS if shared is None else shared.turns
        self.held_bytes = 0
        """How many bytes are held for it, as its budget was told."""
        self._recounts = False  # whether that may change with each read
        self._reads = 0
        """How many reads there were. The clock is not read for each of them: `idle_ms` finds out
        whether there were more since it was called."""
        self._reads_noted = 0
        self._made_up_reads = 0
        """How many of them only make up for long turns."""
        self._works = 0  # for how many answers that come later work is under way
        self._budget = None if shared is None else shared.held
        self._clock = clock
        self._gathers = gathers
        self._serve = serve
        self._closed = closed
        self._connection = connection or Connection(
            portion_commands=PORTION_COMMANDS,
            portion_bytes=PORTION_BYTES,
            seal=seal,
            told_to_go=None if told_to_go is None else partial(told_to_go, self),
        )
        self.decoder = self._connection.decoder
        """It owns all that has arrived and was not served."""
        self._state: State = NEW
        self._outlet: Outlet
        self._choose = choose
        self._beginning = Beginning()
        self._parked_bytes = 0
        self._shared = shared
        self._refused = ""
        """Why the connection was closed, if what the peer has sent is the reason. (The error itself
        would hold the frames it was raised in, and these the peer: memory that comes back late.)"""
        self._last_active_ms = 0
        self.remote_address = self.local_address = ""
        self.remote_host = self.local_host = b""
        self.allowed: dict[int, Any] = {}

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
        return self._state.reads

    def write(self, buffers: Sequence[Buffer]) -> None:
        """Sends encoded frames."""
        if not self._state.is_connected:
            return
        if not self._outlet.write(buffers):
            if self._budget is not None:
                self._recount()
            if not self._state.reads:  # otherwise the transport pauses the peer in time
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

    def begin_wait(self, size_bytes: int = WAITING_BYTES) -> None:
        """Counts the memory of a request that waits until something happens."""
        before = self._parked_bytes
        self._parked_bytes = after = before + size_bytes
        if before // PARKED_BYTES != after // PARKED_BYTES:
            self._recount()

    def end_wait(self, size_bytes: int = WAITING_BYTES) -> None:
        """Counts that such a request has been answered."""
        self.begin_wait(-size_bytes)

    def begin_work(self) -> None:
        """Serves nothing more while work is under way for MOST_WORKS answers."""
        self._works += 1
        if self._works == MOST_WORKS:
            self._wait(0)

    def end_work(self) -> None:
        """Goes on, when it is the peer's turn, if it has waited for this."""
        self._works -= 1
        if self._works == MOST_WORKS - 1 and self._state is WAITING:
            self._join(self.held_bytes)

    def close(self) -> None:
        """Closes the connection after everything that was written has been sent."""
        if self._happened(Event.CLOSE):
            self._forget()
            transport: Any = self.transport
            transport.unregisterProducer()  # Twisted would wait for ever for a paused one
            self._outlet.resume()
            self._outlet.end()
            transport.loseConnection()

    def abort(self) -> None:
        """Closes the connection at once; what has not been sent yet is lost."""
        if self._happened(Event.ABORT):
            self._forget()
            transport: Any = self.transport
            transport.abortConnection()

    @property
    def state(self) -> State:
        """The state, which says what may be done with the connection now."""
        return self._state

    def owes(self, late_ms: int = 0) -> bool:
        """Whether answers to our requests are still to come, or are late at a time."""
        return self._connection.is_late(late_ms) if late_ms else self._connection.in_flight > 0

    def is_lost(self, steady_ms: int) -> bool:
        """Returns whether an answer is overdue, and nothing else has come for SILENT_MS.

        A request that may take long, such as a pull that waits, has a later deadline of its own.
        """
        return self.idle_ms(steady_ms) >= SILENT_MS and self._connection.is_late(steady_ms)

    def idle_ms(self, steady_ms: int) -> int:
        """Returns for how many ms nothing has arrived, to within the time between two calls."""
        if self._reads != self._reads_noted:
            self._reads_noted = self._reads
            self._last_active_ms = steady_ms
        return steady_ms - self._last_active_ms

    def unfinished_ms(self, steady_ms: int) -> int:
        """Returns for how long a frame has been unfinished for which the peer is read from."""
        return self.decoder.unfinished_ms(steady_ms) if self._state is OPEN else 0

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
        # Each read goes this way: `turns.begins` and `turns.ends` are written out.
        turns = self.turns
        turns.began_s = began_s = turns.timer()
        self._reads += 1
        try:
            if self._choose is not None:
                data = self._begin(self._choose, data)
                if not data:
                    return
            said = self._outlet.take(data)
        except RemotingError as error:
            self._refuse(error)
            turns.ends()
            return
        decoder = self.decoder
        if self._state is OPEN and turns.spent_s < TURN_S:
            commands = self._connection.receive(said)
            served = self._serve(self, commands, self._may_go_on) if commands else 0
            if served < len(commands) or decoder.is_behind:
                self._serve_on(commands[served:])
            elif decoder.error is not None:
                self._refuse(decoder.error, stranger(said))
        elif self._state is OPEN or self._state.holds:
            decoder.keep(said)
            if self._state is OPEN and decoder.is_behind:
                self._wait(len(said))
        elif self._state is CLOSING:
            self._connection.hear(said)  # there may be answers to our requests
        turns.spent_s = spent_s = turns.spent_s + turns.timer() - began_s
        if spent_s > turns.noted_s:
            turns.find_out()
        if self._recounts or decoder.held_bytes:
            self._recount()

    def connectionLost(self, reason: Failure = Failure(Exception("lost"))) -> None:  # noqa: B008
        self._happened(Event.LOSE)
        self._forget()
        if self._closed is not None:  # first, so that what is tried again finds another connection
            self._closed(self)
        why = f": {self._refused}" if self._refused else ""
        self._connection.lost(SendError(f"the connection to {self.remote_address} was lost{why}"))

    # ----------------------------------------------------------------- Waits

    def is_known(self) -> bool:
        """Returns whether it is known for reads that cost little."""
        return self._reads - self._made_up_reads >= LIGHT_READS

    def take_turn(self) -> None:
        """Serves what is held, for as long as it may; then the peer is read from again."""
        if self._happened(Event.TURN):
            self._go_on()

    def took_long(self) -> None:
        """Is known for little only after more reads, if at all."""
        remembered = self._reads - MOST_LIGHT_READS
        self._made_up_reads = max(self._made_up_reads, remembered) + LONG_TURN

    def give_up(self) -> None:
        """Ends the connection, whose place in its stream is lost."""
        self.abort()

    # ---------------------------------------------------------------- Holder

    def crowd(self) -> None:
        """Does not read from the peer, and serves nothing, until there is room."""
        if self._happened(Event.CROWD):
            self.turns.leave(self)
            transport: Any = self.transport
            transport.pauseProducing()

    def has_room(self) -> None:
        """Goes on when it is the peer's turn."""
        if self._happened(Event.ROOM):
            self._join(self.held_bytes)

    def has_sent(self) -> None:
        """Counts what is held, because the transport has sent some of it."""
        if self._recounts:
            self._recount()

    # --------------------------------------------------------- IPushProducer

    def pauseProducing(self) -> None:
        """Stops reading from the peer, because it does not read what it is sent."""
        self._outlet.pause()
        if self._happened(Event.PAUSE):
            self.turns.leave(self)
            transport: Any = self.transport
            transport.pauseProducing()

    def resumeProducing(self) -> None:
        """Goes on: the rest leaves, requests that were held are served, and then more is read."""
        if self._outlet.resume() and self._happened(Event.RESUME):
            if (self.turns.is_over and self.decoder.is_behind) or self._works >= MOST_WORKS:
                self._wait(self.decoder.held_bytes)
            else:
                self._go_on()
            if self.on_free is not None:
                self.on_free()
        self._recount()

    def stopProducing(self) -> None:
        """Does nothing, since `connectionLost` follows."""

    # ------------------------------------------------------------- internals

    def _first_outlet(self, plain: Outlet) -> Outlet:
        """Returns the outlet before anything has arrived, given the one that does not encrypt."""
        return plain

    def _begin(self, choose: Choose, data: bytes) -> bytes:
        """Has the first bytes choose the outlet; returns what is behind a header."""
        data, header = self._beginning.behind_header(data)
        if header is not None and header.host and self._shared is not None:
            transport: Any = self.transport
            host, other = transport.getPeer().host, address_text(header.host, header.port)
            if self._shared.believes(host, other, self._clock.steady_ms()):
                self.remote_address = other
        if data:
            self._choose, self._outlet = None, choose(self._outlet, data)
            self._recounts = self._outlet.state_bytes > 0
        return data

    def _happened(self, event: Event) -> bool:
        """Changes the state as the event demands; returns whether it is another one now."""
        before, self._state = self._state, TRANSITIONS[self._state][event]
        return self._state is not before

    def _go_on(self) -> None:
        """Serves some of what is held, and reads on if that is all; there may be long answers."""
        turns = self.turns
        turns.begins()
        commands = self._connection.receive(b"") if self.decoder.is_behind else []
        served = self._serve(self, commands, self._may_go_on) if commands else 0
        self._serve_on(commands[served:])
        turns.ends()
        if self._state is OPEN:
            transport: Any = self.transport
            transport.resumeProducing()
        self._recount()

    def _serve_on(self, commands: list[RemotingCommand]) -> None:
        """Serves commands and what the decoder still has, as long as it may; holds the rest."""
        decoder = self.decoder
        while (commands or decoder.is_behind) and self._may_go_on():
            if not commands:
                commands = self._connection.receive(b"")
            if commands:
                commands = commands[self._serve(self, commands, self._may_go_on) :]
        if commands or decoder.is_behind:
            if self._state.holds or self._state is OPEN:
                decoder.leave(commands)
            if self._state is OPEN:
                self._wait(LITTLE_BYTES + 1)
            self._recount()
        elif decoder.error is not None:
            self._refuse(decoder.error)

    def _may_go_on(self) -> bool:
        return self._state is OPEN and self.turns.goes_on()

    def _wait(self, size_bytes: int) -> None:
        """Waits for the next turn, with so many bytes."""
        if self._happened(Event.WAIT):
            transport: Any = self.transport
            transport.pauseProducing()
            self._join(size_bytes)

    def _join(self, size_bytes: int) -> None:
        """Has its turn, unless it first waits for its own answers."""
        if self._works < MOST_WORKS:
            self.turns.join(self, size_bytes, is_known=self.is_known())

    def _forget(self) -> None:
        """Drops the requests that are held, since the connection has ended."""
        self.decoder.forget_commands()
        self.turns.leave(self)
        self._recount()

    def _recount(self) -> None:
        """Counts what is held for the peer; nothing is, once its connection is given up."""
        if self._budget is None:
            return
        size_bytes = 0
        if self._state.is_connected:
            outlet = self._outlet
            size_bytes = outlet.unsent_bytes() + outlet.state_bytes + self.decoder.held_bytes
            self._recounts = size_bytes > 0
            size_bytes += self._parked_bytes // PARKED_BYTES * PARKED_BYTES
        before, self.held_bytes = self.held_bytes, size_bytes
        if size_bytes != before:
            self._budget.changed(self, before, size_bytes)

    def _refuse(self, error: RemotingError, why: str = "") -> None:
        if self._state is CLOSING:
            return
        self._refused = str(error)
        # The text of other errors may contain what the peer has sent, and so be new each time.
        kind = self._refused if isinstance(error, TlsError) else why
        more = (
            0 if self._shared is None else self._shared.seldom.more(self._clock.steady_ms(), kind)
        )
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
