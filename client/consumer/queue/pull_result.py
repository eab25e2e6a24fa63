# SPDX-License-Identifier: Apache-2.0
"""The result of a pull: the messages that match the subscription, in the form for listeners.

Brokers filter by the hash of the tag only, and give inner batches away whole; the rest is done
here. A message that was sent back has the topic it was first sent to. A message that is read from
a light queue (LMQ) has its place in that queue, by which consumers count; the original's consumers
do that for messages that they pop, and otherwise count by the place in the queue that the message
was sent to, which several messages of one light queue may have.

Java: PullAPIWrapper.processPullResult, DefaultMQPushConsumerImpl.resetRetryAndNamespace.
"""

from __future__ import annotations

from typing import Final

from twisted.logger import Logger

from txrocketmq.remoting.message import properties as names
from txrocketmq.remoting.message.flags import MessageSysFlag
from txrocketmq.remoting.message.light_queues import is_light, light_offset
from txrocketmq.remoting.message.message import (
    MessageDecodeError,
    MessageExt,
    MessageQueue,
    RecordBytes,
    decode_message,
    unwrap_inner_batch,
)
from txrocketmq.remoting.message.tags import SubscriptionData
from txrocketmq.remoting.message.topics import RETRY_PREFIX

_BATCH: Final = MessageSysFlag.INNER_BATCH
_INNER_BATCH: Final = _BATCH | MessageSysFlag.NEED_UNWRAP

log = Logger()


def wanted_messages(
    body: RecordBytes,
    queue: MessageQueue,
    subscription: SubscriptionData,
    *,
    decompress_bodies: bool = True,
) -> list[MessageExt]:
    """Returns the messages in the body of a pull of a queue that the subscription accepts.

    Without `decompress_bodies`, bodies stay as they are, with their flag, but for inner batches.
    Raises MessageDecodeError for bytes that are no messages.
    """
    found: list[MessageExt] = []
    offset, end = 0, len(body)
    decode = decode_message if decompress_bodies else _with_its_body
    broker_name = queue.broker_name
    while offset < end:
        try:
            message, offset = decode(body, offset)
        except MessageDecodeError as error:
            message, offset = _with_damaged_body(body, offset, error)
        message.broker_name = broker_name
        if message.sys_flag & _BATCH and message.sys_flag & _INNER_BATCH == _INNER_BATCH:
            found += unwrap_inner_batch(message)
        else:
            found.append(message)
    if is_light(queue.topic):
        for message in found:
            _put_in_light_queue(message, queue)
    if subscription.accepts_all:
        return found
    return [message for message in found if subscription.accepts_tags(message.tags)]


def _with_its_body(body: RecordBytes, offset: int) -> tuple[MessageExt, int]:
    """Decodes a message with the body that it was sent with, unless it is an inner batch."""
    message, end = decode_message(body, offset, decompress_body=False)
    if message.sys_flag & _INNER_BATCH == _INNER_BATCH:
        return decode_message(body, offset)
    return message, end


def _put_in_light_queue(message: MessageExt, queue: MessageQueue) -> None:
    """Gives a message its place in the light queue that it is read from."""
    if names.POP_CK in message.properties or message.topic.startswith(RETRY_PREFIX):
        return  # what was popped of a retry topic has its place there
    message.queue_offset = light_offset(message, queue.topic)
    message.queue_id = queue.queue_id


def restore_topic(message: MessageExt) -> None:
    """Gives a redelivered message the topic to which it was first sent."""
    origin = message.properties.get(names.RETRY_TOPIC)
    if origin and message.topic.startswith(RETRY_PREFIX):
        message.topic = origin


def _with_damaged_body(
    body: RecordBytes, offset: int, error: MessageDecodeError
) -> tuple[MessageExt, int]:
    """Decodes a message whose body cannot be decompressed: it keeps it as it is, with its flag."""
    message, end = decode_message(body, offset, decompress_body=False)
    log.warn("message {id} is damaged: {error}", id=message.offset_msg_id, error=error)
    return message, end
