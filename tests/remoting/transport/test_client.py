# SPDX-License-Identifier: Apache-2.0
"""Connections by address: made when needed, shared, found broken."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from twisted.internet.error import ConnectionRefusedError as Refused
from twisted.python.failure import Failure

from tests.remoting.transport.scene import HERE, WHERE, Scene, answer
from tests.remoting.transport.wires import FarEnd
from txrocketmq.remoting.call import PendingReply, Reply, Request
from txrocketmq.remoting.codes import RequestCode
from txrocketmq.remoting.command import ONEWAY_FLAG, RemotingCommand
from txrocketmq.remoting.dispatch import Dispatcher, Registry, serves
from txrocketmq.remoting.errors import ConnectError, RequestTimeout, SendError
from txrocketmq.remoting.header import NoHeader
from txrocketmq.remoting.host.clock import Clock
from txrocketmq.remoting.protocol import heartbeat, offset
from txrocketmq.remoting.protocol.heartbeat import NotifyConsumerIdsChangedRequestHeader
from txrocketmq.remoting.transport.client import (
    CONNECT_TIMEOUT_MS,
    Connections,
    as_deferred,
    parse_address,
)
from txrocketmq.remoting.transport.peer import SILENT_MS


@pytest.fixture
def scene() -> Scene:
    return Scene()


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
    "text",
    ["", "host", "host:", ":1", "h:x", "h:\N{SUPERSCRIPT TWO}", "h:0", "h:65536", "a:1,b:2",
     "http://h:1", "a:1;b:2"],
)  # fmt: skip
def test_what_is_no_address(text: str) -> None:
    with pytest.raises(ValueError, match="is not an address: it should look like 127.0.0.1:9876"):
        parse_address(text)


# ----------------------------------------------------------------------------- connections


def test_an_address_may_be_elsewhere(scene: Scene) -> None:
    scene.connections.places["192.0.2.1:20911"] = "127.0.0.1:10911"
    scene.ask("192.0.2.1:20911")
    assert scene.reactor.tcpClients[0][:2] == ("127.0.0.1", 10_911)


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


def test_notices_wait_until_the_peer_reads_again(scene: Scene) -> None:
    """Nobody answers them, so they would fill the memory of a client whose broker is slow."""
    header = NotifyConsumerIdsChangedRequestHeader(consumer_group="g")
    tell = partial(
        scene.connections.invoke_oneway, HERE, heartbeat.NOTIFY_CONSUMER_IDS_CHANGED, header
    )
    freed: list[str] = []
    assert not tell()  # the connection is being opened
    assert not scene.connections.takes_more(HERE)
    scene.connections.when_free(HERE, lambda: freed.append("connected"))
    end = scene.accept()
    assert freed == ["connected"]
    assert tell()
    assert scene.connections.takes_more(HERE)
    scene.connections.when_free(HERE, lambda: freed.append("at once"))
    end.wire.producer.pauseProducing()
    assert not tell()
    assert not scene.connections.takes_more(HERE)
    scene.connections.when_free(HERE, lambda: freed.append("one"))
    scene.connections.when_free(HERE, lambda: freed.append("another"))
    assert freed == ["connected", "at once"]
    end.wire.producer.resumeProducing()
    assert freed == ["connected", "at once", "one", "another"]
    end.wire.producer.pauseProducing()
    scene.connections.when_free(HERE, lambda: freed.append("lost"))
    end.leave()
    assert freed[4:] == ["lost"]


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
    scene.pass_ms(CONNECT_TIMEOUT_MS - 100)
    assert scene.outcomes == []
    scene.pass_ms(300)
    assert [type(each) for each in scene.outcomes] == [ConnectError]


def test_a_connection_that_was_opened_meanwhile_is_not_given_up(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A turn of the reactor may be longer than an attempt may take."""
    scene.ask()
    scene.pass_ms(CONNECT_TIMEOUT_MS - 100)
    later: list[Any] = []
    with monkeypatch.context() as context:
        context.setattr(scene.connections._clock, "later", lambda _, *call: later.append(call))
        scene.reactor.advance(0.35)
    end = scene.accept()  # what the next turn notices
    for call, *arguments in later:
        call(*arguments)
    scene.reactor.advance(0)
    end.tell(answer(end.heard()[0], 2))
    assert [type(each) for each in scene.outcomes] == [Reply]


