# SPDX-License-Identifier: Apache-2.0
"""Ports, the peers that come to them, and the idle ones that are closed."""

from __future__ import annotations

from typing import Any

import pytest
from twisted.internet.error import CannotListenError
from twisted.internet.testing import MemoryReactorClock
from twisted.logger import capturedLogs

from tests.fakes import FakePeer
from tests.remoting.transport.wires import FarEnd
from txrocketmq.remoting.call import Reply, Request
from txrocketmq.remoting.codes import ResponseCode, SerializeType
from txrocketmq.remoting.command import RemotingCommand
from txrocketmq.remoting.dispatch import Dispatcher, Registry, serves
from txrocketmq.remoting.protocol import offset
from txrocketmq.remoting.protocol.offset import (
    GetMaxOffsetRequestHeader,
    GetMaxOffsetResponseHeader,
)
from txrocketmq.remoting.transport.clock import Clock
from txrocketmq.remoting.transport.peer import TcpPeer
from txrocketmq.remoting.transport.server import (
    MAX_IDLE_MS,
    RemotingServer,
    configured_serialize_type,
    log_failure,
)


class Offsets:
    """Answers with the number of the queue."""

    @serves(offset.GET_MAX_OFFSET)
    def max_offset(
        self, request: Request[GetMaxOffsetRequestHeader]
    ) -> Reply[GetMaxOffsetResponseHeader]:
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
        self.dispatcher = Dispatcher(Registry(Offsets()), self.clock.now_ms, log_failure)
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


def test_nobody_need_be_told() -> None:
    clock = Clock(MemoryReactorClock())
    server = RemotingServer(clock)
    server.listen(1, Dispatcher(Registry(), clock.now_ms))
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
    end = scene.connect()
    for _ in range(4):
        scene.pass_s(60)
        end.protocol.dataReceived(b"\0")
    assert not end.wire.disconnecting


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


def test_a_failure_is_logged_with_what_was_asked() -> None:
    with capturedLogs() as events:
        log_failure(ask(), FakePeer(), ValueError("oh"))
    (event,) = events
    text = event["log_format"].format_map(event)
    assert "request GET_MAX_OFFSET(30)" in text
    assert "of 127.0.0.1:50000 failed: ValueError: oh" in text


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
