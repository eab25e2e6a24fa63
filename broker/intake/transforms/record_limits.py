# SPDX-License-Identifier: Apache-2.0
"""Refuses messages that no record can hold: with too long a topic name, or without a body.

A retry topic may have a long name, which takes the second form of the record; any other is refused
beyond 127 bytes, as by 5.4. Java: HookUtils.checkBeforePutMessage.
"""

from __future__ import annotations

from txrocketmq.broker.intake.inner_message import InnerMessage, Way
from txrocketmq.broker.intake.transform import NotTaken
from txrocketmq.broker.store.formats.put_message import PutStatus
from txrocketmq.remoting.message.message import MAX_TOPIC_BYTES_V1
from txrocketmq.remoting.message.topics import RETRY_PREFIX


def check_topic(topic: str) -> None:
    """Raises NotTaken if messages cannot be stored under this topic."""
    if topic.startswith(RETRY_PREFIX):
        return
    if len(topic.encode("utf-8", "replace")) > MAX_TOPIC_BYTES_V1:
        raise NotTaken(PutStatus.MESSAGE_ILLEGAL)


def check_message(message: InnerMessage) -> None:
    """Raises NotTaken for a message that cannot be stored.

    A message that was stored once already may be delivered, and an entry of a batch may be empty.
    """
    check_topic(message.topic)
    if not message.body and message.way in Way.SEND | Way.SEND_BACK | Way.REPLY:
        raise NotTaken(PutStatus.MESSAGE_ILLEGAL)
