# SPDX-License-Identifier: Apache-2.0
"""A long run of messages for one queue, encoded a few at a time before their places are known.

A batch of many messages has to lie in the log in one piece, and its queue offsets have to be
consecutive. But most of what there is to do does not depend on where it lies: checksums, lengths,
copies. That is done by `add`, between which others put their messages. `place` does the rest at
once: it writes the offsets and the store time into each record, at the speed of C.

Nothing is stored, opened or reserved before `place`, so a run that is given up leaves nothing.
Light queues, queues of batches and ext units are not for long runs: what enters those depends on
what is put before. Java: has no counterpart; CommitLog.asyncPutMessages holds a lock meanwhile.
"""

from __future__ import annotations

import struct
from array import array
from bisect import bisect_right
from collections import deque
from collections.abc import Iterator, Sequence
from itertools import repeat
from typing import Any, Final, Protocol, TypeAlias, overload

from txrocketmq.broker.store.formats.put_message import MULTI_DISPATCH, PutMessage, PutStatus
from txrocketmq.broker.store.index.index_rows import IndexEntry
from txrocketmq.broker.store.log.encode import Room
from txrocketmq.broker.store.log.visibility import enters_queue
from txrocketmq.broker.store.queues.consume_queue import UNIT_FIELDS, ConsumeQueue
from txrocketmq.broker.store.queues.consume_queues import encode_topic
from txrocketmq.remoting.message import record
from txrocketmq.remoting.message.flags import MessageSysFlag
from txrocketmq.remoting.message.properties import MAX_PROPERTIES_BYTES
from txrocketmq.remoting.primitives.checksum import crc32
from txrocketmq.remoting.primitives.packing import fixed

LogPieces: TypeAlias = list[tuple["bytes | memoryview", int]]
"""What is written to the log, with the log offsets at which it ends."""

_PLACES_AT: Final = fixed(record.RECORD_HEAD).offset_of("queue_offset")
"""Where a record has its queue offset, which is followed by its log offset."""
_PLACES: Final = fixed(record.PLACE).struct
_BLANK: Final = fixed(record.BLANK).struct
_LENGTH: Final = fixed(record.PROPERTIES_LENGTH).struct
_STORED_BYTES: Final = fixed(record.RECORD_STORED).size
_UNFIT: Final = MULTI_DISPATCH | MessageSysFlag.INNER_BATCH
"""What a system flag of a long run must not have."""


class Placed(Protocol):
    """The part of a Batch that has what follows from the places of its messages."""

    stored_ms: int
    start_offset: int
    end_offset: int
    places: list[tuple[int, int, int]]
    queues: list[ConsumeQueue]
    entries: list[IndexEntry]


