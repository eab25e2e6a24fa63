# SPDX-License-Identifier: Apache-2.0
"""How bytes leave. See test_peer.py for sockets, and test_tls_outlet.py for TLS."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from twisted.internet.task import Clock as TaskClock
from twisted.internet.tcp import Connection

from tests.remoting.transport.wires import FarEnd, Wire
from txrocketmq.remoting.call import Buffer
from txrocketmq.remoting.host.clock import Clock
from txrocketmq.remoting.transport.outlet import (
    PIECE_BYTES,
    Backlog,
    GatheringOutlet,
    SocketOutlet,
    TransportOutlet,
    plain_outlet,
)
from txrocketmq.remoting.transport.peer import TcpPeer


def test_a_peer_that_is_told_nothing_writes_plainly() -> None:
    end = FarEnd(TcpPeer(Clock(TaskClock()), lambda *_: 0))
    assert type(end.protocol._outlet) is TransportOutlet
    assert end.protocol._outlet.take(b"x") == b"x"
    assert end.protocol._outlet.unsent_bytes() == 0


def test_a_socket_is_written_to_directly() -> None:
    transport: Any = Connection.__new__(Connection)
    transport.socket = object()
    assert type(plain_outlet(transport)) is SocketOutlet


def test_a_plain_connection_says_nothing_at_its_end() -> None:
    wire: Any = Wire()  # type: ignore[no-untyped-call]
    outlet = plain_outlet(wire)
    outlet.write([b"last"])
    outlet.end()
    assert wire.value() == b"last"


def test_what_waits_is_taken_in_pieces_and_does_not_change() -> None:
    backlog, kept = Backlog(), bytearray(b"a")
    assert not backlog
    backlog.add([memoryview(kept), b"", b"b" * PIECE_BYTES])
    backlog.add([memoryview(b"cc")[1:]])
    kept[:] = b"z"
    assert backlog
    assert backlog.size_bytes == PIECE_BYTES + 2
    assert b"".join(backlog.piece()) == b"a" + b"b" * (PIECE_BYTES - 1)
    assert backlog.size_bytes == 2
    assert b"".join(backlog.piece()) == b"bc"
    assert (bool(backlog), backlog.size_bytes, backlog.piece()) == (False, 0, [])


def test_what_is_written_in_one_turn_leaves_together() -> None:
    clock, writes = TaskClock(), Writes()
    outlet = GatheringOutlet(writes, partial(clock.callLater, 0))
    kept = bytearray(b"b")
    outlet.write([b"a", memoryview(kept)])
    kept[0:1] = b"z"  # slices of mapped files do not last
    outlet.write([b"c"])
    assert (writes.all, outlet.unsent_bytes(), len(clock.getDelayedCalls())) == ([], 3, 1)
    clock.advance(0)
    assert (writes.all, outlet.unsent_bytes()) == ([b"abc"], 0)
    outlet.write([b"d"])
    clock.advance(0)
    assert writes.all == [b"abc", b"d"]


def test_much_leaves_before_the_turn_is_over_and_in_its_order() -> None:
    clock, writes = TaskClock(), Writes()
    outlet = GatheringOutlet(writes, partial(clock.callLater, 0))
    outlet.write([b"a"])
    outlet.write([b"b" * PIECE_BYTES])
    outlet.write([b"c"])
    assert writes.all == [b"a" + b"b" * PIECE_BYTES]
    clock.advance(0)
    assert writes.all[1:] == [b"c"]


def test_small_requests_leave_in_pieces_that_the_socket_may_take_whole() -> None:
    clock, writes = TaskClock(), Writes()
    outlet = GatheringOutlet(writes, partial(clock.callLater, 0))
    for _ in range(1_000):
        outlet.write([b"h" * 100, b"b" * 1_000])
    clock.advance(0)
    assert sum(map(len, writes.all)) == 1_100_000
    assert max(map(len, writes.all)) <= PIECE_BYTES


def test_what_is_gathered_leaves_when_a_connection_is_closed() -> None:
    clock, writes = TaskClock(), Writes()
    outlet = GatheringOutlet(writes, partial(clock.callLater, 0))
    outlet.write([b"last"])
    outlet.pause()
    assert outlet.resume()
    outlet.write([b"very last"])
    outlet.end()
    assert (writes.all, writes.happened) == ([b"last", b"very last"], ["pause", "resume", "end"])
    clock.advance(0)
    assert writes.all[2:] == []
    assert outlet.take(b"x") == b"x!"


class Writes:
    """An outlet that notes each write."""

    state_bytes = 0

    def __init__(self) -> None:
        self.all: list[bytes] = []
        self.happened: list[str] = []

    def write(self, buffers: Sequence[Buffer]) -> bool:
        self.all.append(b"".join(buffers))
        return True

    def pause(self) -> None:
        self.happened.append("pause")

    def resume(self) -> bool:
        self.happened.append("resume")
        return True

    def end(self) -> None:
        self.happened.append("end")

    def unsent_bytes(self) -> int:
        return 0

    def take(self, data: bytes) -> bytes:
        return data + b"!"
