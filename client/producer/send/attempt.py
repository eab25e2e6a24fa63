# SPDX-License-Identifier: Apache-2.0
"""One attempt to send: the queue it goes to, the broker's address, its answer, what is learned.

Counterpart of sendKernelImpl and selectOneMessageQueue of DefaultMQProducerImpl, and of the
detector of LatencyFaultToleranceImpl.
"""

from __future__ import annotations

from typing import Any, Final

from twisted.internet.defer import CancelledError, Deferred
from twisted.logger import Logger

from txrocketmq.client.base.config import ProducerConfig
from txrocketmq.client.base.errors import MQBrokerError, MQClientError
from txrocketmq.client.core.api import refusal
from txrocketmq.client.core.instance import ClientInstance
from txrocketmq.client.producer.hooks import Hooks, SendContext
from txrocketmq.client.producer.send.backpressure import Backpressure
from txrocketmq.client.producer.send.oneway_room import OnewayRoom
from txrocketmq.client.producer.send.parcel import Packer, Parcel
from txrocketmq.client.producer.send_result import SendResult, send_result
from txrocketmq.remoting.call import PendingReply, Reply
from txrocketmq.remoting.codes import STORED
from txrocketmq.remoting.errors import RemotingError
from txrocketmq.remoting.message.message import MessageQueue
from txrocketmq.remoting.routing.latency import LatencyFaults
from txrocketmq.remoting.routing.routes import PublishInfo
from txrocketmq.remoting.transport.client import as_deferred, parse_address

DETECT_PERIOD_MS: Final = 3_000
VIP_PORTS_BELOW: Final = 2

log = Logger()


class Attempt:
    """One attempt to send a message to a queue."""

    __slots__ = ("address", "begun_ms", "context", "parcel", "queue")

    def __init__(self, parcel: Parcel, queue: MessageQueue, address: str, begun_ms: int) -> None:
        self.parcel = parcel
        self.queue = queue
        self.address = address
        self.begun_ms = begun_ms
        self.context: SendContext | None = None
        """The attempt as hooks see it, or None if there are no hooks."""


