# SPDX-License-Identifier: Apache-2.0
"""What is kept and what is deleted: log files, for age or room, then what refers to them.

A log file is old when nothing was written to it for fileReservedTime. Old files are deleted at the
hours of deleteWhen, or at any hour when the disk is fuller than diskMaxUsedSpaceRatio; when it is
fuller than diskSpaceCleanForciblyRatio, young ones too. Above diskSpaceWarningLevelRatio the store
takes no more messages. The last file is never deleted, and none is skipped. Queues and index
follow: files that refer to lost messages only are deleted, and queues begin where the log does.

Deleting a large file takes its time, so each `tick` deletes one.

Java: DefaultMessageStore.CleanCommitLogService, ConsumeQueueStore.CleanConsumeQueueService,
CorrectLogicOffsetService.
"""

from __future__ import annotations

import time
from typing import Final

from txrocketmq.broker.store.commit_log import CommitLog
from txrocketmq.broker.store.config import StoreConfig
from txrocketmq.broker.store.consume_queues import ConsumeQueues
from txrocketmq.broker.store.files import Files
from txrocketmq.broker.store.index_file import Index

_HOUR_MS: Final = 3_600_000
_MANUAL_ROUNDS: Final = 20
"""How many rounds delete at any hour after somebody asked for it."""


class Retention:
    """Cleans one store."""

    def __init__(
        self, files: Files, config: StoreConfig, log: CommitLog, queues: ConsumeQueues, index: Index
    ) -> None:
        self._files = files
        self.config = config
        self._log = log
        self._queues = queues
        self._index = index
        self._last_round_ms = 0
        self._manual_rounds = 0
        self._removals = 0
        """How many log files this round is still to delete."""
        self._min_offset = -1
        self.log_disk_ratio = -1.0
        self.queue_disk_ratio = -1.0
        """How full the disks were when last looked at; -1.0 when unknown."""

    @property
    def is_disk_full(self) -> bool:
        """Whether there is no room for more messages."""
        return max(self.log_disk_ratio, self.queue_disk_ratio) > self.warning_ratio

    @property
    def warning_ratio(self) -> float:
        """diskSpaceWarningLevelRatio, within the bounds of the original."""
        return min(max(self.config.disk_space_warning_level_ratio / 100, 0.35), 0.90)

    @property
    def forcible_ratio(self) -> float:
        """diskSpaceCleanForciblyRatio, within the bounds of the original."""
        return min(max(self.config.disk_space_clean_forcibly_ratio / 100, 0.30), 0.85)

    def look_at_disks(self) -> None:
        """Finds out how full they are."""
        self.log_disk_ratio = self._files.used_ratio(self._log.files.directory)
        self.queue_disk_ratio = self._files.used_ratio(self._queues.directory)

    def ask(self) -> None:
        """Lets old files be deleted in the next rounds at any hour (executeDeleteFilesManually)."""
        self._manual_rounds = _MANUAL_ROUNDS
        self._last_round_ms = 0

    def tick(self, now_ms: int) -> int:
        """Does what is due; called every second. How many files of log, queues and index went."""
        # A clock that was set back starts a round too.
        if not 0 <= now_ms - self._last_round_ms < self.config.clean_resource_interval:
            self._last_round_ms = now_ms
            self.look_at_disks()
            self._removals = self._expired_files(now_ms)
        removed = 0
        if self._removals > 0 and len(self._log.files.mapped_files) > 1:
            self._removals -= 1
            self._log.files.remove_first(1)
            removed = 1
        if self._log.min_offset != self._min_offset:
            removed += self._follow_log()
        return removed

    def _follow_log(self) -> int:
        """Removes what refers to messages that the log has lost."""
        self._min_offset = self._log.min_offset
        removed = self._index.remove_files_before(self._min_offset)
        for queue in self._queues:
            removed += queue.remove_files_before(self._min_offset)
        return removed

    def _expired_files(self, now_ms: int) -> int:
        """How many log files from the first on are to be deleted now."""
        config = self.config
        fullest = max(self.log_disk_ratio, self.queue_disk_ratio)
        is_hour = time.localtime(now_ms // 1000).tm_hour in config.delete_hours()
        is_full = fullest > config.disk_max_used_space_ratio / 100
        if not is_hour and not is_full and not self._manual_rounds:
            return 0
        self._manual_rounds = max(self._manual_rounds - 1, 0)
        at_once = config.clean_file_forcibly_enable and fullest > self.forcible_ratio
        count = 0
        for file in self._log.files.mapped_files[:-1]:
            if count == config.delete_file_batch_max:
                break
            expires_ms = self._files.modified_ms(file.path) + config.file_reserved_time * _HOUR_MS
            if not at_once and now_ms < expires_ms:
                break
            count += 1
        return count
