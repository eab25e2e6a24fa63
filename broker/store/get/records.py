# SPDX-License-Identifier: Apache-2.0
"""Records of the log and the units that name them, for those who read: what is in memory, what is
recent, what is damaged.

What this process wrote lately at the end of the log is taken to be in memory; for everything else
the system is asked, see in_memory.py.

Java: DefaultMessageStore.checkInDiskByCommitOffset; its threads wait for the disk.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Final

from txrocketmq.broker.store.disk.files import Files
from txrocketmq.broker.store.disk.in_memory import Chunk, InMemory
from txrocketmq.broker.store.disk.record_head import HEAD
from txrocketmq.broker.store.formats.config import StoreConfig
from txrocketmq.broker.store.formats.damage import Damage, DamagedRecords
from txrocketmq.broker.store.log.commit_log import CommitLog
from txrocketmq.broker.store.queues.batch_queue import BatchQueue
from txrocketmq.broker.store.queues.consume_queue import UNIT, UNIT_BYTES, ConsumeQueue

_MEMORY_BYTES: Final[int] = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
_WRITTEN_LATELY_BYTES: Final = 32 * 1024 * 1024
"""How much of the log's end, as far as this process has written it, is taken to be in memory."""


class Records:
    """What is known of the records of a store."""

    def __init__(
        self, files: Files, log: CommitLog, config: StoreConfig, damaged: DamagedRecords
    ) -> None:
        self._damaged = damaged
        self.log = log
        self.config = config
        self.memory = InMemory(files, log.files.directory)
        self.written_from = 0
        """The log offset at which the part begins that this process has written."""
        self.physical_bytes = _MEMORY_BYTES
        """The size of the machine's memory, in bytes."""

    @property
    def asked_before(self) -> int:
        """The log offset before which the system must be asked whether data are in memory."""
        return max(self.written_from, self.log.max_offset - _WRITTEN_LATELY_BYTES)

    @property
    def recent_from(self) -> int:
        """The log offset from which on messages are likely to be in memory, and so are recent: the
        setting accessMessageInMemoryMaxRatio says it.
        """
        return self.marks()[0]

    def marks(self) -> tuple[int, int]:
        """Both `recent_from` and `asked_before`."""
        end = self.log.max_offset
        ratio = self.config.access_message_in_memory_max_ratio
        recent_bytes, lately = self.physical_bytes * ratio // 100, end - _WRITTEN_LATELY_BYTES
        if lately < self.written_from:  # noqa: PLR1730 - for each pull
            lately = self.written_from
        return end - recent_bytes, lately

    def lately(self) -> tuple[memoryview, int, int, int] | None:
        """The last file of the log, its first log offset, how many bytes it has, and the log offset
        from which on it is taken to be in memory; None if there is no file.
        """
        row = self.log.files.mapped_files
        if not row:
            return None
        file = row[-1]
        start, size_bytes = file.from_offset, file.wrote_bytes
        lately = start + size_bytes - _WRITTEN_LATELY_BYTES  # as `asked_before`, without calls
        if lately < self.written_from:  # noqa: PLR1730 - for each read of sends
            lately = self.written_from
        return file.view, start, size_bytes, lately

    def check_all(self, places: Iterable[tuple[int, int]]) -> None:
        """Raises NotInMemory when some records, at these offsets, are not in memory.

        Where there is no such record, nothing has to be read.
        """
        chunks: list[Chunk] = []
        asked_before = self.asked_before
        for physical_offset, size in places:
            if physical_offset < asked_before:
                chunks += self.missing(physical_offset, size)
        if chunks:
            raise self.memory.cold(chunks)

    def missing(self, physical_offset: int, size: int) -> list[Chunk]:
        """The parts of a record that are not in memory; empty when no record can be there."""
        file = self.log.files.find(physical_offset)
        if file is None or size <= 0 or physical_offset + size > file.end_offset:
            return []
        start = physical_offset - file.from_offset
        return [*self.memory.missing(file, start, start + size)]

    def check(self, physical_offset: int, size_bytes: int | None) -> None:
        """Raises NotInMemory when this record is not in memory.

        Without a size, the size is taken from the record once its beginning is in memory.
        """
        log = self.log
        if self.written_from <= physical_offset >= log.max_offset - _WRITTEN_LATELY_BYTES:
            return  # as `asked_before` says
        file = log.files.find(physical_offset)
        if file is None:
            return
        start = physical_offset - file.from_offset
        if size_bytes is None:
            if start + HEAD.size > file.wrote_bytes:
                return
            self.memory.check(file, start, start + HEAD.size)
            size_bytes = HEAD.unpack_from(file.view, start)[0]
        if size_bytes > 0:
            self.memory.check(file, start, min(start + size_bytes, file.wrote_bytes))

    def check_units(self, queue: ConsumeQueue, offset: int, count: int) -> None:
        """Raises NotInMemory when these units, or those of the ext row, are not in memory."""
        memory = self.memory
        end = min(offset + count, queue.max_offset)
        offset = max(offset, queue.min_offset)
        if isinstance(queue, BatchQueue):
            for unit in queue.batches(offset, count, memory.check) if offset < end else ():
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
            cold += memory.missing(file, start, stop)
            if queue.ext is not None and not cold:
                for _, _, code in UNIT.iter_unpack(file.view[start:stop]):
                    queue.tags_code(code, memory.check)
            offset += (stop - start) // UNIT_BYTES
        if cold:
            raise memory.cold(cold)

    def stored_ms(self, queue: ConsumeQueue, offset: int) -> int:
        """When a message of a queue was stored, in ms; -1 when there is none.

        Raises NotInMemory.
        """
        self.check_units(queue, offset, 1)
        unit = queue.stored(offset)
        if unit is None:
            return -1
        physical_offset, size_bytes, _ = unit
        self.check_all([(physical_offset, size_bytes)])
        return self.log.store_time_ms(physical_offset, size_bytes)

    def note_damage(
        self, physical_offset: int, size_bytes: int, queue: str = "", queue_offset: int = -1
    ) -> None:
        """Notes that no record, or none of this size, is at this log offset."""
        file = self.log.files.find(physical_offset)
        path, position = (
            ("", -1) if file is None else (file.path, physical_offset - file.from_offset)
        )
        self._damaged.found(
            Damage(physical_offset, size_bytes, path, position, queue, queue_offset)
        )
