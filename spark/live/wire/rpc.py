# SPDX-License-Identifier: Apache-2.0
"""Questions to name servers and brokers over blocking sockets, for processes without a reactor.

    connection = connection_to("10.0.0.1:10911")
    questions = [connection.start(GET_MAX_OFFSET, header) for header in headers]
    replies = [question.wait() for question in questions]

Frames, opaques and typed headers come from `remoting.connection`; this module adds the socket and
the deadlines. Many questions may be under way: while one is written, answers to others are read, so
neither side blocks the other. Each thread of a process keeps its connections for further use; a
connection that the peer has closed, as brokers do after 120 s, is opened again. Counterpart of
NettyRemotingClient.invokeSync.
"""

from __future__ import annotations

import os
import select
import socket
import threading
import time
from collections.abc import Collection
from typing import Any, Final, Generic, TypeVar

from txrocketmq.remoting.call import Buffer, Call, PendingReply, Reply
from txrocketmq.remoting.codes import SUCCESS, ResponseCode
from txrocketmq.remoting.errors import HeaderError, SendError
from txrocketmq.remoting.frame import connection as sans_io
from txrocketmq.remoting.header import Header
from txrocketmq.spark.arrow.errors import ClusterError
from txrocketmq.spark.live.wire.security import NOT_NOW, OPEN, Security

Q = TypeVar("Q", bound=Header)
R = TypeVar("R", bound=Header)

DEFAULT_TIMEOUT_MS: Final = 3_000
MAX_CONNECTIONS: Final = 64
"""Connections that a thread keeps; if there are more, the least recently used one is closed."""
_READ_BYTES: Final = 1 << 18
"""More than a TLS record (16 KiB), so each is read whole, and poll(2) tells of the next."""


class Unreachable(ClusterError):
    """No connection, or no answer in time; another broker, or this one later, may answer."""


class Refused(ClusterError):
    """The answer was not success: `code` and `remark` are those on the wire."""

    def __init__(self, address: str, call_name: str, code: int, remark: str | None) -> None:
        super().__init__(address, call_name, code, remark)
        self.address = address
        self.call_name = call_name
        self.code = code
        self.remark = remark

    def __str__(self) -> str:
        try:
            name = ResponseCode(self.code).name
        except ValueError:
            name = "UNKNOWN"
        return f"{self.address} refused {self.call_name}: {name} ({self.code}): {self.remark}"


class Question(Generic[R]):
    """A request that was sent, and whose answer can be waited for."""

    __slots__ = ("_connection", "_deadline_ms", "_outcomes", "call")

    def __init__(
        self, connection: Connection, call: Call[Any, R], pending: PendingReply, deadline_ms: int
    ) -> None:
        self.call = call
        self._connection = connection
        self._deadline_ms = deadline_ms
        self._outcomes: list[Reply[Any] | Exception] = []
        pending.then(self._outcomes.append)

    @property
    def address(self) -> str:
        """The address of the peer that was asked."""
        return self._connection.address

    def wait(self, accepted: Collection[int] = SUCCESS) -> Reply[R]:
        """Returns the answer. Raises Unreachable, and Refused for a code that is not accepted."""
        while not self._outcomes:
            self._connection.turn(self._deadline_ms)
        (outcome,) = self._outcomes
        asked = f"{self.call.name} from {self.address}"
        if isinstance(outcome, HeaderError):
            raise ClusterError(f"cannot read the answer to {asked}: {outcome}") from outcome
        if isinstance(outcome, Exception):
            raise Unreachable(f"no answer to {asked}: {outcome}") from outcome
        if outcome.code not in accepted:
            raise Refused(self.address, self.call.name, outcome.code, outcome.remark)
        return outcome


