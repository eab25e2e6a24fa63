# SPDX-License-Identifier: Apache-2.0
"""A connection of a gRPC client: a peer whose bytes are HTTP/2, and the calls that are open on it.

How it is read from, what waits and when it has its turn is as with peers of the remoting protocol
(transport/peer.py). What is written in one turn of the reactor leaves together.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, cast

from h2.errors import ErrorCodes
from h2.events import (
    ConnectionTerminated,
    DataReceived,
    PingAckReceived,
    RemoteSettingsChanged,
    RequestReceived,
    StreamEnded,
    StreamReset,
    WindowUpdated,
)
from twisted.internet.defer import Deferred
from twisted.logger import Logger
from twisted.python.failure import Failure

from txrocketmq.proxy.grpc.call import Call
from txrocketmq.proxy.grpc.counts import OTHER, Counts
from txrocketmq.proxy.grpc.deadlines import Deadlines, timeout_ms
from txrocketmq.proxy.grpc.framing import GZIP, IDENTITY
from txrocketmq.proxy.grpc.headers import Headers
from txrocketmq.proxy.grpc.service import Kind, Rpcs
from txrocketmq.proxy.grpc.status import GrpcError, GrpcStatus
from txrocketmq.proxy.grpc.stream import Asked, Stream, refused
from txrocketmq.proxy.http2.engine import Header, Http2Connection
from txrocketmq.proxy.http2.plain_connection import WholeRequest
from txrocketmq.remoting.errors import RemotingError
from txrocketmq.remoting.host.clock import Clock
from txrocketmq.remoting.process.log_limit import Seldom, and_more
from txrocketmq.remoting.transport.peer import TcpPeer

QUIET_MS: Final = 60_000
"""If nothing has come for so long on a connection with open calls, the client is sent a ping."""
SILENT_MS: Final = 20_000
"""How long it has to answer."""
_SLICE_FRAMES: Final = 32
"""How many frames that have waited are sent in one turn."""
_MOST_WAITING_BYTES: Final = 256 * 1024
"""If more than this is to be sent in one turn, it leaves before its end."""
MOST_TO_RESET: Final = 64
"""How many streams that have ended within a second are reset later; others are at once."""
_STATE_BYTES: Final = 16 * 1024
"""About how much memory the state of HTTP/2 takes for a connection."""
MOST_ASKED: Final = 256
"""How many combinations of headers are remembered; there is one or two for each method."""
_TIMEOUT: Final = b"grpc-timeout"
_ASKS: Final = (b":path", b":method", b"content-type", b"grpc-encoding")

log = Logger()


@dataclass(slots=True)
class Service:
    """What all connections of a server share, besides what peers of all kinds do."""

    rpcs: Rpcs
    most_message_bytes: int
    most_calls: int
    deadlines: Deadlines = field(default_factory=Deadlines)
    counts: Counts = field(default_factory=Counts)
    seldom: Seldom = field(default_factory=lambda: Seldom(5))
    asked: dict[tuple[bytes | None, ...], Asked] = field(default_factory=dict)
    """What was asked for, by the headers that say it; MOST_ASKED at most."""


class GrpcPeer(TcpPeer):
    """The connection of a client of a service; the other arguments are those of any peer."""

    def __init__(
        self, clock: Clock, service: Service, closed: Callable[[TcpPeer], None], **named: Any
    ) -> None:
        self.connection = Http2Connection(service.most_calls, self._dirty)
        super().__init__(
            clock,
            GrpcPeer._serve_events,
            closed,
            connection=cast("Any", self.connection),  # it has what is used of one
            **named,
        )
        self._service = service
        self.streams: dict[int, Stream] = {}
        """The open calls, by the numbers of their streams."""
        self._waiting: OrderedDict[Stream, None] = OrderedDict()
        """Those with answers for which there was no room."""
        self._without_room = 0
        """How many of them in a row were found without room, since there was more for any."""
        self._ended_before: list[int] = []
        self._ended_now: list[int] = []
        """Streams that we have ended, and the client has not, before `expire` was called and since:
        they are to be reset."""
        self._is_dirty = self._is_sending_on = self._leaves = False
        self._asked_ms: int | None = None
        """When the client was asked whether it is there, unless it has answered."""

    # ------------------------------------------------------------------- calls

    def _serve_events(self, events: list[Any], may_go_on: Callable[[], bool]) -> int:
        """Serves events as long as it may; returns how many were served."""
        for index, event in enumerate(events, 1):
            kind = type(event)
            if kind is WholeRequest:
                number, headers, data = event
                stream = self._open(number, headers, data)
                if stream is not None:
                    stream.whole(data)
                if not may_go_on():
                    return index
            elif kind is DataReceived:
                stream = self.streams.get(event.stream_id)
                size_bytes = event.flow_controlled_length
                if stream is not None:
                    stream.received(event.data, size_bytes)
                else:
                    self.connection.took(event.stream_id, size_bytes)
            elif kind is RequestReceived:
                self._open(event.stream_id, dict(event.headers))
            elif kind is StreamEnded:
                stream = self.streams.get(event.stream_id)
                if stream is not None:
                    stream.half_closed()
                if not may_go_on():
                    return index
            elif self._waiting or kind is not WindowUpdated:
                self._other(kind, event)
        return len(events)

    def _other(self, kind: type, event: Any) -> None:
        if kind is StreamReset:
            stream = self.streams.get(event.stream_id)
            if stream is not None:
                stream.cancel()
        elif kind is WindowUpdated or kind is RemoteSettingsChanged:
            if self._waiting:
                self._has_room(getattr(event, "stream_id", 0))
        elif kind is PingAckReceived:
            self._asked_ms = None
        elif kind is ConnectionTerminated:
            self._leaves = True
            if not self.streams:
                self.close()

    def _open(
        self, number: int, by_name: dict[bytes, bytes], whole: bytes | None = None
    ) -> Stream | None:
        """Opens a call and returns it, or refuses it. With `whole`, its request has arrived."""
        service = self._service
        if len(self.streams) >= service.most_calls:  # it does not know the limit yet
            self.connection.reset(number, ErrorCodes.REFUSED_STREAM)
            return None
        headers = Headers(by_name)
        counts = None
        try:
            get = by_name.get
            asks = (get(_ASKS[0]), get(_ASKS[1]), get(_ASKS[2]), get(_ASKS[3]))
            asked = service.asked.get(asks) or self._found(
                number, headers, asks, is_whole=whole is not None
            )
            if asked is None:
                return None
            counts = asked.counts
            now_ms = self._clock.steady_ms()
            deadline_ms = _deadline_ms(headers, now_ms) if _TIMEOUT in by_name else None
        except GrpcError as error:
            (counts or service.counts.of(OTHER)).end(error.status)
            self._refuse_call(number, refused(error), is_whole=whole is not None)
            return None
        rpc = asked.served.rpc
        whole_bytes = 0 if whole is None else len(whole)
        stream = self.streams[number] = Stream(number, self, asked, whole_bytes, now_ms)
        stream.call = Call(
            rpc.name,
            headers,
            stream,
            self._clock.steady_ms,
            peer=self.remote_address,
            local=self.local_address,
            deadline_ms=deadline_ms,
        )
        counts.open += 1
        if deadline_ms is not None:
            service.deadlines.add(deadline_ms, stream, stream.late)
        if rpc.kind is Kind.CONVERSATION:
            stream.begin()
        return stream

    def _found(
        self, number: int, headers: Headers, asks: tuple[bytes | None, ...], *, is_whole: bool
    ) -> Asked | None:
        """Returns what is asked for; refuses what is not gRPC, and returns None then.

        Raises GrpcError if the method is not served, or its messages cannot be read.
        """
        if headers.get(":method") != "POST":
            self._refuse_call(number, ((":status", "405"), ("allow", "POST")), is_whole=is_whole)
            return None
        if not headers.get("content-type", "").startswith("application/grpc"):
            self._refuse_call(number, ((":status", "415"),), is_whole=is_whole)
            return None
        service = self._service
        path = headers.get(":path", "")
        served = service.rpcs.find(path)
        if served is None:
            raise GrpcError(GrpcStatus.UNIMPLEMENTED, f"{path[:256]} is not served")
        most_bytes = min(
            served.rpc.most_bytes or service.most_message_bytes, service.most_message_bytes
        )
        counts = service.counts.of(served.rpc.name)
        encoding = headers.get("grpc-encoding", IDENTITY)
        if encoding not in (IDENTITY, GZIP):
            counts.end(GrpcStatus.UNIMPLEMENTED)
            error = GrpcError(
                GrpcStatus.UNIMPLEMENTED,
                f"grpc-encoding is {encoding[:32]!r}, but messages are taken as {IDENTITY} or"
                f" {GZIP}",
            )
            self._refuse_call(number, refused(error), is_whole=is_whole)
            return None
        if len(service.asked) >= MOST_ASKED:
            service.asked.clear()
        asked = service.asked[asks] = Asked(served, counts, encoding, most_bytes)
        return asked

    def _refuse_call(self, number: int, headers: tuple[Header, ...], *, is_whole: bool) -> None:
        self.connection.headers(number, headers, ends=True)
        if not is_whole:
            self.connection.reset(number)

    # ---------------------------------------------------------------- Carrier

    def room(self, number: int) -> int:
        """Returns how many bytes can be sent now of a stream, in one frame."""
        if self.connection.waiting_bytes > _MOST_WAITING_BYTES:
            self._flush()
        return self.connection.room(number) if self.reads else 0

    def data(self, number: int, data: bytes) -> bool:
        """Sends data of a stream in one frame, if there is room; returns whether there was."""
        connection = self.connection
        if not self._state.reads or connection.waiting_bytes > _MOST_WAITING_BYTES:
            return False
        return connection.data_at_once(number, data)

    def answer(self, number: int, data: bytes) -> bool:
        """Sends a message and the end of a call, if there is room; returns whether there was."""
        connection = self.connection
        if not self._state.reads or connection.waiting_bytes > _MOST_WAITING_BYTES:
            return False
        return connection.answer(number, data)

    def waits_for_room(self, stream: Stream) -> None:
        """Has `send_on` called when there may be room."""
        self._waits_last(stream)

    def reset_later(self, number: int) -> None:
        """Resets a stream that has ended within a second or two.

        The client for Rust does not find an end that is followed by a reset at once, and looks for
        it without a pause then.
        """
        if len(self._ended_now) < MOST_TO_RESET:
            self._ended_now.append(number)
        else:
            self.connection.reset(number)

    def ended(self, stream: Stream) -> None:
        """Forgets a call that has ended."""
        if self._waiting:
            self._waiting.pop(stream, None)
        if self.streams.pop(stream.number, None) is None:
            return
        self.connection.floods.made_room()
        counts = stream.counts
        counts.open -= 1
        if stream.served.rpc.kind is not Kind.CONVERSATION:
            counts.times.add(self._clock.steady_ms() - stream.started_ms)
        deadline_ms = stream.call.deadline_ms
        if deadline_ms is not None:
            self._service.deadlines.remove(deadline_ms, stream)
        if self._leaves and not self.streams:
            self._clock.later(0, self.close)

    hold = TcpPeer.begin_wait
    """Counts bytes that are held for calls."""

    def pause(self) -> Deferred[None]:
        """Fires in the next turn of the reactor."""
        return self._clock.pause(0)

    def failed(self, failure: Failure, call: Call) -> None:
        """Logs a defect of a method, but not each time."""
        more = self._service.seldom.more(self._clock.steady_ms(), call.method)
        if more is not None:
            log.failure("{method} failed{more}", failure, method=call.method, more=and_more(more))

    # ------------------------------------------------------------------- peer

    def leave(self) -> None:
        """Takes no new calls, and closes the connection when those that are open have ended."""
        self._leaves = True
        self.connection.go_away()
        for stream in list(self.streams.values()):
            stream.stop()
        if not self.streams:
            self.close()

    def close(self) -> None:
        """Cancels all calls, and closes the connection after all that was written has been sent."""
        if self.connected:
            self.connection.go_away()
            self._cancel_all(GrpcError(GrpcStatus.UNAVAILABLE, "the connection is closed"))
            self._flush()
        super().close()

    def abort(self) -> None:
        """Closes the connection at once."""
        super().abort()
        self._cancel_all()

    def connectionMade(self) -> None:
        super().connectionMade()
        self.hold(_STATE_BYTES)

    def connectionLost(self, reason: Failure = Failure(Exception("lost"))) -> None:  # noqa: B008
        super().connectionLost(reason)
        self._cancel_all()

    def idle_ms(self, steady_ms: int) -> int:
        """Returns for how many ms nothing has arrived and no call was open."""
        quiet_ms = super().idle_ms(steady_ms)
        return 0 if self.streams and self.state.is_connected and not self._leaves else quiet_ms

    def expire(self, steady_ms: int) -> None:
        """Lets floods run out, and asks clients that are quiet whether they are there."""
        self.connection.floods.tick()
        for number in self._ended_before:
            self.connection.reset(number)
        self._ended_before, self._ended_now = self._ended_now, []
        quiet_ms = super().idle_ms(steady_ms)
        if not self.streams or quiet_ms < QUIET_MS:
            self._asked_ms = None
        elif self._asked_ms is None:
            self._asked_ms = steady_ms
            self.connection.ping()
        elif steady_ms - self._asked_ms >= SILENT_MS:
            log.info("closing {peer}: it does not answer", peer=self.remote_address)
            self.abort()

    def resumeProducing(self) -> None:
        """Sends on what waits when the peer has read what it was sent."""
        super().resumeProducing()
        if self._waiting:
            self._without_room = 0
            self._send_on_soon()

    def _refuse(self, error: RemotingError, why: str = "") -> None:
        super()._refuse(error)  # its words about strangers are those of the remoting port

    def _cancel_all(self, why: GrpcError | None = None) -> None:
        for stream in list(self.streams.values()):
            if why is None:
                stream.cancel()
            else:
                stream.cancel(why, resets=True)

    def _dirty(self) -> None:
        if not self._is_dirty:
            self._is_dirty = True
            self._clock.at_end_of_turn(self._flush)

    def _flush(self) -> None:
        self._is_dirty = False
        data = self.connection.data_to_send()
        if data:
            self.write((data,))

    def _has_room(self, number: int) -> None:
        """Sends some of what waits, since there is more room for a call, or with 0 for all."""
        stream = self.streams.get(number)
        if not number:
            self._without_room = 0
            self._send_on()
        elif stream is not None and stream in self._waiting:
            del self._waiting[stream]
            stream.send_on()
            if stream.waits:
                self._waiting[stream] = None
                if self.room(number):
                    self._waits_last(stream)

    def _waits_last(self, stream: Stream) -> None:
        self._waiting[stream] = None
        self._waiting.move_to_end(stream)
        self._without_room = 0
        self._send_on_soon()

    def _send_on_soon(self) -> None:
        if not self._is_sending_on:
            self._is_sending_on = True
            self._clock.later(0, self._send_on_now)

    def _send_on_now(self) -> None:
        self._is_sending_on = False
        if self.connected:
            self._send_on()

    def _send_on(self) -> None:
        """Sends some of what waits, a frame of each call in turn; goes on in the next turn.

        If no call has room that waits, they are all left alone until there is room.
        """
        for _ in range(_SLICE_FRAMES):
            if self._without_room >= len(self._waiting) or self.connection.is_full:
                return
            stream, _ = self._waiting.popitem(last=False)
            self._without_room = 0 if stream.send_on() else self._without_room + 1
            if stream.waits:
                self._waiting[stream] = None
        if self._waiting and self.reads:
            self._send_on_soon()


def _deadline_ms(headers: Headers, now_ms: int) -> int | None:
    """Returns until when a caller waits. Raises GrpcError."""
    text = headers.get("grpc-timeout")
    try:
        return now_ms + timeout_ms(text) if text else None
    except ValueError as error:
        raise GrpcError(GrpcStatus.INTERNAL, str(error)) from None
