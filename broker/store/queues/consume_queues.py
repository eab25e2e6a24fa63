# SPDX-License-Identifier: Apache-2.0
"""All consume queues of a store, by topic and queue id.

Looking up a queue that does not exist does not create it; only a message does.

Java: queue.ConsumeQueueStore, AbstractConsumeQueueStore, QueueOffsetOperator.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Final

from txrocketmq.broker.store.disk.descriptors import mappings
from txrocketmq.broker.store.disk.files import Files
from txrocketmq.broker.store.disk.mapped_file import MappedFileQueue
from txrocketmq.broker.store.disk.removals import Removals
from txrocketmq.broker.store.disk.steps import Steps
from txrocketmq.broker.store.formats.config import StoreConfig
from txrocketmq.broker.store.formats.errors import StoreError
from txrocketmq.broker.store.queues.batch_queue import BATCH_UNIT_BYTES, BatchQueue
from txrocketmq.broker.store.queues.consume_queue import UNIT_BYTES, ConsumeQueue
from txrocketmq.broker.store.queues.consume_queue_ext import BitmapOf, ConsumeQueueExt, no_bitmap
from txrocketmq.broker.store.queues.deleted_topics import DeletedTopics
from txrocketmq.broker.store.queues.light_queues import is_light
from txrocketmq.broker.store.queues.light_row import LightRow
from txrocketmq.remoting.message import record
from txrocketmq.remoting.primitives.packing import fixed

_TOPIC_LENGTH_V1: Final = fixed(record.TOPIC_LENGTH_V1).struct
_TOPIC_LENGTH_V2: Final = fixed(record.TOPIC_LENGTH_V2).struct
_MAX_TOPIC_BYTES_V1: Final = 0x7F
_MAX_NAME_BYTES: Final = 255
"""The longest name of a directory, and so of a topic, in bytes."""
_MAX_QUEUE_ID: Final = 0x7FFFFFFF

_GIVEN_UP_AT_ONCE: Final = 64
"""How many mappings are given up when there are too many."""
_LOOKED_AT_ONCE: Final = 8
"""At how many queues is looked for that, as all mappings may be those of others."""

Table = dict[str, dict[int, ConsumeQueue]]
KindOf = Callable[[str], bool | None]
"""Returns whether a topic has queues of batches; None when the topic is not known."""


def kind_unknown(_: str) -> bool | None:
    """A KindOf for stores without topics: only the directories tell which queues a topic has."""
    return None


def encode_topic(topic: str) -> tuple[int, bytes]:
    """The magic of the topic's records, and the topic as they have it: length and bytes."""
    encoded = topic.encode("utf-8", "replace")
    if len(encoded) <= _MAX_TOPIC_BYTES_V1:
        return record.MAGIC_V1, _TOPIC_LENGTH_V1.pack(len(encoded)) + encoded
    return record.MAGIC_V2, _TOPIC_LENGTH_V2.pack(len(encoded)) + encoded


def _is_queue_id(name: str) -> bool:
    return name.isascii() and name.isdecimal() and str(int(name)) == name


