# SPDX-License-Identifier: Apache-2.0
"""Requests that are served from bytes come in their order, however the bytes are cut."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from twisted.internet.task import Clock as TaskClock

from tests.remoting.transport.wires import FarEnd
from txrocketmq.remoting.call import Peer
from txrocketmq.remoting.command import RemotingCommand
from txrocketmq.remoting.dispatch import Dispatcher, Registry
from txrocketmq.remoting.frame.frame import begins_whole, encode_frame
from txrocketmq.remoting.host.clock import Clock
from txrocketmq.remoting.rpc_times import RpcTimes
from txrocketmq.remoting.transport.peer import TcpPeer
from txrocketmq.remoting.transport.peer_state import CLOSING
from txrocketmq.remoting.transport.raw.raw_connection import RawConnection
from txrocketmq.remoting.transport.turns import Turns

TAKEN, LEFT, LATER = 310, 11, 320


def frame(code: int, opaque: int) -> bytes:
    """The frame of a request."""
    return b"".join(encode_frame(RemotingCommand(code, None, b"body", opaque=opaque)))


class Signs:
    """A guard whose checks handlers make, with a number for an address."""

    def __init__(self) -> None:
        self.looked = 0

    def __call__(self, _: Peer, command: RemotingCommand) -> None:
        """Lets everybody pass."""

    def origin(self, _: Peer) -> int:
        self.looked += 1
        return 77


class Handler:
    """Takes requests of one code, two at most; those of another when it has learned it."""

    taken = 0
    request_codes = TAKEN, LATER

    def __init__(self, served: list[int], guard: Signs | None = None) -> None:
        self.guard = guard
        self.origins: set[int] = set()
        self._served = served
        self.codes = [TAKEN]
        self.asked = 0
        self.learned = 0

    def serve(self, peer: Peer, data: bytes, times: RpcTimes | None, origin: int) -> int:
        self.asked += 1
        self.origins.add(origin)
        at = 0
        for _ in range(2):
            if not begins_whole(data, at):
                break
            end = at + 4 + int.from_bytes(data[at : at + 4], "big")
            one = data[at:end]
            if not any(b'"code":%d,' % code in one for code in self.codes):
                break
            self._served.append(-int(one.split(b'"opaque":')[1].split(b",")[0]))
            at = end
        return at

    def learn(self, peer: Peer, data: bytes, origin: int) -> bool:
        self.learned += 1
        self.origins.add(origin)
        is_known = b'"code":%d,' % LATER in data[:60]
        if is_known:
            self.codes.append(LATER)
        return is_known


class Scene:
    """A peer whose `served` requests are numbers, below zero if they were served from bytes."""

    def __init__(self, guard: Signs | None = None) -> None:
        time: Any = TaskClock()
        clock = Clock(time)
        self.served: list[int] = []
        self.failed: list[Exception] = []
        self.time = time
        self.handler = Handler(self.served, guard)
        self.dispatcher = Dispatcher(Registry(), clock.now_ms, clock.steady_ms)
        connection = RawConnection(self.dispatcher, [self.handler], 256, 1 << 18)
        self.peer = TcpPeer(clock, self._serve, connection=connection)
        connection.peer = self.peer
        self.turns = Turns(lambda: 0.0, lambda call: time.callLater(0, call), self.failed.append)
        self.peer.turns = self.turns
        self.end = FarEnd(self.peer)
        self.most = 1 << 30

    def _serve(self, _: TcpPeer, commands: list[RemotingCommand], __: object) -> int:
        some = commands[: self.most]
        self.served += [command.opaque for command in some]
        return len(some)

    def read(self, data: bytes) -> None:
        """Has the peer read bytes."""
        self.peer.dataReceived(data)

    def next_turn(self) -> None:
        """Lets the next turn of the reactor come."""
        self.time.advance(0)
        assert not self.failed


@pytest.fixture
def scene() -> Scene:
    return Scene()


@given(
    codes=st.lists(st.sampled_from((TAKEN, TAKEN, LEFT, LATER)), max_size=20),
    sizes=st.lists(st.integers(1, 400), min_size=1),
)
def test_all_are_served_in_their_order(codes: list[int], sizes: list[int]) -> None:
    scene = Scene()
    data = b"".join([frame(code, number) for number, code in enumerate(codes, 1)])
    at = 0
    while at < len(data):
        size = sizes[at % len(sizes)]
        scene.read(data[at : at + size])
        at += size
    assert [abs(number) for number in scene.served] == [*range(1, len(codes) + 1)]
    assert all(number > 0 for number, code in zip(scene.served, codes, strict=True) if code == LEFT)
    assert scene.peer.decoder.held_bytes == 0


def test_what_is_cut_is_taken_when_it_is_whole(scene: Scene) -> None:
    one, two, three = (frame(TAKEN, number) for number in (1, 2, 3))
    scene.read(one + two[:20])
    scene.read(two[20:] + three[:5])
    scene.read(three[5:])
    assert scene.served == [-1, -2, -3]


def test_a_request_can_be_learned(scene: Scene) -> None:
    scene.read(frame(LATER, 1) + frame(LATER, 2) + frame(LEFT, 3) + frame(LATER, 4))
    assert scene.served == [-1, -2, 3, 4]
    scene.read(frame(LATER, 5))
    assert scene.served[-1] == -5


def test_a_handler_sees_no_requests_of_codes_that_are_not_its_own(scene: Scene) -> None:
    scene.read(frame(TAKEN, 1) + frame(LEFT, 2))
    scene.read(frame(LEFT, 3))
    assert scene.served == [-1, 2, 3]
    assert scene.handler.learned == 0, "they would be decoded for nothing"


def test_the_handler_of_the_code_serves_it(scene: Scene) -> None:
    other = Handler(scene.served)
    other.codes, other.request_codes = [LEFT], (LEFT, LEFT)
    connection: Any = scene.peer._connection
    connection._handlers = [scene.handler, other]
    scene.read(frame(TAKEN, 1) + frame(LEFT, 2) + frame(LEFT, 3) + frame(TAKEN, 4))
    assert scene.served == [-1, -2, -3, -4]
    asked = scene.handler.asked
    scene.read(frame(TAKEN, 5))
    assert (scene.served[-1], scene.handler.asked) == (-5, asked + 1), "who was last is first"


def test_nothing_is_taken_while_there_are_guards(scene: Scene) -> None:
    scene.dispatcher.guards.append(lambda *_: None)
    scene.read(frame(TAKEN, 1))
    scene.dispatcher.guards.clear()
    scene.read(frame(TAKEN, 2))
    assert scene.served == [1, -2]


def test_handlers_may_make_the_checks_of_a_guard() -> None:
    guard, other = Signs(), Signs()
    scene = Scene(guard)
    scene.read(frame(TAKEN, 1) + frame(LATER, 2))
    assert scene.handler.origins == {0}, "there is no guard yet"
    scene.handler.origins.clear()
    scene.dispatcher.guards.append(guard)
    scene.read(frame(TAKEN, 3) + frame(LATER, 4))
    scene.read(frame(LATER, 5))
    assert (scene.handler.origins, guard.looked) == ({77}, 1)
    scene.dispatcher.guards.append(other)
    scene.read(frame(TAKEN, 6))
    scene.dispatcher.guards[:] = [other]
    scene.read(frame(TAKEN, 7))
    assert scene.served == [-1, -2, -3, -4, -5, 6, 7], "other guards see each request"


def test_who_sends_nothing_that_is_taken_is_asked_for_seldom(scene: Scene) -> None:
    for number in range(1, 10_000):
        scene.read(frame(LEFT, number))
    assert scene.handler.asked < 40
    assert len(scene.served) == 9_999
    for number in range(10_000, 12_000):
        scene.read(frame(TAKEN, number))
    assert scene.served[-1] == -11_999, "and again once something is"


def test_a_frame_that_is_not_all_there_is_no_miss(scene: Scene) -> None:
    one = frame(TAKEN, 1)
    for byte in one:
        scene.read(bytes([byte]))
    assert scene.served == [-1]
    assert scene.handler.learned == 0


@pytest.fixture
def short(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """No peer may go on, until this is undone."""
    monkeypatch.setattr(scene.turns, "goes_on", lambda: False)
    yield monkeypatch
    assert not scene.failed


def test_what_was_not_served_comes_first(scene: Scene, short: pytest.MonkeyPatch) -> None:
    scene.most = 1
    scene.read(frame(LEFT, 1) + frame(LEFT, 2))
    scene.read(frame(TAKEN, 3))
    assert scene.served == [1]
    short.undo()
    scene.next_turn()
    assert scene.served == [1, 2, -3]


def test_the_rest_waits_when_the_turn_is_over(scene: Scene, short: pytest.MonkeyPatch) -> None:
    scene.read(b"".join([frame(TAKEN, number) for number in range(1, 6)]))
    assert scene.served == [-1, -2]
    short.undo()
    scene.next_turn()
    assert scene.served == [-1, -2, -3, -4, -5]


def test_a_connection_that_is_being_closed_serves_nothing(scene: Scene) -> None:
    scene.peer.write([bytes(1 << 20)])
    scene.peer.close()
    if scene.peer.state is CLOSING:
        scene.read(frame(TAKEN, 1))
    assert scene.served == []


def test_bytes_that_are_no_frame_end_the_connection(scene: Scene) -> None:
    scene.read(frame(TAKEN, 1) + b"GET / HTTP/1.1\r\n\r\n")
    assert scene.served == [-1]
    assert not scene.peer.connected or scene.peer.state is CLOSING
