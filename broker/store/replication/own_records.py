# SPDX-License-Identifier: Apache-2.0
"""The records of a replica's own log, found from any place, to be compared with its master's.

Records are not numbered, and reading the log from its beginning would take too long. So a record is
found by its own offset, which it contains together with its mark (record_head.py). A body may look
like a record as well; that does no harm where records are only compared. Where the last record
ends (last_record.py), and where one may cut, is certain: a chain of records leads there.

Java: has no counterpart in plain mode.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from txrocketmq.broker.store.disk.mapped_file import MappedFile, MappedFileQueue
from txrocketmq.broker.store.disk.record_head import next_head, record_size
from txrocketmq.broker.store.formats.scan import Record, RecordWalk
from txrocketmq.broker.store.log.last_record import is_blank, last_record

_AT_ONCE: Final = 4_096
"""How many records are passed in one step."""


class OwnRecord(NamedTuple):
    """A record: where it begins, and its bytes."""

    offset: int
    data: bytes

    @property
    def end(self) -> int:
        """Where the next record begins, or a blank."""
        return self.offset + len(self.data)


class OwnRecords:
    """The records in the files of a log."""

    def __init__(self, row: MappedFileQueue) -> None:
        self._row = row

    @property
    def start(self) -> int:
        """Where the log begins."""
        return max(self._row.min_offset, 0)

    @property
    def end(self) -> int:
        """Where the log ends; that need not be where a record does."""
        return self._row.max_offset

    def last(self) -> OwnRecord | None:
        """The last whole record; None without any.

        Behind it there may be a part of a further one, or of a blank.
        """
        for file in reversed(self._row.mapped_files):
            if (found := last_record(file, file.wrote_bytes)) is not None:
                return OwnRecord(found.physical_offset, bytes(_bytes_of(found)))
        return None

    def first_between(self, low: int, high: int) -> OwnRecord | None:
        """The first record that begins at `low` or later, and before `high`."""
        while low < high:
            file = self._row.find(low)
            if file is None:
                return None
            end = min(high - file.from_offset, file.wrote_bytes)
            at = low - file.from_offset
            while (at := next_head(file.map(), file.from_offset, at, end)) >= 0:
                found = _record(file, file.from_offset + at)
                if found is not None:
                    return found
                at += 1
            low = file.from_offset + file.size_bytes
        return None

    def behind(self, offset: int) -> bytes:
        """What the log has from the end of its last whole record on, within a file."""
        file = self._row.find(offset)
        if file is None or offset >= file.end_offset:
            return b""
        found = file.select(offset - file.from_offset, file.end_offset - offset)
        return b"" if found is None else bytes(found)

    def file_end(self, offset: int) -> int:
        """Where the file ends that has this offset."""
        file = self._row.find(offset)
        return self.end if file is None else file.from_offset + file.size_bytes

    def begins_blank(self, offset: int) -> bool:
        """Whether all that the log has from this offset on is a blank, or a part of one."""
        file = self._row.find(offset)
        if file is None or offset >= file.end_offset:
            return False
        return is_blank(file, offset - file.from_offset, self.behind(offset))

    def boundary(self, offset: int) -> Iterator[int]:
        """Finds the last place up to this offset where certainly a record begins or ends.

        Yields after each step the place that was reached; the last one is the result.
        """
        file = self._row.find(max(offset - 1, 0))
        if file is None:
            yield self.start
            return
        place = file.from_offset
        for place, _ in _steps(file, offset - file.from_offset):
            yield place
        yield place

    def count_from(self, offset: int) -> Iterator[int]:
        """Counts the records from this offset on, where one begins or a blank does.

        Yields after each step how many they are so far.
        """
        count = 0
        while (file := self._row.find(offset)) is not None and offset < self.end:
            for _, more in _steps(file, file.wrote_bytes, offset - file.from_offset):
                count += more
                yield count
            offset = file.from_offset + file.size_bytes
        yield count


def _bytes_of(record: Record) -> memoryview:
    return record.view[record.end - record.size_bytes : record.end]


def _record(file: MappedFile, offset: int) -> OwnRecord | None:
    size = record_size(file, offset)
    at = offset - file.from_offset
    data = None if size is None else file.select(at, size)
    return None if data is None else OwnRecord(offset, bytes(data))


def _steps(file: MappedFile, end: int, at: int = 0) -> Iterator[tuple[int, int]]:
    """Walks over the records of a file from a position on that end up to another one.

    Yields after each step where it is in the log, and how many records the step has passed.
    """
    walk = RecordWalk(file, at, check_crc=False, end=min(end, file.wrote_bytes))
    count, position = 0, at
    for _ in walk:
        count, position = count + 1, walk.position
        if count == _AT_ONCE:
            yield file.from_offset + position, count
            count = 0
    if walk.ended_by_blank and end >= file.size_bytes:
        position = file.size_bytes
    yield file.from_offset + position, count
