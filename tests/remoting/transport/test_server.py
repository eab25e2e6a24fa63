# SPDX-License-Identifier: Apache-2.0
"""Ports, the peers that come to them, and the idle ones that are closed."""

from __future__ import annotations

from socket import socketpair
from typing import Any

import pytest
from twisted.internet.address import IPv4Address
from twisted.internet.error import CannotListenError
from twisted.internet.main import CONNECTION_DONE, CONNECTION_LOST
from twisted.internet.testing import MemoryReactorClock
from twisted.logger import capturedLogs, formatEvent

from tests.remoting.transport.wires import FarEnd
from txrocketmq.remoting.call import Reply, Request
from txrocketmq.remoting.codes import MQVersion, ResponseCode, SerializeType
from txrocketmq.remoting.command import ONEWAY_FLAG, RemotingCommand
from txrocketmq.remoting.dispatch import Dispatcher, Registry, serves
from txrocketmq.remoting.frame.frame import encode_frame
from txrocketmq.remoting.host import limits
from txrocketmq.remoting.host.clock import Clock
from txrocketmq.remoting.host.memory import MemoryReserve
from txrocketmq.remoting.protocol import offset
from txrocketmq.remoting.protocol.offset import (
    GetMaxOffsetRequestHeader,
    GetMaxOffsetResponseHeader,
)
from txrocketmq.remoting.transport import server
from txrocketmq.remoting.transport.failures import Failures
from txrocketmq.remoting.transport.peer import TcpPeer
from txrocketmq.remoting.transport.server import (
    MAX_IDLE_MS,
    RemotingServer,
    ServerSocket,
    configured_serialize_type,
    go_away,
    memory_is_short,
)
from txrocketmq.remoting.transport.turns import ENDLESS


class Offsets:
    """Answers with the queue's number."""

    def heard(self, header: GetMaxOffsetRequestHeader) -> None:
        """Something was asked."""

    @serves(offset.GET_MAX_OFFSET)
    def max_offset(
        self, request: Request[GetMaxOffsetRequestHeader]
    ) -> Reply[GetMaxOffsetResponseHeader]:
        self.heard(request.header)
        return Reply(GetMaxOffsetResponseHeader(offset=request.header.queue_id))


class Scene:
    """A server on one port; `gone` are the peers whose connection has ended, and when."""

    def __init__(self, **settings: Any) -> None:
        self.reactor: Any = MemoryReactorClock()
        self.clock = Clock(self.reactor)
        self.gone: list[tuple[TcpPeer, int]] = []
        self.server = RemotingServer(
            self.clock, lambda peer, now_ms: self.gone.append((peer, now_ms)), **settings
        )
        self.dispatcher = Dispatcher(
            Registry(Offsets()), self.clock.now_ms, self.clock.steady_ms, Failures(self.clock)
        )
        self.server.listen(10_911, self.dispatcher, "127.0.0.1")

    def connect(self) -> FarEnd:
        """Somebody comes."""
        return FarEnd(self.reactor.tcpServers[0][1].buildProtocol(None))

    def pass_s(self, seconds: int) -> None:
        for _ in range(seconds):
            self.reactor.advance(1)


@pytest.fixture
def scene() -> Scene:
    return Scene()


def ask(queue_id: int = 3) -> RemotingCommand:
    return RemotingCommand(30, {"topic": "T", "queueId": str(queue_id)}, opaque=queue_id)


def test_it_listens_where_it_is_told(scene: Scene) -> None:
    port, _, backlog, interface = scene.reactor.tcpServers[0]
    assert (port, interface) == (10_911, "127.0.0.1")
    assert backlog >= 1_024


def test_peers_are_served(scene: Scene) -> None:
    one, two = scene.connect(), scene.connect()
    (answer,) = one.tell(ask(3))
    assert answer.ext_fields == {"offset": "3"}
    (answer,) = two.tell(ask(4))
    assert answer.ext_fields == {"offset": "4"}
    assert scene.server.peers == {one.protocol, two.protocol}


def test_one_that_goes_is_told(scene: Scene) -> None:
    end = scene.connect()
    scene.pass_s(2)
    end.leave()
    assert scene.gone == [(end.protocol, 2_000)]
    assert scene.server.peers == set()


