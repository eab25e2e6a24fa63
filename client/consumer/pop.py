# SPDX-License-Identifier: Apache-2.0
"""A consumer that takes messages for a time and acknowledges them one by one (5.x brokers).

Queues are not assigned to members: each `receive` takes messages of any queue, and hides them from
the rest of the group. Messages that are acknowledged in time are consumed; the others are delivered
again, to the member that asks next, with their count raised. So members may join and leave, and a
slow one does not hold up the others.

The places to take from, each a topic at a broker, have their turns. If nothing is there, a single
place is asked to wait for messages; several are asked to tell when they have some.

Java: DefaultMQPushConsumerImpl.popMessage and ackAsync, PullAPIWrapper.popAsync; and the simple
consumer of the proxy, which has these names.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any, Final, Self

from twisted.logger import Logger

from txrocketmq.client.base.errors import MQClientError, NoRoute, NotRunning
from txrocketmq.client.base.validators import check_consumer_group
from txrocketmq.client.consumer.config import (
    MAX_POP,
    ConsumeFrom,
    PopConsumerConfig,
    check_range,
)
from txrocketmq.client.consumer.group.missing_topics import ASK_MS, MissingTopics
from txrocketmq.client.consumer.group.subscription import Expression, Subscriptions
from txrocketmq.client.consumer.listening.consume_trace import ConsumeTrace, start_trace
from txrocketmq.client.consumer.listening.hooks import ConsumeHook, ConsumeHooks
from txrocketmq.client.consumer.listening.running_info import properties_of, stacks
from txrocketmq.client.consumer.popping.deliveries import GivenMessages
from txrocketmq.client.consumer.popping.pop_requests import ANY_QUEUE, Popper
from txrocketmq.client.consumer.popping.pop_waiting import PopPlace, PopWaiting
from txrocketmq.client.core.instance import ClientInstance
from txrocketmq.remoting.errors import RemotingError
from txrocketmq.remoting.message import properties as names
from txrocketmq.remoting.message.message import MessageExt, MessageQueue
from txrocketmq.remoting.message.tags import SUB_ALL
from txrocketmq.remoting.protocol.body.client import (
    ConsumeMessageDirectlyResult,
    ConsumerRunningInfo,
)
from txrocketmq.remoting.protocol.body.heartbeat import ConsumerData

PAUSE_MS: Final = 1_000
"""How long a place rests after it could not be asked."""

log = Logger()


class PopConsumer:
    """Takes messages as a member of `group`.

    `subscriptions` maps topics to expressions: tags separated by `||`, or `*`, or a
    MessageSelector. With `orderly`, a queue delivers nothing more until all that it delivered has
    been acknowledged or has become visible again.

    Raises MessageIllegal for names that are not valid, and SubscriptionError for expressions that
    are not.
    """

    def __init__(
        self,
        instance: ClientInstance,
        group: str,
        subscriptions: Mapping[str, Expression] | None = None,
        *,
        config: PopConsumerConfig | None = None,
        orderly: bool = False,
    ) -> None:
        check_consumer_group(group)
        self.group = group = instance.with_namespace(group)
        self.config = config or PopConsumerConfig()
        self.is_orderly = orderly
        self.started_ms = 0
        self._instance = instance
        self._clock = instance.clock
        named = {instance.with_namespace(each): its for each, its in (subscriptions or {}).items()}
        self._subscriptions = Subscriptions(named, self._clock.now_ms())
        self._popper = Popper(
            instance,
            group,
            self._subscriptions,
            is_from_last=self.config.consume_from is ConsumeFrom.LAST_OFFSET,
            is_orderly=orderly,
        )
        self._hooks = ConsumeHooks(self._clock, group)
        self._given_out = GivenMessages(self._clock, self._hooks)
        self._trace: ConsumeTrace | None = None
        self._waiting = PopWaiting(self._clock, self._has_something, PAUSE_MS)
        self._missing = MissingTopics(instance, instance.without_namespace(group))
        self._turn = 0
        self._given: MessageExt | None = None
        self._next: deque[tuple[int, MessageExt]] = deque()
        """Messages for the iterator, each with the time until which it is hidden."""
        self._running = False

    # ------------------------------------------------------------------ life

    async def start(self) -> None:
        """Joins the group. Topics may be subscribed to before and after.

        It waits for topics that no broker has yet. Raises NoNameServer, MQBrokerError for a filter
        that a broker does not take; ValueError when the client has a consumer of the group already.
        """
        await self._missing.look_for(self._subscriptions.topics())
        await self._subscriptions.check(self._instance, self.group)
        self._instance.register_consumer(self.group, self)
        self._running = True
        self.started_ms = self._clock.now_ms()
        self._trace = start_trace(self._instance, self.group, self.config, self._hooks)
        await self._instance.heartbeat_now()

    async def stop(self) -> None:
        """Takes no more and leaves the group; unacknowledged messages are delivered again."""
        if not self._running:
            return
        self._running = False
        self._waiting.stop()
        self._next.clear()
        self._given_out.stop()
        if self._trace is not None:
            await self._trace.shutdown()
        await self._instance.unregister_consumer(self.group)

    def add_consume_hook(self, hook: ConsumeHook) -> None:
        """Adds a hook that is called when a message is delivered and when it is acknowledged.

        A message that is not acknowledged while it is hidden ends with TIME_OUT; messages that are
        left when the consumer stops end with FAILED.
        """
        self._hooks.add(hook)

    async def subscribe(self, topic: str, expression: Expression = SUB_ALL) -> None:
        """Subscribes to a topic, or changes the subscription to it.

        Raises SubscriptionError and NoNameServer.
        """
        topic = self._instance.with_namespace(topic)
        self._subscriptions.add(topic, expression, self._clock.now_ms())
        if self._running:
            await self._missing.queues_of(topic)
            await self._instance.heartbeat_now()

    async def unsubscribe(self, topic: str) -> None:
        """Ends the subscription to a topic.

        Raises nothing, even if the topic was not subscribed to or no broker can be reached.
        """
        self._subscriptions.remove(self._instance.with_namespace(topic))
        self._missing.keep(self._subscriptions.topics())
        if self._running:
            await self._instance.heartbeat_now()

    # --------------------------------------------------------------- receive

    async def receive(
        self,
        max_messages: int | None = None,
        invisible_ms: int | None = None,
        *,
        wait_ms: int | None = None,
    ) -> list[MessageExt]:
        """Takes messages of one topic, and hides them from the group for a while.

        The list is empty if no message came within `wait_ms`. Raises NotRunning, PopNotSupported,
        MQBrokerError, NoRoute, errors of the connection if no broker could be asked, and ValueError
        for a negative time or a number of messages that is out of range.
        """
        config = self.config
        hidden_ms = config.invisible_ms if invisible_ms is None else invisible_ms
        left_ms = config.wait_ms if wait_ms is None else wait_ms
        count = config.batch_size if max_messages is None else max_messages
        messages = await self._receive(count, hidden_ms, left_ms)
        self._given_out.begin(messages, self._clock.steady_ms() + hidden_ms)
        return messages

    async def _receive(self, count: int, hidden_ms: int, left_ms: int) -> list[MessageExt]:
        check_range("max_messages", count, 1, MAX_POP)
        if left_ms < 0:
            raise ValueError(f"wait_ms must not be negative, as {left_ms} is")
        deadline_ms = self._clock.steady_ms() + left_ms
        while True:
            self._check_running()
            places = await self._places()
            # A single place waits for messages itself, which saves the request of a notification.
            most_ms = ASK_MS if self._missing else left_ms
            poll_ms = min(left_ms, most_ms) if len(places) == 1 else 0
            messages = await self._pop_any(places, count, hidden_ms, poll_ms) if places else []
            left_ms = deadline_ms - self._clock.steady_ms()
            if messages or left_ms <= 0 or not self._running:
                for message in messages:
                    message.topic = self._instance.without_namespace(message.topic)
                return messages
            if len(places) != 1:
                await self._waiting.wait(places, min(left_ms, most_ms))
                left_ms = max(deadline_ms - self._clock.steady_ms(), 0)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> MessageExt:
        """One message after the other until `stop`; asking for the next acknowledges the last."""
        given, self._given = self._given, None
        if given is not None:
            await self.ack(given)
        while self._running:
            while self._next:
                until_ms, message = self._next.popleft()
                if self._clock.steady_ms() < until_ms:
                    self._given = message
                    self._given_out.begin([message], until_ms)
                    return message
            config = self.config
            messages = await self._receive(config.batch_size, config.invisible_ms, config.wait_ms)
            until_ms = self._clock.steady_ms() + config.invisible_ms
            self._next.extend((until_ms, each) for each in messages)
        raise StopAsyncIteration

    async def _places(self) -> list[PopPlace]:
        """Returns the places to ask; the list begins with another place each time.

        It is empty as long as none of the topics exists.
        """
        places, topics, missing = [], self._subscriptions.topics(), 0
        for topic in topics:
            queues = await self._missing.queues_of(topic)
            missing += queues is None
            brokers = sorted({queue.broker_name for queue in queues or ()})
            places += [PopPlace(topic, each) for each in brokers]
        if not places:
            if missing:
                return []
            why = "no broker lets it be read; subscribe to topics"
            raise NoRoute(", ".join(topics) or "(none)", why)
        self._turn = (self._turn + 1) % len(places)
        return places[self._turn :] + places[: self._turn]

    async def _pop_any(
        self, places: list[PopPlace], count: int, invisible_ms: int, poll_ms: int
    ) -> list[MessageExt]:
        """Returns messages of the first place that has some; raises if no place could be asked."""
        failed: list[Exception] = []
        for place in places:
            try:
                queue = MessageQueue(place.topic, place.broker_name, ANY_QUEUE)
                messages = await self._popper.pop(queue, count, invisible_ms, poll_ms)
            except (MQClientError, RemotingError) as error:
                failed.append(error)
                continue
            if messages or not self._running:
                return messages
        if len(failed) == len(places):
            raise failed[-1]
        for why in failed:
            log.warn("no messages were taken: {error}", error=why)
        return []

    async def _has_something(self, place: PopPlace, timeout_ms: int) -> bool:
        return await self._popper.has_something(place.topic, place.broker_name, timeout_ms)

    # ------------------------------------------------------------- afterwards

    async def ack(self, messages: MessageExt | Iterable[MessageExt]) -> None:
        """Acknowledges one message or several, so that they are not delivered again.

        The messages of one broker share a request. A message whose invisible time was over is
        delivered again all the same. Raises MessageIllegal, MQBrokerError, BrokerNotExist and
        errors of the connection.
        """
        acknowledged = [messages] if isinstance(messages, MessageExt) else list(messages)
        await self._popper.ack(messages if isinstance(messages, MessageExt) else acknowledged)
        self._given_out.acknowledged(acknowledged)

    async def change_invisible_time(self, message: MessageExt, invisible_ms: int) -> None:
        """Sets for how long a message stays invisible from now on.

        Raises MessageIllegal, MQBrokerError (also if its invisible time was over), BrokerNotExist
        and errors of the connection.
        """
        old_handle = message.properties.get(names.POP_CK, "")
        await self._popper.change_invisible_time(message, invisible_ms)
        self._given_out.hidden(old_handle, message, self._clock.steady_ms() + invisible_ms)

    async def renew(self, message: MessageExt) -> None:
        """Hides a message from now on for the `invisible_ms` of the settings.

        Raises the same as `change_invisible_time`.
        """
        await self.change_invisible_time(message, self.config.invisible_ms)

    def _check_running(self) -> None:
        if not self._running:
            raise NotRunning("the consumer has not been started, or was stopped")

    # ------------------------------------------------------------- the group

    def group_changed(self) -> None:
        """Does nothing: queues are not assigned to members."""

    def describe(self) -> ConsumerData:
        """Describes the consumer in heartbeats, like the proxy's simple consumers."""
        return ConsumerData(
            group_name=self.group,
            consume_type="CONSUME_ACTIVELY",
            message_model="CLUSTERING",
            consume_from_where=self.config.consume_from.value,
            subscription_data_set=self._subscriptions.all(),
        )

    def offset_table(self, topic: str) -> Mapping[MessageQueue, int]:
        """Returns nothing: the brokers keep how far the group has come."""
        return {}

    async def reset_offsets(self, topic: str, offsets: Mapping[MessageQueue, int]) -> None:
        """Does nothing: the brokers keep how far the group has come."""

    async def consume_directly(
        self, message: MessageExt, broker_name: str | None
    ) -> ConsumeMessageDirectlyResult | None:
        """Returns None, because there is no listener to give a message to."""
        return None

    def running_info(self, *, with_stacks: bool) -> ConsumerRunningInfo:
        """Describes the consumer for administrators."""
        config = self.config
        properties: dict[str, Any] = {
            "consumeFromWhere": config.consume_from.value,
            "popBatchNums": config.batch_size,
            "popInvisibleTime": config.invisible_ms,
            "PROP_CONSUME_TYPE": "CONSUME_ACTIVELY",
            "PROP_CONSUME_ORDERLY": self.is_orderly,
        }
        return ConsumerRunningInfo(
            properties=properties_of(self._instance, self.group, self.started_ms, properties),
            subscription_set=self._subscriptions.all(),
            jstack=stacks() if with_stacks else None,
        )
