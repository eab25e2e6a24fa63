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

from collections.abc import Sequence
from typing import Final

from twisted.logger import Logger

from txrocketmq.remoting.message import properties as names
from txrocketmq.remoting.message.compression import CompressionError, PlainRoom
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

_INNER_BATCH: Final = MessageSysFlag.INNER_BATCH | MessageSysFlag.NEED_UNWRAP
_UNUSUAL: Final = MessageSysFlag.INNER_BATCH | MessageSysFlag.COMPRESSED

log = Logger()


def wanted_messages(
    body: RecordBytes,
    queue: MessageQueue,
    subscription: SubscriptionData,
    *,
    room: PlainRoom | None = None,
    decompress_bodies: bool = True,
) -> list[MessageExt]:
    """Returns the messages in the body of a pull of a queue that the subscription accepts.

    Bodies that are damaged, or become too long, stay as they are, with their flag. Without
    `decompress_bodies` all do, but for inner batches. `room` is for those of an answer that comes
    in parts. Raises MessageDecodeError for bytes that are no messages.
    """
    found: list[MessageExt] = []
    offset, end = 0, len(body)
    broker_name = queue.broker_name
    while offset < end:
        # Written out: a partial with a keyword takes a tenth of a microsecond more a message.
        message, offset = decode_message(body, offset, decompress_body=False)
        message.broker_name = broker_name
        if message.sys_flag & _UNUSUAL:
            room = room or PlainRoom()
            found += _taken_apart(message, room, decompress_bodies=decompress_bodies)
        else:
            found.append(message)
    if is_light(queue.topic):
        for message in found:
            _put_in_light_queue(message, queue)
    if subscription.accepts_all:
        return found
    return [message for message in found if subscription.accepts_tags(message.tags)]


def _taken_apart(
    message: MessageExt, room: PlainRoom, *, decompress_bodies: bool
) -> Sequence[MessageExt]:
    """Returns a message with its body decompressed, or those of an inner batch.

    What is damaged, or becomes too long, stays as it is.
    """
    is_batch = message.sys_flag & _INNER_BATCH == _INNER_BATCH
    try:
        if message.sys_flag & MessageSysFlag.COMPRESSED and message.body:
            if not (is_batch or decompress_bodies):
                return (message,)
            message.body = room.decompress(message.body, message.sys_flag)
            message.sys_flag &= ~MessageSysFlag.COMPRESSED
        return unwrap_inner_batch(message) if is_batch else (message,)
    except (CompressionError, MessageDecodeError) as error:
        what = message.offset_msg_id
        log.warn("message {id} is passed on as it is: {error}", id=what, error=error)
        return (message,)


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
