# SPDX-License-Identifier: Apache-2.0
"""Commands: flags, and their one line in a log."""

from __future__ import annotations

import pytest

from txrocketmq.remoting.codes import RequestCode, ResponseCode
from txrocketmq.remoting.command import ONEWAY_FLAG, RESPONSE_FLAG, RemotingCommand


@pytest.mark.parametrize(
    ("flag", "is_response", "is_oneway"),
    [(0, False, False), (RESPONSE_FLAG, True, False), (ONEWAY_FLAG, False, True), (3, True, True)],
)
def test_flags(flag: int, is_response: bool, is_oneway: bool) -> None:
    command = RemotingCommand(RequestCode.HEART_BEAT, flag=flag)
    assert (command.is_response, command.is_oneway) == (is_response, is_oneway)


def test_a_request_is_told_in_one_line_without_its_body() -> None:
    command = RemotingCommand(
        RequestCode.SEND_MESSAGE, {"topic": "T", "properties": "x" * 200}, b"secret", opaque=7
    )
    text = str(command)
    assert text.startswith("request SEND_MESSAGE(10) opaque=7 topic='T' properties='xxx")
    assert text.endswith("body=6B")
    assert "secret" not in text
    assert len(text) < 200


def test_an_answer_is_told_with_its_remark() -> None:
    command = RemotingCommand(
        ResponseCode.TOPIC_NOT_EXIST, flag=RESPONSE_FLAG, opaque=7, remark="no topic"
    )
    assert str(command) == "answer TOPIC_NOT_EXIST(17) opaque=7 remark='no topic' body=0B"


def test_unknown_codes_are_told_too() -> None:
    assert str(RemotingCommand(4711)).startswith("request UNKNOWN(4711)")


def test_secrets_are_not_told() -> None:
    fields = {
        "AccessKey": "someone", "Signature": "hunter2", "SecurityToken": "hunter2",
        "secretKey": "hunter2", "password": "hunter2", "topic": "T",
    }  # fmt: skip
    text = str(RemotingCommand(RequestCode.SEND_MESSAGE, fields))
    assert "hunter2" not in text
    assert "AccessKey='someone' Signature=*** " in text
    assert "topic='T'" in text
