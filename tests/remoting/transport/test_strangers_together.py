# SPDX-License-Identifier: Apache-2.0
"""Many strangers on real sockets: how long others wait for them, and what is held for all.

The sockets are of the loopback interface, and the reactor is one whose turns the test makes. Time
is made up, too: a request costs what the test says.
"""

from __future__ import annotations

import select
import socket
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from twisted.internet.testing import MemoryReactorClock
from twisted.python.failure import Failure

from tests.examples import examples
from txrocketmq.remoting.call import Reply, Request
from txrocketmq.remoting.command import RemotingCommand
from txrocketmq.remoting.dispatch import Dispatcher, Registry, serves
from txrocketmq.remoting.frame.frame import HELD_COMMAND_BYTES, FrameDecoder, encode_frame
from txrocketmq.remoting.header import NoHeader
from txrocketmq.remoting.host.clock import Clock
from txrocketmq.remoting.protocol import heartbeat
from txrocketmq.remoting.transport.peer import TcpPeer
from txrocketmq.remoting.transport.peer_state import CROWDED
from txrocketmq.remoting.transport.server import RemotingServer, ServerSocket
from txrocketmq.remoting.transport.turns import TURN_S, Turns

ASK = heartbeat.CHECK_CLIENT_CONFIG
COST_S = 0.0005
MIB = 1 << 20


