# SPDX-License-Identifier: Apache-2.0
"""Which records and units of a store are not in memory, and the reads that load them.

What this process wrote lately at the end of the log is taken to be in memory; for everything else
the system is asked, see in_memory.py.

Java: has no counterpart; its threads wait.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from txrocketmq.broker.store.disk.files import Files
from txrocketmq.broker.store.disk.in_memory import Chunk, ColdRead, InMemory, NotInMemory
from txrocketmq.broker.store.disk.mapped_file import MappedFile
from txrocketmq.broker.store.disk.record_head import HEAD
from txrocketmq.broker.store.log.commit_log import CommitLog
from txrocketmq.broker.store.queues.batch_queue import BatchQueue
from txrocketmq.broker.store.queues.consume_queue import UNIT, UNIT_BYTES, ConsumeQueue

_WRITTEN_LATELY_BYTES: Final = 32 * 1024 * 1024
"""How much of the log's end, as far as this process has written it, is taken to be in memory."""


class ColdParts:
    """Finds the parts of a store that are not in memory."""

    def __init__(self, files: Files, log: CommitLog) -> None:
        self._files = files
        self.log = log
        self.memory = InMemory(files, log.files.directory)
        self.written_from = 0
        """The log offset at which the part begins that this process has written."""

    @property
    def asked_before(self) -> int:
        """The log offset before which the system must be asked whether data are in memory."""
        return max(self.written_from, self.log.max_offset - _WRITTEN_LATELY_BYTES)

    def cold(self, chunks: Sequence[Chunk]) -> NotInMemory:
        """Makes the exception for chunks that would have to be read from the disk."""
        return NotInMemory(ColdRead(self._files, self.memory, chunks))

    def cold_records(self, places: Iterable[tuple[int, int]]) -> ColdRead | None:
        """The read that loads the records at these offsets, with these sizes.

        None when all of them are in memory, or do not exist.
        """
        chunks: list[Chunk] = []
        asked_before = self.asked_before
        for physical_offset, size in places:
            file = self.log.files.find(physical_offset) if physical_offset < asked_before else None
            if file is not None and 0 < size <= file.end_offset - physical_offset:
                start = physical_offset - file.from_offset
                chunks += self.memory.missing(file, start, start + size)
        return ColdRead(self._files, self.memory, chunks) if chunks else None

    def cold_part(self, file: MappedFile, start: int, size_bytes: int) -> ColdRead | None:
        """The read that loads a part of any file of the store; None when it is in memory."""
        chunks = self.memory.missing(file, start, start + size_bytes)
        return ColdRead(self._files, self.memory, chunks) if chunks else None

    def check_units(self, queue: ConsumeQueue, offset: int, count: int) -> None:
        """Raises NotInMemory when these units, or what the ext row has of them, are not in
        memory.
        """
        end = min(offset + count, queue.max_offset)
        offset = max(offset, queue.min_offset)
        if isinstance(queue, BatchQueue):
            for unit in queue.batches(offset, count, self.check_part) if offset < end else ():
                if unit.end_offset >= end:
                    break
            return
        cold: list[Chunk] = []
        while offset < end:
            file = queue.files.find(offset * UNIT_BYTES)
            if file is None:
                break
            start = offset * UNIT_BYTES - file.from_offset
            stop = min(end * UNIT_BYTES - file.from_offset, file.wrote_bytes)
            if start >= stop:
                break
            cold += self.memory.missing(file, start, stop)
            if queue.ext is not None and not cold:
                for _, _, code in UNIT.iter_unpack(file.view[start:stop]):
                    queue.tags_code(code, self.check_part)
            offset += (stop - start) // UNIT_BYTES
        if cold:
            raise self.cold(cold)

    def check_record(self, physical_offset: int, size_bytes: int | None) -> None:
        """Raises NotInMemory when this record is not in memory.

        Without a size, the size is taken from the record once its beginning is in memory.
        """
        file = self.log.files.find(physical_offset) if physical_offset < self.asked_before else None
        if file is None:
            return
        start = physical_offset - file.from_offset
        if size_bytes is None:
            if start + HEAD.size > file.wrote_bytes:
                return
            self.check_part(file, start, start + HEAD.size)
            size_bytes = HEAD.unpack_from(file.view, start)[0]
        if size_bytes > 0:
            self.check_part(file, start, min(start + size_bytes, file.wrote_bytes))

    def check_part(self, file: MappedFile, start: int, end: int) -> None:
        """Raises NotInMemory when this part of a file is not in memory."""
        cold = self.memory.missing(file, start, end)
        if cold:
            raise self.cold(cold)
