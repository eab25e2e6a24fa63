# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest

from tests.fakes import NOW_MS, request
from txrocketmq.broker.processors.client.queue_lock import QueueLockProcessor
from txrocketmq.broker.tables.queue_locks import LOCK_LIVE_MS, QueueLocks
from txrocketmq.broker.work.walks import Walks
from txrocketmq.remoting.call import Reply
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
    reply = processor.lock(request(LockBatchMqRequestHeader(), body.encode(), now_ms=now_ms))
    assert isinstance(reply, Reply)
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
