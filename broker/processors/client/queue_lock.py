# SPDX-License-Identifier: Apache-2.0
"""LOCK_BATCH_MQ, UNLOCK_BATCH_MQ: reserves queues for one orderly consumer.

What another client of the group holds is left out of the answer; that is no error. Thousands of
queues are locked in turns with everything else. Not done: lockInStrictMode, which asks replicas.
Java: AdminBrokerProcessor, RebalanceLockManager.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from txrocketmq.broker.tables.queue_locks import QueueLocks
from txrocketmq.broker.work.walks import BodyPieces, Walk, Walks
from txrocketmq.remoting.call import PendingReply, Reply, Request
from txrocketmq.remoting.dispatch import serves
from txrocketmq.remoting.header import NoHeader
from txrocketmq.remoting.message.message import MessageQueue
from txrocketmq.remoting.protocol import heartbeat as calls
from txrocketmq.remoting.protocol.body.heartbeat import (
    LockBatchRequestBody,
    UnlockBatchRequestBody,
)
from txrocketmq.remoting.protocol.heartbeat import (
    LockBatchMqRequestHeader,
    UnlockBatchMqRequestHeader,
)
from txrocketmq.remoting.serialize.json import HOLE, encode_body

_QUEUES_A_STEP = 16


class QueueLockProcessor:
    """Serves locks."""

    def __init__(self, locks: QueueLocks, walks: Walks) -> None:
        self._locks = locks
        self._walks = walks

    @serves(calls.LOCK_BATCH_MQ)
    def lock(self, request: Request[LockBatchMqRequestHeader]) -> Reply[NoHeader] | PendingReply:
        """Locks queues for 60 s."""
        return self._walks.soon(self._lock(request.body, request.steady_ms))

    def _lock(self, body: bytes, steady_ms: int) -> Walk:
        wanted = yield from LockBatchRequestBody.reading(body)
        granted = BodyPieces({"lockOKMQSet": HOLE}, "[]")
        for some in _parts(wanted.mq_set):
            for each in self._locks.lock(wanted.consumer_group, wanted.client_id, some, steady_ms):
                granted.add(encode_body(each))
            yield
        return Reply(body=granted.end())

    @serves(calls.UNLOCK_BATCH_MQ)
    def unlock(
        self, request: Request[UnlockBatchMqRequestHeader]
    ) -> Reply[NoHeader] | PendingReply:
        """Releases queues."""
        return self._walks.soon(self._unlock(request.body))

    def _unlock(self, body: bytes) -> Walk:
        given = yield from UnlockBatchRequestBody.reading(body)
        for some in _parts(given.mq_set):
            self._locks.unlock(given.consumer_group, given.client_id, some)
            yield
        return Reply()


def _parts(queues: Iterable[MessageQueue]) -> Iterator[list[MessageQueue]]:
    """Yields the queues of each step."""
    listed = list(queues)
    for at in range(0, len(listed), _QUEUES_A_STEP):
        yield listed[at : at + _QUEUES_A_STEP]
