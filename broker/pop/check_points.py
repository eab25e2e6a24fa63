# SPDX-License-Identifier: Apache-2.0
"""Check points of pops whose messages may still come back, and the offsets that depend on them.

Each pop of a queue adds a check point. It is written to the revive topic at once; or, with
enablePopBufferMerge, it is kept here for a while, in the hope that all its messages are
acknowledged soon, so that nothing need be written at all. The group's offset of the queue moves
behind the messages of a check point when its record is durable, or when all of them are
acknowledged, and when that holds for all check points before it: so what a crash costs here comes
back, and is not lost. Until then pops go on from `latest_offset`.

Nothing here walks all check points: they are found by name, by queue and in the order of their
time. Java: PopBufferMergeService.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from heapq import heappop, heappush
from itertools import count
from typing import Final, NamedTuple

from txrocketmq.broker.intake.inner_message import InnerMessage
from txrocketmq.broker.intake.intake import Intake
from txrocketmq.broker.pop.in_flight import QueueKey
from txrocketmq.broker.pop.metrics import ACK, CK, PopMetrics
from txrocketmq.broker.pop.records import CHECK_POINT_TAG, MergeKey, ReviveTopic, check_point
from txrocketmq.broker.settings.config import BrokerConfig
from txrocketmq.broker.store.formats.put_message import PutStatus
from txrocketmq.broker.tables.offset import ConsumerOffsets
from txrocketmq.broker.work.life import AtStop, Gauge, Life
from txrocketmq.broker.work.progress import DurableProgress
from txrocketmq.remoting.message import properties as names

MAX_BATCH: Final = 64
"""How many check points are written at once when their time in the buffer is over."""
BATCHES: Final = 8
"""How many such batches are written in one turn."""
_OK: Final = PutStatus.PUT_OK.name
_MARGIN_MS: Final = 1_500
"""So close to the end of its time in the buffer, no check point and no ack is taken."""


class Taken(NamedTuple):
    """Messages of a queue that a pop has taken, at these distances from the offset of the key."""

    key: MergeKey
    distances: Sequence[int]
    next_offset: int


class _Popped:
    """A check point, and what is known of its messages."""

    __slots__ = (
        "acked", "distances", "end_offset", "invisible_ms", "is_buffered", "key", "next_offset",
        "revive_queue_id",
    )  # fmt: skip

    def __init__(
        self,
        key: MergeKey,
        invisible_ms: int,
        distances: Sequence[int],
        next_offset: int,
        revive_queue_id: int,
    ) -> None:
        self.key = key
        self.invisible_ms = invisible_ms
        self.distances = distances
        self.next_offset = next_offset
        self.revive_queue_id = revive_queue_id
        self.acked = 0
        """The acknowledged messages, one bit each."""
        self.is_buffered = False
        self.end_offset: int | None = None
        """Messages before `next_offset` are safe once the log is durable to here; None: unknown."""

    @property
    def revive_ms(self) -> int:
        return self.key.pop_time + self.invisible_ms

    @property
    def is_acked(self) -> bool:
        return self.acked == (1 << len(self.distances)) - 1


class CheckPoints:
    """The check points. `is_known` returns whether a topic and a group still exist."""

    def __init__(
        self,
        config: BrokerConfig,
        intake: Intake,
        offsets: ConsumerOffsets,
        revive_topic: ReviveTopic,
        is_known: Callable[[str, str], bool],
        metrics: PopMetrics,
    ) -> None:
        self._config = config
        self._intake = intake
        self._store = intake.store
        self._offsets = offsets
        self._revive_topic = revive_topic
        self._is_known = is_known
        self._metrics = metrics
        self._buffer: dict[MergeKey, _Popped] = {}
        self._queues: dict[QueueKey, deque[_Popped]] = {}
        """By queue: what was popped and is not committed, in order."""
        self._due: list[tuple[int, int, _Popped]] = []
        """Buffered check points by the time at which they are written. Those that are no longer
        buffered stay in the heap and are skipped."""
        self._sequence = count()
        self._awaited = DurableProgress[QueueKey](self._store)
        """Queues whose offset may move once the log is durable."""

    def __len__(self) -> int:
        """How many check points are buffered, so not written yet."""
        return len(self._buffer)

    @property
    def uncommitted(self) -> int:
        """How many pops, written or not, have not moved their group's offset yet."""
        return sum(map(len, self._queues.values()))

    def latest_offset(self, topic: str, group: str, queue_id: int) -> int:
        """The offset after what was popped of a queue and is not committed; -1 without any."""
        popped = self._queues.get((topic, group, queue_id))
        return popped[-1].next_offset if popped else -1

    def add(
        self, taken: Iterable[Taken], invisible_ms: int, revive_queue_id: int, now_ms: int
    ) -> list[bool]:
        """Adds check points for what was popped of some queues; those that are written now are
        written at once.

        Returns for each whether it is kept or written; else its messages must not be handed out.
        """
        found: list[_Popped] = []
        unwritten: list[_Popped] = []
        refused: set[int] = set()
        for key, distances, next_offset in taken:
            popped = _Popped(key, invisible_ms, distances, next_offset, revive_queue_id)
            found.append(popped)
            if key in self._buffer:
                refused.add(id(popped))
            elif self._may_buffer(popped, now_ms):
                popped.is_buffered = True
                self._buffer[key] = popped
                self._push_due(popped)
            else:
                unwritten.append(popped)
        if unwritten:
            refused |= self._write(unwritten, now_ms)
        outcomes = []
        for popped in found:
            is_kept = id(popped) not in refused
            outcomes.append(is_kept)
            if is_kept:
                self._append(popped)
        return outcomes

    def pass_over(self, key: MergeKey, next_offset: int) -> None:
        """Notes that messages between two offsets are for nobody of the group (addCkMock)."""
        popped = _Popped(key, 0, (), next_offset, 0)
        self._append(popped)
        self._await(popped)

    def ack(self, key: MergeKey, offsets: Sequence[int], now_ms: int) -> bool:
        """Takes acknowledgements for a buffered check point; returns False when they are not taken.

        Even then the group's offset waits until the log is durable up to its present end: the
        popped messages may not be durable, so that others would take their offsets; or, when a
        message is hidden for longer, its new check point was only just written.
        """
        popped = self._buffer.get(key)
        if popped is None or not self._config.enable_pop_buffer_merge:
            return False
        config = self._config
        if popped.revive_ms - now_ms < config.pop_ck_stay_buffer_time_out + _MARGIN_MS:
            return False
        if now_ms - key.pop_time > config.pop_ck_stay_buffer_time - _MARGIN_MS:
            return False
        start = key.start_offset
        for offset in offsets:
            if offset - start in popped.distances:
                popped.acked |= 1 << popped.distances.index(offset - start)
        if popped.is_acked:
            del self._buffer[key]
            popped.is_buffered = False
            self._await(popped)
        return True

    def clear(self, topic: str, group: str, queue_id: int) -> None:
        """Forgets how far a queue was popped, since its offset was set (clearOffsetQueue)."""
        self._queues.pop((topic, group, queue_id), None)

    def tick(self, now_ms: int) -> None:
        """Writes check points whose time in the buffer is over, and moves offsets."""
        for _ in range(BATCHES):
            if not self._write_due(now_ms):
                break
        self.settle()

    def settle(self) -> None:
        """Moves offsets as far as the durable part of the log permits."""
        for key in self._awaited.take():
            self._commit(key)

    def write_all(self, now_ms: int) -> None:
        """Writes all buffered check points, when the broker stops."""
        popped = list(self._buffer.values())
        for at in range(0, len(popped), MAX_BATCH):
            self._write(popped[at : at + MAX_BATCH], now_ms)

    # ------------------------------------------------------------------ parts

    def _may_buffer(self, popped: _Popped, now_ms: int) -> bool:
        config = self._config
        if not config.enable_pop_buffer_merge or len(self._buffer) > config.pop_ck_max_buffer_size:
            return False
        if popped.revive_ms - now_ms < config.pop_ck_stay_buffer_time_out + _MARGIN_MS:
            return False
        before = self._queues.get((popped.key.topic, popped.key.group, popped.key.queue_id), ())
        return len(before) < config.pop_ck_offset_max_queue_size

    def _push_due(self, popped: _Popped) -> None:
        config = self._config
        due_ms = min(
            popped.revive_ms - config.pop_ck_stay_buffer_time_out,
            popped.key.pop_time + config.pop_ck_stay_buffer_time,
        )
        heappush(self._due, (due_ms, next(self._sequence), popped))

    def _await(self, popped: _Popped) -> None:
        """Moves the offset behind this check point once the log is durable up to its end."""
        key = popped.key.topic, popped.key.group, popped.key.queue_id
        popped.end_offset = self._store.max_physical_offset
        if not self._awaited.is_durable(popped.end_offset):
            self._awaited.note(key, popped.end_offset)
        self._commit(key)

    def _append(self, popped: _Popped) -> None:
        key = popped.key.topic, popped.key.group, popped.key.queue_id
        queue = self._queues.get(key)
        if queue is None:
            queue = self._queues[key] = deque()
        queue.append(popped)

    def _write_due(self, now_ms: int) -> bool:
        """Writes a batch of check points; returns whether there may be more to write."""
        due = self._due
        batch: list[_Popped] = []
        while due and len(batch) < MAX_BATCH and (due[0][0] <= now_ms or not due[0][2].is_buffered):
            popped = heappop(due)[2]
            if popped.is_buffered:
                batch.append(popped)
        if not batch or not self._write(batch, now_ms):
            return len(batch) == MAX_BATCH
        for popped in batch:
            if popped.is_buffered:
                self._push_due(popped)
        return False

    def _write(self, batch: Sequence[_Popped], now_ms: int) -> set[int]:
        """Writes check points and their acks; returns the ids of those that the store refused."""
        messages: list[InnerMessage] = []
        owners: list[_Popped] = []
        for popped in batch:
            made = self._records(popped, now_ms)
            messages += made
            owners += [popped] * len(made)
        statuses = self._intake.take(messages, now_ms)
        for message, owner, status in zip(messages, owners, statuses, strict=True):
            kind = CK if message.properties[names.TAGS] == CHECK_POINT_TAG else ACK
            name = _OK if status is PutStatus.PUT_OK else status.name
            self._metrics.wrote(owner.key, kind, name)
        refused = {
            id(owner)
            for owner, status in zip(owners, statuses, strict=True)
            if status is not PutStatus.PUT_OK
        }
        end_offset = self._store.max_physical_offset
        for popped in batch:
            if id(popped) in refused:
                continue
            if popped.is_buffered:
                del self._buffer[popped.key]
                popped.is_buffered = False
            popped.end_offset = end_offset
            queue = popped.key.topic, popped.key.group, popped.key.queue_id
            self._awaited.note(queue, end_offset)
        return refused

    def _records(self, popped: _Popped, now_ms: int) -> list[InnerMessage]:
        key, topic = popped.key, self._revive_topic
        queue_id, revive_ms = popped.revive_queue_id, popped.revive_ms
        has_batches = self._store.has_batches(key.topic)
        point = check_point(key, popped.invisible_ms, popped.distances, has_batches=has_batches)
        made = [topic.check_point(point, queue_id, now_ms)]
        if not popped.acked:
            return made
        acked = [
            key.start_offset + distance
            for at, distance in enumerate(popped.distances)
            if popped.acked >> at & 1
        ]
        if self._config.enable_pop_batch_ack:
            return [*made, topic.batch_ack(key, acked, revive_ms, queue_id, now_ms)]
        return made + [topic.ack(key, each, revive_ms, queue_id, now_ms) for each in acked]

    def _commit(self, key: QueueKey) -> None:
        """Moves the offset of a queue as far as is safe."""
        queue = self._queues.get(key)
        if queue is None:
            return
        flushed, next_offset = self._store.flush.flushed_offset, -1
        while queue and queue[0].end_offset is not None and queue[0].end_offset <= flushed:
            next_offset = queue.popleft().next_offset
        if not queue:
            del self._queues[key]
        topic, group, queue_id = key
        if next_offset >= 0 and self._is_known(topic, group):
            self._offsets.commit(group, topic, queue_id, next_offset)

    def life(self) -> Life:
        """What is not written yet is written down at the end, before the store is flushed."""
        last = AtStop("writing down what is popped", self.write_all)
        return Life(
            "check points",
            at_stop=(last,),
            gauges=(
                Gauge("rocketmq_pop_checkpoint_buffer_size", lambda: len(self)),
                Gauge("rocketmq_pop_offset_buffer_size", lambda: self.uncommitted),
            ),
        )
