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

from txrocketmq.broker.delays.delay_offsets import DelayOffsets
from txrocketmq.broker.delays.due_message import DEAD_LETTER_TOPIC, DueMessage, DueMessages, put_due
from txrocketmq.broker.engines.clock_steps import ClockSteps
from txrocketmq.broker.engines.engine import DeliveryEngine, Escapes
from txrocketmq.broker.intake.intake import Intake
from txrocketmq.broker.store.formats.delay_levels import DelayLevels
from txrocketmq.broker.store.formats.opening_report import messages
from txrocketmq.broker.store.formats.put_message import PutMessage
from txrocketmq.broker.store.get.jumps import DELAYS, Jump
from txrocketmq.broker.store.queues.consume_queue import Unit
from txrocketmq.broker.tables.topic import Topics
from txrocketmq.broker.work import notices
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
from txrocketmq.broker.work.mishap import Mishap, tell
from txrocketmq.broker.work.patience import Patience
from txrocketmq.remoting.message.topics import SCHEDULE_TOPIC

MAX_BATCH = 128
"""How many messages of a level are delivered at once, so that none holds up the broker for long."""
MAX_BATCH_BYTES = 512 * 1024
"""How many bytes of records are delivered at once; a single larger message is delivered alone."""
NEVER_MS = 1 << 62
RETRY_MS = 10_000
"""How long a level pauses after a failed delivery, in ms (DELAY_FOR_A_PERIOD)."""


