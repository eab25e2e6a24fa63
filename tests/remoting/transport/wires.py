# SPDX-License-Identifier: Apache-2.0
"""Ends of connections without a network, with what TCP adds to a StringTransport."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twisted.internet.address import IPv4Address
from twisted.internet.error import ConnectionDone
from twisted.internet.testing import StringTransport
from twisted.python.failure import Failure

from txrocketmq.remoting.command import RemotingCommand
from txrocketmq.remoting.frame.frame import FrameDecoder, encode_frame

UNFINISHED = bytes.fromhex("00fffffc 00000064") + bytes(9 * 1024 * 1024)
"""The beginning of a frame as long as any may be."""


class Wire(StringTransport):
    """Remembers what only TCP has: whether writes are sent at once."""

    nagle = True

    def setTcpNoDelay(self, enabled: bool) -> None:  # noqa: N802 - ITCPTransport
        """Notes the setting."""
        self.nagle = not enabled


class FarEnd:
    """The other end of a protocol of ours."""

    def __init__(
        self,
        protocol: Any,
        host: str = "127.0.0.1",
        port: int = 50_000,
        turn: Callable[[], object] = lambda: None,
    ) -> None:
        """`turn` runs a turn of the reactor, at whose end a client's requests are sent."""
        self.protocol = protocol
        self.turn = turn
        self.wire: Any = Wire(  # type: ignore[no-untyped-call]
            IPv4Address("TCP", "127.0.0.1", 10_911), IPv4Address("TCP", host, port)
        )
        self._decoder = FrameDecoder()
        protocol.makeConnection(self.wire)

    def tell(self, *commands: RemotingCommand) -> list[RemotingCommand]:
        """Sends commands in one piece; returns what was sent back since the last call."""
        self.protocol.dataReceived(
            b"".join(bytes(part) for each in commands for part in encode_frame(each))
        )
        return self.heard()

    def heard(self) -> list[RemotingCommand]:
        """Returns what was sent since the last call."""
        self.turn()
        data = self.wire.value()
        self.wire.clear()
        return self._decoder.receive(data)

    def leave(self) -> None:
        """Ends the connection."""
        self.protocol.connectionLost(Failure(ConnectionDone()))
