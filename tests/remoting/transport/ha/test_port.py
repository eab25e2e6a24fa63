# SPDX-License-Identifier: Apache-2.0
"""The port for slaves: who gets in, and how bytes leave."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from twisted.internet.address import IPv4Address
from twisted.internet.error import CannotListenError
from twisted.internet.testing import MemoryReactorClock
from twisted.logger import capturedLogs, formatEvent

from txrocketmq.remoting.host.clock import Clock
from txrocketmq.remoting.primitives.networks import Networks
from txrocketmq.remoting.transport.ha.port import HaConnection, HaPort


class Transport:
    """What a connection needs of Twisted's transport, over a real socket."""

    def __init__(self) -> None:
        self.socket, self.far = socket.socketpair()
        self.socket.setblocking(False)
        self.producer: Any = None
        self.is_writing = self.is_aborted = False

    def getPeer(self) -> IPv4Address:  # noqa: N802 - Twisted's
        return IPv4Address("TCP", "10.0.0.1", 7)

    def setTcpNoDelay(self, enabled: bool) -> None:  # noqa: N802 - Twisted's
        pass

    def setTcpKeepAlive(self, enabled: bool) -> None:  # noqa: N802 - Twisted's
        pass

    def registerProducer(self, producer: Any, streaming: bool) -> None:  # noqa: N802 - Twisted's
        assert not streaming
        self.producer = producer
        producer.resumeProducing()

    def startWriting(self) -> None:  # noqa: N802 - Twisted's
        self.is_writing = True

    def abortConnection(self) -> None:  # noqa: N802 - Twisted's
        self.is_aborted = True

    def writable(self) -> None:
        """The socket has room again."""
        self.is_writing = False
        self.producer.resumeProducing()


class Bytes:
    """A source of many bytes."""

    def __init__(self) -> None:
        self.left = b""
        self.asked = 0
        self.heard: list[bytes] = []
        self.why = ""

    def received(self, data: bytes) -> None:
        self.heard.append(data)

    def pieces(self) -> Sequence[bytes | memoryview]:
        self.asked += 1
        first = self.left[: 1 << 20]
        return [first[:12], memoryview(first)[12:]] if first else []

    def sent(self, count: int) -> bool:
        self.left = self.left[count:]
        return bool(self.left)

    def ended(self, why: str) -> None:
        self.why = why


class Scene:
    def __init__(self) -> None:
        self.reactor: Any = MemoryReactorClock()
        self.source: Bytes | None = Bytes()
        self.came: list[tuple[str, int]] = []
        self.port = HaPort(Clock(self.reactor), self)
        self.transports: list[Transport] = []

    def begin(self, host: str, port: int, connection: HaConnection) -> Bytes | None:
        self.came.append((host, port))
        return self.source

    def listen(self, *allowed: str) -> None:
        self.port.listen(10_912, "", Networks(allowed))

    def connect(self, host: str = "10.0.0.1") -> Any:
        protocol = self.reactor.tcpServers[0][1].buildProtocol(IPv4Address("TCP", host, 7))
        if protocol is not None:
            self.transports.append(Transport())
            protocol.makeConnection(self.transports[-1])
        return protocol


@pytest.fixture
def scene() -> Iterator[Scene]:
    made = Scene()
    yield made
    for each in made.transports:
        each.socket.close()
        each.far.close()


def test_only_allowed_addresses_get_in(scene: Scene) -> None:
    scene.listen("10.0.0.0/8")
    assert scene.connect("11.0.0.1") is None
    assert scene.connect("10.9.9.9") is not None
    assert len(scene.came) == 1


def test_who_is_not_wanted_is_sent_away(scene: Scene) -> None:
    scene.listen("10.0.0.0/8")
    scene.source = None
    protocol = scene.connect()
    assert scene.transports[0].is_aborted
    protocol.dataReceived(b"12345678")
    protocol.connectionLost()


def test_one_write_a_turn_and_the_rest_when_there_is_room(scene: Scene) -> None:
    scene.listen("10.0.0.1")
    protocol = scene.connect()
    source, transport = scene.source, scene.transports[0]
    assert source is not None
    source.left = whole = bytes(range(256)) * 20_000
    source.asked = 0
    protocol.wake()
    assert (source.asked, transport.is_writing) == (1, True)
    protocol.wake()
    assert source.asked == 1, "it waits for the socket"
    got = b""
    while len(got) < len(whole):
        got += transport.far.recv(1 << 20)
        if transport.is_writing:
            transport.writable()
    assert got == whole
    asked = source.asked
    assert not transport.is_writing
    protocol.wake()
    assert (source.asked, transport.is_writing) == (asked + 1, False)


def test_what_arrives_and_the_end_are_told(scene: Scene) -> None:
    scene.listen("10.0.0.1")
    protocol = scene.connect()
    source = scene.source
    assert source is not None
    protocol.dataReceived(b"123")
    protocol.connectionLost()
    protocol.connectionLost()
    protocol.dataReceived(b"4")
    protocol.wake()
    assert (source.heard, source.why) == ([b"123"], "Connection was closed cleanly.")


def test_a_broken_socket_ends_the_connection(scene: Scene) -> None:
    scene.listen("10.0.0.1")
    protocol = scene.connect()
    assert scene.source is not None
    scene.transports[0].far.close()
    scene.source.left = b"x" * 20
    protocol.wake()
    assert scene.transports[0].is_aborted


def test_stop_closes_all(scene: Scene) -> None:
    scene.listen("10.0.0.1")
    first, second = scene.connect(), scene.connect()
    first.connected = 0
    assert second.connected
    scene.port.stop()
    assert [each.is_aborted for each in scene.transports] == [False, True]


def test_a_port_is_a_port(scene: Scene) -> None:
    with pytest.raises(CannotListenError):
        scene.port.listen(65_536, "", Networks())
    with capturedLogs() as lines:  # beside the last of all ports, where nobody asked for one
        assert scene.port.listen(65_536, "", Networks(), is_wanted=False) == 0
    (said,) = [formatEvent(line) for line in lines]
    assert said.startswith(
        "no slaves are served, since port 65536 cannot be opened (a port is 0 to"
    )
