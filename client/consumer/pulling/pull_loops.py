# SPDX-License-Identifier: Apache-2.0
"""Pulls the queues of a push consumer, each in a loop of its own, while they are assigned to it.

Nothing is pulled while too many messages of the queue wait to be consumed, while the consumer is
suspended or, in order, while the broker has not given the queue to it. After an error it waits for
a moment.

Java: DefaultMQPushConsumerImpl.pullMessage.
"""

from __future__ import annotations

from typing import Final

from txrocketmq.client.base.errors import MQClientError
from txrocketmq.client.consumer.config import MessageModel, PushConsumerConfig
from txrocketmq.client.consumer.group.subscription import Subscriptions
from txrocketmq.client.consumer.listening.concurrent import ConcurrentConsumption
from txrocketmq.client.consumer.listening.orderly import OrderlyConsumption
from txrocketmq.client.consumer.listening.statistics import ConsumerStatistics
from txrocketmq.client.consumer.listening.troubles import EXCEPTION_MS, Troubles
from txrocketmq.client.consumer.queue.offset_store import OffsetStore
from txrocketmq.client.consumer.queue.process_queue import ProcessQueue
from txrocketmq.client.consumer.queue.pull_queue import Pulled, QueuePull
from txrocketmq.client.core.instance import ClientInstance
from txrocketmq.remoting.errors import RemotingError

SUSPEND_MS: Final = 15_000
"""How long a broker may hold a pull (brokerSuspendMaxTimeMillis)."""
TIMEOUT_MS: Final = 30_000
FLOW_CONTROL_MS: Final = 50
"""The pause while too many messages of a queue wait."""
SUSPENDED_MS: Final = 1_000
"""The pause while the consumer is suspended."""


class Pulling:
    """Pulls queues. `queues` is how many queues share the limits that are set for a topic."""

    def __init__(
        self,
        instance: ClientInstance,
        group: str,
        config: PushConsumerConfig,
        subscriptions: Subscriptions,
        offsets: OffsetStore,
        consumption: ConcurrentConsumption | OrderlyConsumption,
        statistics: ConsumerStatistics,
        troubles: Troubles,
    ) -> None:
        self.queues = 0
        self.is_suspended = False
        self._instance = instance
        self._clock = instance.clock
        self._group = group
        self._config = config
        self._subscriptions = subscriptions
        self._offsets = offsets
        self._consumption = consumption
        self._statistics = statistics
        self._troubles = troubles
        self._is_orderly = isinstance(consumption, OrderlyConsumption)
        self._is_shared = config.message_model is MessageModel.CLUSTERING

    async def read(self, process_queue: ProcessQueue, offset: int) -> int | None:
        """Pulls a queue from an offset on, until it is dropped.

        Returns the offset to continue at if the broker says that `offset` is outside the queue, or
        if the queue was made anew.
        """
        pause, queue, config = self._clock.pause, process_queue.queue, self._config
        puller = QueuePull(
            self._instance,
            self._group,
            queue,
            suspend_ms=SUSPEND_MS,
            timeout_ms=TIMEOUT_MS,
            batch_size=config.pull_batch_size,
            batch_bytes=config.pull_batch_bytes,
            marks=self._offsets.marks,
        )
        while not process_queue.dropped and not self._troubles.is_over:
            begun_ms = process_queue.last_pull_ms = self._clock.steady_ms()
            rest_ms = self._rest_ms(process_queue)
            if rest_ms:
                await pause(rest_ms)
                continue
            try:
                pulled = await puller.pull(
                    offset,
                    self._subscriptions.of(queue.topic),
                    commit_offset=(self._offsets.noted(queue) or 0) if self._is_shared else 0,
                    posts_subscription=config.post_subscription_when_pull,
                )
            except (MQClientError, RemotingError) as error:
                await pause(self._troubles.begin(queue, error))
                continue
            self._troubles.end(queue.broker_name)
            if pulled.is_moved:
                return pulled.next_offset
            self._put(process_queue, pulled, begun_ms)
            if pulled.is_found and config.pull_interval_ms:
                await pause(config.pull_interval_ms)
            elif not pulled.is_found and pulled.next_offset == offset:
                await pause(0)
            offset = pulled.next_offset
        return None

    def _put(self, process_queue: ProcessQueue, pulled: Pulled, begun_ms: int) -> None:
        if process_queue.dropped:
            return
        if pulled.messages:
            took_ms = self._clock.steady_ms() - begun_ms
            statistics = self._statistics.of(process_queue.queue.topic)
            statistics.pulled(len(pulled.messages), took_ms)
            self._consumption.put(process_queue, process_queue.put(pulled.messages))
        if not process_queue.count and not process_queue.dropped:
            self._offsets.note(process_queue.queue, pulled.next_offset)

    def _rest_ms(self, process_queue: ProcessQueue) -> int:
        """Returns how long to wait before the next pull; 0 if it may begin."""
        if self.is_suspended:
            return SUSPENDED_MS
        config, queues = self._config, self.queues
        count, size_bytes = process_queue.count, process_queue.size_bytes
        if count > config.threshold_for_queue(queues):
            return FLOW_CONTROL_MS
        if size_bytes > config.threshold_size_for_queue(queues):
            return FLOW_CONTROL_MS
        if not self._is_orderly:
            is_wide = process_queue.span > config.consume_concurrently_max_span
            return FLOW_CONTROL_MS if is_wide else 0
        return EXCEPTION_MS if self._is_shared and not process_queue.locked else 0
