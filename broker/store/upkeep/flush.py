# SPDX-License-Identifier: Apache-2.0
"""Makes written data durable: "durable up to" is all that the store promises.

Nothing here waits or starts threads. Whoever runs the store takes a job with `begin`, runs it where
it may block, and brings it back with `finish`:

    job = flush.begin()
    if job is not None:
        job.run()           # in a thread: syncs files, touches nothing else
        flush.finish(job)   # where the store lives

every flushIntervalCommitLog, and at once when somebody waits for it (commit_point.py). One job at a
time; it covers all that was written when it began, so one sync answers all who wait (group commit).

The log is in every job. Queues are in it when `tick` finds it is time: those with enough new pages,
or thoroughly all. Each job looks at some of the queues and has a few of them; after a thorough
round the checkpoint moves on.

A sync may fail for two reasons. Without a descriptor or memory nothing was tried: `trouble` says so
for as long as it lasts, and what was in the job is in the next one. Any other failure is the
disk's. The system may then have given up pages that it could not write and take them for clean, so
that a second sync succeeds and means nothing: `error` says so for ever, and the store takes no more
until a restart has looked at what is there. A full disk is no reason for that: room is reserved
before anything is written (see mapped_file.py), so it only refuses the message that lacks it.

Java: CommitLog.GroupCommitService, FlushRealTimeService, FlushConsumeQueueService.
"""

from __future__ import annotations

import errno
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Final

from txrocketmq.broker.store.disk.files import Files
from txrocketmq.broker.store.disk.mapped_file import MappedFileQueue
from txrocketmq.broker.store.formats.config import StoreConfig
from txrocketmq.broker.store.index.index_file import Index, IndexFile
from txrocketmq.broker.store.log.commit_log import CommitLog
from txrocketmq.broker.store.queues.consume_queue import ConsumeQueue
from txrocketmq.broker.store.queues.consume_queues import ConsumeQueues
from txrocketmq.broker.store.queues.light_row import LightRow
from txrocketmq.broker.store.upkeep.checkpoint import SLACK_MS, Checkpoint

_PAGE_BYTES: Final = 4096
_PASSING: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EINTR, errno.EAGAIN})
"""Failures of a sync for which the disk is not to blame."""
_NO_LIMIT_MS: Final = 1 << 62
_QUEUES_AT_ONCE: Final = 32
"""How many queues a job syncs: who waits for the log should not wait for thousands of them."""
_LOOKED_AT: Final = 2_000
"""How many queues are examined for one job: of a hundred thousand most have nothing new."""


class FlushJob:
    """The files to sync, and what is durable when that is done. `run` may be called in any thread.

    `log_paths` come first: with `is_log_synced` they are durable, whatever happened to the others.
    """

    def __init__(self, files: Files) -> None:
        self._files = files
        self.marks: list[str] = []
        """The files that mark deleted topics; they are among `log_paths`."""
        self.log_paths: list[str] = []
        self.other_paths: list[str] = []
        self.log_end = 0
        self.log_timestamp_ms = 0
        self.is_log_synced = False
        self.queues: list[ConsumeQueue] = []
        self.row_ends: list[tuple[MappedFileQueue, int]] = []
        self.queues_timestamp_ms = 0
        """In the last job of a thorough round: messages up to then are durable in all queues, in
        ms; otherwise 0."""
        self.index_files: list[IndexFile] = []
        self.latest_ms = _NO_LIMIT_MS
        """The latest timestamp that the checkpoint may get, as the clock was set back."""
        self.has_checkpoint = False
        self.error: OSError | None = None

    @property
    def paths(self) -> list[str]:
        """All files, in the order in which they are synced."""
        return self.log_paths + self.other_paths

    def run(self) -> None:
        """Syncs the files; a failure is in `error`."""
        try:
            for path in self.log_paths:
                self._sync(path)
            self.is_log_synced = True
            for path in self.other_paths:
                self._sync(path)
        except OSError as error:
            self.error = error

    def _sync(self, path: str) -> None:
        with suppress(FileNotFoundError):  # retention was quicker
            self._files.sync(path)


