# SPDX-License-Identifier: Apache-2.0
"""Files of a fixed size, mapped into memory, in a row: what log, queues and their ext consist of.

A file is named by the offset of its first byte in the row, in 20 digits. It has its full size from
the start, zero-filled and sparse; `wrote_bytes` says how much of it means something. All files of
a row but the last are full. A file is mapped when it is first touched.

Readers get slices of a read-only view: no bytes are copied. Removing a file unlinks it and drops
the mapping, which the system keeps for as long as somebody holds a slice; nothing is ever shortened
under a mapping.

Room on the disk is reserved ahead of the writing position, so a full disk is an OSError from
`reserve` and never a fault in a write (see files.py). The mappings are shared and file-backed:
they cost page cache, not memory of the process.

Java: logfile.DefaultMappedFile, MappedFileQueue, AllocateMappedFileService.
"""

from __future__ import annotations

import mmap
import os
from bisect import bisect_right

from txrocketmq.broker.store.errors import FileSizeError, StoreError
from txrocketmq.broker.store.files import Files

_NAME_DIGITS = 20
_PAGE_BYTES = 4096
_MAX_STEP_BYTES = 8 * 1024 * 1024
"""The most that is reserved ahead of the writing position."""


def file_name(from_offset: int) -> str:
    """The name of the file that starts at this offset."""
    return f"{from_offset:0{_NAME_DIGITS}d}"


