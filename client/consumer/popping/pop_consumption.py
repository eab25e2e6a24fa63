# SPDX-License-Identifier: Apache-2.0
"""Consumes popped messages in any order, and acknowledges them or hides them again.

A message that fails is hidden for longer each time, and is then delivered again. If it has failed
too often, or must not be delivered again, it becomes a dead letter, as with consumers that pull;
the official client drops it after some hours. Nothing is done with messages whose time was over
while they waited or were consumed: they are delivered again, here or elsewhere.

Java: ConsumeMessagePopConcurrentlyService.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from twisted.internet.defer import Deferred
from twisted.logger import Logger

from txrocketmq.client.base.errors import MQClientError
from txrocketmq.client.consumer.config import PushConsumerConfig
from txrocketmq.client.consumer.listening.concurrent import Consumption, SendBack
from txrocketmq.client.consumer.listening.listener import Calls, ConsumeContext
from txrocketmq.client.consumer.listening.running_calls import AtWork
from txrocketmq.client.consumer.listening.statistics import ConsumerStatistics
from txrocketmq.client.consumer.popping.pop_queue import PoppedBatch
from txrocketmq.client.consumer.popping.pop_requests import Popper
from txrocketmq.remoting.errors import RemotingError
from txrocketmq.remoting.host.clock import Clock
from txrocketmq.remoting.message.message import MessageExt

DELAYS_S: Final = (
    10, 30, 60, 120, 180, 240, 300, 360, 420, 480, 540, 600, 1200, 1800, 3600, 7200,
)  # fmt: skip
"""How long a message is hidden, by the number of times it failed (popDelayLevel)."""
DEAD: Final = -1
"""The delay level of a message that is to be a dead letter."""
_ANY: Final = 2**31

log = Logger()


class PopConsumption(Consumption[PoppedBatch]):
    """Consumes popped messages. `send_back` makes dead letters."""

    def __init__(
        self,
        clock: Clock,
        config: PushConsumerConfig,
        calls: Calls,
        popper: Popper,
        send_back: SendBack,
        statistics: ConsumerStatistics,
    ) -> None:
        super().__init__(clock, config, calls, statistics)
        self._popper = popper
        self._send_back = send_back
        # Limited by what may wait to be acknowledged (pop_threshold_for_queue).
        self._telling = AtWork(clock, _ANY, lambda: None)

    def put(self, process_queue: PoppedBatch, messages: list[MessageExt]) -> None:
        """Consumes popped messages; those that were delivered too often are settled unseen."""
        often = [each for each in messages if each.reconsume_times > self._most]
        if often:
            self._telling.begin(self._come_again(process_queue, often, 0))
            messages = [each for each in messages if each.reconsume_times <= self._most]
        super().put(process_queue, messages)

    def when_idle(self) -> Deferred[None]:
        """Fires when no listener is running, and the outcome of all messages was reported."""
        return super().when_idle().addCallback(lambda _: self._telling.stop())

    def _is_over(self, process_queue: PoppedBatch, messages: Sequence[MessageExt]) -> bool:
        if not process_queue.is_over(self._clock.steady_ms()):
            return False
        process_queue.end(len(messages))
        if not process_queue.process_queue.dropped:
            log.warn(
                "{count} messages of queue {queue} come again, since they waited or were consumed"
                " for longer than pop_invisible_ms",
                count=len(messages),
                queue=process_queue.queue,
            )
        return True

    def _done(self, process_queue: PoppedBatch, messages: Sequence[MessageExt]) -> None:
        self._telling.begin(self._acknowledge(process_queue, list(messages)))

    async def _acknowledge(self, batch: PoppedBatch, messages: list[MessageExt]) -> None:
        try:
            await self._popper.ack_quietly(messages)
        finally:
            batch.end(len(messages))

    async def _failed(
        self, process_queue: PoppedBatch, messages: Sequence[MessageExt], context: ConsumeContext
    ) -> None:
        await self._come_again(process_queue, messages, context.delay_level)

    async def _come_again(
        self, batch: PoppedBatch, messages: Sequence[MessageExt], delay_level: int
    ) -> None:
        for message in messages:
            try:
                is_dead = delay_level < 0 or message.reconsume_times >= self._most
                if is_dead and await self._send_back(message, DEAD):
                    await self._popper.ack_quietly([message])
                    continue
                level = delay_level if delay_level > 0 else message.reconsume_times
                delay_ms = DELAYS_S[min(level, len(DELAYS_S) - 1)] * 1_000
                await self._popper.change_invisible_time(message, delay_ms)
            except (MQClientError, RemotingError) as error:
                log.warn(
                    "message {id} comes again sooner than it should: {error}",
                    id=message.msg_id,
                    error=error,
                )
            finally:
                batch.end(1)
