# SPDX-License-Identifier: Apache-2.0
"""The queues of a lite pull consumer: each is pulled in advance, and `next` returns what came.

Nothing is pulled of a queue that is paused, or while too many messages wait. A seek drops what was
pulled and begins elsewhere.

Java: AssignedMessageQueue, and PullTaskImpl of DefaultLitePullConsumerImpl.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Any, Final

from twisted.internet.defer import CancelledError, Deferred
from twisted.logger import Logger
from twisted.python.failure import Failure

from txrocketmq.client.base.errors import ClientClosed, MQBrokerError, MQClientError
from txrocketmq.client.consumer.config import LitePullConsumerConfig
from txrocketmq.client.consumer.queue.first_offset import first_offset
from txrocketmq.client.consumer.queue.offset_store import OffsetStore
from txrocketmq.client.consumer.queue.process_queue import ProcessQueue
from txrocketmq.client.consumer.queue.pull_queue import QueuePull
from txrocketmq.client.core.instance import ClientInstance
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.errors import RemotingError
from txrocketmq.remoting.message.message import MessageExt, MessageQueue
from txrocketmq.remoting.message.tags import SubscriptionData

PAUSED_MS: Final = 1_000
FLOW_CONTROL_MS: Final = 50
BROKER_FLOW_CONTROL_MS: Final = 20
EXCEPTION_MS: Final = 1_000
NO_OFFSET_MS: Final = 3_000
"""The pause after an error while finding out at which offset to begin."""

log = Logger()


@dataclass(slots=True, eq=False)
class Assigned:
    """A queue that is assigned to the consumer: its messages and its offsets."""

    process_queue: ProcessQueue
    is_paused: bool = False
    pull_offset: int | None = None
    consume_offset: int | None = None
    """The offset after the last message that was given to the program."""
    seek_offset: int | None = None
    pulling: Deferred[None] | None = None


class AssignedQueues:
    """The queues of a lite pull consumer. `subscription_to` returns the subscription to a topic."""

    def __init__(
        self,
        instance: ClientInstance,
        group: str,
        config: LitePullConsumerConfig,
        offsets: OffsetStore,
        subscription_to: Callable[[str], SubscriptionData],
    ) -> None:
        self._instance = instance
        self._clock = instance.clock
        self._group = group
        self._config = config
        self._offsets = offsets
        self._subscription_to = subscription_to
        self._assigned: dict[MessageQueue, Assigned] = {}
        self._cache: deque[tuple[Assigned, list[MessageExt]]] = deque()
        self._waiting: list[Deferred[None]] = []
        self._troubled: set[str] = set()
        self._running = False

    def __contains__(self, queue: object) -> bool:
        return queue in self._assigned

    def all(self) -> list[MessageQueue]:
        """The queues, sorted."""
        return sorted(self._assigned)

    def get(self, queue: MessageQueue) -> Assigned | None:
        """Returns the state of a queue, or None if the queue is not assigned."""
        return self._assigned.get(queue)

    def process_queues(self) -> list[ProcessQueue]:
        """Returns the messages at hand, by queue."""
        return [each.process_queue for each in self._assigned.values()]

    def start(self) -> None:
        """Begins to pull the queues."""
        self._running = True
        for assigned in self._assigned.values():
            self._begin(assigned)

    def stop(self) -> None:
        """Stops pulling, and forgets all queues."""
        self._running = False
        self.remove(list(self._assigned))
        self._cache.clear()
        waiting, self._waiting = self._waiting, []
        for each in waiting:
            each.callback(None)

    def add(self, queues: Iterable[MessageQueue]) -> None:
        """Assigns further queues to the consumer."""
        for queue in queues:
            if queue not in self._assigned:
                assigned = Assigned(ProcessQueue(queue, self._clock.steady_ms()))
                self._assigned[queue] = assigned
                if self._running:
                    self._begin(assigned)

    def remove(self, queues: Collection[MessageQueue]) -> None:
        """Takes queues from the consumer, and drops the messages that were pulled from them."""
        for queue in queues:
            assigned = self._assigned.pop(queue, None)
            if assigned is not None:
                assigned.process_queue.dropped = True
                if assigned.pulling is not None:
                    assigned.pulling.cancel()

    def set_paused(self, queues: Iterable[MessageQueue], *, is_paused: bool) -> None:
        """Pauses pulling from these queues, or continues it."""
        for queue in queues:
            assigned = self._assigned.get(queue)
            if assigned is not None:
                assigned.is_paused = is_paused

    def seek(self, assigned: Assigned, offset: int) -> None:
        """Drops the messages that were pulled from a queue, and pulls from `offset` on."""
        self._go_back(assigned, offset)
        if assigned.pulling is not None:
            assigned.pulling.cancel()
        if self._running:
            self._begin(assigned)

    def _go_back(self, assigned: Assigned, offset: int) -> None:
        """Forgets what was pulled of a queue, which is next pulled at `offset`."""
        assigned.process_queue.clear()
        self._cache = deque(each for each in self._cache if each[0] is not assigned)
        assigned.seek_offset = offset

    def note_given(self) -> None:
        """Notes the offsets up to which messages were given to the program, to be committed."""
        for queue, assigned in self._assigned.items():
            if assigned.consume_offset is not None:
                self._offsets.set(queue, assigned.consume_offset)

    # ----------------------------------------------------------------- giving

    def next(self, most: int | None = None) -> tuple[MessageQueue, list[MessageExt]] | None:
        """Returns a queue and the messages of one pull from it, or None if there are none.

        At most `most` messages are returned; the rest stays for the next call.
        """
        while self._cache:
            assigned, messages = self._cache.popleft()
            process_queue = assigned.process_queue
            if not process_queue.dropped:
                if most is not None and len(messages) > most:
                    self._cache.appendleft((assigned, messages[most:]))
                    messages = messages[:most]
                assigned.consume_offset = process_queue.remove(messages)
                process_queue.last_consume_ms = self._clock.steady_ms()
                return process_queue.queue, messages
        return None

    def arrival(self, timeout_ms: int) -> Deferred[None]:
        """Fires when messages may have arrived, or after `timeout_ms`."""
        arrival: Deferred[None] = Deferred()
        self._waiting.append(arrival)

        def time_is_over() -> None:
            if arrival in self._waiting:
                self._waiting.remove(arrival)
                arrival.callback(None)

        timeout = self._clock.later(timeout_ms, time_is_over)

        def over(outcome: Any) -> Any:
            if arrival in self._waiting:  # it was cancelled
                self._waiting.remove(arrival)
            if timeout.active():
                timeout.cancel()
            return outcome

        return arrival.addBoth(over)

    def _give(self, assigned: Assigned, messages: list[MessageExt]) -> None:
        new = assigned.process_queue.put(messages)
        if new:
            self._cache.append((assigned, new))
            waiting, self._waiting = self._waiting, []
            for each in waiting:
                each.callback(None)

    # ---------------------------------------------------------------- pulling

    def _begin(self, assigned: Assigned) -> None:
        pulling = Deferred.fromCoroutine(self._pull(assigned))
        pulling.addErrback(self._log_failure, assigned.process_queue.queue)
        assigned.pulling = pulling

    async def _pull(self, assigned: Assigned) -> None:
        """Pulls a queue until it is removed."""
        config, pause = self._config, self._clock.pause
        process_queue = assigned.process_queue
        queue = process_queue.queue
        puller = QueuePull(
            self._instance,
            self._group,
            queue,
            suspend_ms=config.broker_suspend_max_ms,
            timeout_ms=config.timeout_when_suspended_ms,
            batch_size=config.pull_batch_size,
            marks=self._offsets.marks,
        )
        while self._running and not process_queue.dropped:
            if assigned.is_paused:
                await pause(PAUSED_MS)
                continue
            process_queue.last_pull_ms = self._clock.steady_ms()
            if self._is_full(process_queue):
                await pause(FLOW_CONTROL_MS)
                continue
            try:
                offset = await self._next_offset(assigned)
            except (MQClientError, RemotingError) as error:
                self._troubled_by(queue, error)
                await pause(NO_OFFSET_MS)
                continue
            try:
                pulled = await puller.pull(
                    offset,
                    self._subscription_to(queue.topic),
                    posts_subscription=True,
                    is_lite=True,
                )
            except (MQClientError, RemotingError) as error:
                await pause(self._troubled_by(queue, error))
                continue
            self._troubled.discard(queue.broker_name)
            if pulled.is_anew or pulled.next_offset < offset:
                self._go_back(assigned, pulled.next_offset)
                continue
            self._give(assigned, pulled.messages)
            assigned.pull_offset = pulled.next_offset
            if not pulled.is_found and pulled.next_offset == offset:
                await pause(0)

    async def _next_offset(self, assigned: Assigned) -> int:
        if assigned.seek_offset is not None:
            assigned.pull_offset = assigned.consume_offset = assigned.seek_offset
            assigned.seek_offset = None
        if assigned.pull_offset is None:
            queue = assigned.process_queue.queue
            assigned.pull_offset = self._offsets.noted(queue)
            if assigned.pull_offset is None:
                assigned.pull_offset = await first_offset(
                    self._instance, self._offsets, self._config, queue
                )
        return assigned.pull_offset

    def _is_full(self, process_queue: ProcessQueue) -> bool:
        config = self._config
        return (
            len(self._cache) * config.pull_batch_size > config.pull_threshold_for_all
            or process_queue.count > config.pull_threshold_for_queue
            or process_queue.size_bytes > config.pull_threshold_size_for_queue
            or process_queue.span > config.consume_max_span
        )

    def _troubled_by(self, queue: MessageQueue, error: Exception) -> int:
        """Logs an error, once per broker until it can be read again; returns the pause in ms."""
        is_news = queue.broker_name not in self._troubled
        if is_news and self._running and not isinstance(error, ClientClosed):
            self._troubled.add(queue.broker_name)
            log.warn(
                "queue {queue} cannot be pulled, trying again: {error}", queue=queue, error=error
            )
        is_busy = isinstance(error, MQBrokerError) and error.code == ResponseCode.FLOW_CONTROL
        return BROKER_FLOW_CONTROL_MS if is_busy else EXCEPTION_MS

    def _log_failure(self, failure: Failure, queue: MessageQueue) -> None:
        if failure.check(CancelledError) is None:
            log.failure("reading queue {queue} failed", failure, queue=queue)
