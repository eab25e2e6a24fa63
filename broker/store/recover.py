# SPDX-License-Identifier: Apache-2.0
"""Opening a store: where the log ends, and that queues and index agree with it.

After an orderly stop the log is checked from the file in which the queues end; after a crash from
the last file that begins before the checkpoint, and all from there is dispatched again, which
changes nothing where it was dispatched before. Either way the log is cut off after its last sound
record, and the queues after the last message that the log still has.

Java: DefaultMessageStore.recover, CommitLog.recoverNormally, recoverAbnormally,
isMappedFileMatchedRecover, ConsumeQueueStore.recover, recoverOffsetTable.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from txrocketmq.broker.store.checkpoint import Checkpoint
from txrocketmq.broker.store.commit_log import CommitLog
from txrocketmq.broker.store.config import StoreConfig
from txrocketmq.broker.store.consume_queues import ConsumeQueues
from txrocketmq.broker.store.index_file import Index
from txrocketmq.broker.store.mapped_file import MappedFile
from txrocketmq.broker.store.reput import Reput
from txrocketmq.broker.store.scan import Record, Walk

_DEFAULT_MAX_FILES: Final = 10
_HEAD_BYTES: Final = 8
"""What shows whether there is anything behind the end: size and magic of a record."""


@dataclass
class Recovered:
    """What opening a store found; offsets are of the log, in bytes."""

    was_closed: bool
    """Whether the last user stopped in order."""
    min_offset: int = 0
    max_offset: int = 0
    checked_messages: int = 0
    dispatched_messages: int = 0
    """Those that a queue lacked."""
    was_cut: bool = False
    """Whether there was more in the log behind the last sound record."""
    last_store_timestamp_ms: int = 0
    """Of the newest message; 0 when there is none."""
    warnings: list[str] = field(default_factory=list)
    """What a person may want to look at."""

    def __str__(self) -> str:
        if self == Recovered(was_closed=True):
            return "is new, or empty"
        how = "closed" if self.was_closed else "not closed"
        text = f"was {how}: log from {self.min_offset} to {self.max_offset}"
        text += f", {self.checked_messages} messages checked"
        if self.dispatched_messages:
            text += f", {self.dispatched_messages} dispatched again"
        if self.was_cut:
            text += f", damaged from {self.max_offset} on and cut off there"
        return text


class Recovery:
    """One recovery, over the loaded parts of a store."""

    def __init__(
        self,
        config: StoreConfig,
        log: CommitLog,
        queues: ConsumeQueues,
        index: Index,
        reput: Reput,
        checkpoint: Checkpoint,
    ) -> None:
        self._config = config
        self._log = log
        self._queues = queues
        self._index = index
        self._reput = reput
        self._checkpoint = checkpoint

    def run(self, *, was_closed: bool) -> Recovered:
        """Recovers; OSError when the disk has no room for what is dispatched again."""
        done = Recovered(was_closed)
        done.warnings += self._log.files.gaps()
        for queue in self._queues:
            queue.recover()
            done.warnings += queue.files.gaps()
        if not was_closed:
            for queue in self._queues:
                queue.clear_tail()
        if not self._log.files.mapped_files:
            self._destroy_queues()
            return done
        self._walk(done, self._queues.max_physical_offset)
        self._index.drop_after(done.max_offset)
        for queue in self._queues:
            if queue.max_physical_offset > done.max_offset:
                queue.truncate(done.max_offset)
            if not was_closed:
                queue.flush_again(self._log.files.flushed_offset)
        done.min_offset = max(self._log.min_offset, 0)
        self._queues.correct_min_offsets(done.min_offset)
        self._reput.offset = done.max_offset
        return done

    def _walk(self, done: Recovered, dispatch_from: int) -> None:
        """Checks the log from the file to start with, dispatches, and cuts it off at its end."""
        self._reput.index_from = self._index.next_offset
        files = self._log.files.mapped_files
        index = self._start(done, dispatch_from)
        durable = files[index].from_offset
        while True:
            file = files[index]
            walk = Walk(file, 0, check_crc=self._config.check_crc_on_recover)
            for record in walk:
                self._take(done, record, dispatch_from)
            index += 1
            if not walk.ended_by_blank or index >= len(files):
                break
        end = walk.position if not walk.ended_by_blank else file.size_bytes
        done.max_offset = file.from_offset + end
        done.was_cut = any(file.view[end : end + _HEAD_BYTES]) or index < len(files)
        self._log.files.truncate(done.max_offset)
        # What a killed process has written may be in the system's memory only.
        self._log.files.flushed_offset = done.max_offset if done.was_closed else durable
        if done.was_cut or not done.was_closed:
            file.clear_tail()

    def _take(self, done: Recovered, record: Record, dispatch_from: int) -> None:
        done.checked_messages += 1
        done.last_store_timestamp_ms = record.store_timestamp_ms
        if done.was_closed and record.physical_offset < dispatch_from:
            return
        if self._reput.dispatch(record) is not None:
            done.dispatched_messages += 1

    def _start(self, done: Recovered, dispatch_from: int) -> int:
        """The index of the log file to start with."""
        files = self._log.files.mapped_files
        most = self._config.commit_log_recover_max_num
        index = len(files) - 1
        for _ in range((most if most > 0 else _DEFAULT_MAX_FILES) - 1):
            if index == 0 or self._may_start_with(files[index], done, dispatch_from):
                break
            index -= 1
        return index

    def _may_start_with(self, file: MappedFile, done: Recovered, dispatch_from: int) -> bool:
        first = next(iter(Walk(file, 0, check_crc=self._config.check_crc_on_recover)), None)
        if first is None or first.store_timestamp_ms == 0:
            return False
        if (
            self._config.message_index_enable
            and self._config.message_index_safe
            and first.store_timestamp_ms > self._checkpoint.index_msg_timestamp_ms
        ):
            return False
        if done.was_closed:
            return first.physical_offset <= dispatch_from
        return first.store_timestamp_ms <= self._checkpoint.min_timestamp_ms

    def _destroy_queues(self) -> None:
        """Without a log the queues mean nothing."""
        for queue in self._queues:
            queue.destroy()
        self._index.drop_after(0)
