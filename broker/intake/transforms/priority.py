# SPDX-License-Identifier: Apache-2.0
"""_SYS_MSG_PRIORITY_: a message with a priority (5.4) goes to the queue with that number.

The higher the number, the sooner consumers that pop see it, if its topic is of the type PRIORITY
(broker/pop/queues.py); a number that is too high means the last queue. The queue counts in topics
of every type. A message that waits, or that has an order or a transaction, has no priority: the
property is taken off. A property that is no number, or a negative one, means nothing and stays.
Messages in a batch are stored as they are.

Java: SendMessageProcessor.sendMessage, Message.getPriority, TopicMessageType.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from txrocketmq.broker.intake.inner_message import TIMER_PROPERTIES, InnerMessage, Way
from txrocketmq.broker.intake.transform import ActsOn
from txrocketmq.remoting.message import properties as names
from txrocketmq.remoting.primitives.java_numbers import NumberFormatError, integer

_OTHER_TYPES: Final = frozenset({names.DELAY, names.SHARDING_KEY, *TIMER_PROPERTIES})
"""A message that has one of these properties is of the type DELAY or FIFO."""


class Priority:
    """Chooses the queue; `write_queues_of` returns the number of write queues of a topic."""

    acts_on = ActsOn(properties=frozenset({names.PRIORITY}), ways=Way.SEND)

    def __init__(self, write_queues_of: Callable[[str], int]) -> None:
        self._write_queues_of = write_queues_of

    def apply(self, message: InnerMessage, now_ms: int) -> None:
        """Sends the message to the queue of its priority, or removes the property."""
        properties = message.properties
        priority = _priority_of(properties[names.PRIORITY])
        if priority < 0:
            return
        is_half = properties.get(names.TRAN_MSG, "").lower() == "true"
        if is_half or not _OTHER_TYPES.isdisjoint(properties):
            del properties[names.PRIORITY]
            return
        message.queue_id = max(min(priority, self._write_queues_of(message.topic) - 1), 0)


def _priority_of(text: str) -> int:
    """Returns the number in the text as an int of Java; -1 if it is not a number."""
    try:
        return integer(text)
    except NumberFormatError:
        return -1
