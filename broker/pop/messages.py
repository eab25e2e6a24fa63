# SPDX-License-Identifier: Apache-2.0
"""Messages as they are popped: single ones, each with its own offset in its queue.

A get of a queue of batches gives records, which may be batches of many messages. They are taken
apart here, so that what follows knows messages only: a pop gives no more than was asked for, and
may begin and end within a batch; each message is acknowledged, hidden and brought back by itself.
A message of a batch looks as it does to a client that has pulled the batch and taken it apart. A
batch that cannot be taken apart is handed out as the one message that its record is.

The original hands out whole records, which clients take apart only if they pull; those that pop
give their listener the batch as one message. Java: PopMessageProcessor.popMsgFromQueue,
MessageDecoder.decodeMessage.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from typing import Final

from txrocketmq.broker.intake.transforms.inner_batch import count_entries
from txrocketmq.broker.store.get.get_result import GetMessageStatus, GetResult
from txrocketmq.broker.store.log.inner_batch import count_of
from txrocketmq.remoting.call import Buffer
from txrocketmq.remoting.message import properties as names
from txrocketmq.remoting.message import record as records
from txrocketmq.remoting.message.flags import MessageSysFlag
from txrocketmq.remoting.message.light_queues import is_light, light_offset
from txrocketmq.remoting.message.message import (
    MessageDecodeError,
    MessageExt,
    decode_message,
    inner_records,
    unwrap_inner_batch,
)
from txrocketmq.remoting.primitives.packing import fixed

_SIZE: Final = fixed(records.RECORD_FIXED).codec_of("total_size")
_SIZE_AT: Final = fixed(records.RECORD_FIXED).offset_of("total_size")
_QUEUE_OFFSET: Final = fixed(records.RECORD_FIXED).codec_of("queue_offset")
_QUEUE_OFFSET_AT: Final = fixed(records.RECORD_FIXED).offset_of("queue_offset")
_SYS_FLAG: Final = fixed(records.RECORD_FIXED).codec_of("sys_flag")
_SYS_FLAG_AT: Final = fixed(records.RECORD_FIXED).offset_of("sys_flag")
_BATCH: Final = MessageSysFlag.INNER_BATCH | MessageSysFlag.NEED_UNWRAP


def records_of(buffers: Sequence[Buffer]) -> list[memoryview]:
    """Splits slices of the log into records."""
    found: list[memoryview] = []
    for buffer in buffers:
        view, at = memoryview(buffer), 0
        while at < len(view):
            size = _SIZE.unpack_from(view, at + _SIZE_AT)[0]
            found.append(view[at : at + size])
            at += size
    return found


def offsets_of(topic: str, buffers: Sequence[Buffer]) -> list[int]:
    """The offsets, in a queue of the topic, of the messages in slices of the log."""
    found = records_of(buffers)
    if is_light(topic):
        decoded = (decode_message(record, decompress_body=False)[0] for record in found)
        return [light_offset(message, topic) for message in decoded]
    return [_QUEUE_OFFSET.unpack_from(record, _QUEUE_OFFSET_AT)[0] for record in found]


def one_by_one(got: GetResult, offset: int, max_count: int) -> GetResult:
    """Limits a result from a queue of batches to `max_count` messages from an offset on."""
    taken: list[memoryview] = []
    next_offset = got.next_begin_offset
    for record in records_of(got.buffers):
        at = _QUEUE_OFFSET.unpack_from(record, _QUEUE_OFFSET_AT)[0]
        if len(taken) >= max_count:
            next_offset = at
            break
        batch = _batch_of(record)
        if batch is None:
            if at >= offset:
                taken.append(record)
            continue
        begin = max(offset - at, 0)
        apart = list(islice(inner_records(batch, begin), max_count - len(taken)))
        taken += map(memoryview, apart)
        if begin + len(apart) < _count_of(batch):
            next_offset = at + begin + len(apart)
            break
    status = got.status
    if not taken and status is GetMessageStatus.FOUND:
        status = GetMessageStatus.NO_MATCHED_MESSAGE
    return replace(
        got,
        status=status,
        next_begin_offset=next_offset,
        buffers=taken,
        count=len(taken),
        size_bytes=sum(map(len, taken)),
    )


def in_record(record: memoryview) -> list[MessageExt]:
    """The messages of a record, as they are stored; raises MessageDecodeError."""
    batch = _batch_of(record)
    if batch is None:
        return [decode_message(record, decompress_body=False)[0]]
    return unwrap_inner_batch(batch)


def _batch_of(record: memoryview) -> MessageExt | None:
    """Decodes the batch in a record, without the flags of a batch; None if it is no sound batch."""
    if _SYS_FLAG.unpack_from(record, _SYS_FLAG_AT)[0] & _BATCH != _BATCH:
        return None
    try:
        batch = decode_message(record)[0]
    except MessageDecodeError:
        return None
    count = count_of(batch.sys_flag, batch.properties)
    if not count or count_entries(batch.body) != count:
        return None
    batch.sys_flag &= ~_BATCH
    return batch


def _count_of(batch: MessageExt) -> int:
    return int(batch.properties[names.INNER_NUM])
