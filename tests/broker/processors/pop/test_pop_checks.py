# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import errno
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from tests.broker.conftest import Parts
from tests.disk import MemoryFiles
from tests.fakes import NOW_MS, FakePeer, outcome_of, refused
from txrocketmq.broker.filter.expression import NotCompiled
from txrocketmq.broker.pop.polling import PopPolling, PopRequest
from txrocketmq.broker.processors.pop.pop_checks import (
    MAX_INVISIBLE_MS,
    Attempts,
    Held,
    PopChecks,
)
from txrocketmq.broker.store.disk.in_memory import ColdRead, InMemory, NotInMemory
from txrocketmq.broker.store.disk.steps import Steps
from txrocketmq.broker.work import patience
from txrocketmq.broker.work.walks import SLICE_S, Walks
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


def test_messages_need_a_topic_to_come_back_to(parts: Parts, checks: PopChecks) -> None:
    checks.retry_topic("T", "g")
    parts.topics.create_in_heartbeat("%RETRY%g_T", 1)
    parts.set(auto_create_limit=1)
    checks.retry_topic("T", "g")
    checks.retry_topic("%RETRY%h", "h")
    with refused(ResponseCode.SYSTEM_ERROR, "1 retry topics and creates no more by itself"):
        checks.retry_topic("T", "h")


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


def cold(error: OSError | None = None) -> NotInMemory:
    """What is raised when something has to be read, which fails with an error."""
    files = MemoryFiles()
    read = ColdRead(files, InMemory(files), [])
    read.error = error
    return NotInMemory(read)


def attempted(parts: Parts, *outcomes: object) -> Any:
    """The answer when attempts go so."""
    found = iter(outcomes)
    pending = PendingReply()

    def attempt() -> Steps[Any]:
        yield
        outcome = next(found)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    Attempts(parts.walks).begin(PEER, attempt, pending)
    return outcome_of(pending) if pending.done else None


def test_an_attempt_waits_for_the_disk(parts: Parts) -> None:
    answer: Reply[Any] = Reply()
    assert attempted(parts, answer) is answer
    assert attempted(parts, cold(), cold(), answer) is answer
    assert attempted(parts, cold(), None) is None
    assert attempted(parts, *[cold() for _ in range(64)], answer) is answer


def test_what_goes_wrong_meanwhile(parts: Parts, monkeypatch: pytest.MonkeyPatch) -> None:
    error = ValueError("a defect")
    assert attempted(parts, cold(), error) is error
    failed = attempted(parts, cold(OSError(errno.EIO, "bad disk")))
    assert isinstance(failed, ResponseError)
    assert failed.code == ResponseCode.SYSTEM_ERROR
    monkeypatch.setattr(patience, "MAX_WAITING", 0)
    busy = attempted(parts, cold())
    assert isinstance(busy, ResponseError)
    assert busy.code == ResponseCode.SYSTEM_BUSY


class Turns:
    """A pop of four queues, two of which are looked at in a turn."""

    def __init__(self, parts: Parts) -> None:
        self.later: list[Callable[[], None]] = []
        self.looked_at: list[int] = []
        self.woken: list[str] = []
        now_s = iter(range(1_000))
        walks = Walks(self.later.append, lambda: next(now_s) * SLICE_S / 2)
        self.attempts = Attempts(walks)
        self.polling = PopPolling(parts.config, self.later.append)
        self.pending = PendingReply()

    def begin(self, peer: FakePeer) -> None:
        held = Held(self.polling, "T", "g", -1)
        self.attempts.begin(peer, lambda: self._look(peer), self.pending, held)

    def _look(self, peer: FakePeer) -> Steps[None]:
        for queue_id in range(4):
            self.looked_at.append(queue_id)
            yield
        waiting = PopRequest(peer, "T", "g", -1, 0, lambda: self.woken.append("pop"))
        self.polling.hold(waiting, NOW_MS, 10_000, NOW_MS, 0)

    def turn(self) -> None:
        later, self.later = self.later, []
        for each in later:
            each()


def test_an_attempt_goes_on_in_later_turns(parts: Parts) -> None:
    turns = Turns(parts)
    turns.begin(FakePeer())
    seen = [len(turns.looked_at)]
    while turns.later:
        turns.turn()
        seen.append(len(turns.looked_at))
    assert seen == [2, 4]
    assert (len(turns.polling), turns.woken) == (1, [])
    assert not turns.polling._watches


@pytest.mark.parametrize("topic", ["T", "%RETRY%g_T", "%RETRY%g+T"])
def test_what_arrives_behind_an_attempt_wakes_it(parts: Parts, topic: str) -> None:
    turns = Turns(parts)
    turns.begin(FakePeer())
    for name, end in (("U", 1), (topic, 1), (topic, 2)):
        row = (SimpleNamespace(topic=name, queue_id=0, max_offset=end),)
        for waiting, arrived in turns.polling.listeners:
            if waiting:
                arrived([row])
    while turns.later:
        turns.turn()
    assert turns.woken == ["pop"]
    assert not turns.polling._watches


def test_an_attempt_ends_when_its_peer_has_gone(parts: Parts) -> None:
    turns = Turns(parts)
    gone = FakePeer()
    turns.begin(gone)
    gone.close()
    while turns.later:
        turns.turn()
    assert turns.looked_at == [0, 1]
    assert len(turns.polling) == 0
    assert not turns.polling._watches


def test_an_attempt_waits_for_its_expression(parts: Parts) -> None:
    waiting: list[Callable[[], None]] = []
    pending, answer = PendingReply(), Reply[Any]()
    outcomes = iter([NotCompiled(waiting), answer])

    def attempt() -> Steps[Any]:
        outcome = next(outcomes)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome
        yield

    Attempts(parts.walks).begin(FakePeer(), attempt, pending)
    assert not pending.done
    waiting.pop()()
    assert outcome_of(pending) is answer