@pytest.mark.parametrize("address", [HERE, "[::1]:10911"])
def test_only_the_client_gives_an_attempt_up(scene: Scene, address: str) -> None:
    """A program may begin so many sends in one turn that it takes minutes on a busy machine."""
    scene.ask(address)
    (*_, timeout, _) = scene.reactor.tcpClients[0]
    assert timeout is None


def test_an_attempt_without_an_answer_is_told_of_in_words(scene: Scene) -> None:
    scene.ask()
    scene.pass_ms(4_500)
    (error,) = scene.outcomes
    assert str(error) == f"connect to {HERE} failed: no answer within 3 s"


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
    assert str(error) == "connect to somewhere:10911 failed: the name of the host is not found"


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


def test_an_answer_that_is_there_is_read_before_its_request_fails(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A turn of the reactor may be so long that answers wait to be read when time is over."""
    scene.ask(timeout_ms=1_000)
    scene.ask(timeout_ms=1_000)
    end = scene.accept()
    asked, _ = end.heard()
    scene.pass_ms(900)
    later: list[Any] = []
    monkeypatch.setattr(scene.connections._clock, "later", lambda _, *call: later.append(call))
    scene.reactor.advance(0.35)
    assert scene.outcomes == []
    end.tell(answer(asked, 2))  # what the next turn reads
    while later:
        call, *arguments = later.pop(0)
        if call != scene.connections._expire._run:
            call(*arguments)
    assert [type(each) for each in scene.outcomes] == [Reply, RequestTimeout]


def test_a_long_turn_does_not_count_for_what_was_asked_in_it(scene: Scene) -> None:
    """It leaves at the end of the turn at the earliest, and then has time for an answer."""
    end = _connected(scene)
    scene.ask(timeout_ms=1_000)
    scene.reactor.advance(9)
    scene.pass_ms(900)
    assert scene.outcomes == []
    (asked,) = end.heard()
    end.tell(answer(asked))
    assert [type(each) for each in scene.outcomes] == [Reply]


def test_nor_for_what_waits_for_a_connection(scene: Scene) -> None:
    """The reactor may notice it before it does what is due, or afterwards."""
    scene.ask(timeout_ms=1_000)
    scene.reactor.rightNow += 9  # nothing that is due has been done when the connection is there
    end = scene.accept()
    (asked,) = end.heard()
    scene.pass_ms(500)
    end.tell(answer(asked))
    assert [type(each) for each in scene.outcomes] == [Reply]


def test_after_a_long_turn_what_is_lost_is_noticed_all_the_same(scene: Scene) -> None:
    _connected(scene)
    scene.ask(timeout_ms=1_000)
    scene.reactor.advance(9)
    scene.pass_ms(3_400)
    assert [type(each) for each in scene.outcomes] == [RequestTimeout]


def test_a_program_that_is_always_busy_notices_it_too(scene: Scene) -> None:
    _connected(scene)
    scene.ask(timeout_ms=1_000)
    for _ in range(3):
        scene.reactor.advance(0.9)
    scene.reactor.advance(0)
    assert [type(each) for each in scene.outcomes] == [RequestTimeout]


def _connected(scene: Scene) -> FarEnd:
    """Returns the other end of a connection over which nothing is under way."""
    scene.ask()
    end = scene.accept()
    end.tell(answer(end.heard()[0]))
    scene.outcomes.clear()
    return end


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
    assert str(error) == f"connect to {HERE} failed: this client is closed"
    assert not scene.reactor.getDelayedCalls()


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


def test_whoever_fails_keeps_the_connection_from_nobody_else(scene: Scene) -> None:
    told: list[str] = []
    scene.connections.on_connected = told.append

    def fails(_: object) -> None:
        raise ValueError("a defect of the first")

    for _ in range(2):
        scene.connections.invoke(HERE, offset.GET_MAX_OFFSET, WHERE, timeout_ms=10_000).then(fails)
        scene.ask()
    scene.refuse()
    assert [type(each) for each in scene.outcomes] == [ConnectError, ConnectError]
    for _ in range(2):
        scene.connections.invoke(HERE, offset.GET_MAX_OFFSET, WHERE, timeout_ms=10_000).then(fails)
        scene.ask()
    end = scene.accept()
    assert told == [HERE]
    assert len(end.heard()) == 4
