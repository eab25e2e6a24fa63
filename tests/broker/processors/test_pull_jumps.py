# SPDX-License-Identifier: Apache-2.0
"""Pulls of messages that the log has lost: what is told of them."""

from __future__ import annotations

from tests.broker.conftest import Parts
from tests.broker.jumps import lost_before, told_jumps
from tests.broker.processors.pull.test_pull_message import Pulling, facts
from txrocketmq.broker.store.get.jumps import GROUP, Jump


def test_a_group_that_has_missed_messages_is_told(parts: Parts) -> None:
    """Once, however often it asks; but not of a group that has never read the queue."""
    parts.topic("T")
    pulling = Pulling(parts)
    for _ in range(5):
        parts.put("T", 0)
    lost_before(parts, "T", 0, 3)
    assert facts(pulling.pull(queue_offset=0))[2] == 3
    assert facts(pulling.pull(queue_offset=-1))[2] == 3
    assert told_jumps(parts) == []
    for _ in range(3):
        pulling.pull(queue_offset=1)
    parts.offsets.commit("g", "T", 0, 0)
    pulling.pull(queue_offset=0)
    assert [each for each, _ in told_jumps(parts)] == [
        Jump(GROUP, "T", 0, 1, 3, 2, "g"),
        Jump(GROUP, "T", 0, 0, 3, 3, "g"),
    ]


def test_a_group_is_not_new_to_its_retry_topic(parts: Parts) -> None:
    """What is in it was sent back by the group, whether or not it has ever read there."""
    pulling = Pulling(parts)
    for topic in ("%RETRY%g", "%RETRY%h"):
        parts.topic(topic)
        for _ in range(5):
            parts.put(topic, 0)
        lost_before(parts, topic, 0, 3)
        for _ in range(3):
            assert facts(pulling.pull(topic=topic, queue_offset=0))[2] == 3
        pulling.pull(topic=topic, queue_offset=-1)
    assert told_jumps(parts) == [
        (Jump(GROUP, "%RETRY%g", 0, 0, 3, 3, "g", is_known=False), 0),
    ]
