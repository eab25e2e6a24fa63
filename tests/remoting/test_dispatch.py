# SPDX-License-Identifier: Apache-2.0
"""Dispatch: codes to handlers, replies to answers, errors to codes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.fakes import FakePeer
from tests.remoting.serialize.java_sends import frame, header
from txrocketmq.remoting.call import Buffer, Peer, PendingReply, Reply, Request
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.command import ONEWAY_FLAG, RESPONSE_FLAG, RemotingCommand
from txrocketmq.remoting.dispatch import Dispatcher, Registry, serves, serves_many, serves_plain
from txrocketmq.remoting.errors import ResponseError
from txrocketmq.remoting.frame import FrameDecoder, encode_frame
from txrocketmq.remoting.header import NoHeader
from txrocketmq.remoting.protocol import heartbeat, offset, send
from txrocketmq.remoting.protocol.offset import (
    GetMaxOffsetRequestHeader,
    GetMaxOffsetResponseHeader,
    GetMinOffsetRequestHeader,
    GetMinOffsetResponseHeader,
)
from txrocketmq.remoting.serialize.plain_sends import PlainSends

MAX, MIN, BEAT = offset.GET_MAX_OFFSET, offset.GET_MIN_OFFSET, heartbeat.CHECK_CLIENT_CONFIG
FIELDS = {"topic": "T", "queueId": "1"}


class Processor:
    """Answers at once, later, never, and with errors."""

    def __init__(self) -> None:
        self.pending = PendingReply()
        self.error: Exception | None = None
        self.answers_later = self.is_silent = False

    @serves(MAX)
    def max_offset(
        self, request: Request[GetMaxOffsetRequestHeader]
    ) -> Reply[GetMaxOffsetResponseHeader] | PendingReply | None:
        if self.error is not None:
            raise self.error
        if self.is_silent:
            return None
        if self.answers_later:
            return self.pending
        return Reply(
            GetMaxOffsetResponseHeader(offset=request.header.queue_id),
            [b"ab", memoryview(b"c")],
            ext_fields={"MSG_REGION": "r"},
        )

    @serves(MIN, vip=False)
    def min_offset(
        self, request: Request[GetMinOffsetRequestHeader]
    ) -> Reply[GetMinOffsetResponseHeader]:
        return Reply(GetMinOffsetResponseHeader(offset=request.now_ms))


class Many:
    """Takes all max-offset requests of a read; hands back those of topic "plain"."""

    def __init__(self) -> None:
        self.seen: list[list[int]] = []
        self.error: Exception | None = None

    @serves_many(MAX)
    def take(
        self, peer: Peer, commands: list[RemotingCommand], now_ms: int
    ) -> tuple[list[Buffer], list[RemotingCommand]]:
        self.seen.append([command.opaque for command in commands])
        if self.error is not None:
            raise self.error
        out: list[Buffer] = []
        rest = []
        for command in commands:
            if (command.ext_fields or {}).get("topic") == "plain":
                rest.append(command)
            else:
                answer = RemotingCommand(
                    0, {"offset": "99"}, flag=RESPONSE_FLAG, opaque=command.opaque
                )
                out += encode_frame(answer)
        return out, rest


class Scene:
    def __init__(self, *others: object) -> None:
        self.processor = Processor()
        self.peer: Any = FakePeer()
        self.failures: list[str] = []
        registry = Registry(self.processor, *others)
        self.dispatcher = Dispatcher(registry, lambda: 42, self._failed)

    def _failed(self, command: RemotingCommand, peer: Peer, error: Exception) -> None:
        self.failures.append(f"{command.code} {error}")

    def ask(self, *commands: RemotingCommand) -> list[RemotingCommand]:
        self.dispatcher.serve(self.peer, commands)
        return self.answers()

    def answers(self) -> list[RemotingCommand]:
        answers = FrameDecoder().receive(b"".join(self.peer.written))
        self.peer.written = []
        return answers


def request(code: int = MAX.code, opaque: int = 7, flag: int = 0, **fields: str) -> RemotingCommand:
    return RemotingCommand(code, {**FIELDS, **fields}, opaque=opaque, flag=flag)


class Plain:
    """Takes plain sends; hands back the first of each read, and serves them all as commands."""

    def __init__(self) -> None:
        self.seen: list[list[bytes]] = []
        self.error: Exception | None = None

    @serves_plain
    def take(
        self, peer: Peer, sends: PlainSends, now_ms: int
    ) -> tuple[list[Buffer], list[RemotingCommand]]:
        self.seen.append([each[5] for each in sends.sends])
        if self.error is not None:
            raise self.error
        return [], sends.commands()[:1]

    @serves(send.SEND_MESSAGE_V2)
    def send(self, request: Request[Any]) -> Reply[Any]:
        return Reply(remark=f"{request.header.topic} {request.body!r}")


def plain_sends(*opaques: int) -> list[Any]:
    data = b"".join(frame(header(opaque)) for opaque in opaques)
    return FrameDecoder(plain_sends=True).receive(data)


@pytest.fixture
def scene() -> Scene:
    return Scene()


def test_a_reply_becomes_an_answer(scene: Scene) -> None:
    (answer,) = scene.ask(request())
    assert (answer.code, answer.flag, answer.opaque) == (0, RESPONSE_FLAG, 7)
    assert answer.ext_fields == {"offset": "1", "MSG_REGION": "r"}
    assert answer.body == b"abc"


def test_the_time_is_given(scene: Scene) -> None:
    (answer,) = scene.ask(request(MIN.code))
    assert answer.ext_fields == {"offset": "42"}


def test_an_unknown_code_is_not_supported(scene: Scene) -> None:
    (answer,) = scene.ask(request(4711))
    assert (answer.code, answer.remark) == (3, " request type 4711 not supported")
    assert scene.failures == []


def test_a_missing_field_is_named(scene: Scene) -> None:
    (answer,) = scene.ask(RemotingCommand(MAX.code, {"topic": "T"}))
    assert answer.code == ResponseCode.SYSTEM_ERROR
    assert "the custom field <queueId> is null" in str(answer.remark)
    assert scene.failures == []


def test_an_error_of_a_handler_carries_its_code(scene: Scene) -> None:
    header = GetMaxOffsetResponseHeader(offset=3)
    scene.processor.error = ResponseError(17, "no topic", header)
    (answer,) = scene.ask(request())
    assert (answer.code, answer.remark, answer.ext_fields) == (17, "no topic", {"offset": "3"})
    assert scene.failures == []


def test_another_error_is_logged_and_hurts_nobody_else(scene: Scene) -> None:
    scene.processor.error = KeyError("gone")
    broken, good = scene.ask(request(), request(MIN.code, opaque=8))
    assert (broken.code, broken.remark) == (1, "KeyError: 'gone'")
    assert good.code == 0
    assert scene.failures == ["30 'gone'"]


def test_one_way_requests_are_never_answered(scene: Scene) -> None:
    scene.processor.error = KeyError("gone")
    assert scene.ask(request(flag=ONEWAY_FLAG), request(4711, flag=ONEWAY_FLAG)) == []


def test_none_is_no_answer(scene: Scene) -> None:
    scene.processor.is_silent = True
    assert scene.ask(request()) == []


def test_an_answer_may_come_later(scene: Scene) -> None:
    scene.processor.answers_later = True
    assert scene.ask(request()) == []
    scene.processor.pending.resolve(Reply(code=19, remark="NO_MESSAGE"))
    (answer,) = scene.answers()
    assert (answer.code, answer.remark, answer.opaque) == (19, "NO_MESSAGE", 7)


def test_later_may_be_an_error(scene: Scene) -> None:
    scene.processor.answers_later = True
    scene.ask(request())
    scene.processor.pending.resolve(ResponseError(17, "no topic"))
    assert [a.code for a in scene.answers()] == [17]


def test_later_may_be_too_late(scene: Scene) -> None:
    scene.processor.answers_later = True
    scene.ask(request())
    scene.peer.close()
    scene.processor.pending.resolve(Reply())
    assert scene.answers() == []


def test_all_of_a_read_go_together() -> None:
    many = Many()
    scene = Scene(many)
    answers = scene.ask(
        request(opaque=1), request(MIN.code, opaque=2), request(opaque=3), request(4711, opaque=4)
    )
    assert many.seen == [[1, 3]]
    assert {a.opaque: a.code for a in answers} == {1: 0, 2: 0, 3: 0, 4: 3}


def test_what_a_bulk_handler_hands_back_is_served_plainly() -> None:
    scene = Scene(Many())
    answers = scene.ask(request(opaque=1), request(opaque=2, topic="plain"))
    assert {a.opaque: (a.ext_fields or {})["offset"] for a in answers} == {1: "99", 2: "1"}


def test_two_bulk_handlers_take_turns_in_order() -> None:
    class Others:
        def __init__(self) -> None:
            self.seen: list[list[int]] = []

        @serves_many(MIN)
        def take(
            self, peer: Peer, commands: list[RemotingCommand], now_ms: int
        ) -> tuple[list[Buffer], list[RemotingCommand]]:
            self.seen.append([command.opaque for command in commands])
            return [], commands

    many, others = Many(), Others()
    scene = Scene(many, others)
    codes: list[Any] = [MAX, MAX, MIN, MAX, MIN]
    answers = scene.ask(*(request(call.code, opaque=n) for n, call in enumerate(codes)))
    assert [answer.opaque for answer in answers] == [0, 1, 2, 3, 4]
    assert (many.seen, others.seen) == ([[0, 1], [3]], [[2], [4]])


def test_many_answers_leave_before_all_are_made(scene: Scene) -> None:
    written: list[int] = []
    asked: list[int] = []
    scene.peer.write = lambda buffers: written.append(len(buffers))

    def requests() -> Iterator[RemotingCommand]:
        for opaque in range(100):
            asked.append(opaque)
            if sum(written) > 60:  # it does not read them: the rest comes another time
                return
            yield request(opaque=opaque)

    scene.dispatcher.serve(scene.peer, requests())
    assert len(asked) < 50
    assert sum(written) == 3 * (len(asked) - 1)  # an answer is a head and two pieces of body


def test_a_refusal_may_have_a_header(scene: Scene) -> None:
    header = GetMaxOffsetResponseHeader(offset=7)
    scene.processor.error = ResponseError(ResponseCode.NO_PERMISSION, "no", header)
    (answer,) = scene.ask(request())
    assert (answer.code, answer.remark, answer.ext_fields) == (16, "no", {"offset": "7"})


def test_a_number_that_is_none_is_named(scene: Scene) -> None:
    (answer,) = scene.ask(request(queueId="x"))
    assert answer.code == ResponseCode.SYSTEM_ERROR
    assert answer.remark == (
        'RemotingCommandException: the custom field <queueId>: For input string: "x"'
    )
    assert scene.failures == []


def test_a_bulk_handler_that_fails_answers_all() -> None:
    many = Many()
    many.error = KeyError("gone")
    scene = Scene(many)
    answers = scene.ask(request(opaque=1), request(opaque=2, flag=ONEWAY_FLAG), request(opaque=3))
    assert [(a.opaque, a.code) for a in answers] == [(1, 1), (3, 1)]
    assert len(scene.failures) == 3


def test_the_vip_port_serves_a_part() -> None:
    registry = Registry(Processor(), Many()).vip()
    assert set(registry.bindings) == set(registry.many) == {MAX.code}


def test_a_code_bound_twice_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"GET_MAX_OFFSET is served twice, again by Processor\."):
        Registry(Processor(), Processor())


def test_another_registry_may_take_over(scene: Scene) -> None:
    class Late:
        @serves(BEAT)
        def beat(self, request: Request[NoHeader]) -> Reply[NoHeader]:
            return Reply()

    scene.dispatcher.use(Registry(Late()))
    answers = scene.ask(request(BEAT.code), request())
    assert [a.code for a in answers] == [0, 3]


def test_plain_sends_go_to_who_takes_them_in_their_order() -> None:
    plain, many = Plain(), Many()
    scene = Scene(plain, many)
    answers = scene.ask(request(opaque=1), *plain_sends(2, 3), request(opaque=4), *plain_sends(5))
    assert [answer.opaque for answer in answers] == [1, 2, 4, 5]
    assert answers[1].remark == "T b'body'"
    assert plain.seen == [[b"2", b"3"], [b"5"]]
    assert many.seen == [[1], [4]]


def test_a_failure_answers_all_plain_sends() -> None:
    plain = Plain()
    plain.error = ValueError("why")
    scene = Scene(plain)
    answers = scene.ask(*plain_sends(2, 3))
    assert [(answer.opaque, answer.remark) for answer in answers] == [
        (2, "ValueError: why"),
        (3, "ValueError: why"),
    ]
    assert scene.failures == ["310 why"] * 2


def test_plain_sends_are_commands_for_who_does_not_know_them(scene: Scene) -> None:
    answers = scene.ask(*plain_sends(2, 3))
    assert [(answer.opaque, answer.code) for answer in answers] == [(2, 3), (3, 3)]


def test_the_vip_port_takes_plain_sends_when_it_takes_sends() -> None:
    assert Registry(Plain()).vip().plain is not None
    assert Registry(Many()).vip().plain is None
