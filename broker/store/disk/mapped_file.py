# SPDX-License-Identifier: Apache-2.0
"""Files of a fixed size, mapped into memory, in a row: the form of log, queues and ext files.

A file is named by the offset of its first byte in the row, in 20 digits. It has its full size from
the start, zero-filled and sparse; `wrote_bytes` says how much of it means something. All files of
a row but the last are full. A file is mapped when it is first touched.

Readers get slices of a read-only view: no bytes are copied. Removing a file unlinks it and drops
the mapping, which the system keeps for as long as somebody holds a slice; nothing is ever shortened
under a mapping.

Room on the disk is reserved ahead of the writing position, so a full disk is an OSError from
`reserve` and never a fault in a write (see files.py). Where reading takes room too, the view of a
file ends where its data do, and grows with what is reserved. The mappings are shared and
file-backed: they cost page cache, not memory of the process.

Java: logfile.DefaultMappedFile, MappedFileQueue, AllocateMappedFileService.
"""

from __future__ import annotations

import mmap
import os
from bisect import bisect_right
from contextlib import suppress

from txrocketmq.broker.store.disk.descriptors import mappings
from txrocketmq.broker.store.disk.files import Entry, Files
from txrocketmq.broker.store.formats.errors import FileSizeError
from txrocketmq.remoting.process.operating_system import fault_page_by_page, make_hole

_NAME_DIGITS = 20
_PAGE_BYTES = 4096
_MAX_STEP_BYTES = 8 * 1024 * 1024
"""How many bytes at most are reserved ahead of the writing position."""
_ZEROS = bytes(256 * 1024)


def file_name(from_offset: int) -> str:
    """The name of the file that starts at this offset."""
    return f"{from_offset:0{_NAME_DIGITS}d}"


