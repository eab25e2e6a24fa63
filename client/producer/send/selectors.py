# SPDX-License-Identifier: Apache-2.0
"""Which queue a message goes to: functions for `send(..., selector=..., key=...)`.

Messages with the same key go to the same queue, as long as the topic has the same queues: whether
this client or the Java client sends them. Counterpart of SelectMessageQueueByHash and ByRandom.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

from txrocketmq.client.base.java_hash import java_hash_code
from txrocketmq.remoting.message.message import Message, MessageQueue

Selector = Callable[[Sequence[MessageQueue], Message, Any], MessageQueue]
"""Takes the queues of the topic, the message and the key; gives one of the queues."""


def by_hash(queues: Sequence[MessageQueue], _: Message, key: Any) -> MessageQueue:
    """Chooses the queue of a key by the hash code that the key has in Java."""
    value = java_hash_code(key)
    return queues[abs(value) % len(queues)]


def by_random(queues: Sequence[MessageQueue], _: Message, __: Any) -> MessageQueue:
    """Chooses any queue."""
    return random.choice(queues)
