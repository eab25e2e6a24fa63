# SPDX-License-Identifier: Apache-2.0
"""Takes back the end of a replica's log that was left open to before an incomplete record.

A replica gets its log in pieces that end anywhere. If it is killed between two of them, or a power
cut takes it back to a sync between them, the first part of a record is there, with zeros in place
of the rest. Where that is topic or properties, which no CRC covers, the record looks sound. (It
would stay like this for ever: the replica would ask for what comes behind it.)

Only what nothing sound follows is looked at: the end of the log, and where a damaged part begins.
A record that is whole may end in a zero byte, too, if its last property does. A master keeps it; a
replica drops it and is sent it again. The mark of an open store says which of them it was.

Java: has no counterpart; its replicas serve such records, and their masters go on behind them.
"""

from __future__ import annotations

from txrocketmq.broker.store.disk.mapped_file import MappedFileQueue
from txrocketmq.broker.store.formats.scan import Record
from txrocketmq.broker.store.log.last_record import is_unfinished, last_record
from txrocketmq.broker.store.log.log_walk import LogWalk, UnreadableStretch


def drop_unfinished(row: MappedFileQueue, walk: LogWalk) -> None:
    """Has a walk over a whole log end, and its damaged parts begin, before unfinished records."""
    for index, damage in enumerate(walk.damages):
        record = _before(row, damage.start)
        if record is not None and is_unfinished(record):
            start = record.physical_offset
            walk.damages[index] = UnreadableStretch(start, damage.end, damage.messages)
    record = _before(row, walk.position)
    if record is not None and is_unfinished(record):
        walk.position = record.physical_offset
        before = _before(row, walk.position)
        walk.last_ms = 0 if before is None else before.store_timestamp_ms


def _before(row: MappedFileQueue, offset: int) -> Record | None:
    """The last record that ends at this offset or before it."""
    for file in reversed(row.mapped_files):
        if file.from_offset < offset:
            end = min(offset - file.from_offset, file.size_bytes)
            if (found := last_record(file, end)) is not None:
                return found
    return None
