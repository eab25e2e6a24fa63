# SPDX-License-Identifier: Apache-2.0
"""The port for gRPC: who comes in, and how it ends."""

from __future__ import annotations

import ssl
from typing import Any

import pytest
from twisted.internet.testing import MemoryReactorClock
from twisted.logger import capturedLogs, formatEvent

from tests.proxy.grpc.clients import Methods
from tests.proxy.grpc.texts import Text
from tests.proxy.guests import BEGIN, request
from tests.remoting.transport.wires import FarEnd
from txrocketmq.proxy.config import ProxyConfig
from txrocketmq.proxy.grpc.peer import GrpcPeer
from txrocketmq.proxy.grpc.server import GrpcServer
from txrocketmq.proxy.grpc.service import Rpcs
from txrocketmq.proxy.http2.frames import PREFACE
from txrocketmq.remoting.host.clock import Clock


class Scene:
    """A server on one port."""

    def __init__(self, **settings: Any) -> None:
        self.reactor: Any = MemoryReactorClock()
        self.clock = Clock(self.reactor)
        self.methods = Methods()
        rpcs = Rpcs("s", lambda _: Text, self.methods)
        self.server = GrpcServer(self.clock, ProxyConfig(**settings), rpcs)
        self.server.listen(8081, interface="127.0.0.1")

    def come(self) -> GrpcPeer | None:
        """A client connects."""
        peer: GrpcPeer | None = self.reactor.tcpServers[0][1].buildProtocol(None)
        return peer


def test_clients_are_served() -> None:
    scene = Scene()
    peer = scene.come()
    assert peer is not None
    end = FarEnd(peer)
    peer.dataReceived(PREFACE + bytes((0, 0, 0, 4, 0, 0, 0, 0, 0)))
    scene.reactor.advance(0)
    assert end.wire.value()[3] == 4
    assert scene.server.peers == {peer}


@pytest.mark.parametrize(
    ("balancers", "caller"), [(("127.0.0.0/8",), "10.1.2.3:4242"), ((), "127.0.0.1:50000")]
)
def test_a_load_balancer_says_who_calls(balancers: tuple[str, ...], caller: str) -> None:
    """Of anybody else the header is passed over."""
    scene = Scene(proxy_protocol_from=balancers)
    peer = scene.come()
    assert peer is not None
    FarEnd(peer)
    header = b"PROXY TCP4 10.1.2.3 10.0.0.1 4242 8081\r\n"
    peer.dataReceived(header + BEGIN + request(1, "Echo"))
    assert [call.peer for call in scene.methods.calls] == [caller]


def test_connections_have_a_limit_that_is_said() -> None:
    scene = Scene(max_connections=2)
    assert scene.come()
    assert scene.come()
    with capturedLogs() as logs:
        assert [scene.come() for _ in range(50)] == [None] * 50
    assert len(logs) <= 5
    assert formatEvent(logs[0]) == "connections are refused: maxConnections=2 are open"


def test_an_idle_connection_is_closed() -> None:
    scene = Scene(grpc_client_idle_time_mills=5_000)
    peer = scene.come()
    assert peer is not None
    FarEnd(peer)
    scene.reactor.advance(1)
    assert peer.connected
    for _ in range(7):
        scene.reactor.advance(1)
    assert peer.transport.disconnecting  # type: ignore[union-attr]


def test_it_ends_when_all_have_left() -> None:
    scene = Scene()
    peer = scene.come()
    assert peer is not None
    end = FarEnd(peer)
    ended = scene.server.end(30_000)
    assert not scene.reactor.tcpServers[0][1].numPorts
    scene.reactor.advance(1)
    assert not ended.called
    end.leave()
    scene.reactor.advance(1)
    assert ended.called


def test_it_ends_after_a_while() -> None:
    scene = Scene()
    peer = scene.come()
    assert peer is not None
    FarEnd(peer)
    ended = scene.server.end(3_000)
    for _ in range(200):
        scene.reactor.advance(0.02)
    assert ended.called


def test_h2_is_offered_within_tls() -> None:
    server = Scene().server
    context = server.encryption._contexts.current()
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.check_hostname, client.verify_mode = False, ssl.CERT_NONE
    client.set_alpn_protocols(["h2"])
    ways = ssl.MemoryBIO(), ssl.MemoryBIO()
    ours = context.wrap_bio(*ways, server_side=True)
    theirs = client.wrap_bio(ways[1], ways[0])
    for _ in range(4):
        for each in (theirs, ours):
            try:
                each.do_handshake()
            except ssl.SSLWantReadError:
                continue
    assert theirs.selected_alpn_protocol() == ours.selected_alpn_protocol() == "h2"


def test_a_port_that_is_open_can_be_taken_over() -> None:
    scene = Scene()
    listening: Any = scene.reactor.listenTCP(9_999, None)
    assert scene.server.adopt(listening) == listening.getHost().port
    assert isinstance(listening.factory.buildProtocol(None), GrpcPeer)
