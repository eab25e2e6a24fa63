# SPDX-License-Identifier: Apache-2.0
"""Takes back the progress of consumers, delays and timers behind the end of a log that was cut.

Else a group would pass over the messages that come in place of those that were cut off, and a
timer would look for its message where another one is. What a file contained before is kept in
`lost`. Everything here may be done twice with the same result, as the process may end meanwhile.

Java: has no counterpart; delays are taken back by ScheduleMessageService.correctDelayOffset.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Final

from txrocketmq.broker.store.disk.files import Files
from txrocketmq.broker.store.formats.config import StoreConfig
from txrocketmq.broker.store.formats.opening_report import Recovered
from txrocketmq.broker.store.opening.loss import Loss
from txrocketmq.broker.store.queues.consume_queues import ConsumeQueues
from txrocketmq.broker.store.timers.timer_check import TimerCheck, TimerProgress
from txrocketmq.broker.store.timers.timer_log import TimerLog, TimerUnit
from txrocketmq.remoting.errors import HeaderError
from txrocketmq.remoting.message.topics import SCHEDULE_TOPIC, TIMER_TOPIC
from txrocketmq.remoting.serialize.json import decode_body, encode_pretty

_TABLE: Final = "offsetTable"
_LIGHT_TABLE: Final = "lmqOffsetTable"
_TEMPORARY: Final = ".tmp"

Most = Callable[[str, int], int]
"""Returns the offset behind the last message of a queue; 0 without one."""


class CutProgress:
    """The files of progress in one store whose log was cut."""

    def __init__(self, files: Files, config: StoreConfig, loss: Loss) -> None:
        self._files = files
        self._config = config
        self._loss = loss
        self._root = config.store_path_root_dir

    def follow(self, queues: ConsumeQueues, done: Recovered) -> None:
        """Has the files agree with the recovered log and its queues. Raises OSError."""

        def most(topic: str, queue_id: int) -> int:
            queue = queues.find(topic, queue_id)
            return 0 if queue is None else queue.max_offset

        self._take_back("consumerOffset.json", done, most, _consumed)
        self._take_back("lmqConsumerOffset.json", done, most, _consumed)
        self._take_back("delayOffset.json", done, most, _delayed)
        self._take_back_timers(done.max_offset, most(TIMER_TOPIC, 0))

    def _take_back(
        self,
        name: str,
        done: Recovered,
        most: Most,
        taken_back: Callable[[dict[str, Any], Most], bool],
    ) -> None:
        """Takes back the offsets in a file and in the .bak beside it."""
        for path in (os.path.join(self._root, "config", name + end) for end in ("", ".bak")):
            if not self._files.exists(path):
                continue
            data = self._files.read(path)
            try:
                content = decode_body(data) if data.strip() else None
                is_changed = isinstance(content, dict) and taken_back(content, most)
            except (HeaderError, TypeError, ValueError) as error:
                done.warnings.append(
                    f"{path} cannot be read ({error}), so its offsets were not taken back to the"
                    " end of the log that was cut."
                )
                continue
            if is_changed:
                self._replace(path, data, encode_pretty(content))

    def _replace(self, path: str, old: bytes, new: bytes) -> None:
        kept = self._loss.target_of(path)
        if not self._files.exists(kept):
            self._files.write(kept, old)
            self._files.sync(kept)
        self._files.write(path + _TEMPORARY, new)
        self._files.sync(path + _TEMPORARY)
        self._files.move(path + _TEMPORARY, path)

    # --- timers ---

    def _take_back_timers(self, log_end: int, queue_end: int) -> None:
        """Cuts the timer log before its first unit whose message the log has lost."""
        check = TimerCheck(self._files, os.path.join(self._root, "config", "timercheck"))
        progress = check.read()
        if progress is None:
            return
        log = TimerLog(
            self._files,
            os.path.join(self._root, "timerlog"),
            self._config.mapped_file_size_timer_log,
        )
        if log.load():  # else it is made anew whenever timers are opened
            progress = self._cut_timers(log, progress, log_end)
        if progress.queue_offset > queue_end:
            progress = progress._replace(queue_offset=queue_end)
        log.close()
        if progress != check.read():
            check.write(progress)
            self._files.sync(check.path)
        check.close()

    def _cut_timers(self, log: TimerLog, progress: TimerProgress, log_end: int) -> TimerProgress:
        first: int | None = None
        has_others = False
        for file in log.files.mapped_files:
            last = log.last_unit_of(file)
            if first is None and last is not None and _end_of(last) <= log_end:
                continue
            for _, found in log.walk(file, 0):
                for position, unit in found:
                    if _end_of(unit) > log_end:
                        first = position if first is None else first
                    elif first is not None:
                        has_others = True
        if first is None:
            return progress
        log.end_at(first, first)
        if log.files.last is not None:
            self._files.sync(log.files.last.path)
        if has_others:
            # Units of messages that are left were behind it: all of the queue is read once more.
            return progress._replace(log_end=0, queue_offset=0)
        return progress._replace(log_end=min(progress.log_end, first))


def _consumed(content: dict[str, Any], most: Most) -> bool:
    """Takes back what groups have consumed; returns whether anything was."""
    is_changed = False
    for key, offsets in _members(content, _TABLE).items():
        topic = str(key).partition("@")[0]
        for queue_id, offset in offsets.items() if isinstance(offsets, dict) else ():
            end = most(topic, int(queue_id))
            if offset > end:
                offsets[queue_id], is_changed = end, True
    light = _members(content, _LIGHT_TABLE)
    for key, offset in light.items():
        end = most(str(key).partition("@")[0], 0)
        if offset > end:
            light[key], is_changed = end, True
    return is_changed


def _delayed(content: dict[str, Any], most: Most) -> bool:
    """Takes back what was delivered of each delay level; returns whether anything was."""
    is_changed = False
    levels = _members(content, _TABLE)
    for level, offset in levels.items():
        end = most(SCHEDULE_TOPIC, int(level) - 1)
        if offset > end:
            levels[level], is_changed = end, True
    return is_changed


def _members(content: dict[str, Any], name: str) -> dict[Any, Any]:
    found = content.get(name)
    return found if isinstance(found, dict) else {}


def _end_of(unit: TimerUnit) -> int:
    """The offset of the log behind the message of a unit."""
    return unit.physical_offset + unit.size_bytes
