# SPDX-License-Identifier: Apache-2.0
"""Two connections back to back: requests, answers by opaque, deadlines, loss."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import pytest

from txrocketmq.remoting.call import Buffer, PendingReply, Reply
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.command import OWN_VERSION, RESPONSE_FLAG, RemotingCommand
from txrocketmq.remoting.errors import (
    HeaderError,
    RequestTimeout,
    SendError,
    TooManyRequests,
)
from txrocketmq.remoting.frame.connection import Connection
from txrocketmq.remoting.frame.form import Form
from txrocketmq.remoting.frame.frame import encode_frame
from txrocketmq.remoting.header import NoHeader
from txrocketmq.remoting.protocol import heartbeat, offset, send
from txrocketmq.remoting.protocol.offset import GetMaxOffsetRequestHeader

ASKED = GetMaxOffsetRequestHeader(topic="T", queue_id=1)


class Ends:
    """A client's and a server's end; nothing travels but by `pass_on`."""

    def __init__(self, **limits: Any) -> None:
        self.client, self.server = Connection(**limits), Connection()

    def ask(self, deadline_ms: int = 1000) -> tuple[PendingReply, RemotingCommand]:
        pending, buffers = self.client.request(offset.GET_MAX_OFFSET, ASKED, b"", deadline_ms)
        (command,) = self.server.receive(join(buffers))
        return pending, command

    def answer(self, command: RemotingCommand, code: int = 0, **fields: str) -> None:
        response = RemotingCommand(
            code, fields or None, b"body", RESPONSE_FLAG, command.opaque, "why"
        )
        assert self.client.receive(join(encode_frame(response))) == []


def join(buffers: list[Buffer]) -> bytes:
    return b"".join(buffers)


def outcome_of(pending: PendingReply) -> Any:
    outcomes: list[Any] = []
    pending.then(outcomes.append)
    return outcomes[0] if outcomes else None


def test_an_answer_finds_its_request() -> None:
    ends = Ends()
    first, command = ends.ask()
    second, other = ends.ask()
    assert command.ext_fields == {"topic": "T", "queueId": "1", "committed": "true"}
    ends.answer(other, offset="8")
    ends.answer(command, offset="7")
    assert outcome_of(first).header.offset == 7
    reply = outcome_of(second)
    assert isinstance(reply, Reply)
    answered: Any = reply.header
    assert (answered.offset, reply.body, reply.code, reply.version) == (8, b"body", 0, OWN_VERSION)
    assert ends.client.in_flight == 0


def test_an_error_needs_no_header_but_success_does() -> None:
    ends = Ends()
    refused, command = ends.ask()
    ends.answer(command, ResponseCode.TOPIC_NOT_EXIST)
    reply = outcome_of(refused)
    assert (reply.code, reply.remark, reply.header) == (17, "why", None)
    broken, command = ends.ask()
    ends.answer(command)
    assert isinstance(outcome_of(broken), HeaderError)


def test_an_answer_nobody_waits_for_is_dropped() -> None:
    ends = Ends()
    pending, command = ends.ask(deadline_ms=10)
    ends.client.expire(9)
    assert outcome_of(pending) is None
    ends.client.expire(10)
    assert isinstance(outcome_of(pending), RequestTimeout)
    ends.answer(command, offset="7")
    assert isinstance(outcome_of(pending), RequestTimeout)


def test_an_answer_of_which_somebody_hears_may_be_late() -> None:
    ends = Ends()
    heard: list[Any] = []
    for until_ms in (20, 21):
        pending, command = ends.ask(deadline_ms=10)

        def hear(error: Any, until_ms: int = until_ms) -> None:
            error.late.hear(until_ms, heard.append)

        pending.then(hear)
        ends.client.expire(10)
        ends.client.expire(20)
        ends.answer(command, offset="7")
        ends.answer(command, offset="8")
    (reply,) = heard
    assert reply.header.offset == 7


def test_none_is_kept_of_a_connection_that_is_lost() -> None:
    ends = Ends()
    heard: list[Any] = []
    pending, command = ends.ask(deadline_ms=10)
    pending.then(lambda error: cast(Any, error).late.hear(99, heard.append))
    ends.client.expire(10)
    ends.client.lost(SendError("gone"))
    ends.answer(command, offset="7")
    assert heard == []


def test_requests_and_answers_mix_on_one_stream() -> None:
    ends = Ends()
    pending, command = ends.ask()
    answer = RemotingCommand(0, {"offset": "7"}, b"", RESPONSE_FLAG, command.opaque)
    notice = heartbeat.NotifyConsumerIdsChangedRequestHeader(consumer_group="g")
    told = ends.server.oneway(heartbeat.NOTIFY_CONSUMER_IDS_CHANGED, notice, b"")
    stream = join(told) + join(encode_frame(answer)) + join(told)
    requests = ends.client.receive(stream)
    assert [(c.code, c.is_oneway) for c in requests] == [(40, True), (40, True)]
    assert outcome_of(pending).header.offset == 7


def test_a_lost_connection_fails_all() -> None:
    ends = Ends()
    waiting = [ends.ask()[0] for _ in range(3)]
    ends.client.lost(SendError("gone"))
    assert [str(outcome_of(each)) for each in waiting] == ["gone"] * 3
    assert ends.client.in_flight == 0


def test_there_is_a_limit_of_requests_in_flight() -> None:
    ends = Ends(max_in_flight=1)
    _, command = ends.ask()
    with pytest.raises(TooManyRequests, match="1 requests are in flight"):
        ends.ask()
    ends.answer(command, offset="7")
    ends.ask()


def test_headers_without_fields_are_left_out_as_java_does() -> None:
    buffers = Connection().oneway(heartbeat.CHECK_CLIENT_CONFIG, NoHeader(), b"")
    (command,) = Connection().receive(join(buffers))
    assert command.ext_fields is None


def test_one_letter_names_where_the_call_has_them() -> None:
    header = send.SendMessageRequestHeader.decode(
        dict(zip("abcdefgh", ["g", "T", "TBW102", "4", "1", "0", "1", "0"], strict=True))
    )
    (command,) = Connection().receive(join(Connection().oneway(send.SEND_MESSAGE_V2, header, b"")))
    assert command.ext_fields is not None
    assert command.ext_fields["b"] == "T"
    assert "topic" not in command.ext_fields


SENT = send.SendMessageRequestHeader(
    producer_group="g", topic="T", default_topic="TBW102", default_topic_queue_nums=4, queue_id=1,
    sys_flag=0, born_timestamp=0, flag=0, properties="",
)  # fmt: skip


def mark(fields: dict[str, str], body: bytes) -> None:
    """A seal that adds a field of its own."""
    fields["Signature"] = f"{fields['i']} {len(body)}"


@pytest.mark.parametrize("text", ["TAGS\x01A\x02", "\ud800"])
@pytest.mark.parametrize("seal", [None, mark])
def test_a_form_leaves_as_its_header_would(text: str, seal: Any) -> None:
    """Also where the general codec writes it: a text that is no Unicode, a signature."""
    form = Form(send.SEND_MESSAGE_V2, SENT, "born_timestamp", "properties")
    header = replace(SENT, born_timestamp=5, properties=text)
    filled, whole = (
        join(Connection(seal=seal).request(send.SEND_MESSAGE_V2, its, b"body", 1)[1])
        for its in (form.filled(5, text), header)
    )
    assert filled == whole
    assert (b"Signature" in filled) is (seal is mark)


def test_a_form_leaves_in_one_way_and_under_another_code_as_well() -> None:
    filled = Form(send.SEND_MESSAGE_V2, SENT, "born_timestamp").filled(5)
    header = replace(SENT, born_timestamp=5)
    for call in (send.SEND_MESSAGE_V2, send.SEND_BATCH_MESSAGE):
        one, other = (join(Connection().oneway(call, its, b"b")) for its in (filled, header))
        assert one == other
        one, other = (join(Connection().request(call, its, b"b", 1)[1]) for its in (filled, header))
        assert one == other


def test_garbage_is_an_error_to_close_by() -> None:
    connection = Connection()
    assert connection.receive(b"\xff" * 64) == []
    assert connection.error is not None


@pytest.mark.parametrize("is_lost", [True, False])
def test_one_who_fails_keeps_the_end_from_nobody_else(is_lost: bool) -> None:
    ends, outcomes = Ends(), list[Any]()

    def fails(outcome: object) -> None:
        outcomes.append(outcome)
        raise ValueError("a defect")

    for _ in range(2):
        ends.ask()[0].then(fails)
        ends.ask()[0].then(outcomes.append)
    with pytest.raises(ValueError, match="a defect"):
        ends.client.lost(SendError("gone")) if is_lost else ends.client.expire(1000)
    assert [type(each) for each in outcomes] == [SendError if is_lost else RequestTimeout] * 4
