# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest

from tests.broker.conftest import Parts
from tests.fakes import refused
from txrocketmq.broker.intake.inner_message import InnerMessage, Way
from txrocketmq.broker.intake.transforms.retry import Retry
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.message.message import MessageQueue


def message(
    topic: str = "T", way: Way = Way.SEND, body: bytes = b"body", **properties: str
) -> InnerMessage:
    return InnerMessage(topic, 1, body, 1, bytes(8), bytes(8), properties, way=way)


@pytest.fixture
def retry(parts: Parts) -> Retry:
    return Retry(parts.topics, parts.groups, parts.locks, parts.clock)


def tried(times: int, limit: int | None = None) -> InnerMessage:
    made = message("%RETRY%g", DELAY="3")
    made.reconsume_times, made.max_reconsume_times = times, limit
    return made


@pytest.mark.parametrize(
    ("times", "limit", "is_dead"),
    [(16, None, False), (17, None, True), (3, 2, True), (2, 2, False), (20, 20, False)],
)
def test_what_was_tried_too_often_is_dead(
    parts: Parts, retry: Retry, times: int, limit: int | None, is_dead: bool
) -> None:
    made = tried(times, limit)
    retry.apply(made, parts.now_ms)
    assert (made.topic, made.properties["DELAY"]) == (
        ("%DLQ%g", "-1") if is_dead else ("%RETRY%g", "3")
    )
    assert (parts.topics.expected("%DLQ%g") is not None) is is_dead
    assert (parts.topics.get("%DLQ%g"), parts.groups.get("g")) == (None, None)
    parts.topics.drafts.end(0, 1)
    parts.topics.drafts.make(())
    assert (parts.topics.get("%DLQ%g") is not None) is is_dead
    assert parts.groups.get("g") is not None


def test_what_a_group_with_locks_sends_is_dead(parts: Parts, retry: Retry) -> None:
    parts.locks.lock("g", "c", [MessageQueue("T", "b", 0)], parts.now_ms)
    made = tried(0)
    retry.apply(made, parts.now_ms)
    assert (made.topic, made.queue_id) == ("%DLQ%g", 0)


def test_a_group_that_is_unknown(parts: Parts, retry: Retry) -> None:
    parts.set(auto_create_subscription_group=False)
    with refused(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, "subscription group not exist, g"):
        retry.apply(tried(0), parts.now_ms)


def test_dead_letter_topics_beyond_the_limit_are_not_made(parts: Parts, retry: Retry) -> None:
    parts.set(auto_create_limit=parts.groups.count + 1)
    for number in range(parts.groups.count + 1):
        parts.topics.create_in_heartbeat(f"%DLQ%x{number}", 1)
    with refused(ResponseCode.SYSTEM_ERROR, "dead-letter topics and creates no more by itself"):
        retry.apply(tried(17), parts.now_ms)
    assert not parts.topics.drafts.topics
    parts.topics.drafts.begin()
    parts.topics.drafts.make(())
    assert parts.groups.get("g") is None
