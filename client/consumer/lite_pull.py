# SPDX-License-Identifier: Apache-2.0
"""A consumer that is polled: `poll` returns what was pulled in advance.

It either subscribes to topics and shares their queues with the other members of the group, or it is
assigned queues and shares nothing. `seek` moves to another place of a queue, and `pause` stops
pulling it. With auto commit, `poll` commits what earlier calls of it have given: what was given
last is committed by a later call, or by `commit`, and comes again if neither happens.

Java: DefaultLitePullConsumer, DefaultLitePullConsumerImpl, RebalanceLitePullImpl.
"""

from __future__ import annotations

from collections.abc import (
    Awaitable,
    Callable,
    Collection,
    Coroutine,
    Iterable,
    Mapping,
    Sequence,
)
from contextlib import suppress
from typing import Any, Final, Self

from twisted.internet.defer import Deferred
from twisted.logger import Logger

from txrocketmq.client.base.errors import MQClientError, NotAssigned, NotRunning, OffsetIllegal
from txrocketmq.client.base.validators import check_consumer_group, check_topic
from txrocketmq.client.consumer.config import LitePullConsumerConfig, MessageModel
from txrocketmq.client.consumer.group.rebalance import QueuesListener, Rebalance
from txrocketmq.client.consumer.group.same_subscriptions import SameSubscriptions
from txrocketmq.client.consumer.group.shares import ByStrategy, Everything, Own
from txrocketmq.client.consumer.group.subscription import Expression, Subscriptions, subscription_of
from txrocketmq.client.consumer.listening.consume_trace import ConsumeTrace, start_trace
from txrocketmq.client.consumer.listening.hooks import ConsumeHook, ConsumeHooks
from txrocketmq.client.consumer.listening.listener import ConsumeStatus, tell
from txrocketmq.client.consumer.listening.running_info import (
    lite_properties,
    properties_of,
    queues_of,
    stacks,
)
from txrocketmq.client.consumer.pulling.assigned_queues import Assigned, AssignedQueues
from txrocketmq.client.consumer.queue.local_offsets import LocalOffsets
from txrocketmq.client.consumer.queue.offset_store import BrokerOffsets, OffsetStore
from txrocketmq.client.core.instance import ClientInstance
from txrocketmq.remoting.errors import RemotingError
from txrocketmq.remoting.message.allocation import Strategy, averagely
from txrocketmq.remoting.message.message import MessageExt, MessageQueue
from txrocketmq.remoting.message.tags import SUB_ALL, SubscriptionData
from txrocketmq.remoting.protocol.body.client import (
    ConsumeMessageDirectlyResult,
    ConsumerRunningInfo,
)
from txrocketmq.remoting.protocol.body.heartbeat import ConsumerData

FIRST_CHECK_MS: Final = 10_000
"""After how long the first check is made of whether the queues of a topic have changed."""

WatchListener = Callable[[str, Collection[MessageQueue]], "object | Awaitable[object]"]
"""Hears of a topic and all its queues, when these have changed."""

log = Logger()


