# SPDX-License-Identifier: Apache-2.0
"""Cuts the log of a store at an offset, as somebody has ordered it; `lost` keeps what was cut off.

A cut is ordered by the small file `cut` in the store, and done whenever the store is opened the
next time: by the command that has ordered it, or by the broker that starts again for that. The file
is removed only when the log is durably cut and everything else agrees with it. So whatever ends the
process or the machine meanwhile, the next start does what is left.

The log is cut from its end on: whole files are moved, the rest of the file in which the cut lies is
copied and then cleared. Queues, index and checkpoint follow as they do after a crash (recover.py),
and so do the progress of consumers, delays and timers (cut_progress.py).

Java: has no counterpart in plain mode; AutoSwitchHAService.truncateInvalidMsg with a controller.
"""

from __future__ import annotations

import os
from typing import Any, Final

import orjson

from txrocketmq.broker.store.disk.files import Files
from txrocketmq.broker.store.disk.mapped_file import MappedFileQueue
from txrocketmq.broker.store.formats.config import StoreConfig
from txrocketmq.broker.store.formats.errors import StoreError
from txrocketmq.broker.store.formats.opening_report import Recovered
from txrocketmq.broker.store.opening.cut_progress import CutProgress
from txrocketmq.broker.store.opening.loss import Loss, is_written, written_length
from txrocketmq.broker.store.queues.consume_queue import ConsumeQueue
from txrocketmq.broker.store.queues.consume_queues import ConsumeQueues
from txrocketmq.broker.store.upkeep.checkpoint import Checkpoint

NAME: Final = "cut"
_PART: Final = ".part"
"""What the name of a copy ends with until it is complete."""


class Cut:
    """The order to cut the log of a store, if there is one."""

    def __init__(self, files: Files, config: StoreConfig) -> None:
        self._files = files
        self._config = config
        self._root = config.store_path_root_dir
        self.path = os.path.join(self._root, NAME)
        self.at: int | None = None
        """Where the log is to end by the order that was found; None without any."""
        self._ordered_ms = 0
        self._kept = ""
        """The folder that keeps what was cut off."""

    def order(self, at: int, newest_ms: int, now_ms: int) -> None:
        """Durably orders that the log is to end at `at`, where a record begins or ends.

        `newest_ms` is when its newest message was stored: the order is void for a log with later
        ones. Raises OSError when the disk fails; then nothing is ordered.
        """
        checkpoint = Checkpoint(self._files, os.path.join(self._root, "checkpoint"))
        checkpoint.load()
        newest_ms = max(newest_ms, checkpoint.physic_msg_timestamp_ms)
        checkpoint.close()
        values = {"at": at, "newest": newest_ms, "time": now_ms}
        self._files.write(self.path, orjson.dumps(values))
        try:
            self._files.sync(self.path)
        except OSError:
            self._files.remove(self.path)
            raise

    @property
    def is_ordered(self) -> bool:
        """Whether there is an order."""
        return self._read() is not None

    def _read(self) -> dict[str, int] | None:
        """Reads the order; None without any, or if it was never durable."""
        if not self._files.exists(self.path):
            return None
        try:
            values: dict[str, Any] = orjson.loads(self._files.read(self.path))
            return {name: int(values[name]) for name in ("at", "newest", "time")}
        except (ValueError, TypeError, KeyError):
            return None

    def cut(self, row: MappedFileQueue, durable_ms: int) -> None:
        """Cuts the files of the log, which are all taken to be full, if that is ordered.

        By the checkpoint, messages up to `durable_ms` were stored. Raises StoreError if the log is
        not the one for which the cut was ordered.
        """
        order = self._read()
        if order is None:
            if self._files.exists(self.path):
                self._files.remove(self.path)
            return
        at, start = order["at"], max(row.min_offset, 0)
        wrong = ""
        if durable_ms > order["newest"]:
            wrong = "it was continued since then"
        elif not row.mapped_files or not start < at <= row.max_offset:
            wrong = f"it runs from {start} to {row.max_offset}"
        if wrong:
            raise StoreError(
                f"{self.path} orders that the log is cut at {at}, but {wrong}. Remove that file if"
                " the log is to stay as it is"
            )
        self.at, self._ordered_ms = at, order["time"]
        loss = self._loss()
        self._kept = loss.target_of(row.directory)
        while row.mapped_files[-1].from_offset >= at:
            file = row.mapped_files.pop()
            if is_written(self._files, file):
                file.unmap()
                self._files.sync(file.path)
                loss.move_aside(file.path)
            else:
                file.remove()  # made in advance
        self._clear(row, at, loss)

    def _loss(self) -> Loss:
        """The folder for what is cut off: the same one however often the cut is begun."""
        return Loss(self._files, self._root, self._ordered_ms)

    def _clear(self, row: MappedFileQueue, at: int, loss: Loss) -> None:
        """Copies what the last file has from there on, and clears it."""
        last = row.mapped_files[-1]
        last.wrote_bytes = min(at - last.from_offset, last.size_bytes)
        tail = last.view[last.wrote_bytes :]
        if length := written_length(tail):
            target = loss.target_of(f"{last.path}.{at}")
            if not self._files.exists(target):  # else it was copied before the process has ended
                self._files.write(target + _PART, tail[:length])
                self._files.sync(target + _PART)
                self._files.move(target + _PART, target)
        del tail
        last.clear_tail()
        last.wrote_bytes = last.size_bytes  # like all files, until recovery finds out
        self._files.sync(last.path)

    def truncate(self, queue: ConsumeQueue, end: int) -> None:
        """Durably removes the units of messages from this log offset on.

        Otherwise a power cut could bring them back when there are other messages at these offsets.
        """
        before = [file.path for file in queue.files.mapped_files]
        queue.truncate(end)  # there may be fillers at its end, for messages that were damaged
        if (last := queue.files.last) is not None:
            if last.is_made:
                self._files.sync(last.path)
            return
        for path in before:  # whatever brings them back, they are empty
            self._loss().make_durable(path)

    def obeyed(self, queues: ConsumeQueues, done: Recovered) -> None:
        """Has everything else agree with the log that was cut and recovered; forgets the order."""
        CutProgress(self._files, self._config, self._loss()).follow(queues, done)
        self._files.remove(self.path)
        done.cut_at = self.at
        done.warnings.append(
            f"The log was cut at {self.at}, as {self.path} had ordered. What was cut off is kept in"
            f" {self._kept}."
        )
        self.at = None
