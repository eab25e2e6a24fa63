# SPDX-License-Identifier: Apache-2.0
"""Making durable what was written: "durable up to" is all that the store promises.

Nothing here waits or starts threads. Whoever runs the store takes a job with `begin`, runs it where
it may block, and brings it back with `finish`:

    job = flush.begin()
    if job is not None:
        job.run()           # in a thread: syncs files, touches nothing else
        flush.finish(job)   # where the store lives

with ASYNC_FLUSH every flushIntervalCommitLog; with SYNC_FLUSH when `on_demand` calls, and again
after each `finish` as long as `is_wanted`. One job at a time; it covers all that was written when
it began, so one sync answers all who wait (group commit).

The log is in every job. Queues are in it when `tick` finds it is time, a few in each job: those
with enough new pages, or thoroughly all; after a thorough round the checkpoint moves on.

Java: CommitLog.GroupCommitService, FlushRealTimeService, FlushConsumeQueueService.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final

from txrocketmq.broker.store.checkpoint import Checkpoint
from txrocketmq.broker.store.commit_log import CommitLog
from txrocketmq.broker.store.config import StoreConfig
from txrocketmq.broker.store.consume_queue import UNIT_BYTES, ConsumeQueue
from txrocketmq.broker.store.consume_queues import ConsumeQueues
from txrocketmq.broker.store.files import Files
from txrocketmq.broker.store.index_file import Index, IndexFile
from txrocketmq.broker.store.mapped_file import MappedFileQueue

_PAGE_BYTES: Final = 4096
_QUEUES_AT_ONCE: Final = 32
"""Queues in one job: who waits for the log should not wait for thousands of them."""


class Durable:
    """Somebody who waits for an offset to be durable: told so, or told that the time is up."""

    __slots__ = ("_listener", "deadline_ms", "offset", "outcome")

    def __init__(self, offset: int, deadline_ms: int) -> None:
        self.offset = offset
        self.deadline_ms = deadline_ms
        self.outcome: bool | None = None
        self._listener: Callable[[bool], None] | None = None

    def then(self, listener: Callable[[bool], None]) -> None:
        """Calls the listener once, now or later: True for durable, False for too late."""
        self._listener = listener
        if self.outcome is not None:
            listener(self.outcome)

    def resolve(self, *, durable: bool) -> None:
        """Gives the outcome."""
        self.outcome = durable
        if self._listener is not None:
            self._listener(durable)


class FlushJob:
    """Files to sync, and what is durable when that is done. `run` may be called in any thread."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self.paths: list[str] = []
        self.log_end = 0
        self.log_timestamp_ms = 0
        self.row_ends: list[tuple[MappedFileQueue, int]] = []
        self.queues_timestamp_ms = 0
        """With the last of a thorough round: messages up to then are durable in all queues."""
        self.index_files: list[IndexFile] = []
        self.error: OSError | None = None

    def run(self) -> None:
        """Syncs the files; what goes wrong is in `error`."""
        for path in self.paths:
            try:
                self._files.sync(path)
            except FileNotFoundError:
                # Retention was quicker.
                continue
            except OSError as error:
                self.error = error
                return


