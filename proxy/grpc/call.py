# SPDX-License-Identifier: Apache-2.0
"""A gRPC call as the method sees it that serves it: who calls, until when, and what is written.

Nothing here knows HTTP/2. The connection gives a call its `Sink`; a test gives it another one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from txrocketmq.proxy.grpc.status import GrpcError
from txrocketmq.remoting.primitives.listeners import tell_all


class Message(Protocol):
    """A message of protobuf, of any type."""

    def SerializeToString(self) -> bytes:  # noqa: N802 - protobuf's name
        """Returns the message as bytes."""


class Texts(Protocol):
    """Headers by name."""

    def get(self, name: str, default: str, /) -> str:
        """Returns the text of a header, or the default if there is none."""


class Caller(Protocol):
    """An account that calls."""

    def may_send(self, topic: str, peer: str) -> bool:
        """Returns whether it may send to a topic from the address of a peer."""


class Sink(Protocol):
    """Where the messages of a call go."""

    def send(self, data: bytes) -> bool:
        """Sends an encoded message; returns whether the peer's window takes more."""

    def end(self, error: GrpcError | None) -> None:
        """Ends the call, with OK or an error."""

    def hold(self, size_bytes: int) -> None:
        """Counts bytes that are held for the call until it ends."""


class Call:
    """One call. Its `headers` have lower-case names; their values are text.

    `peer` is the address that calls, `local` the address and port of ours that it came in by, and
    `deadline_ms` the steady time until which the caller waits, or None.
    """

    __slots__ = (
        "_sink",
        "account",
        "caller",
        "deadline_ms",
        "headers",
        "is_over",
        "local",
        "method",
        "on_cancel",
        "on_room",
        "peer",
        "steady_ms",
    )

    def __init__(
        self,
        method: str,
        headers: Texts,
        sink: Sink,
        steady_ms: Callable[[], int],
        *,
        peer: str = "",
        local: str = "",
        deadline_ms: int | None = None,
    ) -> None:
        self.method = method
        self.headers = headers
        self.peer = peer
        self.local = local
        self.deadline_ms = deadline_ms
        self.account = ""
        """The account that has proven to call, where calls need one."""
        self.caller: Caller | None = None
        """Who calls then."""
        self.steady_ms = steady_ms
        """Returns the steady time in ms."""
        self.on_cancel: list[Callable[[], Any]] = []
        """Called once if the call ends before it is answered: the caller has reset it, its
        connection is lost, or its deadline is over."""
        self.on_room: Callable[[], object] | None = None
        """Called when there is room again after `write` has returned False; set it before."""
        self.is_over = False
        """Whether the call has ended, so that nothing can be written."""
        self._sink = sink

    def write(self, message: Message) -> bool:
        """Sends a message of a stream; returns whether the peer's window takes more.

        If it does not, this message waits, and `on_room` is called when it has left. Whoever writes
        on before that has all its messages wait, and they are held for the peer (held_bytes.py).
        """
        return self.send(message.SerializeToString())

    def send(self, data: bytes) -> bool:
        """Does what `write` does, with a message that is encoded already."""
        return self.is_over or self._sink.send(data)

    def hold(self, size_bytes: int) -> None:
        """Counts bytes that are held for the caller until the call ends, besides its request."""
        if not self.is_over:
            self._sink.hold(size_bytes)

    def end(self, error: GrpcError | None = None) -> None:
        """Ends a call of streams both ways; other calls end when their method is done."""
        if not self.is_over:
            self.is_over = True
            self._sink.end(error)

    def cancel(self) -> None:
        """Tells the listeners that nobody waits for the answer any more; called once."""
        self.is_over = True
        listeners, self.on_cancel = self.on_cancel, []
        tell_all(listeners)
