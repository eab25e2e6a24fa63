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
from txrocketmq.broker.store.disk.record_head import HEAD, is_record
from txrocketmq.broker.store.log.commit_log import CommitLog

_unpack_head: Final = HEAD.unpack_from
_HEAD_BYTES: Final = HEAD.size


class Slices:
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
        self._view = memoryview(b"")
        self._file_start = self._file_bytes = 0
        self._run_start = self._run_end = -1
        """The slice that is being extended: positions in the file."""
        self._start = self._end = 0

    def take_all(self, starts: Sequence[int], sizes: Sequence[int]) -> int:
        """Takes messages, given by log offsets and sizes, until the log does not have the next one;
        returns how many it took.
        """
        # This handles each message that is pulled, so no call is made that can be avoided: it does
        # the cheap checks of `find` itself.
        magic, view, base = self._magic, self._view, self._file_start
        last, run_end, taken = self._file_bytes - _HEAD_BYTES, self._run_end, 0
        for start, size in zip(starts, sizes, strict=True):
            at = start - base
            end = at + size
            is_sound = False
            if 0 <= at <= end - _HEAD_BYTES <= last:
                found_size, found_magic, offset = _unpack_head(view, at)
                is_sound = (
                    offset == start
                    and found_size == size
                    and found_magic == magic
                    and view[end - 1] != 0
                )
            if not is_sound:
                self._run_end = run_end
                if not self.find(start, size):
                    return taken
                view, base, run_end = self._view, self._file_start, self._run_end
                last, at, end = self._file_bytes - _HEAD_BYTES, self._start, self._end
            if at != run_end:
                if run_end >= 0:
                    self._slices.append(view[self._run_start : run_end])
                self._run_start = at
            run_end = end
            taken += 1
        self._run_end = run_end
        return taken

    def find(self, physical_offset: int, size: int) -> bool:
        """Goes to a message; returns False when the log does not have it there (see is_record)."""
        at = physical_offset - self._file_start
        if self._file is None or not 0 <= at <= at + size <= self._file_bytes:
            file = self._log.files.find(physical_offset)
            if file is None:
                return False
            self._end_run()
            self._file, self._view = file, file.view
            self._file_start, self._file_bytes = file.from_offset, file.wrote_bytes
            at = physical_offset - self._file_start
        if not is_record(self._file, physical_offset, size):
            return False
        self._start, self._end = at, at + size
        return True

    def found(self) -> memoryview:
        """The message that was gone to."""
        return self._view[self._start : self._end]

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
        if self._run_end >= 0:
            self._slices.append(self._view[self._run_start : self._run_end])
        self._run_start = self._run_end = -1
