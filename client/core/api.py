# SPDX-License-Identifier: Apache-2.0
"""The client's requests to brokers: one method each, which raises MQBrokerError for a refusal.

Errors of the connection are RemotingErrors: ConnectError, SendError, RequestTimeout. Counterpart of
MQClientAPIImpl.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final, TypeVar

from txrocketmq.client.base.errors import MQBrokerError, PopNotSupported
from txrocketmq.remoting.call import Call, PendingReply, Reply
from txrocketmq.remoting.codes import PULLED, SUCCESS, ResponseCode
from txrocketmq.remoting.header import Header, NoHeader
from txrocketmq.remoting.message.message import MessageQueue
from txrocketmq.remoting.protocol import heartbeat, offset, pop, pull, send, transaction
from txrocketmq.remoting.protocol.body.heartbeat import (
    CheckClientRequestBody,
    GetConsumerListByGroupResponseBody,
    HeartbeatData,
    LockBatchRequestBody,
    LockBatchResponseBody,
    UnlockBatchRequestBody,
)
from txrocketmq.remoting.protocol.body.pop import (
    BatchAckMessageRequestBody,
    MessageQueueAssignment,
    QueryAssignmentRequestBody,
    QueryAssignmentResponseBody,
)
from txrocketmq.remoting.protocol.heartbeat import (
    GetConsumerListByGroupRequestHeader,
    HeartbeatRequestHeader,
    LockBatchMqRequestHeader,
    UnlockBatchMqRequestHeader,
    UnregisterClientRequestHeader,
)
from txrocketmq.remoting.protocol.offset import (
    GetEarliestMsgStoretimeRequestHeader,
    GetMaxOffsetRequestHeader,
    GetMinOffsetRequestHeader,
    QueryConsumerOffsetRequestHeader,
    SearchOffsetRequestHeader,
)
from txrocketmq.remoting.protocol.pop import (
    AckMessageRequestHeader,
    ChangeInvisibleTimeRequestHeader,
    ChangeInvisibleTimeResponseHeader,
    NotificationRequestHeader,
    PopMessageRequestHeader,
    PopMessageResponseHeader,
)
from txrocketmq.remoting.protocol.pull import PullMessageRequestHeader, PullMessageResponseHeader
from txrocketmq.remoting.protocol.send import (
    ConsumerSendMsgBackRequestHeader,
    RecallMessageRequestHeader,
    SendMessageRequestHeader,
    SendMessageResponseHeader,
)
from txrocketmq.remoting.protocol.transaction import EndTransactionRequestHeader
from txrocketmq.remoting.routing.queue_requests import commit_header, queue_fields
from txrocketmq.remoting.transport.client import Connections, as_deferred

Q = TypeVar("Q", bound=Header)
R = TypeVar("R", bound=Header)
POPPED: frozenset[int] = frozenset(
    {
        ResponseCode.SUCCESS,
        ResponseCode.POLLING_FULL,
        ResponseCode.POLLING_TIMEOUT,
    }
)
"""The codes of answers to a pop that found messages, or that found none."""


_NAMED: Final = {
    "topic": ("topic",),
    "queue": ("queue_id",),
    "group": ("producer_group", "consumer_group", "group"),
}


class Api:
    """Sends requests to brokers by address; `timeout_ms` is for all but sends and pulls."""

    def __init__(self, connections: Connections, timeout_ms: int) -> None:
        self._connections = connections
        self._timeout_ms = timeout_ms

    def send(
        self,
        address: str,
        call: Call[SendMessageRequestHeader, SendMessageResponseHeader],
        header: Header,
        body: bytes,
        timeout_ms: int,
    ) -> PendingReply:
        """Sends a message, a batch or a reply, depending on the call.

        There are so many sends that nothing is awaited here; the caller compares the code with
        STORED.
        """
        return self._connections.invoke(address, call, header, body, timeout_ms=timeout_ms)

    async def recall(
        self, address: str, header: RecallMessageRequestHeader, timeout_ms: int
    ) -> str:
        """Recalls a delayed message; returns the message's id."""
        reply = await self._ask(address, send.RECALL_MESSAGE, header, timeout_ms=timeout_ms)
        assert reply.header is not None
        return reply.header.msg_id

    def end_transaction(self, address: str, header: EndTransactionRequestHeader) -> None:
        """Tells a broker what became of a transaction; there is no answer."""
        self._connections.invoke_oneway(address, transaction.END_TRANSACTION, header)

    def send_oneway(
        self,
        address: str,
        call: Call[SendMessageRequestHeader, SendMessageResponseHeader],
        header: Header,
        body: bytes,
    ) -> bool:
        """Sends a message without waiting for an answer, so it may be lost.

        Returns whether the connection takes more; otherwise the next should wait for `when_free`.
        """
        return self._connections.invoke_oneway(address, call, header, body)

    def when_free(self, address: str, then: Callable[[], None]) -> None:
        """Calls a function once when the connection to an address takes more, or has ended."""
        self._connections.when_free(address, then)

    async def pull(
        self,
        address: str,
        header: PullMessageRequestHeader,
        timeout_ms: int,
        *,
        is_lite: bool = False,
    ) -> Reply[PullMessageResponseHeader]:
        """Pulls messages of a queue; the answer's code is one of PULLED.

        `is_lite`: as LITE_PULL_MESSAGE, which brokers have since 5.0.
        """
        call = pull.LITE_PULL_MESSAGE if is_lite else pull.PULL_MESSAGE
        return await self._ask(address, call, header, b"", timeout_ms, PULLED)

    async def max_offset(
        self, address: str, queue: MessageQueue, timeout_ms: int | None = None
    ) -> int:
        """The offset after the last message of a queue."""
        header = GetMaxOffsetRequestHeader(topic=queue.topic, queue_id=queue.queue_id)
        reply = await self._ask(address, offset.GET_MAX_OFFSET, header, timeout_ms=timeout_ms)
        assert reply.header is not None
        return reply.header.offset

    async def min_offset(self, address: str, queue: MessageQueue) -> int:
        """The offset of the first message of a queue; brokers say -1 of an empty one of batches."""
        header = GetMinOffsetRequestHeader(topic=queue.topic, queue_id=queue.queue_id)
        reply = await self._ask(address, offset.GET_MIN_OFFSET, header)
        assert reply.header is not None
        return max(reply.header.offset, 0)

    async def search_offset(self, address: str, queue: MessageQueue, timestamp_ms: int) -> int:
        """The offset of the first message stored at a time or after it."""
        header = SearchOffsetRequestHeader(
            topic=queue.topic, queue_id=queue.queue_id, timestamp=timestamp_ms
        )
        reply = await self._ask(address, offset.SEARCH_OFFSET_BY_TIMESTAMP, header)
        assert reply.header is not None
        return reply.header.offset

    async def earliest_store_time(self, address: str, queue: MessageQueue) -> int:
        """When the first message of a queue was stored, in ms; -1 if it has none."""
        header = GetEarliestMsgStoretimeRequestHeader(topic=queue.topic, queue_id=queue.queue_id)
        reply = await self._ask(address, offset.GET_EARLIEST_MSG_STORETIME, header)
        assert reply.header is not None
        return reply.header.timestamp

    async def heartbeat(
        self, address: str, data: HeartbeatData, timeout_ms: int | None = None
    ) -> Mapping[str, str]:
        """Sends a heartbeat to a broker; returns the extension fields of its answer."""
        reply = await self._ask(
            address, heartbeat.HEART_BEAT, HeartbeatRequestHeader(), data.encode(), timeout_ms
        )
        return reply.ext_fields or {}

    async def unregister(
        self,
        address: str,
        client_id: str,
        *,
        producer_group: str | None = None,
        consumer_group: str | None = None,
    ) -> None:
        """Tells a broker that a producer or a consumer leaves its group."""
        header = UnregisterClientRequestHeader(
            client_id=client_id, producer_group=producer_group, consumer_group=consumer_group
        )
        await self._ask(address, heartbeat.UNREGISTER_CLIENT, header)

    async def consumer_ids(self, address: str, group: str) -> list[str]:
        """Returns the client ids of a group's consumers that a broker has."""
        header = GetConsumerListByGroupRequestHeader(consumer_group=group)
        reply = await self._ask(address, heartbeat.GET_CONSUMER_LIST_BY_GROUP, header)
        return list(GetConsumerListByGroupResponseBody.decode(reply.body_bytes).consumer_id_list)

    async def consumer_offset(self, address: str, group: str, queue: MessageQueue) -> int:
        """Returns the next offset for a group; QUERY_NOT_FOUND is the error if there is none."""
        header = QueryConsumerOffsetRequestHeader(consumer_group=group, **queue_fields(queue))
        reply = await self._ask(address, offset.QUERY_CONSUMER_OFFSET, header)
        assert reply.header is not None
        return reply.header.offset

    def commit_offset(
        self, address: str, group: str, queue: MessageQueue, next_offset: int
    ) -> None:
        """Tells a broker how far a group has consumed a queue; there is no answer."""
        header = commit_header(group, queue, next_offset)
        self._connections.invoke_oneway(address, offset.UPDATE_CONSUMER_OFFSET, header)

    async def commit_offset_and_wait(
        self, address: str, group: str, queue: MessageQueue, next_offset: int
    ) -> None:
        """Tells a broker how far a group has consumed a queue, and waits for the answer."""
        header = commit_header(group, queue, next_offset)
        await self._ask(address, offset.UPDATE_CONSUMER_OFFSET, header)

    async def send_back(
        self, address: str, header: ConsumerSendMsgBackRequestHeader, timeout_ms: int
    ) -> None:
        """Returns a message that could not be consumed to its broker, to be delivered later."""
        await self._ask(address, send.CONSUMER_SEND_MSG_BACK, header, timeout_ms=timeout_ms)

    async def check_subscription(self, address: str, body: CheckClientRequestBody) -> None:
        """Asks whether a broker can filter by a subscription."""
        await self._ask(address, heartbeat.CHECK_CLIENT_CONFIG, NoHeader(), body.encode())

    async def lock_queues(
        self, address: str, body: LockBatchRequestBody, timeout_ms: int
    ) -> frozenset[MessageQueue]:
        """Asks a broker to lock queues for this client; returns those that it has locked."""
        reply = await self._ask(
            address,
            heartbeat.LOCK_BATCH_MQ,
            LockBatchMqRequestHeader(),
            body.encode(),
            timeout_ms,
        )
        return LockBatchResponseBody.decode(reply.body_bytes).lock_ok_mq_set

    def unlock_queues(self, address: str, body: UnlockBatchRequestBody) -> None:
        """Unlocks queues that were locked with `lock_queues`; there is no answer."""
        self._connections.invoke_oneway(
            address, heartbeat.UNLOCK_BATCH_MQ, UnlockBatchMqRequestHeader(), body.encode()
        )

    async def unlock_queues_and_wait(
        self, address: str, body: UnlockBatchRequestBody, timeout_ms: int
    ) -> None:
        """Unlocks queues that were locked with `lock_queues`, and waits for the answer."""
        await self._ask(
            address,
            heartbeat.UNLOCK_BATCH_MQ,
            UnlockBatchMqRequestHeader(),
            body.encode(),
            timeout_ms,
        )

    async def ask(
        self,
        address: str,
        call: Call[Q, R],
        header: Q,
        body: bytes,
        timeout_ms: int,
    ) -> Reply[R]:
        """Sends any request of an administrator and returns the answer."""
        return await self._ask(address, call, header, body, timeout_ms)

    async def pop(
        self, address: str, header: PopMessageRequestHeader, timeout_ms: int
    ) -> Reply[PopMessageResponseHeader]:
        """Takes messages for a time; the answer's code is one of POPPED.

        Raises PopNotSupported for a broker of 4.x, as do all that follow.
        """
        return await self._ask_5x(address, pop.POP_MESSAGE, header, b"", timeout_ms, POPPED)

    async def has_to_pop(
        self, address: str, header: NotificationRequestHeader, timeout_ms: int
    ) -> bool:
        """Asks whether there is something to pop; the broker may wait until there is."""
        reply = await self._ask_5x(address, pop.NOTIFICATION, header, timeout_ms=timeout_ms)
        return reply.header is not None and reply.header.has_msg

    async def ack(self, address: str, header: AckMessageRequestHeader) -> None:
        """Acknowledges a popped message."""
        await self._ask_5x(address, pop.ACK_MESSAGE, header)

    async def ack_many(self, address: str, body: BatchAckMessageRequestBody) -> None:
        """Acknowledges many popped messages."""
        await self._ask_5x(address, pop.BATCH_ACK_MESSAGE, NoHeader(), body.encode())

    async def change_invisible_time(
        self, address: str, header: ChangeInvisibleTimeRequestHeader
    ) -> ChangeInvisibleTimeResponseHeader:
        """Sets how long a popped message stays hidden; returns the fields of its new handle."""
        call = pop.CHANGE_MESSAGE_INVISIBLETIME
        reply = await self._ask_5x(address, call, header)
        if reply.header is None:
            raise MQBrokerError(reply.code, "the answer has no new handle", address)
        return reply.header

    async def assignments(
        self, address: str, body: QueryAssignmentRequestBody
    ) -> Sequence[MessageQueueAssignment] | None:
        """The queues of a topic that a consumer is to pull or to pop, as a 5.x broker shares them.

        None: the broker has no answer, and the consumer keeps its queues.
        """
        reply = await self._ask(address, pull.QUERY_ASSIGNMENT, NoHeader(), body.encode())
        return QueryAssignmentResponseBody.decode(reply.body_bytes).message_queue_assignments

    async def _ask_5x(
        self,
        address: str,
        call: Call[Q, R],
        header: Q,
        body: bytes = b"",
        timeout_ms: int | None = None,
        accepted: Collection[int] = SUCCESS,
    ) -> Reply[R]:
        try:
            return await self._ask(address, call, header, body, timeout_ms, accepted)
        except MQBrokerError as error:
            if error.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED:
                raise PopNotSupported(error.code, error.remark, address, error.about) from None
            raise

    async def _ask(
        self,
        address: str,
        call: Call[Q, R],
        header: Q,
        body: bytes = b"",
        timeout_ms: int | None = None,
        accepted: Collection[int] = SUCCESS,
    ) -> Reply[R]:
        reply = await as_deferred(
            self._connections.invoke(
                address, call, header, body, timeout_ms=timeout_ms or self._timeout_ms
            )
        )
        if reply.code not in accepted:
            raise refusal(reply, address, header)
        return reply


def refusal(reply: Reply[Any], address: str, header: Header) -> MQBrokerError:
    """The error for an answer with an unexpected code."""
    return MQBrokerError(reply.code, reply.remark, address, _about(header))


def _about(header: Header) -> str:
    """Names the topic, the queue and the group of a request, for error messages."""
    said = []
    for name, attributes in _NAMED.items():
        values = (getattr(header, each, None) for each in attributes)
        value = next((each for each in values if each is not None), None)
        if value not in (None, "", -1):
            said.append(f"{name} {value}")
    return ", ".join(said)
