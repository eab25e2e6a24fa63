# SPDX-License-Identifier: Apache-2.0
"""Connections by address: made when needed, shared, found broken."""

from __future__ import annotations

import errno
from typing import Any

import pytest
from twisted.internet.error import ConnectionRefusedError as Refused
from twisted.internet.testing import MemoryReactorClock
from twisted.python.failure import Failure

from tests.remoting.transport.wires import FarEnd
from txrocketmq.remoting.call import PendingReply, Reply, Request
from txrocketmq.remoting.codes import RequestCode, ResponseCode
from txrocketmq.remoting.command import ONEWAY_FLAG, RESPONSE_FLAG, RemotingCommand
from txrocketmq.remoting.dispatch import Dispatcher, Registry, serves
from txrocketmq.remoting.errors import ConnectError, RequestTimeout, SendError
from txrocketmq.remoting.header import NoHeader
from txrocketmq.remoting.protocol import heartbeat, offset
from txrocketmq.remoting.protocol.heartbeat import NotifyConsumerIdsChangedRequestHeader
from txrocketmq.remoting.protocol.offset import GetMaxOffsetRequestHeader
from txrocketmq.remoting.transport.client import (
    CONNECT_TIMEOUT_MS,
    GOING_MS,
    Connections,
    as_deferred,
    parse_address,
)
from txrocketmq.remoting.transport.clock import Clock
from txrocketmq.remoting.transport.peer import SILENT_MS

HERE = "127.0.0.1:10911"
WHERE = GetMaxOffsetRequestHeader(topic="T", queue_id=0)


class Scene:
    """Connections whose other ends are in the test's hands."""

    def __init__(self, dispatcher: Dispatcher | None = None) -> None:
        self.reactor: Any = MemoryReactorClock()
        self.connections = Connections(Clock(self.reactor), dispatcher)
        self.outcomes: list[Any] = []

    def ask(self, address: str = HERE, timeout_ms: int = 10_000) -> None:
        self.connections.invoke(
            address, offset.GET_MAX_OFFSET, WHERE, b"body", timeout_ms=timeout_ms
        ).then(self.outcomes.append)

    def pass_ms(self, ms: int) -> None:
        for _ in range(ms // 100):
            self.reactor.advance(0.1)

    @property
    def attempts(self) -> int:
        return len(self.reactor.tcpClients)

    def accept(self, attempt: int = -1) -> FarEnd:
        """The other end takes the connection."""
        factory = self.reactor.tcpClients[attempt][2]
        protocol = factory.buildProtocol(None)
        return FarEnd(protocol, port=10_911, turn=lambda: self.reactor.advance(0))

    def refuse(self, attempt: int = -1) -> None:
        """The other end does not."""
        factory = self.reactor.tcpClients[attempt][2]
        factory.clientConnectionFailed(None, Failure(Refused(osError=errno.ECONNREFUSED)))
        self.pass_ms(1_000)


@pytest.fixture
def scene() -> Scene:
    return Scene()


def answer(asked: RemotingCommand, value: int = 5) -> RemotingCommand:
    return RemotingCommand(0, {"offset": str(value)}, flag=RESPONSE_FLAG, opaque=asked.opaque)


# ------------------------------------------------------------------------------- addresses


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("127.0.0.1:9876", "127.0.0.1", 9_876),
        (" host.name:1 ", "host.name", 1),
        ("[::1]:65535", "::1", 65_535),
    ],
)
def test_addresses(text: str, host: str, port: int) -> None:
    assert parse_address(text) == (host, port)


@pytest.mark.parametrize(
    "text", ["", "host", "host:", ":1", "h:x", "h:\N{SUPERSCRIPT TWO}", "h:0", "h:65536"]
)
def test_what_is_no_address(text: str) -> None:
    with pytest.raises(ValueError, match="is not an address: it should look like 127.0.0.1:9876"):
        parse_address(text)


# ----------------------------------------------------------------------------- connections


def test_a_connection_is_made_when_it_is_needed(scene: Scene) -> None:
    assert scene.attempts == 0
    scene.ask()
    assert scene.reactor.tcpClients[0][:2] == ("127.0.0.1", 10_911)
    end = scene.accept()
    (asked,) = end.heard()
    assert (asked.code, asked.body) == (RequestCode.GET_MAX_OFFSET, b"body")
    end.tell(answer(asked))
    assert [each.header.offset for each in scene.outcomes] == [5]


