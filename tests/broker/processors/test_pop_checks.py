# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import errno
from typing import Any

import pytest

from tests.broker.conftest import Parts
from tests.fakes import FakePeer, outcome_of, refused
from txrocketmq.broker.cold_reads import ColdReads
from txrocketmq.broker.processors.pop_checks import (
    MAX_INVISIBLE_MS,
    PopChecks,
    attempt_until_read,
)
from txrocketmq.broker.store.in_memory import NotInMemory
from txrocketmq.remoting.call import PendingReply, Reply
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.errors import ResponseError
from txrocketmq.remoting.protocol.body.route import TopicConfig
from txrocketmq.remoting.protocol.body.topic import SubscriptionGroupConfig

PEER = FakePeer()


@pytest.fixture
def checks(parts: Parts) -> PopChecks:
    parts.topic("T", 2)
    return PopChecks(parts.config, parts.topics, parts.groups)


def test_what_is_allowed(checks: PopChecks) -> None:
    checks.broker("pop")
    checks.group("g")
    checks.queue("T", 1, PEER)
    checks.invisible_time(-1)
    assert checks.readable("T", -1, PEER).read_queue_nums == 2


def test_what_is_not(parts: Parts, checks: PopChecks) -> None:
    with refused(ResponseCode.TOPIC_NOT_EXIST, "topic[U] not exist"):
        checks.readable("U", 0, PEER)
    with refused(ResponseCode.INVALID_PARAMETER, "queueId[2] is illegal"):
        checks.readable("T", 2, PEER)
    for queue_id in (-1, 2):
        with refused(ResponseCode.MESSAGE_ILLEGAL, f"queueId[{queue_id}] is illegal"):
            checks.queue("T", queue_id, PEER)
    with refused(ResponseCode.INVALID_PARAMETER, "invisibleTime is at most"):
        checks.invisible_time(MAX_INVISIBLE_MS + 1)
    parts.topics.update(TopicConfig(topic_name="T", perm=2))
    with refused(ResponseCode.NO_PERMISSION, "the topic[T] peeking message is forbidden"):
        checks.readable("T", 0, PEER)
    parts.groups.update(SubscriptionGroupConfig(group_name="g", consume_enable=False))
    with refused(ResponseCode.NO_PERMISSION, "subscription group no permission, g"):
        checks.group("g")
    parts.set(auto_create_subscription_group=False, broker_permission=2)
    with refused(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, "subscription group [h]"):
        checks.group("h")
    with refused(ResponseCode.NO_PERMISSION, "pop message is forbidden"):
        checks.broker("pop")


class Cold:
    """A read of the disk."""

    def __init__(self, error: OSError | None = None) -> None:
        self.error = error
        self.chunks: list[object] = []

    def run(self) -> None:
        pass

    def finish(self) -> None:
        pass


def cold(error: OSError | None = None) -> NotInMemory:
    read: Any = Cold(error)
    return NotInMemory(read)


def attempted(parts: Parts, *outcomes: object) -> Any:
    """The answer when attempts go so."""
    found = iter(outcomes)
    pending = PendingReply()

    def attempt(only_in_memory: bool) -> Any:
        outcome = next(found)
        if isinstance(outcome, Exception):
            assert only_in_memory
            raise outcome
        return outcome

    attempt_until_read(parts.cold_reads, PEER, attempt, pending)
    return outcome_of(pending) if pending.done else None


def test_an_attempt_waits_for_the_disk(parts: Parts) -> None:
    answer: Reply[Any] = Reply()
    assert attempted(parts, answer) is answer
    assert attempted(parts, cold(), cold(), answer) is answer
    assert attempted(parts, cold(), None) is None
    assert attempted(parts, *[cold() for _ in range(16)], answer) is answer


def test_what_goes_wrong_meanwhile(parts: Parts, monkeypatch: pytest.MonkeyPatch) -> None:
    error = ValueError("a defect")
    assert attempted(parts, cold(), error) is error
    failed = attempted(parts, cold(OSError(errno.EIO, "bad disk")))
    assert isinstance(failed, ResponseError)
    assert failed.code == ResponseCode.SYSTEM_ERROR
    monkeypatch.setattr(ColdReads, "add", lambda *_: False)
    busy = attempted(parts, cold())
    assert isinstance(busy, ResponseError)
    assert busy.code == ResponseCode.SYSTEM_BUSY
