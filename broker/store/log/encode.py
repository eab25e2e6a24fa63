# SPDX-License-Identifier: Apache-2.0
"""Turns messages and the ends of their queues into records, units, and entries for the index.

This is a pure unit: it uses neither files nor queues, only where records are to lie (`Room`) and
what the next unit of a queue is (`QueueEnd`), and it changes nothing but its batch and the units
that are pending at these ends. Whoever calls it makes room on the disk and writes (commit_log.py).
Should it ever get a compiled form, that has to give the same bytes: this one is the reference.

Messages that are in any way unusual are left to the caller's `unusual`, which finds or makes their
queue.

Java: MessageExtEncoder, CommitLog.DefaultAppendMessageCallback.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Generic, NamedTuple, Protocol, TypeAlias, TypeVar

import construct

from txrocketmq.broker.store.formats import formats
from txrocketmq.broker.store.formats.put_message import (
    MULTI_DISPATCH,
    Appended,
    PutMessage,
    PutStatus,
)
from txrocketmq.broker.store.index.index_rows import IndexEntry
from txrocketmq.broker.store.log.visibility import DECIDING, visibility
from txrocketmq.remoting.message import record
from txrocketmq.remoting.message.flags import MessageSysFlag
from txrocketmq.remoting.message.properties import MAX_PROPERTIES_BYTES
from txrocketmq.remoting.primitives.checksum import crc32
from txrocketmq.remoting.primitives.packing import fixed

IPV4_HOST_BYTES: Final = record.IPV4_HOST.sizeof()
IPV6_HOST_BYTES: Final = record.IPV6_HOST.sizeof()
IPV6_FLAGS: Final = MessageSysFlag.BORN_HOST_V6 | MessageSysFlag.STORE_HOST_V6
LENGTH_BYTES: Final = fixed(record.PROPERTIES_LENGTH).size
BLANK_BYTES: Final = fixed(record.BLANK).size
MOST_BESIDES_BYTES: Final = 400
"""The most bytes that a record has besides body and properties, with a blank behind it."""
_BOTH_IPV4_BYTES: Final = 2 * IPV4_HOST_BYTES
_UNIT_FIELDS: Final = len(fixed(formats.CONSUME_QUEUE_UNIT).names)
_BLANK: Final = fixed(record.BLANK).struct
_pack_length: Final = fixed(record.PROPERTIES_LENGTH).struct.pack
_NOT_PLAIN: Final = IPV6_FLAGS | MULTI_DISPATCH | MessageSysFlag.INNER_BATCH
_PUT_OK: Final = PutStatus.PUT_OK
_BOTH: Final = (True, True)
_NOWHERE: Final = (-1, 0, -1)


def _fixed_part(born_host_bytes: int, store_host_bytes: int) -> struct.Struct:
    """The layout of a record before its body, with each host as one field, as in PutMessage."""
    layout = construct.Struct(
        *record.RECORD_HEAD.subcons,
        "born_host" / construct.Bytes(born_host_bytes),
        *record.RECORD_STORED.subcons,
        "store_host" / construct.Bytes(store_host_bytes),
        *record.RECORD_TAIL.subcons,
    )
    return fixed(layout).struct


_HOST_BYTES: Final = (IPV4_HOST_BYTES, IPV6_HOST_BYTES)
LAYOUTS: Final = {
    (born, store): _fixed_part(born, store) for born in _HOST_BYTES for store in _HOST_BYTES
}
"""The layout of what is before the body, by the numbers of bytes of both hosts."""
IPV4_LAYOUT: Final = LAYOUTS[IPV4_HOST_BYTES, IPV4_HOST_BYTES]
"""The layout with IPv4 hosts, which nearly every record has."""


class QueueEnd(Protocol):
    """The end of a queue, to which messages are added."""

    record_topic: bytes
    """The topic as records end with it: its length and its bytes."""
    magic: int
    """The magic of its records."""
    next_offset: int
    """The offset of its next unit that is not pending."""
    pending: list[int]
    """The fields of the units that are being added, one unit after the other."""


Q = TypeVar("Q", bound=QueueEnd)
Copied: TypeAlias = list[tuple[int, Q, int]]
"""A message's index, its light queue, and the index of its unit's fields in `pending` there."""


Room: TypeAlias = tuple[int, int, int]
"""Where records may lie: from an offset of the log on in a file that ends at another offset, and
then in files of so many bytes each."""


class Usable(NamedTuple, Generic[Q]):
    """What an unusual message is encoded with, as far as it is not usual."""

    queue: Q
    layout: struct.Struct
    sys_flag: int
    properties: bytes


class Batch(Generic[Q]):
    """The encoded records of a run of messages before they are written, and what follows from them.

    `places` has for each message its offset and size in the log in bytes, and its offset in its
    queue; for a refused message -1, 0 and -1, and `refused` has the status by its index.
    """

    __slots__ = (
        "copied", "copies", "end_offset", "ends", "entries", "hidden", "pieces", "places", "queues",
        "refused", "start_offset", "stored_ms", "units",
    )  # fmt: skip

    def __init__(self, now_ms: int) -> None:
        self.places: list[tuple[int, int, int]] = []
        self.refused: dict[int, PutStatus] = {}
        self.start_offset = self.end_offset = 0
        self.stored_ms = now_ms
        self.units: list[tuple[Q, int, list[int]]] = []
        self.copies: list[tuple[Q, int, list[int]]] = []
        self.copied: Copied[Q] = []
        self.entries: list[IndexEntry] = []
        self.queues: list[Q] = []
        """The queues that get units, which are in `pending` of each until the batch is written."""
        self.ends: list[int] = []
        """For each of these queues, the offset after its new units."""
        self.hidden: tuple[tuple[str, int], ...] = ()
        """Topic and size of the records that enter no queue, such as half messages."""
        self.pieces: list[tuple[bytes | memoryview, int]] = []
        """What is appended to each file, and the log offset up to which it is then written."""

    @classmethod
    def refusing(cls, count: int, status: PutStatus, now_ms: int) -> Batch[Q]:
        """Makes a batch of `count` messages that are all refused."""
        batch = cls(now_ms)
        for _ in range(count):
            batch.refuse(status)
        return batch

    def refuse(self, status: PutStatus) -> None:
        """Notes that the next message is not stored."""
        self.refused[len(self.places)] = status
        self.places.append(_NOWHERE)

    def refuse_besides(self, refused: Mapping[int, PutStatus]) -> None:
        """Notes that there were more messages, which were refused before these were put.

        Their indices are those that they have among all messages.
        """
        places = iter(self.places)
        count = len(self.places) + len(refused)
        kept = [at for at in range(count) if at not in refused]
        self.refused = {kept[at]: status for at, status in self.refused.items()} | dict(refused)
        self.places = [_NOWHERE if at in refused else next(places) for at in range(count)]

    def end_file(self, parts: list[bytes], offset: int, file_end: int) -> None:
        """Adds the last parts of a file, which a blank record ends from `offset` on.

        A record never crosses files: where one does not fit, with 8 bytes to spare, the next file
        goes on.
        """
        blank = _BLANK.pack(file_end - offset, record.MAGIC_BLANK)
        self.pieces.append((b"".join([*parts, blank]), file_end))

    def end(self, parts: list[bytes], end_offset: int) -> None:
        """Adds the last parts when all messages are encoded; the batch ends at `end_offset`."""
        if parts:
            self.pieces.append((b"".join(parts), end_offset))
        self.end_offset = end_offset

    @property
    def results(self) -> list[Appended]:
        """The result of each message."""
        return [
            Appended(self.refused.get(at, _PUT_OK), *place, self.stored_ms)
            for at, place in enumerate(self.places)
        ]


Unusual: TypeAlias = Callable[[Batch[Q], PutMessage], Usable[Q] | PutStatus]
"""Returns what an unusual message is encoded with, or why it is refused.

