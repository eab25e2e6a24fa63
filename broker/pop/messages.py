# SPDX-License-Identifier: Apache-2.0
"""Messages as they are popped: single ones, each with its own offset in its queue.

A get of a queue of batches gives records, which may be batches of many messages. They are taken
apart here, so that what follows knows messages only: a pop gives no more than was asked for, and
may begin and end within a batch; each message is acknowledged, hidden and brought back by itself.
A message of a batch looks as it does to a client that has pulled the batch and taken it apart. A
batch that cannot be taken apart is handed out as the one message that its record is.

A batch may have 32,767 messages, tiny ones. It is looked through once, in steps, and then it is
known where its messages begin: so what a pop does depends on how many messages it takes. Only few
long batches are looked through at the same time; others wait for these, and when too many wait, a
pop is refused. The bodies of batches that were popped last are kept, so that they are not copied,
and those that are compressed not decompressed, with each pop.

The original hands out whole records, which clients take apart only if they pull; those that pop
give their listener the batch as one message. Java: PopMessageProcessor.popMsgFromQueue,
MessageDecoder.decodeMessage.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from txrocketmq.broker.intake.transforms.inner_batch import Counted
from txrocketmq.broker.store.disk.in_memory import NotYet
from txrocketmq.broker.store.get.get_result import GetMessageStatus, GetResult
from txrocketmq.broker.store.log.inner_batch import count_of
from txrocketmq.broker.store.queues.batch_queue import MAX_BATCH_MESSAGES
from txrocketmq.remoting.call import Buffer
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.errors import ResponseError
from txrocketmq.remoting.message import record as records
from txrocketmq.remoting.message.flags import MessageSysFlag
from txrocketmq.remoting.message.light_queues import is_light, light_offset
from txrocketmq.remoting.message.message import (
    MessageDecodeError,
    MessageExt,
    decode_message,
    inner_records,
    record_properties,
    unwrap_inner_batch,
)
from txrocketmq.remoting.message.properties import decode_properties
from txrocketmq.remoting.primitives.fifo_cache import FifoCache
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
"""Of so many batches it is known where their messages begin; then the oldest is forgotten. No more
bodies are kept, either."""
MOST_BEGUN: Final = 4
"""So many long batches are looked through at the same time, and their bodies kept meanwhile."""
MOST_QUEUED: Final = 64
"""So many long batches wait until others are looked through; a pop of one more is refused."""
MOST_PLAIN_BYTES: Final = 16 << 20
"""A compressed batch that becomes longer than this, and than any frame, is not taken apart."""
MOST_KEPT_BYTES: Final = MOST_PLAIN_BYTES
"""So many bytes of bodies are kept, or a single body."""


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

    __slots__ = ("count", "counted", "message", "starts")

    def __init__(self, message: MessageExt, count: int) -> None:
        self.message = message
        self.count = count
        """How many messages it should have."""
        self.counted = Counted(message.body)
        self.starts: list[int] = []

    @property
    def is_done(self) -> bool:
        """Whether it is known by now what it is: it may have more messages than it should have."""
        return self.counted.is_done or self.counted.count >= self.count

    @property
    def is_sound(self) -> bool:
        """Whether it has as many messages as it should have."""
        return self.counted.is_done and self.counted.count == self.count

    def go_on(self) -> None:
        """Looks at some more messages."""
        for _ in range(0, AT_ONCE, STRIDE):
            if self.is_done:
                break
            self.starts.append(self.counted.at)
            self.counted.count_on(STRIDE)


class KnownBatches:
    """Knows of batches, by their records, where their messages begin.

    Some bodies are kept: of the few that are looked through, and of those that were asked for last.
    """

    def __init__(self) -> None:
        self._known = FifoCache[bytes, tuple[int, list[int]]](MOST_KNOWN)
        self._begun: dict[bytes, _Begun] = {}
        self._queued: dict[bytes, int] = {}
        """Those that wait, by the number of the question that was the last to ask for them."""
        self._questions = 0
        self._kept: OrderedDict[bytes, MessageExt] = OrderedDict()
        self._kept_bytes = 0

    def of(self, record: memoryview) -> SoundBatch | None:
        """Returns the batch in a record, or None if it is no sound batch.

        Raises NotYet while there is more of a long one to look at than is looked at in one step,
        and ResponseError when too many of them wait.
        """
        if _SYS_FLAG.unpack_from(record, _SYS_FLAG_AT)[0] & _BATCH != _BATCH:
            return None
        key = bytes(record[:_KEY_BYTES])
        message = None if key in self._known else self._look_through(key, record)
        length, starts = self._known[key]
        if not length:
            return None
        if message is None:
            message = self._kept.get(key) or _plain(record)
        if message is None:
            return None
        self._keep(key, message)
        return SoundBatch(message, length, starts)

    def _look_through(self, key: bytes, record: memoryview) -> MessageExt | None:
        """Looks through a batch as far as is done at once; returns its message if that is all."""
        begun = self._begun.pop(key, None)
        if begun is None:
            count = count_of(_BATCH, decode_properties(record_properties(record)))
            if count > AT_ONCE and len(self._begun) >= MOST_BEGUN:
                self._queue(key)
                self._go_on_with_oldest()
                raise NotYet("other long batches are looked through", None)
            self._queued.pop(key, None)
            message = _plain(record)
            if message is None:
                self._know(key, 0, [])
                return None
            begun = _Begun(message, count)
        begun.go_on()
        if not begun.is_done:
            self._begun[key] = begun
            raise NotYet("a long batch is looked through", None)
        self._end(key, begun)
        return begun.message

    def _queue(self, key: bytes) -> None:
        """Has a batch wait. Whoever asked for it may have gone, so the one that nobody has asked
        for since many questions gives its place up.
        """
        self._questions += 1
        if self._queued.pop(key, None) is None and len(self._queued) >= MOST_QUEUED:
            oldest = next(iter(self._queued))
            if self._questions - self._queued[oldest] <= 4 * MOST_QUEUED:
                raise ResponseError(
                    ResponseCode.SYSTEM_BUSY,
                    f"{MOST_QUEUED} long batches wait to be taken apart already: pop again later",
                )
            del self._queued[oldest]
        self._queued[key] = self._questions

    def _go_on_with_oldest(self) -> None:
        """Goes on with the batch that was begun with first, whoever asked for it may have gone."""
        key = next(iter(self._begun))
        begun = self._begun[key]
        begun.go_on()
        if begun.is_done:
            del self._begun[key]
            self._end(key, begun)

    def _end(self, key: bytes, begun: _Begun) -> None:
        if begun.is_sound:
            self._know(key, begun.count, begun.starts)
            self._keep(key, begun.message)
        else:
            self._know(key, 0, [])

    def _know(self, key: bytes, length: int, starts: list[int]) -> None:
        self._known.keep(key, (length, starts))

    def _keep(self, key: bytes, message: MessageExt) -> None:
        """Keeps a body as the last one; those before it may have to go for that."""
        kept = self._kept
        if key not in kept:
            self._kept_bytes += len(message.body)
        kept[key] = message
        kept.move_to_end(key)
        while len(kept) > MOST_KNOWN or (self._kept_bytes > MOST_KEPT_BYTES and len(kept) > 1):
            self._kept_bytes -= len(kept.popitem(last=False)[1].body)


def _plain(record: memoryview) -> MessageExt | None:
    """Returns a batch as a message that has no flags of one, or None if it cannot be read."""
    try:
        message = decode_message(record, max_body_bytes=MOST_PLAIN_BYTES)[0]
    except MessageDecodeError:
        return None
    message.sys_flag &= ~_BATCH
    return message


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

    Raises NotYet while a long batch is looked through, and ResponseError when too many wait for
    that; nothing has been taken then.
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
    record: memoryview,
    batches: KnownBatches,
    offset: int | None = None,
    *,
    begin: int = 0,
    most: int = MAX_BATCH_MESSAGES,
) -> list[MessageExt]:
    """The message at an offset in the queue of a record, as it is stored; or, without an offset, as
    many messages of the record as are wanted, from a number on.

    Raises MessageDecodeError, or NotYet while a long batch is looked through.
    """
    batch = batches.of(record)
    if batch is None:
        message = decode_message(record, decompress_body=False)[0]
        return [message] if not begin and offset in (None, message.queue_offset) else []
    if offset is not None:
        begin, most = offset - batch.message.queue_offset, 1
    return unwrap_inner_batch(batch.part(begin, most)) if 0 <= begin < batch.length else []
