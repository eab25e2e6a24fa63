# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Any

import pytest

from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.command import RESPONSE_FLAG, RemotingCommand
from txrocketmq.remoting.frame.frame import FrameDecoder, encode_frame
from txrocketmq.remoting.protocol.offset import (
    GET_MAX_OFFSET,
    GetMaxOffsetRequestHeader,
    GetMaxOffsetResponseHeader,
)
from txrocketmq.remoting.protocol.send import SEND_MESSAGE_V2, SendMessageRequestHeader
from txrocketmq.spark.arrow.errors import ClusterError
from txrocketmq.spark.live.wire import rpc
from txrocketmq.spark.live.wire.rpc import (
    Connection,
    Refused,
    Unreachable,
    close_connections,
    connection_to,
    host_and_port,
)

ASKED = GetMaxOffsetRequestHeader(topic="t", queue_id=1)


class Peer:
    """The other ends of the connections that were opened."""

    def __init__(self) -> None:
        self.opened: list[tuple[Any, float]] = []
        self.sockets: list[socket.socket] = []
        self.decoder = FrameDecoder()

    def open(self, address: Any, timeout_s: float) -> socket.socket:
        self.opened.append((address, timeout_s))
        ours, theirs = socket.socketpair()
        theirs.setblocking(False)
        self.sockets.append(theirs)
        self.decoder = FrameDecoder()
        return Unnagled(ours)

    def requests(self) -> list[RemotingCommand]:
        return list(self.decoder.receive(self.sockets[-1].recv(1 << 20)))

    def answer(self, request: RemotingCommand, offset: int = 7, **more: Any) -> None:
        header = GetMaxOffsetResponseHeader(offset=offset).encode()
        command = RemotingCommand(
            more.pop("code", 0), header, flag=RESPONSE_FLAG, opaque=request.opaque, **more
        )
        self.sockets[-1].sendall(b"".join(encode_frame(command)))


class Unnagled(socket.socket):
    """A socket of a pair, which knows no TCP_NODELAY."""

    def __init__(self, of: socket.socket) -> None:
        super().__init__(of.family, of.type, of.proto, of.detach())

    def setsockopt(self, *_: Any) -> None:
        pass


@pytest.fixture
def peer(monkeypatch: pytest.MonkeyPatch) -> Iterator[Peer]:
    peer = Peer()
    monkeypatch.setattr("socket.create_connection", peer.open)
    yield peer
    close_connections()
    for each in peer.sockets:
        each.close()


def test_a_question_and_its_answer(peer: Peer) -> None:
    connection = Connection("10.0.0.1:10911")
    question = connection.start(GET_MAX_OFFSET, ASKED, timeout_ms=1000)
    (request,) = peer.requests()
    assert request.code == 30
    assert request.ext_fields == {"topic": "t", "queueId": "1", "committed": "true"}
    assert not question._outcomes
    peer.answer(request)
    assert question.wait().header == GetMaxOffsetResponseHeader(offset=7)
    assert peer.opened == [(("10.0.0.1", 10911), 1.0)]
    connection.close()


def test_answers_come_in_any_order(peer: Peer) -> None:
    connection = Connection("a:1")
    questions = [connection.start(GET_MAX_OFFSET, ASKED) for _ in range(3)]
    for number, request in reversed(list(enumerate(peer.requests()))):
        peer.answer(request, offset=number)
    assert [question.wait().header for question in questions] == [
        GetMaxOffsetResponseHeader(offset=number) for number in range(3)
    ]
    assert len(peer.opened) == 1
    connection.close()


def test_a_refusal_names_who_what_and_why(peer: Peer) -> None:
    connection = Connection("a:1")
    question = connection.start(GET_MAX_OFFSET, ASKED)
    peer.answer(peer.requests()[0], code=int(ResponseCode.NO_PERMISSION), remark="not you")
    with pytest.raises(Refused) as caught:
        question.wait()
    assert str(caught.value) == "a:1 refused GET_MAX_OFFSET: NO_PERMISSION (16): not you"
    assert caught.value.code == ResponseCode.NO_PERMISSION
    question = connection.start(GET_MAX_OFFSET, ASKED)
    peer.answer(peer.requests()[0], code=int(ResponseCode.NO_PERMISSION))
    assert question.wait(accepted=[ResponseCode.NO_PERMISSION]).code == ResponseCode.NO_PERMISSION
    connection.close()


def test_no_answer_in_time_ends_the_connection_and_the_next_question_opens_it(peer: Peer) -> None:
    connection = Connection("a:1")
    late = connection.start(GET_MAX_OFFSET, ASKED, timeout_ms=0)
    with pytest.raises(Unreachable, match="no answer to GET_MAX_OFFSET from a:1: the time limit"):
        late.wait()
    question = connection.start(GET_MAX_OFFSET, ASKED)
    peer.answer(peer.requests()[0])
    assert question.wait().code == 0
    assert len(peer.opened) == 2
    connection.close()