def test_all_share_one(scene: Scene) -> None:
    scene.ask()
    scene.ask()
    assert scene.attempts == 1
    end = scene.accept()
    scene.ask()
    assert scene.attempts == 1
    assert len({asked.opaque for asked in end.heard()}) == 3


def test_each_address_has_its_own(scene: Scene) -> None:
    scene.ask("127.0.0.1:1")
    scene.ask("127.0.0.1:2")
    assert scene.attempts == 2


def test_answers_find_their_questions(scene: Scene) -> None:
    scene.ask()
    scene.ask()
    end = scene.accept()
    one, two = end.heard()
    end.tell(answer(two, 2), answer(one, 1), answer(one, 9))
    assert [each.header.offset for each in scene.outcomes] == [2, 1]


def test_an_answer_that_does_not_come(scene: Scene) -> None:
    scene.ask(timeout_ms=1_000)
    end = scene.accept()
    (asked,) = end.heard()
    scene.pass_ms(900)
    assert scene.outcomes == []
    scene.pass_ms(400)
    assert [type(each) for each in scene.outcomes] == [RequestTimeout]
    end.tell(answer(asked))  # too late
    assert len(scene.outcomes) == 1


def test_a_notice_needs_no_answer(scene: Scene) -> None:
    header = NotifyConsumerIdsChangedRequestHeader(consumer_group="g")
    call = heartbeat.NOTIFY_CONSUMER_IDS_CHANGED
    scene.connections.invoke_oneway(HERE, call, header)
    end = scene.accept()
    scene.connections.invoke_oneway(HERE, call, header)
    assert [told.flag for told in end.heard()] == [ONEWAY_FLAG] * 2


# -------------------------------------------------------------------------------- failures


def test_nobody_is_there(scene: Scene) -> None:
    scene.ask()
    scene.connections.invoke_oneway(HERE, offset.GET_MAX_OFFSET, WHERE)
    scene.refuse()
    (error,) = scene.outcomes
    assert isinstance(error, ConnectError)
    assert str(error) == f"connect to {HERE} failed: Connection refused"
    scene.ask()  # and it is tried again
    assert scene.attempts == 2
    assert len(scene.accept().heard()) == 1


def test_an_attempt_has_its_time(scene: Scene) -> None:
    scene.ask()
    assert scene.reactor.tcpClients[0][3] == CONNECT_TIMEOUT_MS / 1_000 == 3


