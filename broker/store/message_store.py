# SPDX-License-Identifier: Apache-2.0
"""The store: messages in, messages out. A facade over log, queues and index; nothing else is here.

It belongs to one thread. It reads no clock but to measure itself, starts no thread and keeps no
timer: whoever runs it calls `tick` every second and takes the jobs of `flush` (see flush.py). Until
`load` has returned, and after `stop`, it takes and gives nothing.

Java: DefaultMessageStore.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from time import perf_counter_ns
from typing import TYPE_CHECKING, Final

from txrocketmq.broker.store.checkpoint import Checkpoint, Marks
from txrocketmq.broker.store.commit_log import CommitLog
from txrocketmq.broker.store.config import SYNC_FLUSH, StoreConfig
from txrocketmq.broker.store.consume_queue import ConsumeQueue, Unit
from txrocketmq.broker.store.consume_queues import ConsumeQueues
from txrocketmq.broker.store.errors import StoreError
from txrocketmq.broker.store.files import Files, OsFiles
from txrocketmq.broker.store.flush import Flush
from txrocketmq.broker.store.get_message import (
    GetMessageStatus,
    GetResult,
    MessageFilter,
    QueryResult,
    Request,
    get_message,
    recent_bytes,
)
from txrocketmq.broker.store.index_file import Index
from txrocketmq.broker.store.plain_put import Place, PlainBatch, encode_plain
from txrocketmq.broker.store.put_message import Appended, PutMessage, PutStatus, refused
from txrocketmq.broker.store.recover import Recovered, Recovery
from txrocketmq.broker.store.reput import Reput
from txrocketmq.broker.store.retention import Retention
from txrocketmq.broker.store.scan import store_timestamp_ms
from txrocketmq.broker.store.stats import StoreStats

if TYPE_CHECKING:
    from txrocketmq.remoting.serialize.plain_sends import PlainSend

__all__ = [
    "Appended",
    "GetMessageStatus",
    "GetResult",
    "MessageStore",
    "Place",
    "PlainBatch",
    "PutMessage",
    "PutStatus",
    "QueryResult",
    "Recovered",
]

_INDEX_BATCH: Final = 256
"""How many entries are collected before the index is written."""
_MAX_PENDING: Final = 65_536
"""How many entries may wait while the disk has no room for the index; then puts are refused."""
_NS_PER_MS: Final = 1_000_000


class MessageStore:
    """See the module. `on_arrival(topic, queue_id, max_offset)` is called for new messages."""

    def __init__(self, config: StoreConfig, *, files: Files | None = None) -> None:
        self._files = files or OsFiles()
        self._is_open = False
        self._put_error: OSError | None = None
        self._recent_bytes = recent_bytes(config)
        self.on_arrival: Callable[[str, int, int], None] | None = None
        self.stats = StoreStats()
        self.config = config
        root = config.store_path_root_dir
        disk = self._files
        self._marks = Marks(disk, root)
        self._checkpoint = Checkpoint(disk, os.path.join(root, "checkpoint"))
        self._log = CommitLog(disk, config)
        self._queues = ConsumeQueues(disk, config)
        index_root = os.path.join(root, "index")
        self._index = Index(disk, index_root, config.max_hash_slot_num, config.max_index_num)
        self._reput = Reput(config, self._log, self._queues, self._index)
        self.flush = Flush(disk, config, self._log, self._queues, self._index, self._checkpoint)
        self._retention = Retention(disk, config, self._log, self._queues, self._index)
        self._waits_for_disk = config.flush_disk_type == SYNC_FLUSH and not config.read_un_committed
        if self._waits_for_disk:
            self.flush.on_durable = self._dispatch

    # --- opening and closing ---

    def load(self, now_ms: int) -> Recovered:
        """Opens the store: takes its lock, recovers it, marks it as open.

        Raises StoreError, with the store closed, when that cannot be done.
        """
        root = self.config.store_path_root_dir
        try:
            for directory in (root, self._log.files.directory, self._queues.directory):
                self._files.make_directory(directory)
            self._marks.lock()
            recovered = self._recover()
            self._marks.open()
        except OSError as error:
            self._marks.unlock()
            raise StoreError(f"the store in {root} cannot be opened: {error}") from error
        except StoreError:
            self._marks.unlock()
            raise
        self._retention.look_at_disks()
        if self._retention.is_disk_full:
            recovered.warnings.append(self._why_disk_full())
        self.stats.start(now_ms)
        self._is_open = True
        return recovered

    def _recover(self) -> Recovered:
        was_closed = not self._marks.is_aborted
        machine_down = not was_closed and self._marks.is_machine_down
        self._checkpoint.load()
        self._log.files.load()
        self._queues.load()
        keep_until_ms = self._checkpoint.index_msg_timestamp_ms if machine_down else None
        self._index.load(keep_until_ms, redo=not was_closed)
        recovery = Recovery(
            self.config, self._log, self._queues, self._index, self._reput, self._checkpoint
        )
        recovered = recovery.run(was_closed=was_closed)
        self.flush.log_timestamp_ms = recovered.last_store_timestamp_ms
        self.flush.queues_timestamp_ms = recovered.last_store_timestamp_ms
        return recovered

    def stop(self, now_ms: int) -> None:
        """Makes all durable and closes the store, so that the next start need not recover.

        StoreError when that fails: the store is closed all the same, and will be recovered.
        """
        if not self._is_open:
            return
        self._is_open = False
        try:
            self._log.files.discard_prepared()
            self.flush.flush_all()
            self._index.write_pending(now_ms)
            if self._waits_for_disk:
                self.flush.flush_all()
                if self.dispatch_behind_bytes:
                    raise StoreError("the store could not be closed in order: queues lack messages")
            for path in [*self._index.paths(), self._checkpoint.path]:
                self._files.sync(path)
            self._marks.close()
        except OSError as error:
            raise StoreError(f"the store could not be closed in order: {error}") from error
        finally:
            self._marks.unlock()
            self._checkpoint.close()
            self._log.files.unmap()
            for queue in self._queues:
                queue.files.discard_prepared()
                queue.files.unmap()

    def configure(self, config: StoreConfig) -> None:
        """Takes settings that may change while the store is open; others are to be as they were."""
        self.config = config
        self._log.config = config
        self.flush.config = config
        self._retention.config = config
        self._recent_bytes = recent_bytes(config)

    # --- putting ---

    def put(self, messages: Sequence[PutMessage], now_ms: int) -> list[Appended]:
        """Stores messages, all in one write; each has its result, in order.

        They are in their queues when this returns, but for SYNC_FLUSH, where they are when they
        are durable. `on_arrival` was called, once per queue.
        """
        started_ns = perf_counter_ns()
        if not self.writeable:
            return self._refuse(PutStatus.SERVICE_NOT_AVAILABLE, messages, now_ms)
        start = self._log.max_offset
        try:
            batch = self._log.encode(messages, self._queues, now_ms)
        except OSError as error:
            self._put_error = error
            return self._refuse(PutStatus.SERVICE_NOT_AVAILABLE, messages, now_ms)
        self._put_error = None
        self._log.write(batch)
        self.flush.log_timestamp_ms = now_ms
        if self._waits_for_disk:
            for queue in batch.queues:
                queue.pending.clear()
        else:
            self._index.add(batch.entries)
            self._show(batch.queues, self._log.max_offset, now_ms)
        stored = len(messages) - batch.refused
        elapsed_ms = (perf_counter_ns() - started_ns) // _NS_PER_MS
        self.stats.put(stored, self._log.max_offset - start, batch.refused, elapsed_ms)
        return batch.results

    def _show(self, queues: Sequence[ConsumeQueue], end_offset: int, now_ms: int) -> None:
        """Lets consumers see what was written to the log: the pending units of these queues."""
        self.flush.queues_timestamp_ms = now_ms
        on_arrival = self.on_arrival
        for queue in queues:
            queue.append_pending(now_ms)
        self._reput.offset = end_offset
        if on_arrival is not None:
            for queue in queues:
                on_arrival(queue.topic, queue.queue_id, queue.max_offset)
        if self._index.waiting >= _INDEX_BATCH:
            self._write_index(now_ms)

    def place(self, topic: str, queue_id: int, sys_flag: int, properties_end: bytes) -> Place:
        """Where plain sends go; good until `queues_removed` changes. ValueError as Place says."""
        return Place(self._queues.open(topic, queue_id), sys_flag, properties_end)

    @property
    def queues_removed(self) -> int:
        """How many times queues were removed since the store was opened."""
        return self._queues.removed

    def put_plain(
        self,
        sends: Sequence[PlainSend],
        places: Mapping[bytes, Place],
        came_bytes: int,
        hosts: tuple[bytes, bytes],
        now_ms: int,
    ) -> PlainBatch | None:
        """As `put`, of sends whose places are known; see encode_plain for what is given.

        None, and nothing is stored, when that is not as simple as it seems: use `put` and see.
        """
        started_ns = perf_counter_ns()
        if self.sync_flush or not self.writeable or came_bytes > self.config.max_message_size:
            return None
        file = self._log.files.last
        batch = encode_plain(sends, places, came_bytes, file, hosts, now_ms)
        if batch is None:
            return None
        end_offset = batch.write()
        self.flush.log_timestamp_ms = now_ms
        if self.config.message_index_enable:
            self._index.add(batch.entries)
        self._show(batch.queues, end_offset, now_ms)
        elapsed_ms = (perf_counter_ns() - started_ns) // _NS_PER_MS
        self.stats.put(len(sends), end_offset - batch.offsets[0], 0, elapsed_ms)
        return batch

    @property
    def writeable(self) -> bool:
        """Whether messages are taken: the store is open, its disk not full and not failing."""
        return (
            self._is_open
            and not self._retention.is_disk_full
            and self.flush.error is None
            and self._index.waiting < _MAX_PENDING
        )

    @property
    def sync_flush(self) -> bool:
        """Whether a message counts as stored only when it is durable: see when_durable."""
        return self.config.flush_disk_type == SYNC_FLUSH

    def when_durable(self, offset: int, now_ms: int, listener: Callable[[bool], None]) -> None:
        """Calls the listener: True when the log is durable so far, False if it takes too long."""
        self.flush.wait(offset, now_ms + self.config.sync_flush_timeout).then(listener)

    def _refuse(
        self, status: PutStatus, messages: Sequence[PutMessage], now_ms: int
    ) -> list[Appended]:
        self.stats.put(0, 0, len(messages), 0)
        return [refused(status, now_ms) for _ in messages]

    def _dispatch(self, durable_offset: int) -> None:
        """Lets consumers see what has become durable."""
        try:
            touched = self._reput.run(durable_offset)
        except OSError:
            # Without room now: what is missing is dispatched with the next flush, or tick.
            return
        self.flush.queues_timestamp_ms = self.flush.log_timestamp_ms
        if self.on_arrival is not None:
            for queue in touched:
                self.on_arrival(queue.topic, queue.queue_id, queue.max_offset)

    def _write_index(self, now_ms: int) -> None:
        try:
            self._index.write_pending(now_ms)
        except OSError:
            # Without room now: the entries wait, and if they become too many, so do messages.
            return

    # --- getting ---

    def get(
        self,
        topic: str,
        queue_id: int,
        offset: int,
        max_count: int,
        max_bytes: int,
        tag_codes: frozenset[int] | None = None,
        filter_message: MessageFilter | None = None,
    ) -> GetResult:
        """Messages of a queue from an offset on; see get_message.py for what comes when."""
        started_ns = perf_counter_ns()
        queue = self._queues.find(topic, queue_id) if self._is_open else None
        request = Request(offset, max_count, max_bytes, tag_codes, filter_message)
        result = get_message(self._log, queue, request, self.config, self._recent_bytes)
        stats = self.stats
        if result.count:
            stats.got_found += 1
            stats.got_messages += result.count
        else:
            stats.got_missed += 1
        elapsed_ms = (perf_counter_ns() - started_ns) // _NS_PER_MS
        stats.get_max_ms = max(stats.get_max_ms, elapsed_ms)
        return result

    def max_offset(self, topic: str, queue_id: int) -> int:
        """The offset after the queue's last message; 0 when there is no such queue."""
        queue = self._queues.find(topic, queue_id)
        return 0 if queue is None else queue.max_offset

    def min_offset(self, topic: str, queue_id: int) -> int:
        """The offset of the queue's first message; 0 when there is no such queue."""
        queue = self._queues.find(topic, queue_id)
        return 0 if queue is None else queue.min_offset

    def offset_by_time(
        self, topic: str, queue_id: int, timestamp_ms: int, *, upper: bool = False
    ) -> int:
        """The first message stored at this time or later; with `upper` the last at it or earlier.

        0 when there is no such queue; else within min_offset and max_offset.
        """
        queue = self._queues.find(topic, queue_id)
        if queue is None:
            return 0
        return queue.offset_by_time(timestamp_ms, self._stored_ms, upper=upper)

    def earliest_store_time(self, topic: str, queue_id: int) -> int:
        """When the queue's first message was stored, in ms; -1 when there is none."""
        return self.store_time_at(topic, queue_id, self.min_offset(topic, queue_id))

    def store_time_at(self, topic: str, queue_id: int, queue_offset: int) -> int:
        """When the message at this offset was stored, in ms; -1 when there is none."""
        queue = self._queues.find(topic, queue_id)
        unit = queue.unit(queue_offset) if queue is not None else None
        return -1 if unit is None else self._stored_ms(unit)

    def is_recent(self, topic: str, queue_id: int, queue_offset: int) -> bool:
        """Whether a message is there and likely in memory (checkInMemByConsumeOffset)."""
        queue = self._queues.find(topic, queue_id)
        unit = queue.unit(queue_offset) if queue is not None else None
        if unit is None or self._log.select(unit.physical_offset, unit.size_bytes) is None:
            return False
        return self._log.max_offset - unit.physical_offset <= self._recent_bytes

    def queue_units(self, topic: str, queue_id: int, offset: int, count: int) -> Iterator[Unit]:
        """Units of a queue from an offset on: where messages are, their sizes, their tags codes."""
        queue = self._queues.find(topic, queue_id)
        return iter(()) if queue is None else queue.units(offset, count)

    def message_at(self, physical_offset: int, size: int | None = None) -> memoryview | None:
        """The record that starts at this offset of the log; None when none does.

        With `size`, which a queue's unit tells, it is not looked at whether one does.
        """
        if size is not None:
            return self._log.select(physical_offset, size)
        return self._log.record_at(physical_offset)

    def query(
        self,
        topic: str,
        key: str,
        max_count: int,
        begin_ms: int,
        end_ms: int,
        index_type: str | None = None,
    ) -> QueryResult:
        """Messages by key, stored in a span of time (to the second): their unique key or one of
        their keys, or with index type "T" their tag. As queryMessage does, at most maxMsgsNumBatch.
        """
        self._write_index(self.flush.log_timestamp_ms)
        max_count = min(max_count, self.config.max_msgs_num_batch)
        found = self._index.find(topic, key, max_count, begin_ms, end_ms, index_type)
        records = [
            record
            for offset in sorted(found.physical_offsets)
            if (record := self._log.record_at(offset)) is not None
        ]
        return QueryResult(records, found.last_update_timestamp_ms, found.last_update_offset)

    def _stored_ms(self, unit: Unit) -> int:
        return self._log.store_time_ms(unit.physical_offset, unit.size_bytes)

    # --- topics, cleaning, state ---

    def topics(self) -> list[str]:
        """The topics that have queues."""
        return list(self._queues.table)

    def queue_ids(self, topic: str) -> list[int]:
        """The queues that the topic has."""
        return sorted(self._queues.table.get(topic, ()))

    def delete_topic(self, topic: str) -> bool:
        """Deletes the queues of a topic, if there are any; its messages leave the log in time."""
        self._reput.forget_queues()
        return self._queues.delete_topic(topic)

    def clean_unused(self, keep: Collection[str]) -> int:
        """Deletes the topics that are not to be kept; how many."""
        return sum(self.delete_topic(topic) for topic in self.topics() if topic not in keep)

    def clean_expired_queues(self, keep: Collection[str] = ()) -> int:
        """Deletes queues whose messages the log has all lost, but of topics to keep; how many."""
        self._reput.forget_queues()
        return self._queues.remove_expired(self._log.min_offset, keep)

    def delete_expired(self, now_ms: int) -> None:
        """Deletes old log files, whatever the hour: one now, others with the next ticks."""
        self._retention.ask()
        self._retention.tick(now_ms)

    def tick(self, now_ms: int) -> None:
        """Housekeeping; to be called every second."""
        if not self._is_open:
            return
        self.stats.sample(now_ms)
        self._write_index(now_ms)
        if self._waits_for_disk and self._reput.offset < self.flush.flushed_offset:
            self._dispatch(self.flush.flushed_offset)
        self.flush.tick(now_ms)
        self.flush.expire(now_ms)
        self._retention.tick(now_ms)  # last: it may fail, when files may not be removed

    @property
    def min_physical_offset(self) -> int:
        """Where the log starts."""
        return max(self._log.min_offset, 0)

    @property
    def max_physical_offset(self) -> int:
        """Where the log ends."""
        return self._log.max_offset

    @property
    def earliest_message_ms(self) -> int:
        """When the oldest message of the log was stored; -1 when there is none."""
        record = self._log.record_at(self.min_physical_offset)
        return -1 if record is None else store_timestamp_ms(record)

    @property
    def dispatch_behind_bytes(self) -> int:
        """How much of the log is not in queues yet."""
        return max(self._log.max_offset - self._reput.offset, 0)

    def why_not_writeable(self) -> str:
        """A sentence for a person; empty while the store takes messages."""
        if self._put_error is not None:
            return f"the log has no room for the next message: {self._put_error}"
        if self.writeable:
            return ""
        if not self._is_open:
            return "the store is not open"
        if self.flush.error is not None:
            return f"the disk failed: {self.flush.error}"
        if self._retention.is_disk_full:
            return self._why_disk_full()
        return "the disk has no room for the index"

    def _why_disk_full(self) -> str:
        retention = self._retention
        fullest = max(retention.log_disk_ratio, retention.queue_disk_ratio)
        return (
            f"the disk of {self.config.store_path_root_dir} is {fullest:.0%} full: no messages are"
            f" stored above {retention.warning_ratio:.0%} (diskSpaceWarningLevelRatio)"
        )

    def runtime_info(self, now_ms: int) -> dict[str, str]:
        """The store's share of GET_BROKER_RUNTIME_INFO."""
        retention = self._retention
        log_directory = self._log.files.directory
        return {
            **self.stats.runtime_info(now_ms),
            f"commitLogDiskRatio_{log_directory}": str(retention.log_disk_ratio),
            "commitLogDiskRatio": str(retention.log_disk_ratio),
            "consumeQueueDiskRatio": str(retention.queue_disk_ratio),
            "commitLogMinOffset": str(self._log.min_offset),
            "commitLogMaxOffset": str(self._log.max_offset),
        }
