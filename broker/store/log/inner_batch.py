# SPDX-License-Identifier: Apache-2.0
"""Batches that are one record: how many messages they contain, and how they enter their queue.

The record of a batch has the flag INNER_BATCH. Its properties say how many messages there are
(INNER_NUM) and, once it is made, the queue offset of the first (INNER_BASE). A record without the
flag is one message, in a queue of batches too.

Java: BatchConsumeQueue.assignQueueOffset, CommitLog.getMessageNum, setBatchSizeIfNeeded.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Final

from txrocketmq.broker.store.formats.put_message import MULTI_DISPATCH, PutMessage, PutStatus
from txrocketmq.broker.store.log.encode import fits
from txrocketmq.broker.store.log.visibility import enters_queue
from txrocketmq.broker.store.queues.batch_queue import MAX_BATCH_MESSAGES, BatchQueue
from txrocketmq.broker.store.queues.consume_queue import ConsumeQueue
from txrocketmq.remoting.message import properties as names
from txrocketmq.remoting.message.flags import MessageSysFlag
from txrocketmq.remoting.message.properties import decode_properties

_MAX_DIGITS: Final = len(str(MAX_BATCH_MESSAGES))


def count_of(sys_flag: int, properties: Mapping[str, str]) -> int:
    """How many messages a record contains; 0 for a batch that does not say it."""
    if not sys_flag & MessageSysFlag.INNER_BATCH:
        return 1
    text = properties.get(names.INNER_NUM, "")
    is_number = text.isascii() and text.isdecimal() and len(text) <= _MAX_DIGITS
    count = int(text) if is_number else 0
    return count if count <= MAX_BATCH_MESSAGES else 0


def enter(
    message: PutMessage, sys_flag: int, layout: struct.Struct, room_bytes: int, queue: ConsumeQueue
) -> bytes | PutStatus:
    """Returns the properties of a message that becomes the next pending one in a queue of batches.

    They may have `room_bytes`. Returns a status if something is wrong with the message, such as a
    batch for a plain queue. Everything is checked before the queue is touched.
    """
    is_batch = bool(sys_flag & MessageSysFlag.INNER_BATCH)
    if not isinstance(queue, BatchQueue) or sys_flag & MULTI_DISPATCH:
        return PutStatus.MESSAGE_ILLEGAL
    if not enters_queue(sys_flag):
        return PutStatus.MESSAGE_ILLEGAL if is_batch else message.properties
    properties = message.properties
    values = decode_properties(str(properties, "utf-8", "replace")) if is_batch else {}
    count = count_of(sys_flag, values)
    if not count or names.INNER_BASE in values:
        return PutStatus.MESSAGE_ILLEGAL
    if not fits(message, layout, sys_flag):
        return PutStatus.MESSAGE_ILLEGAL
    most_bytes = len(properties) + len(_base(1 << 62)) if is_batch else len(properties)
    if most_bytes > room_bytes:
        return PutStatus.PROPERTIES_SIZE_EXCEEDED
    offset = queue.enter(count)
    return properties + _base(offset) if is_batch else properties


def _base(offset: int) -> bytes:
    return f"{names.INNER_BASE}\x01{offset}\x02".encode()
