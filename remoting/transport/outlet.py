# SPDX-License-Identifier: Apache-2.0
"""The layer between a peer and its transport: how bytes leave, and what arriving bytes mean.

A plain connection writes to its socket itself while nothing waits before it, which saves the
reactor two rounds and the buffers a copy; the rest goes through the transport, whose producer
interface pauses the peer. The transport joins what it is given, so it is given a long answer piece
by piece, each when the one before has left: tens of megabytes joined at once would stop everybody
else for as long. An encrypted connection needs the same methods and nothing else of a
peer: `write` encrypts, `take` decrypts, and what a handshake has to say is written by `take`
itself; see tls_outlet.py. Which one it is may be chosen by the first bytes that come.

Counterpart of Netty's pipeline before its encoder, and of NettyRemotingServer.HandshakeHandler.
"""

from __future__ import annotations

import socket
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

from twisted.internet.abstract import FileDescriptor
from twisted.internet.tcp import Connection as TcpConnection

from txrocketmq.remoting.call import Buffer

_MAX_VECTORS: Final = 64
PIECE_BYTES: Final = 256 * 1024
"""How many bytes are joined and handed to the transport at once."""
GATHERED_BYTES: Final = PIECE_BYTES * 3 // 4
"""How many bytes are gathered before they leave: with the last small request still one piece."""


class Outlet(Protocol):
    """The way of outgoing bytes to the transport, and of arriving bytes to the peer."""

    @property
    def state_bytes(self) -> int:
        """How much memory the outlet takes for itself, besides the bytes that wait."""

    def write(self, buffers: Sequence[Buffer]) -> bool:
        """Sends the buffers in order, after all that was written before.

        Returns True if nothing of them waits here or in the transport.
        """

    def pause(self) -> None:
        """Keeps what is written from now on, because the transport has enough."""

    def resume(self) -> bool:
        """Hands over what was kept; returns whether nothing is kept any more."""

    def end(self) -> None:
        """Writes what a connection has to say at its end; nothing is written after that."""

    def unsent_bytes(self) -> int:
        """Returns how many bytes that were written still wait for the peer to read."""

    def take(self, data: bytes) -> bytes:
        """Returns what the peer has sent, decoded from bytes that arrived; it may be empty.

        Raises RemotingError for bytes that cannot be valid; the connection is then to be closed.
        """


Choose = Callable[[Outlet, bytes], Outlet]
"""Makes the outlet of a connection, given its plain one and the first bytes that arrived; these are
passed to the new outlet's `take` next. Raises RemotingError for a connection that is not wanted."""


def plain_outlet(transport: Any) -> Outlet:
    """Returns the outlet of a connection that is not encrypted."""
    if isinstance(transport, TcpConnection):
        return SocketOutlet(transport)
    return TransportOutlet(transport)


def _lasting(part: Buffer) -> Buffer:
    """Returns a buffer that may be kept: `bytes` or a part of them as it is, others as copies."""
    if type(part) is bytes or (type(part) is memoryview and type(part.obj) is bytes):
        return part
    return bytes(part)


class Backlog:
    """Buffers that wait, in order, and can be taken piece by piece; it is true if there are any."""

    def __init__(self) -> None:
        self._buffers: deque[Buffer] = deque()
        self.size_bytes = 0

    def __bool__(self) -> bool:
        return bool(self._buffers)

    def add(self, buffers: Sequence[Buffer]) -> None:
        """Adds buffers at the end; those that may change are copied."""
        self._buffers.extend(map(_lasting, buffers))
        self.size_bytes += sum(map(len, buffers))

    def piece(self) -> list[Buffer]:
        """Removes the first PIECE_BYTES, or what there is, and returns them."""
        buffers = self._buffers
        taken: list[Buffer] = []
        left_bytes = PIECE_BYTES
        while buffers and left_bytes > 0:
            part = buffers.popleft()
            if len(part) > left_bytes:
                view = memoryview(part)
                buffers.appendleft(view[left_bytes:])
                part = view[:left_bytes]
            left_bytes -= len(part)
            taken.append(part)
        self.size_bytes -= PIECE_BYTES - left_bytes
        return taken


