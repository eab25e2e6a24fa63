# SPDX-License-Identifier: Apache-2.0
"""Takes what is due from the wheel, slot by slot, and delivers it.

The chain of a slot is walked from its end; then its messages are delivered in the order in which
they came, except those withdrawn by others of the same chain. A slot is finished when all of it is;
after a crash in between it is delivered once more. Only the positions of one slot's units are held
in memory.

A chain that does not lead to its beginning is broken: the wheel is then made anew from the timer
log, and if that does not help, the timer log from the queue.

Java: TimerMessageStore.dequeue, TimerDequeueGetService, TimerDequeueGetMessageService.
"""

from __future__ import annotations

from array import array
from typing import Final

from txrocketmq.broker.store.message_store import MessageStore
from txrocketmq.broker.store.timers.timer_log import NONE, UNIT_BYTES, TimerUnit
from txrocketmq.broker.timer.delivery import (
    MAX_BATCH,
    MAX_BATCH_BYTES,
    Delivery,
    rolled,
    stamps,
)
from txrocketmq.broker.timer.metrics import TimerMetrics
from txrocketmq.broker.timer.timer_message import queue_offset, waiting_of
from txrocketmq.broker.timer.timer_store import TimerStore
from txrocketmq.broker.work.patience import Reading

_EMPTY_SLOTS: Final = 1_000
"""How many empty slots are passed in one step."""
_WALK: Final = 500
"""How many units of a chain are examined in one step."""


class BrokenChain(Exception):
    """A slot or a unit does not lead to a unit of the same time."""


class _DueSlot:
    """A slot that is being delivered; positions are in the timer log, the newest first."""

    def __init__(self, due_ms: int, last_pos: int) -> None:
        self.due_ms = due_ms
        self.next_pos = last_pos
        """The position of the unit that the walk has reached."""
        self.left = array("q")
        self.takings_back = array("q")
        self.keys: dict[str, str] = {}
        """By key of a message that is withdrawn: the topic of the message that withdraws it."""
        self.found: set[str] = set()
        """The keys of messages that were withdrawn."""
        self.done: set[int] = set()


