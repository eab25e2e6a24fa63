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
        """Refuses a batch to a topic of plain queues, and one that does not tell its length."""
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
        count = message.counted or count_entries(message.body)
        is_sound = 0 < count <= MAX_BATCH_MESSAGES and number == str(count)
        if not is_sound or not has_batch_queues(attributes):
            raise NotTaken(PutStatus.MESSAGE_ILLEGAL)
        message.properties.pop(names.INNER_BASE, None)


class Counted:
    """The messages that lie end to end in the body of a batch, counted some at a time.

    `at` is where in the body the next one begins.
    """

    def __init__(self, body: bytes, at: int = 0) -> None:
        self._body = body
        self.at = at
        self.count = 0
        self.is_done = False
        """Whether `count` has them all, or is 0 because the body is not sound or has too many."""

    def count_on(self, most: int) -> None:
        """Counts so many more, if there are more."""
        body, at, count = self._body, self.at, self.count
        end, head, length, head_bytes = (
            len(body),
            _HEAD.unpack_from,
            _LENGTH.unpack_from,
            _HEAD.size,
        )
        until = min(count + most, MAX_BATCH_MESSAGES + 1)
        try:
            while at < end and count < until:
                *_, body_bytes = head(body, at)
                text_at = at + head_bytes + body_bytes
                (properties_bytes,) = length(body, text_at)
                if body_bytes < 0 or properties_bytes < 0:
                    at = end + 1
                    break
                at = text_at + _LENGTH.size + properties_bytes
                count += 1
        except struct.error:
            at = end + 1
        self.at, self.count = at, count
        if at > end or count > MAX_BATCH_MESSAGES:
            self.is_done, self.count = True, 0
        elif at == end:
            self.is_done = True


def count_entries(body: bytes) -> int:
    """Counts all messages of a batch; 0 if the body is not sound or has too many."""
    counted = Counted(body)
    while not counted.is_done:
        counted.count_on(MAX_BATCH_MESSAGES)
    return counted.count
