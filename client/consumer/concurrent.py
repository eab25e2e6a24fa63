# SPDX-License-Identifier: Apache-2.0
"""Consumes the messages of all queues in any order, several batches at the same time.

What the listener fails to consume is sent back to the broker, which delivers it again to the group,
later each time. Where sending back fails as well, the message is consumed here once more after five
seconds. A message is done, and its offset may be committed, when it was consumed or sent back. In
broadcasting there is nobody to send it back for: what fails is logged, and done.

Most listeners answer at once. For them there is neither a coroutine nor a Deferred for each batch:
what they have consumed of a queue is done all together, and the reactor gets its turn after a slice
of time.

Java: ConsumeMessageConcurrentlyService.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Generic, Protocol, TypeVar

from twisted.internet.defer import Deferred
from twisted.logger import Logger

from txrocketmq.client.consumer.at_work import AtWork
from txrocketmq.client.consumer.config import MessageModel, PushConsumerConfig
from txrocketmq.client.consumer.listener import Calls, ConsumeContext, ConsumeStatus
from txrocketmq.client.consumer.process_queue import ProcessQueue
from txrocketmq.client.consumer.pulled import restore_topic
from txrocketmq.client.consumer.statistics import ConsumerStatistics
from txrocketmq.remoting.message.message import MessageExt, MessageQueue
from txrocketmq.remoting.message.topics import RETRY_PREFIX
from txrocketmq.remoting.transport.clock import Clock

RETRY_MS = 5_000
"""When messages are consumed again that could not be sent back."""
EXPIRED_DELAY_LEVEL = 3
MAX_EXPIRED = 16
"""So many messages of a queue that took too long are sent back at a time."""
SLICE_MS = 20
"""So long listeners that answer at once are called without a turn of the reactor."""

SendBack = Callable[[MessageExt, int], Awaitable[bool]]
"""Gives a message back to be delivered at a delay level; whether that went well."""

log = Logger()


class AtHand(Protocol):
    """What messages belong to while they are consumed."""

    last_consume_ms: int

    @property
    def queue(self) -> MessageQueue:
        """Where they come from."""

    def begin(self, messages: Iterable[MessageExt], steady_ms: int) -> None:
        """The listener gets these messages now."""


Q = TypeVar("Q", bound=AtHand)


class _Run(Generic[Q]):
    """Batches of one queue that were consumed at once, one after the other."""

    __slots__ = ("begun_ms", "calls", "messages", "process_queue")

    def __init__(self, process_queue: Q | None, begun_ms: int) -> None:
        self.process_queue = process_queue
        self.begun_ms = begun_ms
        self.messages: list[MessageExt] = []
        self.calls = 0


class Consumption(ABC, Generic[Q]):
    """See the module. What follows from consumption depends on how messages were taken."""

    def __init__(
        self,
        clock: Clock,
        config: PushConsumerConfig,
        calls: Calls,
        statistics: ConsumerStatistics,
    ) -> None:
        self._clock = clock
        self._config = config
        self._calls = calls
        self._statistics = statistics
        self._waiting: deque[tuple[Q, list[MessageExt]]] = deque()
        self._at_work = AtWork(clock, config.consume_concurrency, self._go_on)
        self._going_on = False

    @abstractmethod
    def _is_over(self, process_queue: Q, messages: Sequence[MessageExt]) -> bool:
        """Whether messages are somebody else's by now; nothing else is done with them then."""

    @abstractmethod
    def _done(self, process_queue: Q, messages: Sequence[MessageExt]) -> None:
        """Messages were consumed."""

    @abstractmethod
    async def _failed(
        self, process_queue: Q, messages: Sequence[MessageExt], context: ConsumeContext
    ) -> None:
        """Messages were not consumed, and are to come again."""

    def put(self, process_queue: Q, messages: Sequence[MessageExt]) -> None:
        """Messages that were taken, and are counted there, are to be consumed."""
        size = self._config.consume_message_batch_max_size
        for start in range(0, len(messages), size):
            self._waiting.append((process_queue, list(messages[start : start + size])))
        self._go_on()

    def when_idle(self) -> Deferred[None]:
        """Fires when no listener is at work; what only waits is not begun any more."""
        self._waiting.clear()
        return self._at_work.stop()

    def _go_on(self) -> None:
        if self._going_on:
            return  # a listener has let time pass, or what it did has put messages
        self._going_on = True
        clock, waiting = self._clock, self._waiting
        begun_ms = clock.steady_ms()
        until_ms = begun_ms + SLICE_MS
        run: _Run[Q] = _Run(None, begun_ms)
        try:
            while waiting and self._at_work.has_room:
                process_queue, messages = waiting.popleft()
                if process_queue is not run.process_queue:
                    self._end_run(run, begun_ms)
                    run = _Run(process_queue, begun_ms)
                if self._is_over(process_queue, messages):
                    continue
                if self._consume(process_queue, messages, begun_ms):
                    run.messages += messages
                    run.calls += 1
                begun_ms = clock.steady_ms()
                if begun_ms > until_ms and waiting:
                    clock.later(0, self._go_on)
                    break
        finally:
            self._going_on = False
            self._end_run(run, begun_ms)

    def _end_run(self, run: _Run[Q], now_ms: int) -> None:
        """What was consumed at once is done, all together."""
        process_queue = run.process_queue
        if process_queue is not None and run.calls:
            statistics = self._statistics.of(process_queue.queue.topic)
            statistics.consumed_in(now_ms - run.begun_ms, run.calls)
            statistics.succeeded(len(run.messages))
            process_queue.last_consume_ms = now_ms
            if not self._is_over(process_queue, run.messages):
                self._done(process_queue, run.messages)

    def _consume(self, process_queue: Q, messages: list[MessageExt], begun_ms: int) -> bool:
        """Gives a batch to the listener; whether all of it was consumed at once."""
        queue = process_queue.queue
        context = ConsumeContext(queue)
        if queue.topic.startswith(RETRY_PREFIX):
            for message in messages:
                restore_topic(message)
        status = ConsumeStatus.RECONSUME_LATER
        try:
            answer = self._calls.call(messages, context)
        except Exception:  # noqa: BLE001 - whatever it is, the messages come again
            self._log_failed(messages, context)
        else:
            if answer is not None and not isinstance(answer, ConsumeStatus):
                process_queue.begin(messages, begun_ms)
                self._at_work.begin(self._wait(process_queue, messages, context, begun_ms, answer))
                return False
            status = ConsumeStatus.CONSUME_SUCCESS if answer is None else answer
        if status is ConsumeStatus.CONSUME_SUCCESS and context.ack_index is None:
            return True
        self._count(process_queue, begun_ms)
        if not self._is_over(process_queue, messages):  # else they are somebody else's now
            self._at_work.begin(self._settle(process_queue, messages, context, status))
        return False

    async def _wait(
        self,
        process_queue: Q,
        messages: list[MessageExt],
        context: ConsumeContext,
        begun_ms: int,
        answer: Awaitable[ConsumeStatus | None],
    ) -> None:
        try:
            status = await answer
        except Exception:  # noqa: BLE001 - whatever it is, the messages come again
            self._log_failed(messages, context)
            status = ConsumeStatus.RECONSUME_LATER
        self._count(process_queue, begun_ms)
        if not self._is_over(process_queue, messages):
            status = ConsumeStatus.CONSUME_SUCCESS if status is None else status
            await self._settle(process_queue, messages, context, status)

    async def _settle(
        self,
        process_queue: Q,
        messages: list[MessageExt],
        context: ConsumeContext,
        status: ConsumeStatus,
    ) -> None:
        """What succeeded is done; what did not comes again."""
        succeeded = 0
        if status is ConsumeStatus.CONSUME_SUCCESS:
            ack_index = len(messages) - 1 if context.ack_index is None else context.ack_index
            succeeded = min(max(ack_index + 1, 0), len(messages))
        statistics = self._statistics.of(process_queue.queue.topic)
        statistics.succeeded(succeeded)
        statistics.failed(len(messages) - succeeded)
        if succeeded:
            self._done(process_queue, messages[:succeeded])
        if succeeded < len(messages):
            await self._failed(process_queue, messages[succeeded:], context)

    def _log_failed(self, messages: Sequence[MessageExt], context: ConsumeContext) -> None:
        log.failure(
            "the listener of queue {queue} failed with {count} messages, which come again",
            queue=context.queue,
            count=len(messages),
        )

    def _count(self, process_queue: Q, begun_ms: int) -> None:
        took_ms = self._clock.steady_ms() - begun_ms
        self._statistics.of(process_queue.queue.topic).consumed_in(took_ms)