class Flush:
    """Knows what is durable of a store; see the module docstring.

    `log_timestamp_ms` is that of the newest message in the log, `queues_timestamp_ms` that of the
    newest message with a unit; the code that writes sets them.
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
        self._last_queue_flush_ms: int | None = None
        self._last_thorough_ms = 0
        self._due: deque[ConsumeQueue] = deque()
        """Queues that are to be in the next jobs."""
        self._unseen: Iterator[ConsumeQueue] | None = None
        """Queues that the present round has not examined yet."""
        self._least_pages = 0
        self._round_timestamp_ms = 0
        """The timestamp up to which the present thorough round makes messages durable in all
        queues; 0 without one."""
        self._checkpoint_saved = False
        self._newest_ms = 0
        """The highest timestamp of all messages before the last one, if it is higher than that
        one's; else 0."""
        self.log_timestamp_ms = 0
        self.queues_timestamp_ms = 0
        self.on_durable: list[Callable[[], None]] = []
        """Called when the durable part of the log has grown."""
        self.error: OSError | None = None
        """Why syncing failed: what the disk has is unknown, so the store takes no messages."""
        self.trouble: OSError | None = None
        """Why the last job could not be done; the next one tries again."""

    @property
    def flushed_offset(self) -> int:
        """The offset up to which the log is durable."""
        return self._log.files.flushed_offset

    @property
    def appended_offset(self) -> int:
        """The offset up to which the log is written."""
        return self._log.max_offset

    def tick(self, steady_ms: int) -> None:
        """Finds out whether queues are due; called every second."""
        if self._last_queue_flush_ms is None:
            self._last_thorough_ms = self._last_queue_flush_ms = steady_ms
        if steady_ms - self._last_queue_flush_ms < self.config.flush_interval_consume_queue:
            return
        interval_ms = self.config.flush_consume_queue_thorough_interval
        is_thorough = steady_ms - self._last_thorough_ms >= interval_ms
        is_in_its_way = self._unseen is not None and not (is_thorough and self._least_pages)
        if self._due or is_in_its_way:
            return
        self._last_queue_flush_ms = steady_ms
        if not is_thorough:
            self._begin_round(self.config.flush_consume_queue_least_pages)
        else:
            self._last_thorough_ms = steady_ms
            self._begin_thorough_round()

    def clock_set_back(self, now_ms: int) -> None:
        """Prepares for a message with a lower timestamp than the last one; to be called before it.

        Recovery takes messages up to the timestamps of the checkpoint to be durable. If the clock
        was set back by more than the checkpoint's slack, messages to come would be among them, so
        the timestamps are lowered first; raises OSError when that fails.
        """
        self._newest_ms = max(self._newest_ms, self.log_timestamp_ms)
        if now_ms >= self._newest_ms - SLACK_MS:
            return
        self._checkpoint.reset(now_ms)
        self._newest_ms = now_ms
        self._round_timestamp_ms = min(self._round_timestamp_ms, now_ms)
        if self._job is not None:
            self._job.latest_ms = min(self._job.latest_ms, now_ms)

    def _begin_thorough_round(self) -> None:
        try:
            # Messages that the checkpoint will cover must not wait to be indexed.
            self._index.write_pending(self.log_timestamp_ms)
        except OSError:
            return
        self._begin_round(0)
        self._round_timestamp_ms = self.queues_timestamp_ms

    def _begin_round(self, least_pages: int) -> None:
        self._unseen, self._least_pages = self._queues.one_by_one(), least_pages

    def _look(self, unseen: Iterator[ConsumeQueue]) -> None:
        """Finds queues that are due, until there are enough for a job or none is left."""
        least_pages, due = self._least_pages, self._due
        for seen, queue in enumerate(unseen, 1):
            end, flushed = queue.end_bytes, queue.files.flushed_offset
            if end > flushed and end // _PAGE_BYTES - flushed // _PAGE_BYTES >= least_pages:
                due.append(queue)
            if seen == _LOOKED_AT or len(due) == _QUEUES_AT_ONCE:
                return
        self._unseen = None

    def begin(self) -> FlushJob | None:
        """Returns a job for what is to be flushed now; None without any, or during a job."""
        if self._job is not None or self.error is not None:
            return None
        job = FlushJob(self._files)
        job.log_end = self._log.max_offset
        job.log_timestamp_ms = self.log_timestamp_ms
        # The marks of deleted topics come before messages that were put after the deletion.
        job.marks, self._queues.deleted.not_durable = self._queues.deleted.not_durable, []
        job.log_paths = job.marks + [file.path for file in self._log.files.unflushed()]
        self._add_queues(job)
        job.index_files = self._index.full_files
        self._index.full_files = []
        job.other_paths += [file.path for file in job.index_files]
        if self._checkpoint_saved:
            self._checkpoint_saved = False
            job.has_checkpoint = True
            job.other_paths.append(self._checkpoint.path)
        if not job.paths and not job.queues_timestamp_ms:
            return None
        self._job = job
        return job

    @property
    def _is_looking(self) -> bool:
        """Whether the next job may have something to do although this one had nothing."""
        return self._unseen is not None and self.error is None

    def _add_queues(self, job: FlushJob) -> None:
        if self._unseen is not None and len(self._due) < _QUEUES_AT_ONCE:
            self._look(self._unseen)
        for _ in range(min(len(self._due), _QUEUES_AT_ONCE)):
            queue = self._due.popleft()
            job.queues.append(queue)
            for row in (queue.files,) if queue.ext is None else (queue.files, queue.ext.files):
                if isinstance(row, LightRow) and not row.is_made:
                    continue  # what is in memory only is not durable
                job.row_ends.append((row, row.max_offset))
                job.other_paths += [file.path for file in row.unflushed()]
        if not self._due and self._unseen is None:
            job.queues_timestamp_ms = self._round_timestamp_ms
            self._round_timestamp_ms = 0

    def finish(self, job: FlushJob) -> None:
        """Takes note of a job that was run, and notifies those that waited for it."""
        if job is not self._job:
            # flush_all() was faster.
            return
        self._job = None
        self.trouble = None
        if job.error is not None:
            if job.error.errno not in _PASSING:
                self.error = job.error
                return
            self.trouble = job.error
            self._put_back(job)
        if job.is_log_synced:
            self._log.files.flushed_offset = max(self.flushed_offset, job.log_end)
            self._log.files.release_durable()
        if job.error is None:
            for row, end in job.row_ends:
                row.flushed_offset = max(row.flushed_offset, end)
            self._note_checkpoint(job)
        if job.is_log_synced:
            self._tell_durable()

    def _put_back(self, job: FlushJob) -> None:
        """Leaves to the next job what this one was to sync; the log needs no note of that."""
        self._due.extendleft(reversed(job.queues))
        self._queues.deleted.not_durable[:0] = job.marks
        self._index.full_files[:0] = job.index_files
        self._checkpoint_saved |= job.has_checkpoint
        ended_ms = min(job.queues_timestamp_ms, job.latest_ms)
        self._round_timestamp_ms = self._round_timestamp_ms or ended_ms

    def _tell_durable(self) -> None:
        for heard in self.on_durable:
            heard()

    def _note_checkpoint(self, job: FlushJob) -> None:
        checkpoint, latest_ms = self._checkpoint, job.latest_ms
        checkpoint.physic_msg_timestamp_ms = min(job.log_timestamp_ms, latest_ms)
        if job.queues_timestamp_ms:
            checkpoint.logics_msg_timestamp_ms = min(job.queues_timestamp_ms, latest_ms)
        if job.index_files:
            end_ms = job.index_files[-1].end_timestamp_ms
            checkpoint.index_msg_timestamp_ms = min(end_ms, job.log_timestamp_ms, latest_ms)
        checkpoint.save()
        if job.queues_timestamp_ms or job.index_files:
            self._checkpoint_saved = True

    def flush_all(self) -> None:
        """Makes everything durable at once; raises OSError when that fails."""
        if self._job is not None:
            self._job.run()
            self.finish(self._job)
        self._due.clear()
        self._unseen, self._round_timestamp_ms = None, 0
        self._begin_thorough_round()
        while (job := self.begin()) is not None or self._is_looking:
            if job is None:
                continue
            job.run()
            self.finish(job)
            if self.trouble is not None:
                raise self.trouble
        if self.error is not None:
            raise self.error
