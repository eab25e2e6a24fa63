# SPDX-License-Identifier: Apache-2.0
"""Slices of the log for the messages of a queue, each checked before it is returned.

The queue's units say where messages are; record_head.py defines what is a record. Adjacent messages
come as one slice. Nothing is copied.

Java: SelectMappedBufferResult, which checks nothing.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final

from txrocketmq.broker.store.disk.mapped_file import MappedFile
from txrocketmq.broker.store.disk.record_head import HEAD, is_record
from txrocketmq.broker.store.log.commit_log import CommitLog

_unpack_head: Final = HEAD.unpack_from
_HEAD_BYTES: Final = HEAD.size


class LogSlices:
    """Collects slices of the log; a message that directly follows another extends its slice.

    `magic` is that of most of the records; all others are found, too.
    """

    __slots__ = (
        "_end", "_file", "_file_bytes", "_file_start", "_log", "_magic", "_run_end", "_run_start",
        "_slices", "_start", "_view",
    )  # fmt: skip

    def __init__(self, log: CommitLog, magic: int) -> None:
        self._log = log
        self._magic = magic
        self._slices: list[memoryview] = []
        self._file: MappedFile | None = None
        self._view: memoryview
        self._file_start: int
        self._file_bytes: int
        self._run_start: int
        self._run_end = -1
        """Both are positions in the file, of the slice that is being extended; -1 without one."""
        self._start: int
        self._end: int

    def take_all(self, starts: Sequence[int], sizes: Sequence[int]) -> int:
        """Takes messages, given by log offsets and sizes, until the log does not have the next one;
        returns how many it took.
        """
        count = len(starts)
        if not count:
            return 0
        if self._file is None:
            self._go_to_file(starts[0])
        taken = self._take_usual(starts, sizes)
        while taken < count:  # the next is in another file, or unusual, or none
            if not self.find(starts[taken], sizes[taken]):
                break
            self.take()
            taken += 1
            if taken < count:
                taken += self._take_usual(starts[taken:], sizes[taken:])
        return taken

    def _take_usual(self, starts: Sequence[int], sizes: Sequence[int]) -> int:
        """Takes messages of this file up to the first one that `find` has to look at; returns how
        many it took.
        """
        if self._file is None or min(sizes) < _HEAD_BYTES:
            return 0
        view, base, magic, add = self._view, self._file_start, self._magic, self._slices.append
        count, end, unpack_head = len(starts), self._run_end, _unpack_head
        if starts[-1] + sizes[-1] > base + self._file_bytes:
            while count and starts[count - 1] + sizes[count - 1] > base + self._file_bytes:
                count -= 1  # it is in the next file
            starts, sizes = starts[:count], sizes[:count]
        messages = zip(starts, sizes)  # noqa: B905 - as many
        if end >= 0:
            begin = self._run_start
        elif count:
            begin = end = starts[0] - base
        else:
            return 0
        try:
            # This handles each message that is pulled, so no call is made that can be avoided:
            # these are the cheap checks of `find`.
            for start, size in messages:
                at = start - base
                found_size, found_magic, offset = unpack_head(view, at)
                after = at + size
                if (
                    offset != start or found_size != size or found_magic != magic
                    or not view[after - 1]
                ):  # fmt: skip
                    count -= 1 + len([*messages])
                    break
                if at != end:
                    add(view[begin:end])
                    begin = at
                end = after
        except (struct.error, IndexError):  # a unit points beside the file
            count -= 1 + len([*messages])
        if end > begin:
            self._run_start, self._run_end = begin, end
        return count

    def find(self, physical_offset: int, size: int) -> bool:
        """Goes to a message; returns False when the log does not have it there (see is_record)."""
        at = -1 if self._file is None else physical_offset - self._file_start
        if at < 0 or not at <= at + size <= self._file_bytes:
            self._go_to_file(physical_offset)
        if self._file is None or not is_record(self._file, physical_offset, size):
            return False
        at = physical_offset - self._file_start
        self._start, self._end = at, at + size
        return True

    def _go_to_file(self, physical_offset: int) -> None:
        """Goes to the file that has this log offset, if there is one."""
        file = self._log.files.find(physical_offset)
        if file is not None and file is not self._file:
            if self._run_end >= 0:
                self._end_run()
            self._file, self._view = file, file.view
            self._file_start, self._file_bytes = file.from_offset, file.wrote_bytes

    def found(self) -> memoryview:
        """The message that was gone to."""
        return self._view[self._start : self._end]

    def take(self) -> None:
        """Adds that message."""
        if self._start != self._run_end:
            if self._run_end >= 0:
                self._end_run()
            self._run_start = self._start
        self._run_end = self._end

    def end(self) -> list[memoryview]:
        """Returns all slices that were collected."""
        if self._run_end >= 0:
            self._slices.append(self._view[self._run_start : self._run_end])
            self._run_end = -1
        return self._slices

    def _end_run(self) -> None:
        self._slices.append(self._view[self._run_start : self._run_end])
        self._run_end = -1
