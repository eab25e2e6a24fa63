# SPDX-License-Identifier: Apache-2.0
"""Deletes log files because of their age or for room, and then what refers to them.

A log file is old when nothing was written to it for fileReservedTime. Old files are deleted at the
hours of deleteWhen, or at any hour when the disk is fuller than diskMaxUsedSpaceRatio; when it is
fuller than diskSpaceCleanForciblyRatio, younger ones as well. Above diskSpaceWarningLevelRatio the
store takes no more messages. If diskSpaceMinFreeBytes is set, the free room decides instead of
these ratios. Files that a connected slave still needs are deleted only when room is scarce. The
last file is never deleted, and none is skipped. Queues and index follow, in the steps of
`follow_log`: files that refer only to lost messages are deleted, and queues then begin where the
log does.

Deleting a large file takes time. Here it only leaves its row, one file of the log with each `tick`;
a job of removals.py unlinks it. While such jobs are waiting no new round begins, since the disk
does not show yet what the last round has freed.

Java: DefaultMessageStore.CleanCommitLogService, ConsumeQueueStore.CleanConsumeQueueService,
CorrectLogicOffsetService.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Final

from txrocketmq.broker.store.disk.files import Files
from txrocketmq.broker.store.disk.in_memory import Check, unchecked
from txrocketmq.broker.store.disk.steps import Steps, when_in_memory
from txrocketmq.broker.store.formats.config import StoreConfig
from txrocketmq.broker.store.index.index_file import Index
from txrocketmq.broker.store.log.commit_log import CommitLog
from txrocketmq.broker.store.queues.consume_queue import ConsumeQueue
from txrocketmq.broker.store.queues.consume_queues import ConsumeQueues

_HOUR_MS: Final = 3_600_000
_MANUAL_ROUNDS: Final = 20
"""How many rounds delete at any hour after an administrator asked for it."""


class Retention:
    """Cleans one store; `check` is called before each read of a queue's file."""

    def __init__(
        self,
        files: Files,
        config: StoreConfig,
        log: CommitLog,
        queues: ConsumeQueues,
        index: Index,
        check: Check = unchecked,
    ) -> None:
        self._files = files
        self.config = config
        self._log = log
        self._queues = queues
        self._index = index
        self._check = check
        self._last_round_ms: int | None = None
        self.removals = queues.removals
        self._manual_rounds = 0
        self._removals = 0
        """How many log files this round has still to delete."""
        self._followed = -1
        """Where the log began when queues and index last followed it."""
        self._is_following = False
        self.before_removal: Callable[[int], None] = lambda _: None
        """Called with the new beginning of the log before one of its files is removed."""
        self.needed_from: Callable[[], int | None] = lambda: None
        """Returns from which offset on slaves still need the log; None if they need none of it."""
        self.log_disk_ratio = -1.0
        self.queue_disk_ratio = -1.0
        """How full the disks were when last examined; -1.0 when unknown."""
        self.free_bytes = -1
        """The free bytes at that time, on the disk that has fewer; -1 when unknown."""
        self._is_disk_full = False
        self._judged_by = (-1, -1)
        """The settings by which that was judged."""

    @property
    def is_disk_full(self) -> bool:
        """Whether there is no room for more messages; called for each put."""
        config = self.config
        if self._judged_by != (
            config.disk_space_warning_level_ratio,
            config.disk_space_min_free_bytes,
        ):
            self._judge_disks()
        return self._is_disk_full

    @property
    def warning_ratio(self) -> float:
        """diskSpaceWarningLevelRatio, within the bounds of the original."""
        return min(max(self.config.disk_space_warning_level_ratio / 100, 0.35), 0.90)

    @property
    def forcible_ratio(self) -> float:
        """diskSpaceCleanForciblyRatio, within the bounds of the original."""
        return min(max(self.config.disk_space_clean_forcibly_ratio / 100, 0.30), 0.85)

    def look_at_disks(self) -> None:
        """Finds out how full the disks are."""
        self.log_disk_ratio = self._files.used_ratio(self._log.files.directory)
        self.queue_disk_ratio = self._files.used_ratio(self._queues.directory)
        free = [
            self._files.free_bytes(self._log.files.directory),
            self._files.free_bytes(self._queues.directory),
        ]
        self.free_bytes = min((each for each in free if each >= 0), default=-1)
        self._judge_disks()

    @property
    def _fullest(self) -> float:
        return max(self.log_disk_ratio, self.queue_disk_ratio)

    def _judge_disks(self) -> None:
        config = self.config
        self._is_disk_full = self._is_scarce(1, self.warning_ratio)
        self._judged_by = (
            config.disk_space_warning_level_ratio,
            config.disk_space_min_free_bytes,
        )

    def _is_scarce(self, times: int, ratio: float) -> bool:
        """Whether less than `times` the minimum is free; without one, goes by the ratio."""
        floor = self.config.disk_space_min_free_bytes
        return 0 <= self.free_bytes < times * floor if floor else self._fullest > ratio

    def why_cleaning(self) -> str:
        """Why old log files are deleted at any hour now, as a text; empty while they are not."""
        config = self.config
        if not self._is_scarce(4, config.disk_max_used_space_ratio / 100):
            return ""
        if config.disk_space_min_free_bytes:
            return (
                f"the disk has {self.free_bytes:,} bytes left, less than four times"
                " diskSpaceMinFreeBytes"
            )
        return (
            f"the disk is {self._fullest:.0%} full, more than {config.disk_max_used_space_ratio} %"
            " (diskMaxUsedSpaceRatio)"
        )

    def why_full(self) -> str:
        """How full the disk is and which setting forbids more, as a text."""
        if self.config.disk_space_min_free_bytes:
            return (
                f"has {max(self.free_bytes, 0):,} bytes left: no messages are stored below"
                f" {self.config.disk_space_min_free_bytes:,} (diskSpaceMinFreeBytes)"
            )
        return (
            f"is {self._fullest:.0%} full: no messages are stored above {self.warning_ratio:.0%}"
            " (diskSpaceWarningLevelRatio)"
        )

    def ask(self) -> None:
        """Has old files deleted in the next rounds at any hour (executeDeleteFilesManually)."""
        self._manual_rounds = _MANUAL_ROUNDS
        self._last_round_ms = None

    def tick(self, now_ms: int, steady_ms: int) -> int:
        """Does what is due; called every second. Returns how many files of the log were removed.

        Rounds are timed by the steady clock; the hour and the age of files are the wall clock's.
        """
        last_ms = self._last_round_ms
        if last_ms is None or steady_ms - last_ms >= self.config.clean_resource_interval:
            self.look_at_disks()
            if self.removals.is_empty:
                self._last_round_ms = steady_ms
                self._removals = self._expired_files(now_ms)
                self.removals.try_again()
        removed = 0
        if self._removals > 0 and self._may_remove():
            self._removals -= 1
            taken = self._log.files.take_first(1)
            with suppress(OSError):  # a full disk is the reason to go on
                self.before_removal(self._log.min_offset)
            self.removals.add(taken)
            removed = 1
        return removed

    def _may_remove(self) -> bool:
        """Whether the first log file may go now: it is not the last one, and it is durable.

        Otherwise it could be back after a power cut, damaged, and nobody would sync it.
        """
        row = self._log.files
        return len(row.mapped_files) > 1 and row.mapped_files[1].from_offset <= row.flushed_offset

    def follow_log(self) -> Steps[None] | None:
        """Gives up what refers to messages that the log has lost, one queue in each step.

        Returns None when it has lost none since, or the steps are under way. Gets skip such
        messages.
        """
        if self._is_following or self._log.min_offset == self._followed:
            return None
        self._is_following = True
        return self._follow(self._log.min_offset)

    def _follow(self, min_offset: int) -> Steps[None]:
        try:
            self.removals.add(self._index.take_files_before(min_offset))
            for queue in self._queues.one_by_one():
                yield from when_in_memory(partial(self._follow_with, queue, min_offset))
                yield
            self._followed = min_offset
        finally:
            self._is_following = False

    def _follow_with(self, queue: ConsumeQueue, min_offset: int) -> None:
        if self._queues.find(queue.topic, queue.queue_id) is queue:
            self.removals.add(queue.take_files_before(min_offset, self._check))

    def _expired_files(self, now_ms: int) -> int:
        """How many log files, from the first one on, are to be deleted now."""
        config = self.config
        is_hour = time.localtime(now_ms // 1000).tm_hour in config.delete_hours()
        is_full = self._is_scarce(4, config.disk_max_used_space_ratio / 100)
        if not is_hour and not is_full and not self._manual_rounds:
            return 0
        self._manual_rounds = max(self._manual_rounds - 1, 0)
        at_once = config.clean_file_forcibly_enable and self._is_scarce(2, self.forcible_ratio)
        needed_from = None if is_full or at_once else self.needed_from()
        count = 0
        for file in self._log.files.mapped_files[:-1]:
            if count == config.delete_file_batch_max:
                break
            if needed_from is not None and needed_from < file.from_offset + file.size_bytes:
                break
            expires_ms = self._files.modified_ms(file.path) + config.file_reserved_time * _HOUR_MS
            if not at_once and now_ms < expires_ms:
                break
            count += 1
        return count