class ConcurrentConsumption(Consumption[ProcessQueue]):
    """Of messages that were pulled. `note` takes the offset up to which a queue is consumed."""

    def __init__(
        self,
        clock: Clock,
        config: PushConsumerConfig,
        calls: Calls,
        send_back: SendBack,
        note: Callable[[MessageQueue, int], None],
        statistics: ConsumerStatistics,
    ) -> None:
        super().__init__(clock, config, calls, statistics)
        self._send_back = send_back
        self._note = note
        self._is_shared = config.message_model is MessageModel.CLUSTERING

    def when_left(self, process_queue: ProcessQueue) -> Deferred[None]:
        """Nobody waits for the end of listeners: the queue may be somebody else's at once."""
        left: Deferred[None] = Deferred()
        left.callback(None)
        return left

    async def send_back_expired(self, process_queue: ProcessQueue) -> None:
        """Sends back what is being consumed for too long, so that somebody else gets it."""
        oldest_ms = self._clock.steady_ms() - self._config.consume_timeout_ms
        for message in process_queue.begun_before(oldest_ms, MAX_EXPIRED):
            if not self._is_shared or await self._send_back(message, EXPIRED_DELAY_LEVEL):
                self._done(process_queue, [message])

    def _is_over(self, process_queue: ProcessQueue, messages: Sequence[MessageExt]) -> bool:
        return process_queue.dropped

    async def _failed(
        self,
        process_queue: ProcessQueue,
        messages: Sequence[MessageExt],
        context: ConsumeContext,
    ) -> None:
        """What went back is done; the rest comes again here."""
        done: list[MessageExt] = []
        again: list[MessageExt] = []
        for message in messages:
            went_back = not self._is_shared or await self._send_back(message, context.delay_level)
            (done if went_back else again).append(message)
        if not self._is_shared:
            log.warn(
                "{count} messages of queue {queue} were not consumed and do not come again, as in"
                " broadcasting none does",
                count=len(messages),
                queue=process_queue.queue,
            )
        self._done(process_queue, done)
        if again:
            for message in again:
                message.reconsume_times += 1
            if not self._at_work.stopped:
                self._clock.later(RETRY_MS, self.put, process_queue, again)

    def _done(self, process_queue: ProcessQueue, messages: Sequence[MessageExt]) -> None:
        offset = process_queue.remove(messages)
        if offset >= 0 and not process_queue.dropped:
            self._note(process_queue.queue, offset)
