# SPDX-License-Identifier: Apache-2.0
"""Where a message is in light queues (LMQ), which its properties tell.

A producer lists light queues in INNER_MULTI_DISPATCH. The broker adds the offset that the message
gets in each of them, in INNER_MULTI_QUEUE_OFFSET and in the same order. The message itself has the
topic, the queue id and the offset of the queue that it was sent to, so that two messages of one
light queue may have the same offset. A light queue is a topic with the one queue 0.

Java: MultiDispatchUtils, LmqDispatch; MQClientAPIImpl.processPopResponse.
"""

from __future__ import annotations

from typing import Final

from txrocketmq.remoting.message import properties as names
from txrocketmq.remoting.message.message import MessageExt
from txrocketmq.remoting.message.topics import (
    LIGHT_SEPARATOR,
    LMQ_PREFIX,
    may_enter_light_queues,
)

QUEUE_ID: Final = 0
_MAX_DIGITS: Final = 18
"""A number of at most this many digits certainly fits into a Java long."""


def is_light(topic: str) -> bool:
    """Whether the topic is a light queue (MixAll.isLmq)."""
    return topic.startswith(LMQ_PREFIX)


def places(topic: str, dispatch: str | None, offsets: str | None) -> list[tuple[str, int]]:
    """A message's light queues and its offsets there, given the values of its two properties."""
    if not dispatch or not offsets or not may_enter_light_queues(topic):
        return []
    queues, numbers = dispatch.split(LIGHT_SEPARATOR), offsets.split(LIGHT_SEPARATOR)
    if len(queues) != len(numbers):
        return []
    return [
        (queue, int(number))
        for queue, number in zip(queues, numbers, strict=True)
        if is_light(queue)
        and number.isascii()
        and number.isdecimal()
        and len(number) <= _MAX_DIGITS
    ]


def light_offset(message: MessageExt, light_queue: str) -> int:
    """The offset of a message in a light queue; its own one if it was sent to that queue."""
    listing = message.properties.get(names.INNER_MULTI_DISPATCH)
    offsets = message.properties.get(names.INNER_MULTI_QUEUE_OFFSET)
    return dict(places(message.topic, listing, offsets)).get(light_queue, message.queue_offset)
