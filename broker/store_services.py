# SPDX-License-Identifier: Apache-2.0
"""What the store has done by others: syncs and removals in threads, long work in steps.

Java: FlushRealTimeService and GroupCommitService, CleanCommitLogService, CleanConsumeQueueService.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from typing import Final

from txrocketmq.broker.store.disk.removals import RemovalJob
from txrocketmq.broker.store.disk.steps import Steps
from txrocketmq.broker.store.message_store import MessageStore
from txrocketmq.broker.store.queues.light_queues import is_light, is_served
from txrocketmq.broker.store.upkeep.flush import FlushJob
from txrocketmq.broker.work import notices
from txrocketmq.broker.work.in_thread import InThread, at_once
from txrocketmq.broker.work.life import (
    SECOND_MS,
    AtStop,
    Beat,
    Gauge,
    Hears,
    Life,
    Opening,
    Tick,
    WalkBeat,
)

ON_DISK: Final = {"storage_type": "local", "storage_medium": "disk"}
"""The labels that metrics of the store have."""

TroubleListener = Callable[[object], None]
"""Is told the trouble with some work, or None."""


class StoreServices:
    """The services of a store."""

    def __init__(self, store: MessageStore, in_thread: InThread = at_once) -> None:
        self._store = store
        self._in_thread = in_thread
        self._is_making = False
        self.on_sync: list[TroubleListener] = []
        self.on_removal: list[TroubleListener] = []
        self.on_files: list[TroubleListener] = []

    def life(self) -> Life:
        """The log is synced, and what has expired is removed; at the end the store is closed."""
        store = self._store
        return Life(
            "store",
            opens=self._opened,
            hears=(
                Hears(store.commit.on_demand, self.sync),
                Hears(store.damaged.listeners, notices.no_record),
                Hears(store.wrong_bodies.listeners, notices.wrong_body),
                Hears(store.jumps.listeners, notices.jumped),
            ),
            troubles={
                "syncing the store": self.on_sync,
                "removing files of the store": self.on_removal,
                "making files of light queues": self.on_files,
            },
            beats=(
                Tick(SECOND_MS, store.tick),
                WalkBeat(
                    SECOND_MS,
                    "deleting what refers to expired messages",
                    lambda *_: store.follow_log(),
                ),
                WalkBeat(SECOND_MS, "making files of light queues", lambda *_: self.make_files()),
                Beat(SECOND_MS, self.unlink),
                Beat(lambda: store.config.flush_interval_commit_log, self.sync),
            ),
            at_stop=(AtStop("closing the store", store.stop),),
            gauges=(
                _gauge("size", lambda: store.max_physical_offset - store.min_physical_offset),
                _gauge("flush_behind", self._flush_behind),
                _gauge("dispatch_behind", lambda: store.dispatch_behind_bytes),
            ),
        )

    def _flush_behind(self) -> int:
        return self._store.max_physical_offset - self._store.flush.flushed_offset

    def _opened(self, _: Opening) -> list[str]:
        light = sum(map(is_light, self._store.topics()))
        if not light or is_served(self._store.config):
            return []
        return [
            (
                f"the store has {light} light queues, but enableLmq and enableMultiDispatch are"
                " off: nothing enters them, and nobody can read them"
            )
        ]

    def sync(self) -> None:
        """Syncs the log in a thread, and again at once while sends wait for it."""
        job = self._store.flush.begin()
        if job is not None:
            self._in_thread(job.run, lambda error: self._synced(job, error))

    def _synced(self, job: FlushJob, error: Exception | None) -> None:
        store, flush = self._store, self._store.flush
        if error is not None:  # no thread could be started
            job.error = OSError(errno.EAGAIN, str(error))
        flush.finish(job)
        if flush.error is not None:
            notices.not_synced(flush.error)
            return
        _tell(self.on_sync, flush.trouble)
        if flush.trouble is None and store.commit.is_sync_wanted:
            self.sync()

    def unlink(self) -> None:
        """Unlinks, in a thread, the files that the store has given up."""
        job = self._store.removals.begin()
        if job is not None:
            self._in_thread(job.run, lambda _: self._unlinked(job))

    def _unlinked(self, job: RemovalJob) -> None:
        removals = self._store.removals
        removals.finish(job)
        _tell(self.on_removal, removals.trouble)

    def make_files(self) -> Steps[None] | None:
        """Steps that make files of light queues that came into being; None if all have theirs."""
        steps = None if self._is_making else self._store.make_files()
        if steps is None:
            return None
        self._is_making = True
        return self._made(steps)

    def _made(self, steps: Steps[None]) -> Steps[None]:
        try:
            yield from steps
            _tell(self.on_files, None)
        except OSError as error:
            _tell(self.on_files, error)
        finally:
            self._is_making = False


def _gauge(name: str, value: Callable[[], int]) -> Gauge:
    return Gauge(f"rocketmq_storage_{name}_bytes", value, labels=ON_DISK)


def _tell(listeners: list[TroubleListener], trouble: object) -> None:
    for heard in listeners:
        heard(trouble)
