# SPDX-License-Identifier: Apache-2.0
"""A connection: what comes in and goes out, and what one that does not read can hold."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from twisted.internet.address import IPv4Address
from twisted.internet.main import CONNECTION_DONE
from twisted.internet.task import Clock as TaskClock
from twisted.internet.tcp import Connection as TcpConnection
from twisted.logger import capturedLogs, formatEvent

from tests.remoting.transport.scene import answer
from tests.remoting.transport.wires import FarEnd
from txrocketmq.remoting.codes import RequestCode
from txrocketmq.remoting.command import ONEWAY_FLAG, RESPONSE_FLAG, RemotingCommand
from txrocketmq.remoting.dispatch import Dispatcher, Registry
from txrocketmq.remoting.errors import RequestTimeout, SendError, TooManyRequests
from txrocketmq.remoting.frame.frame import FrameDecoder, encode_frame
from txrocketmq.remoting.host.clock import Clock
from txrocketmq.remoting.protocol import heartbeat, offset
from txrocketmq.remoting.protocol.heartbeat import NotifyConsumerIdsChangedRequestHeader
from txrocketmq.remoting.protocol.offset import GetMaxOffsetRequestHeader
from txrocketmq.remoting.transport.outlet import PIECE_BYTES, Choose
from txrocketmq.remoting.transport.peer import (
    MAX_BUFFERED_BYTES,
    PORTION_COMMANDS,
    READ_BYTES,
    TcpPeer,
)
from txrocketmq.remoting.transport.peer_state import ABORTED, CLOSING, OPEN, PAUSED

WHERE = GetMaxOffsetRequestHeader(topic="T", queue_id=0)


class Scene:
    """A peer of ours with its far end; `served` are the requests of each read."""

    def __init__(self) -> None:
        self.time: Any = TaskClock()
        self.served: list[list[Any]] = []
        self.closed: list[TcpPeer] = []
        self.peer = TcpPeer(
            Clock(self.time),
            self._serve,
            self.closed.append,
        )
        self.end = FarEnd(self.peer)

    def _serve(self, _: TcpPeer, commands: Sequence[Any], __: object) -> int:
        self.served.append(list(commands))
        return len(commands)


@pytest.fixture
def scene() -> Scene:
    return Scene()


def test_a_new_connection(scene: Scene) -> None:
    peer = scene.peer
    assert peer.connected
    assert (peer.remote_address, peer.local_address) == ("127.0.0.1:50000", "127.0.0.1:10911")
    assert (peer.remote_host[4:], peer.local_host[4:]) == (b"\0\0\xc3\x50", b"\0\0\x2a\x9f")
    assert not scene.end.wire.nagle
    assert scene.end.wire.bufferSize == READ_BYTES
    assert scene.end.wire.producer is peer


# ------------------------------------------------------------------------------- both ways


def test_all_requests_of_a_read_are_served_together(scene: Scene) -> None:
    scene.end.tell(RemotingCommand(1, opaque=1), RemotingCommand(2, opaque=2))
    scene.end.tell(RemotingCommand(3, opaque=3))
    assert [[each.opaque for each in read] for read in scene.served] == [[1, 2], [3]]


def test_requests_may_come_in_any_pieces() -> None:
    data = b"".join(
        bytes(part)
        for opaque in (1, 2)
        for part in encode_frame(RemotingCommand(1, {"a": "b"}, b"body", opaque=opaque))
    )
    for cut in range(1, len(data)):
        scene = Scene()
        scene.peer.dataReceived(data[:cut])
        scene.peer.dataReceived(data[cut:])
        served = [each for read in scene.served for each in read]
        assert [(each.opaque, each.body) for each in served] == [(1, b"body"), (2, b"body")]


def test_answers_to_one_read_leave_in_one_write(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene.peer._serve = Dispatcher(Registry(), lambda: 0, lambda: 0).serve
    writes: list[bytes] = []
    monkeypatch.setattr(
        scene.end.wire, "writeSequence", lambda parts: writes.append(b"".join(parts))
    )
    scene.end.tell(*(RemotingCommand(9_999, opaque=opaque) for opaque in range(5)))
    (written,) = writes
    assert [each.opaque for each in FrameDecoder().receive(written)] == [0, 1, 2, 3, 4]


def test_bytes_that_complete_nothing_serve_nothing(scene: Scene) -> None:
    scene.time.advance(5)
    scene.peer.dataReceived(b"\0\0")
    assert scene.served == []
    assert scene.peer.idle_ms(5_000) == 0
    assert scene.peer.idle_ms(7_000) == 2_000


def test_a_question_and_its_answer(scene: Scene) -> None:
    pending = scene.peer.invoke(offset.GET_MAX_OFFSET, WHERE, b"body", timeout_ms=1_000)
    (asked,) = scene.end.heard()
    assert (asked.code, asked.ext_fields) == (RequestCode.GET_MAX_OFFSET, WHERE.encode())
    assert asked.body == b"body"
    scene.end.tell(RemotingCommand(0, {"offset": "5"}, flag=RESPONSE_FLAG, opaque=asked.opaque))
    outcomes: list[Any] = []
    pending.then(outcomes.append)
    assert outcomes[0].header.offset == 5
    assert scene.served == []


def test_a_question_that_is_not_answered(scene: Scene) -> None:
    outcomes: list[Any] = []
    scene.peer.invoke(offset.GET_MAX_OFFSET, WHERE, timeout_ms=1_000).then(outcomes.append)
    scene.peer.expire(999)
    assert outcomes == []
    scene.peer.expire(1_000)
    assert isinstance(outcomes[0], RequestTimeout)


def test_questions_of_a_connection_that_ends(scene: Scene) -> None:
    outcomes: list[Any] = []
    scene.peer.invoke(offset.GET_MAX_OFFSET, WHERE, timeout_ms=1_000).then(outcomes.append)
    scene.end.leave()
    scene.peer.invoke(offset.GET_MAX_OFFSET, WHERE, timeout_ms=1_000).then(outcomes.append)
    assert [type(each) for each in outcomes] == [SendError, SendError]
    assert "127.0.0.1:50000 was lost" in str(outcomes[0])
    assert "127.0.0.1:50000 is closed" in str(outcomes[1])
    assert scene.closed == [scene.peer]
    assert not scene.peer.connected


def test_too_many_questions(scene: Scene) -> None:
    scene.peer._connection._max_in_flight = 1
    outcomes: list[Any] = []
    for _ in range(2):
        scene.peer.invoke(offset.GET_MAX_OFFSET, WHERE, timeout_ms=1_000).then(outcomes.append)
    assert [type(each) for each in outcomes] == [TooManyRequests]
    assert len(scene.end.heard()) == 1


def test_a_notice(scene: Scene) -> None:
    header = NotifyConsumerIdsChangedRequestHeader(consumer_group="g")
    scene.peer.invoke_oneway(heartbeat.NOTIFY_CONSUMER_IDS_CHANGED, header)
    (told,) = scene.end.heard()
    assert (told.flag, told.ext_fields) == (ONEWAY_FLAG, {"consumerGroup": "g"})
    scene.end.leave()
    scene.peer.invoke_oneway(heartbeat.NOTIFY_CONSUMER_IDS_CHANGED, header)
    scene.peer.write([b"x"])
    assert scene.end.wire.value() == b""


def test_what_is_no_frame_ends_the_connection_after_what_was(scene: Scene) -> None:
    good = b"".join(bytes(part) for part in encode_frame(RemotingCommand(1, opaque=7)))
    with capturedLogs() as events:
        scene.peer.dataReceived(good + b"\0\0\0\0\0\0\0\0" + good)
        scene.peer.dataReceived(b"more")  # such as TLS may still have
    assert scene.end.wire.disconnecting
    assert [each.opaque for each in scene.served[0]] == [7]
    assert len(scene.served) == 1
    assert [formatEvent(event) for event in events] == [
        "closing 127.0.0.1:50000: frame length 0 is too short for a command"
    ]


def test_buffers_of_all_kinds_are_written(scene: Scene) -> None:
    scene.peer.write([b"a", memoryview(b"b"), bytearray(b"c")])
    assert scene.end.wire.value() == b"abc"


# ---------------------------------------------------------------------------- backpressure


def test_who_does_not_read_is_not_read_from(scene: Scene) -> None:
    wire = scene.end.wire
    wire.producer.pauseProducing()
    assert wire.producerState == "paused"
    wire.producer.resumeProducing()
    assert wire.producerState == "producing"


def test_a_connection_that_ends_is_not_read_from_again(scene: Scene) -> None:
    wire = scene.end.wire
    wire.producer.pauseProducing()
    scene.peer.close()
    assert wire.producer is None  # Twisted would wait for ever for one that is paused
    scene.peer.resumeProducing()
    assert wire.producerState == "paused"


def test_requests_of_one_that_does_not_read_wait(scene: Scene) -> None:
    wire, requests = scene.end.wire, [RemotingCommand(1, opaque=n) for n in range(5)]
    served: list[int] = []

    def serve(_: TcpPeer, commands: Sequence[Any], goes_on: Callable[[], bool]) -> int:
        for count, command in enumerate(commands, 1):
            served.append(command.opaque)
            if command.opaque in (1, 3):
                wire.producer.pauseProducing()  # the answer is long
            if not goes_on():
                return count
        return len(commands)

    scene.peer._serve = serve
    scene.end.tell(*requests[:4])
    scene.end.tell(requests[4])  # such as TLS may still have
    assert served == [0, 1]
    wire.producer.resumeProducing()
    assert (served, wire.producerState) == ([0, 1, 2, 3], "paused")
    wire.producer.resumeProducing()
    assert (served, wire.producerState) == ([0, 1, 2, 3, 4], "producing")


def test_requests_of_one_that_has_gone_are_not_served(scene: Scene) -> None:
    wire = scene.end.wire
    wire.producer.pauseProducing()
    scene.end.tell(RemotingCommand(1))
    scene.end.leave()
    wire.producer.resumeProducing()
    assert scene.served == []


class Socket(TcpConnection):
    """A TCP transport of Twisted on a socket pair, without a reactor that watches it."""

    class _NoReactor:
        def addReader(self, _: object) -> None: ...  # noqa: N802 - IReactorFDSet
        def removeReader(self, _: object) -> None: ...  # noqa: N802
        def addWriter(self, _: object) -> None: ...  # noqa: N802
        def removeWriter(self, _: object) -> None: ...  # noqa: N802
        def callLater(self, *_: object) -> None: ...

    def __init__(self, near: socket.socket, protocol: TcpPeer) -> None:
        near.setblocking(False)
        super().__init__(near, protocol, self._NoReactor())  # type: ignore[arg-type]
        self.connected = True

    def getPeer(self) -> Any:  # noqa: N802 - ITransport
        return IPv4Address("TCP", "127.0.0.1", 1)

    getHost = getPeer  # noqa: N815

    def setTcpNoDelay(self, enabled: Any) -> None:  # noqa: N802 - a pair has none
        """Nothing to delay."""


class Real:
    """A peer on a real socket: `drain` reads what the other end gets."""

    def __init__(self, choose: Choose | None = None) -> None:
        near, self.far = socket.socketpair()
        near.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 8_192)
        self.far.setblocking(False)
        self.peer = TcpPeer(
            Clock(TaskClock()), lambda _, commands, __: len(commands), choose=choose
        )
        self.transport: Any = Socket(near, self.peer)
        self.ended: Any = None
        self.peer.makeConnection(self.transport)  # type: ignore[no-untyped-call]

    def drain(self) -> bytes:
        """All that arrives, while the transport sends what it still has."""
        got = []
        while True:
            try:
                got.append(self.far.recv(65_536))
            except BlockingIOError:
                unsent = self.transport.dataBuffer or self.transport._tempDataBuffer
                if not unsent or self.transport.disconnected:
                    return b"".join(got)
                self.ended = self.transport.doWrite()


@pytest.fixture
def real() -> Iterator[Real]:
    made = Real()
    yield made
    made.far.close()
    made.transport.socket.close()


def test_an_answer_goes_to_the_socket_at_once(real: Real) -> None:
    real.peer.write([b"head", memoryview(b"body")])
    assert not real.transport._tempDataBuffer
    assert real.far.recv(100) == b"headbody"


@pytest.mark.parametrize("pieces", [1, 2, 3, 64, 65, 200])
def test_what_the_socket_does_not_take_follows_in_order(real: Real, pieces: int) -> None:
    buffers = [bytes([index % 251]) * (400_000 // pieces + index) for index in range(pieces)]
    real.peer.write(list(buffers))
    assert real.transport._tempDataBuffer
    real.peer.write([b"the", b"end"])  # nothing may overtake
    assert real.drain() == b"".join(buffers) + b"theend"


def test_nothing_overtakes_what_waits_though_the_socket_has_room(real: Real) -> None:
    real.peer.write([b"a" * 400_000])
    got = real.far.recv(1_000_000)  # so that there is room before the transport writes again
    assert 0 < len(got) < 400_000
    real.peer.write([b"end"])
    assert got + real.drain() == b"a" * 400_000 + b"end"


def test_an_empty_write_is_none(real: Real) -> None:
    real.peer.write([])
    real.peer.write([b""])
    real.peer.write([b"x"])
    assert real.drain() == b"x"


def test_a_peer_that_does_not_read_is_paused_then_given_up(real: Real) -> None:
    piece = bytes(1 << 20)
    assert real.peer.reads
    real.peer.write([piece])
    assert real.peer.state is PAUSED  # so nothing more of it is served
    assert not real.peer.reads
    for _ in range(MAX_BUFFERED_BYTES // len(piece) - 2):
        real.peer.write([piece])
    assert not real.transport._aborting
    for _ in range(3):  # only answers that were held back can still come
        real.peer.write([piece])
    assert real.transport._aborting


def test_one_that_reads_again_is_served_again(real: Real) -> None:
    real.peer.write([bytes(1 << 20)])
    assert len(real.drain()) == 1 << 20
    assert real.peer.state is OPEN


def test_a_long_answer_is_joined_piece_by_piece(
    real: Real, monkeypatch: pytest.MonkeyPatch
) -> None:
    handed: list[int] = []
    write = real.transport.writeSequence

    def seen(parts: list[bytes]) -> None:
        handed.append(sum(map(len, parts)))
        write(parts)
        held = len(real.transport.dataBuffer) + real.transport._tempDataLen
        assert held <= 3 * PIECE_BYTES

    monkeypatch.setattr(real.transport, "writeSequence", seen)
    small = [bytes([index % 251]) * 7_000 for index in range(500)]
    large = bytes(range(250)) * 20_000
    real.peer.write([*small, large])
    real.peer.write([b"end"])
    assert len(handed) <= 2
    assert real.drain() == b"".join([*small, large, b"end"])
    assert max(handed) <= PIECE_BYTES
    assert real.peer.state is OPEN
    assert real.peer._outlet.unsent_bytes() == 0


def test_what_is_kept_counts_as_unsent(real: Real) -> None:
    real.peer.write([bytes(1 << 20), memoryview(bytearray(1 << 20))])
    unsent = real.peer._outlet.unsent_bytes()
    assert unsent == (2 << 20) - len(real.far.recv(1 << 20))


def test_one_that_is_closed_ends_once_it_has_read_all(real: Real) -> None:
    real.peer.write([bytes(1 << 20)])
    assert real.peer.state is PAUSED
    real.peer.close()
    real.peer.close()
    assert real.peer.state is CLOSING
    assert len(real.drain()) == 1 << 20
    assert real.ended is CONNECTION_DONE


def test_one_that_is_closed_takes_all_answers_that_still_come(scene: Scene) -> None:
    """Many small ones come with one read, which are more than are decoded at a time."""
    many = 2 * PORTION_COMMANDS + 1
    outcomes: list[Any] = []
    for _ in range(many):
        asked = scene.peer.invoke(offset.GET_MAX_OFFSET, WHERE, timeout_ms=1_000)
        asked.then(outcomes.append)
    heard = scene.end.heard()
    scene.peer.close()
    assert scene.peer.state is CLOSING
    scene.end.tell(*(answer(each) for each in heard))
    assert [each.header.offset for each in outcomes] == [5] * many


def test_one_that_is_closed_holds_no_more_than_others(real: Real) -> None:
    real.peer.write([bytes(1 << 20)])
    real.peer.close()
    real.peer.resumeProducing()
    assert real.peer.state is CLOSING
    for _ in range(MAX_BUFFERED_BYTES // (1 << 20) + 1):
        real.peer.write([bytes(1 << 20)])
    assert real.transport._aborting


def test_what_was_written_is_lost_when_it_must_end_now(real: Real) -> None:
    real.peer.write([bytes(1 << 20)])
    real.peer.abort()
    assert real.peer.state is ABORTED
    assert not real.peer.connected
    assert real.transport._aborting


@pytest.mark.parametrize(
    ("hello", "said"),
    [
        (b"GET / HTTP/1.1\r\nHost: broker\r\n\r\n", "it speaks HTTP to the remoting port"),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "it speaks HTTP/2 to the remoting port"),
    ],
)
def test_who_speaks_something_else_is_told_so(scene: Scene, hello: bytes, said: str) -> None:
    with capturedLogs() as events:
        scene.peer.dataReceived(hello)
        scene.peer.dataReceived(hello)
    assert scene.end.wire.disconnecting
    (line,) = map(formatEvent, events)
    assert line.startswith(f"closing 127.0.0.1:50000: {said}; ")
