# SPDX-License-Identifier: Apache-2.0
"""LOCK_BATCH_MQ, UNLOCK_BATCH_MQ: reserves queues for one orderly consumer.

What another client of the group holds is left out of the answer; that is no error. Thousands of
queues are locked in turns with everything else. With lockInStrictMode the other brokers of the name
are asked, unless one of them asks (strict_locks.py).
Java: AdminBrokerProcessor, RebalanceLockManager.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from txrocketmq.broker.cluster.strict_locks import StrictLocks
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

    def __init__(self, locks: QueueLocks, walks: Walks, strict: StrictLocks | None = None) -> None:
        self._locks = locks
        self._walks = walks
        self._strict = strict

    @serves(calls.LOCK_BATCH_MQ)
    def lock(self, request: Request[LockBatchMqRequestHeader]) -> Reply[NoHeader] | PendingReply:
        """Locks queues for 60 s."""
        return self._walks.soon(self._lock(request.body, request.steady_ms))

    def _lock(self, body: bytes, steady_ms: int) -> Walk:
        wanted = yield from LockBatchRequestBody.reading(body)
        group, client_id = wanted.consumer_group, wanted.client_id
        own: list[MessageQueue] = []
        for some in _parts(wanted.mq_set):
            own += self._locks.lock(group, client_id, some, steady_ms)
            yield
        granted: Iterable[MessageQueue] = own
        if self._strict is not None and not wanted.only_this_broker:
            granted = yield from self._strict.agreed(group, client_id, own)
        pieces = BodyPieces({"lockOKMQSet": HOLE}, "[]")
        for some in _parts(granted):
            for each in some:
                pieces.add(encode_body(each))
            yield
        return Reply(body=pieces.end())

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
        if self._strict is not None and not given.only_this_broker:
            yield from self._strict.unlock(given.consumer_group, given.client_id, given.mq_set)
        return Reply()


def _parts(queues: Iterable[MessageQueue]) -> Iterator[list[MessageQueue]]:
    """Yields the queues of each step."""
    listed = list(queues)
    for at in range(0, len(listed), _QUEUES_A_STEP):
        yield listed[at : at + _QUEUES_A_STEP]
