# SPDX-License-Identifier: Apache-2.0
"""Messages and batches as they leave: checked, named, compressed; the same in every attempt.

Counterpart of what DefaultMQProducerImpl.sendKernelImpl and MessageBatch do before a request.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from txrocketmq.client.base.config import ProducerConfig
from txrocketmq.client.base.errors import MessageIllegal
from txrocketmq.client.base.validators import check_message
from txrocketmq.client.core.instance import ClientInstance
from txrocketmq.client.core.trace import MessageType
from txrocketmq.remoting.call import Call
from txrocketmq.remoting.frame.form import Filled, Form
from txrocketmq.remoting.message import properties as names
from txrocketmq.remoting.message.compression import compress
from txrocketmq.remoting.message.flags import MessageSysFlag
from txrocketmq.remoting.message.message import Message, MessageQueue, encode_batch
from txrocketmq.remoting.message.properties import encode_properties
from txrocketmq.remoting.message.topics import RETRY_PREFIX
from txrocketmq.remoting.protocol import send
from txrocketmq.remoting.protocol.send import (
    SendMessageRequestHeader,
    SendMessageResponseHeader,
)

REPLY: Final = "reply"
MAX_FORMS: Final = 4_096
"""When there are more, all are dropped and made again when they are needed."""
_BESIDE_REACTOR_BYTES: Final = 256 * 1024
"""Bodies of this size and more are compressed in a thread."""
_DELAYS: Final = (
    names.DELAY,
    names.START_DELIVER_TIME,
    names.TIMER_DELAY_MS,
    names.TIMER_DELAY_SEC,
    names.TIMER_DELIVER_MS,
)


@dataclass(frozen=True, slots=True, eq=False)
class Shape:
    """What nearly all parcels have in common; each exists once, so it can be in keys."""

    call: Call[SendMessageRequestHeader, SendMessageResponseHeader]
    """The kind of request that sends such a parcel."""
    reconsume_times: int = 0
    max_reconsume_times: int | None = None


PLAIN_SHAPE: Final = Shape(send.SEND_MESSAGE_V2)
BATCH_SHAPE: Final = Shape(send.SEND_BATCH_MESSAGE)
REPLY_SHAPE: Final = Shape(send.SEND_REPLY_MESSAGE_V2)


@dataclass(slots=True)
class Parcel:
    """A message or batch as it is sent; `message` is the original, or the first one of a batch.

    Nothing changes it; it is not frozen, as that would take longer to make.
    """

    message: Message
    topic: str
    body: bytes
    properties: str
    sys_flag: int
    msg_id: str
    shape: Shape

    @property
    def message_type(self) -> MessageType:
        """The type of the message in traces."""
        own = self.message.properties
        if any(name in own for name in _DELAYS):
            return MessageType.DELAY
        return MessageType.TRANS_HALF if own.get(names.TRAN_MSG) == "true" else MessageType.NORMAL


@lru_cache(maxsize=256)
def _retried(shape: Shape, reconsume_times: int, max_reconsume_times: int | None) -> Shape:
    return Shape(shape.call, reconsume_times, max_reconsume_times)


class Packer:
    """Makes the parcels and headers of one producer."""

    def __init__(self, instance: ClientInstance, group: str, config: ProducerConfig) -> None:
        self._instance = instance
        self.group = instance.with_namespace(group)
        self._config = config
        self._forms: dict[tuple[Any, ...], Form] = {}
        """Prepared headers: one for each queue that is sent to, and what else seldom varies."""

    async def message(self, message: Message) -> Parcel:
        """Prepares a message to be sent. Raises MessageIllegal."""
        parcel = self.at_once(message)
        if parcel is None:
            config, body = self._config, message.body
            parcel = self._parcel(message, await self._instance.clock.in_thread(
                lambda: compress(body, config.compression, config.compression_level)
            ))  # fmt: skip
        return parcel

    def at_once(self, message: Message) -> Parcel | None:
        """Prepares a message without waiting, or returns None.

        It is None if the body is so large that it is compressed in a thread.
        """
        config, body = self._config, message.body
        check_message(message, config.max_message_bytes)
        if len(body) < config.compress_body_over_bytes:
            return self._parcel(message, None)
        if len(body) >= _BESIDE_REACTOR_BYTES:
            return None
        return self._parcel(message, compress(body, config.compression, config.compression_level))

    def _parcel(self, message: Message, compressed: bytes | None) -> Parcel:
        msg_id = self._give_key(message)
        topic, body, sys_flag = message.topic, message.body, 0
        if compressed is not None:
            body, sys_flag = compressed, MessageSysFlag.COMPRESSED | self._config.compression.flag
        own = {names.WAIT: "true", **message.properties}
        if own.get(names.TRAN_MSG) == "true":
            sys_flag |= MessageSysFlag.TRANSACTION_PREPARED_TYPE
        instance = self._instance
        named = topic
        if instance.config.namespace:
            own[names.INSTANCE_ID] = instance.config.namespace
            named = instance.with_namespace(topic)
        shape = REPLY_SHAPE if own.get(names.MSG_TYPE) == REPLY else PLAIN_SHAPE
        if topic.startswith(RETRY_PREFIX):
            times, most = own.get(names.RECONSUME_TIME), own.get(names.MAX_RECONSUME_TIMES)
            shape = _retried(shape, int(times or 0), None if most is None else int(most))
        return Parcel(message, named, body, encode_properties(own), sys_flag, msg_id, shape)

    def batch(self, messages: Sequence[Message]) -> Parcel:
        """Prepares a batch, checked as by MessageBatch.generateFromList and not compressed."""
        if not messages:
            raise MessageIllegal("a batch needs at least one message")
        first = messages[0]
        for message in messages:
            check_message(message, self._config.max_message_bytes)
            if message.topic != first.topic:
                raise MessageIllegal("all messages of a batch must have the same topic")
            if message.waits_for_store != first.waits_for_store:
                raise MessageIllegal("all messages of a batch wait for the store, or none")
            if any(name in message.properties for name in _DELAYS):
                raise MessageIllegal("a batch cannot contain delayed messages")
        if first.topic.startswith(RETRY_PREFIX):
            raise MessageIllegal("retry topics take no batches")
        keys = [self._give_key(message) for message in messages]
        body = encode_batch(messages)
        if len(body) > self._config.max_message_bytes:
            raise MessageIllegal(
                f"the batch of {len(body)} bytes is larger than {self._config.max_message_bytes};"
                " split_batches makes smaller ones"
            )
        wait = "true" if first.waits_for_store else "false"
        own = {names.WAIT: wait, names.UNIQ_KEY: self._new_key()}
        if self._instance.config.namespace:
            own[names.INSTANCE_ID] = self._instance.config.namespace
        topic = self._instance.with_namespace(first.topic)
        properties = encode_properties(own)
        return Parcel(first, topic, body, properties, 0, ",".join(keys), BATCH_SHAPE)

    def header(self, parcel: Parcel, queue: MessageQueue) -> Filled:
        """Returns the header of an attempt, with the fields of SendMessageRequestHeader."""
        key = parcel.topic, queue.queue_id, queue.broker_name, parcel.shape
        form = self._forms.get(key)
        if form is None:
            if len(self._forms) >= MAX_FORMS:
                self._forms.clear()
            form = self._forms[key] = self._form(parcel, queue)
        return form.filled(
            parcel.sys_flag,
            self._instance.clock.now_ms(),
            0 if parcel.shape is BATCH_SHAPE else parcel.message.flag,
            parcel.properties,
        )

    def _form(self, parcel: Parcel, queue: MessageQueue) -> Form:
        shape = parcel.shape
        header = SendMessageRequestHeader(
            producer_group=self.group,
            topic=parcel.topic,
            default_topic=self._config.create_topic_key,
            default_topic_queue_nums=self._config.default_topic_queue_nums,
            queue_id=queue.queue_id,
            sys_flag=0,
            born_timestamp=0,
            flag=0,
            properties="",
            reconsume_times=shape.reconsume_times,
            max_reconsume_times=shape.max_reconsume_times,
            unit_mode=self._instance.config.unit_mode,
            batch=shape is BATCH_SHAPE,
            bname=queue.broker_name,
        )
        return Form(shape.call, header, "sys_flag", "born_timestamp", "flag", "properties")

    def _give_key(self, message: Message) -> str:
        key = message.unique_key
        if key is None:
            key = message.properties[names.UNIQ_KEY] = self._new_key()
        return key

    def _new_key(self) -> str:
        return self._instance.unique_keys.create(self._instance.clock.now_ms())
