# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from typing import Any

import pytest

from txrocketmq.remoting import call as calls
from txrocketmq.remoting import protocol
from txrocketmq.remoting.call import CALLS, PendingReply, Reply, Request, define
from txrocketmq.remoting.codes import RequestCode, ResponseCode
from txrocketmq.remoting.command import RemotingCommand
from txrocketmq.remoting.errors import RequestTimeout
from txrocketmq.remoting.header import NoHeader


def test_every_request_code_is_declared_once() -> None:
    assert set(CALLS) == set(RequestCode)
    assert all(CALLS[code].code is code for code in RequestCode)


def test_a_second_declaration_is_an_error() -> None:
    with pytest.raises(ValueError, match="SEND_MESSAGE is declared twice"):
        define(RequestCode.SEND_MESSAGE, NoHeader, NoHeader)


def test_a_declaration_is_found_by_its_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "CALLS", {})
    call = define(RequestCode.POP_ROLLBACK, NoHeader, NoHeader, letters=True)
    assert {RequestCode.POP_ROLLBACK: call} == calls.CALLS
    assert (call.name, call.request, call.response, call.letters) == (
        "POP_ROLLBACK",
        NoHeader,
        NoHeader,
        True,
    )


def test_calls_stand_under_the_names_of_their_codes() -> None:
    for name in protocol.__all__:
        family = getattr(protocol, name)
        for attribute, value in vars(family).items():
            if isinstance(value, calls.Call):
                assert attribute == value.code.name


def test_request_gives_its_parts() -> None:
    command = RemotingCommand(RequestCode.HEART_BEAT, body=b"body")
    peer: Any = object()
    request = Request(NoHeader(), command, peer, 5, 7)
    assert (request.body, request.peer) == (b"body", peer)
    assert (request.now_ms, request.steady_ms) == (5, 7)
    assert request.header == NoHeader()
    assert request.command is command


def test_reply_is_success_unless_told_otherwise() -> None:
    reply: Reply[NoHeader] = Reply()
    assert (reply.code, reply.header, reply.body) == (ResponseCode.SUCCESS, None, b"")
    assert (reply.remark, reply.ext_fields) == (None, None)
    failed: Reply[NoHeader] = Reply(code=ResponseCode.TOPIC_NOT_EXIST, remark="no")
    assert (failed.code, failed.remark) == (17, "no")


class TestPendingReply:
    def test_listener_first(self) -> None:
        pending, reply = PendingReply(), Reply[NoHeader]()
        outcomes: list[object] = []
        pending.then(outcomes.append)
        assert not pending.done
        assert outcomes == []
        pending.resolve(reply)
        assert pending.done
        assert outcomes == [reply]

    def test_outcome_first(self) -> None:
        pending, error = PendingReply(), RequestTimeout("late")
        outcomes: list[object] = []
        pending.resolve(error)
        assert pending.done
        pending.then(outcomes.append)
        assert outcomes == [error]

    def test_only_the_first_outcome_counts(self) -> None:
        pending, reply = PendingReply(), Reply[NoHeader]()
        outcomes: list[object] = []
        pending.then(outcomes.append)
        pending.resolve(reply)
        pending.resolve(RequestTimeout("late"))
        assert outcomes == [reply]
