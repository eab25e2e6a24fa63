# SPDX-License-Identifier: Apache-2.0
"""Slices of the log for the messages of a queue, each checked before it is returned.

The queue's units say where messages are; record_head.py defines what is a record. Adjacent messages
come as one slice. Nothing is copied.

Java: SelectMappedBufferResult, which checks nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from txrocketmq.broker.store.disk.mapped_file import MappedFile
from txrocketmq.broker.store.disk.record_head import HEAD, MAGICS, is_record
from txrocketmq.broker.store.log.commit_log import CommitLog

_unpack_head: Final = HEAD.unpack_from


# The following handles each message that is pulled, so no call is made that can be avoided. It does
# the cheap checks of is_record() itself, and calls that only for the others.


def slices_of(
    file: MappedFile, starts: Sequence[int], sizes: Sequence[int], magic: int
) -> list[memoryview] | None:
    """A slice for each record; None when one may be none. May raise IndexError and struct.error."""
    view, base = file.view, file.from_offset
    slices: list[memoryview] = []
    for start, size in zip(starts, sizes, strict=True):
        at = start - base
        end = at + size
        found_size, found_magic, offset = _unpack_head(view, at)
        if offset != start or found_size != size or found_magic != magic or not view[end - 1]:
            return None
        slices.append(view[at:end])
    return slices


def one_slice(
    file: MappedFile, starts: Sequence[int], sizes: Sequence[int], magic: int
) -> list[memoryview] | None:
    """The same for adjacent records: one slice for all of them."""
    view = file.view
    at = first = starts[0] - file.from_offset
    for start, size in zip(starts, sizes, strict=True):
        found_size, found_magic, offset = _unpack_head(view, at)
        at += size
        if offset != start or found_size != size or found_magic != magic or not view[at - 1]:
            return None
    return [view[first:at]]


class Slices:
    """Collects slices of the log; a message that directly follows another extends its slice."""

    def __init__(self, log: CommitLog) -> None:
        self._log = log
        self._slices: list[memoryview] = []
        self._file: MappedFile
        self._view = memoryview(b"")
        self._file_start = self._file_end = 0
        self._run_start = self._run_end = 0
        self._start = self._end = 0

    def find(self, physical_offset: int, size: int) -> bool:
        """Goes to a message; returns False when the log does not have it there (see is_record)."""
        end = physical_offset + size
        if (
            not self._file_start <= physical_offset < end <= self._file_end or size < HEAD.size
        ) and not self._go_to_file(physical_offset, end):
            return False
        view, at = self._view, physical_offset - self._file_start
        found_size, magic, offset = _unpack_head(view, at)
        if found_size != size or offset != physical_offset or magic not in MAGICS:
            return False
        if not view[at + size - 1] and not is_record(self._file, physical_offset, size):
            return False
        self._start, self._end = physical_offset, end
        return True

    def _go_to_file(self, start: int, end: int) -> bool:
        """Goes to the file that contains this range; returns False when there is none."""
        file = self._log.files.find(start)
        if file is None or end > file.end_offset or end - start < HEAD.size:
            return False
        self._end_run()
        self._file, self._view = file, file.view
        self._file_start, self._file_end = file.from_offset, file.end_offset
        return True

    def found(self) -> memoryview:
        """The message that was gone to."""
        return self._view[self._start - self._file_start : self._end - self._file_start]

    def take(self) -> None:
        """Adds that message."""
        if self._start != self._run_end:
            self._end_run()
            self._run_start = self._start
        self._run_end = self._end

    def end(self) -> list[memoryview]:
        """Returns all slices that were collected."""
        self._end_run()
        return self._slices

    def _end_run(self) -> None:
        if self._run_end > self._run_start:
            file_start = self._file_start
            self._slices.append(
                self._view[self._run_start - file_start : self._run_end - file_start]
            )
        self._run_start = self._run_end = -1
