# SPDX-License-Identifier: Apache-2.0
"""Connections of a client whose other ends are operated by the test."""

from __future__ import annotations

import errno
import ssl
from typing import Any

from twisted.internet.error import ConnectionRefusedError as Refused
from twisted.internet.testing import MemoryReactorClock
from twisted.python.failure import Failure

from tests.remoting.transport.wires import FarEnd
from txrocketmq.remoting.command import RESPONSE_FLAG, RemotingCommand
from txrocketmq.remoting.dispatch import Dispatcher
from txrocketmq.remoting.host.clock import Clock
from txrocketmq.remoting.protocol import offset
from txrocketmq.remoting.protocol.offset import GetMaxOffsetRequestHeader
from txrocketmq.remoting.transport.client import Connections

HERE = "127.0.0.1:10911"
WHERE = GetMaxOffsetRequestHeader(topic="T", queue_id=0)


class Scene:
    """Connections whose other ends are operated by the test."""

    def __init__(
        self, dispatcher: Dispatcher | None = None, *, tls: ssl.SSLContext | None = None
    ) -> None:
        self.reactor: Any = MemoryReactorClock()
        self.connections = Connections(
            Clock(self.reactor), dispatcher, tls=None if tls is None else lambda: tls
        )
        self.outcomes: list[Any] = []

    def ask(self, address: str = HERE, timeout_ms: int = 10_000) -> None:
        self.connections.invoke(
            address, offset.GET_MAX_OFFSET, WHERE, b"body", timeout_ms=timeout_ms
        ).then(self.outcomes.append)

    def pass_ms(self, ms: int) -> None:
        for _ in range(ms // 100):
            self.reactor.advance(0.1)

    @property
    def attempts(self) -> int:
        return len(self.reactor.tcpClients)

    def accept(self, attempt: int = -1) -> FarEnd:
        """Accepts an attempt to connect; returns its other end."""
        factory = self.reactor.tcpClients[attempt][2]
        protocol = factory.buildProtocol(None)
        return FarEnd(protocol, port=10_911, turn=lambda: self.reactor.advance(0))

    def refuse(self, attempt: int = -1) -> None:
        """Refuses an attempt to connect."""
        factory = self.reactor.tcpClients[attempt][2]
        factory.clientConnectionFailed(None, Failure(Refused(osError=errno.ECONNREFUSED)))
        self.pass_ms(1_000)


def answer(asked: RemotingCommand, value: int = 5) -> RemotingCommand:
    return RemotingCommand(0, {"offset": str(value)}, flag=RESPONSE_FLAG, opaque=asked.opaque)
