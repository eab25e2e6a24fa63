# SPDX-License-Identifier: Apache-2.0
"""The log: every message of the store as a record, in the order in which they came.

A record never crosses files: where one does not fit, with 8 bytes to spare, a blank record ends the
file and the next one goes on. Appending has two halves. `encode` makes the records of a whole
batch, each with the offsets it will have, and makes sure of room on the disk; it may fail, and then
nothing has happened. `write` copies the batch into the mapping in one stroke per file, and cannot
fail.

Java: CommitLog, MessageExtEncoder, CommitLog.DefaultAppendMessageCallback.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Sequence
from typing import Final

import construct

from txrocketmq.broker.store.config import StoreConfig
from txrocketmq.broker.store.consume_queue import ConsumeQueue
from txrocketmq.broker.store.consume_queues import ConsumeQueues
from txrocketmq.broker.store.files import Files
from txrocketmq.broker.store.index_file import IndexEntry
from txrocketmq.broker.store.mapped_file import MappedFile, MappedFileQueue
from txrocketmq.broker.store.put_message import Appended, PutMessage, PutStatus, refused
from txrocketmq.broker.store.scan import store_timestamp_ms
from txrocketmq.remoting.message import record
from txrocketmq.remoting.message.checksum import crc32
from txrocketmq.remoting.message.flags import MessageSysFlag
from txrocketmq.remoting.message.properties import MAX_PROPERTIES_BYTES
from txrocketmq.remoting.packing import fixed

_IPV4_HOST_BYTES: Final = record.IPV4_HOST.sizeof()
_IPV6_HOST_BYTES: Final = record.IPV6_HOST.sizeof()
_BOTH_IPV4_BYTES: Final = 2 * _IPV4_HOST_BYTES
_BLANK: Final = fixed(record.BLANK).struct
_HEAD: Final = fixed(record.RECORD_HEAD).struct
_pack_length: Final = fixed(record.PROPERTIES_LENGTH).struct.pack
_LENGTH_BYTES: Final = fixed(record.PROPERTIES_LENGTH).size
_MOST_BESIDES_BYTES: Final = 400
"""More than a record has besides body and properties, and a blank after it."""
_STEP_BYTES: Final = 256 * 1024
_IPV6_FLAGS: Final = MessageSysFlag.BORN_HOST_V6 | MessageSysFlag.STORE_HOST_V6
_NOT_IN_QUEUE: Final = MessageSysFlag.TRANSACTION_PREPARED_TYPE
"""The bit that prepared and rolled back messages share, which enter no queue."""
_ROLLBACK: Final = MessageSysFlag.TRANSACTION_ROLLBACK_TYPE
"""What is not indexed."""


def _fixed_part(born_host_bytes: int, store_host_bytes: int) -> struct.Struct:
    """Of a record, with each host as the one field that PutMessage has it in."""
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
_PLAIN: Final = _FIXED_PARTS[_IPV4_HOST_BYTES, _IPV4_HOST_BYTES]
_PUT_OK: Final = PutStatus.PUT_OK
_new: Final = tuple.__new__
"""Makes a NamedTuple in a third of the time that its class takes."""


class Batch:
    """Records that are encoded and not yet written.

    `results` has one entry for each message, of which `refused` were; `queues` are those that get
    units, with the units in their `pending`, `entries` what is to be indexed.
    """

    __slots__ = ("entries", "new_files", "pieces", "queues", "refused", "results")

    def __init__(self) -> None:
        self.results: list[Appended] = []
        self.queues: list[ConsumeQueue] = []
        self.entries: list[IndexEntry] = []
        self.refused = 0
        self.new_files = 0
        self.pieces: list[tuple[MappedFile, list[bytes], int]] = []
        """What is to be appended to which file, and up to which offset that is then written."""

    def refuse(self, status: PutStatus, now_ms: int) -> None:
        """The result of the next message: it is not stored."""
        self.results.append(refused(status, now_ms))
        self.refused += 1


class CommitLog:
    """The row of log files; see the module."""

    def __init__(self, files: Files, config: StoreConfig) -> None:
        directory = config.store_path_commit_log or os.path.join(
            config.store_path_root_dir, "commitlog"
        )
        self.config = config
        self.files = MappedFileQueue(
            files,
            directory,
            config.mapped_file_size_commit_log,
            "mappedFileSizeCommitLog",
            _STEP_BYTES,
        )

    @property
    def min_offset(self) -> int:
        """Where the oldest file starts; -1 without files."""
        return self.files.min_offset

    @property
    def max_offset(self) -> int:
        """Where the next record will start, or the blank before it; 0 without files."""
        return self.files.max_offset

    # --- appending ---

    def encode(self, messages: Sequence[PutMessage], queues: ConsumeQueues, now_ms: int) -> Batch:
        """The records of the messages, with room made for them; each message has its result.

        Messages that cannot be stored have a result that says so and leave no trace. OSError when
        the disk has no room: then nothing is stored, and the queues are as before.
        """
        batch = Batch()
        try:
            self._encode_all(batch, messages, queues, now_ms)
            for file, _, end_offset in batch.pieces:
                file.reserve(end_offset - file.from_offset)
            for queue in batch.queues:
                queue.reserve_pending()
        except OSError:
            for queue in batch.queues:
                queue.drop_pending()
            raise
        return batch

    def write(self, batch: Batch) -> None:
        """Writes an encoded batch to the log."""
        for file, parts, end_offset in batch.pieces:
            if file is not self.files.last:
                self.files.roll()
            file.append(b"".join(parts))
            file.wrote_bytes = end_offset - file.from_offset

    # The path of every message: no call in it that could be left out.
    def _encode_all(
        self, batch: Batch, messages: Sequence[PutMessage], queues: ConsumeQueues, now_ms: int
    ) -> None:
        results, touched, entries = batch.results, batch.queues, batch.entries
        table, indexed = queues.table, self.config.message_index_enable
        plain_bytes = min(self.config.max_message_size, self.files.file_bytes - _MOST_BESIDES_BYTES)
        file, parts = self._first_file(batch), list[bytes]()
        offset, last_end = file.end_offset, file.from_offset + file.size_bytes - _BLANK.size
        for message in messages:
            (
                topic, queue_id, body, properties, tags_code, born_ms, born_host, store_host,
                uniq_key, keys, tags, flag, sys_flag, reconsume_times, prepared_offset,
            ) = message  # fmt: skip
            layout, body_bytes, properties_bytes = _PLAIN, len(body), len(properties)
            try:
                queue = table[topic][queue_id]
            except KeyError:
                queue = None
            if (
                queue is None
                or body_bytes + properties_bytes > plain_bytes
                or properties_bytes > MAX_PROPERTIES_BYTES
                or len(born_host) + len(store_host) != _BOTH_IPV4_BYTES
                or sys_flag & _IPV6_FLAGS
            ):
                checked = self._check(message, queues)
                if isinstance(checked, PutStatus):
                    batch.refuse(checked, now_ms)
                    continue
                queue, layout, sys_flag = checked
            topic_bytes = queue.record_topic
            size = layout.size + body_bytes + len(topic_bytes) + _LENGTH_BYTES + properties_bytes
            if offset + size > last_end:
                file, parts = self._next_file(batch, file, parts, offset), []
                offset, last_end = (
                    file.from_offset,
                    file.from_offset + file.size_bytes - _BLANK.size,
                )
            queue_offset = 0 if sys_flag & _NOT_IN_QUEUE else queue.next_offset
            try:
                head = layout.pack(
                    size, queue.magic, crc32(body) & 0x7FFFFFFF, queue_id, flag, queue_offset,
                    offset, sys_flag, born_ms, born_host, now_ms, store_host, reconsume_times,
                    prepared_offset, body_bytes,
                )  # fmt: skip
            except struct.error:
                batch.refuse(PutStatus.MESSAGE_ILLEGAL, now_ms)
                continue
            parts += (head, body, topic_bytes, _pack_length(properties_bytes), properties)
            if not sys_flag & _NOT_IN_QUEUE:
                queue.next_offset = queue_offset + 1
                if not queue.pending:
                    touched.append(queue)
                queue.pending += (offset, size, tags_code)
            if indexed and sys_flag & _ROLLBACK != _ROLLBACK:
                entries.append((topic, uniq_key, keys, tags, offset, now_ms))
            results.append(_new(Appended, (_PUT_OK, offset, size, queue_offset, now_ms)))
            offset += size
        if parts:
            batch.pieces.append((file, parts, offset))

    def _first_file(self, batch: Batch) -> MappedFile:
        """The file to go on in."""
        file = self.files.last
        if file is None or file.is_full:
            file = self.files.prepare(0, 1)
            batch.new_files = 1
        return file

    def _next_file(
        self, batch: Batch, file: MappedFile, parts: list[bytes], offset: int
    ) -> MappedFile:
        """Ends a file with a blank after these parts; the file to go on in."""
        end_offset = file.from_offset + file.size_bytes
        parts.append(_BLANK.pack(end_offset - offset, record.MAGIC_BLANK))
        batch.pieces.append((file, parts, end_offset))
        batch.new_files += 1
        return self.files.prepare(batch.new_files - 1, 1)

    def _check(
        self, message: PutMessage, queues: ConsumeQueues
    ) -> tuple[ConsumeQueue, struct.Struct, int] | PutStatus:
        """Of a message that is not plain: queue, layout and sys flag, or what is wrong with it."""
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
        return queue, layout, sys_flag

    # --- reading ---

    def select(self, offset: int, size_bytes: int) -> memoryview | None:
        """A slice of one file; None when it is not all written, or would cross files."""
        return self.files.select(offset, size_bytes)

    def record_at(self, offset: int) -> memoryview | None:
        """The record that starts there; None when none does."""
        head = self.files.select(offset, _HEAD.size)
        if head is None:
            return None
        size, magic, _, _, _, _, physical_offset, _, _ = _HEAD.unpack(head)
        if magic not in (record.MAGIC_V1, record.MAGIC_V2) or physical_offset != offset:
            return None
        return self.files.select(offset, size)

    def store_time_ms(self, offset: int, size_bytes: int) -> int:
        """When the message there was stored; -1 when the log does not have it."""
        data = self.files.select(offset, size_bytes)
        return -1 if data is None else store_timestamp_ms(data)
