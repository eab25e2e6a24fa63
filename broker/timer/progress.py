# SPDX-License-Identifier: Apache-2.0
"""Saves the progress of timers as far as everything that it depends on is durable.

Every timerFlushIntervalMs, when something has changed, the timer log and the wheel are synced in a
thread. The progress from before that sync is written as soon as the commit log is durable up to its
end at that time: then the delivered messages are durable, and those that the units of the timer log
stand for.

Java: TimerFlushService, prepareTimerCheckPoint.
"""

from __future__ import annotations

from collections.abc import Callable

from txrocketmq.broker.store.disk.files import Files
from txrocketmq.broker.store.message_store import MessageStore
from txrocketmq.broker.store.timers.timer_check import TimerProgress
from txrocketmq.broker.timer.timer_store import TimerStore
from txrocketmq.broker.work.in_thread import InThread
from txrocketmq.broker.work.progress import DurableProgress


class ProgressKeeper:
    """Saves progress; `in_thread` runs the syncs of files."""

    def __init__(
        self, files: Files, messages: MessageStore, timers: TimerStore, in_thread: InThread
    ) -> None:
        self._files = files
        self._messages = messages
        self._timers = timers
        self._in_thread = in_thread
        self._next_ms: int | None = None
        self._is_syncing = False
        self._kept_changes = 0
        self._awaited = DurableProgress[TimerProgress](messages)
        """Progress to write once the commit log is durable."""
        self._is_check_synced = True
        self.kept = TimerProgress()
        """The progress in the file."""
        self.on_sync: list[Callable[[Exception | None], None]] = []
        """Called with the error when files could not be synced, and with None when they were."""

    def begin_with(self, kept: TimerProgress | None) -> None:
        """Starts from the progress in the file; None without one."""
        self.kept = kept or TimerProgress()

    def follow(self, master: TimerProgress) -> None:
        """Keeps the progress of the master of this slave, and its version."""
        self._timers.follow(master)
        progress = self._timers.progress()._replace(
            state_version=master.state_version,
            timestamp_ms=master.timestamp_ms,
            counter=master.counter,
        )
        if progress != self.kept:
            self._keep(progress)

    def tick(self, now_ms: int, steady_ms: int) -> None:
        """Syncs when it is time for that, and writes progress that may be written."""
        for progress in self._awaited.take():
            self._write(progress, now_ms)
        if self._is_syncing or (self._next_ms is not None and steady_ms < self._next_ms):
            return
        changes = self._timers.changes
        if len(self._awaited) or (changes == self._kept_changes and self._is_check_synced):
            return
        self._next_ms = steady_ms + self._timers.config.timer_flush_interval_ms
        self._is_syncing = True
        end, progress = self._messages.max_physical_offset, self._timers.progress()
        paths = self._paths()

        def ended(error: Exception | None) -> None:
            self._is_syncing = False
            for heard in self.on_sync:
                heard(error)
            if error is None:
                self._is_check_synced = True
                self._timers.log.files.flushed_offset = max(
                    self._timers.log.files.flushed_offset,
                    min(progress.log_end, self._timers.log.end),
                )
                if changes != self._kept_changes:
                    self._kept_changes = changes
                    self._awaited.note(progress, end)

        self._in_thread(lambda: self._sync(paths), ended)

    def _paths(self) -> list[str]:
        paths = [file.path for file in self._timers.log.files.unflushed()]
        if self._timers.wheel.is_made:
            paths.append(self._timers.wheel.path)
        if not self._is_check_synced:
            paths.append(self._timers.check.path)
        return paths

    def _sync(self, paths: list[str]) -> None:
        for path in paths:
            if self._files.exists(path):  # else it was put aside, or has expired
                self._files.sync(path)

    def _write(self, progress: TimerProgress, now_ms: int) -> None:
        version = {"timestamp_ms": now_ms, "counter": self.kept.counter + 1}
        state_version = max(self.kept.state_version, 0)  # of a master, whatever it was before
        progress = progress._replace(state_version=state_version, **version)
        if not self._keep(progress):
            self._kept_changes = -1  # once more

    def _keep(self, progress: TimerProgress) -> bool:
        try:
            self._timers.check.write(progress)
        except OSError as error:
            for heard in self.on_sync:
                heard(error)
            return False
        self.kept = progress
        self._is_check_synced = False
        return True

    def close(self, now_ms: int) -> None:
        """Makes everything durable, after the commit log; raises OSError when that fails."""
        for path in self._paths():
            self._files.sync(path)
        if self._timers.changes or self._timers.read_ms != self.kept.read_ms:
            self._write(self._timers.progress(), now_ms)
            self._files.sync(self._timers.check.path)
