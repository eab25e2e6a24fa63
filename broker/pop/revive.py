# SPDX-License-Identifier: Apache-2.0
"""Brings back messages that were popped and not acknowledged in time.

The revive topic is read as it grows. Its check points wait here until their time is over, and acks
are noted with them; a check point whose messages are all acknowledged is done. The messages left of
the others go to the retry topic of the group, with one more attempt counted. A message that cannot
be put there gets a check point of its own, at the end of the queue, with a longer time. The
progress of each queue is kept under CID_RMQ_SYS_REVIVE_GROUP, as the offset of the last finished
record, and only when the log is durable up to there: a crash may bring a message back twice, and
loses none. The number of waiting check points is limited; beyond that the queues are read on when
there is room again, and messages acknowledged meanwhile may come back all the same. In the original
each record is delivered to the topic by the timer when it is due, an acknowledgement a second after
its check point. Here it is written at once, and its time is checked on reading; both kinds of
records are understood, and a check point that was delivered waits a little for what follows it.

A slave that acts as master with enableRemoteEscape sends the messages to other masters of the
cluster that have the retry topic. It puts no check points, so what nobody takes is sent again after
ten seconds. The original loses such a message, as its master takes the slave's progress over.

A slave of the original sends its check points, and acknowledgements, instead. Their messages are
not here: they are fetched when they are due, from whoever has them (popped_elsewhere.py), and put
into the retry topic here. Acknowledgements may come into another queue than the check point. While
nobody has the messages, the check point is put again, with a longer time.

Java: PopReviveService.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from txrocketmq.broker.engines.engine import Engine, Escapes
from txrocketmq.broker.intake.intake import Intake
from txrocketmq.broker.intake.new_queues import NewQueues
from txrocketmq.broker.pop.in_flight import InFlight
from txrocketmq.broker.pop.metrics import ACK, CK, PopMetrics
from txrocketmq.broker.pop.records import (
    Acks,
    OtherCheckPoint,
    PopCheckPoint,
    ReviveTopic,
)
from txrocketmq.broker.pop.replaced_check_points import Replaced
from txrocketmq.broker.pop.waiting import (
    MAX_BATCH,
    REPUT_S,
    ByTime,
    ForeignCheckPoints,
    Revival,
    Revivals,
    ReviveQueue,
    Waiting,
)
from txrocketmq.broker.settings.config import BrokerConfig
from txrocketmq.broker.store.disk.steps import Steps, items_in_memory, when_in_memory
from txrocketmq.broker.store.formats.put_message import PutStatus
from txrocketmq.broker.store.formats.scan import store_timestamp_ms
from txrocketmq.broker.store.get.jumps import REVIVAL, Jump
from txrocketmq.broker.tables.offset import NOT_FOUND, ConsumerOffsets
from txrocketmq.broker.tables.subscription import SubscriptionGroups
from txrocketmq.broker.tables.topic import Topics
from txrocketmq.broker.work import notices
from txrocketmq.broker.work.life import Hears, Life, SlicedBeat
from txrocketmq.broker.work.mishap import Mishap, MishapListener, tell
from txrocketmq.broker.work.patience import Patience
from txrocketmq.broker.work.progress import DurableProgress
from txrocketmq.remoting.message.pop import REVIVE_GROUP

MAX_WAITING: Final = 200_000
"""How many check points wait at once, of all queues together."""
MAX_READ: Final = 64
"""How many records of a queue are read at once."""
MAX_BATCH_BYTES: Final = 512 * 1024
RETRY_MS: Final = 10_000
"""How long bringing back pauses when the store takes nothing, in ms."""
_HEARD: Final = -1
"""Stands for the queue of check points that do not come into the topic."""
_NOT_TAKEN: Final = "PUT_TO_REMOTE_BROKER_FAIL"
"""The name that the original has for what another master has not taken."""


class Revive(Engine):
    """Brings messages back; `tick` must be called every reviveInterval."""

    def __init__(  # noqa: PLR0913 - what it works with, by name
        self,
        config: BrokerConfig,
        intake: Intake,
        topics: Topics,
        groups: SubscriptionGroups,
        offsets: ConsumerOffsets,
        revive_topic: ReviveTopic,
        in_flight: InFlight,
        replaced: Replaced,
        *,
        metrics: PopMetrics,
        patience: Patience,
    ) -> None:
        super().__init__(intake.store, patience)
        self._config = config
        self._intake = intake
        self._store = intake.store
        self._offsets = offsets
        self._topic = revive_topic
        self._in_flight = in_flight
        self._metrics = metrics
        self._revivals = Revivals(
            config, intake.store, topics, groups, offsets, revive_topic, replaced
        )
        self._queues: dict[int, ReviveQueue] = {}
        self._heard = ReviveQueue(_HEARD, 0)
        self._by_time = ByTime()
        self.others = ForeignCheckPoints(self._revivals)
        self._count = 0
        self._paused_until_ms = 0
        self._awaited = DurableProgress[dict[int, int]](self._store)
        """Progress by queue that can be saved once the log is durable."""
        self.on_refused: list[MishapListener] = []
        """Called when the store takes no messages for now, so that they wait on."""
        self._escaping: list[Revival] | None = None
        """What is on its way to other masters."""
        self.on_not_taken: list[MishapListener] = []
        """Called when no other master takes messages, so that they wait."""

    def __len__(self) -> int:
        """How many check points wait."""
        return self._count

    def work(self, now_ms: int, steady_ms: int, is_time_up: Callable[[], bool]) -> None:
        """Reads new records and brings back what is due."""
        self.settle()
        if self._escaping is not None or self.reading.is_busy(steady_ms):
            return
        self._look()
        self.reading.work(lambda: self._go_on(now_ms, steady_ms, is_time_up), steady_ms)
        self.is_behind |= self.reading.is_to_go_on

    def _go_on(self, now_ms: int, steady_ms: int, is_time_up: Callable[[], bool]) -> None:
        while True:
            is_read = False
            for queue in list(self._queues.values()):
                if not self._read(queue):
                    continue
                is_read = True
                # It is the last one now: the next slice goes on with the others.
                self._queues[queue.queue_id] = self._queues.pop(queue.queue_id)
                if is_time_up():
                    self.is_behind = True
                    return
            # First, so that all acknowledgements are known before anything is brought back.
            if not is_read and not self._bring_back(now_ms, steady_ms):
                return
            if is_time_up():
                self.is_behind = True
                return

    def forget(self) -> None:
        """Forgets all queues; what other masters have taken meanwhile may be sent once more."""
        super().forget()
        self._queues.clear()
        self._heard = ReviveQueue(_HEARD, 0)
        self._by_time = ByTime()
        self.others.forget()
        self._count = self._paused_until_ms = 0
        self._awaited.forget()
        self._escaping = None

    @property
    def topic(self) -> str:
        """The name of the revive topic."""
        return self._topic.name

    def hear(self, record: memoryview, due_ms: int, now_ms: int) -> bool:
        """Takes a record that waited as a timer until this time, and does not come into the topic;
        returns False without room. So it is at a slave of an original master.
        """
        if self._count >= MAX_WAITING:
            return False
        found = self._topic.read(record)
        if isinstance(found, PopCheckPoint | OtherCheckPoint):
            self._wait(self._heard, found, due_ms, now_ms)
        elif isinstance(found, Acks):
            self._acked_anywhere(found)
        else:
            tell(self.on_unreadable, Mishap(1, offset=due_ms))
        return True

    def heard_ms(self) -> int | None:
        """The time of the first check point that was heard, and is not done; None without any."""
        return self._heard.done_offset + 1 if self._heard.waiting else None

    def settle(self) -> None:
        """Saves the progress as far as the log is durable."""
        progress = self._awaited.latest(
            lambda: {queue_id: queue.done_offset for queue_id, queue in self._queues.items()}
        )
        for queue_id, offset in (progress or {}).items():
            queue = self._queues[queue_id]
            if offset > queue.kept:
                self._offsets.commit(REVIVE_GROUP, self._topic.name, queue_id, offset)
                queue.kept = offset

    def life(self) -> Life:
        """What was not acknowledged is brought back."""
        return Life(
            "revival of popped messages",
            hears=(
                Hears(self.on_refused, notices.not_brought_back),
                Hears(self.on_unreadable, notices.revive_record_unreadable),
                Hears(self.on_not_taken, partial(notices.not_taken, "popped")),
            ),
            beats=(SlicedBeat(self._config.revive_interval, self),),
        )

    def behind(self, now_ms: int) -> Steps[list[tuple[int, int, int]]]:
        """Returns for each queue its id, how many records are not read, and their age in ms.

        The age is at least the time by which the first check point of all is late.
        """
        found, store, name = [], self._store, self._topic.name
        first = self._by_time.first(now_ms)
        for queue_id, queue in sorted(self._queues.items()):
            unread = max(store.max_offset(name, queue_id) - queue.next_offset, 0)
            look = partial(store.store_time_at, name, queue_id, queue.next_offset)
            stored_ms = (yield from when_in_memory(look)) if unread else -1
            late_ms = now_ms - stored_ms if stored_ms >= 0 else 0
            if first is not None and first.queue_id == queue_id:
                late_ms = max(late_ms, now_ms - first.due_ms)
            found.append((queue_id, unread, max(late_ms, 0)))
        return found

    # ---------------------------------------------------------------- reading

    def _look(self) -> None:
        """Adds queues that are new."""
        name = self._topic.name
        for queue_id in self._store.queue_ids(name):
            if queue_id in self._queues:
                continue
            kept = self._offsets.query(REVIVE_GROUP, name, queue_id)
            top = self._store.max_offset(name, queue_id) - 1
            self._queues[queue_id] = ReviveQueue(queue_id, min(max(kept, NOT_FOUND), top))

    def _read(self, queue: ReviveQueue) -> bool:
        """Reads some records of a queue; returns False without any, or without room."""
        store, name, queue_id = self._store, self._topic.name, queue.queue_id
        offset, least = queue.next_offset, store.min_offset(name, queue_id)
        if offset < least:
            is_known = queue.kept != NOT_FOUND or offset > 0
            count = least - offset
            store.jumps.found(
                Jump(REVIVAL, name, queue_id, offset, least, count, is_known=is_known)
            )
            offset = queue.next_offset = least
        count = min(MAX_READ, store.max_offset(name, queue_id) - offset)
        if count <= 0 or self._count >= MAX_WAITING:
            return False
        units = list(store.queue_units(name, queue_id, offset, count))
        store.check_records([(at, size) for at, size, _ in units])
        for physical_offset, size, _ in units:
            record = store.message_at(physical_offset, size, is_checked=True)
            found = None if record is None else self._topic.read(record)
            if isinstance(found, PopCheckPoint | OtherCheckPoint):
                self._wait(
                    queue, found, offset, 0 if record is None else store_timestamp_ms(record)
                )
                self._metrics.has_read(found.key, CK, queue_id)
            elif isinstance(found, Acks):
                if found.key.broker_name == self._topic.broker_name:
                    self._acked(queue, found)
                else:
                    self._acked_anywhere(found)
                self._metrics.has_read(found.key, ACK, queue_id)
            else:
                tell(self.on_unreadable, Mishap(1, queue_id, offset))
            offset += 1
        read = offset - queue.next_offset
        queue.next_offset = offset if read else offset + 1  # a unit that cannot be read
        return True

    def _wait(
        self,
        queue: ReviveQueue,
        found: PopCheckPoint | OtherCheckPoint,
        offset: int,
        stored_ms: int,
    ) -> None:
        is_elsewhere = isinstance(found, OtherCheckPoint)
        point = found.point if isinstance(found, OtherCheckPoint) else found
        before = queue.waiting.get(point.key)
        if before is not None:
            self._done(before)
        waiting = Waiting(point, queue.queue_id, offset, stored_ms, is_elsewhere=is_elsewhere)
        if waiting.left:
            queue.waiting[point.key] = waiting
            self._times_of(waiting).add(waiting)
            self._count += 1

    def _times_of(self, waiting: Waiting) -> ByTime:
        return self.others.by_time if waiting.is_elsewhere else self._by_time

    def _acked_anywhere(self, acks: Acks) -> None:
        for queue in (*self._queues.values(), self._heard):
            self._acked(queue, acks)

    def _acked(self, queue: ReviveQueue, acks: Acks) -> None:
        done = queue.acknowledged(acks)
        if done is not None:
            self._done(done)

    def _done(self, waiting: Waiting) -> None:
        del self._queue_of(waiting).waiting[waiting.point.key]
        self._by_time.remove(waiting)
        self.others.remove(waiting)
        self._count -= 1

    def _queue_of(self, waiting: Waiting) -> ReviveQueue:
        return self._queues.get(waiting.queue_id, self._heard)

    # ------------------------------------------------- messages of other brokers

    def _bring_back_other(self, now_ms: int, steady_ms: int) -> bool:
        """Brings back what was fetched for a check point; returns whether there is any.

        If nobody has the messages, it waits longer.
        """
        self.others.fetch(now_ms)
        found = self.others.take()
        if found is None:
            return False
        waiting, back = found
        if back is not None:
            self._put_or_send([back], now_ms, steady_ms)
        elif self.escape is None and self._put_off(waiting, now_ms):
            self._done(waiting)
        else:
            waiting.due_ms = now_ms + RETRY_MS
            self.others.by_time.add(waiting)
        return True

    def _put_off(self, waiting: Waiting, now_ms: int) -> bool:
        """Puts a check point again, with a longer time; as `_reput` does for a message."""
        if self._is_given_up(waiting):
            return True
        record = self._topic.other_check_point(waiting.longer(), waiting.queue_id, now_ms)
        return self._intake.take([record], now_ms)[0] is PutStatus.PUT_OK

    def _is_given_up(self, waiting: Waiting) -> bool:
        is_last = waiting.point.times_put_again() >= len(REPUT_S)
        return is_last and self._config.skip_when_ck_re_put_reach_max_times

    # ----------------------------------------------------------- bringing back

    def _bring_back(self, now_ms: int, steady_ms: int) -> bool:
        """Brings back a batch of messages that are due; returns whether there may be more."""
        if steady_ms < self._paused_until_ms:
            return False
        if self._bring_back_other(now_ms, steady_ms):
            return self._escaping is None
        batch: list[Revival] = []
        count = size_bytes = 0
        new_queues, is_full = NewQueues(self._store), False
        due = iter(partial(self._by_time.first, now_ms), None)
        for back in items_in_memory(map(self._revivals.of, due)):
            self._by_time.remove(back.waiting)
            batch.append(back)
            count += len(back.messages)
            for _, message in back.messages:
                size_bytes += len(message.body)
                place = message.topic, message.queue_id
                if place not in new_queues.seen:
                    is_full = new_queues.are_enough_with(*place)
            if is_full or count >= MAX_BATCH or size_bytes >= MAX_BATCH_BYTES:
                break
        if not batch:
            return False
        self._put_or_send(batch, now_ms, steady_ms)
        return self._escaping is None

    def _put_or_send(self, batch: list[Revival], now_ms: int, steady_ms: int) -> None:
        if self.escape is not None:
            self._send_elsewhere(self.escape, batch, now_ms, steady_ms)
            return
        for back in batch:
            if back.messages:
                self._revivals.make_topic(back)
        self._put(batch, now_ms, steady_ms)

    def _send_elsewhere(
        self, escape: Escapes, batch: list[Revival], now_ms: int, steady_ms: int
    ) -> None:
        """Sends a batch to other masters; what has not arrived is due again later."""
        self._escaping = batch

        def answered(has: list[bool]) -> None:
            if self._escaping is not batch:
                return  # it acts no more
            self._escaping = None
            arrived, left = iter(has), 0
            for back in batch:
                waiting = back.waiting
                key = waiting.point.key
                failed = set[int]()
                for distance, _ in back.messages:
                    is_there = next(arrived)
                    self._metrics.retried(key, "PUT_OK" if is_there else _NOT_TAKEN)
                    if not is_there:
                        failed.add(distance)
                left += len(failed)
                if self._queue_of(waiting).waiting.get(key) is waiting:  # it may be acknowledged
                    self._sent(back, failed, now_ms)
            if left:
                tell(self.on_not_taken, Mishap(left, topic=flat[has.index(False)].topic))
            if has and not any(has):
                self._paused_until_ms = steady_ms + RETRY_MS

        flat = [message.to_put() for back in batch for _, message in back.messages]
        if flat:
            escape.put(flat, answered)
        else:
            answered([])

    def _sent(self, back: Revival, failed: set[int], now_ms: int) -> None:
        """Finishes a check point, or has it wait with what has not arrived."""
        waiting = back.waiting
        if failed:
            waiting.due_ms = now_ms + RETRY_MS
            if not back.is_by_record:
                waiting.left &= back.left_of(failed)
            self._times_of(waiting).add(waiting)
        elif not self._has_rest(back):
            self._done(waiting)

    def _put(self, batch: Sequence[Revival], now_ms: int, steady_ms: int) -> None:
        flat = [message for back in batch for _, message in back.messages]
        statuses = iter(self._intake.take(flat, now_ms) if flat else ())
        is_all = True
        refused: list[tuple[str, PutStatus]] = []
        for back in batch:
            point = back.waiting.point
            failed: list[int] = []
            for distance, _ in back.messages:
                status = next(statuses)
                self._metrics.retried(point.key, status.name)
                if status is not PutStatus.PUT_OK:
                    failed.append(distance)
                    refused.append((point.topic or "", status))
            is_all &= self._settle_one(back, failed, now_ms)
        if refused:
            topic, status = refused[0]
            tell(self.on_refused, Mishap(len(refused), topic=topic, why=status.name))
        if not is_all:
            self._paused_until_ms = steady_ms + RETRY_MS

    def _settle_one(self, back: Revival, failed: Sequence[int], now_ms: int) -> bool:
        """Finishes a check point, or puts failed messages again.

        Returns False when it has to wait on, since the store takes nothing; what was put of a
        batch then comes again.
        """
        waiting, count = back.waiting, len(back.messages)
        point = waiting.point
        topic, group = point.topic or "", point.group or ""
        if not waiting.is_elsewhere:
            self._in_flight.add(topic, group, point.queue_id, len(failed) - count)
        if failed:
            left = {distance for distance in failed if not self._reput(back, distance, now_ms)}
            if left:
                if not back.is_by_record:
                    waiting.left = back.left_of(left)
                self._times_of(waiting).add(waiting)
                return False
        if not self._has_rest(back):
            self._done(waiting)
        return True

    def _has_rest(self, back: Revival) -> bool:
        """Has a check point go on with the messages that are left of its records, if any are."""
        if back.rest is None:
            return False
        back.waiting.go_on_at(*back.rest)
        self._times_of(back.waiting).add(back.waiting)
        return True

    def _reput(self, back: Revival, distance: int, now_ms: int) -> bool:
        """Puts a check point for one message at the end of the queue.

        Returns whether it was taken, or is given up after too many attempts.
        """
        waiting, topic = back.waiting, self._topic
        if self._is_given_up(waiting):
            return True
        again = waiting.again(distance, is_by_message=back.is_by_record or None)
        put = topic.other_check_point if waiting.is_elsewhere else topic.check_point
        record = put(again, waiting.queue_id, now_ms)
        return self._intake.take([record], now_ms)[0] is PutStatus.PUT_OK