def test_one_too_many_is_closed_at_once_and_that_is_said_twice(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = False
    monkeypatch.setattr(limits, "_next_descriptor", lambda limit: limit - 1 if full else 9)

    def refused() -> bool:
        return scene.reactor.tcpServers[0][1].buildProtocol(None) is None

    first = scene.connect()
    full = True
    with capturedLogs() as events:
        assert [refused() for _ in range(30)] == [True] * 30
        (answer,) = first.tell(ask(3))
        assert answer.ext_fields == {"offset": "3"}, "those who are there are served"
        scene.pass_s(30)
        full = False
        assert not refused()
        assert not refused()
    texts = [event["log_format"].format_map(event) for event in events]
    assert len(texts) == 2
    assert texts[0].startswith("connections are refused: 1 are open, and of the ")
    assert "raise the limit (ulimit -n)" in texts[0]
    assert texts[1] == "connections are accepted again; 30 were refused"


class Grace:
    """Settings of an end in order."""

    enable_shutdown_gracefully = True
    shutdown_wait_time_seconds = 5


@pytest.mark.parametrize(
    ("version", "code"),
    [
        (MQVersion.V5_4_0, ResponseCode.GO_AWAY),
        (MQVersion.V5_3_1 + 1, ResponseCode.GO_AWAY),
        (MQVersion.V5_3_1, ResponseCode.SUCCESS),
    ],
)
def test_clients_that_know_how_are_sent_away(scene: Scene, version: int, code: int) -> None:
    end, stopped = scene.connect(), list[bool]()
    scene.server.see_off(Grace(), lambda: stopped.append(True))
    asked = ask()
    asked.version = version
    (answer,) = end.tell(asked)
    assert (answer.code, answer.opaque) == (code, asked.opaque)
    assert answer.remark == ("please go away" if code else None)
    scene.pass_s(4)
    assert stopped == []
    scene.pass_s(1)
    assert stopped == [True]


def test_what_nobody_waits_for_is_served_to_the_end(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    served: list[int] = []
    monkeypatch.setattr(
        Offsets, "heard", lambda _, header: served.append(header.queue_id), raising=True
    )
    scene.server.see_off(Grace(), lambda: None)
    told = ask(7)
    told.flag = ONEWAY_FLAG
    assert scene.connect().tell(told) == []
    assert served == [7]


def test_the_list_of_guards_stays_the_one_that_several_ports_share(scene: Scene) -> None:
    """Whoever has the list may add to it afterwards, too."""
    other = Dispatcher(Registry(), scene.clock.now_ms, scene.clock.steady_ms)
    guards = other.guards = scene.dispatcher.guards
    scene.server.listen(2, other)
    scene.server.see_off(Grace(), lambda: None)
    assert guards == [go_away]
    assert scene.dispatcher.guards is other.guards is guards


def test_nobody_is_sent_away_unless_it_is_wanted(scene: Scene) -> None:
    class Plain(Grace):
        enable_shutdown_gracefully = False

    stopped: list[bool] = []
    scene.server.see_off(Plain(), lambda: stopped.append(True))
    assert stopped == [True]
    (answer,) = scene.connect().tell(ask())
    assert answer.code == ResponseCode.SUCCESS


def test_nobody_need_be_told() -> None:
    clock = Clock(MemoryReactorClock())
    server = RemotingServer(clock)
    server.listen(1, Dispatcher(Registry(), clock.now_ms, clock.steady_ms))
    end = FarEnd(clock.reactor.tcpServers[0][1].buildProtocol(None))
    end.leave()
    assert server.peers == set()


def test_an_idle_peer_is_closed(scene: Scene) -> None:
    idle, active = scene.connect(), scene.connect()
    scene.pass_s(60)
    active.tell(ask())
    scene.pass_s(60)
    assert not idle.wire.disconnecting
    scene.pass_s(1)
    assert MAX_IDLE_MS == 120_000
    assert idle.wire.disconnecting
    assert not active.wire.disconnecting


def test_an_idle_peer_that_does_not_read_its_last_answers_is_not_waited_for(scene: Scene) -> None:
    end = scene.connect()
    scene.pass_s(121)
    assert end.wire.disconnecting
    assert not end.wire.disconnected
    scene.pass_s(1)
    assert end.wire.disconnected


def test_half_a_frame_a_minute_is_not_idle(scene: Scene) -> None:
    end, frame = scene.connect(), b"".join(map(bytes, encode_frame(ask())))
    for at in range(8):
        scene.pass_s(60)
        end.protocol.dataReceived(frame[20:] if at % 2 else frame[:20])
    assert not end.wire.disconnecting


def test_a_frame_that_never_ends_is_not_waited_for(scene: Scene) -> None:
    """Who sends it byte by byte would hold its place, and what has arrived of it, for ever."""
    end, frame = scene.connect(), b"".join(map(bytes, encode_frame(ask())))
    with capturedLogs() as events:
        for at in range(121):
            scene.pass_s(1)
            end.protocol.dataReceived(frame[at : at + 1] if at < 30 else b"")
            assert not end.wire.disconnecting
        scene.pass_s(20)
    assert end.wire.disconnecting
    said = [formatEvent(each) for each in events]
    assert said[-1].endswith("it has not finished one frame within 120 s")


def test_how_long_is_a_setting() -> None:
    scene = Scene(max_idle_ms=5_000)
    end = scene.connect()
    scene.pass_s(5)
    assert not end.wire.disconnecting
    scene.pass_s(1)
    assert end.wire.disconnecting


@pytest.mark.parametrize("max_idle_ms", [0, -1])
def test_without_a_limit_no_peer_is_idle(max_idle_ms: int) -> None:
    scene = Scene(max_idle_ms=max_idle_ms)
    end = scene.connect()
    scene.pass_s(1_000)
    assert not end.wire.disconnecting
    end.protocol.close()
    scene.pass_s(1)
    assert end.wire.disconnected, "but who does not read its last answers is not waited for"


def test_questions_to_peers_do_not_wait_for_ever(scene: Scene) -> None:
    end = scene.connect()
    outcomes: list[Any] = []
    where = GetMaxOffsetRequestHeader(topic="T", queue_id=0)
    end.protocol.invoke(offset.GET_MAX_OFFSET, where, timeout_ms=3_000).then(outcomes.append)
    scene.pass_s(2)
    assert outcomes == []
    scene.pass_s(1)
    assert len(outcomes) == 1


def test_a_stopped_server_has_no_peers_and_no_ports(scene: Scene) -> None:
    end = scene.connect()
    done: list[Any] = []
    scene.server.stop().addCallback(done.append)
    assert end.wire.disconnecting
    assert len(done) == 1
    assert not scene.reactor.getDelayedCalls()


def test_a_port_that_is_taken(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    def taken(port: int, *_: object) -> None:
        raise CannotListenError("", port, OSError("taken"))

    monkeypatch.setattr(scene.reactor, "listenTCP", taken)
    with pytest.raises(CannotListenError):
        scene.server.listen(10_911, scene.dispatcher)


@pytest.mark.parametrize("port", [-1, 65_536])
def test_what_is_no_port(scene: Scene, port: int) -> None:
    with pytest.raises(CannotListenError, match="a port is 0 to 65535"):
        scene.server.listen(port, scene.dispatcher)
    assert len(scene.reactor.tcpServers) == 1


@pytest.mark.parametrize(
    ("value", "meant"),
    [
        (None, SerializeType.JSON),
        ("", SerializeType.JSON),
        ("JSON", SerializeType.JSON),
        ("rocketmq ", SerializeType.ROCKETMQ),
        ("other", SerializeType.JSON),
    ],
)
def test_the_form_of_answers(
    monkeypatch: pytest.MonkeyPatch, value: str | None, meant: SerializeType
) -> None:
    monkeypatch.delenv("ROCKETMQ_SERIALIZE_TYPE", raising=False)
    if value is not None:
        monkeypatch.setenv("ROCKETMQ_SERIALIZE_TYPE", value)
    assert configured_serialize_type() is meant


def test_what_nobody_serves_is_answered(scene: Scene) -> None:
    (answer,) = scene.connect().tell(RemotingCommand(9_999))
    assert answer.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED


class Sent:
    """A socket that gives so much at most; without memory for more MemoryError."""

    def __init__(self, data: bytes, memory_bytes: int) -> None:
        self.data = data
        self.memory_bytes = memory_bytes

    def recv(self, size: int) -> bytes:
        if size > self.memory_bytes:
            raise MemoryError
        if not self.data:
            raise BlockingIOError
        taken, self.data = self.data[:size], self.data[size:]
        return taken


class Said(list[bytes]):
    memory_bytes = 1 << 20
    turns = ENDLESS

    def dataReceived(self, data: bytes) -> None:
        if len(data) > self.memory_bytes:
            raise MemoryError
        self.append(data)


@pytest.fixture
def own_reserve(monkeypatch: pytest.MonkeyPatch) -> MemoryReserve:
    """A reserve that is held, and no other test's."""
    own = MemoryReserve()
    own.take()
    monkeypatch.setattr(server, "reserve", own)
    return own


def socket_of(sent: Sent, said: Said) -> Any:
    transport: Any = ServerSocket.__new__(ServerSocket)
    transport.socket, transport.protocol, transport.bufferSize = sent, said, 256 * 1024
    return transport


def test_without_memory_for_a_large_read_small_ones_go_on(own_reserve: MemoryReserve) -> None:
    said = Said()
    transport = socket_of(Sent(bytes(10_000), 5_000), said)
    with capturedLogs() as events:
        assert [transport.doRead() for _ in range(4)] == [None] * 4
    assert [len(data) for data in said] == [4_096, 4_096, 1_808]
    assert own_reserve.is_given
    assert len(events) == 1, "said once"


def test_a_connection_ends_when_its_data_has_no_memory(own_reserve: MemoryReserve) -> None:
    said = Said()
    assert socket_of(Sent(b"x", 1_000), said).doRead() is CONNECTION_LOST
    assert own_reserve.is_given
    said.memory_bytes = 0
    assert socket_of(Sent(b"x", 1 << 20), said).doRead() is CONNECTION_LOST


def test_reads_end_as_twisteds_do(own_reserve: MemoryReserve) -> None:
    here, there = socketpair()
    here.setblocking(False)
    said = Said()
    transport = socket_of(here, said)  # type: ignore[arg-type]
    assert transport.doRead() is None
    there.send(b"abc")
    assert transport.doRead() is None
    assert said == [b"abc"]
    there.close()
    assert transport.doRead() is CONNECTION_DONE
    here.close()
    assert transport.doRead() is CONNECTION_LOST
    assert not own_reserve.is_given


def test_that_memory_is_short_is_told_once_until_there_is_some(
    scene: Scene, own_reserve: MemoryReserve
) -> None:
    with capturedLogs() as events:
        for _ in range(3):
            memory_is_short()
        scene.pass_s(2)
        assert not own_reserve.is_given
        memory_is_short()
    assert [event["log_format"].partition(" memory ")[0] for event in events] == [
        "there is no",
        "there is",
        "there is no",
    ]


def test_strangers_are_told_of_a_few_times_a_minute(scene: Scene) -> None:
    with capturedLogs() as events:
        for _ in range(20):
            scene.connect().protocol.dataReceived(b"GET / HTTP/1.1\r\n\r\n")
        scene.pass_s(60)
        scene.connect().protocol.dataReceived(b"GET / HTTP/1.1\r\n\r\n")
    lines = [text for text in map(formatEvent, events) if "it speaks HTTP" in text]
    assert len(lines) == 6
    assert lines[-1].endswith(" (and 15 more that were not logged)")


@pytest.mark.parametrize(("interface", "count"), [("", 1), ("0.0.0.0", 1), ("127.0.0.1", 0)])
def test_a_port_that_others_reach_is_announced(interface: str, count: int) -> None:
    clock = Clock(MemoryReactorClock())
    remoting = RemotingServer(clock)
    with capturedLogs() as events:
        remoting.listen(10_911, Dispatcher(Registry(), lambda: 0, lambda: 0), interface)
    said = [formatEvent(each) for each in events]
    assert len(said) == count
    assert all(each.startswith("everybody who reaches port 10911 of 0.0.0.0 ") for each in said)
    remoting.stop()


def test_an_address_has_so_many_connections() -> None:
    most = [2]
    scene = Scene(max_per_address=lambda: most[0])
    factory = scene.reactor.tcpServers[0][1]

    def come(host: str) -> Any:
        return factory.buildProtocol(IPv4Address("TCP", host, 4711))

    first, second = come("10.0.0.1"), come("10.0.0.1")
    with capturedLogs() as lines:
        assert come("10.0.0.1") is None
    assert [formatEvent(line) for line in lines] == [
        "connections of 10.0.0.1 are refused: it has 2 (maxConnectionsPerAddress)"
    ]
    assert come("10.0.0.2") is not None
    scene.server._peer_closed(first)
    assert come("10.0.0.1") is not None
    assert come("10.0.0.1") is None
    assert second in scene.server.peers
    most[0] = 0
    assert come("10.0.0.1") is not None


def test_addresses_that_have_gone_are_forgotten() -> None:
    scene = Scene(max_per_address=lambda: 1)
    for at in range(3):
        address = IPv4Address("TCP", f"10.0.0.{at}", 4711)
        scene.server._peer_closed(scene.reactor.tcpServers[0][1].buildProtocol(address))
    assert not scene.server._connections_of
    assert not scene.server._hosts
