# SPDX-License-Identifier: Apache-2.0
"""The files of a light queue, of which the first is made after its first units were written.

One message may be the first of thousands of light queues, and to make a file takes a millisecond.
So the first units of a light queue are kept in memory, where nothing can fail and nothing takes
long, and whoever runs the store has the files made a few at a time (ConsumeQueues.make_files). A
queue with more units than fit there makes its file at once. A crash costs nothing: the records in
the log say in which light queues they are, and a start after a crash goes by that
(light_queues.py).

Made files are not mapped before they are used again: up to Python 3.12 each mapping needs a
descriptor. Java: has no counterpart; there a queue's file is made within the dispatch.
"""

from __future__ import annotations

import mmap
import os
from typing import Final, cast

from txrocketmq.broker.store.disk.mapped_file import MappedFile, MappedFileQueue, file_name

MEMORY_BYTES: Final = 64 * 20
"""How many bytes of a file are kept in memory before it is made: 64 units."""


class LightFile(MappedFile):
    """A file that is in memory until it is made; from then on it is like any other."""

    __slots__ = ("is_made",)

    is_made: bool

    def hold_in_memory(self) -> None:
        """Takes the place of the file, which does not exist yet, with some bytes of memory."""
        self.is_made = False
        size_bytes = min(MEMORY_BYTES, self.size_bytes)
        self._map = cast("mmap.mmap", bytearray(size_bytes))
        self._filled_bytes = self.reserved_bytes = size_bytes

    def make(self) -> None:
        """Makes the file; raises OSError, and leaves none, when the disk has no room for it."""
        if self.is_made:
            return
        written = memoryview(self.map())[: self.wrote_bytes].tobytes()
        self._files.make_directory(os.path.dirname(self.path))
        self._files.create(self.path, self.size_bytes, written)
        self.is_made = True
        self._map = None
        self.unmap()

    def reserve(self, end_bytes: int) -> None:
        """See MappedFile."""
        if end_bytes > self.reserved_bytes:
            self.make()
            super().reserve(end_bytes)

    def reserve_whole(self) -> None:
        """See MappedFile."""
        self.make()
        super().reserve_whole()

    def clear_tail(self) -> None:
        """See MappedFile."""
        if self.is_made:
            super().clear_tail()
            return
        mapped, start = self.map(), self.wrote_bytes
        mapped[start : self.reserved_bytes] = bytes(self.reserved_bytes - start)

    def unmap(self) -> None:
        """Drops the mapping, but never what there is only in memory."""
        if self.is_made:
            super().unmap()

    def close(self) -> None:
        """See MappedFile."""
        if self.is_made:
            super().close()

    def remove(self) -> None:
        """See MappedFile."""
        if self.is_made:
            super().remove()


class LightRow(MappedFileQueue):
    """A row whose first file is a LightFile, unless there are files when it is loaded."""

    __slots__ = ()

    @property
    def is_made(self) -> bool:
        """Whether all of the row is in files."""
        return all(file.is_made for file in self.mapped_files)

    def make(self) -> None:
        """Makes the file that is in memory only; raises OSError without room."""
        for file in self.mapped_files:
            if isinstance(file, LightFile) and not file.is_made:
                file.make()
                self.flushed_offset = min(self.flushed_offset, file.from_offset)

    def prepare(self, index: int, end_bytes: int, first_offset: int = 0) -> MappedFile:
        """See MappedFileQueue."""
        if not self.mapped_files and not self._prepared:
            from_offset = first_offset - first_offset % self.file_bytes
            path = f"{self.directory}{os.sep}{file_name(from_offset)}"
            first = LightFile(self._files, path, self.file_bytes, from_offset=from_offset)
            first.hold_in_memory()
            self._prepared.append(first)
        if not index and self._prepared and end_bytes <= self._prepared[0].reserved_bytes:
            return self._prepared[0]
        self._files.make_directory(self.directory)
        return super().prepare(index, end_bytes, first_offset)

    def unflushed(self) -> list[MappedFile]:
        """See MappedFileQueue; what is in memory only cannot be synced."""
        return [file for file in super().unflushed() if file.is_made]
