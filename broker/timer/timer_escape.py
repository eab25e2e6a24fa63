# SPDX-License-Identifier: Apache-2.0
"""Timer messages of a slave that acts as master, with enableRemoteEscape: other masters get them.

A slave has no wheel. It has the queue of the timer topic, and the progress of its master: where in
the queue that was, and up to which time it had delivered. So while it acts, it reads the queue from
its beginning, passes over what the master has delivered, and remembers where those messages are
that are due first, as many as there is room for. What is due is sent. When all that is remembered
has had its turn, the queue is read again for what comes next.

What no other master takes is tried again later, and those behind it go on; the progress stands
still at the first that has not arrived. The progress is the slave's, as if it had come from its
master: it goes on with it after a restart, also as a master. A master that comes back takes it over
(pre_online.py), and passes over what has been delivered. It recognizes this progress by a version
that none else has: an original slave counts its own up, but gives a message up after three
attempts, and a master of the original would lose what it has rolled in the meantime, or what the
slave never had.

Check points of popped messages, and acknowledgements, wait as timers at a master of the original.
They are not sent: what was popped is brought back from here (broker/pop/revive.py), and the
progress waits for that. The original sends them to one master, which has to read the messages here.

Java: TimerMessageStore with the hook of EscapeBridge.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterable
from functools import partial
from heapq import heapify, heappop, heappush
from typing import Final, Protocol

from txrocketmq.broker.delays.due_message import DueMessage, DueMessages
from txrocketmq.broker.engines.engine import Engine, Escapes
from txrocketmq.broker.intake.intake import Intake
from txrocketmq.broker.store.formats.put_message import PutMessage
from txrocketmq.broker.store.queues.consume_queue import Unit
from txrocketmq.broker.store.timers.timer_check import BY_ESCAPE, TimerProgress
from txrocketmq.broker.timer.delivery import MAX_BATCH, MAX_BATCH_BYTES, NEVER_ENQUEUED, stamps
from txrocketmq.broker.timer.timer_message import waiting_of
from txrocketmq.broker.timer.timer_store import QUEUE_ID
from txrocketmq.broker.timer.timers import Timers
from txrocketmq.broker.work import notices
from txrocketmq.broker.work.life import OFTEN_MS, AtStop, Hears, Life, SlicedBeat
from txrocketmq.broker.work.mishap import Mishap, MishapListener, tell
from txrocketmq.broker.work.patience import RETRY_MS, Patience
from txrocketmq.remoting.message.topics import TIMER_TOPIC

MAX_REMEMBERED: Final = 30_000
"""How many waiting messages are remembered at once; those of one step may be more."""
_KEEP_MS: Final = 1_000
"""How often progress is kept."""
_READ: Final = 64
"""How many messages of the queue are examined in one step."""
_FOREVER: Final = 1 << 62
_NEVER: Final = (_FOREVER, 0)


class Revives(Protocol):
    """Brings back popped messages (broker/pop/revive.py)."""

    @property
    def topic(self) -> str:
        """The topic of check points."""

    def hear(self, record: memoryview, due_ms: int, now_ms: int) -> bool:
        """Takes a record of that topic that was due at a time; returns False without room."""

    def heard_ms(self) -> int | None:
        """The time of the first one that is not done with; None if there is none."""


class _Window:
    """The messages that are due first: offsets in the queue by the time at which they are due.

    Messages of the same time are in the order of the queue.
    """

    def __init__(self) -> None:
        self._slots: dict[int, array[int]] = {}
        self._left: dict[int, array[int]] = {}
        """What nobody has taken."""
        self._withdrawn: dict[int, set[str]] = {}
        """The keys of messages that are withdrawn."""
        self._heap: list[int] = []
        """The times of the slots, and times of former ones."""
        self._reached = 0, 0
        """The time and the offset of the last message that was sent."""
        self.count = 0
        self.horizon = _NEVER
        """A time and an offset: from this message on they are not here."""

    @property
    def is_full(self) -> bool:
        return self.count >= MAX_REMEMBERED

    def add(self, due_ms: int, offset: int) -> None:
        """Adds a message."""
        if (due_ms, offset) < self.horizon:
            self._slot(due_ms).append(offset)
            self.count += 1

    def withdraw(self, due_ms: int, key: str) -> None:
        """Notes that the message of this time with this key is not to be delivered."""
        if due_ms <= self.horizon[0] and not self.is_withdrawn(due_ms, key):
            self._withdrawn.setdefault(due_ms, set()).add(key)
            self.count += 1

    def is_withdrawn(self, due_ms: int, key: str) -> bool:
        return key in self._withdrawn.get(due_ms, ())

    def first_ms(self) -> int:
        """The time of the first messages that may be sent."""
        while self._heap and self._heap[0] not in self._slots:
            heappop(self._heap)
        return self._heap[0] if self._heap else _FOREVER

    def open_ms(self) -> int:
        """The time of the first messages that have not arrived."""
        return min(self.first_ms(), min(self._left, default=_FOREVER))

    def some(self, due_ms: int) -> list[int]:
        """The offsets of some messages of a time."""
        return list(self._slots[due_ms][:MAX_BATCH])

    def take(self, due_ms: int, number: int, left: list[int]) -> None:
        """Removes the first messages of a time, but for those that are `left` for later."""
        slot = self._slots[due_ms]
        self._reached = max(self._reached, (due_ms, slot[number - 1]))
        del slot[:number]
        self.count -= number - len(left)
        if left:
            self._left.setdefault(due_ms, array("q")).extend(left)
        if not slot:
            del self._slots[due_ms]
            if due_ms not in self._left:
                self.count -= len(self._withdrawn.pop(due_ms, ()))

    def again(self, present_ms: int) -> None:
        """Has those sent again that nobody has taken."""
        for due_ms, offsets in self._left.items():
            slot = self._slot(due_ms)
            slot[:0] = offsets
        self._left.clear()
        for due_ms in [each for each in self._withdrawn if each < present_ms]:
            if due_ms not in self._slots:  # what is withdrawn is not there
                self.count -= len(self._withdrawn.pop(due_ms))

    def _slot(self, due_ms: int) -> array[int]:
        slot = self._slots.get(due_ms)
        if slot is None:
            slot = self._slots[due_ms] = array("q")
            heappush(self._heap, due_ms)
        return slot

    def make_room(self) -> None:
        """Drops those that are due last, if it is full; none that was sent, nor the first one."""
        if not self.is_full:
            return
        first_ms, (reached_ms, reached) = self.first_ms(), self._reached
        for due_ms in sorted({*self._slots, *self._withdrawn}, reverse=True):
            excess = self.count - MAX_REMEMBERED * 3 // 4
            if excess <= 0 or due_ms < reached_ms:
                break
            slot = self._slots.get(due_ms, array("q"))
            least = bisect_right(slot, reached) if due_ms == reached_ms else 0
            least = max(least, due_ms == first_ms)
            at = max(len(slot) - excess, least)
            if at < len(slot):
                self.horizon = due_ms, slot[at]
                self.count -= len(slot) - at
                del slot[at:]
            if not slot and due_ms > reached_ms:
                self.horizon = due_ms, 0
                self._slots.pop(due_ms, None)
                self.count -= len(self._withdrawn.pop(due_ms, ()))
        self._heap = list(self._slots)
        heapify(self._heap)


class TimerEscape(Engine):
    """Sends timer messages elsewhere; `tick` is to be called every 100 ms."""

    def __init__(self, timers: Timers, intake: Intake, revive: Revives, patience: Patience) -> None:
        super().__init__(intake.store, patience)
        self._revive = revive
        self._timers = timers
        self._intake = intake
        self._store = intake.store
        self._window = _Window()
        self._has_begun = False
        self._known: tuple[int, tuple[int, int]] = 0, (0, 0)
        """A queue offset, and the time and the offset of a message: those before the former that
        come before the latter have been delivered, or are in the window.
        """
        self._next_offset = 0
        """Up to where the queue has been read."""
        self._is_read = False
        """Whether all of it was read since the window was last empty."""
        self._sending: object | None = None
        """What is on its way to other masters."""
        self._paused_until_ms = self._again_ms = self._keep_ms = 0
        self.on_not_taken: list[MishapListener] = []
        """Called when no other master takes messages, so that they wait."""

    def life(self) -> Life:
        """What it has sent is kept as the progress of timers."""
        return Life(
            "timers of a slave that acts as master",
            hears=(
                Hears(self.on_unreadable, notices.timers_not_readable),
                Hears(self.on_not_taken, partial(notices.not_taken, "timer")),
            ),
            beats=(SlicedBeat(OFTEN_MS, self),),
            at_stop=(
                AtStop("keeping the progress of timers that were sent elsewhere", self._keep),
            ),
        )

    def forget(self) -> None:
        """Forgets what waits; what other masters have taken meanwhile may be sent once more."""
        super().forget()
        self._window, self._sending = _Window(), None
        self._has_begun = self._is_read = False
        self._paused_until_ms = self._again_ms = 0

    def work(self, now_ms: int, steady_ms: int, is_time_up: Callable[[], bool]) -> None:
        """Reads the queue, and sends what is due, a batch at a time.

        Without the progress of a master nothing is done: all would be delivered once more.
        """
        if not self._timers.is_open or not self._timers.settled[1] or self.escape is None:
            return
        if not self._has_begun:
            end, reached_ms = self._timers.settled
            self._has_begun, self._known = True, (end, (reached_ms, 0))
            self._begin_walk()
        if steady_ms >= self._keep_ms:
            self._keep_ms = steady_ms + _KEEP_MS
            self._keep(now_ms)
        escape = self.escape
        while self._sending is None and not self.reading.is_busy(steady_ms):
            step = partial(self._step, escape, now_ms, steady_ms)
            if not self.reading.work(step, steady_ms):
                return
            if is_time_up():
                self.is_behind = True
                return

    def _step(self, escape: Escapes, now_ms: int, steady_ms: int) -> bool:
        """Takes a step; returns whether there may be more to do at once."""
        if not self._window.is_full and self._read():
            return True
        if steady_ms < self._paused_until_ms:
            return False
        present_ms = self._timers.floored(now_ms)
        if steady_ms >= self._again_ms:
            self._again_ms = steady_ms + RETRY_MS
            self._window.again(present_ms)
        due_ms = self._window.first_ms()
        if due_ms < present_ms:
            self._send(escape, due_ms, now_ms, steady_ms)
            return True
        if self._is_read and self._window.horizon[0] < present_ms and not self._window.is_full:
            self._begin_walk()
            return True
        return False

    # --- reading ---

    def _begin_walk(self) -> None:
        """Begins to read the queue from its first message on."""
        self._is_read = False
        self._next_offset = self._store.min_offset(TIMER_TOPIC, QUEUE_ID)
        self._window.horizon = _NEVER

    def _read(self) -> bool:
        """Reads some messages of the queue; returns False at its end."""
        store, window, (known_end, known) = self._store, self._window, self._known
        offset = max(self._next_offset, store.min_offset(TIMER_TOPIC, QUEUE_ID))
        units = list(store.queue_units(TIMER_TOPIC, QUEUE_ID, offset, _READ))
        store.check_records([(at, size) for at, size, _ in units])
        for physical_offset, size, _ in units:
            record = store.message_at(physical_offset, size, is_checked=True)
            waiting = None if record is None else waiting_of(record)
            if waiting is None:
                if offset >= known_end:
                    tell(self.on_unreadable, Mishap(1, QUEUE_ID, offset))
            else:
                due_ms = self._timers.floored(waiting.out_ms)
                if offset < known_end and (due_ms, offset) < known:
                    pass
                elif waiting.takes_back:
                    window.withdraw(due_ms, waiting.takes_back)
                else:
                    window.add(due_ms, offset)
            offset += 1
        window.make_room()
        self._next_offset = offset
        self._is_read = self._is_read or not units
        if self._is_read:
            self._known = offset, window.horizon
        else:
            self._known = known_end, min(known, window.horizon)
        return bool(units)

    # --- sending ---

    def _send(self, escape: Escapes, due_ms: int, now_ms: int, steady_ms: int) -> None:
        """Sends some messages of a time; what has not arrived is tried again later."""
        batch, offsets, not_heard = self._batch(due_ms, now_ms)
        sent = [each for each in batch.messages if not each.is_dead]
        waits = not_heard + [each.offset for each in batch.messages if each.is_dead]
        for each in batch.unread:
            tell(self.on_unreadable, Mishap(1, QUEUE_ID, each))
        self._sending = batch

        def answered(has: list[bool]) -> None:
            if self._sending is not batch:
                return  # it acts no more
            self._sending = None
            failed = [each for each, is_there in zip(sent, has, strict=True) if not is_there]
            left = [each.offset for each in failed]
            self._window.take(due_ms, len(offsets), left + waits)
            self._count(each for each, is_there in zip(sent, has, strict=True) if is_there)
            if failed:
                topic = failed[0].message.topic
                tell(self.on_not_taken, Mishap(len(failed), QUEUE_ID, left[0], topic))
            if has and not any(has):
                self._paused_until_ms = steady_ms + RETRY_MS

        if sent:
            escape.put([_put(each) for each in sent], answered)
        else:
            answered([])

    def _batch(self, due_ms: int, now_ms: int) -> tuple[DueMessages, list[int], list[int]]:
        """Reads some messages of a time, and lets those be heard that are of the revive topic.

        Returns all their offsets as well, and those for which there was no room.
        """
        store, least = self._store, self._store.min_offset(TIMER_TOPIC, QUEUE_ID)
        found: list[tuple[int, Unit]] = []
        offsets: list[int] = []
        left_bytes, some = MAX_BATCH_BYTES, self._window.some(due_ms)
        for offset in some:
            units = store.queue_units(TIMER_TOPIC, QUEUE_ID, offset, 1) if offset >= least else ()
            for unit in units:
                left_bytes -= unit.size_bytes
                found.append((offset, unit))
            if left_bytes < 0 and offsets:
                del found[-1:]
                break
            offsets.append(offset)
        store.check_records([(unit.physical_offset, unit.size_bytes) for _, unit in found])
        if lost := [each for each in offsets if each < least]:
            tell(self.on_unreadable, Mishap(len(lost), QUEUE_ID, lost[0]))
        batch, not_heard = DueMessages(self._intake), list[int]()
        with_topic = store.config.append_topic_for_timer_delete_key
        for offset, unit in found:
            record = store.message_at(unit.physical_offset, unit.size_bytes, is_checked=True)
            if record is not None:
                waiting = waiting_of(record)
                if self._window.is_withdrawn(due_ms, waiting.delete_key(with_topic=with_topic)):
                    continue
                if waiting.real_topic == self._revive.topic:
                    if not self._revive.hear(record, due_ms, now_ms):
                        not_heard.append(offset)
                    continue
            batch.add(offset, record, stamps(NEVER_ENQUEUED, now_ms))
        return batch, offsets, not_heard

    def _count(self, arrived: Iterable[DueMessage]) -> None:
        for each in arrived:
            self._timers.metrics.left(each.message.topic)
            self._timers.metrics.add(each.message.topic, -1)

    # --- progress ---

    def _keep(self, now_ms: int) -> None:
        """Keeps how far it is, if it acts."""
        if not self._has_begun:
            return
        end, (known_ms, _) = self._known
        reached_ms = min(self._window.open_ms(), known_ms, self._timers.floored(now_ms))
        heard_ms = self._revive.heard_ms()
        reached_ms = reached_ms if heard_ms is None else min(reached_ms, heard_ms)
        if (end, reached_ms) != self._timers.settled:
            self._timers.follow(
                TimerProgress(
                    reached_ms, queue_offset=end, state_version=BY_ESCAPE, timestamp_ms=now_ms
                )
            )


def _put(due: DueMessage) -> PutMessage:
    message = due.message
    return message if isinstance(message, PutMessage) else message.to_put()
