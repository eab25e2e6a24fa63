# SPDX-License-Identifier: Apache-2.0
"""The log: every message of the store as a record, in the order of arrival.

A record never crosses files: where one does not fit, with 8 bytes to spare, a blank record ends the
file and the next one goes on. Appending has two halves. `encode` has the records of a whole batch
made (encode.py), each with the offsets it will have, and makes sure of room on the disk; it may
fail, and then nothing has happened. `write` copies the batch into the mapping in one stroke per
file. A replica appends and reads the bytes of the log as they are (`append_raw`, `read_raw`).

Java: CommitLog.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Final, TypeAlias

from txrocketmq.broker.store.disk.files import Files
from txrocketmq.broker.store.disk.mapped_file import MappedFile, MappedFileQueue
from txrocketmq.broker.store.disk.record_head import HEAD, is_record, record_size
from txrocketmq.broker.store.disk.steps import Steps
from txrocketmq.broker.store.formats.config import StoreConfig
from txrocketmq.broker.store.formats.packed import SendRun
from txrocketmq.broker.store.formats.put_message import (
    MULTI_DISPATCH,
    PutMessage,
    PutStatus,
    Whole,
)
from txrocketmq.broker.store.formats.scan import store_timestamp_ms
from txrocketmq.broker.store.log import encode as encoding
from txrocketmq.broker.store.log.encode import (
    BLANK_BYTES,
    IPV6_FLAGS,
    IPV6_HOST_BYTES,
    LAYOUTS,
    LENGTH_BYTES,
    MOST_BESIDES_BYTES,
    Room,
    Usable,
    encode,
    fits,
)
from txrocketmq.broker.store.log.inner_batch import enter as enter_batch
from txrocketmq.broker.store.log.long_run import LongRun
from txrocketmq.broker.store.log.multi_dispatch import enter, fill
from txrocketmq.broker.store.log.packed_run import PackedRun
from txrocketmq.broker.store.log.visibility import enters_queue
from txrocketmq.broker.store.queues.consume_queue import ConsumeQueue
from txrocketmq.broker.store.queues.consume_queues import ConsumeQueues
from txrocketmq.broker.store.queues.packed_queue import reserved
from txrocketmq.remoting.message.flags import MessageSysFlag
from txrocketmq.remoting.message.properties import MAX_PROPERTIES_BYTES
from txrocketmq.remoting.process.operating_system import load_unwritten

_STEP_BYTES: Final = 256 * 1024
_WARM_BYTES: Final = 1024 * 1024
"""How many bytes of pages are loaded in a step."""

QueueBatch: TypeAlias = encoding.Batch[ConsumeQueue]
"""A run of messages, encoded for the queues of a store."""


class CommitLog:
    """The row of log files; see the module docstring."""

    _queues: ConsumeQueues
    """The queues of the run that is encoded; a closure over them would cost each run more."""

    def __init__(self, files: Files, config: StoreConfig) -> None:
        directory = config.store_path_commit_log or os.path.join(
            config.store_path_root_dir, "commitlog"
        )
        self.config = config
        self._disk = files
        self.files = MappedFileQueue(
            files,
            directory,
            config.mapped_file_size_commit_log,
            "mappedFileSizeCommitLog",
            _STEP_BYTES,
            held=True,
        )
        self._most_bytes = self.files.file_bytes - MOST_BESIDES_BYTES
        """Body and properties of no more bytes than this together certainly fit into a file."""

    @property
    def min_offset(self) -> int:
        """The offset at which the oldest file begins; -1 without files."""
        return self.files.min_offset

    @property
    def max_offset(self) -> int:
        """The offset of the next record, or of the blank before it; 0 without files."""
        row = self.files.mapped_files  # as `files.max_offset`, which costs two calls more
        return row[-1].from_offset + row[-1].wrote_bytes if row else 0

    # --- appending ---

    def append(
        self, messages: Sequence[PutMessage], queues: ConsumeQueues, now_ms: int
    ) -> QueueBatch:
        """Encodes and writes a run of messages. If it raises, nothing has changed.

        If one of a Whole is refused, all are.
        """
        batch = self.encode(messages, queues, now_ms)
        if batch.refused and isinstance(messages, Whole):
            self._drop(batch, queues)
            status = next(iter(batch.refused.values()))
            return encoding.Batch.refusing(len(messages), status, now_ms)
        try:
            self.write(batch)
        except BaseException:
            self._drop(batch, queues)
            raise
        return batch

    def encode(
        self, messages: Sequence[PutMessage], queues: ConsumeQueues, now_ms: int
    ) -> QueueBatch:
        """Encodes the messages and reserves room for them; each message gets its result.

        A message that cannot be stored gets a result that says so and leaves no trace. If it raises
        (OSError when the disk has no room), nothing is stored and nothing has changed.
        """
        batch: QueueBatch = encoding.Batch(now_ms)  # an alias would be slow to call
        queues.opened = []
        try:
            files, prepared = self.files, 0
            file = files.mapped_files[-1] if files.mapped_files else None
            if file is None or file.wrote_bytes >= file.size_bytes:
                file, prepared = self._prepare_first(1), 1
            begin = file.from_offset
            file_end = begin + file.size_bytes
            room = begin + file.wrote_bytes, file_end, files.file_bytes
            most_bytes = min(self.config.max_message_size, self._most_bytes)
            if type(messages) is LongRun:  # isinstance would ask ABCMeta
                self._place(batch, messages, queues, room)
            else:
                self._queues = queues
                encode(batch, messages, queues.plain, room, most_bytes, self._unusual)
            for _, end_offset in batch.pieces:
                if end_offset > file_end:
                    file = files.prepare(prepared, 1)
                    prepared, begin = prepared + 1, file_end
                    file_end += file.size_bytes
                if end_offset - begin > file.reserved_bytes:
                    file.reserve(end_offset - begin)
            if batch.copied:
                fill(batch.copied, batch.places)
            units, ends = batch.units, batch.ends
            for queue in batch.queues:
                ends.append(queue.reserve_pending())
                row = batch.copies if queue.is_light else units
                row.append((queue, queue.next_offset, queue.pending))
        except BaseException:
            self._drop(batch, queues)
            raise
        return batch

    def _drop(self, batch: QueueBatch, queues: ConsumeQueues) -> None:
        for queue in batch.queues:
            queue.drop_pending()
        queues.undo(0)

    def write(self, batch: QueueBatch) -> None:
        """Writes an encoded batch to the log; the caller then dispatches what follows from it.

        If it raises, nothing is stored and nothing has changed.
        """
        row = self.files.mapped_files
        files = len(row)
        last = row[-1] if files else None
        wrote_bytes = last.wrote_bytes if last is not None else 0
        try:
            for data, end_offset in batch.pieces:
                if last is None or end_offset > last.from_offset + last.size_bytes:
                    last = self.files.roll()
                last.append(data)
                last.wrote_bytes = end_offset - last.from_offset
        except BaseException:
            self._unwrite(files, wrote_bytes)
            raise
        # Nothing below can fail.
        for queue, end_queue_offset in zip(batch.queues, batch.ends):  # noqa: B905 - as many
            queue.next_offset = end_queue_offset
            queue.pending = []
        batch.pieces = []

    def append_run(
        self, run: SendRun, table: object, born: bytes, host: bytes, now_ms: int, rows: object
    ) -> PackedRun | None:
        """Has a run of sends written into the last file; the caller then dispatches it.

        Returns None, and nothing has changed, if it does not fit there, or if a message may be too
        long; the same sends then have to come one by one. So they do when this raises.
        """
        row = self.files.mapped_files
        most_bytes = run.most_bytes
        if not row or most_bytes > self.config.max_message_size or most_bytes > self._most_bytes:
            return None
        file = row[-1]
        at = file.wrote_bytes
        end = at + run.size_bytes
        if end > file.size_bytes - BLANK_BYTES:
            return None
        if end > file.reserved_bytes:
            file.reserve(end)
        ends = run.queues(table)
        nexts = reserved(ends)
        offset = file.from_offset
        start = offset + at
        packed = PackedRun(start, offset + end, now_ms, ends)
        try:
            packed.units = run.write(table, file.map(), at, start, nexts, now_ms, born, host, rows)
        except BaseException:
            file.clear_tail()
            raise
        # Nothing below can fail.
        file.wrote_bytes = end
        for (place, count, _), first in zip(ends, nexts):  # noqa: B905 - as many
            place.queue.next_offset = first + count
        return packed

    def _unwrite(self, files: int, wrote_bytes: int) -> None:
        """Removes what is behind the first `files` files and `wrote_bytes` of the last one."""
        self.files.discard_prepared()
        while len(self.files.mapped_files) > files:
            self.files.remove_last()
        last = self.files.last
        if last is not None:
            last.wrote_bytes = wrote_bytes
            last.clear_tail()

    def long_run(self, like: PutMessage) -> LongRun | PutStatus:
        """Returns a run of messages like this one, which are encoded a few at a time; or why there
        can be none.
        """
        layout = LAYOUTS.get((len(like.born_host), len(like.store_host)))
        if layout is None:
            return PutStatus.MESSAGE_ILLEGAL
        return LongRun(like, _sys_flag(like), layout, self.files.file_bytes)

    def make_room(self, size_bytes: int) -> Steps[None]:
        """Steps that make room for so many bytes in the last file of the log, and load its pages,
        so that writing them takes little more than copying.

        Others may write meanwhile, and use some of it. If the disk has no room, the write says so.
        """
        offset, end_offset = self.max_offset, self.max_offset + size_bytes
        while (file := self.files.last) is not None:
            offset, begin = max(offset, file.end_offset), file.from_offset
            until = min(offset + _WARM_BYTES, end_offset, begin + file.size_bytes)
            if offset >= until:
                return
            try:
                file.reserve(until - begin)
            except OSError:
                return
            load_unwritten(file.map(), offset - begin, until - begin)
            offset = until
            yield

    def _place(self, batch: QueueBatch, run: LongRun, queues: ConsumeQueues, room: Room) -> None:
        """Does for a long run what `encode` does for messages."""
        try:
            queue: ConsumeQueue | None = queues.open(run.topic, run.queue_id)
        except ValueError:
            queue = None
        if queue is None or queue.is_batch:
            queues.undo(0)
            for _ in range(len(run)):
                batch.refuse(PutStatus.MESSAGE_ILLEGAL)
            return
        batch.pieces = run.place(batch, queue, room)

    def _prepare_first(self, end_bytes: int, offset: int = 0) -> MappedFile:
        """Returns the next file, with room up to `end_bytes`; raises OSError if there is none.

        The name of a log's only file is made durable before any queue refers to it: after a power
        cut, queues without a log would look like a volume that is not mounted.
        """
        file = self.files.prepare(0, end_bytes, offset)
        if not self.files.mapped_files:
            self._disk.sync(file.path)
        return file

    def _unusual(self, batch: QueueBatch, message: PutMessage) -> Usable[ConsumeQueue] | PutStatus:
        """Returns what an unusual message is encoded with, or why it is refused; then it leaves
        none of the queues that were created for it.
        """
        queues = self._queues
        kept = len(queues.opened)
        usable = self._usable(queues, batch, message)
        if (
            len(queues.opened) > kept
            and not isinstance(usable, PutStatus)
            and not fits(message, usable.layout, usable.sys_flag)
        ):
            usable = PutStatus.MESSAGE_ILLEGAL
        if isinstance(usable, PutStatus):
            queues.undo(kept)
        return usable

    def _usable(
        self, queues: ConsumeQueues, batch: QueueBatch, message: PutMessage
    ) -> Usable[ConsumeQueue] | PutStatus:
        if len(message.body) > self.config.max_message_size:
            return PutStatus.MESSAGE_ILLEGAL
        if len(message.properties) > MAX_PROPERTIES_BYTES:
            return PutStatus.PROPERTIES_SIZE_EXCEEDED
        layout = LAYOUTS.get((len(message.born_host), len(message.store_host)))
        if layout is None:
            return PutStatus.MESSAGE_ILLEGAL
        sys_flag = _sys_flag(message)
        try:
            queue = queues.open(message.topic, message.queue_id)
        except ValueError:
            return PutStatus.MESSAGE_ILLEGAL
        size = layout.size + len(message.body) + len(queue.record_topic) + LENGTH_BYTES
        if size + len(message.properties) + BLANK_BYTES > self.files.file_bytes:
            return PutStatus.MESSAGE_ILLEGAL
        room_bytes = min(self.files.file_bytes - size - BLANK_BYTES, MAX_PROPERTIES_BYTES)
        properties: bytes | PutStatus = message.properties
        if sys_flag & MessageSysFlag.INNER_BATCH or queue.is_batch:
            properties = enter_batch(message, sys_flag, layout, room_bytes, queue)
        elif sys_flag & MULTI_DISPATCH and enters_queue(sys_flag):
            properties = enter(
                message, len(batch.places), layout, room_bytes, queues, self.config, batch.queues,
                batch.copied,
            )  # fmt: skip
        if isinstance(properties, PutStatus):
            return properties
        return Usable(queue, layout, sys_flag & ~MULTI_DISPATCH, properties)

    def append_raw(self, offset: int, data: bytes | memoryview) -> None:
        """Appends bytes of another log, which lie at this offset there and belong into one file.

        Reput dispatches their records. A log without files may begin where any of its files would:
        older files of the other log have perhaps expired. Raises ValueError when the bytes do not
        begin there, or at the end of the log, or cross files; OSError when the disk has no room.
        """
        last = file = self.files.last
        if file is None and offset % self.files.file_bytes:
            raise ValueError(
                f"the log is empty: its first bytes must be those of a file of"
                f" {self.files.file_bytes} bytes, and at {offset} none begins"
            )
        if file is not None and offset != file.from_offset + file.wrote_bytes:
            raise ValueError(f"the log ends at {self.max_offset}: bytes of {offset} do not follow")
        if file is None or file.wrote_bytes >= file.size_bytes:
            file = self._prepare_first(len(data), offset)
        end = offset - file.from_offset + len(data)
        if end > file.size_bytes:
            raise ValueError(f"{len(data)} bytes at {offset} do not fit into one file of the log")
        if end > file.reserved_bytes:
            file.reserve(end)
        if file is not last:
            self.files.roll(offset)
        file.append(data)

    # --- reading ---

    def read_raw(self, offset: int, max_bytes: int) -> memoryview | None:
        """The written bytes of one file from this offset on; None when there are none."""
        file = self.files.find(offset)
        if file is None or offset >= file.end_offset:
            return None
        return file.select(offset - file.from_offset, min(max_bytes, file.end_offset - offset))

    def select(self, offset: int, size_bytes: int) -> memoryview | None:
        """A slice of one file; None when it is not fully written, or would cross files."""
        return self.files.select(offset, size_bytes)

    def record_at(self, offset: int, size_bytes: int | None = None) -> memoryview | None:
        """The record that begins at this offset, with a size if that is known; or None."""
        file = self.files.find(offset)
        if file is None:
            return None
        if size_bytes is None:
            found = record_size(file, offset)
        else:
            found = size_bytes if is_record(file, offset, size_bytes) else None
        if found is None:
            return None
        return file.view[offset - file.from_offset : offset - file.from_offset + found]

    def headed_at(self, offset: int) -> memoryview | None:
        """What would be the record at this offset by its size, magic and own offset; or None.

        It is for those who examine themselves whether its lengths add up.
        """
        file = self.files.find(offset)
        if file is None:
            return None
        at, view = offset - file.from_offset, file.view
        if at + HEAD.size > file.wrote_bytes:
            return None
        size_bytes = HEAD.unpack_from(view, at)[0]
        return view[at : at + size_bytes] if is_record(file, offset, size_bytes) else None

    def store_time_ms(self, offset: int, size_bytes: int) -> int:
        """When the message at this offset was stored, in ms; -1 when the log does not have it."""
        data = self.record_at(offset, size_bytes)
        return -1 if data is None else store_timestamp_ms(data)


def _sys_flag(message: PutMessage) -> int:
    """The system flag of a message, which says of which kind its hosts are."""
    sys_flag = message.sys_flag & ~IPV6_FLAGS
    if len(message.born_host) == IPV6_HOST_BYTES:
        sys_flag |= MessageSysFlag.BORN_HOST_V6
    if len(message.store_host) == IPV6_HOST_BYTES:
        sys_flag |= MessageSysFlag.STORE_HOST_V6
    return sys_flag
