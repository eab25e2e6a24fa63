# SPDX-License-Identifier: Apache-2.0
"""One pull: what is asked for, of whom, and what it brings."""

from __future__ import annotations

from typing import Any

import pytest
from twisted.logger import LogLevel, capturedLogs, formatEvent

from tests.client.consumer.fake_broker import QUEUE, Broker, found
from tests.client.fakes import BROKER_A, BROKER_B, Scene, a_route, refusal, result_of
from txrocketmq.client.consumer.queue.pull_queue import QueuePull
from txrocketmq.remoting.call import Reply
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.errors import ConnectError
from txrocketmq.remoting.message.flags import PullSysFlag
from txrocketmq.remoting.message.tags import SQL92, SubscriptionData
from txrocketmq.remoting.protocol import pull
from txrocketmq.remoting.protocol.pull import PullMessageResponseHeader

ALL = SubscriptionData("T", sub_version=7)


@pytest.fixture
def puller(scene: Scene, broker: Broker) -> QueuePull:
    """Of a queue that has a slave at the second address."""
    scene.routes["T"] = a_route({"broker-a": 1}, addresses={"broker-a": {0: BROKER_A, 1: BROKER_B}})
    return QueuePull(
        scene.client, "g", QUEUE, suspend_ms=15, timeout_ms=30, batch_size=4, batch_bytes=99
    )


def test_a_push_consumer_commits_and_says_no_more_than_it_must(
    broker: Broker, puller: QueuePull
) -> None:
    broker.answers = [found(7, 5, 6)]
    pulled = result_of(puller.pull(5, ALL, commit_offset=5))
    assert [each.queue_offset for each in pulled.messages] == [5, 6]
    assert (pulled.next_offset, pulled.is_found, pulled.is_moved) == (7, True, False)
    (header,) = broker.pulls()
    assert header.sys_flag == PullSysFlag.SUSPEND | PullSysFlag.COMMIT_OFFSET
    assert (header.commit_offset, header.subscription, header.sub_version) == (5, None, 7)
    assert (header.max_msg_nums, header.max_msg_bytes, header.suspend_timeout_millis) == (4, 99, 15)


@pytest.mark.parametrize(
    ("subscription", "version"),
    [(ALL, 0), (SubscriptionData("T", "a > 1", sub_version=7, expression_type=SQL92), 7)],
)
def test_lite_pulls_say_what_they_want(
    scene: Scene, broker: Broker, puller: QueuePull, subscription: SubscriptionData, version: int
) -> None:
    broker.answers = [found(5, code=ResponseCode.PULL_NOT_FOUND)]
    pulled = result_of(puller.pull(5, subscription, posts_subscription=True, is_lite=True))
    assert (pulled.messages, pulled.is_found) == ([], False)
    (header,) = broker.pulls()
    flags = PullSysFlag.SUSPEND | PullSysFlag.SUBSCRIPTION | PullSysFlag.LITE_PULL
    assert (header.sys_flag, header.subscription) == (flags, subscription.sub_string)
    assert header.sub_version == version
    assert scene.connections.questions(pull.LITE_PULL_MESSAGE)


def test_it_goes_to_the_slave_when_the_broker_says_so(
    scene: Scene, broker: Broker, puller: QueuePull
) -> None:
    header = PullMessageResponseHeader(
        suggest_which_broker_id=1, next_begin_offset=5, min_offset=0, max_offset=9
    )
    outcomes: list[Any] = [found(6, 5), ConnectError("gone")]
    scene.connections.on(BROKER_B, pull.PULL_MESSAGE, lambda *_: outcomes.pop(0))
    broker.answers = [Reply(header, b"", ResponseCode.PULL_NOT_FOUND)] * 2
    result_of(puller.pull(5, ALL, commit_offset=5))
    assert result_of(puller.pull(5, ALL, commit_offset=5)).next_offset == 6
    asked = scene.connections.questions(pull.PULL_MESSAGE)
    assert [address for address, _ in asked] == [BROKER_A, BROKER_B]
    assert asked[1][1].sys_flag == PullSysFlag.SUSPEND  # slaves keep no offsets
    result_of(puller.pull(6, ALL))  # the slave sends it back to the master
    with pytest.raises(ConnectError):
        result_of(puller.pull(6, ALL))  # a slave again, which is gone
    broker.answers = [found(9, 8)]
    assert result_of(puller.pull(6, ALL)).next_offset == 9


@pytest.mark.parametrize(
    ("offset", "said"),
    [
        (5, ["continues at offset 50, not at 5: the broker does not have the 45 messages in"]),
        (70, ["continues at offset 50, not at 70"]),
        (0, []),
    ],
)
def test_a_queue_that_has_moved_says_so(
    broker: Broker, puller: QueuePull, offset: int, said: list[str]
) -> None:
    broker.answers = [found(50, code=ResponseCode.PULL_OFFSET_MOVED)]
    with capturedLogs() as logged:
        pulled = result_of(puller.pull(offset, ALL))
    assert (pulled.is_moved, pulled.next_offset, pulled.messages) == (True, 50, [])
    lines = [formatEvent(event) for event in logged if event["log_level"] is LogLevel.warn]
    assert len(lines) == len(said)
    assert all(text in line for text, line in zip(said, lines, strict=True))


def test_brokers_of_4x_get_lite_pulls_as_pulls(
    scene: Scene, broker: Broker, puller: QueuePull
) -> None:
    unknown = refusal(ResponseCode.REQUEST_CODE_NOT_SUPPORTED)
    scene.connections.on(BROKER_A, pull.LITE_PULL_MESSAGE, unknown)
    broker.answers = [found(6, 5), found(7, 6)]
    for offset in (5, 6):
        pulled = result_of(puller.pull(offset, ALL, posts_subscription=True, is_lite=True))
        assert pulled.next_offset == offset + 1
    assert len(scene.connections.questions(pull.LITE_PULL_MESSAGE)) == 1
    (first, _) = [header for _, header in scene.connections.questions(pull.PULL_MESSAGE)]
    assert first.sys_flag & PullSysFlag.LITE_PULL
