# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from typing import Any

import pytest
from twisted.internet.task import Clock as ReactorClock
from twisted.logger import formatEvent, globalLogPublisher

from tests.fakes import FakePeer
from txrocketmq.remoting.codes import RequestCode, ResponseCode
from txrocketmq.remoting.command import RemotingCommand
from txrocketmq.remoting.errors import ResponseError
from txrocketmq.remoting.host.clock import Clock
from txrocketmq.remoting.transport.refusals import TIMES_A_MINUTE, Refusals


@pytest.fixture
def said() -> Any:
    lines: list[str] = []

    def observe(event: dict[str, Any]) -> None:
        lines.append(formatEvent(event))

    globalLogPublisher.addObserver(observe)  # type: ignore[arg-type]
    yield lines
    globalLogPublisher.removeObserver(observe)  # type: ignore[arg-type]


def test_refusals_are_told_a_few_times_a_minute(said: list[str]) -> None:
    reactor = ReactorClock()
    refusals = Refusals(Clock(reactor))
    peer = FakePeer()
    error = ResponseError(ResponseCode.NO_PERMISSION, "the topic is read-only")
    for _ in range(20):
        refusals(peer, RemotingCommand(RequestCode.SEND_MESSAGE_V2), error)
    refusals(peer, RemotingCommand(9999), error)
    reactor.advance(60)
    refusals(peer, RemotingCommand(RequestCode.SEND_MESSAGE_V2), error)
    first = f"refused SEND_MESSAGE_V2 of {peer.remote_address} (16): the topic is read-only"
    assert said == [
        *[first] * TIMES_A_MINUTE,
        f"refused request 9999 of {peer.remote_address} (16): the topic is read-only",
        f"{first} (and 15 more that were not logged)",
    ]


def test_what_is_usual_is_not_told(said: list[str]) -> None:
    refusals = Refusals(Clock(ReactorClock()))
    for code, answer in (
        (RequestCode.PULL_MESSAGE, ResponseCode.PULL_NOT_FOUND),
        (RequestCode.QUERY_CONSUMER_OFFSET, ResponseCode.QUERY_NOT_FOUND),
        (RequestCode.GET_ROUTEINFO_BY_TOPIC, ResponseCode.TOPIC_NOT_EXIST),
        (RequestCode.GET_CONSUMER_LIST_BY_GROUP, ResponseCode.SYSTEM_ERROR),
        (RequestCode.GET_PRODUCER_CONNECTION_LIST, ResponseCode.SYSTEM_ERROR),
        (RequestCode.VIEW_BROKER_STATS_DATA, ResponseCode.SYSTEM_ERROR),
        (RequestCode.VIEW_MESSAGE_BY_ID, ResponseCode.SYSTEM_ERROR),
        (RequestCode.GET_TOPIC_CONFIG, ResponseCode.TOPIC_NOT_EXIST),
    ):
        refusals(FakePeer(), RemotingCommand(code), ResponseError(answer, "no"))
    assert said == []
    refusals(
        FakePeer(),
        RemotingCommand(RequestCode.SEND_MESSAGE),
        ResponseError(ResponseCode.TOPIC_NOT_EXIST, "no"),
    )
    assert len(said) == 1


def test_a_long_reason_is_cut(said: list[str]) -> None:
    """It repeats what was asked for, which may fill a frame."""
    error = ResponseError(ResponseCode.NO_PERMISSION, "x" * 10_000)
    Refusals(Clock(ReactorClock()))(FakePeer(), RemotingCommand(9999), error)
    assert said[0].endswith("x... (10000 characters)")
    assert len(said[0]) < 1_200
