# SPDX-License-Identifier: Apache-2.0
"""What requests about one queue say."""

from __future__ import annotations

from txrocketmq.remoting.message.flags import PullSysFlag
from txrocketmq.remoting.message.message import MessageQueue
from txrocketmq.remoting.protocol.pull import TOOLS_GROUP
from txrocketmq.remoting.routing.queue_requests import commit_header, pull_header

QUEUE = MessageQueue("T", "b", 3)


def test_a_pull_that_waits_for_nothing_and_tells_nothing() -> None:
    header = pull_header(QUEUE, 7, 32)
    assert (header.topic, header.queue_id, header.bname) == ("T", 3, "b")
    assert (header.queue_offset, header.max_msg_nums, header.commit_offset) == (7, 32, 0)
    assert (header.consumer_group, header.subscription) == (TOOLS_GROUP, "*")
    assert (header.sys_flag, header.suspend_timeout_millis) == (PullSysFlag.SUBSCRIPTION, 0)


def test_a_pull_that_waits_for_what_a_group_wants() -> None:
    header = pull_header(QUEUE, 7, 1, "a > 5", "SQL92", group="g", suspend_ms=20_000)
    assert (header.consumer_group, header.subscription) == ("g", "a > 5")
    assert header.expression_type == "SQL92"
    assert header.sys_flag == PullSysFlag.SUBSCRIPTION | PullSysFlag.SUSPEND
    assert header.suspend_timeout_millis == 20_000


def test_a_commit_names_the_queue_and_the_next_offset() -> None:
    header = commit_header("g", QUEUE, 9)
    assert (header.topic, header.queue_id, header.bname) == ("T", 3, "b")
    assert (header.consumer_group, header.commit_offset) == ("g", 9)