class LitePullConsumer:
    """Pulls messages as a member of `group`.

    `subscriptions` maps topics to expressions; this has the same effect as calling `subscribe` for
    each of them.

    Raises MessageIllegal for names that are not valid, and SubscriptionError for expressions that
    are not.
    """

    def __init__(
        self,
        instance: ClientInstance,
        group: str,
        subscriptions: Mapping[str, Expression] | None = None,
        *,
        config: LitePullConsumerConfig | None = None,
        strategy: Strategy = averagely,
    ) -> None:
        check_consumer_group(group)
        self.group = group = instance.with_namespace(group)
        self.config = config or LitePullConsumerConfig()
        self.started_ms = 0
        self._instance = instance
        self._clock = instance.clock
        is_shared = self.config.message_model is MessageModel.CLUSTERING
        named = {instance.with_namespace(each): its for each, its in (subscriptions or {}).items()}
        self._subscriptions = Subscriptions(named, self._clock.now_ms())
        self._assigns = False
        self._assign_expressions: dict[str, Expression] = {}
        self._queues_changed: dict[str, QueuesListener] = {}
        self.offsets: OffsetStore = (
            BrokerOffsets(instance, group)
            if is_shared
            else LocalOffsets(instance, group, self.config.local_offset_store_dir)
        )
        self._rebalance = Rebalance(
            instance,
            ByStrategy(instance, group, strategy) if is_shared else Everything(),
            self._subscriptions.topics, self._take_over,
            SameSubscriptions(instance, group, self._subscriptions),
            group=instance.without_namespace(group),
        )  # fmt: skip
        self._assigned = AssignedQueues(
            instance, group, self.config, self.offsets, self._subscription_to
        )
        self._hooks = ConsumeHooks(self._clock, group)
        self._trace: ConsumeTrace | None = None
        self._commit_due_ms = 0
        self._watched: dict[str, tuple[WatchListener, set[MessageQueue]]] = {}
        self._repeating: list[Any] = []
        self._running = False

    # ------------------------------------------------------------------ life

    async def start(self) -> None:
        """Joins the group and begins to pull; topics and queues may be given before and after.

        It waits for topics that do not exist yet. Raises NoNameServer, OffsetsUnreadable, NoRoute
        (`watch_queues`), MQBrokerError for a filter that a broker does not take, and ValueError
        when the client has a consumer of the group already.
        """
        await self._rebalance.look_for_topics()
        await self._subscriptions.check(self._instance, self.group)
        await self.offsets.load()
        self._instance.register_consumer(self.group, self)
        self._running = True
        self.started_ms = self._clock.now_ms()
        self._trace = start_trace(self._instance, self.group, self.config, self._hooks)
        every, config = self._clock.every, self.config
        self._repeating = [
            every(config.persist_interval_ms, self._persist_soon),
            every(
                config.topic_metadata_check_interval_ms,
                self._check_watched_soon,
                first_ms=FIRST_CHECK_MS,
            ),
        ]
        await self._instance.heartbeat_now()
        for topic, (listener, _) in list(self._watched.items()):
            self._watched[topic] = (listener, set(await self.fetch_queues(topic)))
        if self._running:
            self._assigned.start()
            await self._rebalance.start(config.rebalance_interval_ms)

    async def stop(self) -> None:
        """Stops pulling, sends the committed offsets to the brokers, and leaves the group.

        Messages that `poll` has returned and that are not committed are delivered again.
        """
        if not self._running:
            return
        self._running = False
        self._rebalance.stop()
        for repeating in self._repeating:
            repeating.cancel()
        queues = self._assigned.all()
        self._assigned.stop()
        await self.offsets.persist(queues)
        if self._trace is not None:
            await self._trace.shutdown()
        await self._instance.unregister_consumer(self.group)

    def add_consume_hook(self, hook: ConsumeHook) -> None:
        """Adds a hook that is called with the messages that `poll` or the iterator returns."""
        self._hooks.add(hook)

    # ---------------------------------------------------------------- topics

    async def subscribe(
        self,
        topic: str,
        expression: Expression = SUB_ALL,
        queues_changed: QueuesListener | None = None,
    ) -> None:
        """Subscribes to a topic, whose queues the members of the group share.

        `queues_changed` is called whenever the queues of this consumer change. Raises ValueError if
        queues were assigned to the consumer, MessageIllegal and SubscriptionError.
        """
        self._choose(assigns=False)
        topic = self._instance.with_namespace(topic)
        self._subscriptions.add(topic, expression, self._clock.now_ms())
        if queues_changed is not None:
            self._queues_changed[topic] = queues_changed
        if self._running:
            with suppress(MQClientError, RemotingError):  # it is looked for again
                await self._instance.subscribe_queues(topic)  # brokers that have to hear of it
            await self._instance.heartbeat_now()
            self._rebalance.look()

    async def unsubscribe(self, topic: str) -> None:
        """Ends the subscription to a topic, so that other members get its queues.

        Raises nothing, even if the topic was not subscribed to or no broker can be reached.
        """
        topic = self._instance.with_namespace(topic)
        self._subscriptions.remove(topic)
        await self._give_up([each for each in self._assigned.all() if each.topic == topic])
        if self._running:
            await self._instance.heartbeat_now()

    def assign(self, queues: Collection[MessageQueue]) -> None:
        """Reads exactly these queues, whoever else reads them.

        Raises ValueError if there are none, or if the consumer has subscribed to a topic.
        """
        if not queues:
            raise ValueError("assign needs at least one queue")
        self._choose(assigns=True)
        named = [self._instance.queue_with_namespace(each) for each in queues]
        self._assigned.remove([each for each in self._assigned.all() if each not in named])
        self._assigned.add(named)

    def filter_assigned(self, topic: str, expression: Expression) -> None:
        """Selects messages of the assigned queues of a topic (setSubExpressionForAssign).

        Raises ValueError once the consumer has started, or if it has subscribed to a topic.
        """
        if self._running:
            raise ValueError("filter_assigned is to be called before start")
        self._choose(assigns=True)
        check_topic(topic)
        subscription_of(topic, expression, 0)
        self._assign_expressions[self._instance.with_namespace(topic)] = expression

    @property
    def assignment(self) -> list[MessageQueue]:
        """The queues that are assigned to this consumer now."""
        return self._assigned.all()

    async def fetch_queues(self, topic: str) -> list[MessageQueue]:
        """Returns all queues of a topic, as the name server has them now.

        Raises NoRoute.
        """
        name = self._instance.with_namespace(topic)
        await self._instance.refresh(name)
        return sorted(await self._instance.subscribe_queues(name))

    async def watch_queues(self, topic: str, listener: WatchListener) -> None:
        """Calls `listener` when the queues of a topic change (TopicMessageQueueChangeListener).

        The client checks every 30 s. A second listener for a topic replaces the first one. Raises
        NoRoute and NoNameServer once the consumer has started.
        """
        known = set(await self.fetch_queues(topic)) if self._running else set()
        self._watched[topic] = (listener, known)

    def _choose(self, *, assigns: bool) -> None:
        has_begun = self._subscriptions.topics() or self._assigned.all() or self._assign_expressions
        if has_begun and assigns != self._assigns:
            raise ValueError("a consumer either subscribes to topics or is assigned queues")
        self._assigns = assigns

    # ------------------------------------------------------------------ poll

    async def poll(self, timeout_ms: int | None = None) -> list[MessageExt]:
        """Returns the messages of one pull, or an empty list when the time is over.

        Raises NotRunning, and ValueError for a negative time.
        """
        return await self._poll(timeout_ms)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> MessageExt:
        """One message after the other until `stop`; asking for the next is consuming the last."""
        while self._running:
            for message in await self._poll(most=1):
                return message
        raise StopAsyncIteration

    async def _poll(
        self, timeout_ms: int | None = None, most: int | None = None
    ) -> list[MessageExt]:
        timeout_ms = self.config.poll_timeout_ms if timeout_ms is None else timeout_ms
        if timeout_ms < 0:
            raise ValueError(f"timeout_ms must not be negative, as {timeout_ms} is")
        self._check_running()
        steady_ms = self._clock.steady_ms
        if self.config.auto_commit and steady_ms() >= self._commit_due_ms:
            self._assigned.note_given()
            self._commit_due_ms = steady_ms() + self.config.auto_commit_interval_ms
        deadline_ms = steady_ms() + timeout_ms
        while True:
            given = self._assigned.next(most)
            if given is not None:
                return self._given(*given)
            left_ms = deadline_ms - steady_ms()
            if left_ms <= 0 or not self._running:
                return []
            await self._assigned.arrival(left_ms)

    def _given(self, queue: MessageQueue, messages: list[MessageExt]) -> list[MessageExt]:
        """Names the topics as the program uses them, and calls the hooks."""
        for message in messages if self._instance.config.namespace else ():
            message.topic = self._instance.without_namespace(message.topic)
        if self._hooks:
            consuming = self._hooks.begin(messages, queue)
            self._hooks.end(consuming, ConsumeStatus.CONSUME_SUCCESS)
        return messages

    # --------------------------------------------------------------- offsets

    async def commit(self, offsets: Mapping[MessageQueue, int] | None = None) -> None:
        """Commits the offsets of the messages that `poll` has returned, or the given offsets.

        Returns when the brokers have stored them, or in broadcasting the file. Raises NotRunning,
        NotAssigned, MQBrokerError, BrokerNotExist and errors of the connection; in broadcasting
        OffsetsUnreadable, and OSError if the file cannot be written.
        """
        self._check_running()
        if offsets is None:
            self._assigned.note_given()
            queues: Collection[MessageQueue] = self._assigned.all()
        else:
            queues = [self._instance.queue_with_namespace(each) for each in offsets]
            for queue, offset in zip(queues, offsets.values(), strict=True):
                self._check_assigned(queue)
                self.offsets.set(queue, offset)
        for queue in queues:
            await self.offsets.commit(queue)

    async def committed(self, queue: MessageQueue) -> int | None:
        """Returns the committed offset of a queue, or None if there is none.

        Raises NotRunning, MQBrokerError, BrokerNotExist and errors of the connection.
        """
        self._check_running()
        queue = self._instance.queue_with_namespace(queue)
        noted = self.offsets.noted(queue)
        return await self.offsets.read(queue) if noted is None else noted

    async def seek(self, queue: MessageQueue, offset: int) -> None:
        """Moves to an offset of a queue; messages that were pulled already are dropped.

        Raises NotRunning, NotAssigned, OffsetIllegal, MQBrokerError, BrokerNotExist and errors of
        the connection.
        """
        self._check_running()
        queue = self._instance.queue_with_namespace(queue)
        self._check_assigned(queue)
        address = await self._instance.address_to_subscribe(queue)
        least = await self._instance.api.min_offset(address, queue)
        most = await self._instance.api.max_offset(address, queue)
        if not least <= offset <= most:
            raise OffsetIllegal(f"{queue} has offsets from {least} to {most}, {offset} is not one")
        assigned = self._check_assigned(queue)
        self._assigned.seek(assigned, offset)

    async def seek_to_begin(self, queue: MessageQueue) -> None:
        """Moves to the first message of a queue. Raises the same as `seek`."""
        queue = self._instance.queue_with_namespace(queue)
        self._check_assigned(queue)
        address = await self._instance.address_to_subscribe(queue)
        await self.seek(queue, await self._instance.api.min_offset(address, queue))

    async def seek_to_end(self, queue: MessageQueue) -> None:
        """Moves behind the last message of a queue. Raises the same as `seek`."""
        queue = self._instance.queue_with_namespace(queue)
        self._check_assigned(queue)
        address = await self._instance.address_to_subscribe(queue)
        await self.seek(queue, await self._instance.api.max_offset(address, queue))

    async def seek_to_time(self, queue: MessageQueue, timestamp_ms: int) -> None:
        """Moves to the first message of a queue that was stored at this time or later.

        Raises the same as `seek`.
        """
        await self.seek(queue, await self.offset_for_timestamp(queue, timestamp_ms))

    async def offset_for_timestamp(self, queue: MessageQueue, timestamp_ms: int) -> int:
        """Returns the offset of the first message of a queue stored at this time or later.

        Raises MQBrokerError, BrokerNotExist and errors of the connection.
        """
        queue = self._instance.queue_with_namespace(queue)
        address = await self._instance.address_to_subscribe(queue)
        return await self._instance.api.search_offset(address, queue, timestamp_ms)

    def pause(self, queues: Iterable[MessageQueue]) -> None:
        """Stops pulling from these queues; `poll` still returns what was pulled already."""
        named = [self._instance.queue_with_namespace(each) for each in queues]
        self._assigned.set_paused(named, is_paused=True)

    def resume(self, queues: Iterable[MessageQueue]) -> None:
        """Continues to pull from these queues."""
        named = [self._instance.queue_with_namespace(each) for each in queues]
        self._assigned.set_paused(named, is_paused=False)

    def _check_running(self) -> None:
        if not self._running:
            raise NotRunning("the consumer has not been started, or was stopped")

    def _check_assigned(self, queue: MessageQueue) -> Assigned:
        assigned = self._assigned.get(queue)
        if assigned is None:
            why = "" if self._assigns else "; perhaps the group is changing"
            raise NotAssigned(f"{queue} is not one of the consumer's queues{why}")
        return assigned

    # ------------------------------------------------------------- the group

    def group_changed(self) -> None:
        """Rebalances, because members of the group came or went."""
        self._rebalance.group_changed()

    def describe(self) -> ConsumerData:
        """The description of this consumer in heartbeats."""
        return ConsumerData(
            group_name=self.group,
            consume_type="CONSUME_ACTIVELY",
            message_model=self.config.message_model.value,
            consume_from_where=self.config.consume_from.value,
            subscription_data_set=self._subscriptions.all(),
        )

    async def _take_over(self, topic: str, queues: Sequence[MessageQueue], share: Own) -> bool:
        own = share.pulled
        had = {queue for queue in self._assigned.all() if queue.topic == topic}
        if had == own:
            return True
        await self._give_up(had - own)
        self._assigned.add(sorted(own - had))
        # A newer version tells the brokers that this subscription counts, and no older one.
        self._subscriptions.renew(topic, self._clock.now_ms())
        await self._instance.heartbeat_now()
        if (listener := self._queues_changed.get(topic)) is not None:
            tell(listener, topic, queues, sorted(own))
        return True

    async def _give_up(self, queues: Collection[MessageQueue]) -> None:
        self._assigned.remove(queues)
        await self.offsets.persist(queues)
        for queue in queues:
            self.offsets.forget(queue)

    def _subscription_to(self, topic: str) -> SubscriptionData:
        if topic in self._subscriptions:
            return self._subscriptions.of(topic)
        return subscription_of(topic, self._assign_expressions.get(topic, SUB_ALL), 0)

    def _persist_soon(self) -> None:
        self._spawn(self.offsets.persist(self._assigned.all()), "telling what was committed")

    def _check_watched_soon(self) -> None:
        self._spawn(self._check_watched(), "looking for changed queues")

    async def _check_watched(self) -> None:
        for topic, (listener, known) in list(self._watched.items()):
            try:
                queues = await self.fetch_queues(topic)
            except (MQClientError, RemotingError) as error:
                log.warn("queues of {topic} were not fetched: {error}", topic=topic, error=error)
                continue
            if set(queues) != known and self._running:
                self._watched[topic] = (listener, set(queues))
                tell(listener, topic, queues)

    def _spawn(self, work: Coroutine[Deferred[Any], Any, None], what: str) -> None:
        Deferred.fromCoroutine(work).addErrback(
            lambda failure: log.failure("{what} failed", failure, what=what)
        )

    # -------------------------------------------------------- administrators

    def offset_table(self, topic: str) -> Mapping[MessageQueue, int]:
        """Returns the offsets that were noted for a topic, by queue."""
        return self.offsets.table(topic)

    async def reset_offsets(self, topic: str, offsets: Mapping[MessageQueue, int]) -> None:
        """Does nothing: only push consumers are set back by administrators, as in the original."""
        log.info(
            "no offsets of {topic} are reset: {group} only polls", topic=topic, group=self.group
        )

    async def consume_directly(
        self, message: MessageExt, broker_name: str | None
    ) -> ConsumeMessageDirectlyResult | None:
        """Returns None, because there is no listener to give a message to."""
        return None

    def running_info(self, *, with_stacks: bool) -> ConsumerRunningInfo:
        """Describes the consumer for administrators."""
        properties = {**lite_properties(self.config), "PROP_CONSUME_TYPE": "CONSUME_ACTIVELY"}
        return ConsumerRunningInfo(
            properties=properties_of(self._instance, self.group, self.started_ms, properties),
            subscription_set=self._subscriptions.all(),
            mq_table=queues_of(self._instance, self.offsets, self._assigned.process_queues()),
            jstack=stacks() if with_stacks else None,
        )
