# SPDX-License-Identifier: Apache-2.0
"""Messages as they are popped: single ones, each with its own offset in its queue.

A get of a queue of batches gives records, which may be batches of many messages. They are taken
apart here, so that what follows knows messages only: a pop gives no more than was asked for, and
may begin and end within a batch; each message is acknowledged, hidden and brought back by itself.
A message of a batch looks as it does to a client that has pulled the batch and taken it apart. A
batch that cannot be taken apart is handed out as the one message that its record is.

A batch may have 32,767 messages, tiny ones. It is looked through once, in steps, and then it is
known where its messages begin: so what a pop does depends on how many messages it takes.

The original hands out whole records, which clients take apart only if they pull; those that pop
give their listener the batch as one message. Java: PopMessageProcessor.popMsgFromQueue,
MessageDecoder.decodeMessage.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from txrocketmq.broker.intake.transforms.inner_batch import Counted
from txrocketmq.broker.store.disk.in_memory import NotYet
from txrocketmq.broker.store.get.get_result import GetMessageStatus, GetResult
from txrocketmq.broker.store.log.inner_batch import count_of
from txrocketmq.remoting.call import Buffer
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
_KEY_BYTES: Final = _SYS_FLAG_AT + _SYS_FLAG.size
"""So many bytes at the beginning of a record say which one it is: its place in the log and the CRC
of its body are among them."""
STRIDE: Final = 128
"""Of so many messages of a batch, it is kept where the first one begins."""
AT_ONCE: Final = 4_096
"""How many messages of a batch are looked at in one step."""
MOST_KNOWN: Final = 256
"""Of so many batches it is known where their messages begin; then the oldest is forgotten."""
_MOST_BEGUN: Final = 4
_STALE: Final = 64
"""After so many steps for others, a batch that was begun with is given up for them."""


class SoundBatch(NamedTuple):
    """A sound batch: its message, without the flags of a batch, and what is known of its body."""

    message: MessageExt
    length: int
    """How many messages it has."""
    starts: list[int]
    """Where in the body every STRIDE-th message begins."""

    def part(self, begin: int, most: int) -> MessageExt:
        """Returns a batch of `most` of its messages, or those that there are, from a number on."""
        body, mark = self.message.body, begin // STRIDE
        counted = Counted(body, self.starts[mark])
        counted.count_on(begin - mark * STRIDE)
        start = counted.at
        counted.count_on(most)
        queue_offset = self.message.queue_offset + begin
        return replace(self.message, body=body[start : counted.at], queue_offset=queue_offset)


class _Begun:
    """A batch that is looked through."""

    __slots__ = ("count", "counted", "message", "seen", "starts")

    def __init__(self, message: MessageExt) -> None:
        self.message = message
        self.count = count_of(message.sys_flag, message.properties)
        """How many messages it should have."""
        self.counted = Counted(message.body)
        self.starts: list[int] = []
        self.seen = 0

    def go_on(self, most: int) -> None:
        """Looks at some more messages."""
        for _ in range(0, most, STRIDE):
            if self.counted.is_done:
                break
            self.starts.append(self.counted.at)
            self.counted.count_on(STRIDE)


class KnownBatches:
    """Knows of batches, by their records, where their messages begin.

    Of few that are looked through the body is kept meanwhile.
    """

    def __init__(self) -> None:
        self._known: dict[bytes, tuple[int, list[int]]] = {}
        self._begun: dict[bytes, _Begun] = {}
        self._steps = 0

    def of(self, record: memoryview, *, at_once: bool = False) -> SoundBatch | None:
        """Returns the batch in a record, or None if it is no sound batch.

        Raises NotYet while there is more of a long one to look at than is looked at in one step,
        unless it is wanted at once.
        """
        if _SYS_FLAG.unpack_from(record, _SYS_FLAG_AT)[0] & _BATCH != _BATCH:
            return None
        key = bytes(record[:_KEY_BYTES])
        begun = self._begun.pop(key, None)
        if begun is None:
            try:
                begun = _Begun(decode_message(record)[0])
            except MessageDecodeError:
                return None
        if key not in self._known:
            self._look_through(key, begun, at_once=at_once)
        length, starts = self._known[key]
        if not length:
            return None
        message = begun.message
        message.sys_flag &= ~_BATCH
        return SoundBatch(message, length, starts)

    def _look_through(self, key: bytes, begun: _Begun, *, at_once: bool) -> None:
        self._steps += 1
        begun.go_on(AT_ONCE)
        oldest = next(iter(self._begun), key)
        if len(self._begun) >= _MOST_BEGUN and self._steps - self._begun[oldest].seen > _STALE:
            del self._begun[oldest]
        if not (begun.counted.is_done or at_once or len(self._begun) >= _MOST_BEGUN):
            self._begun[key], begun.seen = begun, self._steps
            raise NotYet("a long batch is looked through", None)
        while not begun.counted.is_done:
            begun.go_on(AT_ONCE)
        is_sound = begun.count == begun.counted.count
        if len(self._known) >= MOST_KNOWN:
            del self._known[next(iter(self._known))]
        self._known[key] = (begun.count, begun.starts) if is_sound else (0, [])


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


def one_by_one(got: GetResult, offset: int, max_count: int, batches: KnownBatches) -> GetResult:
    """Limits a result from a queue of batches to `max_count` messages from an offset on.

    Raises NotYet while a long batch is looked through; nothing has been taken then.
    """
    taken: list[memoryview] = []
    next_offset = got.next_begin_offset
    for record in records_of(got.buffers):
        at = _QUEUE_OFFSET.unpack_from(record, _QUEUE_OFFSET_AT)[0]
        if len(taken) >= max_count:
            next_offset = at
            break
        batch = batches.of(record)
        if batch is None:
            if at >= offset:
                taken.append(record)
            continue
        begin = max(offset - at, 0)
        if begin >= batch.length:
            continue
        apart = list(inner_records(batch.part(begin, max_count - len(taken))))
        taken += map(memoryview, apart)
        if begin + len(apart) < batch.length:
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


def in_record(
    record: memoryview, batches: KnownBatches, offset: int | None = None
) -> list[MessageExt]:
    """The messages of a record, as they are stored, or the one at an offset in their queue.

    Raises MessageDecodeError.
    """
    batch = batches.of(record, at_once=True)
    if batch is None:
        message = decode_message(record, decompress_body=False)[0]
        return [message] if offset in (None, message.queue_offset) else []
    if offset is None:
        return unwrap_inner_batch(batch.message)
    begin = offset - batch.message.queue_offset
    return unwrap_inner_batch(batch.part(begin, 1)) if 0 <= begin < batch.length else []
