# SPDX-License-Identifier: Apache-2.0
"""Timer messages: they wait in the timer topic, each for its own time, and are then delivered.

`broker/intake/transforms/timer.py` sends them there; here they go from the topic's queue into the
wheel (enqueue.py) and out of it (dequeue.py), in slices, and progress is saved (progress.py).
Nothing is created on the disk before the first timer message has come.

timerStopEnqueue leaves messages in the queue, timerStopDequeue in the wheel. A broker that starts
with timerWheelEnable=false leaves all as it is; if that is set while it runs, it takes no further
ones, and delivers those it has.

Java: timer.TimerMessageStore.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from random import random
from typing import Final

from txrocketmq.broker.engines.engine import DeliveryEngine
from txrocketmq.broker.intake.intake import Intake
from txrocketmq.broker.store.disk.files import Files
from txrocketmq.broker.store.formats.put_message import PutStatus
from txrocketmq.broker.store.timers.timer_check import BY_ESCAPE, TimerProgress
from txrocketmq.broker.tables.topic import Topics
from txrocketmq.broker.timer.delivery import DEAD_LETTER_TOPIC, Delivery
from txrocketmq.broker.timer.dequeue import BrokenChain, Dequeue
from txrocketmq.broker.timer.enqueue import Enqueue
from txrocketmq.broker.timer.metrics import TimerMetrics
from txrocketmq.broker.timer.progress import ProgressKeeper
from txrocketmq.broker.timer.timer_store import TimerStore
from txrocketmq.broker.work import notices
from txrocketmq.broker.work.in_thread import InThread
from txrocketmq.broker.work.life import (
    OFTEN_MS,
    SECOND_MS,
    AtStop,
    Beat,
    Hears,
    Life,
    SlicedBeat,
)
from txrocketmq.broker.work.patience import RETRY_MS, Patience

_EXPIRE_MS: Final = 30_000
"""How often, in ms, expired files of the timer log are looked for."""
_RATE_MS: Final = 1_000


class Timers(DeliveryEngine):
    """Timer messages. `tick` must be called every 100 ms."""

    def __init__(
        self,
        files: Files,
        intake: Intake,
        metrics: TimerMetrics,
        in_thread: InThread,
        patience: Patience,
    ) -> None:
        super().__init__(intake.store, patience)
        self._messages = messages = intake.store
        self.metrics = metrics
        self.wheelwork = TimerStore(files, messages, messages.config)
        self.delivery = Delivery(intake, metrics, self)
        parts = self.wheelwork, self.delivery, metrics, self.reading
        self.enqueue = Enqueue(messages, *parts)
        self._dequeue = Dequeue(messages, *parts)
        self.keeper = ProgressKeeper(files, messages, self.wheelwork, in_thread)
        self.is_open = False
        self.settled = 0, 0
        """Of a slave: a queue offset and a time. Messages before it that were due before then are
        delivered. The time is 0 as long as no progress of a master is known.
        """
        self._is_shut = False
        """Whether the files could not be opened when that was last tried."""
        self._repair: Iterator[None] | None = None
        self._repaired_ms = -1
        """The time of the slot whose chain was broken when the wheel was last made anew."""
        self._turn = -1, 0
        """The time of the current slot, and where the queue ended when its turn came."""
        self._try_again_ms = self._make_again_ms = self._steady_ms = 0
        self._expire_ms = 0
        self._rates = (0.0, 0.0)
        """The messages per second that enter and leave the wheel."""
        self._counted: tuple[int, int, int] | None = None
        self.on_warning: list[Callable[[str], None]] = []
        """Called with a sentence when something is wrong with the files."""

    # --- opening and closing ---

    def open(self, now_ms: int) -> list[str]:
        """Loads the files, once the store is open; returns warnings.

        What cannot be opened for lack of room is tried again with the ticks.
        """
        if not self._messages.config.timer_wheel_enable:
            return []
        try:
            self.keeper.begin_with(kept := self.wheelwork.check.read())
            if kept is not None:
                self.settled = max(kept.queue_offset, kept.master_offset), kept.read_ms
            self.wheelwork.open(now_ms)
            self.is_open, self._is_shut = True, False
        except OSError as error:
            self._is_shut = True
            self.wheelwork.warnings.append(
                f"the files of timer messages cannot be opened: {error}. Those that wait are not"
                " delivered before they can be; it is tried again"
            )
        said, self.wheelwork.warnings = self.wheelwork.warnings, []
        return said

    def close(self, now_ms: int) -> None:
        """Makes everything durable; to be called after the commit log is.

        Raises OSError when that fails.
        """
        if self.is_open:
            self.is_open = False
            if self._repair is None:
                self.keeper.close(now_ms)
            self.wheelwork.close()

    # --- every 100 ms ---

    def work(self, now_ms: int, steady_ms: int, is_time_up: Callable[[], bool]) -> None:
        """Continues with all that there is to do."""
        self._steady_ms = steady_ms
        if not self._messages.writeable:
            return
        if not self.is_open and not self._open_late(now_ms, steady_ms):
            return
        if now_ms >= self.wheelwork.write_ms or not self.wheelwork.is_slot_begun:
            self.wheelwork.set_time(now_ms)
        try:
            self._go_on(now_ms, steady_ms, is_time_up)
        except OSError as error:  # of the files of a log that is made anew
            self._warn(f"timer messages are on hold: {error}; the broker tries again")
            self.reading.pause(steady_ms)
            if self._repair is not None:  # what was made is not all
                self._repair = self.wheelwork.rebuild(now_ms)
        if self._repair is None:
            self.keeper.tick(now_ms, steady_ms)
        if steady_ms >= self._expire_ms:
            self._expire_ms = steady_ms + _EXPIRE_MS
            log, least = self.wheelwork.log, self._messages.min_physical_offset
            self._messages.removals.add(log.take_expired(least, self.wheelwork.read_ms))
        self._measure(steady_ms)

    def _open_late(self, now_ms: int, steady_ms: int) -> bool:
        """Opens files that did not exist, or could not be used, at the start."""
        if not self._messages.config.timer_wheel_enable or steady_ms < self._try_again_ms:
            return False
        self._try_again_ms = steady_ms + RETRY_MS
        for each in self.open(now_ms):
            self._warn(each)
        return self.is_open

    def _go_on(self, now_ms: int, steady_ms: int, is_time_up: Callable[[], bool]) -> None:
        is_busy = True
        while is_busy and not self.reading.is_busy(steady_ms):
            if self._repair is not None:
                if next(self._repair, self) is self:
                    self._repair = None
                    self._tell()
            else:
                try:
                    step = partial(self._step, now_ms, steady_ms)
                    is_busy = self.reading.work(step, steady_ms) or False
                except BrokenChain:
                    self._broken(now_ms)
            if is_busy and is_time_up():
                self.is_behind = not self.reading.is_busy(steady_ms)
                return

    def _step(self, now_ms: int, steady_ms: int) -> bool:
        """Takes a step of both; a slot begins when all that came before its turn is in it."""
        is_behind = self.enqueue.step(now_ms, steady_ms)
        if self.reading.is_busy(steady_ms):
            return False
        if self.wheelwork.read_ms != self._turn[0]:
            self._turn = self.wheelwork.read_ms, self.enqueue.queue_end
        may_begin = not is_behind or self.wheelwork.queue_offset >= self._turn[1]
        is_due = self._dequeue.step(now_ms, steady_ms, may_begin=may_begin)
        return is_behind or is_due

    def _broken(self, now_ms: int) -> None:
        """Makes the wheel anew; when the same slot is broken again, the timer log as well."""
        self._dequeue.forget()
        wheelwork = self.wheelwork
        if wheelwork.read_ms == self._repaired_ms:
            self._repaired_ms = -1
            wheelwork.reset_when_broken(now_ms)
            self._tell()
            return
        self._repaired_ms = wheelwork.read_ms
        self._warn(
            f"the timer wheel refers to something that is not a message of {self._repaired_ms}: it"
            " is built again from the timer log"
        )
        self._repair = wheelwork.rebuild(now_ms)

    def _tell(self) -> None:
        said, self.wheelwork.warnings = self.wheelwork.warnings, []
        for each in said:
            self._warn(each)

    def _warn(self, what: str) -> None:
        for heard in self.on_warning:
            heard(what)

    # --- what others ask ---

    def rejected(self, due_ms: int) -> PutStatus | None:
        """Why no further message can be taken that is due at this time; None if it can (isReject).

        What is acknowledged must be kept: while the disk has no room for the files of timers, none
        are taken. The original acknowledges them.
        """
        if self._is_shut or (self.is_open and not self._has_room()):
            return PutStatus.CREATE_MAPPED_FILE_FAILED
        if self.is_open and self.wheelwork.is_rejected(due_ms, random()):
            return PutStatus.WHEEL_TIMER_FLOW_CONTROL
        return None

    def _has_room(self) -> bool:
        if self.enqueue.trouble is None and self.wheelwork.wheel.is_made:
            return True
        if self._steady_ms < self._make_again_ms:
            return False
        try:
            self.wheelwork.wheel.make()
        except OSError as error:
            self._make_again_ms = self._steady_ms + RETRY_MS
            self.enqueue.tell(error)
            return False
        if self.enqueue.trouble is not None:
            if self.enqueue.behind:
                return False  # those that were taken before have their turn first
            self.enqueue.tell(None)
        return True

    def follow(self, master: TimerProgress) -> None:
        """Keeps the progress of the master of this slave."""
        if self.is_open:
            self.keeper.follow(master)
            self.settled = master.queue_offset, master.read_ms

    def take_over(self, slave: TimerProgress) -> bool:
        """Passes over what a slave has sent elsewhere, by this progress of it.

        Returns whether it has sent anything: that of an original slave says only what it has tried.
        """
        if not self.is_open or slave.state_version != BY_ESCAPE:
            return False
        offset = max(slave.queue_offset, slave.master_offset)
        return self.wheelwork.take_over(offset, slave.read_ms)

    def floored(self, time_ms: int) -> int:
        """The beginning of the unit of time, timerPrecisionMs, in which a time is."""
        return self.wheelwork.wheel.floored(time_ms)

    def progress(self) -> TimerProgress:
        """The progress as GET_TIMER_CHECK_POINT returns it."""
        kept = self.keeper.kept
        if not self.is_open:
            return kept
        return self.wheelwork.progress()._replace(
            state_version=kept.state_version, timestamp_ms=kept.timestamp_ms, counter=kept.counter
        )

    def runtime_info(self, now_ms: int) -> dict[str, str]:
        """The timers' figures for GET_BROKER_RUNTIME_INFO."""
        enqueued, dequeued = self._rates
        behind_ms = now_ms - self.wheelwork.read_ms if self.is_open else 0
        return {
            "timerReadBehind": str(max(behind_ms, 0) // 1000),
            "timerOffsetBehind": str(self.enqueue.behind if self.is_open else 0),
            "timerCongestNum": str(self.wheelwork.waiting),
            "timerEnqueueTps": f"{enqueued:.1f}",
            "timerDequeueTps": f"{dequeued:.1f}",
        }

    def _measure(self, steady_ms: int) -> None:
        """Computes the figures of the last second."""
        now = steady_ms, self.enqueue.count, self.delivery.delivered
        if self._counted is None:
            self._counted = now
        elapsed_ms = steady_ms - self._counted[0]
        if elapsed_ms >= _RATE_MS:
            into, out = (now[at] - self._counted[at] for at in (1, 2))
            self._rates = into * 1000 / elapsed_ms, out * 1000 / elapsed_ms
            self._counted = now

    def life(self, topics: Topics) -> Life:
        """Progress is kept in timercheck, and the counts in timermetrics."""

        def make_topic(*_: object) -> None:
            topics.create_in_heartbeat(DEAD_LETTER_TOPIC, 1)

        def topic_changed(name: str) -> None:
            if topics.get(name) is None:
                self.metrics.forget(name)

        return Life(
            "timers",
            table=self.metrics,
            files=("timercheck",),
            opens=lambda opening: self.open(opening.now_ms),
            hears=(
                Hears(self.on_warning, notices.timers_warn),
                Hears(self.on_refused, notices.timers_stand_still),
                Hears(self.on_unreadable, notices.timers_not_readable),
                Hears(self.on_dead_letters, make_topic),
                Hears(self.on_dead_letters, notices.timers_not_delivered),
                Hears(topics.on_change, topic_changed),
            ),
            troubles={
                "writing the timer log": self.enqueue.on_trouble,
                "syncing the files of timers": self.keeper.on_sync,
            },
            beats=(SlicedBeat(OFTEN_MS, self), Beat(SECOND_MS, self.metrics.saving.begin)),
            at_stop=(AtStop("keeping the progress of timers", self.close),),
        )
