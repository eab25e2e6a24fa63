# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from typing import Any

import pytest

from tests.fakes import NOW_MS, reply_of, request
from txrocketmq.broker.cluster.strict_locks import StrictLocks
from txrocketmq.broker.processors.client.queue_lock import QueueLockProcessor
from txrocketmq.broker.tables.queue_locks import LOCK_LIVE_MS, QueueLocks
from txrocketmq.broker.work.walks import Walks
from txrocketmq.remoting.call import PendingReply, Reply
from txrocketmq.remoting.codes import RequestCode
from txrocketmq.remoting.errors import HeaderError
from txrocketmq.remoting.message.message import MessageQueue
from txrocketmq.remoting.protocol.body.heartbeat import (
    LockBatchRequestBody,
    LockBatchResponseBody,
    UnlockBatchRequestBody,
)
from txrocketmq.remoting.protocol.heartbeat import (
    LockBatchMqRequestHeader,
    UnlockBatchMqRequestHeader,
)

AT_ONCE = Walks(lambda call: call(), lambda: 0.0)
QUEUES = frozenset(MessageQueue("T", "b", queue_id) for queue_id in range(3))


@pytest.fixture
def processor() -> QueueLockProcessor:
    return QueueLockProcessor(QueueLocks(), AT_ONCE)


def lock(
    processor: QueueLockProcessor,
    client: str,
    queues: frozenset[MessageQueue] = QUEUES,
    *,
    group: str = "g",
    now_ms: int = NOW_MS,
) -> frozenset[MessageQueue]:
    body = LockBatchRequestBody(consumer_group=group, client_id=client, mq_set=queues)
    reply = reply_of(
        processor.lock(request(LockBatchMqRequestHeader(), body.encode(), now_ms=now_ms))
    )
    return LockBatchResponseBody.decode(reply.body_bytes).lock_ok_mq_set


def test_a_client_gets_what_no_other_has(processor: QueueLockProcessor) -> None:
    first = frozenset(sorted(QUEUES)[:1])
    assert lock(processor, "a", first) == first
    assert lock(processor, "b") == QUEUES - first
    assert lock(processor, "a") == first
    assert lock(processor, "x", group="other") == QUEUES
    assert lock(processor, "b", now_ms=NOW_MS + LOCK_LIVE_MS + 1) == QUEUES


def test_given_back_locks_are_free_at_once(processor: QueueLockProcessor) -> None:
    lock(processor, "a")
    for client in ("b", "a"):
        body = UnlockBatchRequestBody(consumer_group="g", client_id=client, mq_set=QUEUES)
        processor.unlock(request(UnlockBatchMqRequestHeader(), body.encode()))
        assert lock(processor, "c") == (frozenset() if client == "b" else QUEUES)


def test_a_body_that_is_none(processor: QueueLockProcessor) -> None:
    with pytest.raises(HeaderError):
        processor.lock(request(LockBatchMqRequestHeader(), b"{"))
    with pytest.raises(HeaderError):
        processor.unlock(request(UnlockBatchMqRequestHeader(), b""))


class Others:
    """Another broker of the name, which grants the first queue and notes what it is asked."""

    def __init__(self) -> None:
        self.asked: list[int] = []

    def addresses(self) -> dict[int, str]:
        return {1: "10.0.0.2:10911"}

    def invoke(self, address: str, call: Any, header: Any, body: bytes) -> PendingReply:
        self.asked.append(call.code)
        pending = PendingReply()
        granted = LockBatchResponseBody(lock_ok_mq_set=frozenset(sorted(QUEUES)[:1]))
        pending.resolve(Reply(body=granted.encode()))
        return pending


def test_in_strict_mode_other_brokers_have_to_agree_unless_one_of_them_asks() -> None:
    others = Others()
    strict = StrictLocks(2, others.addresses)
    strict.begin(others.invoke)
    processor = QueueLockProcessor(QueueLocks(), AT_ONCE, strict)
    assert lock(processor, "a") == {min(QUEUES)}
    body = LockBatchRequestBody(
        consumer_group="g", client_id="a", mq_set=QUEUES, only_this_broker=True
    )
    reply = reply_of(processor.lock(request(LockBatchMqRequestHeader(), body.encode())))
    assert LockBatchResponseBody.decode(reply.body_bytes).lock_ok_mq_set == QUEUES
    for only_this in (True, False):
        given = UnlockBatchRequestBody(
            consumer_group="g", client_id="a", mq_set=QUEUES, only_this_broker=only_this
        )
        reply_of(processor.unlock(request(UnlockBatchMqRequestHeader(), given.encode())))
    assert others.asked == [RequestCode.LOCK_BATCH_MQ, RequestCode.UNLOCK_BATCH_MQ]