class Schedule(DeliveryEngine):
    """Delivers due messages; `tick` is to be called every 100 ms."""

    def __init__(
        self,
        levels: DelayLevels,
        intake: Intake,
        file: JsonFile,
        clock: Callable[[], int],
        patience: Patience,
    ) -> None:
        self.levels = levels
        super().__init__(intake.store, patience)
        self._intake = intake
        self._store = intake.store
        self.offsets = DelayOffsets(file, clock, intake.store)
        self._paused_until_ms: dict[int, int] = {}
        """The steady time until which each level pauses, since the store refused due messages."""
        self._done: dict[int, set[int]] = {}
        """By level: offsets beyond its progress that are finished already."""
        self._next_level = 1
        self._seen_ms = 0
        """The steady time of the last work."""
        self.delivered = 0
        """How many messages were delivered since the start."""
        self._steps = {level: ClockSteps() for level in range(1, levels.max_level + 1)}

    def work(self, now_ms: int, steady_ms: int, is_time_up: Callable[[], bool]) -> None:
        """Delivers a batch of the due messages of each level.

        When the time is up, the remaining levels come first in the next call.
        """
        self._seen_ms = steady_ms
        before, max_level = self.delivered, self.levels.max_level
        for _ in range(max_level):
            level, self._next_level = self._next_level, self._next_level % max_level + 1
            self.delivered += self._take_turn(level, now_ms, steady_ms)
            if self.delivered != before and is_time_up():
                self.is_behind = True
                break
        self.offsets.save_soon(steady_ms)

    def _take_turn(self, level: int, now_ms: int, steady_ms: int) -> int:
        """Delivers due messages of a level if it may; returns how many there were."""
        top = self._store.max_offset(SCHEDULE_TOPIC, level - 1)

        def turn() -> int:
            self._look_at_clock(level, top, now_ms, now_ms - steady_ms)
            if (self.offsets.get(level) or 0) == top:
                return 0
            if self._paused_until_ms.get(level, steady_ms) > steady_ms:
                return 0
            return self._deliver_level(level, top, now_ms, steady_ms)

        return self.reading.work(turn, steady_ms) or 0

    def _look_at_clock(self, level: int, top: int, now_ms: int, ahead_ms: int) -> None:
        steps = self._steps[level]
        if steps.is_step(ahead_ms):
            first = min(steps.seen_offset, top)
            latest_ms = now_ms + self.levels.delay_ms(level)
            # The first of the messages that came since the last look and were stored by the clock
            # as it is now.
            units = self._store.queue_units(SCHEDULE_TOPIC, level - 1, first, top - first)
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
        least, known = self._store.min_offset(SCHEDULE_TOPIC, level - 1), self.offsets.get(level)
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
        if due and self.escape is not None:
            self._escape(self.escape, level, due)
            return 0
        refused = put_due(self._intake, due, done, now_ms)
        self.offsets.set(level, end if refused is None else refused[0].offset)
        delivered = sum(each.offset in done and not each.is_dead for each in due)
        dead = [each for each in due if each.offset in done and each.is_dead]
        if refused is None:
            done.clear()
            del self._paused_until_ms[level]
        if unread:
            tell(self.on_unreadable, Mishap(len(unread), level - 1, unread[0]))
        if dead:
            first = dead[0]
            tell(
                self.on_dead_letters,
                Mishap(len(dead), level - 1, first.offset, first.message.topic, first.why),
            )
        if refused is not None:
            first, status = refused
            tell(
                self.on_refused,
                Mishap(1, level - 1, first.offset, first.message.topic, status.name),
            )
        return delivered

    def _escape(self, escape: Escapes, level: int, due: list[DueMessage]) -> None:
        """Has messages delivered elsewhere; the level goes on when that has answered.

        What has arrived there is then among those that are done.
        """
        offsets = [each.offset for each in due if not each.is_dead]
        messages = [
            each.message if isinstance(each.message, PutMessage) else each.message.to_put()
            for each in due
            if not each.is_dead
        ]
        self._paused_until_ms[level] = NEVER_MS

        def answered(has: list[bool]) -> None:
            done = {at for at, is_there in zip(offsets, has, strict=True) if is_there}
            self._done[level] |= done
            self.delivered += len(done)
            self._resume(level, is_whole=len(done) == len(due))

        if messages:
            escape.put(messages, answered)
        else:
            answered([])

    def _resume(self, level: int, *, is_whole: bool) -> None:
        """Goes on with a level at once, or if something has not arrived, after a pause."""
        if is_whole:
            self._paused_until_ms.pop(level, None)
        else:
            self._paused_until_ms[level] = self._seen_ms + RETRY_MS

    def _units(self, level: int, offset: int, now_ms: int, ahead_ms: int) -> list[Unit]:
        """The units of the messages of a level to deliver at once, from an offset on.

        Raises NotInMemory when the messages are not in memory.
        """
        steps, delay_ms, store = self._steps[level], self.levels.delay_ms(level), self._store
        left_bytes, is_more = MAX_BATCH_BYTES, False
        found: list[Unit] = []
        back_ms, varies = steps.set_back_ms(offset, ahead_ms), steps.are_several
        for unit in store.queue_units(SCHEDULE_TOPIC, level - 1, offset, MAX_BATCH):
            if varies:
                back_ms = steps.set_back_ms(offset + len(found), ahead_ms)
            wait_ms = unit.tags_code - now_ms - back_ms
            if 0 < wait_ms <= delay_ms:
                break  # longer than the level's delay: a clock that was set back, so it is due
            if unit.size_bytes > left_bytes < MAX_BATCH_BYTES:
                is_more = True
                break
            left_bytes -= unit.size_bytes
            found.append(unit)
        store.check_records([(at, size) for at, size, _ in found])
        self.is_behind |= is_more or len(found) == MAX_BATCH
        return found

    def _due(self, level: int, offset: int, units: list[Unit]) -> tuple[DueMessages, int]:
        """Reads unfinished messages of these units; returns where the next batch begins, too."""
        done, due, message_at = self._done[level], DueMessages(self._intake), self._store.message_at
        for at, (physical_offset, size_bytes, _) in enumerate(units, offset):
            if due.is_full:
                self.is_behind = True
                return due, at
            if at not in done:
                due.add(at, message_at(physical_offset, size_bytes, is_checked=True))
        return due, offset + len(units)

    def life(self, topics: Topics, sync: Callable[[], None]) -> Life:
        """Progress is kept in delayOffset.json, when `sync` has made durable what was delivered."""

        def make_topic(*_: object) -> None:
            topics.create_in_heartbeat(DEAD_LETTER_TOPIC, 1)

        return Life(
            "delay levels",
            table=self.offsets,
            opens=self._opened,
            hears=(
                Hears(self.offsets.on_wanted, sync),
                Hears(self.on_dead_letters, make_topic),
                Hears(self.on_dead_letters, notices.level_not_delivered),
                Hears(self.on_refused, notices.level_stands_still),
                Hears(self.on_unreadable, notices.not_readable),
            ),
            beats=(SlicedBeat(OFTEN_MS, self, first_ms=SECOND_MS),),
            at_stop=(
                AtStop("keeping the progress of delay levels", lambda _: self.offsets.settle()),
            ),
        )

    def _opened(self, _: Opening) -> list[str]:
        """Corrects progress; returns a warning if the progress of what waits is lost."""
        self.offsets.correct()
        store = self._store
        waiting = [
            store.max_offset(SCHEDULE_TOPIC, each) - store.min_offset(SCHEDULE_TOPIC, each)
            for each in store.queue_ids(SCHEDULE_TOPIC)
        ]
        levels = sum(number > 0 for number in waiting)
        if not levels or not self.offsets.is_missing:
            return []
        count = messages(sum(number for number in waiting if number > 0))
        return [
            (
                f"delayOffset.json is missing, and so is its .bak: all {count} of {levels} delay"
                " levels that the store still has are delivered, even if they were delivered before"
            )
        ]
