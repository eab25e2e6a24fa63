# SPDX-License-Identifier: Apache-2.0
"""Compares the index with the log: whether their times agree, and what the index should contain.

The times of all items in a file are relative to the first one's, which is in the header. If that is
wrong, queries for a span of time find nothing, however sound the rest of the file is. So, when a
store is opened, the times of the first and the last message are compared with the log.

Java: has no counterpart.
"""

from __future__ import annotations

from typing import Final

from txrocketmq.broker.store.disk.mapped_file import MappedFileQueue
from txrocketmq.broker.store.formats import formats
from txrocketmq.broker.store.index.index_file import Index
from txrocketmq.broker.store.index.index_rows import rows_of
from txrocketmq.broker.store.log.log_walk import LogWalk, record_at
from txrocketmq.broker.store.upkeep.reput import has_keys, index_entry
from txrocketmq.remoting.primitives.packing import fixed

_HASH: Final = fixed(formats.INDEX_ITEM).codec_of("key_hash")
_HASH_AT: Final = fixed(formats.INDEX_ITEM).offset_of("key_hash")
_MAX_KEYLESS: Final = 32
"""If this many messages in a row have no key, the index is taken to have none there."""


def first_misdated(index: Index, log: MappedFileQueue, end: int) -> tuple[int, str] | None:
    """The index of the first file with wrong times, and what is wrong; None when all are right.

    The log ends at `end`. A file that names messages which the log does not have is wrong as well:
    it was removed when the log was cut, and is back after a power cut.
    """
    for number, file in enumerate(index.files):
        for offset, stored_ms in (
            (file.begin_physical_offset, file.begin_timestamp_ms),
            (file.end_physical_offset, file.end_timestamp_ms),
        ):
            record = record_at(log, offset, check_crc=False)
            if record is None:
                if log.min_offset <= offset < end:
                    return number, f"its header names a message at {offset}, where the log has none"
            elif record.store_timestamp_ms != stored_ms:
                return number, (
                    f"its header has {stored_ms} as the time of the message at {offset}, which the"
                    f" log has as {record.store_timestamp_ms}"
                )
    return None


def lacks_before(index: Index, log: MappedFileQueue, number: int, at: int) -> bool:
    """Whether the files before this one, which end at a log offset, lack something.

    A message has several items, which may be in two files. After a power cut, a message may remain
    while the file with the first of its items is gone, when both had expired.
    """
    first = index.files[number]
    if first.begin_physical_offset > at:
        return has_keys_between(log, at, first.begin_physical_offset)
    if number or first.begin_physical_offset < at:
        return False
    record = record_at(log, first.begin_physical_offset, check_crc=False)
    entry = None if record is None else index_entry(record)
    hashes = [] if entry is None else rows_of([entry]).hashes
    position = next((position for position, _ in first.items()), None)
    if position is None or not hashes:
        return False
    return bool(_HASH.unpack_from(first.file.view, position + _HASH_AT)[0] != hashes[0])


def has_keys_between(log: MappedFileQueue, start: int, end: int) -> bool:
    """Whether messages between these log offsets have keys; only the first ones are examined."""
    walk = LogWalk(log, (), check_crc=False)
    for count, record in enumerate(walk.records(start, end)):
        if has_keys(record):
            return True
        if count == _MAX_KEYLESS:
            break
    return False
