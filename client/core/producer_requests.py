# SPDX-License-Identifier: Apache-2.0
"""Requests of brokers to the producers of a client.

A broker asks what became of a transaction whose end it has not heard, and hands on the replies to
requests. Counterpart of checkTransactionState and receiveReplyMessage of ClientRemotingProcessor,
and of RequestFutureHolder.
"""

from __future__ import annotations

from typing import Final, Protocol

from twisted.internet.defer import Deferred
from twisted.logger import Logger

from txrocketmq.client.base.errors import MQClientError, RequestTimedOut
from txrocketmq.remoting.call import Reply, Request
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.dispatch import serves
from txrocketmq.remoting.header import NoHeader
from txrocketmq.remoting.host.clock import Clock
from txrocketmq.remoting.message import properties as names
from txrocketmq.remoting.message.compression import CompressionError, decompress
from txrocketmq.remoting.message.flags import MessageSysFlag
from txrocketmq.remoting.message.message import MessageDecodeError, MessageExt, decode_message
from txrocketmq.remoting.message.properties import decode_properties
from txrocketmq.remoting.protocol import send, transaction
from txrocketmq.remoting.protocol.send import ReplyMessageRequestHeader
from txrocketmq.remoting.protocol.transaction import CheckTransactionStateRequestHeader

MAX_WAITING: Final = 65_535
"""The maximum of requests that wait for replies; more are refused."""

log = Logger()


class RegisteredProducer(Protocol):
    """A producer that brokers can ask about transactions."""

    def check_transaction(
        self, address: str, message: MessageExt, header: CheckTransactionStateRequestHeader
    ) -> None:
        """The broker at this address asks what became of a transaction."""


class Replies:
    """Requests that wait for their replies, by correlation id."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._waiting: dict[str, Deferred[MessageExt]] = {}

    def expect(self, correlation_id: str, timeout_ms: int, topic: str) -> Deferred[MessageExt]:
        """Returns a Deferred of the reply, which fails with RequestTimedOut after `timeout_ms`."""
        if len(self._waiting) >= MAX_WAITING:
            raise MQClientError(f"{MAX_WAITING} requests wait for their replies already")
        waiting: Deferred[MessageExt] = Deferred()
        self._waiting[correlation_id] = waiting
        late = self._clock.later(timeout_ms, lambda: waiting.errback(_timed_out(topic, timeout_ms)))

        def over(outcome: object) -> object:
            self._waiting.pop(correlation_id, None)
            if late.active():
                late.cancel()
            return outcome

        waiting.addBoth(over)
        return waiting

    def came(self, correlation_id: str | None, message: MessageExt) -> bool:
        """Handles a reply; returns whether a request was waiting for it."""
        waiting = self._waiting.get(correlation_id or "")
        if waiting is None:
            return False
        waiting.callback(message)
        return True

    def fail_all(self, error: Exception) -> None:
        """Fails all requests that wait for replies."""
        for waiting in list(self._waiting.values()):
            waiting.errback(error)


def _timed_out(topic: str, timeout_ms: int) -> RequestTimedOut:
    return RequestTimedOut(
        f"nobody answered the request to topic {topic} in {timeout_ms} ms: is a consumer there that"
        " replies?"
    )


class Asked(Protocol):
    """What is required of the client instance."""

    replies: Replies

    def producer_of(self, group: str) -> RegisteredProducer | None: ...

    def without_namespace(self, name: str) -> str: ...


class ToldProducers:
    """Serves these requests; see the module."""

    def __init__(self, client: Asked) -> None:
        self._client = client

    @serves(transaction.CHECK_TRANSACTION_STATE)
    def check_transaction_state(
        self, request: Request[CheckTransactionStateRequestHeader]
    ) -> Reply[NoHeader]:
        """Passes on a broker's question about a half message; the producer answers by a request."""
        try:
            message, _ = decode_message(request.body)
        except MessageDecodeError as error:
            log.warn("a broker asked about a transaction without its message: {error}", error=error)
            return Reply()
        message.topic = self._client.without_namespace(message.topic)
        message.transaction_id = message.unique_key
        group = message.properties.get(names.PGROUP)
        producer = self._client.producer_of(group or "")
        if producer is None:
            log.warn(
                "a broker asked group {group} about a transaction, but it has no producer here",
                group=group,
            )
        else:
            producer.check_transaction(request.peer.remote_address, message, request.header)
        return Reply()

    @serves(send.PUSH_REPLY_MESSAGE_TO_CLIENT)
    def push_reply(self, request: Request[ReplyMessageRequestHeader]) -> Reply[NoHeader]:
        """Takes the reply to a request of this client."""
        try:
            message = _reply_message(request.header, request.body, request.now_ms)
        except CompressionError as error:
            return Reply(
                code=ResponseCode.SYSTEM_ERROR, remark=f"process reply message fail: {error}"
            )
        message.topic = self._client.without_namespace(message.topic)
        if not self._client.replies.came(message.properties.get(names.CORRELATION_ID), message):
            log.debug("a reply came that nobody waits for any more")
        return Reply()


def _reply_message(header: ReplyMessageRequestHeader, body: bytes, now_ms: int) -> MessageExt:
    sys_flag = header.sys_flag
    if sys_flag & MessageSysFlag.COMPRESSED:
        body = decompress(body, sys_flag)
        sys_flag &= ~MessageSysFlag.COMPRESSED
    properties = decode_properties(header.properties or "")
    properties[names.ARRIVE_TIME] = str(now_ms)
    return MessageExt(
        header.topic,
        body,
        header.flag,
        properties,
        queue_id=header.queue_id,
        sys_flag=sys_flag,
        born_timestamp=header.born_timestamp,
        store_timestamp=header.store_timestamp,
        reconsume_times=header.reconsume_times or 0,
    )
