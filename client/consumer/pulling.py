# SPDX-License-Identifier: Apache-2.0
"""Pulls the queues of a push consumer, each in a loop of its own, as long as they are its own.

Nothing is pulled while too many messages of the queue wait to be consumed, while the consumer is
suspended or, in order, while the broker has not given the queue to it. After an error it waits for
a moment; a broker that does not know the group, because it was started anew, hears of it first.

Java: DefaultMQPushConsumerImpl.pullMessage.
"""

from __future__ import annotations

from typing import Final

from twisted.internet.defer import Deferred
from twisted.logger import Logger

from txrocketmq.client.consumer.concurrent import ConcurrentConsumption
from txrocketmq.client.consumer.config import MessageModel, PushConsumerConfig
from txrocketmq.client.consumer.offset_store import OffsetStore
from txrocketmq.client.consumer.orderly import OrderlyConsumption
from txrocketmq.client.consumer.process_queue import ProcessQueue
from txrocketmq.client.consumer.pull_queue import Pulled, QueuePull
from txrocketmq.client.consumer.statistics import ConsumerStatistics
from txrocketmq.client.consumer.subscription import Subscriptions
from txrocketmq.client.errors import ClientClosed, MQBrokerError, MQClientError
from txrocketmq.client.instance import ClientInstance
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.errors import RemotingError
from txrocketmq.remoting.message.message import MessageQueue

SUSPEND_MS: Final = 15_000
"""How long a broker may hold a pull (brokerSuspendMaxTimeMillis)."""
TIMEOUT_MS: Final = 30_000
FLOW_CONTROL_MS: Final = 50
"""The pause while too many messages of a queue wait."""
SUSPENDED_MS: Final = 1_000
"""The pause while the consumer is suspended."""
BROKER_FLOW_CONTROL_MS: Final = 20
"""The pause when the broker has too much to do."""
EXCEPTION_MS: Final = 1_000
"""The pause after an error (pullTimeDelayMillsWhenException)."""
_UNKNOWN_HERE: Final = frozenset(
    {ResponseCode.SUBSCRIPTION_NOT_EXIST, ResponseCode.SUBSCRIPTION_NOT_LATEST}
)

log = Logger()


class Pulling:
    """See the module. `queues` is how many queues share the limits that are set for a topic."""

    def __init__(
        self,
        instance: ClientInstance,
        group: str,
        config: PushConsumerConfig,
        subscriptions: Subscriptions,
        offsets: OffsetStore,
        consumption: ConcurrentConsumption | OrderlyConsumption,
        statistics: ConsumerStatistics,
    ) -> None:
        self.queues = 0
        self.is_suspended = False
        self.is_over = False
        self._instance = instance
        self._clock = instance.clock
        self._group = group
        self._config = config
        self._subscriptions = subscriptions
        self._offsets = offsets
        self._consumption = consumption
        self._statistics = statistics
        self._is_orderly = isinstance(consumption, OrderlyConsumption)
        self._is_shared = config.message_model is MessageModel.CLUSTERING
        self._troubled: set[str] = set()
        self._told_ms = -EXCEPTION_MS

    async def read(self, process_queue: ProcessQueue, offset: int) -> int | None:
        """Pulls a queue from an offset on, until it is dropped.

        Ends with an offset when the queue has no message where it is read, nor will have: that is
        where it goes on.
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
        )
        while not process_queue.dropped and not self.is_over:
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
                await pause(self._troubled_by(queue, error))
                continue
            self._troubled.discard(queue.broker_name)
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
        """How long to wait before the next pull; 0: it may begin."""
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

    def _troubled_by(self, queue: MessageQueue, error: Exception) -> int:
        """Says what is wrong, once for a broker until it is read again; how long to wait."""
        code = error.code if isinstance(error, MQBrokerError) else None
        if code in _UNKNOWN_HERE:
            self._tell_brokers()
        is_news = queue.broker_name not in self._troubled
        if is_news and not isinstance(error, ClientClosed) and not self.is_over:
            self._troubled.add(queue.broker_name)
            log.warn("queue {queue} cannot be pulled, trying on: {error}", queue=queue, error=error)
        return BROKER_FLOW_CONTROL_MS if code == ResponseCode.FLOW_CONTROL else EXCEPTION_MS

    def _tell_brokers(self) -> None:
        """Lets brokers know of the group before the next heartbeat, once in a while."""
        steady_ms = self._clock.steady_ms()
        if steady_ms - self._told_ms >= EXCEPTION_MS and not self.is_over:
            self._told_ms = steady_ms
            telling = Deferred.fromCoroutine(self._instance.heartbeat_now())
            telling.addErrback(lambda failure: log.failure("telling brokers failed", failure))
