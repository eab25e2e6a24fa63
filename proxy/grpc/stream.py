# SPDX-License-Identifier: Apache-2.0
"""The server's side of one call: its messages, the method that serves it, and its answers.

What does not fit into the peer's window waits here, and is sent as the peer makes room. A call ends
once: with trailers, or because the peer or its deadline has cancelled it.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from types import CoroutineType
from typing import Any, Final, Protocol

from h2.errors import ErrorCodes
from twisted.internet.defer import Deferred
from twisted.logger import Logger
from twisted.python.failure import Failure

from txrocketmq.proxy.grpc.call import Call
from txrocketmq.proxy.grpc.counts import CallCounts
from txrocketmq.proxy.grpc.framing import Messages, framed, whole_message
from txrocketmq.proxy.grpc.service import MOST_BYTES, Kind, Served
from txrocketmq.proxy.grpc.status import GrpcError, GrpcStatus, percent_encoded
from txrocketmq.proxy.grpc.weight import MOST_FIELDS, MOST_OTHER_BYTES, Weight
from txrocketmq.proxy.http2.engine import Header, Http2Connection
from txrocketmq.remoting.call import PendingReply

CALL_BYTES: Final = 8 * 1024
"""About how much memory an open call takes, besides its messages."""
HEADERS: Final[tuple[Header, ...]] = ((":status", "200"), ("content-type", "application/grpc"))
_OK: Final[tuple[Header, ...]] = (("grpc-status", "0"),)
_MOST_TAKEN: Final = 64
"""How many messages of a conversation are taken in one turn."""
_ENDED: Final = "the server has ended it"
_GONE: Final = GrpcError(GrpcStatus.CANCELLED, "the caller is gone")
_LATE: Final = GrpcError(GrpcStatus.DEADLINE_EXCEEDED, "the deadline of the call is over")
STOPS: Final = GrpcError(GrpcStatus.UNAVAILABLE, "the proxy stops; connect to another one")

log = Logger()


@dataclass(frozen=True, slots=True)
class Asked:
    """What the headers of a call ask for: a method, and how its messages are encoded."""

    served: Served
    counts: CallCounts
    encoding: str
    most_bytes: int


class Carrier(Protocol):
    """The peer whose connection carries calls."""

    connection: Http2Connection

    def room(self, number: int) -> int:
        """Returns how many bytes can be sent now of a stream, in one frame."""

    def data(self, number: int, data: bytes) -> bool:
        """Sends data of a stream in one frame, if there is room; returns whether there was."""

    def answer(self, number: int, data: bytes) -> bool:
        """Sends a message and the end of a call, if there is room; returns whether there was."""

    def waits_for_room(self, stream: Stream) -> None:
        """Has `send_on` called when there may be room."""

    def reset_later(self, number: int) -> None:
        """Resets a stream that has ended, when its client has had time to read that."""

    def ended(self, stream: Stream) -> None:
        """Is told once that a call has ended."""

    def hold(self, size_bytes: int) -> None:
        """Counts bytes that are held for the peer; negative ones are no longer."""

    def pause(self) -> Deferred[None]:
        """Fires in the next turn of the reactor."""

    def failed(self, failure: Failure, call: Call) -> None:
        """Logs a defect of a method."""


class Stream:
    """One call with its number on the connection. `call` is set right after it is made.

    `whole_bytes` is how many bytes its request has, if it has arrived whole; they are held. It was
    begun at `started_ms` of the steady clock.
    """

    __slots__ = (
        "_answers",
        "_asked",
        "_conversation",
        "_converses",
        "_deferred",
        "_ending",
        "_ends",
        "_has_answered",
        "_held_bytes",
        "_is_over",
        "_message",
        "_messages",
        "_peer",
        "_untaken_bytes",
        "call",
        "counts",
        "number",
        "served",
        "started_ms",
    )

    def __init__(
        self,
        number: int,
        peer: Carrier,
        asked: Asked,
        whole_bytes: int,
        started_ms: int,
    ) -> None:
        self.number = number
        self.call: Call
        self.served = asked.served
        self.counts = asked.counts
        self.started_ms = started_ms
        self._peer = peer
        self._asked = asked
        self._messages: Messages | None = None  # made when a message comes in pieces
        self._message: bytes | None = None
        self._ends = False  # whether nothing more comes
        self._untaken_bytes = 0
        self._answers: deque[memoryview] | None = None  # made when there is no room
        self._has_answered = False  # whether headers were sent
        self._ending: tuple[Header, ...] | None = None
        self._is_over = False
        self._deferred: Deferred[Any] | None = None
        self._conversation: Any = None
        self._converses = False
        self._held_bytes = CALL_BYTES + whole_bytes
        peer.hold(CALL_BYTES + whole_bytes)

    # ------------------------------------------------------------------ requests

    def begin(self) -> None:
        """Begins a conversation; other calls begin with their message."""
        if self.served.rpc.kind is Kind.CONVERSATION:
            try:
                self._conversation = self.served.method(self.call)
            except Exception:  # noqa: BLE001 - it is a defect of the method, or its answer
                self._fail(Failure())

    def whole(self, data: bytes) -> None:
        """Takes all that comes of a call, for which the window was widened already."""
        if self.served.rpc.kind is not Kind.CONVERSATION:
            message = whole_message(data, self._asked.most_bytes)
            if message is not None:  # as nearly always
                self._ends = True
                self._run(message)
                return
        self.hold(-len(data))  # which are counted as they are taken
        self.received(data, 0)
        self.half_closed()

    def received(self, data: bytes, size_bytes: int) -> None:
        """Takes data that arrived, which took so many bytes of the window."""
        if self._is_over:
            self._peer.connection.took(self.number, size_bytes)
            return
        self._untaken_bytes += size_bytes
        messages = self._messages
        if messages is None:
            if self._message is None and self.served.rpc.kind is not Kind.CONVERSATION:
                self._message = whole_message(data, self._asked.most_bytes)
                if self._message is not None:  # as nearly always
                    self.hold(len(data))
                    self._take()
                    return
            messages = self._messages = Messages(self._asked.most_bytes, self._asked.encoding)
        self.hold(len(data))
        messages.add(data)
        try:
            if self.served.rpc.kind is Kind.CONVERSATION:
                self._converse()
                return
            self._take()
            message = self._next()
        except GrpcError as error:
            self.end(error)
            return
        if message is None:
            return
        self.hold(len(message))
        if self._message is not None:
            self.end(GrpcError(GrpcStatus.INTERNAL, "the call has more than one request"))
        self._message = message

    def half_closed(self) -> None:
        """Goes on because no more messages come."""
        if self._is_over or self._ends:
            return
        self._ends = True
        if self.served.rpc.kind is Kind.CONVERSATION:
            self._converse()
        elif self._message is None or (self._messages is not None and self._messages.held_bytes):
            self.end(GrpcError(GrpcStatus.INTERNAL, "the call has no whole request"))
        else:
            self._run(self._message)
            self._message = None

    def cancel(self, why: GrpcError = _GONE, *, resets: bool = False) -> None:
        """Ends the call, because nobody waits for the answer any more, or it is too late for it.

        With `resets`, the peer is told.
        """
        if self._is_over and self._ending is None:
            return
        was_over, self._is_over = self._is_over, True
        if resets and self._has_answered:
            self._peer.connection.reset(self.number, ErrorCodes.CANCEL)
        elif resets:
            self._trailers(_status(why))
        self._finish(why.status)
        if was_over:
            return
        self._tell(why.text)
        self._cancelled()

    def late(self) -> None:
        """Ends the call, whose deadline is over."""
        self.cancel(_LATE, resets=True)

    def stop(self) -> None:
        """Ends what may take for ever, because the server stops: its client tries elsewhere."""
        if not self._is_over and (
            self.served.rpc.kind is Kind.CONVERSATION
            or (self.served.rpc.kind is Kind.STREAM and not self._has_answered)
        ):
            self.end(STOPS)
            self._cancelled()

    # ------------------------------------------------------------- answers: a Sink

    def send(self, data: bytes) -> bool:
        """Sends a message, or as much of it as there is room for; returns whether that is all."""
        if self._is_over:
            return True
        peer = self._peer
        if not self._has_answered:
            self._has_answered = True
            peer.connection.headers(self.number, HEADERS)
        self.counts.sent += 1
        data = framed(data)
        if not self._answers:
            if peer.data(self.number, data):  # as nearly always
                return True
            if len(data) <= peer.room(self.number):
                peer.connection.data(self.number, data)
                return True
        if self._answers is None:
            self._answers = deque()
        self._answers.append(memoryview(data))
        self.hold(len(data))
        peer.waits_for_room(self)
        return not self._answers

    def end(self, error: GrpcError | None = None) -> None:
        """Ends the call with OK or an error, behind all that waits."""
        if self._is_over:
            return
        self._is_over = self.call.is_over = True
        self._tell(_ENDED if error is None else error.text)
        trailers = _OK if error is None else _status(error)
        if self._answers:
            self._ending = trailers
            return
        self._trailers(trailers)
        self._finish(GrpcStatus.OK if error is None else error.status)

    def hold(self, size_bytes: int) -> None:
        """Counts bytes that are held for the call until it ends; negative ones are no longer."""
        self._held_bytes += size_bytes
        self._peer.hold(size_bytes)

    def send_on(self) -> bool:
        """Sends one frame of what waits; returns whether there was room for it."""
        room = self._peer.room(self.number)
        if not self._answers or not room:
            return False
        data = self._answers.popleft()
        if len(data) > room:
            self._answers.appendleft(data[room:])
            data = data[:room]
        self._peer.connection.data(self.number, bytes(data))
        self.hold(-len(data))
        if self._answers:
            return True
        if self._ending is not None:
            trailers, self._ending = self._ending, None
            self._trailers(trailers)
            self._finish(GrpcStatus(int(trailers[0][1])))
        elif self.call.on_room is not None and not self._is_over:
            self.call.on_room()
        return True

    @property
    def waits(self) -> bool:
        """Whether answers wait for room."""
        return bool(self._answers)

    # ------------------------------------------------------------------ internals

    def _cancelled(self) -> None:
        """Tells all that serve the call that it is cancelled."""
        deferred, self._deferred = self._deferred, None
        try:
            self.call.cancel()
            if deferred is not None:
                deferred.cancel()
        except Exception:  # noqa: BLE001 - other calls are cancelled with this one
            self._peer.failed(Failure(), self.call)

    def _take(self) -> None:
        """Lets the peer send as much as has arrived."""
        size_bytes, self._untaken_bytes = self._untaken_bytes, 0
        self._peer.connection.took(self.number, size_bytes)

    def _next(self) -> bytes | None:
        """Removes the next message; what arrived of it is not held any more. Raises GrpcError."""
        messages = self._messages
        if messages is None:
            return None
        before = messages.held_bytes
        message = messages.next()
        self.hold(messages.held_bytes - before)
        return message

    def _run(self, message: bytes) -> None:
        """Has the method serve the request."""
        try:
            self.counts.received += 1
            outcome = self.served.method(self.call, self._parsed(message))
        except Exception:  # noqa: BLE001 - it is a defect of the method, or its answer
            self._fail(Failure())
            return
        kind = type(outcome)
        if kind is PendingReply:
            outcome.then(self._answered)
            return
        if kind is CoroutineType:
            outcome = Deferred.fromCoroutine(outcome)
        if isinstance(outcome, Deferred):
            self._deferred = outcome
            outcome.addCallbacks(self._done, self._fail)
            outcome.addErrback(self._fail)
        else:
            self._done(outcome)

    def _answered(self, outcome: Any) -> None:
        """Ends the call with an answer that came later, or with the error in its place."""
        if isinstance(outcome, Exception):
            self._fail(Failure(outcome))
            return
        try:
            self._done(outcome)
        except Exception:  # noqa: BLE001 - it is a defect of the answer
            self._fail(Failure())

    def _done(self, answer: Any) -> None:
        """Ends the call with what the method has returned."""
        self._deferred = None
        if self._is_over:
            return
        if self.served.rpc.kind is Kind.UNARY:
            data = answer.SerializeToString()
            if self._peer.answer(self.number, framed(data)):
                self.counts.sent += 1
                self._is_over = self.call.is_over = True
                self._finish(GrpcStatus.OK)
                return
            self.send(data)
        self.end()

    def _fail(self, failure: Failure) -> None:
        self._deferred = None
        if self._is_over:
            return  # it was cancelled
        error = failure.value
        if not isinstance(error, GrpcError):
            self._peer.failed(failure, self.call)
            error = GrpcError(GrpcStatus.INTERNAL, "an internal error, which is in the proxy's log")
        self.end(error)

    def _converse(self) -> None:
        """Passes on messages one after another, each when the one before is done with."""
        self._converses, taken = True, 0
        try:
            while self._deferred is None and not self._is_over:
                message = self._next()
                if message is None:
                    break
                self.counts.received += 1
                outcome = self._conversation.received(self._parsed(message))
                taken += 1
                if not isinstance(outcome, Deferred) and taken == _MOST_TAKEN:
                    outcome = self._peer.pause()
                if isinstance(outcome, Deferred):
                    self._deferred = outcome
                    outcome.addCallbacks(self._go_on, self._fail)
            if self._deferred is not None or self._is_over:
                return
            self._take()
            if self._ends:
                self._tell("")
                self.end()
        except Exception:  # noqa: BLE001 - it is a defect of the method, or its answer
            self._fail(Failure())
        finally:
            self._converses = False

    def _go_on(self, _: object) -> None:
        self._deferred = None
        if not self._converses and not self._is_over:
            self._converse()

    def _tell(self, reason: str) -> None:
        """Tells a conversation once that it has ended."""
        conversation, self._conversation = self._conversation, None
        if conversation is not None:
            try:
                conversation.ended(reason)
            except Exception:  # noqa: BLE001 - a defect of the method
                self._peer.failed(Failure(), self.call)

    def _parsed(self, message: bytes) -> Any:
        bodies = self.served.rpc.bodies
        if bodies and len(message) > MOST_BYTES and Weight(bodies).is_too_much(message):
            raise GrpcError(
                GrpcStatus.RESOURCE_EXHAUSTED,
                f"besides bodies, the request has more than {MOST_FIELDS} fields or"
                f" {MOST_OTHER_BYTES} bytes",
            )
        try:
            return self.served.parse(message)
        except Exception as error:  # noqa: BLE001 - protobuf's DecodeError, which is not imported here
            name = self.served.rpc.request_name
            raise GrpcError(
                GrpcStatus.INTERNAL, f"the request is no {name} of protobuf: {error}"
            ) from None

    def _trailers(self, trailers: tuple[Header, ...]) -> None:
        connection = self._peer.connection
        headers = trailers if self._has_answered else HEADERS + trailers
        connection.headers(self.number, headers, ends=True)
        if self._ends:
            return
        if self.served.rpc.kind is Kind.CONVERSATION:
            self._peer.reset_later(self.number)
        else:
            connection.reset(self.number)

    def _finish(self, status: GrpcStatus) -> None:
        self._answers = self._ending = None
        self._peer.hold(-self._held_bytes)
        self._held_bytes = 0
        self.counts.end(status)
        self._peer.ended(self)


def _status(error: GrpcError) -> tuple[Header, ...]:
    return (
        ("grpc-status", str(int(error.status))),
        ("grpc-message", percent_encoded(error.text)[:4_096]),
    )


def refused(error: GrpcError) -> tuple[Header, ...]:
    """Returns the headers that answer a call with nothing but an error."""
    return HEADERS + _status(error)
