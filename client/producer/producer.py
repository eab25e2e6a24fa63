# SPDX-License-Identifier: Apache-2.0
"""Sends messages: one by one, one-way, in batches; tries other brokers when one fails.

All attempts of a send share one time limit. A broker that cannot be reached, or answers with a code
that another broker may not answer with, is avoided by the next attempt; with
`send_latency_fault_enable` also by the sends after it. Counterpart of DefaultMQProducer and
DefaultMQProducerImpl; what asks and answers is in request_reply.py, transactions are in
transaction.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from twisted.internet.defer import CancelledError, Deferred

from txrocketmq.client import errors
from txrocketmq.client.config import ProducerConfig
from txrocketmq.client.errors import (
    BrokerNotExist,
    MessageIllegal,
    MQBrokerError,
    MQClientError,
    NoRoute,
    SendFailed,
    TooMuchOnTheWay,
)
from txrocketmq.client.instance import ClientInstance
from txrocketmq.client.producer import trace_dispatcher
from txrocketmq.client.producer.attempt import Attempts
from txrocketmq.client.producer.backpressure import Backpressure
from txrocketmq.client.producer.hooks import CheckForbidden, Hooks, SendHook
from txrocketmq.client.producer.parcel import Packer, Parcel
from txrocketmq.client.producer.recall import decode_handle, recall_message
from txrocketmq.client.producer.request_reply import as_request, reply_to
from txrocketmq.client.producer.selectors import Selector
from txrocketmq.client.producer.send_result import SendResult, SendStatus
from txrocketmq.client.producer.trace_dispatcher import TraceDispatcher
from txrocketmq.client.started import Started
from txrocketmq.client.validate import check_group
from txrocketmq.remoting.errors import ConnectError, RemotingError, RequestTimeout
from txrocketmq.remoting.message.message import Message, MessageExt, MessageQueue

DEFAULT_GROUP: Final = "DEFAULT_PRODUCER"


class Producer:
    """Sends messages as a member of a producer group.

    Every send raises MessageIllegal for a message that no broker would accept, NoRoute or
    NoNameServer if there is nowhere to send it, MQBrokerError for an answer that another broker
    would give as well, and SendFailed when all attempts have failed.
    """

    def __init__(
        self, instance: ClientInstance, group: str, config: ProducerConfig | None = None
    ) -> None:
        check_group(group)
        if group == DEFAULT_GROUP:
            raise MessageIllegal(f"the group {group} is reserved: give the producer its own name")
        self._group = group
        self.config = config or ProducerConfig()
        self._instance = instance
        self._hooks = Hooks()
        self._packer = Packer(instance, group, self.config)
        self._attempts = Attempts(instance, self.config, self._packer, self._hooks)
        self._backpressure = Backpressure(
            self.config.backpressure_send_num, self.config.backpressure_send_size
        )
        self._trace: TraceDispatcher | None = None
        self._tracer: Producer
        self._registered_group = instance.with_namespace(group)
        self._register()

    @property
    def group(self) -> str:
        """The name of the producer's group."""
        return self._group

    def _register(self) -> None:
        self._instance.register_producer(self._registered_group)

    async def start(self) -> None:
        """Asks for the routes of `topics` in its settings, and tells the brokers that it is there.

        Raises NoNameServer when a route is to be asked for and nobody can be asked. A topic that
        does not exist yet is no error: the first send creates it, where brokers allow that.
        """
        self._attempts.start()
        if self.config.enable_trace:
            self._trace = self._new_trace()
            self._hooks.send.append(self._trace)
            self._hooks.end_transaction.append(self._trace.transaction_ended)
            self._trace.start()
        for topic in self.config.topics:
            try:
                await self._attempts.publish_info(self._instance.with_namespace(topic))
            except NoRoute:
                continue
        await self._instance.heartbeat_now()

    def _new_trace(self) -> TraceDispatcher:
        config = ProducerConfig(
            send_timeout_ms=trace_dispatcher.SEND_TIMEOUT_MS,
            max_message_bytes=trace_dispatcher.MAX_MESSAGE_BYTES,
        )
        group = trace_dispatcher.trace_group(self.group, "PRODUCE")
        self._tracer = Producer(self._instance, group, config)
        return TraceDispatcher(
            self._instance.clock, self.group, self.config.trace_topic, self._tracer.send
        )

    async def shutdown(self) -> None:
        """Sends the traces that wait, and takes leave of the brokers. Raises nothing."""
        if self._trace is not None:
            await self._trace.shutdown()
            await self._tracer.shutdown()
            self._trace = None
        self._attempts.stop()
        await self._instance.unregister_producer(self._registered_group)

    # ----------------------------------------------------------------- sends

    async def send(
        self,
        message: Message,
        *,
        queue: MessageQueue | None = None,
        selector: Selector | None = None,
        key: Any = None,
        timeout_ms: int | None = None,
    ) -> SendResult:
        """Sends a message to a given queue, to one that a selector chooses, or to the next one.

        The message gets a unique key if it has none. With `queue` or `selector` there is only one
        attempt, and its error is raised as it is. Raises the errors that the class describes.
        """
        parcel = self._packer.at_once(message) or await self._packer.message(message)
        if selector is not None:
            queue = await self._target(message, queue, selector, key)
        return await self._send(parcel, queue, timeout_ms)

    async def send_batch(
        self,
        messages: Sequence[Message],
        *,
        queue: MessageQueue | None = None,
        timeout_ms: int | None = None,
    ) -> SendResult:
        """Sends messages of one topic with one request, into one queue.

        `split_batches` divides any number of messages into such batches. Raises the errors that the
        class describes.
        """
        return await self._send(self._packer.batch(messages), queue, timeout_ms)

    async def send_async(
        self,
        message: Message,
        *,
        queue: MessageQueue | None = None,
        selector: Selector | None = None,
        key: Any = None,
        timeout_ms: int | None = None,
    ) -> Started[SendResult]:
        """Begins to send a message; the result is complete when a broker has answered.

        With `backpressure_enable`, the call waits while too many messages are unanswered, and
        raises TooMuchOnTheWay if that takes longer than the send may take. The errors that the
        class describes are raised by the result.
        """
        size_bytes = len(message.body)
        timeout_ms = timeout_ms or self.config.send_timeout_ms
        limited = self.config.backpressure_enable
        if limited:
            timeout_ms -= await self._admitted(size_bytes, timeout_ms)
        sending = Deferred.fromCoroutine(
            self.send(message, queue=queue, selector=selector, key=key, timeout_ms=timeout_ms)
        )
        if limited:

            def over(outcome: Any) -> Any:
                self._backpressure.leave(size_bytes)
                return outcome

            sending.addBoth(over)
        return Started(sending)

    async def send_oneway(
        self,
        message: Message,
        *,
        queue: MessageQueue | None = None,
        selector: Selector | None = None,
        key: Any = None,
    ) -> None:
        """Sends a message once without waiting for an answer, so it may be lost.

        Raises MessageIllegal, NoRoute, NoNameServer and BrokerNotExist.
        """
        parcel = await self._packer.message(message)
        target = await self._target(message, queue, selector, key)
        await self._attempts.oneway(parcel, target)

    # --------------------------------------------------------- ask and answer

    async def request(
        self,
        message: Message,
        *,
        timeout_ms: int,
        queue: MessageQueue | None = None,
        selector: Selector | None = None,
        key: Any = None,
    ) -> MessageExt:
        """Sends a message and waits for the reply of a consumer.

        Raises RequestTimedOut if no reply arrives in time, and whatever a send raises.
        """
        steady_ms = self._instance.clock.steady_ms
        begun_ms = steady_ms()
        correlation_id = as_request(message, self._instance.client_id, timeout_ms)
        topic = self._instance.with_namespace(message.topic)
        if not self._instance.has_route(topic):
            await self._attempts.publish_info(topic)
        if not self._instance.is_introduced:  # else a broker would not know whom to push replies to
            await self._instance.heartbeat_now()
        left_ms = max(timeout_ms - (steady_ms() - begun_ms), 1)
        reply = self._instance.replies.expect(correlation_id, left_ms, message.topic)
        try:
            await self.send(message, queue=queue, selector=selector, key=key, timeout_ms=left_ms)
        except BaseException:
            reply.addErrback(lambda _: None)  # it fails now, or with whatever came first
            reply.cancel()
            raise
        return await reply

    async def reply(
        self, request: Message, body: bytes, *, timeout_ms: int | None = None
    ) -> SendResult:
        """Sends the reply to a message that was sent with `request`.

        Raises NotARequest for any other message, and whatever a send raises.
        """
        parcel = await self._packer.message(reply_to(request, body))
        return await self._send(parcel, None, timeout_ms)

    async def recall(self, topic: str, recall_handle: str) -> str:
        """Withdraws a delayed message that is not due yet; returns the message's id.

        The handle is the `recall_handle` of its SendResult, which 5.x brokers return. Raises
        MessageIllegal for an invalid handle, and MQBrokerError if the broker does not withdraw the
        message.
        """
        group, timeout_ms = self._registered_group, self.config.send_timeout_ms
        instance, is_done = self._instance, False
        handle = decode_handle(recall_handle)
        try:
            msg_id = await recall_message(instance, group, topic, recall_handle, timeout_ms)
            is_done = True
        finally:
            if self._trace is not None:
                self._trace.recalled(topic, handle.msg_id, success=is_done)
        return msg_id

    async def publish_queues(self, topic: str) -> list[MessageQueue]:
        """Returns all queues of a topic to which messages can be sent.

        Raises NoRoute and NoNameServer.
        """
        info = await self._attempts.publish_info(self._instance.with_namespace(topic))
        return [MessageQueue(topic, each.broker_name, each.queue_id) for each in info.queues]

    # ----------------------------------------------------------------- hooks

    def add_send_hook(self, hook: SendHook) -> None:
        """Adds a hook that is called before and after each attempt to send."""
        self._hooks.send.append(hook)

    def add_check_forbidden_hook(self, hook: CheckForbidden) -> None:
        """Adds a hook that can keep messages from being sent, by raising an exception."""
        self._hooks.forbidden.append(hook)

    # -------------------------------------------------------------- internals

    async def _target(
        self, message: Message, queue: MessageQueue | None, selector: Selector | None, key: Any
    ) -> MessageQueue | None:
        if selector is None:
            return queue
        if queue is not None:
            raise ValueError("give a queue or a selector, not both")
        queues = await self.publish_queues(message.topic)
        chosen = selector(queues, message, key)
        if chosen not in queues:
            raise ValueError(f"the selector gave {chosen!r:.200}, which is no queue of the topic")
        return chosen

    async def _admitted(self, size_bytes: int, timeout_ms: int) -> int:
        """Waits until there is room; how long that took."""
        clock = self._instance.clock
        begun_ms = clock.steady_ms()
        entered = self._backpressure.enter(size_bytes)
        if not entered.called:
            late = clock.later(timeout_ms, entered.cancel)
            try:
                await entered
            except CancelledError:
                if late.active():
                    late.cancel()
                    raise  # the caller's own doing
                waiting = self._backpressure
                raise TooMuchOnTheWay(
                    f"{waiting.count} messages of {waiting.size_bytes} bytes are on their way, and"
                    f" none of them was answered for in {timeout_ms} ms: send more slowly, or raise"
                    " backpressure_send_num and backpressure_send_size"
                ) from None
            if late.active():
                late.cancel()
        return min(clock.steady_ms() - begun_ms, timeout_ms - 1)

    def _shortened(self, left_ms: int) -> int:
        most_ms = self.config.send_max_timeout_per_request_ms
        return min(left_ms, most_ms) if most_ms > 0 else left_ms

    async def _send(
        self, parcel: Parcel, queue: MessageQueue | None, timeout_ms: int | None
    ) -> SendResult:
        config, steady_ms = self.config, self._instance.clock.steady_ms
        timeout_ms = timeout_ms or config.send_timeout_ms
        deadline_ms = steady_ms() + timeout_ms
        if queue is not None:
            return await self._attempt(parcel, queue, deadline_ms, is_last=True)
        failed: list[tuple[str, Exception]] = []
        result: SendResult | None = None
        last_broker: str | None = None
        for retries_left in reversed(range(1 + config.retry_times)):
            attempts = self._attempts
            target = attempts.known_queue(parcel.topic, last_broker) or await attempts.next_queue(
                parcel.topic, last_broker
            )
            last_broker = target.broker_name
            if deadline_ms <= steady_ms():
                break
            try:
                result = await self._attempt(parcel, target, deadline_ms, is_last=not retries_left)
            except MQBrokerError as error:
                failed.append((last_broker, error))
                if error.code not in config.retry_response_codes:
                    if result is None:
                        raise
                    break
            except (BrokerNotExist, RemotingError) as error:
                failed.append((last_broker, error))
            else:
                is_safe = result.status is SendStatus.SEND_OK
                if is_safe or not config.retry_another_broker_when_not_store_ok:
                    return result
        if result is not None:
            return result
        if not failed:
            failed.append(("-", RequestTimeout(f"{timeout_ms} ms were over before the first")))
        raise SendFailed(parcel.topic, failed, _code_of(failed[-1][1]))

    async def _attempt(
        self, parcel: Parcel, queue: MessageQueue, deadline_ms: int, *, is_last: bool
    ) -> SendResult:
        """Sends to a queue. The last attempt waits for a broker that is left alone for a while.

        The attempts before it ask another broker instead. A broker that has just come back is found
        in this way, although connections to it failed shortly before.
        """
        clock = self._instance.clock
        timeout_ms = self._shortened(deadline_ms - clock.steady_ms())
        try:
            return await self._attempts.attempt(parcel, queue, timeout_ms)
        except ConnectError as error:
            left_ms = deadline_ms - clock.steady_ms()
            if not (is_last and 0 < error.again_in_ms < left_ms):
                raise
            await clock.pause(error.again_in_ms)
        return await self._attempt(parcel, queue, deadline_ms, is_last=False)


def _code_of(error: Exception) -> int:
    """The number under which the Java client reports what went wrong last."""
    if isinstance(error, MQClientError):
        return error.code
    if isinstance(error, ConnectError):
        return errors.CONNECT_BROKER
    if isinstance(error, RequestTimeout):
        return errors.ACCESS_BROKER_TIMEOUT
    return MQClientError.code
