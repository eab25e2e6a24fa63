# SPDX-License-Identifier: Apache-2.0
"""Consumes the messages of all queues in any order, several batches at the same time.

Messages that the listener fails to consume are sent back to the broker, which delivers them to the
group again, after a longer delay each time. If sending back fails as well, or no thread can call
the listener, the message is consumed here again after five seconds. A message is done, and its
offset may be committed, when it was consumed or sent back. In broadcasting there is nobody to send
it back for: what fails is logged, and done.

Where a listener runs in threads, a crew is given all that is at hand, and tells what has ended; how
much is at hand is limited for each queue. Of other listeners most answer at once. For them there is
neither a coroutine nor a Deferred for each batch: what they have consumed of a queue is done all
together, and the reactor gets its turn after a slice of time.

Java: ConsumeMessageConcurrentlyService.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

from twisted.internet.defer import Deferred
from twisted.logger import Logger

from txrocketmq.client.consumer.config import MessageModel, PushConsumerConfig
from txrocketmq.client.consumer.listening.listener import Calls, ConsumeContext, ConsumeStatus
from txrocketmq.client.consumer.listening.listener_failures import Fate
from txrocketmq.client.consumer.listening.running_calls import AtWork
from txrocketmq.client.consumer.listening.send_back import MAX_RECONSUME_TIMES
from txrocketmq.client.consumer.listening.statistics import ConsumerStatistics
from txrocketmq.client.consumer.queue.process_queue import ProcessQueue
from txrocketmq.client.consumer.queue.pull_result import restore_topic
from txrocketmq.client.thread.executor import Crew
from txrocketmq.remoting.host.clock import Clock
from txrocketmq.remoting.message.message import MessageExt, MessageQueue
from txrocketmq.remoting.message.topics import RETRY_PREFIX
from txrocketmq.remoting.process.log_limit import Seldom, and_more

RETRY_MS = 5_000
"""How long to wait before consuming messages again that could not be sent back or handed over."""
EXPIRED_DELAY_LEVEL = 3
MAX_EXPIRED = 16
"""How many messages of a queue that took too long are sent back at a time."""
SLICE_MS = 20
"""For how long listeners that answer at once are called before the reactor gets its turn."""

SendBack = Callable[[MessageExt, int], Awaitable[bool]]
"""Returns a message to the broker, to be delivered at a delay level; the result is its success."""

log = Logger()


class AtHand(Protocol):
    """The queue, or the popped batch, to which messages belong while they are consumed."""

    last_consume_ms: int

    @property
    def queue(self) -> MessageQueue:
        """The queue from which the messages come."""

    def begin(self, messages: Iterable[MessageExt], steady_ms: int) -> bool:
        """Notes that the listener gets these messages now; may be called in its thread.

        Returns False, and notes nothing, if they no longer belong to this client.
        """


Q = TypeVar("Q", bound=AtHand)


class _Run(Generic[Q]):
    """Batches of one queue that were consumed and are settled together."""

    __slots__ = ("calls", "messages", "process_queue", "took_ms")

    def __init__(self, process_queue: Q | None) -> None:
        self.process_queue = process_queue
        self.messages: list[MessageExt] = []
        self.calls = 0
        self.took_ms = 0


class _Batch(Generic[Q]):
    """An errand of a crew: messages for the listener, and what it made of them."""

    __slots__ = ("answer", "arguments", "begun_ms", "ended_ms", "error", "process_queue")

    def __init__(self, process_queue: Q, messages: list[MessageExt], size: int, start: int) -> None:
        """Of the messages that came together it gets `size`, from number `start` on."""
        self.process_queue = process_queue
        self.arguments = messages[start : start + size], ConsumeContext(process_queue.queue)
        self.answer: Any = None
        self.error: Exception | None = None
        self.begun_ms: int | None = None
        """When the listener was called, or None if it was not."""
        self.ended_ms = 0

    def begin(self, steady_ms: int) -> bool:
        """Begins the call; returns False if the messages no longer belong to this client."""
        if not self.process_queue.begin(self.arguments[0], steady_ms):
            return False
        self.begun_ms = steady_ms
        return True


class Consumption(ABC, Generic[Q]):
    """Calls the listener. Subclasses decide what follows, depending on how messages were taken."""

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
        self._crew = calls.crew(config.consume_concurrency, self._ended)
        most = config.max_reconsume_times
        self._most = MAX_RECONSUME_TIMES if most < 0 else most

    @abstractmethod
    def _is_over(self, process_queue: Q, messages: Sequence[MessageExt]) -> bool:
        """Whether the messages no longer belong to this client, and are to be left alone."""

    @abstractmethod
    def _done(self, process_queue: Q, messages: Sequence[MessageExt]) -> None:
        """Settles messages that were consumed."""

    @abstractmethod
    async def _failed(
        self, process_queue: Q, messages: Sequence[MessageExt], context: ConsumeContext
    ) -> None:
        """Handles messages that were not consumed and must be delivered again."""

    def put(self, process_queue: Q, messages: list[MessageExt]) -> None:
        """Begins to consume messages, which `process_queue` already counts.

        The list may not be changed afterwards, because calls take their part of it when they begin.
        """
        size = self._config.consume_message_batch_max_size
        starts = range(0, len(messages), size)
        if self._crew is None or self._calls.around is not None:
            self._waiting.extend((process_queue, messages[at : at + size]) for at in starts)
            self._go_on()
        elif not self._at_work.stopped:
            self._hand_over(self._crew, process_queue, messages, size, starts)

    def when_idle(self) -> Deferred[None]:
        """Begins no further calls; fires when no listener is running any more."""
        self._waiting.clear()
        idle = self._at_work.stop()
        if self._crew is not None:
            self._at_work.done(len(self._crew.clear()))
        return idle

    def _hand_over(
        self,
        crew: Crew,
        process_queue: Q,
        messages: list[MessageExt],
        size: int,
        starts: range,
    ) -> None:
        """Passes batches to a crew, which calls `_ended` with what it has done."""
        self._restore(process_queue, messages)
        self._calls.prepare(messages)
        self._at_work.add(len(starts))
        try:
            crew.take(partial(_Batch, process_queue, messages, size), starts)
        except RuntimeError as error:  # no thread, or a loop that is closed
            cleared: list[Any] = crew.clear()
            log.warn(
                "the listener cannot be called for {count} batches now: {error}",
                count=len(cleared),
                error=error,
            )
            again: dict[Q, list[MessageExt]] = {}
            for each in cleared:
                again.setdefault(each.process_queue, []).extend(each.arguments[0])
            for its, waiting in again.items():
                self._clock.later(RETRY_MS, self.put, its, waiting)
            self._at_work.done(len(cleared))

    def _ended(self, batches: Sequence[_Batch[Q]]) -> None:
        """Settles batches for which a crew has called the listener, those of a queue together."""
        runs: dict[Q, _Run[Q]] = {}
        for batch in batches:
            process_queue, answer = batch.process_queue, batch.answer
            messages, context = batch.arguments
            if batch.begun_ms is None:
                self._is_over(process_queue, messages)
            elif (
                batch.error is None
                and context.ack_index is None
                and (answer is None or answer is ConsumeStatus.CONSUME_SUCCESS)
            ):
                run = runs.get(process_queue)
                if run is None:
                    run = runs[process_queue] = _Run(process_queue)
                run.messages += messages
                run.calls += 1
                run.took_ms += batch.ended_ms - batch.begun_ms
            else:
                self._at_work.begin(
                    self._wait(process_queue, messages, context, batch.begun_ms, _came(batch))
                )
        now_ms = self._clock.steady_ms()
        for run in runs.values():
            self._end_run(run, now_ms)
        self._at_work.done(len(batches))

    def _go_on(self) -> None:
        if self._going_on:
            return  # a listener has let time pass, or what it did has put messages
        self._going_on = True
        clock, waiting = self._clock, self._waiting
        begun_ms = clock.steady_ms()
        until_ms = begun_ms + SLICE_MS
        run: _Run[Q] = _Run(None)
        run_ms = begun_ms
        try:
            while waiting and self._at_work.has_room:
                process_queue, messages = waiting.popleft()
                if process_queue is not run.process_queue:
                    run.took_ms = begun_ms - run_ms
                    self._end_run(run, begun_ms)
                    run, run_ms = _Run(process_queue), begun_ms
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
            run.took_ms = begun_ms - run_ms
            self._end_run(run, begun_ms)

    def _end_run(self, run: _Run[Q], now_ms: int) -> None:
        """Settles the messages of a run together."""
        process_queue = run.process_queue
        if process_queue is not None and run.calls:
            statistics = self._statistics.of(process_queue.queue.topic)
            statistics.consumed_in(run.took_ms, run.calls)
            statistics.succeeded(len(run.messages))
            process_queue.last_consume_ms = now_ms
            if not self._is_over(process_queue, run.messages):
                self._done(process_queue, run.messages)

    def _fate(self, messages: Sequence[MessageExt], context: ConsumeContext) -> Fate:
        """Returns what becomes of messages for which the listener has raised an error."""
        return self._calls.failures.fate(messages, self._most, context.delay_level)

    def _restore(self, process_queue: Q, messages: Sequence[MessageExt]) -> None:
        """Gives messages that are delivered again the topic to which they were first sent."""
        if process_queue.queue.topic.startswith(RETRY_PREFIX):
            for message in messages:
                restore_topic(message)

    def _consume(self, process_queue: Q, messages: list[MessageExt], begun_ms: int) -> bool:
        """Calls the listener with a batch; returns whether all of it was consumed at once."""
        queue = process_queue.queue
        context = ConsumeContext(queue)
        self._restore(process_queue, messages)
        status = ConsumeStatus.RECONSUME_LATER
        try:
            answer = self._calls.call(messages, context)
        except Exception as error:  # noqa: BLE001 - whatever it is, the messages come again
            self._calls.failures.tell(messages, queue, error, self._fate(messages, context))
        else:
            if answer is not None and not isinstance(answer, ConsumeStatus):
                process_queue.begin(messages, begun_ms)
                self._at_work.begin(self._wait(process_queue, messages, context, begun_ms, answer))
                return False
            status = ConsumeStatus.CONSUME_SUCCESS if answer is None else answer
        if status is ConsumeStatus.CONSUME_SUCCESS and context.ack_index is None:
            return True
        self._count(process_queue, begun_ms)
        if not self._is_over(process_queue, messages):  # otherwise they belong to somebody else now
            self._at_work.begin(self._settle(process_queue, messages, context, status))
        return False

    async def _wait(
        self,
        process_queue: Q,
        messages: list[MessageExt],
        context: ConsumeContext,
        begun_ms: int,
        answer: Any,
    ) -> None:
        try:
            status = await self._calls.status(answer, ConsumeStatus.RECONSUME_LATER)
        except Exception as error:  # noqa: BLE001 - whatever it is, the messages come again
            fate = self._fate(messages, context)
            self._calls.failures.tell(messages, context.queue, error, fate)
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
        """Settles what succeeded, and lets the rest be delivered again."""
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

    def _count(self, process_queue: Q, begun_ms: int) -> None:
        took_ms = self._clock.steady_ms() - begun_ms
        self._statistics.of(process_queue.queue.topic).consumed_in(took_ms)


async def _came(batch: _Batch[Any]) -> Any:
    """Returns the answer of a listener that a crew has called, or raises what it raised."""
    if batch.error is not None:
        raise batch.error
    answer = batch.answer
    return await answer if hasattr(answer, "__await__") else answer


class ConcurrentConsumption(Consumption[ProcessQueue]):
    """Consumes pulled messages. `note` takes the offset up to which a queue is consumed."""

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
        self._lost = Seldom(1)

    def _fate(self, messages: Sequence[MessageExt], context: ConsumeContext) -> Fate:
        if self._is_shared:
            return super()._fate(messages, context)
        return Fate("not be delivered again, because the group is broadcasting")

    def when_left(self, process_queue: ProcessQueue) -> Deferred[None]:
        """Fires at once: listeners need not end before another member gets the queue."""
        left: Deferred[None] = Deferred()
        left.callback(None)
        return left

    async def send_back_expired(self, process_queue: ProcessQueue) -> None:
        """Sends back messages whose consumption takes too long, for another member to consume."""
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
        """Settles what was sent back; the rest is consumed here again."""
        done: list[MessageExt] = []
        again: list[MessageExt] = []
        for message in messages:
            went_back = not self._is_shared or await self._send_back(message, context.delay_level)
            (done if went_back else again).append(message)
        if not self._is_shared:
            more = self._lost.more(self._clock.steady_ms())
            if more is not None:
                log.warn(
                    "{count} messages of queue {queue} were not consumed and will not be delivered"
                    " again, because the group is broadcasting{more}",
                    count=len(messages),
                    queue=process_queue.queue,
                    more=and_more(more),
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
