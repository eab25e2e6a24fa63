# SPDX-License-Identifier: Apache-2.0
"""Calls: request codes with the types of their two headers, and what handlers take and return.

`CALLS` is complete once `txrocketmq.remoting.protocol` is imported. The dispatcher, the client and
the documentation all derive from it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, Protocol, TypeVar

from txrocketmq.remoting.codes import RequestCode, ResponseCode
from txrocketmq.remoting.command import RemotingCommand
from txrocketmq.remoting.header import Header

Q = TypeVar("Q", bound=Header)
R = TypeVar("R", bound=Header)
Q_co = TypeVar("Q_co", bound=Header, covariant=True)
R_co = TypeVar("R_co", bound=Header, covariant=True)

Buffer = bytes | bytearray | memoryview


@dataclass(frozen=True, slots=True, eq=False)
class Call(Generic[Q, R]):
    """A request code, its request header and its response header.

    `letters` says that the fields of the request header are sent under one-letter names
    (SEND_MESSAGE_V2). `at_slave` is for requests that write to the log, or change topics or groups:
    the code with which a slave refuses them. None: it serves them.
    """

    code: RequestCode
    request: type[Q]
    response: type[R]
    letters: bool = False
    at_slave: ResponseCode | None = None

    @property
    def name(self) -> str:
        return self.code.name


CALLS: dict[int, Call[Any, Any]] = {}
"""All declared calls by code."""


def define(
    code: RequestCode,
    request: type[Q],
    response: type[R],
    *,
    letters: bool = False,
    at_slave: ResponseCode | None = None,
) -> Call[Q, R]:
    """Declares a call; a second declaration of a code is an error."""
    if code in CALLS:
        raise ValueError(f"{code.name} is declared twice")
    call = Call(code, request, response, letters, at_slave)
    CALLS[code] = call
    return call


WAITING_BYTES: Final = 2048
"""For how many bytes a request counts that waits until something happens."""


class Peer(Protocol):
    """The other end of a connection, as handlers see it; hashable by identity."""

    remote_address: str
    """"ip:port" of the other end ("[ip6]:port" for IPv6), as RemotingHelper prints a channel."""
    remote_host: bytes
    """The same address as records hold it: 4 or 16 bytes of IP and 4 of port."""
    local_address: str
    """"ip:port" of this end, under which the other end reached us."""
    local_host: bytes
    """The same address as records hold it."""
    allowed: dict[int, Any]
    """By code, how the guard recognizes requests like those of this peer that it let pass."""

    @property
    def connected(self) -> bool: ...

    @property
    def reads(self) -> bool:
        """Whether the peer reads what it is sent; otherwise that only piles up (isWritable)."""

    def write(self, buffers: Sequence[Buffer]) -> None:
        """Sends frames that are encoded already."""

    def invoke(
        self, call: Call[Any, Any], header: Header, body: bytes = b"", *, timeout_ms: int
    ) -> PendingReply:
        """Sends a request. Returns a pending reply, which gets the Reply or a RemotingError."""

    def invoke_oneway(self, call: Call[Any, Any], header: Header, body: bytes = b"") -> None:
        """Sends a request that has no answer."""

    def begin_wait(self, size_bytes: int = WAITING_BYTES) -> None:
        """Counts that a request waits for something, and takes so much memory meanwhile."""

    def end_wait(self, size_bytes: int = WAITING_BYTES) -> None:
        """Counts that such a request, of the same size, has been answered."""

    def begin_work(self) -> None:
        """Counts that work is under way for an answer which comes later, and may be long."""

    def end_work(self) -> None:
        """Counts that such an answer has been written."""

    def close(self) -> None:
        """Closes the connection; what was written before is still sent."""


class Request(Generic[Q_co]):
    """A request as its handler gets it: typed header, whole command, its peer, and when it came.

    `now_ms` is the time of the wall clock, `steady_ms` that of the clock that measures durations.
    """

    __slots__ = ("command", "header", "now_ms", "peer", "steady_ms")

    def __init__(
        self, header: Q_co, command: RemotingCommand, peer: Peer, now_ms: int, steady_ms: int
    ) -> None:
        self.header = header
        self.command = command
        self.peer = peer
        self.now_ms = now_ms
        self.steady_ms = steady_ms

    @property
    def body(self) -> bytes:
        return self.command.body


class Reply(Generic[R_co]):
    """The answer of a handler; `body` may be several buffers, which are not joined.

    `ext_fields` are extension fields in addition to those of the header (MSG_REGION,
    IS_SUB_CHANGE). `frame` is an answer that is encoded already, which takes the place of all but
    the code. In an answer that was received they are all of its fields, and `version` is the
    peer's MQVersion ordinal.
    """

    __slots__ = ("body", "code", "ext_fields", "frame", "header", "remark", "version")

    def __init__(
        self,
        header: R_co | None = None,
        body: Buffer | Sequence[Buffer] = b"",
        code: int = ResponseCode.SUCCESS,
        remark: str | None = None,
        ext_fields: Mapping[str, str] | None = None,
        version: int = 0,
        frame: Sequence[Buffer] | None = None,
    ) -> None:
        self.frame = frame
        self.version = version
        self.header = header
        self.body = body
        self.code = code
        self.remark = remark
        self.ext_fields = ext_fields

    @property
    def body_bytes(self) -> bytes:
        """The body in one piece."""
        body = self.body
        if isinstance(body, bytes):
            return body
        return bytes(body) if isinstance(body, (bytearray, memoryview)) else b"".join(body)


class PendingReply:
    """An answer that comes later: resolved or failed once, by anyone; later calls are ignored.

    It has one listener at most, which `then` sets; nothing is called before. `is_work` says that
    work is under way for it, unlike for one that waits until something happens: a peer may have
    many of these, but only a few of the others.
    """

    __slots__ = ("_listener", "_outcome", "is_work")

    def __init__(self, *, is_work: bool = False) -> None:
        self.is_work = is_work
        self._listener: Callable[[Reply[Any] | Exception], None] | None = None
        self._outcome: Reply[Any] | Exception | None = None

    @property
    def done(self) -> bool:
        return self._outcome is not None

    @property
    def outcome(self) -> Reply[Any] | Exception | None:
        """The result, or None if there is none yet."""
        return self._outcome

    def resolve(self, outcome: Reply[Any] | Exception) -> None:
        """Sets the answer, or the error that takes its place; only the first call counts."""
        if self._outcome is None:
            self._outcome = outcome
            if self._listener is not None:
                self._listener(outcome)

    def then(self, listener: Callable[[Reply[Any] | Exception], None]) -> None:
        """Calls `listener` with the outcome, now or when it comes."""
        if self._outcome is not None:
            listener(self._outcome)
        else:
            self._listener = listener


Response = Reply[Any] | PendingReply
"""A reply, or the promise of it."""
Answer = Response | None
"""What a handler returns. With None none is sent, as for END_TRANSACTION without a decision."""
