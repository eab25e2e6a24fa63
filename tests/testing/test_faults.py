# SPDX-License-Identifier: Apache-2.0
"""Faults, at a broker that is a list of guards and a place for outlets."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from twisted.internet.task import Clock as ReactorClock
from twisted.internet.testing import StringTransport

from tests.remoting.transport.secured import SecuredEnd, client_of
from tests.remoting.transport.wires import FarEnd
from txrocketmq.remoting.codes import RequestCode, ResponseCode
from txrocketmq.remoting.command import RemotingCommand
from txrocketmq.remoting.dispatch import Dispatcher, Registry
from txrocketmq.remoting.errors import ResponseError
from txrocketmq.remoting.host.clock import Clock
from txrocketmq.remoting.settings.tls import TlsConfig
from txrocketmq.remoting.transport.outlet import plain_outlet
from txrocketmq.remoting.transport.peer import TcpPeer
from txrocketmq.remoting.transport.tls.encryption import Encryption
from txrocketmq.testing.faults import Faults, LateOutlet


class Scene:
    def __init__(self) -> None:
        self.aborted: list[int] = []
        peers = [
            SimpleNamespace(abort=lambda number=number: self.aborted.append(number))
            for number in range(3)
        ]
        server = SimpleNamespace(choose=Encryption(TlsConfig()).choose, peers=peers)
        broker: Any = SimpleNamespace(guards=[], server=server)
        self.broker = broker
        self.reactor = ReactorClock()
        self.faults = Faults(self.broker, Clock(self.reactor))

    def answer(self, code: int, **fields: str) -> tuple[int, str] | None:
        """How a request is refused; None: it is served."""
        (guard,) = self.broker.guards
        try:
            guard(None, RemotingCommand(code, fields or None))
        except ResponseError as error:
            return error.code, error.remark or ""
        return None

    def outlet(self, transport: StringTransport) -> Any:
        return self.broker.server.choose(plain_outlet(transport), b"")


@pytest.fixture
def scene() -> Scene:
    return Scene()


SEND, PULL = RequestCode.SEND_MESSAGE_V2, RequestCode.PULL_MESSAGE


def test_without_faults_all_is_served(scene: Scene) -> None:
    assert scene.answer(SEND, b="T") is None
    transport = StringTransport()
    scene.outlet(transport).write([b"a", memoryview(b"b")])
    assert transport.value() == b"ab"


def test_sends_are_refused_unless_it_is_said_otherwise(scene: Scene) -> None:
    number = scene.faults.refuse("SYSTEM_BUSY")
    refused = (ResponseCode.SYSTEM_BUSY, "refused by the test: SYSTEM_BUSY")
    for code in (RequestCode.SEND_MESSAGE, SEND, RequestCode.SEND_BATCH_MESSAGE):
        assert scene.answer(code) == refused
    assert scene.answer(PULL) is None
    assert scene.faults.count(number) == 3
    scene.faults.end(number)
    assert scene.answer(SEND) is None
    scene.faults.end(number)


@pytest.mark.parametrize(
    ("of", "codes"),
    [
        ("pull", {PULL, RequestCode.LITE_PULL_MESSAGE, RequestCode.POP_MESSAGE}),
        ("HEART_BEAT", {RequestCode.HEART_BEAT}),
        ("all", set(RequestCode)),
    ],
)
def test_what_is_refused_is_said_by_kind_or_name(
    scene: Scene, of: str, codes: set[RequestCode]
) -> None:
    scene.faults.refuse(ResponseCode.FLOW_CONTROL, of, remark="not now")
    assert {code for code in RequestCode if scene.answer(code) is not None} == codes
    assert scene.answer(next(iter(codes))) == (ResponseCode.FLOW_CONTROL, "not now")


def test_a_topic_limits_it_in_either_form_of_header(scene: Scene) -> None:
    scene.faults.refuse("NO_PERMISSION", "all", "T")
    assert scene.answer(SEND, b="T") is not None
    assert scene.answer(PULL, topic="T") is not None
    assert scene.answer(SEND, b="U") is None
    assert scene.answer(PULL, topic="U") is None
    assert scene.answer(RequestCode.HEART_BEAT) is None


def test_so_many_are_refused_and_then_the_next_fault_has_its_turn(scene: Scene) -> None:
    first = scene.faults.refuse("SYSTEM_BUSY", times=2)
    second = scene.faults.refuse("NO_PERMISSION", times=1)
    codes = [scene.answer(SEND) for _ in range(4)]
    assert [answer and answer[0] for answer in codes] == [2, 2, 16, None]
    assert [scene.faults.count(number) for number in (first, second, 99)] == [2, 1, 0]


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("SYSTEM_BUZY",), r"did you mean SYSTEM_BUSY\?"),
        ((4711,), "4711 is not a response code"),
        (("SYSTEM_BUSY", "sends"), "give all, send, pull, or the name of a request code"),
        (("SYSTEM_BUSY", "HEARTBEAT"), r"did you mean HEART_BEAT\?"),
        (("SYSTEM_BUSY", "send", None, 0), "1 or more, not 0"),
    ],
)
def test_what_cannot_be_refused_is_told(scene: Scene, arguments: Any, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        scene.faults.refuse(*arguments)
    assert scene.answer(SEND) is None


def test_answers_leave_late_in_their_order_and_soon_again_after_the_end(scene: Scene) -> None:
    transport = StringTransport()
    outlet = scene.outlet(transport)
    first = scene.faults.delay(100)
    kept = bytearray(b"a")
    outlet.write([memoryview(kept)])
    kept[0:1] = b"z"  # slices do not last
    scene.reactor.advance(0.05)
    second = scene.faults.delay(20)  # the longest counts
    outlet.write([b"b"])
    scene.faults.end(first)
    outlet.write([b"c"])
    scene.faults.end(second)
    outlet.write([b"d"])
    assert (transport.value(), outlet.unsent_bytes()) == (b"", 4)
    scene.reactor.advance(0.05)
    assert transport.value() == b"a"
    scene.reactor.advance(0.05)
    assert (transport.value(), outlet.unsent_bytes()) == (b"abcd", 0)
    outlet.write([b"e"])
    assert transport.value() == b"abcde"


def test_a_delay_has_a_limit(scene: Scene) -> None:
    for ms in (-1, 60_001):
        with pytest.raises(ValueError, match="0 to 60000 ms"):
            scene.faults.delay(ms)


def test_all_else_is_the_outlets_behind_it() -> None:
    called: list[Any] = []
    inner: Any = SimpleNamespace(
        pause=lambda: called.append("pause"),
        resume=lambda: True,
        end=lambda: called.append("end"),
        take=lambda data: data + b"!",
    )
    outlet = LateOutlet(inner, Clock(ReactorClock()), lambda: 0)
    outlet.pause()
    assert (called, outlet.resume(), outlet.take(b"x")) == (["pause"], True, b"x!")
    outlet.end()
    assert called == ["pause", "end"]


def test_encrypted_connections_have_them_too(scene: Scene) -> None:
    dispatcher = Dispatcher(Registry(), lambda: 0, lambda: 0)
    dispatcher.guards = scene.broker.guards
    peer = TcpPeer(Clock(scene.reactor), dispatcher.serve, choose=scene.broker.server.choose)
    client = SecuredEnd(FarEnd(peer), client_of(), server_side=False)
    scene.faults.refuse("SYSTEM_BUSY", "all", times=1)
    delay = scene.faults.delay(100)
    assert client.tell(RemotingCommand(SEND, opaque=1)) == []
    scene.faults.end(delay)
    assert client.tell(RemotingCommand(9_999, opaque=2)) == [], "it waits for the one before"
    scene.reactor.advance(0.1)
    answers = [(each.opaque, each.code) for each in client.hear()]
    assert answers == [(1, ResponseCode.SYSTEM_BUSY), (2, 3)]
    peer.close()
    client.hear()
    assert client.far.is_told_the_end


def test_connections_are_dropped(scene: Scene) -> None:
    assert scene.faults.drop_connections() == 3
    assert scene.aborted == [0, 1, 2]
