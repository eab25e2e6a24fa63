# SPDX-License-Identifier: Apache-2.0
"""All consume queues of a store, by topic and queue id.

A queue that is asked for and does not exist is not made: only a message makes one.

Java: queue.ConsumeQueueStore, AbstractConsumeQueueStore, QueueOffsetOperator.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from typing import Final

from txrocketmq.broker.store.config import StoreConfig
from txrocketmq.broker.store.consume_queue import ConsumeQueue
from txrocketmq.broker.store.consume_queue_ext import ConsumeQueueExt
from txrocketmq.broker.store.files import Files
from txrocketmq.broker.store.mapped_file import MappedFileQueue
from txrocketmq.remoting.message import record
from txrocketmq.remoting.packing import fixed

_TOPIC_LENGTH_V1: Final = fixed(record.TOPIC_LENGTH_V1).struct
_TOPIC_LENGTH_V2: Final = fixed(record.TOPIC_LENGTH_V2).struct
_MAX_TOPIC_BYTES_V1: Final = 0x7F
_MAX_NAME_BYTES: Final = 255
"""Of a directory, and so of a topic."""
_MAX_QUEUE_ID: Final = 0x7FFFFFFF

Table = dict[str, dict[int, ConsumeQueue]]


def encode_topic(topic: str) -> tuple[int, bytes]:
    """The magic of the topic's records, and the topic as they have it: its length and its bytes."""
    encoded = topic.encode("utf-8", "replace")
    if len(encoded) <= _MAX_TOPIC_BYTES_V1:
        return record.MAGIC_V1, _TOPIC_LENGTH_V1.pack(len(encoded)) + encoded
    return record.MAGIC_V2, _TOPIC_LENGTH_V2.pack(len(encoded)) + encoded


class ConsumeQueues:
    """The table of queues, over their directories."""

    def __init__(self, files: Files, config: StoreConfig) -> None:
        self._files = files
        self._config = config
        self._root = os.path.join(config.store_path_root_dir, "consumequeue")
        self._ext_root = os.path.join(config.store_path_root_dir, "consumequeue_ext")
        self.table: Table = {}
        self.removed = 0
        """How many times queues were removed: who holds some looks them up anew."""

    def __iter__(self) -> Iterator[ConsumeQueue]:
        for queues in self.table.values():
            yield from queues.values()

    @property
    def directory(self) -> str:
        """Where the queues are."""
        return self._root

    def find(self, topic: str, queue_id: int) -> ConsumeQueue | None:
        """The queue, if it ever had a message."""
        queues = self.table.get(topic)
        return None if queues is None else queues.get(queue_id)

    def open(self, topic: str, queue_id: int) -> ConsumeQueue:
        """The queue, made if there is none; ValueError for what cannot name a directory."""
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
        queue = self._queue(topic, queue_id)
        self.table.setdefault(topic, {})[queue_id] = queue
        return queue

    def load(self) -> None:
        """Finds the queues on disk; StoreError for files that cannot be theirs."""
        self.table = {}
        for topic in self._files.entries(self._root):
            if not topic.is_directory:
                continue
            for entry in self._files.entries(os.path.join(self._root, topic.name)):
                if entry.is_directory and entry.name.isdecimal():
                    queue = self._queue(topic.name, int(entry.name))
                    queue.load()
                    self.table.setdefault(topic.name, {})[queue.queue_id] = queue

    @property
    def max_physical_offset(self) -> int:
        """Where the last message that has a unit ends in the log; -1 when there is none."""
        return max((queue.max_physical_offset for queue in self), default=-1)

    def correct_min_offsets(self, min_physical_offset: int) -> None:
        """Moves each queue's min_offset to its first message that the log still has."""
        for queue in self:
            queue.correct_min_offset(min_physical_offset)

    def delete_topic(self, topic: str) -> bool:
        """Removes the topic's queues with their files; whether there were any.

        Offsets of a topic made anew start at 0 again, as in 5.4.
        """
        queues = self.table.pop(topic, None)
        if queues is None:
            return False
        self.removed += 1
        for queue in queues.values():
            queue.destroy()
        self._files.remove_directory(os.path.join(self._root, topic))
        self._files.remove_directory(os.path.join(self._ext_root, topic))
        return True

    def remove_expired(self, min_physical_offset: int, keep: Collection[str]) -> int:
        """Removes queues all of whose messages the log has lost; how many (cleanExpired)."""
        removed = 0
        for topic, queues in list(self.table.items()):
            if topic in keep:
                continue
            for queue_id, queue in list(queues.items()):
                if -1 < queue.max_physical_offset < min_physical_offset:
                    queues.pop(queue_id).destroy()
                    removed += 1
                    self.removed += 1
            if not queues:
                self.delete_topic(topic)
        return removed

    def _queue(self, topic: str, queue_id: int) -> ConsumeQueue:
        config = self._config
        place = os.path.join(topic, str(queue_id))
        files = MappedFileQueue(
            self._files,
            os.path.join(self._root, place),
            config.consume_queue_file_bytes,
            "mappedFileSizeConsumeQueue",
        )
        magic, record_topic = encode_topic(topic)
        return ConsumeQueue(
            topic,
            queue_id,
            magic,
            record_topic,
            files,
            self._ext(os.path.join(self._ext_root, place)),
            writes_ext=config.enable_consume_queue_ext,
        )

    def _ext(self, directory: str) -> ConsumeQueueExt | None:
        """The ext row: when it is to be written, or is there; its files then tell their size."""
        file_bytes = self._config.mapped_file_size_consume_queue_ext
        if not self._config.enable_consume_queue_ext:
            entries = self._files.entries(directory)
            if not entries:
                return None
            file_bytes = entries[0].size_bytes or file_bytes
        key = "mappedFileSizeConsumeQueueExt"
        return ConsumeQueueExt(MappedFileQueue(self._files, directory, file_bytes, key))
