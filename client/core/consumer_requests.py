# SPDX-License-Identifier: Apache-2.0
"""Requests of brokers to the consumers of a client, mostly on behalf of administrators.

- RESET_CONSUMER_CLIENT_OFFSET: a push consumer goes on elsewhere in queues; nobody waits for it.
- GET_CONSUMER_STATUS_FROM_CLIENT: how far it has come in a topic.
- GET_CONSUMER_RUNNING_INFO: what it is doing, on demand with the stacks of all threads.
- CONSUME_MESSAGE_DIRECTLY: a push consumer's listener gets this message now, whatever the offsets.

A group that this client does not consume as is answered with SYSTEM_ERROR, as in the original.

Java: ClientRemotingProcessor, and the methods of MQClientInstance that it calls.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any, Protocol

from twisted.internet.defer import Deferred
from twisted.logger import Logger
from twisted.python.failure import Failure

from txrocketmq.remoting.call import PendingReply, Reply, Request
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.dispatch import serves
from txrocketmq.remoting.errors import RemotingError
from txrocketmq.remoting.header import NoHeader
from txrocketmq.remoting.message.message import MessageExt, MessageQueue, decode_message
from txrocketmq.remoting.protocol import offset
from txrocketmq.remoting.protocol.body.client import (
    ConsumeMessageDirectlyResult,
    ConsumerRunningInfo,
)
from txrocketmq.remoting.protocol.body.offset import GetConsumerStatusBody, ResetOffsetBody
from txrocketmq.remoting.protocol.offset import (
    GetConsumerStatusRequestHeader,
    ResetOffsetRequestHeader,
)
from txrocketmq.remoting.protocol.operations import admin
from txrocketmq.remoting.protocol.operations.admin import (
    ConsumeMessageDirectlyResultRequestHeader,
    GetConsumerRunningInfoRequestHeader,
)

log = Logger()


class AskedConsumer(Protocol):
    """What brokers may ask of a consumer."""

    def reset_offsets(self, topic: str, offsets: Mapping[MessageQueue, int]) -> Awaitable[None]:
        """Continues at other offsets of a topic."""

    def offset_table(self, topic: str) -> Mapping[MessageQueue, int]:
        """Returns the offsets that were noted for a topic, by queue."""

    def running_info(self, *, with_stacks: bool) -> ConsumerRunningInfo:
        """Describes the consumer: its settings, its queues and its statistics."""

    def consume_directly(
        self, message: MessageExt, broker_name: str | None
    ) -> Awaitable[ConsumeMessageDirectlyResult | None]:
        """Gives a message to the listener; returns None if there is no such consumer."""


class ConsumerRequests:
    """Serves these requests; `consumer_of` finds the consumer of a group."""

    def __init__(self, consumer_of: Callable[[str], AskedConsumer | None]) -> None:
        self._consumer_of = consumer_of

    @serves(offset.RESET_CONSUMER_CLIENT_OFFSET)
    def reset_consumer_client_offset(
        self, request: Request[ResetOffsetRequestHeader]
    ) -> Reply[NoHeader]:
        """Begins the reset, which takes ten seconds; nobody waits for the answer."""
        consumer = self._consumer_of(request.header.group)
        if consumer is None:
            log.info("no offsets of group {group} are reset: this client has no consumer of it",
                     group=request.header.group)  # fmt: skip
            return Reply()
        offsets = ResetOffsetBody.decode(request.body).offset_table if request.body else {}
        resetting = _started(consumer.reset_offsets(request.header.topic, offsets))
        resetting.addErrback(lambda failure: log.failure("resetting offsets failed", failure))
        return Reply()

    @serves(offset.GET_CONSUMER_STATUS_FROM_CLIENT)
    def get_consumer_status_from_client(
        self, request: Request[GetConsumerStatusRequestHeader]
    ) -> Reply[NoHeader]:
        """Returns the offsets of a group, or an empty table if the group has no consumer here."""
        consumer = self._consumer_of(request.header.group)
        table = {} if consumer is None else consumer.offset_table(request.header.topic)
        return Reply(body=GetConsumerStatusBody(message_queue_table=table).encode())

    @serves(admin.GET_CONSUMER_RUNNING_INFO)
    def get_consumer_running_info(
        self, request: Request[GetConsumerRunningInfoRequestHeader]
    ) -> Reply[NoHeader]:
        """Describes a consumer; the stacks of all threads stand for Java's output of jstack."""
        group = request.header.consumer_group
        consumer = self._consumer_of(group)
        if consumer is None:
            return _not_here(group)
        info = consumer.running_info(with_stacks=request.header.jstack_enable)
        version = str(request.command.version)
        properties = {"PROP_CLIENT_VERSION": version, **info.properties}
        return Reply(body=replace(info, properties=properties).encode())

    @serves(admin.CONSUME_MESSAGE_DIRECTLY)
    def consume_message_directly(
        self, request: Request[ConsumeMessageDirectlyResultRequestHeader]
    ) -> Reply[NoHeader] | PendingReply:
        """Answers when the listener has returned."""
        group = request.header.consumer_group
        consumer = self._consumer_of(group)
        if consumer is None:
            return _not_here(group)
        try:
            message, _ = decode_message(request.body)
        except RemotingError as error:
            return Reply(code=ResponseCode.SYSTEM_ERROR, remark=f"the message is damaged: {error}")
        pending = PendingReply()

        def consumed(result: ConsumeMessageDirectlyResult | None) -> None:
            pending.resolve(_not_here(group) if result is None else Reply(body=result.encode()))

        def failed(failure: Failure) -> None:
            log.failure("consuming a message directly failed", failure)
            pending.resolve(Reply(code=ResponseCode.SYSTEM_ERROR, remark=failure.getErrorMessage()))

        consuming = _started(consumer.consume_directly(message, request.header.broker_name))
        consuming.addCallback(consumed).addErrback(failed)
        return pending


def _started(awaited: Any) -> Deferred[Any]:
    return awaited if isinstance(awaited, Deferred) else Deferred.fromCoroutine(awaited)


def _not_here(group: str) -> Reply[NoHeader]:
    return Reply(
        code=ResponseCode.SYSTEM_ERROR,
        remark=f"The Consumer Group <{group}> not exist in this consumer",
    )