def test_a_connection_that_the_peer_closed_while_unused_is_opened_anew(peer: Peer) -> None:
    connection = Connection("a:1")
    question = connection.start(GET_MAX_OFFSET, ASKED)
    peer.answer(peer.requests()[0])
    question.wait()
    peer.sockets[0].close()
    again = connection.start(GET_MAX_OFFSET, ASKED)
    peer.answer(peer.requests()[0], offset=8)
    assert again.wait().header == GetMaxOffsetResponseHeader(offset=8)
    connection.close()


@pytest.mark.parametrize("is_answered", [False, True])
def test_a_question_that_nobody_waits_for_does_not_hide_the_end(
    peer: Peer, is_answered: bool
) -> None:
    """As of a task that was ended; its worker goes on with another one, perhaps much later."""
    connection = Connection("a:1")
    abandoned = connection.start(GET_MAX_OFFSET, ASKED)
    (request,) = peer.requests()
    if is_answered:
        peer.answer(request)
    peer.sockets[0].close()
    question = connection.start(GET_MAX_OFFSET, ASKED)
    assert abandoned._outcomes
    assert len(peer.opened) == 2
    peer.answer(peer.requests()[0], offset=8)
    assert question.wait().header == GetMaxOffsetResponseHeader(offset=8)
    connection.close()


def test_all_under_way_fail_when_the_peer_goes(peer: Peer) -> None:
    connection = Connection("a:1")
    questions = [connection.start(GET_MAX_OFFSET, ASKED) for _ in range(2)]
    assert connection.in_flight == 2
    peer.sockets[0].close()
    for question in questions:
        with pytest.raises(Unreachable, match="a:1: it closed the connection|reset"):
            question.wait()
    assert connection.in_flight == 0


def test_a_peer_that_speaks_something_else(peer: Peer) -> None:
    connection = Connection("a:1")
    question = connection.start(GET_MAX_OFFSET, ASKED)
    peer.sockets[0].sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
    with pytest.raises(Unreachable, match="it does not speak RocketMQ's protocol"):
        question.wait()


def test_an_answer_that_cannot_be_read(peer: Peer) -> None:
    connection = Connection("a:1")
    question = connection.start(GET_MAX_OFFSET, ASKED)
    (request,) = peer.requests()
    command = RemotingCommand(0, {}, flag=RESPONSE_FLAG, opaque=request.opaque)
    peer.sockets[0].sendall(b"".join(encode_frame(command)))
    with pytest.raises(ClusterError, match="cannot read the answer to GET_MAX_OFFSET from a:1"):
        question.wait()
    connection.close()


def test_nobody_there(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise ConnectionRefusedError(111, "Connection refused")

    monkeypatch.setattr("socket.create_connection", refuse)
    with pytest.raises(Unreachable, match="no connection to a:1: Connection refused"):
        Connection("a:1").ask(GET_MAX_OFFSET, ASKED)


def test_answers_are_read_while_a_large_request_waits_to_be_written(peer: Peer) -> None:
    """A peer that does not read on before its answers are read must not stop both."""
    connection = Connection("a:1")
    small = connection.start(GET_MAX_OFFSET, ASKED)
    peer.answer(peer.requests()[0])
    header = SendMessageRequestHeader(
        producer_group="g", topic="t", default_topic="d", default_topic_queue_nums=4,
        queue_id=0, sys_flag=0, born_timestamp=0, flag=0,
    )  # fmt: skip
    large = connection.start(SEND_MESSAGE_V2, header, bytes((1 << 24) - 4096), timeout_ms=50)
    assert small._outcomes
    with pytest.raises(Unreachable, match="the time limit is reached"):
        large.wait()


def test_connections_are_kept_and_bounded(peer: Peer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rpc, "MAX_CONNECTIONS", 2)
    first = connection_to("a:1")
    assert connection_to("a:1") is first
    connection_to("b:1")
    connection_to("c:1")
    assert connection_to("b:1") is not first
    assert connection_to("a:1") is not first
    busy = connection_to("a:1")
    question = busy.start(GET_MAX_OFFSET, ASKED)
    connection_to("d:1")
    connection_to("e:1")
    peer.answer(peer.requests()[0])
    assert question.wait().code == 0, "what is under way is not closed"


def test_a_forked_process_opens_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    parents = connection_to("a:1")
    monkeypatch.setattr("os.getpid", lambda: -1)
    assert connection_to("a:1") is not parents


@pytest.mark.parametrize(
    ("text", "parts"),
    [("h:1", ("h", 1)), ("[::1]:9876", ("::1", 9876)), (" 10.0.0.1:65535 ", ("10.0.0.1", 65535))],
)
def test_addresses(text: str, parts: tuple[str, int]) -> None:
    assert host_and_port(text) == parts


@pytest.mark.parametrize("text", ["", "h", "h:", ":1", "h:0", "h:65536", "h:x", "h:\u0661"])
def test_texts_that_are_no_address(text: str) -> None:
    with pytest.raises(ClusterError, match="is no address: write host:port"):
        host_and_port(text)
