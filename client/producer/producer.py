# SPDX-License-Identifier: Apache-2.0
"""Sends messages: one by one, one-way, in batches; tries other brokers when one fails.

All attempts of a send share one time limit. A broker that cannot be reached, or answers with a code
that another broker may not answer with, is avoided by the next attempt. Counterpart of
DefaultMQProducer and DefaultMQProducerImpl; transactions, request-reply and the latency table are
not here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from txrocketmq.client import errors
from txrocketmq.client.config import ProducerConfig
from txrocketmq.client.errors import (
    BrokerNotExist,
    MessageIllegal,
    MQBrokerError,
    MQClientError,
    SendFailed,
)
from txrocketmq.client.instance import ClientInstance
from txrocketmq.client.producer.send_result import SendResult, SendStatus, send_result
from txrocketmq.client.validate import check_group, check_message
from txrocketmq.remoting.errors import ConnectError, RemotingError, RequestTimeout
from txrocketmq.remoting.message import properties as names
from txrocketmq.remoting.message.compression import compress
from txrocketmq.remoting.message.flags import MessageSysFlag
from txrocketmq.remoting.message.message import Message, MessageQueue, encode_batch
from txrocketmq.remoting.message.properties import encode_properties
from txrocketmq.remoting.message.topics import RETRY_PREFIX
from txrocketmq.remoting.protocol.send import SendMessageRequestHeader


@dataclass(frozen=True, slots=True)
class _Parcel:
    """A message or a batch as it leaves, the same in every attempt."""

    topic: str
    body: bytes
    properties: str
    sys_flag: int
    flag: int
    msg_id: str
    is_batch: bool


class Producer:
    """A producer of a group. `instance` is shared and started by the caller.

    Every send raises MessageIllegal for what no broker would take, NoRoute and NoNameServer when
    there is nowhere to send to, MQBrokerError for an answer that no other broker would give
    differently, and SendFailed when all attempts failed.
    """

    def __init__(
        self, instance: ClientInstance, group: str, config: ProducerConfig | None = None
    ) -> None:
        check_group(group)
        self.group = group
        self.config = config or ProducerConfig()
        self._instance = instance
        instance.register_producer(group)

    async def send(
        self,
        message: Message,
        *,
        queue: MessageQueue | None = None,
        timeout_ms: int | None = None,
    ) -> SendResult:
        """Sends a message, to this queue or to the next of its topic.

        The message is given a unique key if it has none. With a queue there is one attempt, whose
        error is raised as it is.
        """
        return await self._send(self._parcel(message), queue, timeout_ms)

    async def send_batch(
        self,
        messages: Sequence[Message],
        *,
        queue: MessageQueue | None = None,
        timeout_ms: int | None = None,
    ) -> SendResult:
        """Sends messages of one topic with one request, into one queue."""
        return await self._send(self._batch(messages), queue, timeout_ms)

    async def send_oneway(self, message: Message, *, queue: MessageQueue | None = None) -> None:
        """Sends a message once, without waiting for an answer: it may be lost."""
        parcel = self._parcel(message)
        target = queue or await self._next_queue(parcel.topic, None)
        address = await self._instance.address_to_publish(target)
        self._instance.api.send_oneway(address, self._header(parcel, target), parcel.body)

    # ---------------------------------------------------------------- parcels

    def _parcel(self, message: Message) -> _Parcel:
        config = self.config
        check_message(message, config.max_message_bytes)
        msg_id = self._give_key(message)
        body, sys_flag = message.body, 0
        if len(body) >= config.compress_body_over_bytes:
            body = compress(body, config.compression, config.compression_level)
            sys_flag |= MessageSysFlag.COMPRESSED | config.compression.flag
        properties = encode_properties({names.WAIT: "true", **message.properties})
        return _Parcel(
            message.topic, body, properties, sys_flag, message.flag, msg_id, is_batch=False
        )

    def _batch(self, messages: Sequence[Message]) -> _Parcel:
        """Checks as MessageBatch.generateFromList does; its members are not compressed."""
        if not messages:
            raise MessageIllegal("a batch needs at least one message")
        first = messages[0]
        for message in messages:
            check_message(message, self.config.max_message_bytes)
            if message.topic != first.topic:
                raise MessageIllegal("all messages of a batch have the same topic")
            if message.waits_for_store != first.waits_for_store:
                raise MessageIllegal("all messages of a batch wait for the store, or none")
            if names.DELAY in message.properties:
                raise MessageIllegal("a batch holds no delayed messages")
        if first.topic.startswith(RETRY_PREFIX):
            raise MessageIllegal("retry topics take no batches")
        keys = [self._give_key(message) for message in messages]
        body = encode_batch(messages)
        if len(body) > self.config.max_message_bytes:
            raise MessageIllegal(
                f"the batch of {len(body)} bytes is larger than {self.config.max_message_bytes}"
            )
        wait = "true" if first.waits_for_store else "false"
        own_key = self._instance.unique_keys.create(self._instance.clock.now_ms())
        properties = encode_properties({names.WAIT: wait, names.UNIQ_KEY: own_key})
        return _Parcel(first.topic, body, properties, 0, 0, ",".join(keys), is_batch=True)

    def _give_key(self, message: Message) -> str:
        key = message.unique_key
        if key is None:
            key = self._instance.unique_keys.create(self._instance.clock.now_ms())
            message.properties[names.UNIQ_KEY] = key
        return key

    def _header(self, parcel: _Parcel, queue: MessageQueue) -> SendMessageRequestHeader:
        return SendMessageRequestHeader(
            producer_group=self.group,
            topic=parcel.topic,
            default_topic=self.config.create_topic_key,
            default_topic_queue_nums=self.config.default_topic_queue_nums,
            queue_id=queue.queue_id,
            sys_flag=parcel.sys_flag,
            born_timestamp=self._instance.clock.now_ms(),
            flag=parcel.flag,
            properties=parcel.properties,
            reconsume_times=0,
            unit_mode=False,
            batch=parcel.is_batch,
            bname=queue.broker_name,
        )

    # --------------------------------------------------------------- attempts

    async def _send(
        self, parcel: _Parcel, queue: MessageQueue | None, timeout_ms: int | None
    ) -> SendResult:
        config, now_ms = self.config, self._instance.clock.now_ms
        timeout_ms = timeout_ms or config.send_timeout_ms
        if queue is not None:
            return await self._attempt(parcel, queue, timeout_ms)
        deadline_ms = now_ms() + timeout_ms
        attempts: list[tuple[str, Exception]] = []
        result: SendResult | None = None
        last_broker: str | None = None
        for _ in range(1 + config.retry_times):
            target = await self._next_queue(parcel.topic, last_broker)
            last_broker = target.broker_name
            left_ms = deadline_ms - now_ms()
            if left_ms <= 0:
                break
            try:
                result = await self._attempt(parcel, target, left_ms)
            except MQBrokerError as error:
                attempts.append((last_broker, error))
                if error.code not in config.retry_response_codes:
                    if result is None:
                        raise
                    break
            except (BrokerNotExist, RemotingError) as error:
                attempts.append((last_broker, error))
            else:
                is_safe = result.status is SendStatus.SEND_OK
                if is_safe or not config.retry_another_broker_when_not_store_ok:
                    return result
        if result is not None:
            return result
        if not attempts:
            attempts.append(("-", RequestTimeout(f"{timeout_ms} ms were over before the first")))
        raise SendFailed(parcel.topic, attempts, _code_of(attempts[-1][1]))

    async def _attempt(self, parcel: _Parcel, queue: MessageQueue, timeout_ms: int) -> SendResult:
        address = await self._instance.address_to_publish(queue)
        reply = await self._instance.api.send(
            address, self._header(parcel, queue), parcel.body, timeout_ms
        )
        return send_result(reply, queue, parcel.msg_id)

    async def _next_queue(self, topic: str, last_broker: str | None) -> MessageQueue:
        info = await self._instance.publish_info(
            topic, self.config.create_topic_key, self.config.default_topic_queue_nums
        )
        return info.select(last_broker)


def _code_of(error: Exception) -> int:
    """The number under which the Java client reports what went wrong last."""
    if isinstance(error, MQClientError):
        return error.code
    if isinstance(error, ConnectError):
        return errors.CONNECT_BROKER
    if isinstance(error, RequestTimeout):
        return errors.ACCESS_BROKER_TIMEOUT
    return MQClientError.code
