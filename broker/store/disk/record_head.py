# SPDX-License-Identifier: Apache-2.0
"""Recognizes the beginning of a record of the log by its size, magic and own offset.

Code that returns a record checks these first, whether a queue's unit, an index item or a caller
named the place. If the last byte of a record is zero, it is searched for zeroed pages: where a page
of the log was lost, a record may have its start and lack its end. (Properties end with a separator;
a message without any is sound, and only takes a little longer.) The CRC of the body is left to the
clients, as in the original, and to the threads that read from the disk (scrub.py). In the same way
records are found when nobody names their place.

Java: CommitLog.getMessage, which checks nothing, and checkMessageAndReturnSize.
"""

from __future__ import annotations

import mmap
from typing import Final

from txrocketmq.broker.store.disk.mapped_file import MappedFile
from txrocketmq.broker.store.formats.scan import RecordWalk
from txrocketmq.remoting.message import record
from txrocketmq.remoting.primitives.packing import fixed, picked

HEAD: Final = picked(record.RECORD_HEAD, "total_size", "magic", "physical_offset")
"""Size, magic and offset of a record."""
MAGICS: Final = frozenset((record.MAGIC_V1, record.MAGIC_V2))
_MAGIC: Final = fixed(record.RECORD_HEAD).codec_of("magic")
_MAGIC_AT: Final = fixed(record.RECORD_HEAD).offset_of("magic")
_MARK: Final = _MAGIC.pack(record.MAGIC_V1)[:-1]
"""The bytes with which all magics begin."""
_MOST_GUESSES: Final = 64
"""How many places that look like a record are tried, as bodies may be full of marks."""


def is_record(file: MappedFile, physical_offset: int, size_bytes: int) -> bool:
    """Whether a record of this size begins at this offset and ends within this file."""
    at = physical_offset - file.from_offset
    if size_bytes < HEAD.size or at < 0 or at + size_bytes > file.wrote_bytes:
        return False
    view = file.view
    size, magic, offset = HEAD.unpack_from(view, at)
    if size != size_bytes or offset != physical_offset or magic not in MAGICS:
        return False
    return bool(view[at + size - 1]) or record_size(file, physical_offset) == size


def record_size(file: MappedFile, physical_offset: int) -> int | None:
    """The size of the record at this offset of the file if its lengths add up; otherwise None."""
    at = physical_offset - file.from_offset
    if not 0 <= at < file.wrote_bytes:
        return None
    for found in RecordWalk(file, at, check_crc=False):
        return found.size_bytes if found.end <= file.wrote_bytes else None
    return None


def next_head(data: bytes | mmap.mmap, from_offset: int, start: int, end: int) -> int:
    """The first position from `start` to before `end` at which a record begins; -1 without one.

    `from_offset` is the log offset of the data. A magic with the offset of that very place is taken
    as proof. After many places that only look like a record the search gives up.
    """
    last = min(end - 1, len(data) - HEAD.size)
    at = start
    for _ in range(_MOST_GUESSES):
        at = data.find(_MARK, at + _MAGIC_AT, last + _MAGIC_AT + len(_MARK)) - _MAGIC_AT
        if at < start:
            return -1
        _, magic, offset = HEAD.unpack_from(data, at)
        if offset == from_offset + at and magic in MAGICS:
            return at
        at += 1
    return -1
