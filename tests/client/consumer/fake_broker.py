# SPDX-License-Identifier: Apache-2.0
"""A broker for the tests of consumers: its queues, its group, and the requests that it has had."""

from __future__ import annotations

from typing import Any

from tests.client.fakes import BROKER_A, Scene, refusal
from txrocketmq.client.consumer.listening.listener import ConsumeContext
from txrocketmq.remoting.call import PendingReply, Reply
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.message.message import MessageExt, MessageQueue, encode_message
from txrocketmq.remoting.protocol import heartbeat, offset, pull, send
from txrocketmq.remoting.protocol.body.heartbeat import (
    GetConsumerListByGroupResponseBody,
    HeartbeatData,
    LockBatchRequestBody,
    LockBatchResponseBody,
    UnlockBatchRequestBody,
)
from txrocketmq.remoting.protocol.offset import (
    GetEarliestMsgStoretimeResponseHeader,
    GetMaxOffsetResponseHeader,
    GetMinOffsetResponseHeader,
    QueryConsumerOffsetResponseHeader,
    SearchOffsetResponseHeader,
)
from txrocketmq.remoting.protocol.pull import PullMessageResponseHeader

QUEUE = MessageQueue("T", "broker-a", 0)


class Broker:
    """One broker with two queues of T.

    `members` are those of the group, `offset` is the group's offset in any queue. `answers` are
    those to pulls; a pull waits when there is none.
    """

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.members = [scene.client.client_id]
        self.offset: int | None = 5
        self.earliest_ms = 0
        """When the first message of each queue was stored."""
        self.answers: list[Any] = []
        self.open: list[PendingReply] = []
        self.others_have: set[MessageQueue] = set()
        """Queues that it does not lock, since others have them."""
        on = scene.connections.on
        on(BROKER_A, heartbeat.HEART_BEAT, Reply())
        on(BROKER_A, heartbeat.UNREGISTER_CLIENT, Reply())
        on(BROKER_A, heartbeat.GET_CONSUMER_LIST_BY_GROUP, self._members)
        on(BROKER_A, offset.QUERY_CONSUMER_OFFSET, self._offset)
        on(BROKER_A, offset.GET_MAX_OFFSET, Reply(GetMaxOffsetResponseHeader(offset=90)))
        on(
            BROKER_A,
            offset.SEARCH_OFFSET_BY_TIMESTAMP,
            lambda _, header, __: Reply(SearchOffsetResponseHeader(offset=header.timestamp)),
        )
        on(BROKER_A, offset.GET_MIN_OFFSET, Reply(GetMinOffsetResponseHeader(offset=0)))
        on(BROKER_A, offset.GET_EARLIEST_MSG_STORETIME, self._earliest)
        on(BROKER_A, offset.UPDATE_CONSUMER_OFFSET, Reply())
        on(BROKER_A, pull.PULL_MESSAGE, self._pull)
        on(BROKER_A, pull.LITE_PULL_MESSAGE, self._pull)
        on(BROKER_A, heartbeat.LOCK_BATCH_MQ, self._lock)
        on(BROKER_A, heartbeat.UNLOCK_BATCH_MQ, Reply())
        on(BROKER_A, send.CONSUMER_SEND_MSG_BACK, Reply())

    def _members(self, *_: Any) -> Reply[Any]:
        return Reply(
            body=GetConsumerListByGroupResponseBody(consumer_id_list=self.members).encode()
        )

    def _offset(self, *_: Any) -> Reply[Any]:
        if self.offset is None:
            return refusal(ResponseCode.QUERY_NOT_FOUND)
        return Reply(QueryConsumerOffsetResponseHeader(offset=self.offset))

    def _pull(self, *_: Any) -> Any:
        if self.answers:
            return self.answers.pop(0)
        self.open.append(PendingReply())
        return self.open[-1]

    def _earliest(self, *_: Any) -> Reply[Any]:
        return Reply(GetEarliestMsgStoretimeResponseHeader(timestamp=self.earliest_ms))

    def _lock(self, _: Any, __: Any, body: bytes) -> Reply[Any]:
        wanted = LockBatchRequestBody.decode(body).mq_set
        granted = frozenset(wanted - self.others_have)
        return Reply(body=LockBatchResponseBody(lock_ok_mq_set=granted).encode())

    def locks(self) -> list[set[MessageQueue]]:
        """Returns the queues of each lock request."""
        return [
            set(LockBatchRequestBody.decode(body).mq_set)
            for _, call, _, body, _ in self.scene.connections.asked
            if call is heartbeat.LOCK_BATCH_MQ
        ]

    def unlocks(self) -> list[set[MessageQueue]]:
        """Returns the queues of each unlock request, oneway or not."""
        connections = self.scene.connections
        bodies = [body for _, call, _, body, _ in connections.asked if _is_unlock(call)]
        bodies += [body for _, call, _, body in connections.told if _is_unlock(call)]
        return [set(UnlockBatchRequestBody.decode(body).mq_set) for body in bodies]

    def pulls(self) -> list[Any]:
        return [
            header
            for _, call, header, _, _ in self.scene.connections.asked
            if call in (pull.PULL_MESSAGE, pull.LITE_PULL_MESSAGE)
        ]

    def committed(self) -> list[tuple[int, int]]:
        """Returns the queue ids and offsets of commits."""
        return [
            (header.queue_id, header.commit_offset)
            for _, call, header, _ in self.scene.connections.told
            if call is offset.UPDATE_CONSUMER_OFFSET
        ]

    def beats(self) -> list[HeartbeatData]:
        return [
            HeartbeatData.decode(body)
            for _, call, _, body, _ in self.scene.connections.asked
            if call is heartbeat.HEART_BEAT
        ]


def found(next_offset: int, *offsets: int, code: int = ResponseCode.SUCCESS) -> Reply[Any]:
    """Returns the answer to a pull, with messages at these offsets."""
    body = b"".join(
        encode_message(
            MessageExt("T", b"m%d" % each, queue_offset=each, commit_log_offset=7 * each)
        )
        for each in offsets
    )
    header = PullMessageResponseHeader(
        suggest_which_broker_id=0, next_begin_offset=next_offset, min_offset=0, max_offset=100
    )
    return Reply(header, body, code)


class Listener:
    """A listener that remembers bodies and returns `answer`."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        self.answer: Any = None

    def __call__(self, messages: list[MessageExt], context: ConsumeContext) -> Any:
        self.bodies += [each.body for each in messages]
        return self.answer


def _is_unlock(call: Any) -> bool:
    return call is heartbeat.UNLOCK_BATCH_MQ
