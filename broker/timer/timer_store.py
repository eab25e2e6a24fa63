# SPDX-License-Identifier: Apache-2.0
"""The timer log, the wheel and the progress: what waits, and what is finished.

The commit log has all waiting messages, in the queue of the timer topic. The timer log says when
each of them is due, and the wheel says where in the timer log those of one time are. Each follows
from the one before it, and can be made anew from it:

- Whenever a store is opened, and when a chain turns out to be broken, the wheel is made from the
  timer log. So no slot counts that another process, or a crash, has left.
- When the timer log lacks units that it should have by the progress, or is no such log, it is
  moved aside and made from the queue: what was due before the progress is delivered, the rest
  waits again.
- Without a progress, all messages of the queue are delivered or wait again.
- A slave reads no queue, and keeps the progress of its master. When it becomes a master, it reads
  the queue: what was due before that progress is delivered, the rest waits.
- A master that comes back passes over what a slave has sent elsewhere (timer_escape.py), which is
  known by the progress of that slave.

A crash costs nothing: the progress is behind what has been done, and never ahead of what is
durable. Messages that would be read from the queue once more although they are in the timer log
are recognized by their offsets in the commit log.

Java: the state of TimerMessageStore; recover, recoverAndRevise, reviseQueueOffset, doEnqueue.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from txrocketmq.broker.store.disk.files import Files
from txrocketmq.broker.store.formats import formats
from txrocketmq.broker.store.formats.config import StoreConfig
from txrocketmq.broker.store.formats.opening_report import messages
from txrocketmq.broker.store.message_store import MessageStore
from txrocketmq.broker.store.opening.loss import Loss
from txrocketmq.broker.store.timers.timer_check import TimerCheck, TimerProgress
from txrocketmq.broker.store.timers.timer_log import NONE, TimerLog, TimerUnit
from txrocketmq.broker.store.timers.timer_wheel import SLOTS, TimerWheel
from txrocketmq.broker.timer.timer_message import waiting_of
from txrocketmq.remoting.message.topics import TIMER_TOPIC

QUEUE_ID: Final = 0
"""The timer topic has one queue."""
_BLANK_SLOTS: Final = 60
_MOST_SLOTS: Final = SLOTS // 2 - _BLANK_SLOTS
_A_DAY_MS: Final = 24 * 3600 * 1000


class TimerStore:
    """The files of timers. Nothing may be used before `open`."""

    def __init__(self, files: Files, store: MessageStore, config: StoreConfig) -> None:
        self._files = files
        self._store = store
        self._root = root = config.store_path_root_dir
        self.config = config
        folder, log_bytes = Path(root), config.mapped_file_size_timer_log
        self.log = TimerLog(files, str(folder / "timerlog"), log_bytes)
        self.wheel = TimerWheel(files, str(folder / "timerwheel"), config.timer_precision_ms)
        self.check = TimerCheck(files, str(folder / "config" / "timercheck"))
        slots = config.timer_roll_window_slot
        self._roll_slots = slots if 2 <= slots <= _MOST_SLOTS else _MOST_SLOTS
        self.read_ms = 0
        """All messages due before this time are delivered."""
        self.write_ms = 0
        """The present time; messages due before it are to be delivered."""
        self.is_slot_begun = False
        """Whether the slot of `read_ms` is being delivered."""
        self.queue_offset = 0
        """Messages before this offset of the timer topic are finished, or in the timer log."""
        self.has_progress = False
        """Whether there was a progress to go on from."""
        self.known: set[int] = set()
        """Log offsets of messages in the timer log up to which the queue is not read."""
        self._settled = (0, 0)
        """A queue offset and a time: messages before it that were due before then are delivered."""
        self._elsewhere = (0, 0)
        """The same of messages that a slave has sent elsewhere. They may be in the wheel."""
        self.waiting = 0
        """How many messages wait in the wheel."""
        self.changes = 0
        """Counts the changes that are not in the saved progress yet."""
        self.warnings: list[str] = []
        """Warnings about the files, in whole sentences."""

    # --- opening ---

    def open(self, now_ms: int) -> None:
        """Loads the files, and makes the wheel; raises OSError when the disk fails."""
        progress = self.check.read()
        self.write_ms = self.read_ms = self.wheel.floored(now_ms)
        is_whole = self.log.load()
        least, most = self._queue_range()
        if progress is not None and progress.read_ms > now_ms + _A_DAY_MS:
            progress = None
        if progress is None:
            if most > least or self.log.end:
                self.warnings.append(
                    "config/timercheck is missing, or is not valid: all"
                    f" {messages(most - least)} of the timer topic that the store still has wait"
                    " again, or are delivered, even if they were delivered before"
                )
            self._reset(now_ms)
            return
        self.has_progress = True
        self.read_ms = self.wheel.floored(min(progress.read_ms, self.write_ms))
        self._settled = progress.master_offset, self.read_ms
        self.queue_offset = min(
            max(progress.queue_offset, min(least, progress.master_offset)), most
        )
        if not is_whole or self._lacks_its_beginning():
            self.warnings.append(self._broken("has files of another size, or lacks some"))
            self._reset(now_ms, progress)
            return
        for _ in self.rebuild(now_ms, progress):
            pass
        self.log.keep_dues()

    def _lacks_its_beginning(self) -> bool:
        """Whether files are missing whose messages the store has, and which are not due yet."""
        files = self.log.files
        first = self.log.unit(files.min_offset) if files.min_offset > 0 else None
        if first is None:
            return False
        least, most = self._queue_range()
        for physical_offset, size, _ in self._store.queue_units(
            TIMER_TOPIC, QUEUE_ID, least, most - least
        ):
            if physical_offset >= first.physical_offset:
                return False
            record = self._store.message_at(physical_offset, size)
            if record is not None and waiting_of(record).out_ms >= self.read_ms:
                return True
        return False

    def _queue_range(self) -> tuple[int, int]:
        store = self._store
        return store.min_offset(TIMER_TOPIC, QUEUE_ID), store.max_offset(TIMER_TOPIC, QUEUE_ID)

    def _broken(self, how: str) -> str:
        return (
            f"the timer log in {self.log.files.directory} {how}: it was moved to lost/ in the"
            " store, and is rebuilt from the waiting messages, some of which may be delivered twice"
        )

    def _reset(self, now_ms: int, progress: TimerProgress | None = None) -> None:
        """Moves timer log and wheel aside, and begins with the queue's first message.

        What the log lost before it was read is not passed over here: the reader has to tell it.
        """
        self._settled, unread = (0, 0), 0
        if progress is not None:
            unread = max(progress.queue_offset, progress.master_offset)
            self._settled = unread, self.read_ms
        self.log.close()
        self.wheel.remove()
        if self._files.entries(self.log.files.directory):
            Loss(self._files, self._root, now_ms).move_aside(self.log.files.directory)
        self.log.load()
        self.known.clear()
        self.waiting = 0
        self.queue_offset = min(unread, self._queue_range()[0])
        self.changes += 1

    def reset_when_broken(self, now_ms: int) -> None:
        """Moves the broken timer log aside and begins again, as a new wheel has not helped."""
        self.warnings.append(self._broken("has units that are not valid"))
        self._reset(now_ms, self.progress())

    # --- the wheel from the timer log ---

    def rebuild(self, now_ms: int, progress: TimerProgress | None = None) -> Iterator[None]:
        """Makes the wheel anew, in steps, for a progress (None: the present one).

        Ends with a reset when the timer log does not fit the progress.
        """
        self.wheel.remove()
        self.waiting = 0
        self.changes += 1
        log_end = self.log.end if progress is None else progress.log_end
        least_ms = max(self.read_ms, self.write_ms - _MOST_SLOTS * self.wheel.precision_ms)
        walk = _LogWalk(self, self._store, log_end, least_ms)
        yield from walk.run()
        if walk.lost:
            self.warnings.append(
                f"{messages(walk.lost)} of the timer topic that were not due yet have left the"
                " store with its oldest files: they are not delivered"
            )
        if walk.end < log_end:
            self.warnings.append(self._broken(f"ends at {walk.end} and not at {log_end}"))
            self._reset(now_ms, progress or self.progress())
            return
        if progress is not None and self.log.files.mapped_files:
            self.log.end_at(walk.end, log_end)
        self.read_ms = least_ms
        yield from self._file_again(walk.stranded)

    def _file_again(self, stranded: list[TimerUnit]) -> Iterator[None]:
        """Puts units into the timer log once more, unless their chains contain them by now."""
        chains: dict[int, set[int]] = {}
        for unit in stranded:
            due_ms = max(unit.due_ms, self.read_ms)
            if due_ms not in chains:
                chains[due_ms] = self._chain(due_ms)
            if unit.physical_offset not in chains[due_ms]:
                chains[due_ms].add(unit.physical_offset)
                self._append(due_ms, unit.magic, unit.written_ms, unit.place)
            yield

    def _chain(self, due_ms: int) -> set[int]:
        """The log offsets of the messages of a chain."""
        found: set[int] = set()
        slot = self.wheel.slot(due_ms)
        unit = None if slot is None else self.log.unit(slot.last_pos)
        while unit is not None:
            found.add(unit.physical_offset)
            unit = self.log.unit(unit.prev_pos)
        return found

    def link(self, position: int, unit: TimerUnit) -> list[TimerUnit]:
        """Adds a unit of the timer log to its chain; returns those that the chain loses."""
        self.wheel.make()
        lost: list[TimerUnit] = []
        at = self._count(unit.due_ms, position, unit.magic)
        while at not in (NONE, unit.prev_pos):
            other = self.log.unit(at)
            if other is None:
                break
            lost.append(other)
            at = other.prev_pos
        return lost

    # --- messages that wait ---

    def is_settled(self, offset: int, physical_offset: int, due_ms: int) -> bool:
        """Whether a message of the queue is finished, or in the timer log."""
        if physical_offset in self.known:
            self.known.remove(physical_offset)
            return True
        settled_offset, settled_ms = self._settled
        if offset < settled_offset and due_ms < settled_ms:
            return True
        return self.is_elsewhere(offset, due_ms)

    def is_elsewhere(self, offset: int, due_ms: int) -> bool:
        """Whether a slave has sent a message of the queue to another master."""
        elsewhere_offset, elsewhere_ms = self._elsewhere
        return offset < elsewhere_offset and due_ms < elsewhere_ms

    @property
    def elsewhere_ms(self) -> int:
        """Nothing that is due at this time or later was sent elsewhere."""
        return self._elsewhere[1]

    @property
    def first_open_ms(self) -> int:
        """All that is due before this time is delivered: no message may be put for earlier."""
        return self.read_ms + (self.wheel.precision_ms if self.is_slot_begun else 0)

    def put(self, due_ms: int, place: tuple[int, int, int], *, takes_back: bool) -> None:
        """Lets a message wait; `place` is its log offset, its size, and its topic's hash.

        A message due beyond the window is rolled: it leaves the wheel at the end of the window, or
        in its middle if little time would be left then. Raises OSError without room on the disk.
        """
        magic = formats.TIMER_MAGIC_DEFAULT
        precision_ms, slots = self.wheel.precision_ms, self._roll_slots
        beyond_ms = due_ms - self.write_ms - slots * precision_ms
        if beyond_ms >= 0:
            magic |= formats.TIMER_MAGIC_ROLL
            is_little = beyond_ms < slots // 3 * precision_ms
            due_ms = self.write_ms + (slots // 2 if is_little else slots) * precision_ms
        if takes_back:
            magic |= formats.TIMER_MAGIC_DELETE
        self._append(due_ms, magic, self.write_ms, place)

    def _append(
        self, due_ms: int, magic: int, written_ms: int, place: tuple[int, int, int]
    ) -> None:
        self.wheel.make()
        before = self.wheel.slot(due_ms)
        prev_pos = NONE if before is None else before.last_pos
        self._count(due_ms, self.log.append(prev_pos, magic, written_ms, due_ms, place), magic)
        self.changes += 1

    def _count(self, due_ms: int, position: int, magic: int) -> int:
        num = -1 if magic & formats.TIMER_MAGIC_DELETE else 1
        self.waiting += num
        return self.wheel.add(due_ms, position, num)

    def is_rejected(self, due_ms: int, draw: float) -> bool:
        """Whether a further message is too much at this time; `draw` is a random number below 1."""
        slot, most = self.wheel.slot(due_ms), self.config.timer_congest_num_each_slot
        if slot is None or slot.num <= most:
            return False
        return slot.num >= 2 * most or draw > (slot.num - most) / most

    # --- time ---

    def set_time(self, now_ms: int) -> None:
        """Follows the clock, also backwards: what waits for an absolute time waits for it again."""
        self.write_ms = self.wheel.floored(now_ms)
        self.read_ms = min(self.read_ms, self.write_ms)

    def done_with_slot(self) -> None:
        """Notes that all that is due at `read_ms` is delivered; the next slot has its turn."""
        slot = self.wheel.slot(self.read_ms)
        if slot is not None:
            self.waiting -= slot.num
            self.wheel.clear(self.read_ms)
            self.changes += 1
        self.read_ms += self.wheel.precision_ms
        self.is_slot_begun = False

    def follow(self, progress: TimerProgress) -> None:
        """Notes the progress of the master of this slave, with which it goes on as a master."""
        self.read_ms = self.wheel.floored(progress.read_ms)
        self._settled = progress.queue_offset, self.read_ms

    def take_over(self, offset: int, due_ms: int) -> bool:
        """Passes over what a slave has sent elsewhere: messages of the queue before an offset that
        were due before a time. Returns whether there is such a thing.
        """
        if not self.read_ms < due_ms <= self.write_ms + _A_DAY_MS:
            return False
        self._elsewhere = min(offset, self._queue_range()[1]), due_ms
        return True

    def progress(self) -> TimerProgress:
        """The present progress."""
        settled_offset, settled_ms = self._settled
        is_ahead = settled_offset > self.queue_offset and self.read_ms <= settled_ms
        beyond = settled_offset if is_ahead else 0
        return TimerProgress(self.read_ms, self.log.end, self.queue_offset, master_offset=beyond)

    def close(self) -> None:
        """Saves notes, and drops the mappings."""
        self.log.keep_dues()
        self.log.close()
        self.wheel.close()
        self.check.close()


class _LogWalk:
    """A walk through the timer log that links the units that belong into the wheel.

    `log_end` is the position that the log is known to reach at least; messages due before
    `least_ms` waited so long while no broker ran that their slots belong to other times.
    """

    def __init__(
        self, timers: TimerStore, store: MessageStore, log_end: int, least_ms: int
    ) -> None:
        self._timers = timers
        self._store = store
        self._log_end = log_end
        self._least_ms = least_ms
        self.end = 0
        """The position behind the last valid unit, where the walk has ended."""
        self.lost = 0
        """How many messages that were not due yet the commit log has lost."""
        self.stranded: list[TimerUnit] = []
        """The units that have no place in a chain."""

    def run(self) -> Iterator[None]:
        """Walks, in steps."""
        log, max_offset = self._timers.log, self._store.max_physical_offset
        for file in list(log.files.mapped_files):
            file_end = file.from_offset + file.size_bytes
            if file_end <= self._log_end and log.is_past(file, self._timers.read_ms):
                self.end = file_end
                continue
            self.end = file.from_offset
            for end, found in log.walk(file, self._timers.read_ms):
                for position, unit in found:
                    if unit.physical_offset + unit.size_bytes > max_offset:
                        self.end = position
                        return  # the commit log has lost its end, in a power cut
                    self._take(position, unit)
                self.end = end
                yield
            if not log.is_end_of_file(file, self.end):
                return
            log.note_full(file)
            self.end = file_end

    def _take(self, position: int, unit: TimerUnit) -> None:
        if position >= self._log_end:
            self._timers.known.add(unit.physical_offset)
        if unit.physical_offset < self._store.min_physical_offset:
            self.lost += 1
        elif unit.due_ms < self._least_ms:
            self.stranded.append(unit)
        else:
            self.stranded += self._timers.link(position, unit)
