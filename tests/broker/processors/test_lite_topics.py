# SPDX-License-Identifier: Apache-2.0
"""Requests about lite topics of 5.5."""

from __future__ import annotations

import pytest

from tests.broker.conftest import Parts
from tests.broker.processors.pull.test_pull_message import Pulling
from tests.fakes import refused
from txrocketmq.broker.processors.lite_topics import refusal_of_lite_topic
from txrocketmq.remoting.codes import RequestCode, ResponseCode


def test_they_are_refused_with_their_name() -> None:
    refusal = refusal_of_lite_topic("a-1")
    assert refusal.code == 29
    assert "lite topic a-1: lite topics (5.5) are not served" in str(refusal)


def test_a_long_name_is_cut() -> None:
    assert len(str(refusal_of_lite_topic("x" * 10_000))) < 300


@pytest.mark.parametrize("code", [RequestCode.PULL_MESSAGE, RequestCode.LITE_PULL_MESSAGE])
def test_no_messages_of_the_parent_are_pulled_for_it(parts: Parts, code: RequestCode) -> None:
    parts.topic("T")
    parts.put("T", 0)
    pulling = Pulling(parts)
    with refused(ResponseCode.INVALID_PARAMETER, "about the lite topic l"):
        pulling.pull(code, lite_topic="l")