class TransportOutlet:
    """An outlet over any transport of Twisted."""

    state_bytes = 0

    def __init__(self, transport: Any) -> None:
        self._transport = transport
        self._is_buffered = isinstance(transport, FileDescriptor)
        """Whether the transport keeps what its other end does not take at once."""
        self._kept = Backlog()
        self._is_paused = False

    def write(self, buffers: Sequence[Buffer]) -> bool:
        """Hands the buffers to the transport until it pauses; keeps the rest."""
        if not self._is_paused and sum(map(len, buffers)) <= PIECE_BYTES:
            self._pass_on(buffers)
        else:
            self._kept.add(buffers)
            self._hand_over()
        return not self._is_buffered and not self._kept.size_bytes

    def pause(self) -> None:
        """Keeps what is written from now on."""
        self._is_paused = True

    def resume(self) -> bool:
        """Hands over what was kept, until the transport pauses again."""
        self._is_paused = False
        self._hand_over()
        return not self._is_paused

    def end(self) -> None:
        """Does nothing: a connection that is not encrypted just ends."""

    def _hand_over(self) -> None:
        while self._kept and not self._is_paused:
            self._pass_on(self._kept.piece())

    def _pass_on(self, buffers: Sequence[Buffer]) -> None:
        self._transport.writeSequence([b"".join(buffers)])  # else each part is copied by itself

    def unsent_bytes(self) -> int:
        """Returns the number of bytes that are kept here and in Twisted's buffers."""
        transport = self._transport
        if not self._is_buffered:
            return self._kept.size_bytes
        held: int = len(transport.dataBuffer) - transport.offset + transport._tempDataLen
        return held + self._kept.size_bytes

    def take(self, data: bytes) -> bytes:
        """Returns the bytes as they are."""
        return data


class GatheringOutlet:
    """Stands before another outlet and writes the buffers of one turn of the reactor together.

    It is for clients, which send many small requests: each write of its own would be a system call
    and wake the server. `soon` calls a function at the end of the turn.
    """

    def __init__(self, inner: Outlet, soon: Callable[[Callable[[], None]], object]) -> None:
        self._inner = inner
        self._soon = soon
        self._is_due = False
        """Whether `soon` has been asked to call at the end of the turn."""
        self._gathered: list[Buffer] = []
        self._gathered_bytes = 0

    def write(self, buffers: Sequence[Buffer]) -> bool:
        """Gathers buffers until the turn is over or there are GATHERED_BYTES."""
        gathered, size_bytes = self._gathered, self._gathered_bytes
        if not self._is_due:
            self._is_due = True
            self._soon(self._turn_ended)
        for part in buffers:
            gathered.append(part if type(part) is bytes else _lasting(part))
            size_bytes += len(part)
        self._gathered_bytes = size_bytes
        if size_bytes >= GATHERED_BYTES:
            self._leave()
        return False

    @property
    def state_bytes(self) -> int:
        """How much memory the outlet behind takes for itself."""
        return self._inner.state_bytes

    def pause(self) -> None:
        """Pauses the outlet behind, which then keeps what it is handed."""
        self._inner.pause()

    def resume(self) -> bool:
        """Hands over what is gathered, and resumes the outlet behind."""
        self._leave()
        return self._inner.resume()

    def end(self) -> None:
        """Hands over what is gathered, and ends the outlet behind."""
        self._leave()
        self._inner.end()

    def unsent_bytes(self) -> int:
        """Returns the bytes that wait, including those gathered here."""
        return self._inner.unsent_bytes() + self._gathered_bytes

    def take(self, data: bytes) -> bytes:
        """Returns what the outlet behind makes of the bytes that arrived."""
        return self._inner.take(data)

    def _turn_ended(self) -> None:
        self._is_due = False
        self._leave()

    def _leave(self) -> None:
        gathered, self._gathered = self._gathered, []
        self._gathered_bytes = 0
        if gathered:
            self._inner.write(gathered)


class SocketOutlet(TransportOutlet):
    """An outlet over a plain socket; the transport writes what the socket does not take at once."""

    def __init__(self, transport: Any) -> None:
        super().__init__(transport)
        self._socket: socket.socket = transport.socket

    def write(self, buffers: Sequence[Buffer]) -> bool:
        """Hands the buffers to the socket, and to the transport what the socket does not take."""
        transport = self._transport
        if not transport.dataBuffer and not transport._tempDataBuffer and not self._kept.size_bytes:
            buffers = self._send_now(buffers)
            if not buffers:
                return True
        return super().write(buffers)

    def _send_now(self, buffers: Sequence[Buffer]) -> Sequence[Buffer]:
        if len(buffers) > _MAX_VECTORS and sum(map(len, buffers)) <= PIECE_BYTES:
            buffers = [b"".join(buffers)]
        try:
            if len(buffers) == 1:  # as with answers to sends: there is nothing to gather
                sent = self._socket.send(buffers[0])
            else:
                sent = self._socket.sendmsg(buffers[:_MAX_VECTORS])
        except OSError:  # would block, or broken: the transport finds out
            return buffers
        if sent == sum(map(len, buffers)):
            return ()
        for index, part in enumerate(buffers):
            if sent < len(part):
                return [memoryview(part)[sent:], *buffers[index + 1 :]]
            sent -= len(part)
        return ()
