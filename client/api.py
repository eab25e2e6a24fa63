# SPDX-License-Identifier: Apache-2.0
"""What a client asks brokers: one method for each call, which raises MQBrokerError for a refusal.

Errors of the connection are RemotingErrors: ConnectError, SendError, RequestTimeout. Counterpart of
MQClientAPIImpl.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TypeVar

from txrocketmq.client.errors import MQBrokerError
from txrocketmq.remoting.call import Call, Reply
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.header import Header
from txrocketmq.remoting.message.message import MessageQueue
from txrocketmq.remoting.protocol import heartbeat, offset, pull, send
from txrocketmq.remoting.protocol.body.heartbeat import HeartbeatData
from txrocketmq.remoting.protocol.heartbeat import (
    HeartbeatRequestHeader,
    UnregisterClientRequestHeader,
)
from txrocketmq.remoting.protocol.offset import (
    GetMaxOffsetRequestHeader,
    GetMinOffsetRequestHeader,
    SearchOffsetRequestHeader,
)
from txrocketmq.remoting.protocol.pull import PullMessageRequestHeader, PullMessageResponseHeader
from txrocketmq.remoting.protocol.send import SendMessageRequestHeader, SendMessageResponseHeader
from txrocketmq.remoting.transport.client import Connections, as_deferred

Q = TypeVar("Q", bound=Header)
R = TypeVar("R", bound=Header)

SUCCESS: frozenset[int] = frozenset({ResponseCode.SUCCESS})
STORED: frozenset[int] = frozenset(
    {
        ResponseCode.SUCCESS,
        ResponseCode.FLUSH_DISK_TIMEOUT,
        ResponseCode.SLAVE_NOT_AVAILABLE,
        ResponseCode.FLUSH_SLAVE_TIMEOUT,
    }
)
"""Answers to a send whose message is in the log."""
PULLED: frozenset[int] = frozenset(
    {
        ResponseCode.SUCCESS,
        ResponseCode.PULL_NOT_FOUND,
        ResponseCode.PULL_RETRY_IMMEDIATELY,
        ResponseCode.PULL_OFFSET_MOVED,
    }
)
"""Answers to a pull that say where to go on."""


class Api:
    """Brokers by address; `timeout_ms` is for all but sends and pulls."""

    def __init__(self, connections: Connections, timeout_ms: int) -> None:
        self._connections = connections
        self._timeout_ms = timeout_ms

    async def send(
        self,
        address: str,
        header: SendMessageRequestHeader,
        body: bytes,
        timeout_ms: int,
    ) -> Reply[SendMessageResponseHeader]:
        """Sends a message or, when the header says so, a batch."""
        call = send.SEND_BATCH_MESSAGE if header.batch else send.SEND_MESSAGE_V2
        return await self._ask(address, call, header, body, timeout_ms, STORED)

    def send_oneway(self, address: str, header: SendMessageRequestHeader, body: bytes) -> None:
        """The same without an answer: it may be lost."""
        call = send.SEND_BATCH_MESSAGE if header.batch else send.SEND_MESSAGE_V2
        self._connections.invoke_oneway(address, call, header, body)

    async def pull(
        self, address: str, header: PullMessageRequestHeader, timeout_ms: int
    ) -> Reply[PullMessageResponseHeader]:
        """Pulls messages of a queue; the answer's code is one of PULLED."""
        return await self._ask(address, pull.PULL_MESSAGE, header, b"", timeout_ms, PULLED)

    async def max_offset(self, address: str, queue: MessageQueue) -> int:
        """The offset after the last message of a queue."""
        header = GetMaxOffsetRequestHeader(topic=queue.topic, queue_id=queue.queue_id)
        reply = await self._ask(address, offset.GET_MAX_OFFSET, header)
        assert reply.header is not None
        return reply.header.offset

    async def min_offset(self, address: str, queue: MessageQueue) -> int:
        """The offset of the first message of a queue."""
        header = GetMinOffsetRequestHeader(topic=queue.topic, queue_id=queue.queue_id)
        reply = await self._ask(address, offset.GET_MIN_OFFSET, header)
        assert reply.header is not None
        return reply.header.offset

    async def search_offset(self, address: str, queue: MessageQueue, timestamp_ms: int) -> int:
        """The offset of the first message stored at a time or after it."""
        header = SearchOffsetRequestHeader(
            topic=queue.topic, queue_id=queue.queue_id, timestamp=timestamp_ms
        )
        reply = await self._ask(address, offset.SEARCH_OFFSET_BY_TIMESTAMP, header)
        assert reply.header is not None
        return reply.header.offset

    async def heartbeat(self, address: str, data: HeartbeatData) -> None:
        """Tells a broker who is here."""
        await self._ask(address, heartbeat.HEART_BEAT, HeartbeatRequestHeader(), data.encode())

    async def unregister(self, address: str, client_id: str, producer_group: str) -> None:
        """Tells a broker that a producer leaves."""
        header = UnregisterClientRequestHeader(client_id=client_id, producer_group=producer_group)
        await self._ask(address, heartbeat.UNREGISTER_CLIENT, header)

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
            raise MQBrokerError(reply.code, reply.remark, address)
        return reply