class MappedFile:
    """One file: written at `wrote_bytes`, read anywhere before.

    `step_bytes` is the least that is reserved ahead; the step grows with the file.
    """

    __slots__ = (
        "_files",
        "_map",
        "_reserved_bytes",
        "_step_bytes",
        "_view",
        "from_offset",
        "path",
        "size_bytes",
        "wrote_bytes",
    )

    def __init__(
        self,
        files: Files,
        path: str,
        size_bytes: int,
        *,
        from_offset: int = 0,
        wrote_bytes: int = 0,
        step_bytes: int = _PAGE_BYTES,
    ) -> None:
        self._files = files
        self._map: mmap.mmap | None = None
        self._view: memoryview | None = None
        self._reserved_bytes = -1
        self._step_bytes = step_bytes
        self.path = path
        self.size_bytes = size_bytes
        self.from_offset = from_offset
        self.wrote_bytes = wrote_bytes

    def map(self) -> mmap.mmap:
        """The mapping itself, for those who write in place; create the file where there is none."""
        if self._map is None:
            self._map = self._files.map(self.path, self.size_bytes)
        return self._map

    @property
    def view(self) -> memoryview:
        """The whole file, read-only."""
        if self._view is None:
            self._view = memoryview(self.map()).toreadonly()
        return self._view

    @property
    def end_offset(self) -> int:
        """The offset in the row of the first byte that is not written."""
        return self.from_offset + self.wrote_bytes

    @property
    def is_full(self) -> bool:
        return self.wrote_bytes >= self.size_bytes

    def reserve(self, end_bytes: int) -> None:
        """Makes sure of room on the disk up to there; OSError when there is none."""
        if end_bytes <= self._reserved_bytes:
            return
        self.map()
        start = self._reserved_bytes
        if start < 0:
            start = self.wrote_bytes // _PAGE_BYTES * _PAGE_BYTES
        step = min(max(end_bytes, self._step_bytes), _MAX_STEP_BYTES)
        end = -(-(end_bytes + step) // _PAGE_BYTES) * _PAGE_BYTES
        end = min(end, self.size_bytes)
        self._files.allocate(self.path, start, end - start)
        self._reserved_bytes = end

    def append(self, data: bytes) -> None:
        """Writes at the writing position, which moves; OSError, and nothing moves, without room."""
        start = self.wrote_bytes
        end = start + len(data)
        if end > self._reserved_bytes:
            self.reserve(end)
        self._map[start:end] = data  # type: ignore[index]  # reserve() has mapped it
        self.wrote_bytes = end

    def select(self, position: int, size_bytes: int) -> memoryview | None:
        """A slice of what is written; None when it is not all written."""
        end = position + size_bytes
        if position < 0 or size_bytes < 0 or end > self.wrote_bytes:
            return None
        return self.view[position:end]

    def clear_tail(self) -> None:
        """Makes all bytes after the written part zero, as in a file that was never written there.

        What a crash or a truncation leaves behind would else come back to life once new data ends
        where old data begins. (The original leaves it.)
        """
        mapped = self.map()
        start = self.wrote_bytes
        aligned = min(-(-start // _PAGE_BYTES) * _PAGE_BYTES, self.size_bytes)
        _zero(mapped, start, aligned)
        self._reserved_bytes = -1
        if aligned == self.size_bytes:
            return
        try:
            mapped.madvise(mmap.MADV_REMOVE, aligned, self.size_bytes - aligned)
        except OSError:
            # A file system without holes.
            for at in range(aligned, self.size_bytes, _MAX_STEP_BYTES):
                _zero(mapped, at, min(at + _MAX_STEP_BYTES, self.size_bytes))

    def unmap(self) -> None:
        """Forgets the mapping; it is made again when it is needed."""
        self._map = None
        self._view = None
        self._reserved_bytes = -1

    def remove(self) -> None:
        """Deletes the file; slices that are held stay readable."""
        self.unmap()
        self._files.remove(self.path)


def _zero(mapped: mmap.mmap, start: int, end: int) -> None:
    zeros = bytes(end - start)
    if mapped[start:end] != zeros:  # a page that was never written is left alone
        mapped[start:end] = zeros


class MappedFileQueue:
    """A row of files in one directory; offsets run on from file to file.

    `key` is the configuration key of `file_bytes`, for error texts. `flushed_offset` is where the
    durable part ends, as far as is known.
    """

    __slots__ = (
        "_files",
        "_key",
        "_prepared",
        "_step_bytes",
        "directory",
        "file_bytes",
        "flushed_offset",
        "mapped_files",
    )

    def __init__(
        self, files: Files, directory: str, file_bytes: int, key: str, step_bytes: int = _PAGE_BYTES
    ) -> None:
        self._files = files
        self._key = key
        self._step_bytes = step_bytes
        self.directory = directory
        self.file_bytes = file_bytes
        self.flushed_offset = 0
        self.mapped_files: list[MappedFile] = []
        self._prepared: list[MappedFile] = []

    def load(self) -> None:
        """Finds the files of the directory, all taken to be full until recovery says more.

        A last file without any bytes is removed, as 5.x does. StoreError for files that do not
        belong in such a directory, FileSizeError for those of another size.
        """
        found = [entry for entry in self._files.entries(self.directory) if not entry.is_directory]
        if found and found[-1].size_bytes == 0:
            self._files.remove(os.path.join(self.directory, found.pop().name))
        self.mapped_files = []
        for entry in found:
            path = os.path.join(self.directory, entry.name)
            if len(entry.name) != _NAME_DIGITS or not entry.name.isdecimal():
                raise StoreError(f"{path} does not belong there: file names have 20 digits")
            if entry.size_bytes != self.file_bytes:
                raise FileSizeError(path, entry.size_bytes, self._key, self.file_bytes)
            self.mapped_files.append(self._file(int(entry.name), self.file_bytes))
        self.flushed_offset = self.max_offset

    def gaps(self) -> list[str]:
        """A sentence for each place where a file is missing in the row (checkSelf)."""
        return [
            f"in {self.directory} the file {file_name(before.from_offset + self.file_bytes)}"
            f" is missing before {file_name(after.from_offset)}"
            for before, after in zip(self.mapped_files, self.mapped_files[1:], strict=False)
            if after.from_offset - before.from_offset != self.file_bytes
        ]

    @property
    def min_offset(self) -> int:
        """Where the first file starts; -1 without files."""
        return self.mapped_files[0].from_offset if self.mapped_files else -1

    @property
    def max_offset(self) -> int:
        """Where the written part ends; 0 without files."""
        return self.mapped_files[-1].end_offset if self.mapped_files else 0

    @property
    def last(self) -> MappedFile | None:
        return self.mapped_files[-1] if self.mapped_files else None

    def index_of(self, offset: int) -> int:
        """The index of the file that holds this offset; -1 when none does."""
        found = self.mapped_files
        if not found:
            return -1
        index = (offset - found[0].from_offset) // self.file_bytes
        if not 0 <= index < len(found) or found[index].from_offset > offset:
            # A gap in the row.
            index = bisect_right(found, offset, key=lambda file: file.from_offset) - 1
        if index < 0 or offset >= found[index].from_offset + self.file_bytes:
            return -1
        return index

    def find(self, offset: int) -> MappedFile | None:
        """The file that holds this offset, written or not."""
        index = self.index_of(offset)
        return self.mapped_files[index] if index >= 0 else None

    def select(self, offset: int, size_bytes: int) -> memoryview | None:
        """A slice of one file; None when it is not all written, or would cross files."""
        index = self.index_of(offset)
        if index < 0:
            return None
        file = self.mapped_files[index]
        return file.select(offset - file.from_offset, size_bytes)

    def prepare(self, index: int, end_bytes: int, first_offset: int = 0) -> MappedFile:
        """Makes ready what will be the index-th file after the last one, with room up to there.

        So that a batch which crosses files fails before any of it is written: OSError without
        room. `first_offset` is for a row that has no files yet: it lies in the first one.
        """
        while len(self._prepared) <= index:
            row = self.mapped_files + self._prepared
            if row:
                from_offset = row[-1].from_offset + self.file_bytes
            else:
                from_offset = first_offset - first_offset % self.file_bytes
                self._files.make_directory(self.directory)
            self._prepared.append(self._file(from_offset, 0))
        file = self._prepared[index]
        file.reserve(end_bytes)
        return file

    def roll(self, first_offset: int = 0) -> MappedFile:
        """A new last file: the first that is prepared. OSError without room."""
        file = self.prepare(0, 1, first_offset)
        if not self.mapped_files:
            self.flushed_offset = file.from_offset
        self.mapped_files.append(self._prepared.pop(0))
        return file

    def discard_prepared(self) -> None:
        """Removes the files that were prepared and not needed."""
        while self._prepared:
            self._prepared.pop().remove()

    def unflushed(self) -> list[MappedFile]:
        """The files with bytes that may not be durable."""
        return [
            file
            for file in self.mapped_files[max(self.index_of(self.flushed_offset), 0) :]
            if file.end_offset > self.flushed_offset
        ]

    def truncate(self, offset: int) -> None:
        """Ends the written part there; files that begin later are removed."""
        self.discard_prepared()
        while self.mapped_files and self.mapped_files[-1].from_offset > offset:
            self.mapped_files.pop().remove()
        last = self.last
        if last is not None:
            last.wrote_bytes = min(offset - last.from_offset, self.file_bytes)
        self.flushed_offset = min(self.flushed_offset, self.max_offset)

    def remove_first(self, count: int) -> None:
        """Removes so many files from the start of the row."""
        for _ in range(count):
            self.mapped_files.pop(0).remove()

    def remove_last(self) -> None:
        """Removes the last file."""
        self.mapped_files.pop().remove()

    def destroy(self) -> None:
        """Removes all files, and the directory if nothing else is in it."""
        self.discard_prepared()
        self.remove_first(len(self.mapped_files))
        self.flushed_offset = 0
        self._files.remove_directory(self.directory)

    def unmap(self) -> None:
        """Forgets all mappings."""
        for file in self.mapped_files:
            file.unmap()

    def _file(self, from_offset: int, wrote_bytes: int) -> MappedFile:
        return MappedFile(
            self._files,
            os.path.join(self.directory, file_name(from_offset)),
            self.file_bytes,
            from_offset=from_offset,
            wrote_bytes=wrote_bytes,
            step_bytes=self._step_bytes,
        )
