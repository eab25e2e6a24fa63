# SPDX-License-Identifier: Apache-2.0
"""The log: every message of the store as a record, in the order of arrival.

A record never crosses files: where one does not fit, with 8 bytes to spare, a blank record ends the
file and the next one goes on. Appending has two halves. `encode` makes the records of a whole
batch, each with the offsets it will have, and makes sure of room on the disk; it may fail, and then
nothing has happened. `write` copies the batch into the mapping in one stroke per file. A replica
appends and reads the bytes of the log as they are (`append_raw`, `read_raw`).

Java: CommitLog, MessageExtEncoder, CommitLog.DefaultAppendMessageCallback.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Sequence
from typing import Final

import construct

from txrocketmq.broker.store.disk.files import Files
from txrocketmq.broker.store.disk.mapped_file import MappedFile, MappedFileQueue
from txrocketmq.broker.store.disk.record_head import is_record, record_size
from txrocketmq.broker.store.formats.config import StoreConfig
from txrocketmq.broker.store.formats.put_message import Appended, PutMessage, PutStatus, Whole
from txrocketmq.broker.store.formats.scan import store_timestamp_ms
from txrocketmq.broker.store.log.dispatch import (
    DECIDING,
    Following,
    enters_queue,
    visibility,
)
from txrocketmq.broker.store.log.inner_batch import enter as enter_batch
from txrocketmq.broker.store.log.long_run import LongRun
from txrocketmq.broker.store.log.multi_dispatch import Copied, enter, fill
from txrocketmq.broker.store.queues.consume_queue import UNIT_FIELDS, ConsumeQueue
from txrocketmq.broker.store.queues.consume_queues import ConsumeQueues
from txrocketmq.broker.store.queues.light_queues import MULTI_DISPATCH
from txrocketmq.remoting.message import record
from txrocketmq.remoting.message.flags import MessageSysFlag
from txrocketmq.remoting.message.properties import MAX_PROPERTIES_BYTES
from txrocketmq.remoting.primitives.checksum import crc32
from txrocketmq.remoting.primitives.packing import fixed

_IPV4_HOST_BYTES: Final = record.IPV4_HOST.sizeof()
_IPV6_HOST_BYTES: Final = record.IPV6_HOST.sizeof()
_BOTH_IPV4_BYTES: Final = 2 * _IPV4_HOST_BYTES
_BLANK: Final = fixed(record.BLANK).struct
_pack_length: Final = fixed(record.PROPERTIES_LENGTH).struct.pack
_LENGTH_BYTES: Final = fixed(record.PROPERTIES_LENGTH).size
_MOST_BESIDES_BYTES: Final = 400
"""The most bytes that a record has besides body and properties, with a blank behind it."""
_STEP_BYTES: Final = 256 * 1024
_IPV6_FLAGS: Final = MessageSysFlag.BORN_HOST_V6 | MessageSysFlag.STORE_HOST_V6
_NOT_PLAIN: Final = _IPV6_FLAGS | MULTI_DISPATCH | MessageSysFlag.INNER_BATCH


def _fixed_part(born_host_bytes: int, store_host_bytes: int) -> struct.Struct:
    """The layout of a record before its body, with each host as one field, as in PutMessage."""
    layout = construct.Struct(
        *record.RECORD_HEAD.subcons,
        "born_host" / construct.Bytes(born_host_bytes),
        *record.RECORD_STORED.subcons,
        "store_host" / construct.Bytes(store_host_bytes),
        *record.RECORD_TAIL.subcons,
    )
    return fixed(layout).struct


_HOST_BYTES: Final = (_IPV4_HOST_BYTES, _IPV6_HOST_BYTES)
_FIXED_PARTS: Final = {
    (born, store): _fixed_part(born, store) for born in _HOST_BYTES for store in _HOST_BYTES
}
IPV4_LAYOUT: Final = _FIXED_PARTS[_IPV4_HOST_BYTES, _IPV4_HOST_BYTES]
"""The layout with IPv4 hosts, which nearly every record has."""
_PUT_OK: Final = PutStatus.PUT_OK
_BOTH: Final = (True, True)
_NO_QUEUES: Final[dict[int, ConsumeQueue]] = {}


class Batch(Following):
    """The encoded records of a run of messages before they are written, and what follows from them.

    `places` has for each message its offset and size in the log in bytes, and its offset in its
    queue; for a refused message -1, 0 and -1, and `refused` has the status by its index.
    """

    __slots__ = (
        "copied", "ends", "hidden", "new_files", "pieces", "places", "queues", "refused",
    )  # fmt: skip

    def __init__(self, now_ms: int) -> None:
        self.places: list[tuple[int, int, int]] = []
        self.refused: dict[int, PutStatus] = {}
        self.start_offset = self.end_offset = 0
        self.stored_ms = now_ms
        self.units = []
        self.copies = []
        self.copied: Copied = []
        self.entries = []
        self.queues: list[ConsumeQueue] = []
        """The queues that get units; these are in `pending` of each queue until the batch is
        written."""
        self.ends: list[int] = []
        """For each of these queues, the offset after its new units."""
        self.hidden: tuple[tuple[str, int], ...] = ()
        """Topic and size of the records that enter no queue, such as half messages."""
        self.new_files = 0
        self.pieces: list[tuple[MappedFile, bytes | memoryview, int]] = []
        """What is appended to each file, and the log offset up to which the file is then
        written."""

    @classmethod
    def refusing(cls, count: int, status: PutStatus, now_ms: int) -> Batch:
        """Makes a batch of `count` messages that are all refused."""
        batch = cls(now_ms)
        for _ in range(count):
            batch.refuse(status)
        return batch

    def refuse(self, status: PutStatus) -> None:
        """Notes that the next message is not stored."""
        self.refused[len(self.places)] = status
        self.places.append((-1, 0, -1))

    def end(self, file: MappedFile, parts: list[bytes], end_offset: int) -> None:
        """Adds the last parts when all messages are encoded; the batch ends at `end_offset`."""
        if parts:
            self.pieces.append((file, b"".join(parts), end_offset))
        self.end_offset = end_offset

    @property
    def results(self) -> list[Appended]:
        """The result of each message."""
        return [
            Appended(self.refused.get(at, _PUT_OK), *place, self.stored_ms)
            for at, place in enumerate(self.places)
        ]


class CommitLog:
    """The row of log files; see the module docstring."""

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
        self._most_bytes = self.files.file_bytes - _MOST_BESIDES_BYTES
        """Body and properties that together have no more bytes than this certainly fit into a
        file."""

    @property
    def min_offset(self) -> int:
        """The offset at which the oldest file begins; -1 without files."""
        return self.files.min_offset

    @property
    def max_offset(self) -> int:
        """The offset of the next record, or of the blank before it; 0 without files."""
        return self.files.max_offset

    # --- appending ---

    def append(self, messages: Sequence[PutMessage], queues: ConsumeQueues, now_ms: int) -> Batch:
        """Encodes and writes a run of messages. If it raises, nothing has changed.

        If one of a Whole is refused, all are.
        """
        batch = self.encode(messages, queues, now_ms)
        if batch.refused and isinstance(messages, Whole):
            self._drop(batch, queues)
            return Batch.refusing(len(messages), next(iter(batch.refused.values())), now_ms)
        try:
            self.write(batch)
        except BaseException:
            self._drop(batch, queues)
            raise
        return batch

    def encode(self, messages: Sequence[PutMessage], queues: ConsumeQueues, now_ms: int) -> Batch:
        """Encodes the messages and reserves room for them; each message gets its result.

        A message that cannot be stored gets a result that says so and leaves no trace. If it raises
        (OSError when the disk has no room), nothing is stored and nothing has changed.
        """
        batch = Batch(now_ms)
        queues.opened = []
        try:
            if isinstance(messages, LongRun):
                self._place(batch, messages, queues)
            else:
                self._encode_all(batch, messages, queues)
            for file, _, end_offset in batch.pieces:
                if end_offset - file.from_offset > file.reserved_bytes:
                    file.reserve(end_offset - file.from_offset)
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

    def _drop(self, batch: Batch, queues: ConsumeQueues) -> None:
        for queue in batch.queues:
            queue.drop_pending()
        queues.undo(0)

    def write(self, batch: Batch) -> None:
        """Writes an encoded batch to the log; the caller then dispatches what follows from it.

        If it raises, nothing is stored and nothing has changed.
        """
        row = self.files.mapped_files
        files = len(row)
        last = row[-1] if files else None
        wrote_bytes = last.wrote_bytes if last is not None else 0
        try:
            for file, data, end_offset in batch.pieces:
                if file is not last:
                    last = self.files.roll()
                file.append(data)
                file.wrote_bytes = end_offset - file.from_offset
        except BaseException:
            self._unwrite(files, wrote_bytes)
            raise
        # Nothing below can fail.
        for queue, end_queue_offset in zip(batch.queues, batch.ends):  # noqa: B905 - as many
            queue.next_offset = end_queue_offset
            queue.pending = []
        batch.pieces = []

    def _unwrite(self, files: int, wrote_bytes: int) -> None:
        """Removes what was written after the first `files` files and `wrote_bytes` of the last
        one.
        """
        self.files.discard_prepared()
        while len(self.files.mapped_files) > files:
            self.files.remove_last()
        last = self.files.last
        if last is not None:
            last.wrote_bytes = wrote_bytes
            last.clear_tail()

    # Every message passes here, so no call is made that can be avoided.
    def _encode_all(
        self, batch: Batch, messages: Sequence[PutMessage], queues: ConsumeQueues
    ) -> None:
        now_ms, touched, entries = batch.stored_ms, batch.queues, batch.entries
        places, table = batch.places, queues.plain
        most_bytes = min(self.config.max_message_size, self._most_bytes)
        file = self._first_file(batch)
        parts: list[bytes] = []
        offset = batch.start_offset = file.from_offset + file.wrote_bytes
        last_end = file.from_offset + file.size_bytes - _BLANK.size
        for message in messages:
            (
                topic, queue_id, body, properties, tags_code, born_ms, born_host, store_host,
                uniq_key, keys, tags, flag, sys_flag, reconsume_times, prepared_offset,
            ) = message  # fmt: skip
            layout, body_bytes, properties_bytes = IPV4_LAYOUT, len(body), len(properties)
            queue = table.get(topic, _NO_QUEUES).get(queue_id)
            if (
                queue is None
                or body_bytes + properties_bytes > most_bytes
                or properties_bytes > MAX_PROPERTIES_BYTES
                or len(born_host) + len(store_host) != _BOTH_IPV4_BYTES
                or sys_flag & _NOT_PLAIN
            ):
                checked = self._check(batch, PutMessage(*message), queues)
                if isinstance(checked, PutStatus):
                    batch.refuse(checked)
                    continue
                queue, layout, sys_flag, properties = checked
                properties_bytes = len(properties)
            topic_bytes = queue.record_topic
            size = layout.size + body_bytes + len(topic_bytes) + _LENGTH_BYTES + properties_bytes
            if offset + size > last_end:
                file, parts = self._next_file(batch, file, parts, offset), []
                offset = file.from_offset
                last_end = offset + file.size_bytes - _BLANK.size
            pending = queue.pending
            in_queue, in_index = visibility(sys_flag) if sys_flag & DECIDING else _BOTH
            queue_offset = queue.next_offset + len(pending) // UNIT_FIELDS if in_queue else 0
            try:
                head = layout.pack(
                    size, queue.magic, crc32(body) & 0x7FFFFFFF, queue_id, flag, queue_offset,
                    offset, sys_flag, born_ms, born_host, now_ms, store_host, reconsume_times,
                    prepared_offset, body_bytes,
                )  # fmt: skip
            except struct.error:
                batch.refuse(PutStatus.MESSAGE_ILLEGAL)
                continue
            parts += (head, body, topic_bytes, _pack_length(properties_bytes), properties)
            if in_queue:
                if not pending:
                    touched.append(queue)
                pending += (offset, size, tags_code)
            else:
                batch.hidden += ((topic, size),)
            if in_index:
                entries.append((topic, uniq_key, keys, tags, offset, now_ms))
            places.append((offset, size, queue_offset))
            offset += size
        batch.end(file, parts, offset)

    def long_run(self, like: PutMessage) -> LongRun | PutStatus:
        """Returns a run of messages like this one, which are encoded a few at a time; or why there
        can be none.
        """
        layout = _FIXED_PARTS.get((len(like.born_host), len(like.store_host)))
        if layout is None:
            return PutStatus.MESSAGE_ILLEGAL
        sys_flag = like.sys_flag & ~_IPV6_FLAGS
        if len(like.born_host) == _IPV6_HOST_BYTES:
            sys_flag |= MessageSysFlag.BORN_HOST_V6
        if len(like.store_host) == _IPV6_HOST_BYTES:
            sys_flag |= MessageSysFlag.STORE_HOST_V6
        return LongRun(like, sys_flag, layout, self.files.file_bytes)

    def _place(self, batch: Batch, run: LongRun, queues: ConsumeQueues) -> None:
        """Does for a long run what `_encode_all` does."""
        try:
            queue: ConsumeQueue | None = queues.open(run.topic, run.queue_id)
        except ValueError:
            queue = None
        if queue is None or queue.is_batch:
            queues.undo(0)
            for _ in range(len(run)):
                batch.refuse(PutStatus.MESSAGE_ILLEGAL)
            return
        file = self._first_file(batch)
        begin, end = file.from_offset + file.wrote_bytes, file.from_offset + file.size_bytes
        for data, end_offset in run.place(batch, queue, (begin, end, self.files.file_bytes)):
            if end_offset > file.from_offset + file.size_bytes:
                file = self.files.prepare(batch.new_files, 1)
                batch.new_files += 1
            batch.pieces.append((file, data, end_offset))

    def _first_file(self, batch: Batch) -> MappedFile:
        """Returns the file to continue in."""
        row = self.files.mapped_files
        if row and row[-1].wrote_bytes < row[-1].size_bytes:
            return row[-1]
        batch.new_files = 1
        return self._prepare_first(1)

    def _prepare_first(self, end_bytes: int, offset: int = 0) -> MappedFile:
        """Returns the next file, with room up to `end_bytes`; raises OSError if there is none.

        The name of a log's only file is made durable before any queue refers to it: after a power
        cut, queues without a log would look like a volume that is not mounted.
        """
        file = self.files.prepare(0, end_bytes, offset)
        if not self.files.mapped_files:
            self._disk.sync(file.path)
        return file

    def _next_file(
        self, batch: Batch, file: MappedFile, parts: list[bytes], offset: int
    ) -> MappedFile:
        """Ends a file with a blank after these parts; returns the file to continue in."""
        end_offset = file.from_offset + file.size_bytes
        parts.append(_BLANK.pack(end_offset - offset, record.MAGIC_BLANK))
        batch.pieces.append((file, b"".join(parts), end_offset))
        batch.new_files += 1
        return self.files.prepare(batch.new_files - 1, 1)

    def _check(
        self, batch: Batch, message: PutMessage, queues: ConsumeQueues
    ) -> tuple[ConsumeQueue, struct.Struct, int, bytes] | PutStatus:
        """Returns queue, layout, sys flag and properties of an unusual message, or why it is
        refused; then it leaves none of the queues that were created for it.
        """
        kept = len(queues.opened)
        checked = self._checked(batch, message, queues)
        if not isinstance(checked, PutStatus) and len(queues.opened) > kept:
            try:
                checked[1].pack(
                    0, 0, 0, message.queue_id, message.flag, 0, 0, checked[2],
                    message.born_timestamp_ms, message.born_host, 0, message.store_host,
                    message.reconsume_times, message.prepared_transaction_offset, 0,
                )  # fmt: skip
            except struct.error:
                checked = PutStatus.MESSAGE_ILLEGAL
        if isinstance(checked, PutStatus):
            queues.undo(kept)
        return checked

    def _checked(
        self, batch: Batch, message: PutMessage, queues: ConsumeQueues
    ) -> tuple[ConsumeQueue, struct.Struct, int, bytes] | PutStatus:
        if len(message.body) > self.config.max_message_size:
            return PutStatus.MESSAGE_ILLEGAL
        if len(message.properties) > MAX_PROPERTIES_BYTES:
            return PutStatus.PROPERTIES_SIZE_EXCEEDED
        layout = _FIXED_PARTS.get((len(message.born_host), len(message.store_host)))
        if layout is None:
            return PutStatus.MESSAGE_ILLEGAL
        sys_flag = message.sys_flag & ~_IPV6_FLAGS
        if len(message.born_host) == _IPV6_HOST_BYTES:
            sys_flag |= MessageSysFlag.BORN_HOST_V6
        if len(message.store_host) == _IPV6_HOST_BYTES:
            sys_flag |= MessageSysFlag.STORE_HOST_V6
        try:
            queue = queues.open(message.topic, message.queue_id)
        except ValueError:
            return PutStatus.MESSAGE_ILLEGAL
        size = layout.size + len(message.body) + len(queue.record_topic) + _LENGTH_BYTES
        if size + len(message.properties) + _BLANK.size > self.files.file_bytes:
            return PutStatus.MESSAGE_ILLEGAL
        room_bytes = min(self.files.file_bytes - size - _BLANK.size, MAX_PROPERTIES_BYTES)
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
        return queue, layout, sys_flag & ~MULTI_DISPATCH, properties

    def append_raw(self, offset: int, data: bytes) -> None:
        """Appends bytes of another log, which lie at this offset there and belong into one file.

        Reput dispatches their records. Raises ValueError when the bytes do not begin at the end of
        the log, or cross files; OSError when the disk has no room.
        """
        if offset != self.max_offset:
            raise ValueError(f"the log ends at {self.max_offset}: bytes of {offset} do not follow")
        file = self.files.last
        if file is None or file.is_full:
            file = self._prepare_first(len(data), offset)
        if offset - file.from_offset + len(data) > file.size_bytes:
            raise ValueError(f"{len(data)} bytes at {offset} do not fit into one file of the log")
        file.reserve(offset - file.from_offset + len(data))
        if file is not self.files.last:
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
        """The record that begins at this offset, with a size if that is known; None when there is
        none.
        """
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

    def store_time_ms(self, offset: int, size_bytes: int) -> int:
        """When the message at this offset was stored, in ms; -1 when the log does not have it."""
        data = self.record_at(offset, size_bytes)
        return -1 if data is None else store_timestamp_ms(data)
