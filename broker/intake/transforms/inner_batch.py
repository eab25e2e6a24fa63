# SPDX-License-Identifier: Apache-2.0
"""Batches that are stored as one record (INNER_NUM, INNER_BATCH), in topics of batches only.

A topic whose attributes promise something that is not served takes nothing either: the original
would find plain queues where it expects others. Java: HookUtils.checkInnerBatch,
MessageDecoder.countInnerMsgNum.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import Final

from txrocketmq.broker.intake.inner_message import InnerMessage, Way
from txrocketmq.broker.intake.transform import ActsOn, NotTaken
from txrocketmq.broker.store.formats.put_message import PutStatus
from txrocketmq.broker.store.queues.batch_queue import MAX_BATCH_MESSAGES
from txrocketmq.broker.tables.attributes import (
    CLEANUP_POLICY,
    QUEUE_TYPE,
    has_batch_queues,
    why_nothing_is_taken,
)
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.errors import ResponseError
from txrocketmq.remoting.message import properties as names
from txrocketmq.remoting.message.flags import MessageSysFlag
from txrocketmq.remoting.message.record import BATCH_ENTRY_HEAD, PROPERTIES_LENGTH
from txrocketmq.remoting.primitives.packing import fixed

_HEAD: Final = fixed(BATCH_ENTRY_HEAD).struct
_LENGTH: Final = fixed(PROPERTIES_LENGTH).struct


class InnerBatch:
    """Refuses batches that are not valid; `attributes_of` returns the attributes of a topic."""

    acts_on = ActsOn(
        properties=frozenset({names.INNER_NUM}),
        topic_attributes=frozenset({QUEUE_TYPE, CLEANUP_POLICY}),
        sys_flags=MessageSysFlag.INNER_BATCH,
        ways=Way.SEND | Way.BATCH | Way.SEND_BACK | Way.REPLY,
    )

    def __init__(self, attributes_of: Callable[[str], Mapping[str, str] | None]) -> None:
        self._attributes_of = attributes_of

    def apply(self, message: InnerMessage, now_ms: int) -> None:
        """Refuses a batch to a topic of plain queues, and one that does not tell its number of
        messages.
        """
        attributes = self._attributes_of(message.topic)
        why = why_nothing_is_taken(attributes)
        if why:
            raise ResponseError(
                ResponseCode.MESSAGE_ILLEGAL,
                f"the topic {message.topic} takes no messages here: {why}",
            )
        number = message.properties.get(names.INNER_NUM)
        if not message.sys_flag & MessageSysFlag.INNER_BATCH:
            if number is not None:
                raise NotTaken(PutStatus.MESSAGE_ILLEGAL)
            return
        count = count_entries(message.body)
        is_sound = 0 < count <= MAX_BATCH_MESSAGES and number == str(count)
        if not is_sound or not has_batch_queues(attributes):
            raise NotTaken(PutStatus.MESSAGE_ILLEGAL)
        message.properties.pop(names.INNER_BASE, None)


def count_entries(body: bytes) -> int:
    """Counts the messages that lie end to end in the body of a batch; 0 if the body is not
    sound.
    """
    at, count = 0, 0
    while at < len(body):
        try:
            *_, body_bytes = _HEAD.unpack_from(body, at)
            (properties_bytes,) = _LENGTH.unpack_from(body, at + _HEAD.size + body_bytes)
        except struct.error:
            return 0
        if body_bytes < 0 or properties_bytes < 0:
            return 0
        at += _HEAD.size + body_bytes + _LENGTH.size + properties_bytes
        count += 1
    return count if at == len(body) else 0
