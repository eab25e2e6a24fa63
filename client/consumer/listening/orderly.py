# SPDX-License-Identifier: Apache-2.0
"""Consumes the messages of each queue in order, one batch after the other.

A queue is consumed as long as the broker has locked it for this client, and for at most a minute
before other queues get their turn. Messages that the listener fails to consume are passed to it
again after a moment, before anything else of their queue; after the configured number of attempts
they go to the retry topic, and from there to the dead letters. A listener may commit, or roll back,
a number of batches together. In broadcasting nobody else reads, so nothing is locked.

Java: ConsumeMessageOrderlyService.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Sequence

from twisted.internet.defer import Deferred
from twisted.logger import Logger

from txrocketmq.client.consumer.config import MessageModel, PushConsumerConfig
from txrocketmq.client.consumer.listening.listener import (
    Calls,
    ConsumeOrderlyContext,
    ConsumeOrderlyStatus,
)
from txrocketmq.client.consumer.listening.running_calls import AtWork
from txrocketmq.client.consumer.listening.statistics import ConsumerStatistics
from txrocketmq.client.consumer.queue.process_queue import ProcessQueue
from txrocketmq.client.consumer.queue.pull_result import restore_topic
from txrocketmq.remoting.host.clock import Clock
from txrocketmq.remoting.message import properties as names
from txrocketmq.remoting.message.message import MessageExt, MessageQueue

MAX_CONTINUOUSLY_MS = 60_000
"""For how long a queue is consumed without a break (maxTimeConsumeContinuously)."""
BREAK_MS = 10
MIN_SUSPEND_MS = 10
MAX_SUSPEND_MS = 30_000
LOCK_SOON_MS = 10
FIRST_LOCK_MS = 100
"""After how long a lock is requested that was missing at the queue's turn."""
NOT_LOCKED_MS = 3_000
"""After how long a queue whose lock another client has gets its next turn."""
FOR_EVER = 2**31 - 1
"""How often messages are delivered again unless that is configured."""

Lock = Callable[[ProcessQueue], Awaitable[bool]]
"""Asks the broker for the lock of a queue; the result is whether this client has it."""
SendToRetry = Callable[[MessageExt, int], Awaitable[bool]]
"""Sends a message to the retry topic, with its maximum of deliveries; the result is its success."""

log = Logger()


