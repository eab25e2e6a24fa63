# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest

from txrocketmq.remoting.message import topics


@pytest.mark.parametrize(
    "name", ["TBW102", "SCHEDULE_TOPIC_XXXX", "RMQ_SYS_TRACE_TOPIC", "rmq_sys_wheel_timer"]
)
def test_topics_of_the_servers(name: str) -> None:
    assert topics.is_system_topic(name)


@pytest.mark.parametrize("name", ["Orders", "%RETRY%g", "%DLQ%g", "RMQ_SYS", "tbw102"])
def test_topics_of_users(name: str) -> None:
    assert not topics.is_system_topic(name)


def test_nobody_sends_to_half_messages_but_everybody_may_trace() -> None:
    assert topics.TRANS_HALF_TOPIC in topics.FORBIDDEN_TO_SEND
    assert topics.TRACE_TOPIC not in topics.FORBIDDEN_TO_SEND
    assert topics.SYSTEM_TOPICS > topics.FORBIDDEN_TO_SEND
