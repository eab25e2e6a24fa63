# SPDX-License-Identifier: Apache-2.0
"""Pops the queues for which a broker has set this mode, each in a loop of its own.

Nothing is popped while too many messages of the queue wait to be acknowledged, or while the
consumer is suspended. The broker waits for messages when there are none.

Java: DefaultMQPushConsumerImpl.popMessage, and the popProcessQueueTable of RebalanceImpl.
"""

from __future__ import annotations

from collections.abc import Collection

from twisted.internet.defer import CancelledError, Deferred
from twisted.logger import Logger
from twisted.python.failure import Failure

from txrocketmq.client.base.errors import MQClientError
from txrocketmq.client.consumer.config import ConsumeFrom, PushConsumerConfig
from txrocketmq.client.consumer.group.subscription import Subscriptions
from txrocketmq.client.consumer.listening.concurrent import SendBack
from txrocketmq.client.consumer.listening.listener import Calls
from txrocketmq.client.consumer.listening.statistics import ConsumerStatistics
from txrocketmq.client.consumer.listening.troubles import Troubles
from txrocketmq.client.consumer.popping.pop_consumption import PopConsumption
from txrocketmq.client.consumer.popping.pop_queue import PoppedBatch, PopProcessQueue
from txrocketmq.client.consumer.popping.pop_requests import Popper
from txrocketmq.client.consumer.pulling.pull_loops import FLOW_CONTROL_MS, SUSPEND_MS, SUSPENDED_MS
from txrocketmq.client.core.instance import ClientInstance
from txrocketmq.remoting.errors import RemotingError
from txrocketmq.remoting.message.message import MessageQueue
from txrocketmq.remoting.protocol.body.client import PopProcessQueueInfo

log = Logger()


class Popping:
    """Pops queues. `calls` calls the listener; `send_back` makes dead letters."""

    def __init__(
        self,
        instance: ClientInstance,
        group: str,
        config: PushConsumerConfig,
        subscriptions: Subscriptions,
        calls: Calls,
        send_back: SendBack,
        statistics: ConsumerStatistics,
        troubles: Troubles,
    ) -> None:
        self.is_suspended = False
        self._clock = instance.clock
        self._config = config
        is_from_last = config.consume_from is not ConsumeFrom.FIRST_OFFSET
        self._popper = Popper(instance, group, subscriptions, is_from_last=is_from_last)
        self._consumption = PopConsumption(
            self._clock, config, calls, self._popper, send_back, statistics
        )
        self._statistics = statistics
        self._troubles = troubles
        self._popping: dict[MessageQueue, tuple[PopProcessQueue, Deferred[None]]] = {}

    @property
    def queues(self) -> list[MessageQueue]:
        """The queues that are popped; a queue id of -1 means any queue of the broker."""
        return list(self._popping)

    def describe(self) -> dict[MessageQueue, PopProcessQueueInfo]:
        """Describes the popped queues for administrators."""
        ahead_ms = self._clock.now_ms() - self._clock.steady_ms()
        return {queue: its.describe(ahead_ms) for queue, (its, _) in self._popping.items()}

    def take_over(self, topic: str, own: Collection[MessageQueue]) -> bool:
        """Pops exactly these queues of a topic from now on; whether that changes anything."""
        steady_ms = self._clock.steady_ms()
        is_changed = False
        for queue, (process_queue, _) in list(self._popping.items()):
            if queue.topic != topic:
                continue
            if queue not in own or process_queue.is_pop_expired(steady_ms):
                self._drop(queue)
                is_changed = True
        for queue in sorted(own):
            if queue not in self._popping:
                self._begin(PopProcessQueue(queue, steady_ms))
                is_changed = True
        return is_changed

    def stop(self) -> Deferred[None]:
        """Stops popping; fires when the running calls are done and reported to the brokers."""
        for _, popping in list(self._popping.values()):
            popping.cancel()
        return self._consumption.when_idle()

    def drop_all(self) -> None:
        """Drops all queues; popped messages that are not consumed are delivered again later."""
        for queue in list(self._popping):
            self._drop(queue)

    def _drop(self, queue: MessageQueue) -> None:
        process_queue, popping = self._popping.pop(queue)
        process_queue.dropped = True
        popping.cancel()

    def _begin(self, process_queue: PopProcessQueue) -> None:
        queue = process_queue.queue
        popping = Deferred.fromCoroutine(self._pop(process_queue))
        self._popping[queue] = process_queue, popping
        popping.addErrback(self._log_failure, queue)

    async def _pop(self, process_queue: PopProcessQueue) -> None:
        """Pops a queue until it is dropped."""
        pause, queue, config = self._clock.pause, process_queue.queue, self._config
        while not process_queue.dropped and not self._troubles.is_over:
            begun_ms = process_queue.last_pop_ms = self._clock.steady_ms()
            if self.is_suspended:
                await pause(SUSPENDED_MS)
                continue
            if process_queue.waiting > config.pop_threshold_for_queue:
                await pause(FLOW_CONTROL_MS)
                continue
            try:
                messages = await self._popper.pop(
                    queue, config.pop_batch_size, config.pop_invisible_ms, SUSPEND_MS
                )
            except (MQClientError, RemotingError) as error:
                await pause(self._troubles.begin(queue, error))
                continue
            self._troubles.end(queue.broker_name)
            now_ms = self._clock.steady_ms()
            if messages:
                self._statistics.of(queue.topic).pulled(len(messages), now_ms - begun_ms)
                until_ms = now_ms + config.pop_invisible_ms
                batch = PoppedBatch(process_queue, len(messages), until_ms)
                self._consumption.put(batch, messages)
            if messages and config.pull_interval_ms:
                await pause(config.pull_interval_ms)
            elif not messages and now_ms == begun_ms:
                await pause(0)

    def _log_failure(self, failure: Failure, queue: MessageQueue) -> None:
        if failure.check(CancelledError) is None:
            log.failure("popping queue {queue} failed", failure, queue=queue)