class OrderlyConsumption:
    """Consumes queues in order. `note` gets the offset up to which a queue is consumed."""

    def __init__(
        self,
        clock: Clock,
        config: PushConsumerConfig,
        calls: Calls,
        send_to_retry: SendToRetry,
        note: Callable[[MessageQueue, int], None],
        lock: Lock,
        statistics: ConsumerStatistics,
    ) -> None:
        self._clock = clock
        self._config = config
        self._calls = calls
        self._send_to_retry = send_to_retry
        self._note = note
        self._lock = lock
        self._statistics = statistics
        self._locks = config.message_model is MessageModel.CLUSTERING
        most = config.max_reconsume_times
        self._max_reconsume_times = FOR_EVER if most < 0 else most
        self._turns: deque[ProcessQueue] = deque()
        self._at_work = AtWork(clock, config.consume_concurrency, self._go_on)
        self._leaving: dict[ProcessQueue, list[Deferred[None]]] = {}

    def put(self, process_queue: ProcessQueue, messages: Sequence[MessageExt]) -> None:
        """Begins to consume a process queue into which messages were put, unless it has begun."""
        if process_queue.waiting and not process_queue.consuming:
            process_queue.consuming = True
            self._submit(process_queue)

    def when_idle(self) -> Deferred[None]:
        """Begins no further turns; fires when no listener is running any more."""
        self._turns.clear()
        return self._at_work.stop()

    def when_left(self, process_queue: ProcessQueue) -> Deferred[None]:
        """Fires when the listener has no messages of a dropped queue any more."""
        left: Deferred[None] = Deferred()
        if process_queue.listening:
            self._leaving.setdefault(process_queue, []).append(left)
        else:
            left.callback(None)
        return left

    async def send_back_expired(self, process_queue: ProcessQueue) -> None:
        """Does nothing: in order, no message may be passed over, however long it takes."""

    # ------------------------------------------------------------------ turns

    def _submit(self, process_queue: ProcessQueue) -> None:
        if not self._at_work.stopped:
            self._turns.append(process_queue)
            self._go_on()

    def _later(self, process_queue: ProcessQueue, delay_ms: int) -> None:
        if delay_ms == -1:
            delay_ms = self._config.suspend_current_queue_ms
        delay_ms = min(max(delay_ms, MIN_SUSPEND_MS), MAX_SUSPEND_MS)
        self._clock.later(delay_ms, self._submit, process_queue)

    def _lock_later(self, process_queue: ProcessQueue, delay_ms: int) -> None:
        async def lock() -> None:
            if process_queue.dropped or self._at_work.stopped:
                return
            has_it = await self._lock(process_queue)
            self._later(process_queue, LOCK_SOON_MS if has_it else NOT_LOCKED_MS)

        def begin() -> None:
            locking = Deferred.fromCoroutine(lock())
            locking.addErrback(lambda failure: log.failure("locking failed", failure))

        self._clock.later(delay_ms, begin)

    def _go_on(self) -> None:
        while self._turns and self._at_work.has_room:
            process_queue = self._turns.popleft()
            if process_queue.dropped:
                continue
            if self._locks and not process_queue.is_locked(self._clock.steady_ms()):
                self._lock_later(process_queue, FIRST_LOCK_MS)
                continue
            self._at_work.begin(self._consume(process_queue))

    async def _consume(self, process_queue: ProcessQueue) -> None:
        """Consumes a queue for one turn."""
        begun_ms = self._clock.steady_ms()
        while not process_queue.dropped and not self._at_work.stopped:
            now_ms = self._clock.steady_ms()
            if self._locks and not process_queue.is_locked(now_ms):
                self._lock_later(process_queue, LOCK_SOON_MS)
                return
            if now_ms - begun_ms > MAX_CONTINUOUSLY_MS:
                self._later(process_queue, BREAK_MS)
                return
            process_queue.last_consume_ms = now_ms
            messages = process_queue.take(self._config.consume_message_batch_max_size)
            if not messages:
                process_queue.consuming = False
                return
            for message in messages:
                restore_topic(message)
            context = ConsumeOrderlyContext(process_queue.queue)
            status = await self._ask_listener(process_queue, messages, context)
            took_ms = self._clock.steady_ms() - now_ms
            self._statistics.of(process_queue.queue.topic).consumed_in(took_ms)
            if not await self._settle(process_queue, messages, status, context):
                return

    # ------------------------------------------------------------- one batch

    async def _ask_listener(
        self,
        process_queue: ProcessQueue,
        messages: list[MessageExt],
        context: ConsumeOrderlyContext,
    ) -> ConsumeOrderlyStatus:
        process_queue.listening = True
        try:
            answer = self._calls.call(messages, context)
            if answer is not None and not isinstance(answer, ConsumeOrderlyStatus):
                again = ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT
                answer = await self._calls.status(answer, again)
        except Exception as error:  # noqa: BLE001 - whatever it is, the messages come again
            failures = self._calls.failures
            fate = failures.fate(messages, self._max_reconsume_times)
            failures.tell(messages, context.queue, error, fate)
            return ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT
        finally:
            process_queue.listening = False
            for left in self._leaving.pop(process_queue, ()):
                left.callback(None)
        return ConsumeOrderlyStatus.SUCCESS if answer is None else answer

    async def _settle(
        self,
        process_queue: ProcessQueue,
        messages: list[MessageExt],
        status: ConsumeOrderlyStatus,
        context: ConsumeOrderlyContext,
    ) -> bool:
        """Acts on the listener's answer; returns whether the queue goes on without a pause."""
        statistics = self._statistics.of(process_queue.queue.topic)
        offset = -1
        goes_on = True
        if status is ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT:
            statistics.failed(len(messages))
            if await self._come_again(messages):
                process_queue.put_back(messages)
                goes_on = False
            elif context.auto_commit:
                offset = process_queue.commit()
        elif context.auto_commit:  # COMMIT and ROLLBACK mean nothing here and are success
            statistics.succeeded(len(messages))
            offset = process_queue.commit()
        elif status is ConsumeOrderlyStatus.SUCCESS:
            statistics.succeeded(len(messages))
        elif status is ConsumeOrderlyStatus.COMMIT:
            offset = process_queue.commit()
        else:
            process_queue.rollback()
            goes_on = False
        if offset >= 0 and not process_queue.dropped:
            self._note(process_queue.queue, offset)
        if not goes_on:
            self._later(process_queue, context.suspend_ms)
        return goes_on

    async def _come_again(self, messages: Sequence[MessageExt]) -> bool:
        """Counts how often messages failed; False when all of them have gone to the retry topic."""
        comes_again = False
        for message in messages:
            if message.reconsume_times >= self._max_reconsume_times:
                message.properties[names.RECONSUME_TIME] = str(message.reconsume_times)
                if await self._send_to_retry(message, self._max_reconsume_times):
                    continue
            comes_again = True
            message.reconsume_times += 1
        return comes_again