class ConsumeQueues:
    """The table of all queues, with their directories."""

    def __init__(self, files: Files, config: StoreConfig) -> None:
        self._files = files
        self._config = config
        self._root = os.path.join(config.store_path_root_dir, "consumequeue")
        self._ext_root = os.path.join(config.store_path_root_dir, "consumequeue_ext")
        self._batch_root = os.path.join(config.store_path_root_dir, "batchconsumequeue")
        self.table: Table = {}
        self.plain: Table = {}
        """The part of the table with the topics whose queues are plain ones."""
        self.kind_of: KindOf = kind_unknown
        self.light_count = 0
        """How many light queues there are."""
        self.bitmap_of: BitmapOf = no_bitmap
        """Makes the bitmap of a message for ext files; may be set as long as the store is open."""
        self.foreign: list[str] = []
        """Paths that are neither directories nor files of queues."""
        self.deleted = DeletedTopics(files, config.store_path_root_dir)
        self.removals = Removals(files)
        """Files of deleted queues that are still to be unlinked."""
        self.opened: list[ConsumeQueue] = []
        """The queues that were created by the messages that are being encoded."""
        self.given_up = 0
        """How many queues were given up: whoever has kept one looks whether this has changed."""
        files.on_shortage.append(self.give_up_mappings)
        self._mapped: Iterator[ConsumeQueue] = iter(())
        """The queues whose mappings were not given up in this round."""
        self._unmade: dict[ConsumeQueue, None] = {}
        """Light queues that may have no file yet (light_row.py)."""

    def __iter__(self) -> Iterator[ConsumeQueue]:
        for queues in self.table.values():
            yield from queues.values()

    def one_by_one(self) -> Iterator[ConsumeQueue]:
        """Iterates over all queues. New ones may come meanwhile, and be left out."""
        for topic in list(self.table):
            yield from list(self.table.get(topic, {}).values())

    def give_up_mappings(self) -> None:
        """Unmaps files of some queues, in turns; they are mapped again when they are used.

        Nothing is lost: what is written is in the system's memory.
        """
        least = mappings.count - _GIVEN_UP_AT_ONCE
        for _ in range(_LOOKED_AT_ONCE):
            queue = next(self._mapped, None)
            if queue is None:
                self._mapped = self.one_by_one()
            else:
                queue.files.unmap()
                if mappings.count <= least:
                    return

    @property
    def directory(self) -> str:
        """The directory of the queues."""
        return self._root

    def find(self, topic: str, queue_id: int) -> ConsumeQueue | None:
        """The queue; None if it never had a message."""
        queues = self.table.get(topic)
        return None if queues is None else queues.get(queue_id)

    def open(self, topic: str, queue_id: int) -> ConsumeQueue:
        """Returns the queue, which is created if there is none.

        Raises ValueError for a topic or queue id that cannot name a directory, and OSError when
        files of a deleted queue of that name cannot be unlinked.
        """
        queues = self.table.get(topic)
        if queues is not None and queue_id in queues:
            return queues[queue_id]
        if not 0 <= queue_id <= _MAX_QUEUE_ID:
            raise ValueError(f"there is no queue {queue_id}")
        if topic in ("", ".", "..") or "/" in topic or "\0" in topic:
            raise ValueError(f"a topic cannot be called {topic!r}")
        max_bytes = _MAX_TOPIC_BYTES_V1
        if self._config.auto_message_version_on_topic_len:
            max_bytes = _MAX_NAME_BYTES
        if len(topic.encode("utf-8", "replace")) > max_bytes:
            raise ValueError(f"a topic's name has at most {max_bytes} bytes")
        queue = self._queue(topic, queue_id, batches=self.has_batches(topic))
        if not self.removals.is_idle:
            for directory in self._directories(queue):
                self.removals.settle(directory)
        if queue.is_light:
            self.light_count += queues is None
            self._unmade[queue] = None
        self._add(queue)
        self.opened.append(queue)
        return queue

    def undo(self, kept: int) -> None:
        """Forgets the queues in `opened` but the first ones, since no message has entered them.

        A message that is refused leaves nothing behind, not even a directory.
        """
        for queue in self.opened[kept:]:
            queue.files.discard_prepared()
            ids = self.table.get(queue.topic)
            if ids is None or ids.get(queue.queue_id) is not queue:
                continue
            del ids[queue.queue_id]
            self._unmade.pop(queue, None)
            if not ids:
                del self.table[queue.topic]
                self.plain.pop(queue.topic, None)
                self.light_count -= queue.is_light
            if not queue.is_light:
                self._remove_empty(queue)
        del self.opened[kept:]

    def _remove_empty(self, queue: ConsumeQueue) -> None:
        """Removes the directories of a queue and its topic, unless there is something in them."""
        for directory in self._directories(queue):
            for each in (directory, os.path.dirname(directory)):
                with suppress(OSError, MemoryError):
                    self._files.remove_directory(each)

    def make_files(self) -> Steps[None]:
        """Makes the files of light queues that have none yet, one with each step.

        Raises OSError when the disk has no room; those that are left come with the next call.
        """
        for queue in list(self._unmade):
            if self.find(queue.topic, queue.queue_id) is queue and isinstance(
                queue.files, LightRow
            ):
                if not queue.files.mapped_files:
                    continue  # its first message is not confirmed yet
                queue.files.make()
            del self._unmade[queue]
            yield None

    @property
    def has_unmade(self) -> bool:
        """Whether there may be light queues without a file."""
        return bool(self._unmade)

    def has_batches(self, topic: str) -> bool:
        """Whether the topic's queues are queues of batches, or will be."""
        for queue in self.table.get(topic, {}).values():
            return queue.is_batch
        return bool(self.kind_of(topic))

    def _add(self, queue: ConsumeQueue) -> None:
        ids = self.table.setdefault(queue.topic, {})
        ids[queue.queue_id] = queue
        if not queue.is_batch:
            self.plain[queue.topic] = ids

    def load(self) -> None:
        """Finds the queues on disk.

        Files of another size are damaged, and are left to recovery. But when all files have the
        same other size, in whole units, the configuration must be wrong: raises FileSizeError. That
        is not so if all are empty, as a power cut leaves new files. Raises StoreError when a
        topic's queues are of the wrong kind.
        """
        self.table, self.plain, self.foreign = {}, {}, []
        self._load_from(self._root, batches=False)
        self._load_from(self._batch_root, batches=True)
        self.light_count = sum(map(is_light, self.table))
        _check_sizes([queue.files for queue in self if not queue.is_batch], UNIT_BYTES)
        _check_sizes([queue.files for queue in self if queue.is_batch], BATCH_UNIT_BYTES)

    def _load_from(self, root: str, *, batches: bool) -> None:
        for topic in self._files.entries(root):
            directory = os.path.join(root, topic.name)
            if not topic.is_directory:
                self.foreign.append(directory)
                continue
            for entry in self._files.entries(directory):
                if not entry.is_directory or not _is_queue_id(entry.name):
                    self.foreign.append(os.path.join(directory, entry.name))
                    continue
                queue = self._queue(topic.name, int(entry.name), batches=batches)
                queue.load()
                self.foreign += queue.files.foreign
                if self._is_of_topic(queue):
                    self._add(queue)

    def _is_of_topic(self, queue: ConsumeQueue) -> bool:
        """Whether the queue is of its topic's kind; raises StoreError if it is not, but has files.

        The original does not start then either (queueTypeShouldBe).
        """
        others = self.table.get(queue.topic, {}).values()
        kind = self.kind_of(queue.topic)
        if any(each.is_batch is not queue.is_batch for each in others):
            kind = not queue.is_batch
        if kind in (None, queue.is_batch):
            return True
        if not queue.files.mapped_files and not queue.files.misfits:
            return False
        is_said, has = ("plain", "batches") if queue.is_batch else ("of batches", "plain units")
        raise StoreError(
            f"The queues of the topic {queue.topic} are {is_said}, but {queue.files.directory} has"
            f" {has}. Correct queue.type in topics.json, or move the directory away: its queue is"
            " then built from the log."
        )

    def forget(self) -> list[str]:
        """Forgets all queues without touching their files; returns the paths that contain these."""
        self.table, self.plain, self.light_count = {}, {}, 0
        return [root for root in self._roots if self._files.exists(root)]

    @property
    def _roots(self) -> tuple[str, str, str]:
        return self._root, self._ext_root, self._batch_root

    @property
    def max_physical_offset(self) -> int:
        """The log offset after the last message with a unit; -1 if there is none."""
        return max((queue.max_physical_offset for queue in self), default=-1)

    def known_between(self, start: int, end: int) -> int:
        """How many messages the queues have units for between two log offsets."""
        return sum(
            queue.offset_of(end) - queue.offset_of(start) for queue in self if not queue.is_light
        )

    def delete_topic(self, topic: str) -> bool:
        """Removes the topic's queues, and leaves their files to `removals`; False without any.

        Offsets of a topic that is created again start at 0, as in 5.4.
        """
        queues = self.table.pop(topic, None)
        if queues is None:
            return False
        self.plain.pop(topic, None)
        self.light_count -= is_light(topic)
        for queue in queues.values():
            self._give_up(queue)
        for root in self._roots:
            self.removals.add_directory(os.path.join(root, topic))
        return True

    def drop_former_lives(self) -> None:
        """Removes queues with units from before their topic was deleted.

        A power cut may bring their files back. Raises OSError when they cannot be removed.
        """
        for queue in list(self):
            end = self.deleted.end_of(queue.topic)
            first = queue.stored(queue.written_from(queue.min_offset)) if end else None
            last = queue.stored(queue.written_before(queue.max_offset)) if end else None
            if any(unit is not None and 0 <= unit[0] < end for unit in (first, last)):
                queue.destroy()

    def remove_expired(self, topic: str, min_physical_offset: int) -> int:
        """Removes queues whose messages the log has all lost; returns how many (cleanExpired)."""
        removed = 0
        queues = self.table.get(topic, {})
        for queue_id, queue in list(queues.items()):
            if -1 < queue.max_physical_offset < min_physical_offset:
                self._give_up(queues.pop(queue_id))
                removed += 1
        if not queues:
            self.delete_topic(topic)
        return removed

    def _give_up(self, queue: ConsumeQueue) -> None:
        self.given_up += 1
        self.removals.add(queue.take_all())
        for directory in self._directories(queue):
            self.removals.add_directory(directory)

    def _directories(self, queue: ConsumeQueue) -> list[str]:
        place = os.path.join(queue.topic, str(queue.queue_id))
        return [os.path.join(root, place) for root in self._roots]

    def _queue(self, topic: str, queue_id: int, *, batches: bool) -> ConsumeQueue:
        config = self._config
        place = f"{topic}{os.sep}{queue_id}"
        magic, record_topic = encode_topic(topic)
        if batches:
            files = MappedFileQueue(
                self._files,
                os.path.join(self._batch_root, place),
                config.mapper_file_size_batch_consume_queue,
                "mapperFileSizeBatchConsumeQueue",
            )
            return BatchQueue(topic, queue_id, magic, record_topic, files)
        row = LightRow if is_light(topic) else MappedFileQueue
        files = row(
            self._files,
            os.path.join(self._root, place),
            config.consume_queue_file_bytes,
            "mappedFileSizeConsumeQueue",
        )
        return ConsumeQueue(
            topic,
            queue_id,
            magic,
            record_topic,
            files,
            None if is_light(topic) else self._ext(os.path.join(self._ext_root, place)),
            writes_ext=config.enable_consume_queue_ext,
        )

    def _ext(self, directory: str) -> ConsumeQueueExt | None:
        """The ext row, if it is to be written or exists already; its files then tell their size."""
        file_bytes = self._config.mapped_file_size_consume_queue_ext
        if not self._config.enable_consume_queue_ext:
            entries = self._files.entries(directory)
            if not entries:
                return None
            file_bytes = entries[0].size_bytes or file_bytes
        key = "mappedFileSizeConsumeQueueExt"
        return ConsumeQueueExt(
            MappedFileQueue(self._files, directory, file_bytes, key),
            self._bitmap_of,
        )

    def _bitmap_of(self, topic: str, physical_offset: int, size_bytes: int) -> bytes:
        return self.bitmap_of(topic, physical_offset, size_bytes)


def _check_sizes(rows: Iterable[MappedFileQueue], unit_bytes: int) -> None:
    """Raises FileSizeError when all files have the same other size."""
    rows = list(rows)
    sizes = {entry.size_bytes for row in rows for entry in row.misfits}
    fits = any(row.fits and row.mapped_files for row in rows)
    if not fits and len(sizes) == 1 and max(sizes) and not max(sizes) % unit_bytes:
        for row in rows:
            row.refuse_misfits()
