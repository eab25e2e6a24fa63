# SPDX-License-Identifier: Apache-2.0
"""The connection of a slave: how it is made, and how reports leave."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Any

import pytest
from twisted.internet.address import IPv4Address
from twisted.internet.error import ConnectError, ConnectionDone
from twisted.internet.testing import MemoryReactorClock
from twisted.python.failure import Failure

from txrocketmq.remoting.host.clock import Clock
from txrocketmq.remoting.transport.ha.client import HaClient, MasterConnection


class Transport:
    """What a connection needs of Twisted's transport, over a real socket."""

    def __init__(self) -> None:
        self.socket, self.far = socket.socketpair()
        self.socket.setblocking(False)
        self.is_writing = self.is_aborted = False

    def setTcpNoDelay(self, enabled: bool) -> None:  # noqa: N802 - Twisted's
        pass

    def setTcpKeepAlive(self, enabled: bool) -> None:  # noqa: N802 - Twisted's
        pass

    def registerProducer(self, producer: Any, streaming: bool) -> None:  # noqa: N802 - Twisted's
        assert not streaming
        producer.resumeProducing()

    def startWriting(self) -> None:  # noqa: N802 - Twisted's
        self.is_writing = True

    def abortConnection(self) -> None:  # noqa: N802 - Twisted's
        self.is_aborted = True


class Sink:
    """Notes what it is told."""

    def __init__(self) -> None:
        self.connection: Any = None
        self.heard: list[bytes] = []
        self.why: list[str] = []

    def connected(self, connection: MasterConnection) -> None:
        self.connection = connection
        connection.send(b"12345678")

    def received(self, data: bytes) -> None:
        self.heard.append(data)

    def ended(self, why: str) -> None:
        self.why.append(why)


class Scene:
    def __init__(self) -> None:
        self.reactor: Any = MemoryReactorClock()
        self.client = HaClient(Clock(self.reactor))
        self.sink = Sink()
        self.transport = Transport()

    def connect(self) -> Any:
        self.client.connect("10.0.0.9:10912", self.sink)
        factory = self.reactor.tcpClients[0][2]
        protocol = factory.buildProtocol(IPv4Address("TCP", "10.0.0.9", 10912))
        protocol.makeConnection(self.transport)
        return protocol


@pytest.fixture
def scene() -> Iterator[Scene]:
    made = Scene()
    yield made
    made.transport.socket.close()
    made.transport.far.close()


def test_it_connects_and_says_something_at_once(scene: Scene) -> None:
    protocol = scene.connect()
    assert scene.reactor.tcpClients[0][:2] == ("10.0.0.9", 10912)
    assert scene.reactor.tcpClients[0][3] == 5
    assert scene.transport.far.recv(100) == b"12345678"
    protocol.dataReceived(b"abc")
    assert scene.sink.heard == [b"abc"]
    protocol.connectionLost(Failure(ConnectionDone()))
    protocol.connectionLost(Failure(ConnectionDone()))
    assert scene.sink.why == ["the master has closed the connection"]


def test_who_refuses_is_named(scene: Scene) -> None:
    scene.client.connect("10.0.0.9:10912", scene.sink)
    factory = scene.reactor.tcpClients[0][2]
    factory.clientConnectionFailed(None, Failure(ConnectError("no")))
    assert scene.sink.why == ["An error occurred while connecting: no."]


def test_what_is_no_address_is_not_tried(scene: Scene) -> None:
    scene.client.connect("nowhere", scene.sink)
    assert scene.reactor.tcpClients == []
    assert '"nowhere" is not an address' in scene.sink.why[0]


def test_of_reports_that_wait_the_last_one_leaves(scene: Scene) -> None:
    protocol = scene.connect()
    transport = scene.transport
    transport.far.recv(100)
    full = 0
    try:
        while True:
            full += transport.socket.send(bytes(100_000))
    except BlockingIOError:
        pass
    for number in range(1_000):
        protocol.send(b"%08d" % number)
    assert transport.is_writing
    got = b""
    while len(got) < full:
        got += transport.far.recv(1 << 20)
    transport.is_writing = False
    protocol.resumeProducing()
    assert transport.far.recv(1 << 20) == b"00000999"
    protocol.resumeProducing()
    assert not transport.is_writing


def test_a_part_of_a_report_is_followed_by_its_rest(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    protocol = scene.connect()
    sent: list[bytes] = []

    class Slow:
        def send(self, data: bytes) -> int:
            sent.append(data[:3])
            return min(len(data), 3)

    monkeypatch.setattr(scene.transport, "socket", Slow())
    for number in range(3):
        protocol.send(b"%08d" % number)
    for _ in range(9):
        protocol.resumeProducing()
    assert b"".join(sent) == b"00000000" + b"00000002"
    monkeypatch.undo()


def test_an_end_that_was_wanted_is_not_told(scene: Scene) -> None:
    protocol = scene.connect()
    protocol.close()
    assert scene.transport.is_aborted
    protocol.dataReceived(b"late")
    protocol.connectionLost(Failure(ConnectionDone()))
    assert (scene.sink.heard, scene.sink.why) == ([], [])


def test_a_socket_that_fails_ends_the_connection(scene: Scene) -> None:
    protocol = scene.connect()
    scene.transport.socket.close()
    protocol.send(b"12345678")
    assert scene.transport.is_aborted
    assert len(scene.sink.why) == 1


def test_at_the_end_nothing_is_left(scene: Scene) -> None:
    scene.client.stop()
    scene.client.connect("10.0.0.9:10912", scene.sink)
    connector = scene.reactor.connectors[0]
    connector.state = "connecting"
    stopped: list[int] = []
    connector.stopConnecting = lambda: stopped.append(1)
    scene.client.stop()
    assert stopped == [1]
    scene.connect()
    connector.state = "disconnected"
    scene.client.stop()
    assert scene.transport.is_aborted


def test_an_attempt_after_a_connection_is_given_up_at_the_end(scene: Scene) -> None:
    scene.connect()
    scene.client.connect("10.0.0.9:10912", scene.sink)
    stopped: list[int] = []
    connector = scene.reactor.connectors[1]
    connector.state = "connecting"
    connector.stopConnecting = lambda: stopped.append(1)
    scene.client.stop()
    assert (stopped, scene.transport.is_aborted) == ([1], False)