class Names:
    """Looks up names, without end."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def resolveHostName(self, _: object, name: str, *__: object, **___: object) -> None:  # noqa: N802 - Twisted's name
        self.asked.append(name)


def test_a_name_that_is_not_found_in_time_is_given_up(scene: Scene) -> None:
    scene.reactor.nameResolver = names = Names()
    scene.ask("somewhere:10911")
    scene.pass_ms(3_500)
    assert names.asked == ["somewhere"]
    assert scene.outcomes == []
    scene.pass_ms(1_000)
    (error,) = scene.outcomes
    assert isinstance(error, ConnectError)


@pytest.mark.parametrize("address", [HERE, "[::1]:10911"])
def test_an_address_is_not_looked_up(scene: Scene, address: str) -> None:
    scene.reactor.nameResolver = names = Names()
    scene.ask(address)
    assert names.asked == []
    assert scene.attempts == 1


def test_a_connection_that_took_too_long_for_the_question(scene: Scene) -> None:
    scene.ask(timeout_ms=1_000)
    scene.pass_ms(1_500)
    end = scene.accept()
    (error,) = scene.outcomes
    assert isinstance(error, RequestTimeout)
    assert end.heard() == []


def test_an_address_that_is_none(scene: Scene) -> None:
    scene.ask("nonsense")
    (error,) = scene.outcomes
    assert isinstance(error, ConnectError)
    assert '"nonsense" is not an address' in str(error)
    assert scene.attempts == 0


def test_a_connection_that_breaks(scene: Scene) -> None:
    scene.ask()
    end = scene.accept()
    end.leave()
    assert [type(each) for each in scene.outcomes] == [SendError]
    scene.ask()
    assert scene.attempts == 2


def test_a_connection_whose_peer_says_nothing_more_is_given_up(scene: Scene) -> None:
    def try_again(outcome: object) -> None:
        scene.outcomes.append(outcome)
        scene.ask()

    asked_first = scene.connections.invoke(HERE, offset.GET_MAX_OFFSET, WHERE, timeout_ms=SILENT_MS)
    asked_first.then(try_again)
    lost = scene.accept()
    scene.pass_ms(SILENT_MS + 200)
    assert [type(each) for each in scene.outcomes] == [RequestTimeout]
    assert lost.wire.disconnected
    assert scene.attempts == 2, "what is tried again has a connection of its own"
    end = scene.accept()
    lost.leave()  # the old one's end is not the new one's
    (asked,) = end.heard()
    end.tell(answer(asked, 2))
    scene.ask()
    assert scene.attempts == 2


def test_a_connection_on_which_others_are_answered_is_kept(scene: Scene) -> None:
    scene.ask(timeout_ms=SILENT_MS)
    scene.ask(timeout_ms=SILENT_MS)
    end = scene.accept()
    _, other = end.heard()
    scene.pass_ms(SILENT_MS // 2)
    end.tell(answer(other, 2))
    scene.pass_ms(SILENT_MS // 2 + 200)
    assert [type(each) for each in scene.outcomes] == [Reply, RequestTimeout]
    assert not end.wire.disconnected


def test_closed_connections_ask_nothing_more(scene: Scene) -> None:
    scene.ask()
    end = scene.accept()
    scene.connections.close()
    assert end.wire.disconnecting
    scene.ask("127.0.0.1:1")
    (error,) = scene.outcomes
    assert str(error) == "connect to 127.0.0.1:1 failed: this client is closed"
    end.leave()
    scene.reactor.advance(0)  # the turn ends in which something was written
    assert not scene.reactor.getDelayedCalls()


def test_what_is_being_made_is_given_up_too(scene: Scene) -> None:
    scene.ask()
    scene.connections.close()
    (error,) = scene.outcomes
    assert isinstance(error, ConnectError)
    assert not scene.reactor.getDelayedCalls()


# ---------------------------------------------------------------------------------- GO_AWAY


def go_away(asked: RemotingCommand) -> RemotingCommand:
    return RemotingCommand(
        ResponseCode.GO_AWAY, flag=RESPONSE_FLAG, opaque=asked.opaque, remark="please go away"
    )


def test_what_is_told_to_go_away_is_asked_again_on_a_new_connection(scene: Scene) -> None:
    scene.ask()
    scene.ask()
    old = scene.accept()
    one, two = old.heard()
    old.tell(go_away(one), go_away(two))
    assert scene.outcomes == []
    assert scene.attempts == 2, "both wait for the same new connection"
    scene.ask()
    new = scene.accept()
    again = new.heard()
    assert {(each.code, each.body) for each in again} == {(RequestCode.GET_MAX_OFFSET, b"body")}
    assert again[0].ext_fields == one.ext_fields
    new.tell(*(answer(each, number) for number, each in enumerate(again)))
    assert sorted(each.header.offset for each in scene.outcomes) == [0, 1, 2]
    assert not scene.connections._repeated


def test_a_late_go_away_leaves_the_new_connection_alone(scene: Scene) -> None:
    scene.ask()
    scene.ask()
    old = scene.accept()
    one, two = old.heard()
    old.tell(go_away(one))
    new = scene.accept()
    old.tell(go_away(two))
    assert scene.attempts == 2
    assert len(new.heard()) == 2


def test_what_the_old_connection_still_owes_is_waited_for(scene: Scene) -> None:
    scene.ask()
    scene.ask()
    scene.ask(timeout_ms=1_000)
    old = scene.accept()
    one, slow, _ = old.heard()
    old.tell(go_away(one))
    scene.accept()
    scene.pass_ms(1_200)
    assert [type(each) for each in scene.outcomes] == [RequestTimeout]
    assert not old.wire.disconnecting
    old.tell(answer(slow, 7))
    assert scene.outcomes[1].header.offset == 7
    scene.pass_ms(200)
    assert old.wire.disconnecting
    old.leave()
    assert not scene.connections._leaving
    scene.ask()
    assert scene.attempts == 2, "the end of the old one is not that of the new one"


def test_an_old_connection_that_says_nothing_more_is_given_up(scene: Scene) -> None:
    scene.ask()
    scene.ask(timeout_ms=SILENT_MS + 1_000)
    old = scene.accept()
    old.tell(go_away(old.heard()[0]))
    scene.accept()
    scene.pass_ms(SILENT_MS + 1_200)
    assert old.wire.disconnected


def test_a_second_go_away_is_an_error_and_the_server_is_left_alone(scene: Scene) -> None:
    scene.ask()
    old = scene.accept()
    old.tell(go_away(old.heard()[0]))
    new = scene.accept()
    (again,) = new.heard()
    scene.ask()
    (other,) = new.heard()
    new.tell(go_away(again), go_away(other))
    scene.ask()
    stops, later, left_alone = scene.outcomes
    assert isinstance(stops, SendError)
    assert str(stops) == f"{HERE} stops: it said GO_AWAY on a new connection too"
    for each in (later, left_alone):
        assert isinstance(each, ConnectError)
        assert str(each) == f"connect to {HERE} waits: it stops"
        assert each.again_in_ms == GOING_MS
    assert scene.attempts == 2
    scene.pass_ms(GOING_MS + 100)
    assert new.wire.disconnecting
    scene.ask()
    assert scene.attempts == 3


def test_the_new_connection_is_used_within_the_time_of_the_request(scene: Scene) -> None:
    scene.ask(timeout_ms=1_000)
    old = scene.accept()
    (asked,) = old.heard()
    scene.pass_ms(500)
    old.tell(go_away(asked))
    scene.pass_ms(600)
    new = scene.accept()
    assert [type(each) for each in scene.outcomes] == [RequestTimeout]
    assert new.heard() == []


def test_nobody_takes_the_new_connection(scene: Scene) -> None:
    scene.ask()
    old = scene.accept()
    old.tell(go_away(old.heard()[0]))
    scene.refuse()
    assert [type(each) for each in scene.outcomes] == [ConnectError]


def test_closed_connections_end_those_that_leave_too(scene: Scene) -> None:
    scene.ask()
    scene.ask()
    old = scene.accept()
    old.tell(go_away(old.heard()[0]))
    scene.connections.close()
    assert old.wire.disconnecting


# ------------------------------------------------------------------------------ the other way


class Checks:
    """Serves what a peer may ask of us."""

    @serves(heartbeat.CHECK_CLIENT_CONFIG)
    def check(self, request: Request[NoHeader]) -> Reply[NoHeader]:
        return Reply(remark=request.peer.remote_address)


def test_peers_may_ask_back() -> None:
    scene = Scene(Dispatcher(Registry(Checks()), lambda: 0, lambda: 0))
    scene.ask()
    end = scene.accept()
    end.heard()
    (told,) = end.tell(RemotingCommand(RequestCode.CHECK_CLIENT_CONFIG, opaque=8))
    assert (told.opaque, told.remark) == (8, "127.0.0.1:10911")


def test_without_a_dispatcher_they_are_refused(scene: Scene) -> None:
    scene.ask()
    end = scene.accept()
    end.heard()
    (told,) = end.tell(RemotingCommand(RequestCode.CHECK_CLIENT_CONFIG))
    assert told.remark == " request type 46 not supported"


# --------------------------------------------------------------------------------- deferreds


def test_a_pending_reply_as_a_deferred() -> None:
    pending = PendingReply()
    fired: list[Any] = []
    as_deferred(pending).addBoth(fired.append)
    reply: Reply[Any] = Reply()
    pending.resolve(reply)
    assert fired == [reply]


def test_an_error_as_a_deferreds_failure() -> None:
    pending = PendingReply()
    fired: list[Any] = []
    pending.resolve(SendError("oh"))
    as_deferred(pending).addBoth(fired.append)
    assert isinstance(fired[0].value, SendError)


# ------------------------------------------------------------------- again and again


def test_who_cannot_be_connected_to_is_left_alone_longer_each_time(scene: Scene) -> None:
    for _ in range(2):  # the first failure alone is no reason
        scene.ask()
        scene.reactor.tcpClients[-1][2].clientConnectionFailed(None, Failure(Refused()))
    assert scene.attempts == 2
    scene.ask()
    assert scene.attempts == 2
    assert isinstance(scene.outcomes[-1], ConnectError)
    assert "failed 2 times" in str(scene.outcomes[-1])
    assert scene.outcomes[-1].again_in_ms == 100
    scene.pass_ms(200)
    scene.ask()
    assert scene.attempts == 3
    scene.refuse()
    scene.ask()
    scene.accept()
    assert scene.connections._failures == {}


def test_a_request_is_sealed_before_it_leaves(scene: Scene) -> None:
    def seal(ext_fields: dict[str, str], body: bytes) -> None:
        ext_fields["mark"] = f"{ext_fields['topic']}{len(body)}"

    scene.connections = Connections(Clock(scene.reactor), seal=seal)
    scene.ask()
    (asked,) = scene.accept().heard()
    assert asked.ext_fields is not None
    assert asked.ext_fields["mark"] == "T4"


def test_a_connection_that_was_made_is_told(scene: Scene) -> None:
    told: list[str] = []
    scene.connections.on_connected = told.append
    scene.ask()
    scene.accept()
    assert told == [HERE]
