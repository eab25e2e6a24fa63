# SPDX-License-Identifier: Apache-2.0
"""Locks to which most brokers have to agree; how they are asked for: test_queue_lock.py."""

from __future__ import annotations

from typing import Any

from txrocketmq.broker.cluster.strict_locks import StrictLocks
from txrocketmq.broker.store.disk.steps import Steps
from txrocketmq.remoting.call import PendingReply, Reply
from txrocketmq.remoting.codes import RequestCode, ResponseCode
from txrocketmq.remoting.errors import ConnectError
from txrocketmq.remoting.message.message import MessageQueue
from txrocketmq.remoting.protocol.body.heartbeat import (
    LockBatchRequestBody,
    LockBatchResponseBody,
)

QUEUES = frozenset(MessageQueue("T", "pair", each) for each in range(40))
SOME = frozenset(MessageQueue("T", "pair", each) for each in range(3))


class Others:
    """Brokers of the name, which answer what the test says."""

    def __init__(self, *answers: Reply[Any] | Exception | None) -> None:
        self.answers = dict(enumerate(answers, 1))
        self.asked: list[tuple[str, int, LockBatchRequestBody]] = []
        self.pending: list[PendingReply] = []

    def addresses(self) -> dict[int, str]:
        return {each: f"10.0.0.{each}:10911" for each in self.answers}

    def invoke(self, address: str, call: Any, header: Any, body: bytes) -> PendingReply:
        self.asked.append((address, call.code, LockBatchRequestBody.decode(body)))
        pending = PendingReply()
        self.pending.append(pending)
        answer = self.answers[int(address.split(":", maxsplit=1)[0].rpartition(".")[2])]
        if answer is not None:
            pending.resolve(answer)
        return pending


def grants(*queues: MessageQueue) -> Reply[Any]:
    return Reply(body=LockBatchResponseBody(lock_ok_mq_set=frozenset(queues)).encode())


def strict(replicas: int, others: Others) -> StrictLocks:
    made = StrictLocks(replicas, others.addresses)
    made.begin(others.invoke)
    return made


def goes_on(step: Any) -> bool:
    """Whether what a step waits for is there."""
    called: list[bool] = []
    step(None, lambda: called.append(True))
    return bool(called)


def taken(steps: Steps[Any]) -> Any:
    """The result of steps that nothing keeps waiting."""
    while True:
        try:
            step = next(steps)
        except StopIteration as end:
            return end.value
        if step is not None:
            assert goes_on(step), "it waits for an answer"


def test_the_others_are_asked_for_the_same_and_only_for_themselves() -> None:
    others = Others(grants(*QUEUES), grants())
    assert taken(strict(3, others).agreed("g", "c", QUEUES)) == QUEUES
    addresses = [each for each, _, _ in others.asked]
    assert addresses == ["10.0.0.1:10911", "10.0.0.2:10911"]
    for _, code, body in others.asked:
        assert code == RequestCode.LOCK_BATCH_MQ
        assert (body.consumer_group, body.client_id, body.mq_set) == ("g", "c", QUEUES)
        assert body.only_this_broker


def test_more_than_half_have_to_grant_a_queue() -> None:
    one, two, three = sorted(SOME)
    others = Others(grants(one, two), grants(two), ConnectError("no"), grants(three))
    assert taken(strict(5, others).agreed("g", "c", SOME)) == {two}
    assert taken(strict(2, Others()).agreed("g", "c", SOME)) == frozenset(), "one of two is half"
    assert taken(strict(1, Others()).agreed("g", "c", SOME)) == SOME
    foreign = MessageQueue("U", "pair", 0)
    assert taken(strict(2, Others(grants(foreign))).agreed("g", "c", SOME)) == frozenset()


def test_nobody_is_asked_for_nothing() -> None:
    others = Others(grants())
    assert taken(strict(3, others).agreed("g", "c", ())) == frozenset()
    assert others.asked == []


def test_answers_that_are_none_grant_nothing() -> None:
    answers: list[Reply[Any] | Exception] = [
        Reply(body=b"["),
        Reply(code=ResponseCode.SYSTEM_ERROR),
        ConnectError("no"),
    ]
    for answer in answers:
        assert taken(strict(2, Others(answer)).agreed("g", "c", SOME)) == frozenset()


def test_all_are_asked_at_once_and_answers_are_waited_for() -> None:
    others = Others(None, None)
    steps = strict(3, others).agreed("g", "c", SOME)
    waits = next(each for each in steps if each is not None)
    assert len(others.asked) == 2
    called: list[bool] = []
    waits(None, lambda: called.append(True))
    assert not called
    for pending in others.pending:
        pending.resolve(grants(*SOME))
    assert called == [True]
    assert taken(steps) == SOME


def test_the_others_unlock_as_well() -> None:
    others = Others(Reply(), ConnectError("no"))
    taken(strict(3, others).unlock("g", "c", SOME))
    assert [code for _, code, _ in others.asked] == [RequestCode.UNLOCK_BATCH_MQ] * 2
    assert all(each.only_this_broker and each.mq_set == SOME for _, _, each in others.asked)
    taken(strict(1, others).unlock("g", "c", SOME))
    assert len(others.asked) == 2
