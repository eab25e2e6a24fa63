# SPDX-License-Identifier: Apache-2.0
"""Takes, acknowledges and hides messages, each with one request to a broker.

Java: PullAPIWrapper.popAsync, DefaultMQPushConsumerImpl.ackAsync and changePopInvisibleTimeAsync.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from typing import Final

from twisted.logger import Logger

from txrocketmq.client.base.errors import MQClientError, PopNotSupported
from txrocketmq.client.consumer.group.subscription import Subscriptions
from txrocketmq.client.consumer.popping.pop_result import (
    ack_of,
    acks_of,
    handle_of,
    hiding,
    popped_messages,
    set_new_handle,
)
from txrocketmq.client.core.instance import ClientInstance
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.errors import RemotingError
from txrocketmq.remoting.message.message import MessageExt, MessageQueue
from txrocketmq.remoting.protocol.pop import NotificationRequestHeader, PopMessageRequestHeader

ANY_QUEUE: Final = -1
ANSWER_MS: Final = 10_000
"""How much longer the answer to a pop may take than the broker may wait."""
PAUSE_MS: Final = 1_000
"""The pause when too many pops wait at a broker already."""
_FROM_FIRST, _FROM_LAST = 0, 1

log = Logger()


class Popper:
    """Pops for `group`. `is_from_last`: where a group begins in a queue that it has never popped.

    In order, a queue delivers nothing more until all that it delivered is acknowledged or visible
    again.
    """

    def __init__(
        self,
        instance: ClientInstance,
        group: str,
        subscriptions: Subscriptions,
        *,
        is_from_last: bool,
        is_orderly: bool = False,
    ) -> None:
        self._instance = instance
        self._clock = instance.clock
        self._group = group
        self._subscriptions = subscriptions
        self._is_from_last = is_from_last
        self._is_orderly = is_orderly
        self._knows_batches = True

    async def pop(
        self, queue: MessageQueue, count: int, invisible_ms: int, poll_ms: int
    ) -> list[MessageExt]:
        """Pops up to `count` messages that the subscription accepts; queue id -1 means any queue.

        The broker may wait for them for `poll_ms`. Raises PopNotSupported, MQBrokerError,
        BrokerNotExist, MessageDecodeError and errors of the connection.
        """
        subscription = self._subscriptions.of(queue.topic)
        address = await self._instance.address_to_subscribe(queue)
        header = PopMessageRequestHeader(
            consumer_group=self._group,
            topic=queue.topic,
            queue_id=queue.queue_id,
            max_msg_nums=count,
            invisible_time=invisible_ms,
            poll_time=poll_ms,
            born_time=self._clock.now_ms(),
            init_mode=_FROM_LAST if self._is_from_last else _FROM_FIRST,
            exp_type=subscription.expression_type,
            exp=subscription.sub_string,
            order=self._is_orderly,
            attempt_id=str(uuid.uuid4()) if self._is_orderly else None,
            bname=queue.broker_name,
        )
        reply = await self._instance.api.pop(address, header, poll_ms + ANSWER_MS)
        if reply.code != ResponseCode.SUCCESS or reply.header is None:
            if reply.code == ResponseCode.POLLING_FULL and poll_ms:
                await self._clock.pause(min(PAUSE_MS, poll_ms))  # too many wait there already
            return []
        popped = popped_messages(
            reply.header,
            reply.body_bytes,
            queue.broker_name,
            subscription,
            is_orderly=self._is_orderly,
        )
        if popped.unwanted:  # brokers filter by the hash of the tag only
            await self.ack_quietly(popped.unwanted)
        return popped.wanted

    async def has_something(self, topic: str, broker_name: str, timeout_ms: int) -> bool:
        """Whether a topic has something to pop at a broker, which may wait for it."""
        header = NotificationRequestHeader(
            consumer_group=self._group,
            topic=topic,
            queue_id=ANY_QUEUE,
            poll_time=timeout_ms,
            born_time=self._clock.now_ms(),
            order=self._is_orderly,
            attempt_id=str(uuid.uuid4()) if self._is_orderly else None,
            bname=broker_name,
        )
        address = await self._address(topic, broker_name)
        return await self._instance.api.has_to_pop(address, header, timeout_ms + ANSWER_MS)

    async def ack(self, messages: MessageExt | Iterable[MessageExt]) -> None:
        """Acknowledges one message, or many with one request for each broker.

        Raises MessageIllegal, MQBrokerError, BrokerNotExist and errors of the connection.
        """
        if isinstance(messages, MessageExt):
            topic = self._instance.with_namespace(messages.topic)
            header = ack_of(self._group, topic, messages)
            address = await self._address(topic, handle_of(messages).broker_name)
            await self._instance.api.ack(address, header)
            return
        many = [(self._instance.with_namespace(each.topic), each) for each in messages]
        for broker_name, body in acks_of(self._group, many).items():
            address = await self._address(many[0][0], broker_name)
            await self._instance.api.ack_many(address, body)

    async def ack_quietly(self, messages: list[MessageExt]) -> None:
        """Acknowledges messages; errors are logged, and the messages will be delivered again."""
        try:
            if len(messages) > 1 and self._knows_batches:
                try:
                    await self.ack(messages)
                except PopNotSupported:  # brokers of 5.0 only serve single acknowledgements
                    self._knows_batches = False
                else:
                    return
            for message in messages:
                await self.ack(message)
        except (MQClientError, RemotingError) as error:
            log.warn(
                "{count} messages will come again, as they were not acknowledged: {error}",
                count=len(messages),
                error=error,
            )

    async def change_invisible_time(self, message: MessageExt, invisible_ms: int) -> None:
        """Hides a message for `invisible_ms` from now on.

        Raises MessageIllegal, MQBrokerError (also if its invisible time was over), BrokerNotExist
        and errors of the connection.
        """
        topic = self._instance.with_namespace(message.topic)
        header = hiding(self._group, topic, message, invisible_ms)
        address = await self._address(topic, handle_of(message).broker_name)
        answer = await self._instance.api.change_invisible_time(address, header)
        set_new_handle(message, answer)

    async def _address(self, topic: str, broker_name: str) -> str:
        queue = MessageQueue(topic, broker_name, 0)
        return await self._instance.address_to_subscribe(queue)
