# SPDX-License-Identifier: Apache-2.0
"""Takes messages from the queue of the timer topic into the timer log and the wheel, in order.

A message that was due before the current slot is delivered at once and never enters the wheel; a
message that withdraws such a one comes too late and does nothing. A message that does not say when
it is due, as it was sent to the topic by hand, is taken to be due; the original stops there for
ever.

Java: TimerMessageStore.enqueue, TimerEnqueueGetService, TimerEnqueuePutService.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from txrocketmq.broker.store.get.jumps import TIMERS, Jump
from txrocketmq.broker.store.message_store import MessageStore
from txrocketmq.broker.store.queues.consume_queue import Unit
from txrocketmq.broker.timer.delivery import MAX_BATCH_BYTES, NEVER_ENQUEUED, Delivery, stamps
from txrocketmq.broker.timer.metrics import TimerMetrics
from txrocketmq.broker.timer.timer_message import TimerMessage, born_ms, waiting_of
from txrocketmq.broker.timer.timer_store import QUEUE_ID, TimerStore
from txrocketmq.broker.work.patience import Reading
from txrocketmq.remoting.message.tags import java_string_hash
from txrocketmq.remoting.message.topics import TIMER_TOPIC

_NOTHING: Final = TimerMessage(0, "", "", "")
_BATCH: Final = 64
"""How many messages of the queue are examined in one step."""


class Enqueue:
    """Fills the timer log and the wheel."""

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
        self._done: set[int] = set()
        """Offsets beyond the progress whose messages were delivered already."""
        self.trouble: OSError | None = None
        """Why the last message could not be put into the wheel."""
        self.count = 0
        """How many messages were put into the wheel since the start."""
        self.on_trouble: list[Callable[[OSError | None], None]] = []
        """Called with the reason when the wheel takes no message, and with None afterwards."""

    @property
    def queue_end(self) -> int:
        """The offset after the queue's last message."""
        return self._messages.max_offset(TIMER_TOPIC, QUEUE_ID)

    @property
    def behind(self) -> int:
        """How many messages of the queue were not examined yet."""
        return max(self.queue_end - self._timers.queue_offset, 0)

    def behind_since_ms(self) -> int:
        """When the first message not examined yet was stored, in ms; -1 if there is none."""
        if not self.behind:
            return -1
        return self._messages.store_time_at(TIMER_TOPIC, QUEUE_ID, self._timers.queue_offset)

    def step(self, now_ms: int, steady_ms: int) -> bool:
        """Takes some messages of the queue; returns whether there may be more to do.

        Raises NotInMemory.
        """
        timers, messages = self._timers, self._messages
        if timers.config.timer_stop_enqueue:
            return False
        self._skip_lost()
        offset = timers.queue_offset
        units = self._units(offset)
        if not units:
            return False
        due, left_bytes, end = self._delivery.batch(), MAX_BATCH_BYTES, offset
        filed: list[tuple[int, int]] = []
        for physical_offset, size, _ in units:
            record = messages.message_at(physical_offset, size, is_checked=True)
            waiting = _NOTHING if record is None else waiting_of(record)
            if timers.is_settled(end, physical_offset, waiting.out_ms):
                filed.append((end, physical_offset))
            elif record is not None and waiting.out_ms >= timers.first_open_ms:
                if not self._put(waiting, physical_offset, size):
                    self._reading.pause(steady_ms)
                    break
                filed.append((end, physical_offset))
                if waiting.real_topic:
                    self._metrics.entered(waiting.real_topic, waiting.out_ms - born_ms(record))
            elif not waiting.takes_back and end not in self._done:
                if size > left_bytes < MAX_BATCH_BYTES or due.is_full:
                    break
                left_bytes -= size
                due.add(end, record, stamps(NEVER_ENQUEUED, now_ms))
            end += 1
        refused = self._delivery.put(due, self._done, now_ms, was_enqueued=False)
        if refused is None:
            self._done.clear()
        else:
            self._reading.pause(steady_ms)
            timers.known.update(place for at, place in filed if at > refused)
            end = refused
        timers.queue_offset = end
        timers.changes += 1
        return refused is None

    def _skip_lost(self) -> None:
        """Goes on behind messages that the log has lost before they were examined."""
        timers, messages = self._timers, self._messages
        at, least = timers.queue_offset, messages.min_offset(TIMER_TOPIC, QUEUE_ID)
        if at >= least:
            return
        count = least - at - sum(each < least for each in self._done)
        is_known = timers.has_progress or at > 0
        messages.jumps.found(Jump(TIMERS, TIMER_TOPIC, QUEUE_ID, at, least, count, "", is_known))
        timers.queue_offset = least
        timers.changes += 1

    def _units(self, offset: int) -> list[Unit]:
        """The units of the queue's next messages; raises NotInMemory when those are not."""
        messages = self._messages
        units = list(messages.queue_units(TIMER_TOPIC, QUEUE_ID, offset, _BATCH))
        messages.check_records([(at, size) for at, size, _ in units])
        return units

    def tell(self, trouble: OSError | None) -> None:
        """Notes why the files cannot be written, or that they can."""
        self.trouble = trouble
        for heard in self.on_trouble:
            heard(trouble)

    def _put(self, waiting: TimerMessage, physical_offset: int, size: int) -> bool:
        """Puts a message into the timer log and the wheel; returns False without room."""
        topic, takes_back = waiting.real_topic, bool(waiting.takes_back)
        place = physical_offset, size, java_string_hash(topic) if topic else 0
        try:
            self._timers.put(waiting.out_ms, place, takes_back=takes_back)
        except OSError as error:
            self.tell(error)
            return False
        self.tell(None)
        self.count += 1
        self._metrics.add(topic, -1 if takes_back else 1)
        return True
