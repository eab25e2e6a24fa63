# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from typing import Any

import pytest

from tests.client.fakes import result_of
from txrocketmq.client.base.errors import (
    BackpressureTimeout,
    BrokerNotExist,
    MQBrokerError,
    NoNameServer,
    NoRoute,
)
from txrocketmq.proxy.base.statuses import Refused, answered, set_status, set_total, told
from txrocketmq.proxy.schema.codes import Code
from txrocketmq.proxy.schema.messages import message_type
from txrocketmq.remoting.errors import ConnectError, RequestTimeout, TooManyRequests

ANSWER = message_type("HeartbeatResponse")


@pytest.mark.parametrize(
    ("error", "code", "text"),
    [
        (Refused(Code.FORBIDDEN, "no"), Code.FORBIDDEN, "no"),
        (MQBrokerError(2, "busy", "a:1"), Code.TOO_MANY_REQUESTS, "busy"),
        (MQBrokerError(3, "what", "a:1"), Code.NOT_IMPLEMENTED, "what"),
        (MQBrokerError(26, "no group", "a:1"), Code.CONSUMER_GROUP_NOT_FOUND, "no group"),
        (MQBrokerError(17, "no topic", "a:1"), Code.TOPIC_NOT_FOUND, "no topic"),
        (MQBrokerError(1, "oops", "a:1"), Code.INTERNAL_SERVER_ERROR, "oops"),
        (NoRoute("T", "why"), Code.TOPIC_NOT_FOUND, "why"),
        (NoNameServer("none"), Code.INTERNAL_SERVER_ERROR, "none"),
        (BrokerNotExist("gone"), Code.PROXY_TIMEOUT, "gone"),
        (RequestTimeout("late"), Code.PROXY_TIMEOUT, "late"),
        (ConnectError("away"), Code.INTERNAL_SERVER_ERROR, "away"),
        (TooManyRequests("full"), Code.TOO_MANY_REQUESTS, "full"),
        (BackpressureTimeout("slow"), Code.TOO_MANY_REQUESTS, "slow"),
    ],
)
def test_errors_have_their_codes(error: Exception, code: Code, text: str) -> None:
    status = told(error)
    assert status is not None
    assert status[0] is code
    assert text in status[1]


def test_a_defect_is_no_status() -> None:
    assert told(KeyError("x")) is None


def test_a_status_says_its_code_if_nothing_else() -> None:
    assert set_status(ANSWER(), Code.OK).status.message == "OK"
    assert set_status(ANSWER(), Code.OK, "fine").status.message == "fine"


@pytest.mark.parametrize(
    ("codes", "total"),
    [
        ([Code.OK, Code.OK], Code.OK),
        ([Code.FORBIDDEN], Code.FORBIDDEN),
        ([Code.OK, Code.FORBIDDEN], Code.MULTIPLE_RESULTS),
    ],
)
def test_several_codes_have_one_total(codes: list[Code], total: Code) -> None:
    assert set_total(ANSWER(), codes).status.code == total


class Served:
    """A method that fails as it is told to."""

    @answered("HeartbeatResponse")
    async def method(self, call: Any, request: Any) -> Any:
        """Fails, or answers."""
        if isinstance(request, Exception):
            raise request
        return set_status(ANSWER(), Code.OK)


def test_what_is_refused_is_answered_and_a_defect_is_raised() -> None:
    assert result_of(Served().method(None, None)).status.code == Code.OK
    refused = result_of(Served().method(None, Refused(Code.FORBIDDEN, "no"))).status
    assert (refused.code, refused.message) == (Code.FORBIDDEN, "no")
    with pytest.raises(KeyError):
        result_of(Served().method(None, KeyError("x")))
