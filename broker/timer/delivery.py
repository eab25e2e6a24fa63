# SPDX-License-Identifier: Apache-2.0
"""Delivers timer messages through the intake to the queues to which they were sent.

Each message gets TIMER_ENQUEUE_MS and TIMER_DEQUEUE_MS, the times at which it entered and left the
wheel; for one that came too late and never was in the wheel, the former is the largest long. A
rolled message is put into the timer topic once more, and TIMER_ROLL_TIMES counts that. A message
that no topic can take becomes a dead letter of the timer topic, as delayed messages do; while the
store takes nothing, all wait. The original tries three times and drops it.

Java: TimerMessageStore.convert, doPut, TimerDequeuePutMessageService.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from txrocketmq.broker.delays.due_message import DueMessage, DueMessages, put_due
from txrocketmq.broker.engines.engine import DeliveryEngine
from txrocketmq.broker.intake.inner_message import InnerMessage, packed
from txrocketmq.broker.intake.intake import Intake
from txrocketmq.broker.timer.metrics import TimerMetrics
from txrocketmq.broker.work.mishap import Mishap, tell
from txrocketmq.remoting.message import properties as names
from txrocketmq.remoting.message.message import MessageDecodeError, decode_message
from txrocketmq.remoting.message.topics import DLQ_PREFIX, TIMER_TOPIC

MAX_BATCH: Final = 128
"""How many messages are put at once."""
MAX_BATCH_BYTES: Final = 512 * 1024
"""How many bytes of records are put at once; a single larger message is put alone."""
NEVER_ENQUEUED: Final = (1 << 63) - 1
DEAD_LETTER_TOPIC: Final = DLQ_PREFIX + TIMER_TOPIC
"""The topic of timer messages that cannot be delivered. It has one queue."""


class Delivery:
    """Puts batches of messages, and counts them; the listeners of the engine are told."""

    def __init__(self, intake: Intake, metrics: TimerMetrics, engine: DeliveryEngine) -> None:
        self._engine = engine
        self._intake = intake
        self._metrics = metrics
        self.delivered = 0
        """How many messages left the timer topic since the start."""

    def batch(self) -> DueMessages:
        """An empty batch."""
        return DueMessages(self._intake)

    def unread(self, places: Sequence[int]) -> None:
        """Tells the places of records that cannot be read."""
        if places:
            self.lost(len(places), places[0])

    def lost(self, number: int, place: int) -> None:
        """Tells that messages are passed over, by the place of the first one."""
        if number > 0:
            tell(self._engine.on_unreadable, Mishap(number, 0, place))

    def put(
        self, batch: DueMessages, done: set[int], now_ms: int, *, was_enqueued: bool
    ) -> int | None:
        """Puts a batch; adds to `done` the offsets of messages that were put.

        Returns the offset of the first message that the store refuses for now; None without one.
        `was_enqueued` tells whether they were in the wheel, and counted there.
        """
        due = list(batch.messages)
        refused = put_due(self._intake, due, done, now_ms)
        put = [each for each in due if each.offset in done]
        self.delivered += len(put)
        for each in put:
            if topic := _topic_of(each):
                self._metrics.left(topic)
        if was_enqueued:
            for each in put:
                self._metrics.add(_topic_of(each), -1)
        self.unread(batch.unread)
        dead = [each for each in put if each.is_dead]
        if dead:
            first = dead[0]
            tell(
                self._engine.on_dead_letters,
                Mishap(len(dead), 0, first.offset, first.message.topic, first.why),
            )
        if refused is None:
            return None
        due_first, status = refused
        tell(
            self._engine.on_refused,
            Mishap(1, 0, due_first.offset, due_first.message.topic, status.name),
        )
        return refused[0].offset


def _topic_of(each: DueMessage) -> str:
    topic = each.message.topic
    if topic == TIMER_TOPIC or each.is_dead:
        return each.stored.properties.get(names.REAL_TOPIC, "")
    return topic


def stamps(enqueued_ms: int, now_ms: int) -> dict[str, str]:
    """The properties that a message gets on its way."""
    return {names.TIMER_ENQUEUE_MS: str(enqueued_ms), names.TIMER_DEQUEUE_MS: str(now_ms)}


def rolled(offset: int, record: memoryview, enqueued_ms: int, now_ms: int) -> DueMessage | None:
    """Makes a message for the end of the timer topic, as it is due later; None if damaged."""
    try:
        stored = decode_message(record, decompress_body=False)[0]
    except MessageDecodeError:
        return None
    message = InnerMessage.of_stored(stored, TIMER_TOPIC, 0, packed(stored.store_host))
    times = message.properties.get(names.TIMER_ROLL_TIMES, "")
    number = int(times) if times.isascii() and times.isdigit() and len(times) < 10 else 0
    message.properties[names.TIMER_ROLL_TIMES] = str(number + 1)
    message.properties.update(stamps(enqueued_ms, now_ms))
    return DueMessage(offset, record, message)