class Flush:
    """What is durable of a store; see the module.

    `log_timestamp_ms` and `queues_timestamp_ms` are those of the newest message in the log and of
    the newest that has its unit; whoever writes sets them.
    """

    def __init__(
        self,
        files: Files,
        config: StoreConfig,
        log: CommitLog,
        queues: ConsumeQueues,
        index: Index,
        checkpoint: Checkpoint,
    ) -> None:
        self._files = files
        self.config = config
        self._log = log
        self._queues = queues
        self._index = index
        self._checkpoint = checkpoint
        self._job: FlushJob | None = None
        self._waiting: deque[Durable] = deque()
        self._last_queue_flush_ms = 0
        self._last_thorough_ms = 0
        self._due: deque[ConsumeQueue] = deque()
        """Queues that are to be in the next jobs."""
        self._round_timestamp_ms = 0
        """What a thorough round that is under way will have made durable in all queues; else 0."""
        self._checkpoint_saved = False
        self.log_timestamp_ms = 0
        self.queues_timestamp_ms = 0
        self.on_demand: Callable[[], None] | None = None
        """Called when somebody waits and no job is under way."""
        self.on_durable: Callable[[int], None] | None = None
        """Called with the offset up to which the log has become durable."""
        self.error: OSError | None = None
        """Why syncing failed. What the disk has is unknown then, so the store takes no more."""

    @property
    def flushed_offset(self) -> int:
        """The log is durable up to there."""
        return self._log.files.flushed_offset

    @property
    def appended_offset(self) -> int:
        """The log is written up to there."""
        return self._log.max_offset

    @property
    def is_wanted(self) -> bool:
        """Whether somebody waits."""
        return bool(self._waiting)

    def tick(self, now_ms: int) -> None:
        """Decides whether queues are due; called every second."""
        if not self._last_thorough_ms:
            self._last_thorough_ms = self._last_queue_flush_ms = now_ms
        # A clock that was set back makes them due too.
        if 0 <= now_ms - self._last_queue_flush_ms < self.config.flush_interval_consume_queue:
            return
        if self._due:
            return
        self._last_queue_flush_ms = now_ms
        interval_ms = self.config.flush_consume_queue_thorough_interval
        if 0 <= now_ms - self._last_thorough_ms < interval_ms:
            self._begin_round(self.config.flush_consume_queue_least_pages)
        else:
            self._last_thorough_ms = now_ms
            self._begin_thorough_round()

    def _begin_thorough_round(self) -> None:
        try:
            # So that nothing waits for the index that the checkpoint then covers.
            self._index.write_pending(self.log_timestamp_ms)
        except OSError:
            return
        self._begin_round(0)
        self._round_timestamp_ms = self.queues_timestamp_ms

    def _begin_round(self, least_pages: int) -> None:
        for queue in self._queues:
            end, flushed = queue.max_offset * UNIT_BYTES, queue.files.flushed_offset
            if end > flushed and end // _PAGE_BYTES - flushed // _PAGE_BYTES >= least_pages:
                self._due.append(queue)

    def begin(self) -> FlushJob | None:
        """A job for all that is to be flushed now; None without such, or while one is under way."""
        if self._job is not None or self.error is not None:
            return None
        job = FlushJob(self._files)
        job.log_end = self._log.max_offset
        job.log_timestamp_ms = self.log_timestamp_ms
        job.paths += [file.path for file in self._log.files.unflushed()]
        self._add_queues(job)
        job.index_files = self._index.full_files
        self._index.full_files = []
        job.paths += [file.path for file in job.index_files]
        if self._checkpoint_saved:
            self._checkpoint_saved = False
            job.paths.append(self._checkpoint.path)
        if not job.paths and not job.queues_timestamp_ms:
            return None
        self._job = job
        return job

    def _add_queues(self, job: FlushJob) -> None:
        for _ in range(min(len(self._due), _QUEUES_AT_ONCE)):
            queue = self._due.popleft()
            for row in (queue.files,) if queue.ext is None else (queue.files, queue.ext.files):
                job.row_ends.append((row, row.max_offset))
                job.paths += [file.path for file in row.unflushed()]
        if not self._due:
            job.queues_timestamp_ms = self._round_timestamp_ms
            self._round_timestamp_ms = 0

    def finish(self, job: FlushJob) -> None:
        """Takes note of a job that was run, and tells those who waited for it."""
        if job is not self._job:
            # flush_all() was quicker.
            return
        self._job = None
        if job.error is not None:
            self.error = job.error
            return
        self._log.files.flushed_offset = max(self.flushed_offset, job.log_end)
        for row, end in job.row_ends:
            row.flushed_offset = max(row.flushed_offset, end)
        self._note_checkpoint(job)
        if self.on_durable is not None:
            self.on_durable(self.flushed_offset)
        while self._waiting and self._waiting[0].offset <= self.flushed_offset:
            self._waiting.popleft().resolve(durable=True)

    def _note_checkpoint(self, job: FlushJob) -> None:
        checkpoint = self._checkpoint
        checkpoint.physic_msg_timestamp_ms = job.log_timestamp_ms
        if job.queues_timestamp_ms:
            checkpoint.logics_msg_timestamp_ms = job.queues_timestamp_ms
        if job.index_files:
            checkpoint.index_msg_timestamp_ms = job.index_files[-1].end_timestamp_ms
        checkpoint.save()
        if job.queues_timestamp_ms or job.index_files:
            self._checkpoint_saved = True

    def wait(self, offset: int, deadline_ms: int) -> Durable:
        """Waits for the log to be durable up to the offset."""
        waiting = Durable(offset, deadline_ms)
        if offset <= self.flushed_offset:
            waiting.resolve(durable=True)
            return waiting
        self._waiting.append(waiting)
        if self._job is None and self.on_demand is not None:
            self.on_demand()
        return waiting

    def expire(self, now_ms: int) -> None:
        """Tells those whose time is up; the original answers FLUSH_DISK_TIMEOUT."""
        while self._waiting and self._waiting[0].deadline_ms <= now_ms:
            self._waiting.popleft().resolve(durable=False)

    def flush_all(self) -> None:
        """Makes all durable, here and now; OSError when that fails."""
        if self._job is not None:
            self._job.run()
            self.finish(self._job)
        self._due.clear()
        self._begin_thorough_round()
        while (job := self.begin()) is not None:
            job.run()
            self.finish(job)
        if self.error is not None:
            raise self.error
