# SPDX-License-Identifier: Apache-2.0
"""Plain sends on their way into the log: records made straight from the bytes that came.

This is CommitLog.encode without what plain sends do not need: they are small, their queues exist,
they have one system flag a queue and only the usual properties, and all of them fit into the file
that is being written. Whatever is otherwise is put as PutMessage; tests hold the two equal.

Java: CommitLog, MessageExtEncoder, CommitLog.DefaultAppendMessageCallback.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

import construct

from txrocketmq.broker.store.consume_queue import ConsumeQueue
from txrocketmq.broker.store.index_file import IndexEntry, KeyRun
from txrocketmq.broker.store.mapped_file import MappedFile
from txrocketmq.remoting.message import record
from txrocketmq.remoting.message.checksum import crc32
from txrocketmq.remoting.message.flags import MessageSysFlag
from txrocketmq.remoting.message.properties import MAX_PROPERTIES_BYTES
from txrocketmq.remoting.message.tags import tags_code
from txrocketmq.remoting.packing import fixed
from txrocketmq.remoting.serialize.plain_sends import MAX_HEADER_BYTES

if TYPE_CHECKING:
    from txrocketmq.remoting.serialize.plain_sends import PlainSend

_BLANK_BYTES: Final = fixed(record.BLANK).size
_pack_length: Final = fixed(record.PROPERTIES_LENGTH).struct.pack
_FIXED_BYTES: Final = fixed(record.RECORD_FIXED).size
_MOST_BESIDES_BYTES: Final = 512
"""More than a record has besides what came in its frame and the end of its properties."""
_NOT_PLAIN: Final = (
    MessageSysFlag.BORN_HOST_V6
    | MessageSysFlag.STORE_HOST_V6
    | MessageSysFlag.TRANSACTION_PREPARED_TYPE
    | MessageSysFlag.TRANSACTION_ROLLBACK_TYPE
)
_MAX_INT: Final = (1 << 31) - 1
_SHARED: Final = construct.Struct(
    "born_host" / construct.Bytes(record.IPV4_HOST.sizeof()),
    *record.RECORD_STORED.subcons,
    "store_host" / construct.Bytes(record.IPV4_HOST.sizeof()),
    *record.RECORD_TAIL.subcons[:-1],
)
"""What the records of one put have in common: hosts, store time, and two zeros."""
_pack_shared: Final = fixed(_SHARED).struct.pack
_pack_head: Final = fixed(
    construct.Struct(
        *record.RECORD_HEAD.subcons,
        "shared" / construct.Bytes(_SHARED.sizeof()),
        record.RECORD_TAIL.subcons[-1],
    )
).struct.pack


class Place:
    """Where plain sends go that share a queue and a system flag, and what their records share.

    `properties_end` is what each message's properties end with; it is the same in all places of a
    store. ValueError when flag or properties are not plain.
    """

    __slots__ = ("_properties_end", "bare", "most_bytes", "queue", "queue_id_text", "sys_flag")

    def __init__(self, queue: ConsumeQueue, sys_flag: int, properties_end: bytes) -> None:
        if sys_flag & _NOT_PLAIN or not 0 <= sys_flag <= _MAX_INT:
            raise ValueError(f"a system flag of {sys_flag} is not plain")
        if len(properties_end) > MAX_PROPERTIES_BYTES - MAX_HEADER_BYTES:
            raise ValueError("the properties that each message gets are too long")
        self.queue = queue
        self.sys_flag = sys_flag
        self.queue_id_text = b"%d" % queue.queue_id
        self.bare: dict[int, tuple[bytes, bytes, int]] = {}
        """By the length of the unique key: what `around` gives when there is nothing else."""
        self.most_bytes = len(properties_end) + _MOST_BESIDES_BYTES
        """No record has more bytes than that besides what came in its frame."""
        self._properties_end = properties_end

    def around(
        self, uniq_key: bytes, keys: bytes | None, tags: bytes | None
    ) -> tuple[bytes, bytes, int]:
        """What a record has from body to unique key, what after it, and the size of the rest."""
        before = b"UNIQ_KEY\x01" if keys is None else b"KEYS\x01%b\x02UNIQ_KEY\x01" % keys
        after = b"\x02WAIT\x01true\x02"
        if tags is not None:
            after += b"TAGS\x01%b\x02" % tags
        after += self._properties_end
        properties_bytes = len(before) + len(uniq_key) + len(after)
        before = self.queue.record_topic + _pack_length(properties_bytes) + before
        size = _FIXED_BYTES + len(before) + len(uniq_key) + len(after)
        if keys is None and tags is None:
            self.bare[len(uniq_key)] = before, after, size
        return before, after, size


class PlainBatch:
    """Records that are encoded and not yet written.

    `offsets` and `queue_offsets` have one entry for each message; `queues` are those that get
    units, with the units in their `pending`, `entries` what is to be indexed, `totals` messages and
    bytes by topic, a queue at a time.
    """

    __slots__ = ("_file", "_parts", "entries", "offsets", "queue_offsets", "queues", "totals")

    def __init__(self, file: MappedFile, parts: list[bytes]) -> None:
        self.offsets: list[int] = []
        self.queue_offsets: list[int] = []
        self.queues: list[ConsumeQueue] = []
        self.entries: list[IndexEntry] | KeyRun = []
        self.totals: list[tuple[str, int, int]] = []
        self._file = file
        self._parts = parts

    def write(self) -> int:
        """Writes them to the log; where it ends then."""
        self._file.append(b"".join(self._parts))
        return self._file.end_offset


def encode_plain(
    sends: Sequence[PlainSend],
    places: Mapping[bytes, Place],
    came_bytes: int,
    file: MappedFile | None,
    hosts: tuple[bytes, bytes],
    now_ms: int,
) -> PlainBatch | None:
    """The records of messages whose places are all known, with room made for them.

    `came_bytes` is the size of their frames, `hosts` are where they come from and our own. None,
    with nothing left behind, when they might not fit into the file, keys or tags are no UTF-8, or
    the disk has no room.
    """
    if file is None:
        return None
    most_bytes = came_bytes + len(sends) * places[sends[0][0]].most_bytes
    if most_bytes > file.size_bytes - _BLANK_BYTES - file.wrote_bytes:
        return None
    parts: list[bytes] = []
    batch = PlainBatch(file, parts)
    try:
        end_offset = _encode(batch, parts, sends, places, file.end_offset, hosts, now_ms)
        file.reserve(end_offset - file.from_offset)
        for queue in batch.queues:
            queue.reserve_pending()
    except (UnicodeDecodeError, OSError):
        for queue in batch.queues:
            queue.drop_pending()
        return None
    return batch


# The path of every message: no call in it that could be left out.
def _encode(
    batch: PlainBatch,
    parts: list[bytes],
    sends: Sequence[PlainSend],
    places: Mapping[bytes, Place],
    offset: int,
    hosts: tuple[bytes, bytes],
    now_ms: int,
) -> int:
    """Fills the batch, whose records begin at the offset; the offset where they end."""
    offsets, queue_offsets, touched = batch.offsets, batch.queue_offsets, batch.queues
    shared = _pack_shared(hosts[0], now_ms, hosts[1], 0, 0)
    born_text, born_ms, is_bare = b"", 0, True
    pack_head, crc = _pack_head, crc32
    for name, born, keys, uniq_key, tags, _, body, _, _ in sends:
        place = places[name]
        queue = place.queue
        if keys is None and tags is None:
            before, after, size = place.bare.get(len(uniq_key)) or place.around(
                uniq_key, None, None
            )
            code = 0
        else:
            is_bare = False
            before, after, size = place.around(uniq_key, keys, tags)
            code = tags_code(tags.decode()) if tags else 0
        if born != born_text:
            born_text, born_ms = born, int(born)
        body_bytes = len(body)
        size += body_bytes
        queue_offset = queue.next_offset
        parts += (
            pack_head(
                size, queue.magic, crc(body) & 0x7FFFFFFF, queue.queue_id, 0, queue_offset, offset,
                place.sys_flag, born_ms, shared, body_bytes,
            ),
            body, before, uniq_key, after,
        )  # fmt: skip
        queue.next_offset = queue_offset + 1
        pending = queue.pending
        if not pending:
            touched.append(queue)
        pending += (offset, size, code)
        offsets.append(offset)
        queue_offsets.append(queue_offset)
        offset += size
    batch.totals = [(q.topic, len(q.pending) // 3, sum(q.pending[1::3])) for q in touched]
    batch.entries = _entries(sends, places, batch, now_ms, is_bare=is_bare)
    return offset


def _entries(
    sends: Sequence[PlainSend],
    places: Mapping[bytes, Place],
    batch: PlainBatch,
    now_ms: int,
    *,
    is_bare: bool,
) -> list[IndexEntry] | KeyRun:
    """What is to be indexed; in short when there is one topic and there are unique keys only."""
    if is_bare and len({queue.topic for queue in batch.queues}) == 1:
        return KeyRun(batch.queues[0].topic, [send[3] for send in sends], batch.offsets, now_ms)
    return [
        (
            places[name].queue.topic,
            uniq_key.decode(),
            keys.decode() if keys else None,
            tags.decode() if tags else None,
            offset,
            now_ms,
        )
        for (name, _, keys, uniq_key, tags, *_), offset in zip(sends, batch.offsets, strict=True)
    ]
