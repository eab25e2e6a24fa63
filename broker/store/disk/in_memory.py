# SPDX-License-Identifier: Apache-2.0
"""Finds out which parts of mapped files are in memory, so that reading them need not wait.

Touching a page that is not in memory stops the whole process until the disk has delivered it: the
reactor's thread, and with it every producer, would wait for one consumer of old messages. So
whoever reads checks first. What is not in memory becomes a ColdRead, in a NotInMemory that is
raised. It is run in a thread, and then the question is asked again: see steps.py, and patience.py
of the broker. Only the last time, in `waiting`, the disk is waited for.

Files are examined in chunks; what was found in memory is taken to stay there for a second or two
(see `tick`), so that further reading costs nothing more. Where the system does not tell, everything
is taken to be in memory (see Files.is_in_memory).

What such a read loads of the log is scrubbed at once (scrub.py). The system reads more than it is
asked for, so a chunk behind one that came from the disk is taken to come from there, too: it is
read and scrubbed even if it is in memory by now. A chunk in memory without such a neighbour was
written by this process or an earlier one, or loaded by another program; it is not scrubbed.

Java: MappedFile.isLoaded, ColdDataCheckService, which only slow consumers down.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Final, NamedTuple

from txrocketmq.broker.store.disk.files import Files
from txrocketmq.broker.store.disk.mapped_file import MappedFile
from txrocketmq.broker.store.disk.scrub import Scrub
from txrocketmq.broker.store.formats.damage import DamagedRecords
from txrocketmq.remoting.primitives.fifo_cache import FifoCache

_CHUNK_BITS: Final = 18
CHUNK_BYTES: Final = 1 << _CHUNK_BITS
"""The size of the chunks that are examined, and read from the disk, in bytes."""
_MAX_KNOWN: Final = 65_536
_ELSEWHERE: Final = -1


class Chunk(NamedTuple):
    """A part of a file that is to be read from the disk."""

    path: str
    offset_bytes: int
    length_bytes: int
    log_offset: int = _ELSEWHERE
    """The log offset at which it begins; -1 in other files."""


class InMemory:
    """What is known of the files of a store; those of its log are in one directory."""

    def __init__(self, files: Files, log_directory: str | None = None) -> None:
        self._files = files
        self._log_directory = log_directory
        self._known: set[tuple[str, int]] = set()
        self._known_before: set[tuple[str, int]] = set()
        self._is_waiting = False
        self._scrubbed = FifoCache[tuple[str, int], None](_MAX_KNOWN)
        """The chunks of the log that have come from the disk."""
        self.wrong_bodies = DamagedRecords()
        """Records that came from the disk with a body that does not match its CRC."""

    def missing(self, file: MappedFile, start: int, end: int) -> Sequence[Chunk]:
        """The chunks between these positions of the file that have to be read from the disk."""
        known, path = self._known, file.path
        first = start >> _CHUNK_BITS
        if (end - 1 >> _CHUNK_BITS == first and (path, first) in known) or self._is_waiting:
            return ()
        found: list[Chunk] = []
        for index in range(first, ((end - 1) >> _CHUNK_BITS) + 1):
            key = path, index
            if key in known or key in self._known_before:
                continue
            at = index << _CHUNK_BITS
            length = min(CHUNK_BYTES, file.wrote_bytes - at)
            if length <= 0 or (
                ((path, index - 1) not in self._scrubbed or key in self._scrubbed)
                and (not file.is_made or self._files.is_in_memory(file.map(), at, length))
            ):
                self._note(key)
            else:
                is_log = os.path.dirname(path) == self._log_directory
                log_offset = file.from_offset + at if is_log else _ELSEWHERE
                found.append(Chunk(path, at, length, log_offset))
        return found

    def read_of(self, file: MappedFile, start: int, end: int) -> ColdRead | None:
        """The read that loads what is between these positions; None if it is in memory."""
        chunks = self.missing(file, start, end)
        return ColdRead(self._files, self, chunks) if chunks else None

    def check(self, file: MappedFile, start: int, end: int) -> None:
        """Raises NotInMemory when a part of a file is not in memory; this is a Check."""
        first = start >> _CHUNK_BITS
        if end - 1 >> _CHUNK_BITS == first and (file.path, first) in self._known:
            return
        chunks = self.missing(file, start, end)
        if chunks:
            raise self.cold(chunks)

    def cold(self, chunks: Iterable[Chunk]) -> NotInMemory:
        """Makes the exception for chunks that have to be read from the disk."""
        return NotInMemory(ColdRead(self._files, self, chunks))

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Takes everything to be in memory, so that reading waits for the disk."""
        self._is_waiting = True
        try:
            yield
        finally:
            self._is_waiting = False

    def note(self, chunks: Iterable[Chunk]) -> None:
        """Takes chunks to be in memory for a while, since they were read."""
        for chunk in chunks:
            key = chunk.path, chunk.offset_bytes >> _CHUNK_BITS
            self._note(key)
            if chunk.log_offset != _ELSEWHERE:
                self._scrubbed.keep(key, None)

    def tick(self) -> None:
        """Forgets what was known before the last tick; to be called every second."""
        self._known_before, self._known = self._known, set()

    def _note(self, key: tuple[str, int]) -> None:
        if len(self._known) >= _MAX_KNOWN:
            self.tick()
        self._known.add(key)


class ColdRead:
    """Chunks to read from the disk: call `run` in any thread, and then `finish`."""

    def __init__(self, files: Files, memory: InMemory, chunks: Iterable[Chunk]) -> None:
        self._files = files
        self.memory = memory
        self.chunks = tuple(dict.fromkeys(chunks))
        self.error: OSError | None = None
        """Why the chunks could not be read; None if they could."""
        self._scrub = Scrub(files.read_ahead)

    def run(self) -> None:
        """Reads the chunks; touches nothing else."""
        try:
            for path, position, length, log_offset in self.chunks:
                # The file has expired meanwhile, which the get will notice.
                with suppress(FileNotFoundError):
                    data = self._files.read_ahead(path, position, length)
                    if log_offset != _ELSEWHERE:
                        self._scrub.look(path, position, log_offset, data)
        except OSError as error:
            self.error = error

    def finish(self) -> None:
        """Notes, in the store's thread, that the chunks are read, and which bodies were wrong."""
        if self.error is None:
            self.memory.note(self.chunks)
        for damage in self._scrub.wrong:
            self.memory.wrong_bodies.found(damage)


Check = Callable[[MappedFile, int, int], None]
"""Called before a part of a file, from a position to another, is read; may raise NotInMemory."""


def unchecked(file: MappedFile, start: int, end: int) -> None:
    """A Check for callers that may wait for the disk."""


class NotYet(Exception):
    """Whoever asks has to wait, and then to ask again."""

    def __init__(self, what: str, awaited: object) -> None:
        super().__init__(what)
        self.awaited = awaited
        """What is waited for: a ColdRead that is to be done, or something of the broker's."""


class NotInMemory(NotYet):
    """Whoever asks would have to wait for the disk: run `read`, and ask again."""

    def __init__(self, read: ColdRead) -> None:
        super().__init__(f"{len(read.chunks)} chunks are not in memory", read)
        self.read = read