class Reactor(MemoryReactorClock):
    """Sockets are real here, and so is waiting for them; the time is a test's."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.watched: tuple[dict[int, Any], dict[int, Any]] = {}, {}
        self._soon: list[Callable[[], object]] = []

    def callLater(self, when: float, what: Any, *args: Any, **named: Any) -> Any:  # type: ignore[override]
        """Makes a call with no delay in the next turn, as Twisted does."""
        if when > 0:
            return super().callLater(when, what, *args, **named)
        return self._soon.append(partial(what, *args, **named))

    def addReader(self, reader: Any) -> None:  # noqa: N802 - IReactorFDSet
        self.watched[0][reader.fileno()] = reader

    def removeReader(self, reader: Any) -> None:  # noqa: N802
        self._forget(0, reader)

    def addWriter(self, writer: Any) -> None:  # noqa: N802
        self.watched[1][writer.fileno()] = writer

    def removeWriter(self, writer: Any) -> None:  # noqa: N802
        self._forget(1, writer)

    def _forget(self, which: int, one: Any) -> None:
        for number, each in list(self.watched[which].items()):
            if each is one:
                del self.watched[which][number]

    def turn(self) -> None:
        """Makes a turn, as Twisted does: first calls that are due, then sockets that are ready."""
        soon, self._soon = self._soon, []
        for call in soon:
            call()
        reads, writes = self.watched
        ready_reads, ready_writes, _ = select.select(list(reads), list(writes), [], 0)
        for number in ready_reads:
            self._do(reads.get(number), "doRead")
        for number in ready_writes:
            self._do(writes.get(number), "doWrite")

    def _do(self, one: Any, what: str) -> None:
        why = None if one is None else getattr(one, what)()
        if why is not None:
            one.connectionLost(Failure(why))


class Scene:
    """A server, and clients that are sockets of the test."""

    def __init__(self, most_bytes: int = 64 * MIB) -> None:
        self.reactor = Reactor()
        self.now_s = 0.0
        self.cost_s = COST_S
        self.answer_bytes = 0
        self.served: list[int] = []
        self.server = RemotingServer(Clock(self.reactor), max_held_bytes=lambda: most_bytes)
        turns = self.server.shared.turns
        turns.timer = lambda: self.now_s
        self.turns: Turns = turns
        self.dispatcher = Dispatcher(Registry(self), lambda: 0, lambda: 0)
        self.server.listen(10_911, self.dispatcher, "127.0.0.1")
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.clients: list[socket.socket] = []
        self.peers: list[TcpPeer] = []

    def connect(self) -> socket.socket:
        """Connects a client."""
        client = socket.create_connection(self._listening.getsockname())
        here, address = self._listening.accept()
        here.setblocking(False)
        client.setblocking(False)
        here.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 8_192)
        factory: Any = self.reactor.tcpServers[0][1]
        peer = factory.buildProtocol(None)
        port: Any = None
        transport = ServerSocket(here, peer, address, port, 0, self.reactor)
        peer.makeConnection(transport)
        self.clients.append(client)
        self.peers.append(peer)
        return client

    @serves(ASK)
    def answer(self, request: Request[NoHeader]) -> Reply[NoHeader]:
        self.now_s += self.cost_s
        self.served.append(request.command.opaque)
        return Reply(body=bytes(self.answer_bytes))

    def turn(self) -> float:
        """Makes a turn of the reactor; returns how long requests were served."""
        before_s = self.now_s
        self.reactor.turn()
        return self.now_s - before_s

    def close(self) -> None:
        for client in self.clients:
            client.close()
        for _ in range(200):
            if not self.server.peers and not self.turns.waiting:
                break  # a socket that is closed while it waits leaves in its turn
            self.turn()
            self.reactor.advance(0.1)  # those that are not read from are found out later
        self._listening.close()

    def actually_held(self) -> int:
        """Counts what is held, one peer after another."""
        total = 0
        for peer in self.server.peers:
            if peer.state.is_connected:
                decoder = peer.decoder
                total += peer._outlet.unsent_bytes() + len(decoder._rest)
                total += sum(map(len, decoder._chunks))
                total += sum(HELD_COMMAND_BYTES + len(each.body) for each in decoder._commands)
        return total


@pytest.fixture
def scene() -> Iterator[Scene]:
    made = Scene()
    yield made
    made.close()
    assert made.server.shared.held.total == 0
    assert made.turns.waiting == 0


def asked(count: int, first: int = 0, body: bytes = b"") -> bytes:
    commands = (RemotingCommand(ASK.code, {}, body, opaque=first + at) for at in range(count))
    return b"".join(bytes(part) for each in commands for part in encode_frame(each))


def heard(client: socket.socket) -> int:
    try:
        return len(FrameDecoder().receive(client.recv(MIB)))
    except BlockingIOError:
        return 0


def test_one_with_a_request_does_not_wait_for_many_with_hundreds(scene: Scene) -> None:
    crowd = [scene.connect() for _ in range(60)]
    one = scene.connect()
    for each in crowd:
        each.send(asked(300))
    longest = [scene.turn() for _ in range(3)]
    for number in range(20):
        sent_s = scene.now_s
        one.send(asked(1, first=10_000 + number))
        longest.append(scene.turn())
        while not heard(one):
            longest.append(scene.turn())
        assert scene.now_s - sent_s <= 2.5 * TURN_S
    assert max(longest) <= TURN_S + 2 * COST_S
    while scene.turns.waiting:
        assert scene.turn() <= TURN_S + 2 * COST_S
    assert len(scene.served) == 60 * 300 + 20


def test_what_is_not_served_in_a_turn_stays_in_its_socket(scene: Scene) -> None:
    crowd = [scene.connect() for _ in range(50)]
    for each in crowd:
        each.send(asked(100))
    scene.turn()
    assert len([peer for peer in scene.peers if peer.held_bytes]) == 1
    assert scene.turns.waiting == 50


def test_one_that_leaves_while_it_waits_is_found_out(scene: Scene) -> None:
    busy, leaves = scene.connect(), scene.connect()
    busy.send(asked(2_000))
    scene.turn()
    leaves.send(asked(1))
    leaves.close()
    for _ in range(5):
        scene.turn()
    assert len(scene.server.peers) == 1
    assert scene.turns.waiting == 1


def test_one_that_is_closed_while_its_socket_waits_is_not_read(scene: Scene) -> None:
    busy, other = scene.connect(), scene.connect()
    busy.send(asked(2_000))
    scene.turn()
    other.send(asked(1, first=9_999))
    scene.turn()
    scene.peers[1].close()
    for _ in range(5):
        scene.turn()
    assert len(scene.server.peers) == 1


def test_peers_that_do_not_read_hold_little() -> None:
    scene = Scene()
    scene.cost_s, scene.answer_bytes = 0.0, MIB
    for _ in range(20):
        scene.connect().send(asked(50))
    for _ in range(20):
        scene.turn()
    held = scene.server.shared.held
    assert 0 < held.total <= 20 * (MIB + MIB // 2)
    assert held.total == scene.actually_held()
    assert len(scene.served) <= 20 * 4, "the sockets take some"
    scene.close()
    assert held.total == 0


def test_unfinished_frames_are_limited_and_small_requests_served() -> None:
    scene = Scene(most_bytes=4 * MIB)
    scene.cost_s = 0.0
    begun = asked(1, body=bytes(2 * MIB))[: 2 * MIB - 5]
    clients = [(scene.connect(), memoryview(begun)) for _ in range(6)]
    for _ in range(200):
        for at, (client, left) in enumerate(clients):
            if left:
                try:
                    clients[at] = client, left[client.send(left[:65_536]) :]
                except OSError:
                    clients[at] = client, left[:0]
        scene.turn()
        assert scene.server.shared.held.total <= 5 * MIB
    assert any(peer.state is CROWDED for peer in scene.peers)
    one = scene.connect()
    one.send(asked(1))
    scene.turn()
    assert heard(one) == 1
    for _ in range(7):
        scene.reactor.advance(1)
    assert scene.server.shared.held.total <= 4 * MIB
    assert scene.server.shared.held.refused > 0
    scene.close()
    assert scene.server.shared.held.total == 0


ACTIONS = st.lists(
    st.tuples(
        st.integers(0, 4),
        st.sampled_from(["ask", "ask much", "cut", "read", "reset", "close", "end", "turn"]),
        st.sampled_from([0, 100, 200_000]),
    ),
    max_size=40,
)


@settings(max_examples=examples(20), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(ACTIONS)
def test_the_sum_of_what_is_held_is_exact_whatever_strangers_do(
    actions: list[tuple[int, str, int]],
) -> None:
    scene = Scene(most_bytes=MIB)
    for _ in range(5):
        scene.connect()
    held = scene.server.shared.held

    def send(client: socket.socket, data: bytes) -> None:
        with suppress(OSError):  # it is full, or closed
            client.send(data)

    do: dict[str, Callable[[socket.socket, TcpPeer], object]] = {
        "ask": lambda client, _: send(client, asked(3)),
        "ask much": lambda client, _: send(client, asked(400)),
        "cut": lambda client, _: send(client, asked(1, body=bytes(600_000))[:-1]),
        "read": lambda client, _: heard(client) if client.fileno() >= 0 else None,
        "reset": lambda _, peer: peer.abort(),
        "close": lambda _, peer: peer.close(),
        "end": lambda client, _: client.close(),
        "turn": lambda *_: None,
    }
    for at, what, answer_bytes in actions:
        scene.answer_bytes = answer_bytes
        with suppress(ConnectionError):
            do[what](scene.clients[at], scene.peers[at])
        assert held.total == scene.actually_held()
        scene.turn()
        assert held.total == scene.actually_held()
    scene.close()
    assert not scene.server.peers
    assert held.total == held.crowded == scene.turns.waiting == 0