Unusual are messages of queues that are not among the ends, those whose body and properties are too
long, and those with IPv6 hosts or flags that do more than to decide whether a message is shown.
"""


# Every message passes here, so no call is made that can be avoided.
def encode(
    batch: Batch[Q], messages: Sequence[PutMessage], ends: Mapping[str, Mapping[int, Q]],
    room: Room, most_bytes: int, unusual: Unusual[Q],
) -> None:  # fmt: skip
    """Encodes messages into an empty batch; `ends` has those of queues by topic and queue id."""
    now_ms, touched, entries, places = batch.stored_ms, batch.queues, batch.entries, batch.places
    none: Mapping[int, Q] = {}
    offset, file_end, file_bytes = room
    batch.start_offset, last_end = offset, file_end - BLANK_BYTES
    parts: list[bytes] = []
    for message in messages:
        (
            topic, queue_id, body, properties, tags_code, born_timestamp_ms, born_host, store_host,
            uniq_key, keys, tags, flag, sys_flag, reconsume_times, prepared_transaction_offset,
        ) = message  # fmt: skip
        layout, body_bytes, properties_bytes = IPV4_LAYOUT, len(body), len(properties)
        queue = ends.get(topic, none).get(queue_id)
        if (
            queue is None
            or body_bytes + properties_bytes > most_bytes
            or properties_bytes > MAX_PROPERTIES_BYTES
            or len(born_host) + len(store_host) != _BOTH_IPV4_BYTES
            or sys_flag & _NOT_PLAIN
        ):
            usable = unusual(batch, PutMessage(*message))
            if isinstance(usable, PutStatus):
                batch.refuse(usable)
                continue
            queue, layout, sys_flag, properties = usable
            properties_bytes = len(properties)
        topic_bytes = queue.record_topic
        size = layout.size + body_bytes + len(topic_bytes) + LENGTH_BYTES + properties_bytes
        if offset + size > last_end:
            batch.end_file(parts, offset, file_end)
            parts, offset, file_end = [], file_end, file_end + file_bytes
            last_end = file_end - BLANK_BYTES
        pending = queue.pending
        in_queue, in_index = visibility(sys_flag) if sys_flag & DECIDING else _BOTH
        queue_offset = queue.next_offset + len(pending) // _UNIT_FIELDS if in_queue else 0
        try:
            head = layout.pack(
                size, queue.magic, crc32(body) & 0x7FFFFFFF, queue_id, flag, queue_offset,
                offset, sys_flag, born_timestamp_ms, born_host, now_ms, store_host,
                reconsume_times, prepared_transaction_offset, body_bytes,
            )  # fmt: skip
        except struct.error:
            batch.refuse(PutStatus.MESSAGE_ILLEGAL)
            continue
        parts += (head, body, topic_bytes, _pack_length(properties_bytes), properties)
        if in_queue:
            if not pending:
                touched.append(queue)
            pending += (offset, size, tags_code)
        else:
            batch.hidden += ((topic, size),)
        if in_index:
            entries.append((topic, uniq_key, keys, tags, offset, now_ms))
        places.append((offset, size, queue_offset))
        offset += size
    batch.end(parts, offset)


def fits(message: PutMessage, layout: struct.Struct, sys_flag: int) -> bool:
    """Whether the fields of a message fit into their places in a record.

    So what is wrong with an unusual message is known before anything is done for it.
    """
    try:
        layout.pack(
            0, 0, 0, message.queue_id, message.flag, 0, 0, sys_flag, message.born_timestamp_ms,
            message.born_host, 0, message.store_host, message.reconsume_times,
            message.prepared_transaction_offset, 0,
        )  # fmt: skip
    except struct.error:
        return False
    return True
