# SPDX-License-Identifier: Apache-2.0
"""Sends messages: one by one, one-way, in batches; tries other brokers when one fails.

All attempts of a send share one time limit, which begins when the send is taken up: while as much
as allowed is on its way, further sends wait (send/backpressure.py). A broker that cannot be
reached, or answers with a code that another broker may not answer with, is avoided by the next
attempt; with `send_latency_fault_enable` also by the sends after it. Counterpart of
DefaultMQProducer and DefaultMQProducerImpl; what asks and answers is in request_reply.py,
transactions are in transaction.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from twisted.internet.defer import CancelledError, Deferred, maybeDeferred
from twisted.python.failure import Failure

from txrocketmq.client.base.config import ProducerConfig
from txrocketmq.client.base.errors import NoRoute
from txrocketmq.client.base.validators import check_producer_group
from txrocketmq.client.core.instance import ClientInstance
from txrocketmq.client.producer import trace_dispatcher
from txrocketmq.client.producer.hooks import CheckForbidden, Hooks, SendHook
from txrocketmq.client.producer.new_message import topic_and_body
from txrocketmq.client.producer.recall import decode_handle, recall_message
from txrocketmq.client.producer.request_reply import as_request, reply_to
from txrocketmq.client.producer.send.attempt import Attempts
from txrocketmq.client.producer.send.parcel import Packer, Parcel
from txrocketmq.client.producer.send.selectors import Selector
from txrocketmq.client.producer.send.send import Sending
from txrocketmq.client.producer.send_result import SendResult
from txrocketmq.client.producer.trace_dispatcher import TraceDispatcher
from txrocketmq.client.thread.coroutine import Course
from txrocketmq.client.thread.pending_calls import Cancellable, Started, begun, begun_by
from txrocketmq.remoting.message.message import Message, MessageExt, MessageQueue
from txrocketmq.remoting.routing.routes import PublishInfo


class Producer:
    """Sends messages as a member of a producer group.

    Every send raises MessageIllegal for a message that no broker would accept, NoRoute or
    NoNameServer if there is nowhere to send it, MQBrokerError for an answer that another broker
    would give as well, SendFailed when all attempts have failed, BackpressureTimeout if it could
    not be taken up within `max_block_ms`, ClientClosed if it was not taken up before the shutdown,
    and ValueError for both a queue and a selector, or for a selector that chooses none of the
    queues.
    """

    def __init__(
        self, instance: ClientInstance, group: str, config: ProducerConfig | None = None
    ) -> None:
        check_producer_group(group)
        self._group = group
        self.config = config or ProducerConfig()
        self._instance = instance
        self._hooks = Hooks()
        self._packer = Packer(instance, group, self.config)
        self._attempts = Attempts(instance, self.config, self._packer, self._hooks)
        self._room = self._attempts.room
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
        """Sends the traces that wait, and takes leave of the brokers. Raises nothing.

        Sends that were not taken up yet fail with ClientClosed.
        """
        await self._room.close()
        await self._attempts.oneways.close()
        if self._trace is not None:
            await self._trace.shutdown()
            await self._tracer.shutdown()
            self._trace = None
        self._attempts.stop()
        await self._instance.unregister_producer(self._registered_group)

    # ----------------------------------------------------------------- sends

    @topic_and_body
    @begun_by("_begin_send")
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
        sending: Deferred[SendResult] = begun(
            self._begin_send, message, queue=queue, selector=selector, key=key,
            timeout_ms=timeout_ms,
        )  # fmt: skip
        return await sending

    def _begin_send(
        self,
        settle: Callable[[Any], None],
        message: Message,
        *,
        queue: MessageQueue | None = None,
        selector: Selector | None = None,
        key: Any = None,
        timeout_ms: int | None = None,
        has_waited: bool = False,
    ) -> Cancellable:
        """Begins what `send` does; `settle` is called with the result or with a Failure.

        This is the way of nearly all messages, so it makes no coroutine where it need not wait.
        `has_waited`: there is room for it.
        """
        if self._room.is_full and not has_waited:
            return self._room.wait(settle, partial(
                self._begin_send, message=message, queue=queue, selector=selector, key=key,
                timeout_ms=timeout_ms, has_waited=True,
            ))  # fmt: skip
        if selector is None:
            parcel, target = self._packer.at_once(message), queue
        else:
            parcel, target = self._selected_at_once(message, queue, selector, key)
        if parcel is None:
            later = self._send_later(message, queue, selector, key, timeout_ms)
            return Course(later, settle).begun()
        timeout_ms = timeout_ms or self.config.send_timeout_ms
        return Sending(self._attempts, parcel, target, timeout_ms, settle).begun()

    def _selected_at_once(
        self, message: Message, queue: MessageQueue | None, selector: Selector, key: Any
    ) -> tuple[Parcel | None, MessageQueue | None]:
        """Returns the parcel and its queue; the parcel is None if one has to wait for either."""
        parcel = self._packer.at_once(message)
        info = None if parcel is None else self._instance.routes.publish_info(parcel.topic)
        if info is None:
            return None, None
        return parcel, _selected(_named(info, message.topic), message, queue, selector, key)

    async def _send_later(
        self,
        message: Message,
        queue: MessageQueue | None,
        selector: Selector | None,
        key: Any,
        timeout_ms: int | None,
    ) -> SendResult:
        parcel = await self._packer.message(message)
        target = await self._target(message, queue, selector, key)
        return await self._sent(parcel, target, timeout_ms)

    @begun_by("_begin_batch")
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
        sending: Deferred[SendResult] = begun(
            self._begin_batch, messages, queue=queue, timeout_ms=timeout_ms
        )
        return await sending

    def _begin_batch(
        self,
        settle: Callable[[Any], None],
        messages: Sequence[Message],
        *,
        queue: MessageQueue | None = None,
        timeout_ms: int | None = None,
    ) -> Cancellable:
        return self._begin_parcel(settle, self._packer.batch(messages), queue, timeout_ms)

    @topic_and_body
    @begun_by(
        "_begin_send",
        unless=lambda producer: producer.config.backpressure_enable,
        room=lambda producer: producer._room,  # noqa: SLF001 - of this class
    )
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

        The call does not wait, unless very many messages wait to be taken up. With
        `backpressure_enable`, it waits while too many messages are unanswered, and raises
        BackpressureTimeout if that takes longer than the send may take. The errors that the class
        describes are raised by the result.
        """
        timeout_ms = timeout_ms or self.config.send_timeout_ms
        limited = self.config.backpressure_enable
        if limited:
            timeout_ms -= await self._admitted(timeout_ms)
        sending: Deferred[SendResult] = maybeDeferred(
            begun, self._begin_send, message, queue=queue, selector=selector, key=key,
            timeout_ms=timeout_ms, has_waited=limited,
        )  # fmt: skip
        return Started(sending)

    @topic_and_body
    @begun_by("_begin_oneway")
    async def send_oneway(
        self,
        message: Message,
        *,
        queue: MessageQueue | None = None,
        selector: Selector | None = None,
        key: Any = None,
    ) -> None:
        """Sends a message once without waiting for an answer, so it may be lost.

        It only waits while the connection to a broker takes no more. Raises MessageIllegal,
        NoRoute, NoNameServer and BrokerNotExist, BackpressureTimeout after `max_block_ms`, and
        ClientClosed if the producer is shut down while it waits.
        """
        await begun(self._begin_oneway, message, queue=queue, selector=selector, key=key)

    def _begin_oneway(
        self,
        settle: Callable[[Any], None],
        message: Message,
        *,
        queue: MessageQueue | None = None,
        selector: Selector | None = None,
        key: Any = None,
        has_waited: bool = False,
    ) -> Cancellable | None:
        oneways = self._attempts.oneways
        if oneways.is_full and not has_waited:
            return oneways.wait(settle, partial(
                self._begin_oneway, message=message, queue=queue, selector=selector, key=key,
                has_waited=True,
            ))  # fmt: skip
        if selector is None:
            parcel, target = self._packer.at_once(message), queue
        else:
            parcel, target = self._selected_at_once(message, queue, selector, key)
        if parcel is None or not self._attempts.oneway(parcel, target):
            oneways.begin_preparation()
            later = self._oneway_later(message, queue, selector, key)
            return Course(later, settle).begun()
        settle(None)
        return None

    async def _oneway_later(
        self, message: Message, queue: MessageQueue | None, selector: Selector | None, key: Any
    ) -> None:
        try:
            parcel = await self._packer.message(message)
            target = await self._target(message, queue, selector, key)
            await self._attempts.oneway_later(parcel, target)
        finally:
            self._attempts.oneways.end_preparation()

    # --------------------------------------------------------- ask and answer

    @topic_and_body
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
        if topic not in self._instance.routes:
            await self._attempts.publish_info(topic)
        if not self._instance.is_introduced:  # else a broker could not push replies to it
            await self._instance.heartbeat_now()
        left_ms = max(timeout_ms - (steady_ms() - begun_ms), 1)
        reply = self._instance.replies.expect(correlation_id, left_ms, message.topic)

        def end_too(failure: Failure) -> Failure:
            self._instance.clock.later(0, sending.cancel)  # when the reply can be awaited again
            return failure

        try:
            sending: Deferred[SendResult] = begun(
                self._begin_send, message, queue=queue, selector=selector, key=key,
                timeout_ms=left_ms,
            )  # fmt: skip
            reply.addErrback(end_too)
            await sending
        except Exception:
            if not reply.called:  # otherwise its time was over before the message was stored
                reply.addErrback(lambda _: None)  # the error of the send is raised instead
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
        return await self._sent(parcel, None, timeout_ms)

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
        return _named(info, topic)

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
        queues = await self.publish_queues(message.topic)
        return _selected(queues, message, queue, selector, key)

    def _sent(
        self, parcel: Parcel, queue: MessageQueue | None, timeout_ms: int | None
    ) -> Deferred[SendResult]:
        return begun(self._begin_parcel, parcel, queue, timeout_ms)

    def _begin_parcel(
        self,
        settle: Callable[[Any], None],
        parcel: Parcel,
        queue: MessageQueue | None,
        timeout_ms: int | None,
    ) -> Cancellable:
        timeout_ms = timeout_ms or self.config.send_timeout_ms
        sending = partial(Sending, self._attempts, parcel, queue, timeout_ms)
        if self._room.is_full:
            return self._room.wait(settle, lambda settle: sending(settle).begun())
        return sending(settle).begun()

    async def _admitted(self, timeout_ms: int) -> int:
        """Waits until there is room; returns how long that took in ms."""
        if not self._room.is_full:
            return 0
        clock = self._instance.clock
        begun_ms = clock.steady_ms()
        entered = begun(self._room.wait, lambda settle: settle(None))
        late = clock.later(timeout_ms, entered.cancel)
        try:
            await entered
        except CancelledError:
            if late.active():
                raise  # cancelled by the caller
            raise self._room.late(timeout_ms) from None
        finally:
            if late.active():
                late.cancel()
        return min(clock.steady_ms() - begun_ms, timeout_ms - 1)


def _named(info: PublishInfo, topic: str) -> list[MessageQueue]:
    """Returns all queues, with the topic's name as the program uses it."""
    return [MessageQueue(topic, each.broker_name, each.queue_id) for each in info.queues]


def _selected(
    queues: list[MessageQueue],
    message: Message,
    queue: MessageQueue | None,
    selector: Selector,
    key: Any,
) -> MessageQueue:
    if queue is not None:
        raise ValueError("give a queue or a selector, not both")
    chosen = selector(queues, message, key)
    if chosen not in queues:
        raise ValueError(f"the selector gave {chosen!r:.200}, which is no queue of the topic")
    return chosen
