# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest

from tests.broker.conftest import Parts
from tests.broker.processors.pull.test_pull_message import Pulling
from tests.fakes import refused
from txrocketmq.broker.processors.lite_topics import check_no_lite_topic
from txrocketmq.remoting.codes import RequestCode, ResponseCode


@pytest.mark.parametrize("name", [None, ""])
def test_other_requests_pass(name: str | None) -> None:
    check_no_lite_topic(name)


def test_a_lite_topic_is_refused() -> None:
    with refused(ResponseCode.INVALID_PARAMETER, "about the lite topic a-1: lite topics"):
        check_no_lite_topic("a-1")


@pytest.mark.parametrize("code", [RequestCode.PULL_MESSAGE, RequestCode.LITE_PULL_MESSAGE])
def test_no_messages_of_the_parent_are_pulled_for_it(parts: Parts, code: RequestCode) -> None:
    parts.topic("T")
    parts.put("T", 0)
    pulling = Pulling(parts)
    with refused(ResponseCode.INVALID_PARAMETER, "about the lite topic l"):
        pulling.pull(code, lite_topic="l")
