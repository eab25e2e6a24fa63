# SPDX-License-Identifier: Apache-2.0
"""Messages that end other messages: they are stored only when everything before them is durable.

A power cut may cost any page that was not synced, and spare the one behind it. So a message which
says that another one is finished, or was stored elsewhere, must not be durable before that other
one: it would end what no longer exists. Such a message waits here, and code that asks in between
has to remember that it is coming. What a crash costs here was not ended, and is done once more. To
keep that small, a sync is requested when the first message has waited for `SYNC_MS`, however long
flushIntervalCommitLog is. A message that the store refuses for the moment waits on, unless whoever
put it hears of that: else what has ended would be done once more after the next crash.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

from txrocketmq.broker.intake.inner_message import InnerMessage
from txrocketmq.broker.intake.intake import Intake
from txrocketmq.broker.intake.new_queues import NewQueues
from txrocketmq.broker.store.formats.put_message import PutMessage, PutStatus
from txrocketmq.broker.work.life import AtStop, Hears, Life

MAX_WAITING: Final = 100_000
"""How many messages may wait before `is_full`: as many as one thread can take in some seconds."""
SYNC_MS: Final = 50
"""How soon a sync is wanted, in ms: a kill should cost little, and small syncs should be rare."""
MAX_BATCH: Final = 256
"""How many messages are put in one write, and in one turn of the reactor."""

_PUT_OK: Final = PutStatus.PUT_OK
_FOR_NOW: Final = frozenset({PutStatus.SERVICE_NOT_AVAILABLE, PutStatus.CREATE_MAPPED_FILE_FAILED})
"""What the store says when it may take the message later."""

Message = InnerMessage | PutMessage
PutListener = Callable[[PutStatus], None]


class AfterDurable:
    """The waiting messages. `call_soon` calls a function in a later turn of the reactor."""

    def __init__(
        self,
        intake: Intake,
        clock: Callable[[], int],
        call_soon: Callable[[Callable[[], None]], object],
    ) -> None:
        self._intake = intake
        self._store = intake.store
        self._now_ms = clock
        self._call_soon = call_soon
        self._waiting: deque[tuple[int, Message, PutListener | None]] = deque()
        """For each message, the log offset up to which the log has to be durable first; then the
        message, and whom to tell its status."""
        self._is_called = False
        self._is_wanted = False
        self.on_wanted: list[Callable[[], object]] = []
        """Called when a sync is wanted within `SYNC_MS`, and not again before that sync is done."""
        self._store.flush.on_durable.append(self._durable)

    def __len__(self) -> int:
        """How many messages wait."""
        return len(self._waiting)

    @property
    def is_full(self) -> bool:
        """Whether so many messages wait for a slow disk that nothing more should begin."""
        return len(self._waiting) >= MAX_WAITING

    def put(self, messages: Sequence[Message], heard: PutListener | None = None) -> None:
        """Has messages put as soon as the log is durable up to its present end.

        `heard` is called with the status of each message once it is put.
        """
        end = self._store.max_physical_offset
        self._waiting.extend([(end, message, heard) for message in messages])
        self._want()

    def put_all(self) -> None:
        """Puts at once all messages that need not wait any more, when the broker stops."""
        while self._put_some():
            pass

    def flush_all(self) -> None:
        """Makes the log durable at once, with what was to be put after that; raises OSError."""
        self._store.flush.flush_all()
        self.put_all()
        self._store.flush.flush_all()

    def life(
        self, sync: Callable[[], None], later: Callable[[float, Callable[[], None]], object]
    ) -> Life:
        """The messages are put when `sync`, which is called `later`, has made the log durable."""
        return Life(
            "messages that wait for the disk",
            hears=(Hears(self.on_wanted, lambda: later(SYNC_MS, sync)),),
            at_stop=(AtStop("flushing the store", lambda _: self.flush_all()),),
        )

    def _want(self) -> None:
        if self._waiting and not self._is_wanted:
            self._is_wanted = True
            for heard in self.on_wanted:
                heard()

    def _durable(self) -> None:
        self._is_wanted = False
        self._begin()
        if self._waiting and self._waiting[-1][0] > self._store.flush.flushed_offset:
            self._want()

    def _begin(self) -> None:
        if not self._is_called and self._is_due():
            self._is_called = True
            self._call_soon(self._turn)

    def _is_due(self) -> bool:
        waiting = self._waiting
        return bool(waiting) and waiting[0][0] <= self._store.flush.flushed_offset

    def _turn(self) -> None:
        self._is_called = False
        if self._put_some():
            self._begin()

    def _put_some(self) -> bool:
        """Puts a batch of messages; returns whether there may be more that can be put now."""
        batch: list[tuple[int, Message, PutListener | None]] = []
        waiting, flushed_offset = self._waiting, self._store.flush.flushed_offset
        new_queues, topic, queue_id = NewQueues(self._store), "", -1
        while waiting and waiting[0][0] <= flushed_offset and len(batch) < MAX_BATCH:
            each = waiting.popleft()
            batch.append(each)
            message = each[1]
            if message.queue_id != queue_id or message.topic != topic:
                topic, queue_id = message.topic, message.queue_id
                if new_queues.are_enough_with(topic, queue_id):
                    break
        if not batch:
            return False
        statuses = self._intake.take([message for _, message, _ in batch], self._now_ms())
        refused: list[tuple[int, Message, PutListener | None]] = []
        for each, status in zip(batch, statuses, strict=True):
            heard = each[2]
            if heard is not None:
                heard(status)
            elif status is not _PUT_OK and status in _FOR_NOW:
                refused.append(each)
        self._waiting.extendleft(reversed(refused))
        return not refused
