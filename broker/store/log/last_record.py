# SPDX-License-Identifier: Apache-2.0
"""Finds the last record before a place in a file of the log, without reading all of the file.

A record is found by its own offset, which it contains together with its mark. A body may look like
a record as well. So a chain of records has to lead from what was found to the place, or to where
nothing more is whole.

Java: has no counterpart.
"""

from __future__ import annotations

from typing import Final

from txrocketmq.broker.store.disk.mapped_file import MappedFile
from txrocketmq.broker.store.disk.record_head import HEAD, MAGICS, next_head
from txrocketmq.broker.store.formats.scan import Record, RecordWalk
from txrocketmq.remoting.message.record import BLANK, MAGIC_BLANK
from txrocketmq.remoting.primitives.packing import fixed

_BLANK: Final = fixed(BLANK).struct
_WINDOW_BYTES: Final = 64 * 1024
"""How far from the place the record is looked for at first."""


def last_record(file: MappedFile, end: int) -> Record | None:
    """The last whole record before this position of a file; None without any.

    Behind it there may be a part of a further one, or of a blank.
    """
    window = _WINDOW_BYTES
    while True:
        at = max(end - window, 0)
        if at:
            at = next_head(file.map(), file.from_offset, at, end)
        if at >= 0:
            walk = RecordWalk(file, at, check_crc=False, end=end)
            last = None
            for record in walk:
                last = record
            if last is not None and (window >= end or _ends_there(file, walk, end)):
                return last
        if window >= end:
            return None
        window *= 8


def _ends_there(file: MappedFile, walk: RecordWalk, end: int) -> bool:
    """Whether a walk has ended where nothing more can be whole: at the end, or with a part."""
    at = walk.position
    if walk.ended_by_blank or at == end:
        return True
    rest = file.view[at:end]
    if is_blank(file, at, rest):
        return True
    if len(rest) >= HEAD.size:
        size, magic, offset = HEAD.unpack_from(rest)
        return size > len(rest) and magic in MAGICS and offset == file.from_offset + at
    return len(rest) < _BLANK.size or _BLANK.unpack_from(rest)[1] in MAGICS


def is_blank(file: MappedFile, at: int, rest: bytes | memoryview) -> bool:
    """Whether these bytes, which begin there in a file, are a blank, or its beginning."""
    blank = _BLANK.pack(file.size_bytes - at, MAGIC_BLANK)
    return blank.startswith(bytes(rest[: len(blank)]))


def is_unfinished(record: Record) -> bool:
    """Whether the end of a record may be missing, as it has zeros in its place.

    No CRC covers topic and properties. The last byte of a whole record is hardly ever zero: only if
    its last property ends so.
    """
    at = record.end - 1
    if record.properties_at == record.end:
        at = record.topic_at + len(record.topic) - 1
    return record.view[at] == 0
