# SPDX-License-Identifier: Apache-2.0
"""Locks of queues that most brokers of a name agree to, with lockInStrictMode.

A master and a slave that acts for it might lock the same queue for two consumers, while clients
have different routes. So a broker asks all the others for the same queues, and grants those that
more than half of totalReplicas have granted, itself included. A broker that does not answer within
a second has granted nothing. What the others granted to no end is not given back: the same client
asks again soon, and for anybody else it expires.

Java: lockBatchMQ and unlockBatchMQ in AdminBrokerProcessor, lockBatchMQAsync in BrokerOuterAPI.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, Final

from txrocketmq.broker.cluster.members import Addresses
from txrocketmq.broker.store.disk.steps import Steps
from txrocketmq.broker.work.walks import BodyPieces
from txrocketmq.remoting.call import PendingReply, Reply
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.errors import HeaderError
from txrocketmq.remoting.message.message import MessageQueue
from txrocketmq.remoting.protocol import heartbeat as calls
from txrocketmq.remoting.protocol.body.heartbeat import (
    LockBatchRequestBody,
    LockBatchResponseBody,
)
from txrocketmq.remoting.protocol.heartbeat import (
    LockBatchMqRequestHeader,
    UnlockBatchMqRequestHeader,
)
from txrocketmq.remoting.serialize.json import HOLE, encode_body

_QUEUES_A_STEP: Final = 16

AskLocks = Callable[[str, Any, Any, bytes], PendingReply]
"""Sends a request to an address: the call, its header and its body."""


class StrictLocks:
    """Asks the other brokers; `others` returns their addresses, `replicas` is totalReplicas."""

    def __init__(self, replicas: int, others: Callable[[], Addresses]) -> None:
        self._quorum = replicas // 2 + 1
        self._others = others
        self._invoke: AskLocks | None = None

    def begin(self, invoke: AskLocks) -> None:
        """Sends requests by this from now on."""
        self._invoke = invoke

    def agreed(
        self, group: str, client_id: str, own: Iterable[MessageQueue]
    ) -> Steps[frozenset[MessageQueue]]:
        """Returns those queues, which this broker has granted, that enough others grant as well."""
        granted = frozenset(own)
        if self._quorum <= 1 or not granted:
            return granted
        body = yield from _body(group, client_id, granted)
        header = LockBatchMqRequestHeader()
        asked = [
            self._invoke(each, calls.LOCK_BATCH_MQ, header, body)
            for each in self._others().values()
            if self._invoke is not None
        ]
        counts = Counter(granted)
        for pending in asked:
            if not pending.done:
                yield lambda _, then, pending=pending: pending.then(lambda _: then())
            theirs = yield from _granted(pending.outcome)
            counts.update(theirs & granted)
            yield
        return frozenset(each for each, count in counts.items() if count >= self._quorum)

    def unlock(self, group: str, client_id: str, queues: frozenset[MessageQueue]) -> Steps[None]:
        """Has all others unlock queues; nobody waits for that."""
        if self._quorum <= 1 or self._invoke is None:
            return
        body = yield from _body(group, client_id, queues)
        for each in self._others().values():
            self._invoke(each, calls.UNLOCK_BATCH_MQ, UnlockBatchMqRequestHeader(), body)


def _body(group: str, client_id: str, queues: frozenset[MessageQueue]) -> Steps[bytes]:
    """The body of both requests, which is LockBatchRequestBody."""
    content = LockBatchRequestBody(
        consumer_group=group, client_id=client_id, only_this_broker=True
    ).to_json()
    body = BodyPieces({**content, "mqSet": HOLE}, "[]")
    for count, each in enumerate(queues, 1):
        body.add(encode_body(each))
        if count % _QUEUES_A_STEP == 0:
            yield
    return b"".join(body.end())


def _granted(outcome: Reply[Any] | Exception | None) -> Steps[frozenset[MessageQueue]]:
    if not isinstance(outcome, Reply) or outcome.code != ResponseCode.SUCCESS:
        return frozenset()
    try:
        answer = yield from LockBatchResponseBody.reading(outcome.body_bytes)
    except HeaderError:
        return frozenset()
    return answer.lock_ok_mq_set
