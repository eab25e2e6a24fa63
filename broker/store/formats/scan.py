# SPDX-License-Identifier: Apache-2.0
"""Walks through the records of the log, for recovery and for late dispatching.

A record counts when its magic is known, its lengths add up to its size, its physical offset is
where it lies and, if asked, its CRC is that of its body. A walk ends at the first place where no
such record is: a blank (more is in the next file), zeros (the end of the data) or damage; what
follows is not looked at.

Java: CommitLog.checkMessageAndReturnSize, DispatchRequest.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple, Protocol

from txrocketmq.remoting.message import properties as names
from txrocketmq.remoting.message import record
from txrocketmq.remoting.message.flags import MessageSysFlag
from txrocketmq.remoting.message.properties import decode_properties
from txrocketmq.remoting.message.tags import tags_code
from txrocketmq.remoting.message.topics import SCHEDULE_TOPIC
from txrocketmq.remoting.primitives.checksum import crc32
from txrocketmq.remoting.primitives.packing import fixed, picked

_IPV6_HOSTS: Final = MessageSysFlag.BORN_HOST_V6 | MessageSysFlag.STORE_HOST_V6
_NEEDED: Final = (
    "total_size", "magic", "body_crc", "queue_id", "queue_offset", "physical_offset", "sys_flag",
    "store_timestamp", "body_length",
)  # fmt: skip
"""The fields before the body that a walk reads."""
_FIXED: Final = picked(record.RECORD_FIXED, *_NEEDED)
USUAL_FIXED: Final = _FIXED
"""These fields of a record whose hosts have IPv4 addresses, in this order."""
_FIXED_BY_IPV6_HOSTS: Final = {
    0: _FIXED,
    MessageSysFlag.BORN_HOST_V6: picked(record.RECORD_FIXED_BORN_IPV6, *_NEEDED),
    MessageSysFlag.STORE_HOST_V6: picked(record.RECORD_FIXED_STORE_IPV6, *_NEEDED),
    _IPV6_HOSTS: picked(record.RECORD_FIXED_BOTH_IPV6, *_NEEDED),
}
_TOPIC_LENGTH_BYTES: Final = {record.MAGIC_V1: 1, record.MAGIC_V2: 2}
_BLANK: Final = fixed(record.BLANK).struct
BLANK_BYTES: Final = _BLANK.size
"""How much of a record says how long it is, and whether it is a blank one."""
_STORE_TIMESTAMP_AT: Final = fixed(record.RECORD_FIXED).offset_of("store_timestamp")
_IPV6_MORE_BYTES: Final = record.IPV6_HOST.sizeof() - record.IPV4_HOST.sizeof()
_SYS_FLAG: Final = fixed(record.RECORD_FIXED).codec_of("sys_flag")
_STORE_TIMESTAMP: Final = fixed(record.RECORD_FIXED).codec_of("store_timestamp")
_SYS_FLAG_AT: Final = fixed(record.RECORD_FIXED).offset_of("sys_flag")
PROPERTIES_LENGTH_BYTES: Final = fixed(record.PROPERTIES_LENGTH).size
PAGE_BYTES: Final = 4096
_new: Final = tuple.__new__
"""Creates a NamedTuple in a third of the time that its class takes."""


class Record(NamedTuple):
    """A record as the walk sees it; the last four fields say where in the file its text is."""

    physical_offset: int
    size_bytes: int
    queue_id: int
    queue_offset: int
    sys_flag: int
    store_timestamp_ms: int
    view: memoryview
    topic_at: int
    properties_at: int
    end: int

    @property
    def topic(self) -> memoryview:
        """The topic, as a slice of the file."""
        return self.view[self.topic_at : self.properties_at - PROPERTIES_LENGTH_BYTES]

    @property
    def properties(self) -> memoryview:
        """The properties, as a slice of the file."""
        return self.view[self.properties_at : self.end]


class LogExtent(Protocol):
    """A file of the log, or a part of one: its bytes and their log offset."""

    @property
    def view(self) -> memoryview: ...

    @property
    def from_offset(self) -> int: ...


class RecordWalk:
    """The records of one file, or of a part of one, from a position on; to be iterated once.

    During and after the iteration, `position` is where the next record would start;
    `ended_by_blank` tells that the file was ended on purpose. What is behind the position `end`
    counts as missing, as do records that are not complete there; without it, all of the file is
    examined.
    """

    def __init__(
        self, file: LogExtent, position: int, *, check_crc: bool, end: int | None = None
    ) -> None:
        self._view = file.view if end is None else file.view[:end]
        self._from_offset = file.from_offset
        self._check_crc = check_crc
        self.position = position
        self.ended_by_blank = False

    def __iter__(self) -> Iterator[Record]:
        # This is one function without calls, since it examines every record of a log.
        view, from_offset, check_crc = self._view, self._from_offset, self._check_crc
        file_bytes = len(view)
        last_start = file_bytes - _FIXED.size
        unpack, fixed_bytes = _FIXED.unpack_from, _FIXED.size
        position = self.position
        while position <= last_start:
            (
                total_size, magic, crc, queue_id, queue_offset, physical_offset, sys_flag,
                store_timestamp, body_length,
            ) = unpack(view, position)  # fmt: skip
            body_at = position + fixed_bytes
            length_bytes = 1
            if magic != record.MAGIC_V1 or sys_flag & _IPV6_HOSTS:
                layout = _FIXED_BY_IPV6_HOSTS[sys_flag & _IPV6_HOSTS]
                body_at = position + layout.size
                if magic not in _TOPIC_LENGTH_BYTES or body_at > file_bytes:
                    break
                length_bytes = _TOPIC_LENGTH_BYTES[magic]
                store_timestamp, body_length = layout.unpack_from(view, position)[-2:]
            end = position + total_size
            body_end = body_at + body_length
            topic_at = body_end + length_bytes
            if (
                physical_offset != from_offset + position
                or end > file_bytes
                or body_length < 0
                or topic_at > end
            ):
                break
            topic_length = view[body_end]
            if length_bytes != 1:
                topic_length = topic_length << 8 | view[body_end + 1]
            properties_at = topic_at + topic_length + PROPERTIES_LENGTH_BYTES
            if (
                properties_at > end
                or properties_at + (view[properties_at - 2] << 8 | view[properties_at - 1]) != end
            ):
                break
            if check_crc and (
                (body_length and crc32(view[body_at:body_end]) & 0x7FFFFFFF != crc)
                or (
                    (end - 1) & -PAGE_BYTES >= topic_at
                    and is_torn(view, topic_at, properties_at, end)
                )
            ):
                break
            self.position = end
            yield _new(
                Record,
                (
                    physical_offset, total_size, queue_id, queue_offset, sys_flag, store_timestamp,
                    view, topic_at, properties_at, end,
                ),
            )  # fmt: skip
            position = self.position
        self.ended_by_blank = self._is_blank(self.position)

    def _is_blank(self, position: int) -> bool:
        if position + _BLANK.size > len(self._view):
            return False
        return bool(_BLANK.unpack_from(self._view, position)[1] == record.MAGIC_BLANK)


def blank_bytes(view: memoryview, position: int) -> int:
    """How long the record at this position says that it is; a blank one ends its file."""
    return int(_BLANK.unpack_from(view, position)[0])


def begins_record(view: memoryview, position: int, most_bytes: int) -> bool:
    """Whether a record, or a blank one, of at most so many bytes can begin at this position.

    Not all of it has to be there. If not even its size and its magic are, it can.
    """
    if position + _BLANK.size > len(view):
        return True
    size_bytes, magic = _BLANK.unpack_from(view, position)
    if magic == record.MAGIC_BLANK:
        return bool(size_bytes == most_bytes)
    return magic in _TOPIC_LENGTH_BYTES and _FIXED.size < size_bytes <= most_bytes


def is_torn(view: memoryview, start: int, properties_at: int, end: int) -> bool:
    """Whether a page in this part of a file is all zeros: a power cut came before it was written.

    The CRC covers the body only. No text of a message contains a page, or the beginning of one up
    to the end of the text, with nothing but zeros; but an empty properties length is zeros, written
    or not.
    """
    if properties_at == end:
        end -= PROPERTIES_LENGTH_BYTES
    for at in range(-(-start // PAGE_BYTES) * PAGE_BYTES, end, PAGE_BYTES):
        if not any(view[at : min(at + PAGE_BYTES, end)]):
            return True
    return False


def store_timestamp_ms(data: memoryview) -> int:
    """When the message of this record or beginning was stored, in ms; -1 if it is too short."""
    if len(data) < _FIXED.size:
        return -1
    (sys_flag,) = _SYS_FLAG.unpack_from(data, _SYS_FLAG_AT)
    at = _STORE_TIMESTAMP_AT
    if sys_flag & MessageSysFlag.BORN_HOST_V6:
        at += _IPV6_MORE_BYTES
    return int(_STORE_TIMESTAMP.unpack_from(data, at)[0])


class Dispatched(NamedTuple):
    """What queue and index need to know of a message (DispatchRequest)."""

    topic: str
    tags_code: int
    uniq_key: str | None
    keys: str | None
    tags: str | None
    multi_dispatch: str | None = None
    multi_queue_offset: str | None = None
    inner_num: str | None = None


def dispatched(found: Record, delays_ms: dict[int, int]) -> Dispatched:
    """Reads topic and properties of a record; `delays_ms` are the delays of the delay levels.

    Invalid UTF-8 is read as U+FFFD, as in Java.
    """
    topic = str(found.topic, "utf-8", "replace")
    values = decode_properties(str(found.properties, "utf-8", "replace"))
    tags = values.get(names.TAGS)
    code = tags_code(tags)
    delay = values.get(names.DELAY)
    if delay is not None and topic == SCHEDULE_TOPIC:
        code = deliver_time_ms(delay, found.store_timestamp_ms, delays_ms) or code
    return Dispatched(
        topic, code, values.get(names.UNIQ_KEY), values.get(names.KEYS), tags,
        values.get(names.INNER_MULTI_DISPATCH), values.get(names.INNER_MULTI_QUEUE_OFFSET),
        values.get(names.INNER_NUM),
    )  # fmt: skip


def deliver_time_ms(delay: str, stored_ms: int, delays_ms: dict[int, int]) -> int:
    """When a message of this delay level is due, in ms; 0 when the level is invalid."""
    level = int(delay) if delay.isascii() and delay.isdecimal() and len(delay) < 10 else 0
    if level <= 0:
        return 0
    return stored_ms + delays_ms.get(min(level, max(delays_ms, default=0)), 1000)