class Dequeue:
    """Delivers what is due."""

    def __init__(
        self,
        messages: MessageStore,
        timers: TimerStore,
        delivery: Delivery,
        metrics: TimerMetrics,
        reading: Reading,
    ) -> None:
        self._messages = messages
        self._timers = timers
        self._delivery = delivery
        self._metrics = metrics
        self._reading = reading
        self._slot: _DueSlot | None = None

    def forget(self) -> None:
        """Begins again with the slot, as the wheel was made anew."""
        self._slot = None
        self._timers.is_slot_begun = False

    def step(self, now_ms: int, steady_ms: int, *, may_begin: bool = True) -> bool:
        """Delivers some of what is due; returns whether there may be more to do.

        Begins a new slot only with `may_begin`. Raises BrokenChain and NotInMemory.
        """
        timers = self._timers
        if timers.config.timer_stop_dequeue or (self._slot is None and not may_begin):
            return False
        if self._slot is None:
            for _ in range(_EMPTY_SLOTS):
                if timers.read_ms >= timers.write_ms:
                    return False
                slot = timers.wheel.slot(timers.read_ms)
                if slot is not None:
                    self._slot = _DueSlot(timers.read_ms, slot.last_pos)
                    timers.is_slot_begun = True
                    break
                timers.done_with_slot()
            return True
        if self._slot.next_pos != NONE:
            return self._walk(self._slot)
        if self._slot.takings_back:
            return self._read_takings_back(self._slot)
        if self._slot.left:
            return self._deliver(self._slot, now_ms, steady_ms)
        for key, topic in self._slot.keys.items():
            if key not in self._slot.found:
                self._metrics.add(topic, 1)  # there was nothing to be taken back
        timers.done_with_slot()
        self._slot = None
        return True

    def _walk(self, slot: _DueSlot) -> bool:
        """Examines some units of the chain; returns True: there is more to do."""
        log, wheel = self._timers.log, self._timers.wheel
        for _ in range(_WALK):
            at = slot.next_pos
            if at < max(log.files.min_offset, 0):
                if at != NONE:  # the beginning of the chain has expired
                    self._tell_expired(slot, at)
                slot.next_pos = NONE
                return True
            file = log.files.find(at)
            if file is not None:
                start = at - file.from_offset
                self._messages.check_part(file, start, start + UNIT_BYTES)
            unit = log.unit(at)
            if unit is None or wheel.floored(unit.due_ms) != slot.due_ms:
                raise BrokenChain
            (slot.takings_back if unit.takes_back else slot.left).append(at)
            slot.next_pos = unit.prev_pos
        return True

    def _tell_expired(self, slot: _DueSlot, position: int) -> None:
        """Tells how many messages of a chain the timer log has lost, as the commit log had lost
        their records before.
        """
        counted = self._timers.wheel.slot(slot.due_ms)
        found = len(slot.left) - len(slot.takings_back)
        count = 0 if counted is None else counted.num - found
        self._delivery.lost(count, position)

    def _units(self, positions: array[int]) -> list[tuple[int, TimerUnit]]:
        """The oldest units of a batch of limited size."""
        units: list[tuple[int, TimerUnit]] = []
        left_bytes = MAX_BATCH_BYTES
        for position in reversed(positions[-MAX_BATCH:]):
            unit = self._timers.log.unit(position)
            if unit is None:
                raise BrokenChain
            if unit.size_bytes > left_bytes and units:
                break
            left_bytes -= unit.size_bytes
            units.append((position, unit))
        places = [(unit.physical_offset, unit.size_bytes) for _, unit in units]
        self._messages.check_records(places)
        return units

    def _record(self, unit: TimerUnit) -> memoryview | None:
        """The message of a unit; None when there is none, or a different one."""
        record = self._messages.message_at(unit.physical_offset, unit.size_bytes)
        if record is None or unit.is_rolled:
            return record
        # In a wheel made anew, a message that has waited for too long has a unit with another time.
        return record if waiting_of(record).out_ms <= unit.due_ms else None

    def _read_takings_back(self, slot: _DueSlot) -> bool:
        """Reads some messages that withdraw others; returns True: there is more to do."""
        units = self._units(slot.takings_back)
        unread: list[int] = []
        for position, unit in units:
            record = self._record(unit)
            if record is None:
                unread.append(position)
                continue
            waiting = waiting_of(record)
            slot.keys[waiting.takes_back] = waiting.real_topic
        del slot.takings_back[-len(units) :]
        self._delivery.unread(unread)
        return True

    def _deliver(self, slot: _DueSlot, now_ms: int, steady_ms: int) -> bool:
        """Delivers some messages; returns whether to go on."""
        units = self._units(slot.left)
        batch = self._delivery.batch()
        for taken, (position, unit) in enumerate(units):
            if batch.is_full:
                del units[taken:]
                break
            if position in slot.done:
                continue
            record = self._record(unit)
            if record is not None and self._is_elsewhere(slot, record):
                slot.done.add(position)
                continue
            if record is not None and unit.is_rolled:
                again = rolled(position, record, unit.written_ms, now_ms)
                if again is not None:
                    batch.messages.append(again)
                    continue
                record = None
            if record is not None and slot.keys and self._is_taken_back(slot, record):
                slot.done.add(position)
                continue
            batch.add(position, record, stamps(unit.written_ms, now_ms))
        slot.done.update(batch.unread)
        refused = self._delivery.put(batch, slot.done, now_ms, was_enqueued=True)
        del slot.left[-len(units) :]
        if refused is None:
            slot.done.clear()
            return True
        slot.left.extend(at for at, _ in reversed(units) if at not in slot.done)
        self._reading.pause(steady_ms)
        return False

    def _is_elsewhere(self, slot: _DueSlot, record: memoryview) -> bool:
        """Whether a slave has sent the message to another master, or withdrawn it."""
        if slot.due_ms >= self._timers.elsewhere_ms:
            return False
        waiting = waiting_of(record)
        if not self._timers.is_elsewhere(queue_offset(record), waiting.out_ms):
            return False
        if not self._is_taken_back(slot, record):
            self._metrics.add(waiting.real_topic, -1)
        return True

    def _is_taken_back(self, slot: _DueSlot, record: memoryview) -> bool:
        waiting = waiting_of(record)
        if not waiting.uniq_key:
            return False
        with_topic = self._timers.config.append_topic_for_timer_delete_key
        key = waiting.delete_key(with_topic=with_topic)
        if key not in slot.keys:
            return False
        slot.found.add(key)
        return True
