# SPDX-License-Identifier: Apache-2.0
"""Compares the index with the log: whether their times agree, and what the index should contain.

The times of all items in a file are relative to the first one's, which is in the header. If that is
wrong, queries for a span of time find nothing, however sound the rest of the file is. So, when a
store is opened, the first and the last message are compared with the log: their times and a key.

Java: has no counterpart.
"""

from __future__ import annotations

from typing import Final

from txrocketmq.broker.store.disk.mapped_file import MappedFileQueue
from txrocketmq.broker.store.formats import formats
from txrocketmq.broker.store.formats.scan import Record
from txrocketmq.broker.store.index.index_file import Index, IndexFile
from txrocketmq.broker.store.index.index_rows import rows_of
from txrocketmq.broker.store.log.log_walk import LogWalk, record_at
from txrocketmq.broker.store.upkeep.reput import has_keys, index_entry
from txrocketmq.remoting.primitives.packing import fixed

_ITEM: Final = fixed(formats.INDEX_ITEM).struct
_HASH: Final = fixed(formats.INDEX_ITEM).codec_of("key_hash")
_HASH_AT: Final = fixed(formats.INDEX_ITEM).offset_of("key_hash")
_MAX_KEYLESS: Final = 32
"""If this many messages in a row have no key, the index is taken to have none there."""


def first_misdated(index: Index, log: MappedFileQueue, end: int) -> tuple[int, str] | None:
    """The index of the first file that is of other messages, and what is wrong; None if none is.

    The log ends at `end`. A file that was removed when the log was cut may be back after a power
    cut. It names messages that the log does not have, or others than the log has there.
    """
    for number, file in enumerate(index.files):
        for is_last, offset, stored_ms in (
            (False, file.begin_physical_offset, file.begin_timestamp_ms),
            (True, file.end_physical_offset, file.end_timestamp_ms),
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
            elif not _has_items_of(file, record, is_last=is_last):
                return number, f"it has other keys for the message at {offset} than the log"
    return None


def _has_items_of(file: IndexFile, record: Record, *, is_last: bool) -> bool:
    """Whether the items of a file for its first or its last message are of the keys of this one.

    Some of them may be in another file.
    """
    entry = index_entry(record)
    position = next((position for position, _ in file.items()), None)
    if entry is None or position is None:
        return True  # there is nothing to compare
    hashes = rows_of([entry]).hashes
    after = file.next_item if is_last else min(1 + len(hashes), file.next_item)
    start, end = (
        position + (each - 1) * _ITEM.size for each in (max(after - len(hashes), 1), after)
    )
    found = [
        key_hash
        for key_hash, offset, *_ in _ITEM.iter_unpack(file.file.view[start:end])
        if offset == record.physical_offset
    ]
    places = range(len(hashes) - len(found) + 1)
    return bool(found) and any(hashes[at : at + len(found)] == found for at in places)


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