class Connection:
    """A connection to one address, used by one thread; the first request opens it.

    A question that is not answered in time closes the connection, as in the original's client
    (clientCloseSocketIfTimeout). The others under way fail too, and the next one opens it again.
    """

    def __init__(self, address: str, security: Security = OPEN) -> None:
        self.address = address
        self._host, self._port = host_and_port(address)
        self._security = security
        self._socket: socket.socket | None = None
        self._peer = sans_io.Connection()

    @property
    def in_flight(self) -> int:
        """The number of questions without an answer."""
        return self._peer.in_flight

    def ask(
        self,
        call: Call[Q, R],
        header: Q,
        body: bytes = b"",
        accepted: Collection[int] = SUCCESS,
        *,
        timeout_ms: int = DEFAULT_TIMEOUT_MS,
    ) -> Reply[R]:
        """Asks and waits. Raises Unreachable, and Refused for a code that is not accepted."""
        return self.start(call, header, body, timeout_ms=timeout_ms).wait(accepted)

    def start(
        self,
        call: Call[Q, R],
        header: Q,
        body: bytes = b"",
        *,
        timeout_ms: int = DEFAULT_TIMEOUT_MS,
    ) -> Question[R]:
        """Sends a request without waiting for its answer. Raises Unreachable.

        Raises remoting.errors.TooManyRequests if 65,535 requests are under way.
        """
        deadline_ms = _now_ms() + timeout_ms
        self._look_for_end()
        if self._socket is None:
            self._open(timeout_ms)
        pending, buffers = self._peer.request(call, header, body, deadline_ms)
        self._write(buffers, deadline_ms)
        return Question(self, call, pending, deadline_ms)

    def close(self) -> None:
        """Closes the connection; questions under way fail."""
        self._lost("the connection was closed")

    # ----------------------------------------------------------------- socket

    def _open(self, timeout_ms: int) -> None:
        self._peer = sans_io.Connection(seal=self._security.seal())
        try:
            opened = socket.create_connection((self._host, self._port), timeout_ms / 1000)
            opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            opened = self._security.wrapped(opened)
        except OSError as error:
            raise Unreachable(f"no connection to {self.address}: {_reason(error)}") from error
        opened.settimeout(0)
        self._socket = opened

    def _look_for_end(self) -> None:
        """Finds out whether the peer has closed the connection since it was last read from.

        Answers may come before the end, to questions that an earlier task did not wait for.
        """
        while self._socket is not None and _ready(self._socket, select.POLLIN, 0):
            self._read()

    def _write(self, buffers: list[Buffer], deadline_ms: int) -> None:
        data = memoryview(b"".join(buffers))
        while data and self._socket is not None:
            data = data[self.turn(deadline_ms, data) :]

    def turn(self, deadline_ms: int, data: memoryview | None = None) -> int:
        """Waits until it can read answers or write `data`, and does so; returns the bytes written.

        The connection is lost at the deadline, which is in ms of `time.monotonic`.
        """
        ours = self._socket
        if ours is None:  # it was lost before, and all who waited were told
            return 0
        events = select.POLLIN | select.POLLOUT if data else select.POLLIN
        ready = _ready(ours, events, max(deadline_ms - _now_ms(), 0))
        if not ready:
            self._lost("the time limit is reached")
        if ready & ~select.POLLOUT:  # errors are found by reading, too
            self._read()
        if data and ready & select.POLLOUT and self._socket is not None:
            try:
                return ours.send(data)
            except NOT_NOW:
                return 0
            except OSError as error:
                self._lost(_reason(error))
        return 0

    def _read(self) -> None:
        assert self._socket is not None
        try:
            data = self._socket.recv(_READ_BYTES)
        except NOT_NOW:
            return
        except OSError as error:
            self._lost(_reason(error))
            return
        if not data:
            self._lost("it closed the connection")
            return
        self._peer.receive(data)  # peers ask members of groups, and we are in none
        if self._peer.error is not None:
            self._lost(f"it does not speak RocketMQ's protocol: {self._peer.error}")

    def _lost(self, reason: str) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        self._peer.lost(SendError(reason))


_THREAD: Final = threading.local()


def connection_to(address: str, security: Security = OPEN) -> Connection:
    """Returns this thread's connection to an address. Raises ClusterError for an invalid one."""
    if getattr(_THREAD, "process_id", None) != os.getpid():  # a fork must not use its parent's
        _THREAD.process_id = os.getpid()
        _THREAD.connections = {}
    connections: dict[tuple[str, Security], Connection] = _THREAD.connections
    key = (address, security)
    connection = connections.pop(key, None) or Connection(address, security)
    connections[key] = connection
    if len(connections) > MAX_CONNECTIONS:
        oldest = next(iter(connections))
        if not connections[oldest].in_flight:
            connections.pop(oldest).close()
    return connection


def close_connections() -> None:
    """Closes all connections of this thread."""
    connections: dict[tuple[str, Security], Connection] = getattr(_THREAD, "connections", {})
    while connections:
        connections.popitem()[1].close()


def host_and_port(address: str) -> tuple[str, int]:
    """Splits "host:port" or "[ip6]:port". Raises ClusterError if it is neither."""
    host, _, port = address.strip().rpartition(":")
    if not host or not (port.isascii() and port.isdigit()) or not 0 < int(port) < 1 << 16:
        raise ClusterError(f"{address!r} is no address: write host:port, such as 127.0.0.1:9876")
    return host.removeprefix("[").removesuffix("]"), int(port)


def _ready(ours: socket.socket, events: int, timeout_ms: int) -> int:
    """Returns the poll(2) events that came, 0 for none; select(2) takes only low descriptors."""
    poll = select.poll()
    poll.register(ours, events)
    found = poll.poll(timeout_ms)
    return found[0][1] if found else 0


def _reason(error: OSError) -> str:
    return error.strerror or str(error)


def _now_ms() -> int:
    return time.monotonic_ns() // 1_000_000
