# SPDX-License-Identifier: Apache-2.0
"""One end of a connection, without I/O: frames in, requests out, answers matched by opaque.

The caller feeds `receive` with bytes and handles the requests it returns; it writes what `request`
and `oneway` return; it calls `expire` now and then and `lost` at the end. Both ends of a RocketMQ
connection may ask (a broker asks its clients), so client and server share this class. Counterpart
of the responseTable in NettyRemotingAbstract.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from itertools import count
from typing import Any

from txrocketmq.remoting.call import Buffer, Call, PendingReply, Reply
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.command import ONEWAY_FLAG, RESPONSE_FLAG, RemotingCommand
from txrocketmq.remoting.errors import (
    FrameError,
    HeaderError,
    LateAnswer,
    RemotingError,
    RequestTimeout,
    TooManyRequests,
)
from txrocketmq.remoting.frame.form import Filled
from txrocketmq.remoting.frame.frame import MAX_FRAME_BYTES, FrameDecoder, encode_frame
from txrocketmq.remoting.header import Header
from txrocketmq.remoting.primitives.listeners import tell_all

MAX_IN_FLIGHT = 65_535
"""How many of our requests may wait for an answer at a time (clientAsyncSemaphoreValue)."""

_OPAQUE_MASK = 0x7FFFFFFF
_GO_AWAY = int(ResponseCode.GO_AWAY)

Seal = Callable[[dict[str, str], bytes], None]
"""Adds extension fields, such as a signature, to those of a request before it is sent; called with
the fields and the body."""


class InFlight(PendingReply):
    """A request that has no answer yet, with everything needed to send it to another peer."""

    __slots__ = ("body", "call", "deadline_ms", "header")

    def __init__(self, call: Call[Any, Any], header: Header, body: bytes, deadline_ms: int) -> None:
        self._listener = None
        self._outcome = None
        self.call = call
        self.header = header
        self.body = body
        self.deadline_ms = deadline_ms


class Connection:
    """The requests in flight by opaque, and the decoder of what arrives.

    The portions are those of the decoder, see frame.FrameDecoder. `told_to_go` is called with each
    request that the peer answers with GO_AWAY. Such a request has
    not been served, and nothing is done about its pending reply here: whoever is called has to
    resolve it.
    """

    def __init__(
        self,
        *,
        max_frame_bytes: int = MAX_FRAME_BYTES,
        portion_commands: int = sys.maxsize,
        portion_bytes: int = sys.maxsize,
        max_in_flight: int = MAX_IN_FLIGHT,
        seal: Seal | None = None,
        told_to_go: Callable[[InFlight], None] | None = None,
    ) -> None:
        self._seal = seal
        self._told_to_go = told_to_go
        self.decoder = FrameDecoder(
            max_frame_bytes, portion_commands=portion_commands, portion_bytes=portion_bytes
        )
        """What cuts the stream into commands; `receive` and `lost` drive it."""
        self._max_in_flight = max_in_flight
        self._opaques = count(1)
        self._in_flight: dict[int, InFlight] = {}
        self._late: dict[int, tuple[Call[Any, Any], LateAnswer]] = {}
        """By opaque: requests whose time is over, and of whose answers somebody still hears."""

    @property
    def error(self) -> FrameError | None:
        """Set when the peer has sent bytes that are no frame: the connection is to be closed."""
        return self.decoder.error

    @property
    def in_flight(self) -> int:
        """How many of our requests wait for an answer."""
        return len(self._in_flight)

    def receive(self, data: bytes) -> list[RemotingCommand]:
        """Takes bytes that arrived; returns the peer's requests, and resolves what is answered."""
        commands = self.decoder.receive(data)
        for command in commands:
            if command.flag & RESPONSE_FLAG:
                return [c for c in commands if not self._answered(c)]
        return commands

    def hear(self, data: bytes) -> None:
        """Takes bytes that arrived, all portions of them, for the answers that are among them."""
        while self.receive(data) or self.decoder.is_behind:
            data = b""

    def request(
        self, call: Call[Any, Any], header: Header, body: bytes, deadline_ms: int
    ) -> tuple[PendingReply, list[Buffer]]:
        """Returns the pending reply of a new request, and the buffers to write.

        Raises TooManyRequests if too many requests are in flight.
        """
        if len(self._in_flight) >= self._max_in_flight:
            raise TooManyRequests(f"{self._max_in_flight} requests are in flight")
        opaque = next(self._opaques) & _OPAQUE_MASK
        buffers = self._frame(call, header, body, opaque)
        pending = self._in_flight[opaque] = InFlight(call, header, body, deadline_ms)
        return pending, buffers

    def oneway(self, call: Call[Any, Any], header: Header, body: bytes) -> list[Buffer]:
        """Encodes a request without an answer; returns the buffers to write."""
        opaque = next(self._opaques) & _OPAQUE_MASK
        command = self._command(call, header, body, opaque)
        command.flag = ONEWAY_FLAG
        return encode_frame(command)

    def is_late(self, steady_ms: int) -> bool:
        """Returns whether a request is past its deadline, so that `expire` would fail it."""
        return any(waiting.deadline_ms <= steady_ms for waiting in self._in_flight.values())

    def expire(self, steady_ms: int) -> None:
        """Fails all requests that are past their deadlines with RequestTimeout."""
        if self._late:
            kept = [its for its in self._late.items() if its[1][1].until_ms > steady_ms]
            self._late = dict(kept)
        late = [its for its in self._in_flight.items() if its[1].deadline_ms <= steady_ms]

        def fail(opaque: int, waiting: InFlight) -> None:
            if self._in_flight.pop(opaque, None) is not None:
                late_answer = LateAnswer()
                text = f"no answer to {waiting.call.name} in time"
                waiting.resolve(RequestTimeout(text, late_answer))
                if late_answer.until_ms > steady_ms:
                    self._late[opaque] = waiting.call, late_answer

        tell_all(partial(fail, *each) for each in late)

    def lost(self, reason: RemotingError) -> None:
        """Fails all requests with `reason`, because the connection is lost."""
        self.decoder.drop()
        waiting = list(self._in_flight.values())
        self._in_flight.clear()
        self._late.clear()
        tell_all((each.resolve for each in waiting), reason)

    def _frame(
        self, call: Call[Any, Any], header: Header, body: bytes, opaque: int
    ) -> list[Buffer]:
        if self._seal is None and isinstance(header, Filled) and header.form.call is call:
            try:
                return header.form.frame(opaque, header.values, body)
            except TypeError:  # a text that is no Unicode: the general codec replaces it
                pass
        return encode_frame(self._command(call, header, body, opaque))

    def _command(
        self, call: Call[Any, Any], header: Header, body: bytes, opaque: int
    ) -> RemotingCommand:
        ext_fields = header.encode_letters() if call.letters else header.encode()
        if self._seal is not None:
            self._seal(ext_fields, body)
        # Without fields there is no empty object either, as in what the original writes.
        return RemotingCommand(call.code, ext_fields or None, body, opaque=opaque)

    def _answered(self, command: RemotingCommand) -> bool:
        if not command.flag & RESPONSE_FLAG:
            return False
        waiting = self._in_flight.pop(command.opaque, None)
        if waiting is None:
            if self._late:
                self._answered_late(command)
            return True
        if command.code == _GO_AWAY and self._told_to_go is not None:
            self._told_to_go(waiting)
        else:
            waiting.resolve(reply_of(command, waiting.call))
        return True

    def _answered_late(self, command: RemotingCommand) -> None:
        call, late = self._late.pop(command.opaque, (None, None))
        if call is not None and late is not None and late.listener is not None:
            late.listener(reply_of(command, call))


def reply_of(command: RemotingCommand, call: Call[Any, Any]) -> Reply[Any] | HeaderError:
    """Returns a reply with its typed header, or the HeaderError of an answer that does not decode.

    Only a successful answer must have the fields that its header declares.
    """
    header = None
    try:
        header = call.response.decode(command.ext_fields)
    except HeaderError as error:
        if command.code == ResponseCode.SUCCESS:
            return error
    return Reply(
        header, command.body, command.code, command.remark, command.ext_fields, command.version
    )