class Attempts:
    """The attempts of one producer; `start` begins to look after brokers that failed."""

    def __init__(
        self, instance: ClientInstance, config: ProducerConfig, packer: Packer, hooks: Hooks
    ) -> None:
        self._instance = instance
        self.config = config
        self.room = Backpressure(instance.clock, config)
        self.oneways = OnewayRoom(instance.clock, instance.api.when_free, config.max_block_ms)
        self.steady_ms = instance.clock.steady_ms
        self.pause = instance.clock.pause
        self._packer = packer
        self._hooks = hooks
        self._faults = LatencyFaults()
        self._detecting: Any = None
        self._topics: dict[str, str] = {}
        """A topic of each broker, for the requests that find out whether it is back."""

    def start(self) -> None:
        """Begins to check brokers that failed, if the settings ask for that."""
        if self.config.send_latency_fault_enable and self.config.start_detector_enable:
            self._detecting = self._instance.clock.every(DETECT_PERIOD_MS, self._detect)

    def stop(self) -> None:
        """Ends the checks."""
        if self._detecting is not None:
            self._detecting.cancel()

    async def publish_info(self, topic: str) -> PublishInfo:
        """The queues of a topic, named as brokers have it. Raises NoRoute and NoNameServer."""
        return await self._instance.publish_info(
            topic, self.config.create_topic_key, self.config.default_topic_queue_nums
        )

    async def next_queue(self, topic: str, last_broker: str | None) -> MessageQueue:
        """Returns the next queue, if possible at another broker than the last attempt."""
        return self._select(await self.publish_info(topic), last_broker)

    def known_queue(self, topic: str, last_broker: str | None) -> MessageQueue | None:
        """Returns the next queue if those of the topic are known, as they nearly always are."""
        info = self._instance.routes.publish_info(topic)
        if info is None or self.config.send_latency_fault_enable:
            return None if info is None else self._select(info, last_broker)
        return info.select(last_broker)

    def _select(self, info: PublishInfo, last_broker: str | None) -> MessageQueue:
        if not self.config.send_latency_fault_enable:
            return info.select(last_broker)
        now_ms, faults = self.steady_ms(), self._faults
        return info.select(
            last_broker, (lambda name: faults.is_available(name, now_ms), faults.is_reachable)
        )

    def shortened(self, left_ms: int) -> int:
        """Returns how long an attempt may take if `left_ms` are left for the send."""
        most_ms = self.config.send_max_timeout_per_request_ms
        return min(left_ms, most_ms) if most_ms > 0 else left_ms

    async def attempt(self, parcel: Parcel, queue: MessageQueue, timeout_ms: int) -> SendResult:
        """Sends to a queue. Raises BrokerNotExist, MQBrokerError and RemotingErrors."""
        begun_ms = self.steady_ms()
        address = self.known_address(queue) or await self._address(parcel, queue)
        attempt = Attempt(parcel, queue, address, begun_ms)
        pending = self.ask(attempt, timeout_ms)
        outcome: Reply[Any] | Exception
        try:
            outcome = await as_deferred(pending)
        except (CancelledError, RemotingError) as error:
            outcome = error
        return self.result_of(attempt, outcome)

    def ask(self, attempt: Attempt, timeout_ms: int) -> PendingReply:
        """Sends; the outcome is for `result_of`. Raises what a CheckForbidden raises."""
        parcel = attempt.parcel
        header = self._packer.header(parcel, attempt.queue)
        hooks = self._hooks
        if hooks.send or hooks.forbidden:
            attempt.context = context = self._context(parcel, attempt.queue, attempt.address)
            hooks.before(context)
        return self._instance.api.send(
            attempt.address, parcel.shape.call, header, parcel.body, timeout_ms
        )

    def result_of(self, attempt: Attempt, outcome: Reply[Any] | Exception) -> SendResult:
        """Returns the result of an attempt, or raises its error; MQBrokerError is a refusal."""
        parcel, queue, context = attempt.parcel, attempt.queue, attempt.context
        error: Exception | None = None
        result: SendResult | None = None
        if isinstance(outcome, Exception):
            error = outcome
        elif outcome.code not in STORED:
            error = refusal(outcome, attempt.address, self._packer.header(parcel, queue))
        else:
            topic = parcel.message.topic
            if queue.topic != topic:
                queue = MessageQueue(topic, queue.broker_name, queue.queue_id)
            result = send_result(outcome, queue, parcel.msg_id)
        if self.config.send_latency_fault_enable:
            self._learn_of(attempt.queue, attempt.begun_ms, error)
        if context is not None:
            context.error, context.result = error, result
            self._hooks.after(context)
        if result is None:
            assert error is not None
            raise error
        return result

    def oneway(self, parcel: Parcel, queue: MessageQueue | None) -> bool:
        """Sends without an answer, if the queue and the address of its broker are known."""
        target = queue or self.known_queue(parcel.topic, None)
        address = None if target is None else self.known_address(target)
        if target is None or address is None:
            return False
        self._tell(parcel, target, address)
        return True

    async def oneway_later(self, parcel: Parcel, queue: MessageQueue | None) -> None:
        """Sends without an answer, after asking for the queue and the address if need be.

        Raises NoRoute, NoNameServer and BrokerNotExist.
        """
        target = queue or await self.next_queue(parcel.topic, None)
        self._tell(parcel, target, await self._address(parcel, target))

    def _tell(self, parcel: Parcel, queue: MessageQueue, address: str) -> None:
        hooks = self._hooks
        is_seen = hooks.send or hooks.forbidden
        context = self._context(parcel, queue, address) if is_seen else None
        if context is not None:
            hooks.before(context)
        header = self._packer.header(parcel, queue)
        if not self._instance.api.send_oneway(address, parcel.shape.call, header, parcel.body):
            self.oneways.filled(address)
        if context is not None:
            hooks.after(context)

    def known_address(self, queue: MessageQueue) -> str | None:
        """Returns the address of a queue's broker, or None if a request would be needed."""
        address = self._instance.brokers.to_publish(queue.broker_name)
        return None if address is None else self._at_port(address)

    async def _address(self, parcel: Parcel, queue: MessageQueue) -> str:
        named = MessageQueue(parcel.topic, queue.broker_name, queue.queue_id)
        return self._at_port(await self._instance.address_to_publish(named))

    def _at_port(self, address: str) -> str:
        return vip_address(address) if self._instance.config.vip_channel_enabled else address

    def _context(self, parcel: Parcel, queue: MessageQueue, address: str) -> SendContext:
        return SendContext(
            self._packer.group, parcel.message, queue, address, parcel.message_type,
            self._instance.clock.now_ms(),
        )  # fmt: skip

    def _learn_of(self, queue: MessageQueue, begun_ms: int, error: Exception | None) -> None:
        now_ms = self.steady_ms()
        is_refused = isinstance(error, MQBrokerError)
        is_lost = isinstance(error, RemotingError)
        is_gone = is_refused or (is_lost and self.config.start_detector_enable)
        self._topics[queue.broker_name] = queue.topic
        self._faults.update(
            queue.broker_name,
            now_ms - begun_ms,
            now_ms,
            isolate=is_refused or is_lost,
            reachable=not is_gone,
        )

    def _detect(self) -> None:
        now_ms = self._instance.clock.steady_ms()
        for name in self._faults.to_detect(now_ms, self.config.detect_interval_ms):
            address = self._instance.brokers.to_publish(name)
            if address is None:
                self._faults.remove(name)
                self._topics.pop(name, None)
                continue
            Deferred.fromCoroutine(self._look_at(name, address))

    async def _look_at(self, name: str, address: str) -> None:
        queue = MessageQueue(self._instance.with_namespace(self._topics[name]), name, 0)
        try:
            await self._instance.api.max_offset(address, queue, self.config.detect_timeout_ms)
        except (MQClientError, RemotingError) as error:
            log.debug("broker {name} is not reachable yet: {error}", name=name, error=error)
        else:
            self._faults.seen(name)


def vip_address(address: str) -> str:
    """Returns the broker's address for messages alone (MixAll.brokerVIPChannel)."""
    _, port = parse_address(address)
    return f"{address.rpartition(':')[0]}:{port - VIP_PORTS_BELOW}"
