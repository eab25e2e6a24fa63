# SPDX-License-Identifier: Apache-2.0
"""The store: puts and gets messages.

It is a facade over log, queues and index, and has no logic of its own. The reading half is in
stored_messages.py, and packed_puts.py puts what a kernel has read.

It belongs to one thread. It reads the clock only to measure itself, starts no thread and keeps no
timer: its owner calls `tick` every second, takes the steps of `follow_log` and the jobs of `flush`
(see flush.py). Until `load` has returned, and after `stop`, it takes and gives nothing.

Java: DefaultMessageStore.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from time import perf_counter_ns
from typing import Final

from txrocketmq.broker.store.disk.files import Files, OsFiles
from txrocketmq.broker.store.disk.mapped_file import MappedFileQueue
from txrocketmq.broker.store.disk.steps import Steps
from txrocketmq.broker.store.formats.config import StoreConfig
from txrocketmq.broker.store.formats.errors import StoreError
from txrocketmq.broker.store.formats.opening_report import Recovered
from txrocketmq.broker.store.formats.packed import PackedRows
from txrocketmq.broker.store.formats.put_message import Appended, PutMessage, PutStatus
from txrocketmq.broker.store.get.get_result import (
    GetMessageStatus,
    GetResult,
    QueryResult,
)
from txrocketmq.broker.store.log.commit_log import QueueBatch
from txrocketmq.broker.store.log.commit_point import CommitPoint, Policy, policy_of
from txrocketmq.broker.store.log.dispatch import Dispatchers
from txrocketmq.broker.store.log.long_run import LongRun
from txrocketmq.broker.store.opening.cut import Cut
from txrocketmq.broker.store.opening.inventory import InventoryFile
from txrocketmq.broker.store.opening.recover import Recovery
from txrocketmq.broker.store.packed_puts import INDEX_BATCH, PackedPuts
from txrocketmq.broker.store.queues.consume_queues import KindOf, kind_unknown
from txrocketmq.broker.store.upkeep.checkpoint import Checkpoint, MarkerFiles
from txrocketmq.broker.store.upkeep.flush import Flush
from txrocketmq.broker.store.upkeep.record_dispatch import Confirmed
from txrocketmq.broker.store.upkeep.reput import ALL, Ahead, Reput
from txrocketmq.broker.store.upkeep.retention import Retention

__all__ = [
    "Appended",
    "GetMessageStatus",
    "GetResult",
    "MessageStore",
    "PutMessage",
    "PutStatus",
    "QueryResult",
    "QueueBatch",
    "Recovered",
]

_INDEX_AT_ONCE: Final = 1024
"""How many entries are indexed at once, or a few more, while messages are put."""
_MAX_PENDING: Final = 65_536
"""How many entries may wait while the disk has no room for the index; then puts are refused."""
_NS_PER_MS: Final = 1_000_000
_SLICE_RECORDS: Final = 1024
"""How many records a slave dispatches in a turn: some 10 ms, and more than one read brings."""


class MessageStore(PackedPuts):
    """The store. The listeners in `on_arrivals` are called for new messages.

    With `new_rows`, which makes the rows of a kernel, runs of it can be put (packed_puts.py).
    """

    def __init__(
        self,
        config: StoreConfig,
        *,
        files: Files | None = None,
        policy: Policy | None = None,
        new_rows: Callable[[], PackedRows] | None = None,
    ) -> None:
        disk = files or OsFiles()
        super().__init__(config, disk, new_rows)
        self._index_failed = False
        self._put_error: OSError | None = None
        root = config.store_path_root_dir
        self._marks = MarkerFiles(disk, root)
        self._inventory = InventoryFile(disk, root)
        self._checkpoint = Checkpoint(disk, os.path.join(root, "checkpoint"))
        dispatchers = Dispatchers(config, self._index)
        self._reput = Reput(config, self._log, self._queues, dispatchers)
        self.flush = Flush(disk, config, self._log, self._queues, self._index, self._checkpoint)
        self._retention = Retention(
            disk, config, self._log, self._queues, self._index, self._records.memory.check
        )
        self._retention.before_removal = self._marks.note_start
        self.removals = self._retention.removals
        self.removals.notes.add(self._marks.path)
        self.commit = CommitPoint(policy or policy_of(config))
        self._confirmed = Confirmed(self.commit, self._reput, dispatchers)
        self._confirmed.most_records = _SLICE_RECORDS if config.is_slave else ALL
        self.on_arrivals = self._confirmed.on_arrivals
        """Called with rows, each of which begins with a queue that has new messages."""
        self.flush.on_durable.append(self._durable)
        self.damaged_from: int | None = None
        """Where the first part of the log begins that was damaged when the store was opened."""

    # --- opening and closing ---

    def load(
        self,
        now_ms: int,
        steady_ms: int | None = None,
        topics: Collection[str] | None = None,
        kind_of: KindOf = kind_unknown,
    ) -> Recovered:
        """Opens the store: takes its lock, recovers it, marks it as open.

        Missing queues are created for `topics`, or for all topics in the log if that is None.
        `kind_of` tells which queues a topic has, as long as the store is open. Raises StoreError,
        with the store closed; its subclass StoreLoss when messages are missing.
        """
        root = self.config.store_path_root_dir
        self._queues.kind_of = kind_of
        try:
            for directory in (root, self._log.files.directory, self._queues.directory):
                self._files.make_directory(directory)
            self._marks.lock()
            recovered = Recovery(
                self._files, self.config, self._marks, self._checkpoint, self._log, self._queues,
                self._index, self._reput,
            ).run(now_ms, topics)  # fmt: skip
            self._marks.open(max(self._log.min_offset, 0))
        except OSError as error:
            self._marks.unlock()
            raise StoreError(f"the store in {root} cannot be opened: {error}") from error
        except StoreError:
            self._marks.unlock()
            raise
        self.commit.written = self._log.max_offset
        self.commit.durable = self.flush.flushed_offset
        index_from = self._reput.dispatchers.index_from
        self._reput.dispatchers.index_from = min(index_from, self._reput.offset)
        self.flush.log_timestamp_ms = recovered.last_store_timestamp_ms
        self._confirmed.shown_ms = recovered.last_store_timestamp_ms
        self.flush.queues_timestamp_ms = recovered.last_store_timestamp_ms
        recovered.warnings += filter(None, [self._reput.why_unserved()])
        self._retention.look_at_disks()
        if self._retention.is_disk_full:
            recovered.warnings.append(self._why_disk_full())
        self.stats.start(now_ms, now_ms if steady_ms is None else steady_ms)
        self._records.written_from = self._log.max_offset
        self.damaged_from = recovered.damaged_from
        self._is_open = True
        return recovered

    def stop(self, now_ms: int) -> None:
        """Makes everything durable and closes the store, so that the next start need not recover.

        Raises StoreError when that fails: the store is closed all the same, and will be recovered.
        """
        if not self._is_open:
            return
        self._is_open = False
        try:
            self.removals.run_all()
            self._log.files.discard_prepared()
            shown = self._reput.offset
            self.flush.flush_all()
            self._confirmed.most_records = ALL
            self._show()
            if self.config.is_slave:
                self._drop_unfinished()
            for _ in self._queues.make_files():
                shown = -1
            self._index.write_pending(now_ms)
            if self._reput.offset != shown:
                self.flush.flush_all()  # the units of what has become visible by the first
            if self.dispatch_behind_bytes:
                raise StoreError("the store could not be closed in order: queues lack messages")
            for path in [*self._index.paths(), self._checkpoint.path]:
                self._files.sync(path)
            newest_ms, is_indexed = self.flush.log_timestamp_ms, self.config.message_index_enable
            self._inventory.leave(
                self._log, self._queues, self._index, newest_ms, is_indexed=is_indexed
            )
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

    # --- putting ---

    def put(self, messages: Sequence[PutMessage], now_ms: int) -> list[Appended]:
        """Does what `append` does; returns the result of each message, in order."""
        return self.append(messages, now_ms).results

    def append(self, messages: Sequence[PutMessage], now_ms: int) -> QueueBatch:
        """Stores a run of messages, all in one write; the batch has the result of each.

        Consumers see them, and `on_arrivals` are called with their queues, as soon as they are
        confirmed (see `commit`), mostly before this returns. A failure leaves nothing behind: a
        message is stored and will be seen, or it is not stored. Exceptions that are not the
        disk's fault are raised.
        """
        started_ns = perf_counter_ns()
        if not self.writeable:
            return self._refuse(PutStatus.SERVICE_NOT_AVAILABLE, len(messages), now_ms)
        try:
            if now_ms < self.flush.log_timestamp_ms:
                self.flush.clock_set_back(now_ms)
            batch = self._log.append(messages, self._queues, now_ms)
        except OSError as error:
            self._put_error = error
            return self._refuse(PutStatus.SERVICE_NOT_AVAILABLE, len(messages), now_ms)
        self._put_error = None
        flush, confirmed = self.flush, self._confirmed
        size_bytes = batch.end_offset - batch.start_offset
        if size_bytes:
            # Otherwise the checkpoint would tell of a message that does not exist.
            flush.log_timestamp_ms = now_ms
            self.commit.written = batch.end_offset
        confirmed.add(batch)
        flush.queues_timestamp_ms = confirmed.shown_ms
        if self._index.pending.count >= INDEX_BATCH:
            self._write_index(now_ms)
        refused = len(batch.refused)
        elapsed_ms = (perf_counter_ns() - started_ns) // _NS_PER_MS
        self.stats.put(len(messages) - refused, size_bytes, refused, elapsed_ms)
        return batch

    def append_raw(self, offset: int, data: bytes | memoryview) -> None:
        """Appends bytes of a master's log: CommitLog.append_raw.

        Consumers see them when they are confirmed, with the next `dispatch`. So a replica can say
        that it has them before it dispatches them.
        """
        start, marks = self._log.min_offset, self._marks
        if not marks.is_replica or start < 0 < offset:
            # The next start has to know where the log begins, and that it may end in a record.
            marks.open(offset if start < 0 else start, is_replica=True)
        self._pass_time()
        self._log.append_raw(offset, data)
        self.commit.written = self._log.max_offset

    def dispatch(self) -> bool:
        """Shows consumers some of what a master has sent, as far as it is confirmed.

        Returns whether more can follow at once.
        """
        before = self._reput.offset
        self._show()
        self._pass_time()
        return before < self._reput.offset < self.commit.visible

    @property
    def is_dispatch_stuck(self) -> bool:
        """Whether something that is no message follows where dispatching has ended."""
        return self._reput.ahead(self.commit.visible) is Ahead.NO_RECORD

    @property
    def dispatched_offset(self) -> int:
        """The offset up to which the log is dispatched."""
        return self._reput.offset

    def _drop_unfinished(self) -> None:
        """Cuts off the first part of a record, of which a master has not sent the rest yet."""
        last = self._log.files.last
        if last is not None and self._reput.ahead(self._log.max_offset) is Ahead.BEGINNING:
            self._log.files.truncate(self._reput.offset)
            last.clear_tail()

    def _pass_time(self) -> None:
        """Has the checkpoint know of the times of a master's messages, once they are dispatched."""
        flush, stored_ms = self.flush, self._reput.stored_ms
        if stored_ms and stored_ms != flush.log_timestamp_ms:
            if stored_ms < flush.log_timestamp_ms:
                flush.clock_set_back(stored_ms)
            flush.log_timestamp_ms = stored_ms

    @property
    def durable_offset(self) -> int:
        """Up to where the log survives a loss of power."""
        return self.flush.flushed_offset

    def tell_writes(self, listener: Callable[[], None] | None) -> None:
        """Has a function called when an `append` has written; without one, nothing is paid."""
        self._confirmed.tell(listener)

    def keep(self, needed_from: Callable[[], int | None]) -> None:
        """Has files of the log kept from the offset on that the function returns; if it returns
        None, or room is scarce, files are deleted as always.
        """
        self._retention.needed_from = needed_from

    def read_raw(self, offset: int, max_bytes: int) -> memoryview | None:
        """The bytes of the log from an offset on; see CommitLog.read_raw."""
        return self._log.read_raw(offset, max_bytes)

    @property
    def log_files(self) -> MappedFileQueue:
        """The files of the log."""
        return self._log.files

    def order_cut(self, at: int, now_ms: int) -> None:
        """Orders that the next opening cuts the log at an offset, where a record begins or ends.

        Raises OSError when the disk fails. See opening/cut.py.
        """
        Cut(self._files, self.config).order(at, self.flush.log_timestamp_ms, now_ms)

    @property
    def writeable(self) -> bool:
        """Whether messages are taken: the store is open, and its disk neither full nor failing."""
        return (
            self._is_open
            and not self._retention.is_disk_full
            and self.flush.error is None
            and not (self._index_failed and self._index.pending.count >= _MAX_PENDING)
        )

    def _refuse(self, status: PutStatus, count: int, now_ms: int) -> QueueBatch:
        self.stats.put(0, 0, count, 0)
        return QueueBatch.refusing(count, status, now_ms)

    def _durable(self) -> None:
        """Hears that the log has become durable up to `flush.flushed_offset`."""
        self.commit.durable = self.flush.flushed_offset
        self.confirmed()

    def confirmed(self) -> None:
        """Hears that a mark of `commit` has moved: shows messages to consumers, tells senders."""
        self._show()
        self.commit.moved()

    def _show(self) -> None:
        self._confirmed.show()
        self.flush.queues_timestamp_ms = self._confirmed.shown_ms
        if self._index.waiting >= INDEX_BATCH:
            self._write_index(self._confirmed.shown_ms)

    def _write_index(self, now_ms: int) -> None:
        try:
            self._index.write_pending(now_ms, _INDEX_AT_ONCE)
        except OSError:
            # There is no room now: the entries wait, and if they become too many, so do messages.
            self._index_failed = True
        else:
            self._index_failed = False

    def write_index(self) -> Steps[None]:
        """Steps that index what waits for it, as far as there is room: much, after a long batch."""
        while self._is_open and self._index.pending.count:
            self._write_index(self.flush.log_timestamp_ms)
            if self._index_failed:
                return
            yield

    def long_run(self, like: PutMessage) -> LongRun | PutStatus:
        """Begins a run of messages that are encoded a few at a time and then put: see LongRun."""
        return self._log.long_run(like)

    def make_room(self, run: LongRun) -> Steps[None]:
        """Steps that make room in the log for a long run, so that putting it takes less time."""
        steps = self._log.make_room(run.size_bytes)
        while self.writeable and next(steps, steps) is None:
            yield

    def query(
        self,
        topic: str,
        key: str,
        max_count: int,
        begin_ms: int,
        end_ms: int,
        index_type: str | None = None,
    ) -> Steps[QueryResult]:
        """Like StoredMessages.query, but also finds what is not in the index yet."""
        yield from self.write_index()
        found = super().query(topic, key, max_count, begin_ms, end_ms, index_type)
        return (yield from found)

    # --- topics, cleaning, state ---

    def topics(self) -> list[str]:
        """The topics that have queues."""
        return list(self._queues.table)

    def queue_ids(self, topic: str) -> list[int]:
        """The ids of the topic's queues."""
        return sorted(self._queues.table.get(topic, ()))

    def end_of(self, topic: str) -> int:
        """The log offset after the newest message of a topic; -1 if its queues have none."""
        queues = self._queues.table.get(topic, {}).values()
        return max((each.max_physical_offset for each in queues), default=-1)

    def has_queue(self, topic: str, queue_id: int) -> bool:
        """Whether the queue has ever had a message."""
        return self._queues.find(topic, queue_id) is not None

    def has_batches(self, topic: str) -> bool:
        """Whether the topic's queues are queues of batches."""
        return self._queues.has_batches(topic)

    def delete_topic(self, topic: str, log_end: int | None = None) -> bool:
        """Deletes a topic's queues, which hold nothing behind `log_end`. False: it had none."""
        self._reput.forget_queues()
        if topic in self._queues.table:
            end = self._log.max_offset if log_end is None else log_end
            with suppress(OSError):  # without room for the mark the deletion makes some
                self._queues.deleted.note(topic, end)
        return self._queues.delete_topic(topic)

    def clean_expired_queues(self, topic: str) -> int:
        """Deletes queues of a topic whose messages the log has all lost; returns how many."""
        self._reput.forget_queues()
        return self._queues.remove_expired(topic, self._log.min_offset)

    def delete_expired(self, now_ms: int, steady_ms: int | None = None) -> None:
        """Deletes old log files at any hour: one now, others with the next ticks."""
        self._retention.ask()
        self._retention.tick(now_ms, now_ms if steady_ms is None else steady_ms)

    def follow_log(self) -> Steps[None] | None:
        """Steps that adapt queues and index to a log that has lost files; None if there is nothing
        to do. See retention.py.
        """
        return self._retention.follow_log() if self._is_open else None

    def make_files(self) -> Steps[None] | None:
        """Steps that make files of light queues, None without need. OSError: there is no room."""
        return self._queues.make_files() if self._is_open and self._queues.has_unmade else None

    def tick(self, now_ms: int, steady_ms: int | None = None) -> None:
        """Housekeeping, to be called each second.

        Periods are measured by `steady_ms`, which is `now_ms` if it is not given.
        """
        if not self._is_open:
            return
        steady_ms = now_ms if steady_ms is None else steady_ms
        self.stats.sample(steady_ms)
        self.damaged.tick()
        self.wrong_bodies.tick()
        self.jumps.tick()
        self._records.memory.tick()
        self._write_index(now_ms)
        self._show()
        self.flush.tick(steady_ms)
        self.commit.expire(steady_ms)
        self._retention.tick(now_ms, steady_ms)  # last: it may fail, when files may not be removed

    @property
    def dispatch_behind_bytes(self) -> int:
        """How many bytes of the log are not in queues yet."""
        return max(self._log.max_offset - self._reput.offset, 0)

    def why_not_writeable(self) -> str:
        """Why no messages are taken, as a sentence for people; empty while they are."""
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

    def why_cleaning(self) -> str:
        """Why old log files are deleted at any hour now; empty while they are not."""
        return self._retention.why_cleaning()

    def _why_disk_full(self) -> str:
        return f"the disk of {self.config.store_path_root_dir} {self._retention.why_full()}"

    def runtime_info(self, steady_ms: int) -> dict[str, str]:
        """The store's figures for GET_BROKER_RUNTIME_INFO."""
        retention = self._retention
        log_directory = self._log.files.directory
        return {
            **self.stats.runtime_info(steady_ms),
            f"commitLogDiskRatio_{log_directory}": str(retention.log_disk_ratio),
            "commitLogDiskRatio": str(retention.log_disk_ratio),
            "consumeQueueDiskRatio": str(retention.queue_disk_ratio),
            "commitLogMinOffset": str(self._log.min_offset),
            "commitLogMaxOffset": str(self._log.max_offset),
        }
