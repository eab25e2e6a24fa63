# SPDX-License-Identifier: Apache-2.0
"""Delay levels: messages wait in a queue of SCHEDULE_TOPIC_XXXX for each level until they are due.

A queue unit of that topic holds the time of delivery in place of a tag hash, so nothing is read
from the log before its time. `tick` delivers a batch of each level that has messages due, and says
by `is_behind` whether more are, so that whoever calls it can look after others in between. A level
whose next batch is not in memory waits until that is read (`reading`), and the others go on.

Progress is the offset of each level, in delayOffset.json; after a crash what was delivered since it
was written is delivered again. So a sync is wanted when something was delivered, and the file is
written as soon as that is durable; the original writes it every ten seconds. While the store takes
no messages (its disk is full), a level pauses. A message that the store would never take is put as
a dead letter, into DEAD_LETTER_TOPIC, and its level goes on: the original tries such a message for
ever, or with enableScheduleAsyncDeliver a few times and drops it. Counterpart of
ScheduleMessageService.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from txrocketmq.broker.delays.due_message import DEAD_LETTER_TOPIC, DueMessages, put_due
from txrocketmq.broker.intake.intake import Intake
from txrocketmq.broker.store.disk.in_memory import NotInMemory
from txrocketmq.broker.store.formats.delay_levels import DelayLevels
from txrocketmq.broker.store.formats.opening_report import messages
from txrocketmq.broker.store.get.jumps import DELAYS, Jump
from txrocketmq.broker.store.queues.consume_queue import Unit
from txrocketmq.broker.tables.topic import Topics
from txrocketmq.broker.work import notices
from txrocketmq.broker.work.clock_steps import ClockSteps
from txrocketmq.broker.work.cold_reads import InThread, at_once
from txrocketmq.broker.work.json_file import JsonFile
from txrocketmq.broker.work.life import (
    OFTEN_MS,
    SECOND_MS,
    AtStop,
    Hears,
    Life,
    Opening,
    SlicedBeat,
)
from txrocketmq.broker.work.reading import Reading
from txrocketmq.broker.work.saving import SOON_MS, Saving
from txrocketmq.remoting.message.topics import SCHEDULE_TOPIC
from txrocketmq.remoting.protocol.body.route import DataVersion
from txrocketmq.remoting.serialize.json import encode_pretty

MAX_BATCH = 128
"""How many messages of a level are delivered at once, so that none holds up the broker for long."""
MAX_BATCH_BYTES = 512 * 1024
"""How many bytes of records are delivered at once; a single larger message is delivered alone."""
RETRY_MS = 10_000
"""How long a level pauses after a failed delivery, in ms (DELAY_FOR_A_PERIOD)."""


class Schedule:
    """Delivers due messages; `tick` is to be called every 100 ms."""

    def __init__(
        self,
        levels: DelayLevels,
        intake: Intake,
        file: JsonFile,
        clock: Callable[[], int],
        in_thread: InThread = at_once,
    ) -> None:
        self.levels = levels
        self._now_ms = clock
        self.reading = Reading(in_thread)
        self._intake = intake
        self._store = intake.store
        self._file = file
        self._offsets: dict[int, int] = {}
        self._paused_until_ms: dict[int, int] = {}
        """The steady time until which each level pauses, since the store refused due messages."""
        self._done: dict[int, set[int]] = {}
        """By level: offsets beyond its progress that are finished already."""
        self._next_level = 1
        self.is_behind = False
        """Whether more messages may be due than the last `tick` delivered."""
        self._steps = {level: ClockSteps() for level in range(1, levels.max_level + 1)}
        self.on_refused: list[Callable[[int, str, str], None]] = []
        """Called with level, topic and status when a level pauses because the store refuses
        messages."""
        self.on_dead_letters: list[Callable[[int, int, int, str], None]] = []
        """Called with level, number of dead letters, the offset of the first, and the reason."""
        self.on_unreadable: list[Callable[[int, int, int], None]] = []
        """Called with level, number of damaged records, and the offset of the first."""
        self._durable: dict[int, int] = {}
        """The progress up to which everything delivered is durable; only this is saved."""
        self._awaited: tuple[int, dict[int, int]] | None = None
        """Progress that becomes durable once the log is durable up to an offset: that offset, and
        the progress by level."""
        self._want_from_ms = 0
        """The steady time from which another sync may be wanted."""
        self.on_wanted: list[Callable[[], object]] = []
        """Called when a sync of the log is wanted, since something was delivered."""
        self.saving = Saving(file, self._snapshot)
        self.data_version = DataVersion(timestamp=clock())

    def load(self) -> None:
        """Loads delayOffset.json; raises JsonFileError."""
        with self._file.content() as content:
            for level, offset in (content.get("offsetTable") or {}).items():
                self._offsets[int(level)] = int(offset)
            self._durable = dict(self._offsets)
            if content.get("dataVersion"):
                self.data_version = DataVersion.from_json(content["dataVersion"])

    @property
    def is_missing(self) -> bool:
        """Whether there was neither delayOffset.json nor its .bak."""
        return self._file.is_missing

    def correct(self) -> None:
        """Takes back progress beyond the end of a level; to be called before messages come.

        A crash may have cost the log its last messages, but not this file (correctDelayOffset).
        """
        for level, offset in self._offsets.items():
            self._offsets[level] = min(offset, self._store.max_offset(SCHEDULE_TOPIC, level - 1))
        self._durable = dict(self._offsets)

    def _snapshot(self) -> Callable[[], bytes]:
        self.data_version = self.data_version.next(self._now_ms())
        table = self._table(self._durable)
        return lambda: encode_pretty(table)

    def settle(self) -> None:
        """Notes for delayOffset.json which progress is durable by now."""
        flushed, end = self._store.flush.flushed_offset, self._store.max_physical_offset
        if self._awaited is None or flushed >= end:
            self._awaited = end, dict(self._offsets)
        if flushed >= self._awaited[0]:
            self._file.is_stale |= self._awaited[1] != self._durable
            self._durable, self._awaited = self._awaited[1], None

    def save_soon(self, steady_ms: int) -> None:
        """Has progress made durable and written, a few times a second at most."""
        self.settle()
        self.saving.begin_soon(steady_ms, self._store.config.flush_delay_offset_interval)
        if self._offsets != self._durable and steady_ms >= self._want_from_ms:
            self._want_from_ms = steady_ms + SOON_MS
            for heard in self.on_wanted:
                heard()

    def table(self) -> dict[str, Any]:
        """The table as GET_ALL_DELAY_OFFSET sends it."""
        return self._table(self._offsets)

    def _table(self, offsets: dict[int, int]) -> dict[str, Any]:
        return {
            "dataVersion": self.data_version.to_json(),
            "offsetTable": dict(sorted(offsets.items())),
        }

    def progress(self) -> dict[int, tuple[int, int]]:
        """For each level that was used: offset delivered up to, and the end of its queue."""
        return {
            level: (offset, self._store.max_offset(SCHEDULE_TOPIC, level - 1))
            for level, offset in sorted(self._offsets.items())
        }

    def tick(
        self,
        now_ms: int,
        steady_ms: int | None = None,
        is_time_up: Callable[[], bool] = lambda: False,
    ) -> int:
        """Delivers a batch of the due messages of each level; returns how many messages that were.

        Pauses are measured by `steady_ms`, which is `now_ms` if it is not given. When the time is
        up, the remaining levels come first in the next call.
        """
        if steady_ms is None:
            steady_ms = now_ms
        delivered, self.is_behind = 0, False
        max_level = self.levels.max_level
        for _ in range(max_level):
            level, self._next_level = self._next_level, self._next_level % max_level + 1
            top = self._store.max_offset(SCHEDULE_TOPIC, level - 1)
            try:
                self._look_at_clock(level, top, now_ms, now_ms - steady_ms)
                if self._offsets.get(level, 0) == top:
                    continue
                if self._paused_until_ms.get(level, steady_ms) > steady_ms:
                    continue
                delivered += self._deliver_level(level, top, now_ms, steady_ms)
            except NotInMemory as cold:
                if not self.reading.is_busy(steady_ms):
                    self.reading.begin(cold.read)
            if delivered and is_time_up():
                self.is_behind = True
                break
        self.save_soon(steady_ms)
        return delivered

    def _look_at_clock(self, level: int, top: int, now_ms: int, ahead_ms: int) -> None:
        steps = self._steps[level]
        if steps.is_step(ahead_ms):
            first = min(steps.seen_offset, top)
            latest_ms = now_ms + self.levels.delay_ms(level)
            # The first of the messages that came since the last look and were stored by the clock
            # as it is now.
            units = self._store.queue_units(
                SCHEDULE_TOPIC, level - 1, first, top - first, only_in_memory=True
            )
            for _, _, deliver_ms in units:
                if deliver_ms <= latest_ms:
                    break
                first += 1
            steps.note(ahead_ms, first)
        steps.seen_offset = top

    def _deliver_level(self, level: int, top: int, now_ms: int, steady_ms: int) -> int:
        """Delivers a batch of due messages of a level; returns how many there were.

        Progress is noted before listeners are called, so that an error there repeats nothing.
        """
        least, known = self._store.min_offset(SCHEDULE_TOPIC, level - 1), self._offsets.get(level)
        at = known or 0
        start = max(at, least)
        if at < least:
            count, is_known = least - at - len(self._done.get(level, ())), known is not None
            self._store.jumps.found(
                Jump(DELAYS, SCHEDULE_TOPIC, level - 1, at, least, count, is_known=is_known)
            )
        done = self._done.setdefault(level, set())
        units = self._units(level, min(start, top), now_ms, now_ms - steady_ms)
        self._paused_until_ms[level] = steady_ms + RETRY_MS  # should anything go wrong
        batch, end = self._due(level, min(start, top), units)
        due, unread = batch.messages, batch.unread
        refused = put_due(self._intake, due, done, now_ms)
        self._offsets[level] = end if refused is None else refused[0].offset
        delivered = sum(each.offset in done and not each.is_dead for each in due)
        dead = [each for each in due if each.offset in done and each.is_dead]
        if refused is None:
            done.clear()
            del self._paused_until_ms[level]
        if unread:
            for heard_unread in self.on_unreadable:
                heard_unread(level, len(unread), unread[0])
        if dead:
            for heard_dead in self.on_dead_letters:
                heard_dead(level, len(dead), dead[0].offset, dead[0].why)
        if refused is not None:
            for heard in self.on_refused:
                heard(level, refused[0].message.topic, refused[1].name)
        return delivered

    def _units(self, level: int, offset: int, now_ms: int, ahead_ms: int) -> list[Unit]:
        """The units of the messages of a level to deliver at once, from an offset on.

        Raises NotInMemory when the messages are not in memory.
        """
        steps, delay_ms, store = self._steps[level], self.levels.delay_ms(level), self._store
        left_bytes, is_more = MAX_BATCH_BYTES, False
        found: list[Unit] = []
        for unit in store.queue_units(
            SCHEDULE_TOPIC, level - 1, offset, MAX_BATCH, only_in_memory=True
        ):
            at = offset + len(found)
            wait_ms = unit.tags_code - now_ms - steps.set_back_ms(at, ahead_ms)
            if 0 < wait_ms <= delay_ms:
                break  # longer than the level's delay: a clock that was set back, so it is due
            if unit.size_bytes > left_bytes < MAX_BATCH_BYTES:
                is_more = True
                break
            left_bytes -= unit.size_bytes
            found.append(unit)
        cold = store.cold_records([(each.physical_offset, each.size_bytes) for each in found])
        if cold is not None:
            raise NotInMemory(cold)
        self.is_behind |= is_more or len(found) == MAX_BATCH
        return found

    def _due(self, level: int, offset: int, units: list[Unit]) -> tuple[DueMessages, int]:
        """Reads the messages of these units that are not finished; returns where the next batch
        begins, too.
        """
        done, due = self._done[level], DueMessages(self._intake.transforms)
        for at, unit in enumerate(units, offset):
            if at not in done:
                due.add(at, self._store.message_at(unit.physical_offset, unit.size_bytes))
        return due, offset + len(units)

    def life(self, topics: Topics, sync: Callable[[], None]) -> Life:
        """Progress is kept in delayOffset.json, when `sync` has made durable what was delivered."""

        def make_topic(*_: object) -> None:
            topics.create_in_heartbeat(DEAD_LETTER_TOPIC, 1)

        return Life(
            "delay levels",
            table=self,
            opens=self._opened,
            hears=(
                Hears(self.on_wanted, sync),
                Hears(self.on_dead_letters, make_topic),
                Hears(self.on_dead_letters, notices.level_not_delivered),
                Hears(self.on_refused, notices.level_stands_still),
                Hears(self.on_unreadable, notices.not_readable),
            ),
            beats=(SlicedBeat(OFTEN_MS, self, first_ms=SECOND_MS),),
            at_stop=(AtStop("keeping the progress of delay levels", lambda _: self.settle()),),
        )

    def _opened(self, _: Opening) -> list[str]:
        """Corrects progress; returns a warning if the progress of what waits is lost."""
        self.correct()
        store = self._store
        waiting = [
            store.max_offset(SCHEDULE_TOPIC, each) - store.min_offset(SCHEDULE_TOPIC, each)
            for each in store.queue_ids(SCHEDULE_TOPIC)
        ]
        levels = sum(number > 0 for number in waiting)
        if not levels or not self._file.is_missing:
            return []
        count = messages(sum(number for number in waiting if number > 0))
        return [
            (
                f"delayOffset.json is missing, and so is its .bak: all {count} of {levels} delay"
                " levels that the store still has are delivered, even if they were delivered before"
            )
        ]