class MappedFile:
    """One file: written up to `wrote_bytes`, readable anywhere before that.

    `step_bytes` is the least that is reserved ahead; the step grows with the file. Room is reserved
    up to `reserved_bytes`, as far as is known; -1: nothing is known. With `held` the file is kept
    open while it is written, so that a sync needs no descriptor; `release` ends that.
    """

    __slots__ = (
        "_files",
        "_filled_bytes",
        "_held",
        "_map",
        "_step_bytes",
        "_view",
        "from_offset",
        "is_held",
        "path",
        "reserved_bytes",
        "size_bytes",
        "wrote_bytes",
    )

    is_made = True  # but see light_row.py

    def __init__(
        self,
        files: Files,
        path: str,
        size_bytes: int,
        *,
        from_offset: int = 0,
        wrote_bytes: int = 0,
        step_bytes: int = _PAGE_BYTES,
        held: bool = False,
    ) -> None:
        self._files = files
        self._map: mmap.mmap | None = None
        self._view: memoryview | None = None
        self._filled_bytes = 0
        self.reserved_bytes = -1
        self._step_bytes = step_bytes
        self._held = held
        self.is_held = False
        """Whether the file is kept open now."""
        self.path = path
        self.size_bytes = size_bytes
        self.from_offset = from_offset
        self.wrote_bytes = wrote_bytes

    def map(self) -> mmap.mmap:
        """The mapping itself, for code that writes in place; `create` the file if there is none."""
        if self._map is None:
            mapped = self._files.map(self.path, self.size_bytes)
            self._filled_bytes = self._files.filled(self.path)
            self._map = mapped
            mappings.count += 1
        return self._map

    @property
    def view(self) -> memoryview:
        """The file, read-only: all of it, or as much as can be read without taking room."""
        if self._view is None:
            self._view = memoryview(self.map()).toreadonly()[: self._filled_bytes]
        return self._view

    def fill(self, end_bytes: int) -> None:
        """Makes sure that the mapping can be read up to there; raises OSError without room."""
        self.map()
        if self._filled_bytes < end_bytes:
            self.reserve(end_bytes)

    @property
    def end_offset(self) -> int:
        """The offset in the row of the first byte that is not written."""
        return self.from_offset + self.wrote_bytes

    @property
    def is_full(self) -> bool:
        return self.wrote_bytes >= self.size_bytes

    def reserve(self, end_bytes: int) -> None:
        """Reserves room on the disk up to there; raises OSError if there is none."""
        if end_bytes <= self.reserved_bytes:
            return
        if self._held and not self.is_held:
            self._files.hold(self.path)
            self.is_held = True
        self.map()
        start = self.reserved_bytes
        if start < 0:
            start = self.wrote_bytes // _PAGE_BYTES * _PAGE_BYTES
        step = min(max(end_bytes, self._step_bytes), _MAX_STEP_BYTES)
        end = -(-(end_bytes + step) // _PAGE_BYTES) * _PAGE_BYTES
        end = min(end, self.size_bytes)
        self._files.allocate(self.path, start, end - start)
        if self._held and self._map is not None:
            fault_page_by_page(self._map, start, end - start)
        self.reserved_bytes = end
        if end > self._filled_bytes:
            self._filled_bytes = end
            self._view = None

    def create(self, end_bytes: int) -> None:
        """Like `reserve`, but for a new file, which is removed again if there is no room."""
        try:
            self.reserve(end_bytes)
        except OSError:
            if self.reserved_bytes < 0:
                self.remove()
            raise

    def append(self, data: bytes | memoryview) -> None:
        """Writes at the writing position and moves it; raises OSError without room."""
        start = self.wrote_bytes
        end = start + len(data)
        if end > self.reserved_bytes:
            self.reserve(end)
        self._map[start:end] = data  # type: ignore[index]  # reserve() has mapped it
        self.wrote_bytes = end

    def overwrite(self, position: int, data: bytes) -> None:
        """Overwrites written bytes; raises OSError without room, which a hole may need."""
        self.reserve_whole()
        self.map()[position : position + len(data)] = data

    def reserve_whole(self) -> None:
        """Reserves room for all of the file, which may have holes; raises OSError without."""
        if self.reserved_bytes < self.size_bytes:
            self.map()
            self._files.allocate(self.path, 0, self.size_bytes)
            self.reserved_bytes = self._filled_bytes = self.size_bytes
            self._view = None

    def select(self, position: int, size_bytes: int) -> memoryview | None:
        """A slice of the written part; None when the range is not fully written."""
        end = position + size_bytes
        if position < 0 or size_bytes < 0 or end > self.wrote_bytes:
            return None
        found = self.view[position:end]
        return found if len(found) == size_bytes else None

    def clear_tail(self) -> None:
        """Zeroes what is behind the written part, as in a file that was never written there.

        What a crash leaves behind would else come back to life where new data end.
        """
        mapped = self.map()
        start = self.wrote_bytes
        if start >= self._filled_bytes:  # a hole
            return
        aligned = min(-(-start // _PAGE_BYTES) * _PAGE_BYTES, self.size_bytes)
        _zero(mapped, start, aligned)
        self.reserved_bytes = -1
        if aligned == self.size_bytes or not self._files.has_data(self.path, aligned):
            return
        try:
            make_hole(mapped, aligned, self.size_bytes - aligned)
            self._filled_bytes = self._files.filled(self.path)
            self._view = None
        except OSError:
            # A file system without holes, or a system that makes none.
            _zero(mapped, aligned, self.size_bytes)

    def unmap(self) -> None:
        """Drops the mapping, which is made again when needed."""
        mappings.count -= self._map is not None
        self._map = None
        self._view = None
        self._filled_bytes = 0
        self.reserved_bytes = -1
        self.release()

    def close(self) -> None:
        """Like `unmap`, but at once if no slices are held, and without delaying other threads."""
        mapped = self._map
        self.unmap()
        if mapped is not None:
            with suppress(BufferError):
                mapped.close()

    def release(self) -> None:
        """Closes the file until room in it is reserved again."""
        if self.is_held:
            self.is_held = False
            self._files.release(self.path)

    def remove(self) -> None:
        """Deletes the file; slices that are held stay readable."""
        self.unmap()
        self._files.remove(self.path)


def _zero(mapped: mmap.mmap, start: int, end: int) -> None:
    for at in range(start, end, len(_ZEROS)):
        zeros = _ZEROS[: end - at]
        if mapped[at : at + len(zeros)] != zeros:  # what was never written is left alone
            mapped[at : at + len(zeros)] = zeros


class MappedFileQueue:
    """A row of files in one directory; offsets continue from file to file.

    `key` is the configuration key of `file_bytes`, for error texts. `flushed_offset` is where the
    durable part ends, as far as is known. With `held` the files that are written, and those that
    are not yet durable, are kept open.
    """

    __slots__ = (
        "_files",
        "_held",
        "_key",
        "_prepared",
        "_step_bytes",
        "behind",
        "directory",
        "file_bytes",
        "flushed_offset",
        "foreign",
        "mapped_files",
        "misfits",
    )

    def __init__(
        self,
        files: Files,
        directory: str,
        file_bytes: int,
        key: str,
        step_bytes: int = _PAGE_BYTES,
        *,
        held: bool = False,
    ) -> None:
        self._files = files
        self._held = held
        self._key = key
        self._step_bytes = step_bytes
        self.directory = directory
        self.file_bytes = file_bytes
        self.flushed_offset = 0
        self.mapped_files: list[MappedFile] = []
        self.behind: list[MappedFile] = []
        """Files that begin behind the written part."""
        self.foreign: list[str] = []
        """Paths in the directory that do not belong to the row."""
        self.misfits: list[Entry] = []
        """Files of the row whose size is not `file_bytes`."""
        self._prepared: list[MappedFile] = []

    def load(self) -> None:
        """Finds the files of the directory, all taken to be full until recovery finds out.

        An empty last file was left by a crash while it was created; it counts as missing. Paths
        that do not belong to such a row are listed in `foreign` and left alone, files of another
        size in `misfits`: those that are too short are part of the row, since mapping them
        lengthens them; those that are too long are not.
        """
        self.mapped_files, self.behind, self.foreign, self.misfits = [], [], [], []
        found: list[Entry] = []
        for entry in self._files.entries(self.directory):
            is_name = len(entry.name) == _NAME_DIGITS and entry.name.isdecimal()
            if is_name and not entry.is_directory:
                found.append(entry)
            else:
                self.foreign.append(os.path.join(self.directory, entry.name))
        if found and found[-1].size_bytes == 0:
            found.pop()
        for entry in found:
            if entry.size_bytes != self.file_bytes:
                self.misfits.append(entry)
            if entry.size_bytes <= self.file_bytes:
                self.mapped_files.append(self._file(int(entry.name), self.file_bytes))
        self.flushed_offset = self.max_offset

    @property
    def fits(self) -> bool:
        """Whether some file has the configured size, or there is no file of another size."""
        short = sum(entry.size_bytes <= self.file_bytes for entry in self.misfits)
        return not self.misfits or len(self.mapped_files) > short

    def refuse_misfits(self) -> None:
        """Raises FileSizeError when there are files of another size."""
        for entry in self.misfits:
            path = os.path.join(self.directory, entry.name)
            raise FileSizeError(path, entry.size_bytes, self._key, self.file_bytes)

    def gaps(self) -> list[tuple[int, int]]:
        """The ranges of offsets whose files are missing in the row (checkSelf)."""
        return [
            (before.from_offset + self.file_bytes, after.from_offset)
            for before, after in zip(self.mapped_files, self.mapped_files[1:], strict=False)
            if after.from_offset - before.from_offset != self.file_bytes
        ]

    def insert(self, offset: int, content: bytes) -> MappedFile:
        """Creates the missing file for this offset, full of `content`; OSError without room."""
        file = self._file(offset - offset % self.file_bytes, 0)
        self._files.make_directory(self.directory)
        file.reserve(self.file_bytes)
        file.append(content * (self.file_bytes // len(content)))
        self.mapped_files.append(file)
        self.mapped_files.sort(key=lambda each: each.from_offset)
        self.flushed_offset = min(self.flushed_offset, file.from_offset)
        return file

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
        """The index of the file that contains this offset; -1 if there is none."""
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
        """The file that contains this offset, written or not."""
        row = self.mapped_files
        if row and 0 <= offset - row[-1].from_offset < self.file_bytes:
            return row[-1]
        index = self.index_of(offset)
        return row[index] if index >= 0 else None

    def select(self, offset: int, size_bytes: int) -> memoryview | None:
        """A slice of one file; None when it is not all written, or would cross files."""
        file = self.find(offset)
        return None if file is None else file.select(offset - file.from_offset, size_bytes)

    def prepare(self, index: int, end_bytes: int, first_offset: int = 0) -> MappedFile:
        """Prepares the file `index` + 1 places after the last one, with room up to there.

        So a batch that crosses files fails before any of it is written: raises OSError without
        room, and creates no file then. `first_offset` lies in the first file of a row.
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
        try:
            file.create(end_bytes)
        except OSError:
            if file.reserved_bytes < 0:
                while len(self._prepared) > index + 1:
                    self._prepared.pop().remove()
                self._prepared.pop()
            raise
        return file

    def roll(self, first_offset: int = 0) -> MappedFile:
        """Adds a new last file, the first prepared one; raises OSError without room."""
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
        """Ends the written part at this offset; files that begin later are removed."""
        self.discard_prepared()
        self.end_at(offset)
        self.remove_behind()

    def end_at(self, offset: int) -> None:
        """Ends the written part at this offset; files that begin later are moved to `behind`."""
        while self.mapped_files and self.mapped_files[-1].from_offset > offset:
            self.behind.insert(0, self.mapped_files.pop())
        last = self.last
        if last is not None:
            last.wrote_bytes = min(offset - last.from_offset, self.file_bytes)
        self.flushed_offset = min(self.flushed_offset, self.max_offset)

    def remove_behind(self) -> None:
        """Removes the files behind the written part."""
        while self.behind:
            self.behind.pop().remove()

    def take_first(self, count: int) -> list[MappedFile]:
        """Takes the first files out of the row; the caller has to remove them."""
        taken = self.mapped_files[:count]
        del self.mapped_files[:count]
        return taken

    def release_durable(self) -> None:
        """Closes the held files that are full and durable."""
        for index in range(len(self.mapped_files) - 2, -1, -1):
            file = self.mapped_files[index]
            if file.end_offset <= self.flushed_offset:
                if not file.is_held:
                    return
                file.release()

    def remove_last(self) -> None:
        """Removes the last file."""
        self.mapped_files.pop().remove()

    def take_all(self) -> list[MappedFile]:
        """Takes all files out of the row; the caller has to remove them."""
        taken = self.mapped_files + self._prepared + self.behind
        self.mapped_files, self._prepared, self.behind, self.flushed_offset = [], [], [], 0
        return taken

    def destroy(self) -> None:
        """Removes all files, and the directory if nothing else is in it."""
        for file in self.take_all():
            file.remove()
        self._files.remove_directory(self.directory)

    def unmap(self) -> None:
        """Drops all mappings."""
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
            held=self._held,
        )
