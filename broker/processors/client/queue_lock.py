# SPDX-License-Identifier: Apache-2.0
"""LOCK_BATCH_MQ, UNLOCK_BATCH_MQ: reserves queues for one orderly consumer.

What another client of the group holds is left out of the answer; that is no error. Not done:
lockInStrictMode, which asks replicas. Java: AdminBrokerProcessor, RebalanceLockManager.
"""

from __future__ import annotations

from txrocketmq.broker.tables.queue_locks import QueueLocks
from txrocketmq.remoting.call import Reply, Request
from txrocketmq.remoting.dispatch import serves
from txrocketmq.remoting.header import NoHeader
from txrocketmq.remoting.protocol import heartbeat as calls
from txrocketmq.remoting.protocol.body.heartbeat import (
    LockBatchRequestBody,
    LockBatchResponseBody,
    UnlockBatchRequestBody,
)
from txrocketmq.remoting.protocol.heartbeat import (
    LockBatchMqRequestHeader,
    UnlockBatchMqRequestHeader,
)


class QueueLockProcessor:
    """Serves locks."""

    def __init__(self, locks: QueueLocks) -> None:
        self._locks = locks

    @serves(calls.LOCK_BATCH_MQ)
    def lock(self, request: Request[LockBatchMqRequestHeader]) -> Reply[NoHeader]:
        """Locks queues for 60 s."""
        wanted = LockBatchRequestBody.decode(request.body)
        granted = self._locks.lock(
            wanted.consumer_group, wanted.client_id, sorted(wanted.mq_set), request.steady_ms
        )
        return Reply(body=LockBatchResponseBody(lock_ok_mq_set=frozenset(granted)).encode())

    @serves(calls.UNLOCK_BATCH_MQ)
    def unlock(self, request: Request[UnlockBatchMqRequestHeader]) -> Reply[NoHeader]:
        """Releases queues."""
        given = UnlockBatchRequestBody.decode(request.body)
        self._locks.unlock(given.consumer_group, given.client_id, given.mq_set)
        return Reply()