class LongRun(Sequence[PutMessage]):
    """The messages. All have the same topic, queue, hosts, times and system flag.

    As a sequence it has their number alone, which is what a store that refuses them asks for.
    """

    def __init__(
        self, like: PutMessage, sys_flag: int, layout: struct.Struct, file_bytes: int
    ) -> None:
        self.topic, self.queue_id = like.topic, like.queue_id
        self._like = like
        """One of the messages."""
        self._sys_flag = sys_flag
        self._layout = layout
        """The layout of what a record has before its body."""
        self._most_bytes = file_bytes - _BLANK.size
        self._magic, self._topic_bytes = encode_topic(like.topic)
        self._data = bytearray()
        self._ends: list[int] = []
        """Where each record ends in the data."""
        self._places_at: list[int] = []
        """Where each record has its places in the data."""
        self._fields = array("q")
        """The fields of the units."""
        self._uniq_keys: list[str | None] = []
        self._keys: list[str | None] = []
        self._tags: list[str | None] = []

    def __len__(self) -> int:
        return len(self._ends)

    @property
    def size_bytes(self) -> int:
        """How many bytes the records have."""
        return len(self._data)

    @overload
    def __getitem__(self, at: int) -> PutMessage: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[PutMessage]: ...
    def __getitem__(self, at: int | slice) -> PutMessage | Sequence[PutMessage]:
        raise TypeError("the messages of a long run are encoded already")

    # Every message of a long batch passes here, so no call is made that can be avoided.
    def add(self, messages: Sequence[PutMessage]) -> PutStatus | None:
        """Encodes some more messages; returns a status if one of them cannot be stored."""
        like, data, fields = self._like, self._data, self._fields
        pack, fixed_bytes, topic_bytes = self._layout.pack, self._layout.size, self._topic_bytes
        sys_flag, magic, most_bytes = self._sys_flag, self._magic, self._most_bytes
        besides_bytes = fixed_bytes + len(topic_bytes) + _LENGTH.size
        if sys_flag & _UNFIT or not enters_queue(sys_flag):
            return PutStatus.MESSAGE_ILLEGAL
        for message in messages:
            (
                _, _, body, properties, tags_code, _, _, _, uniq_key, keys, tags, flag, *_,
            ) = message  # fmt: skip
            body_bytes, properties_bytes = len(body), len(properties)
            size = besides_bytes + body_bytes + properties_bytes
            if size > most_bytes:
                return PutStatus.MESSAGE_ILLEGAL
            if properties_bytes > MAX_PROPERTIES_BYTES:
                return PutStatus.PROPERTIES_SIZE_EXCEEDED
            try:
                head = pack(
                    size, magic, crc32(body) & 0x7FFFFFFF, like.queue_id, flag, 0, 0, sys_flag,
                    like.born_timestamp_ms, like.born_host, 0, like.store_host,
                    like.reconsume_times, like.prepared_transaction_offset, body_bytes,
                )  # fmt: skip
            except struct.error:
                return PutStatus.MESSAGE_ILLEGAL
            self._places_at.append(len(data) + _PLACES_AT)
            data += b"".join((head, body, topic_bytes, _LENGTH.pack(properties_bytes), properties))
            self._ends.append(len(data))
            fields.extend((0, size, tags_code))
            self._uniq_keys.append(uniq_key)
            self._keys.append(keys)
            self._tags.append(tags)
        return None

    def place(self, batch: Placed, queue: ConsumeQueue, room: Room) -> LogPieces:
        """Gives all messages their places behind the end of the log, and of the queue.

        `room` is where the records may lie: from a log offset on, up to the end of its file, and
        then in files of so many bytes. Returns what is to be written to each file, with the log
        offset at which that ends.
        """
        now_ms, ends, places_at = batch.stored_ms, self._ends, self._places_at
        data = memoryview(self._data)
        offset, file_end, file_bytes = room
        batch.start_offset = offset
        offsets: list[int] = []
        pieces: LogPieces = []
        begin = 0
        while True:
            fit = bisect_right(ends, begin + file_end - _BLANK.size - offset)
            end = ends[fit - 1] if fit else 0
            ahead = offset - begin - _PLACES_AT
            offsets += [at + ahead for at in places_at[len(offsets) : fit]]
            offset += end - begin
            if end > begin:
                pieces.append((data[begin:end], offset))
            if fit == len(ends):
                break
            pieces.append((_BLANK.pack(file_end - offset, record.MAGIC_BLANK), file_end))
            offset, begin, file_end = file_end, end, file_end + file_bytes
        batch.end_offset = offset
        first = queue.next_offset
        self._write_places(range(first, first + len(ends)), offsets, now_ms)
        self._fields[0::UNIT_FIELDS] = array("q", offsets)
        fields: Any = self._fields  # they are read like a list
        queue.pending = fields
        batch.queues.append(queue)
        found: Any = _Places(self._fields, first)
        batch.places = found
        entries: Any = _Entries(
            self.topic, self._uniq_keys, self._keys, self._tags, offsets, now_ms
        )
        batch.entries = entries
        return pieces

    def _write_places(self, numbers: range, offsets: list[int], now_ms: int) -> None:
        """Writes queue offset, log offset and store time into each record."""
        like = self._like
        head = self._layout.pack(
            0, 0, 0, 0, 0, 0, 0, self._sys_flag, like.born_timestamp_ms, like.born_host, now_ms,
            like.store_host, 0, 0, 0,
        )  # fmt: skip
        # What lies between these is the same in all records, so it is written with them.
        end = fixed(record.RECORD_HEAD).size + len(like.born_host) + _STORED_BYTES
        between = head[_PLACES_AT + _PLACES.size : end]
        pack_into = struct.Struct(f"{_PLACES.format}{len(between)}s").pack_into
        places_at = self._places_at
        written = map(pack_into, repeat(self._data), places_at, numbers, offsets, repeat(between))
        deque(written, maxlen=0)


class _Places(Sequence[tuple[int, int, int]]):
    """The places of the messages, as a Batch has them: log offset, size, queue offset."""

    def __init__(self, fields: array[int], first: int) -> None:
        self._fields = fields
        self._first = first

    def __len__(self) -> int:
        return len(self._fields) // UNIT_FIELDS

    @overload
    def __getitem__(self, at: int) -> tuple[int, int, int]: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[tuple[int, int, int]]: ...
    def __getitem__(self, at: Any) -> Any:
        if isinstance(at, slice):
            return [self[each] for each in range(*at.indices(len(self)))]
        if at < 0 or at >= len(self):
            raise IndexError(at)
        offset, size, _ = self._fields[at * UNIT_FIELDS : (at + 1) * UNIT_FIELDS]
        return offset, size, self._first + at


class _Entries(Sequence[IndexEntry]):
    """What is to be indexed of the messages, made when it is asked for."""

    def __init__(
        self,
        topic: str,
        uniq_keys: list[str | None],
        keys: list[str | None],
        tags: list[str | None],
        offsets: list[int],
        stored_ms: int,
    ) -> None:
        self._topic = topic
        self._rows = uniq_keys, keys, tags, offsets
        self._stored_ms = stored_ms

    def __len__(self) -> int:
        return len(self._rows[0])

    @overload
    def __getitem__(self, at: int) -> IndexEntry: ...
    @overload
    def __getitem__(self, at: slice) -> list[IndexEntry]: ...
    def __getitem__(self, at: int | slice) -> IndexEntry | list[IndexEntry]:
        topic, ms = self._topic, self._stored_ms
        if isinstance(at, slice):
            rows = zip(*[row[at] for row in self._rows], strict=True)
            return [
                (topic, uniq_key, keys, tags, place, ms) for uniq_key, keys, tags, place in rows
            ]
        uniq_keys, keys, tags, offsets = self._rows
        return topic, uniq_keys[at], keys[at], tags[at], offsets[at], ms

    def __iter__(self) -> Iterator[IndexEntry]:
        return iter(self[:])
