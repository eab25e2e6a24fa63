# SPDX-License-Identifier: Apache-2.0
"""A member of a group: it shares the queues of its topics with other members, and commits.

The queues and the members of the group determine which queues are assigned to it. Each of them is
pulled as long as not too many of its messages wait to be consumed. Offsets are committed every 5 s
and at the end, so that the group continues from there, here or elsewhere; a message may be
delivered twice, and none is skipped. In broadcasting each member has all queues, and keeps its
offsets in a file.

Java: DefaultMQPushConsumer, DefaultMQPushConsumerImpl, RebalancePushImpl.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from twisted.logger import Logger

from txrocketmq.client.base.validators import MAX_TOPIC_LENGTH, check_consumer_group
from txrocketmq.client.consumer.config import MessageModel, PushConsumerConfig
from txrocketmq.client.consumer.group.rebalance import QueuesListener, Rebalance
from txrocketmq.client.consumer.group.same_subscriptions import SameSubscriptions
from txrocketmq.client.consumer.group.shares import ByBroker, Own, share_of
from txrocketmq.client.consumer.group.subscription import Expression, Subscriptions
from txrocketmq.client.consumer.listening import running_info, statistics
from txrocketmq.client.consumer.listening.concurrent import ConcurrentConsumption
from txrocketmq.client.consumer.listening.consume_trace import ConsumeTrace, start_trace
from txrocketmq.client.consumer.listening.direct_consumption import consume_directly
from txrocketmq.client.consumer.listening.hooks import ConsumeHook, ConsumeHooks
from txrocketmq.client.consumer.listening.listener import (
    Calls,
    Listener,
    OrderlyListener,
    is_orderly,
    tell,
)
from txrocketmq.client.consumer.listening.orderly import OrderlyConsumption
from txrocketmq.client.consumer.listening.running_calls import no_longer_than
from txrocketmq.client.consumer.listening.send_back import GiveBack
from txrocketmq.client.consumer.listening.troubles import Troubles
from txrocketmq.client.consumer.popping.pop_loops import Popping
from txrocketmq.client.consumer.pulling.pull_loops import Pulling
from txrocketmq.client.consumer.pulling.pulled_queues import PulledQueues, spawn
from txrocketmq.client.consumer.queue import locks
from txrocketmq.client.consumer.queue.local_offsets import LocalOffsets
from txrocketmq.client.consumer.queue.locks import QueueLocks
from txrocketmq.client.consumer.queue.offset_store import BrokerOffsets, OffsetStore
from txrocketmq.client.consumer.queue.process_queue import ProcessQueue
from txrocketmq.client.core.instance import ClientInstance
from txrocketmq.remoting.message.allocation import Strategy, averagely
from txrocketmq.remoting.message.message import MessageExt, MessageQueue
from txrocketmq.remoting.message.pop import retry_topic_v1
from txrocketmq.remoting.message.tags import SUB_ALL
from txrocketmq.remoting.message.topics import RETRY_PREFIX
from txrocketmq.remoting.protocol.body.client import (
    ConsumeMessageDirectlyResult,
    ConsumerRunningInfo,
)
from txrocketmq.remoting.protocol.body.heartbeat import ConsumerData

RESET_PAUSE_MS: Final = 10_000
"""How long the queues of a reset rest, so that running listeners may end."""

log = Logger()


class PushConsumer:
    """Consumes as a member of `group`.

    `listener` is a function, or a coroutine function, that is called with a list of messages and a
    ConsumeContext. Returning None or ConsumeStatus.CONSUME_SUCCESS means that the messages were
    consumed; when it returns RECONSUME_LATER or raises anything, they are delivered again later. In
    order it gets a ConsumeOrderlyContext, and returns None or a ConsumeOrderlyStatus.

    `subscriptions` maps topics to expressions: tags separated by `||`, or `*`, or a
    MessageSelector. All members of a group must have the same subscriptions and the same strategy.
    The messages of a queue are consumed in order if the listener is marked with `orderly`, or with
    `orderly=True`. `queues_changed` is called whenever the queues of this member change.

    Raises MessageIllegal for names that are not valid, and SubscriptionError for expressions that
    are not.
    """

    def __init__(
        self,
        instance: ClientInstance,
        group: str,
        subscriptions: Mapping[str, Expression],
        listener: Listener | OrderlyListener,
        *,
        config: PushConsumerConfig | None = None,
        strategy: Strategy = averagely,
        orderly: bool | None = None,
        queues_changed: QueuesListener | None = None,
    ) -> None:
        check_consumer_group(group)
        self.group = group = instance.with_namespace(group)
        self.config = config or PushConsumerConfig()
        self.listener = listener
        self.is_orderly = is_orderly(listener) if orderly is None else orderly
        self.statistics = statistics.ConsumerStatistics()
        self.started_ms = 0
        self._instance = instance
        self._clock = instance.clock
        self._is_shared = self.config.message_model is MessageModel.CLUSTERING
        self._queues_changed = queues_changed
        named = {instance.with_namespace(topic): each for topic, each in subscriptions.items()}
        self.subscriptions = Subscriptions(named, self._clock.now_ms())
        if self._is_shared:
            self.subscriptions.add(RETRY_PREFIX + group, SUB_ALL, self._clock.now_ms())
        self.offsets: OffsetStore = (
            BrokerOffsets(instance, group)
            if self._is_shared
            else LocalOffsets(instance, group, self.config.local_offset_store_dir)
        )
        self._locks = QueueLocks(instance, group) if self.is_orderly and self._is_shared else None
        self._calls = Calls(
            self._clock,
            listener,
            self.config.consume_concurrency if self.config.consume_in_threads else 0,
            instance.without_namespace if instance.config.namespace else None,
            self.group,
        )
        self._hooks = ConsumeHooks(self._clock, self.group, self.config.consume_timeout_ms)
        self._trace: ConsumeTrace | None = None
        self._make_parts(strategy)
        self._repeating: list[Any] = []
        self._stopped = True

    def _make_parts(self, strategy: Strategy) -> None:
        """Makes what pulls, pops and consumes messages."""
        instance, group = self._instance, self.group
        self._troubles = Troubles(instance)
        self._back = GiveBack(instance, group, self.config.max_reconsume_times)
        self._consumption = self._make_consumption()
        self._puller = Pulling(
            instance,
            group,
            self.config,
            self.subscriptions,
            self.offsets,
            self._consumption,
            self.statistics,
            self._troubles,
        )
        self._popping = Popping(
            instance,
            group,
            self.config,
            self.subscriptions,
            self._calls,
            self._back.to_broker,
            self.statistics,
            self._troubles,
        )
        by_broker = not (self.config.client_rebalance or self.is_orderly)
        share = share_of(instance, group, strategy, is_shared=self._is_shared, by_broker=by_broker)
        self._may_pop = isinstance(share, ByBroker)
        same = SameSubscriptions(instance, group, self.subscriptions)
        self._rebalance = Rebalance(
            instance, share, self.subscriptions.topics, self._take_over, same,
            group=instance.without_namespace(group),
        )  # fmt: skip
        self._pulled = PulledQueues(
            instance,
            self.config,
            self.subscriptions,
            self.offsets,
            self._consumption,
            self._puller,
            self._rebalance,
            self._locks,
        )

    def _make_consumption(self) -> ConcurrentConsumption | OrderlyConsumption:
        back = self._back
        if not self.is_orderly:
            return ConcurrentConsumption(
                self._clock,
                self.config,
                self._calls,
                back.to_broker,
                self.offsets.note,
                self.statistics,
            )
        return OrderlyConsumption(
            self._clock,
            self.config,
            self._calls,
            back.to_retry_topic,
            self.offsets.set,
            self._renew_lock,
            self.statistics,
        )

    @property
    def queues(self) -> list[MessageQueue]:
        """The queues that are assigned to this member now; a popped one may have the id -1."""
        return sorted([*self._pulled, *self._popping.queues])

    # ------------------------------------------------------------------ life

    async def start(self) -> None:
        """Joins the group, and consumes from then on.

        It waits for topics that no broker has yet. Raises NoNameServer, MQBrokerError for a filter
        that a broker does not take, and OffsetsUnreadable for a damaged file of offsets in
        broadcasting; ValueError when the client has a consumer of the group already.
        """
        await self._rebalance.look_for_topics()
        await self.subscriptions.check(self._instance, self.group)
        await self.offsets.load()
        self._instance.register_consumer(self.group, self)
        self._stopped = False
        self.started_ms = self._clock.now_ms()
        self._calls.start()
        self._trace = start_trace(self._instance, self.group, self.config, self._hooks)
        if self._hooks:
            self._calls.around = self._hooks.around
        every, config, steady_ms = self._clock.every, self.config, self._clock.steady_ms
        self._repeating = [
            every(config.persist_interval_ms, self._persist_soon),
            every(config.consume_timeout_ms, self._send_back_expired),
            every(statistics.SAMPLE_MS, lambda: self.statistics.sample(steady_ms())),
            every(statistics.SAMPLE_HOUR_MS, lambda: self.statistics.sample_hour(steady_ms())),
        ]
        if self._locks is not None:
            self._repeating.append(
                every(
                    locks.LOCK_INTERVAL_MS, self._pulled.renew_locks, first_ms=locks.FIRST_LOCK_MS
                )
            )
        await self._instance.heartbeat_now()
        if not self._stopped:
            await self._rebalance.start(config.rebalance_interval_ms)

    async def stop(self) -> None:
        """Stops consuming, commits the offsets, and leaves the group."""
        if self._stopped:
            return
        self._stopped = self._troubles.is_over = True
        self._rebalance.stop()
        for repeating in self._repeating:
            repeating.cancel()
        pops_idle = self._popping.stop()
        idle = self._consumption.when_idle().addCallback(lambda _: pops_idle)
        self._pulled.stop()
        if self._calls.is_calling:
            await self._clock.pause(0)  # until the listener that stops the consumer has returned
        if self.config.await_termination_ms:
            await no_longer_than(self._clock, idle, self.config.await_termination_ms)
        self._popping.drop_all()
        await self._pulled.leave()
        self._calls.stop()
        if self._trace is not None:
            await self._trace.shutdown()
        await self._instance.unregister_consumer(self.group)

    def add_consume_hook(self, hook: ConsumeHook) -> None:
        """Adds a hook that is called before and after each call of the listener."""
        self._hooks.add(hook)
        self._calls.around = self._hooks.around

    def suspend(self) -> None:
        """Stops pulling until `resume`; messages that were pulled already are consumed."""
        self._puller.is_suspended = self._popping.is_suspended = True

    def resume(self) -> None:
        """Continues to pull after `suspend`, and rebalances."""
        self._puller.is_suspended = self._popping.is_suspended = False
        self._rebalance.look()

    async def subscribe(self, topic: str, expression: Expression = SUB_ALL) -> None:
        """Subscribes to a topic, or changes its subscription, at once. Raises SubscriptionError."""
        name = self._instance.with_namespace(topic)
        self.subscriptions.add(name, expression, self._clock.now_ms())
        if not self._stopped:
            await self._instance.heartbeat_now()
            self._rebalance.look()

    async def unsubscribe(self, topic: str) -> None:
        """Ends the subscription to a topic. Raises nothing, even if no broker can be reached."""
        name = self._instance.with_namespace(topic)
        self.subscriptions.remove(name)
        if not self._stopped:
            await self._read_no_more(name)
            await self._instance.heartbeat_now()

    async def _read_no_more(self, topic: str) -> None:
        for queue in sorted(self._pulled.of_topic(topic)):
            await self._pulled.give_up(queue)
        self._popping.take_over(topic, ())

    def describe(self) -> ConsumerData:
        """The description of this consumer in heartbeats."""
        return ConsumerData(
            group_name=self.group,
            consume_type="CONSUME_PASSIVELY",
            message_model=self.config.message_model.value,
            consume_from_where=self.config.consume_from.value,
            subscription_data_set=self.subscriptions.all(),
        )

    # ------------------------------------------------------------- rebalance

    def group_changed(self) -> None:
        """Rebalances, because members of the group came or went."""
        self._rebalance.group_changed()

    async def _take_over(self, topic: str, queues: Sequence[MessageQueue], share: Own) -> bool:
        """Takes and gives up queues of a topic; returns False if some could not be taken."""
        await self._follow_mode(topic, share)
        if topic not in self.subscriptions:  # it was unsubscribed since the queues were determined
            share = Own(frozenset())
        own = share.pulled
        had = self._pulled.of_topic(topic)
        lost = self._pulled.not_pulled_for_long(had)
        for queue in lost & own:
            log.warn("queue {queue} was not pulled for long: it is pulled anew", queue=queue)
        for queue in (had - own) | lost:
            await self._pulled.give_up(queue)
        taken = await self._pulled.take(own - (had - lost))
        # Only after queues that were pulled are given up, so that their offsets are known.
        pops_changed = self._popping.take_over(topic, () if self._stopped else share.popped)
        if taken or pops_changed or (had - own) | lost:
            # A newer version tells the brokers that this subscription counts, and no older one.
            self.subscriptions.renew(topic, self._clock.now_ms())
            if not self._stopped:
                await self._instance.heartbeat_now()
            if self._queues_changed is not None:
                tell(self._queues_changed, topic, queues, sorted(own | share.popped))
        return taken == len(own - (had - lost))

    async def _follow_mode(self, topic: str, share: Own) -> None:
        """What was popped and not acknowledged is in a retry topic, which is pulled when nothing of
        the topic is popped any more.
        """
        again = retry_topic_v1(topic, self.group)
        if (
            not share.popped
            and share.pulled
            and self._may_pop
            and not topic.startswith(RETRY_PREFIX)
        ):
            if again not in self.subscriptions and len(again) <= MAX_TOPIC_LENGTH:
                self.subscriptions.add(again, SUB_ALL, self._clock.now_ms())
                self._rebalance.look()
        elif share.popped and not share.pulled and again in self.subscriptions:
            self.subscriptions.remove(again)
            await self._read_no_more(again)

    async def _renew_lock(self, process_queue: ProcessQueue) -> bool:
        return self._locks is not None and await self._locks.renew_one(process_queue)

    # -------------------------------------------------------- administrators

    async def reset_offsets(self, topic: str, offsets: Mapping[MessageQueue, int]) -> None:
        """Continues at other offsets of a topic, after running listeners have had time to end."""
        self._puller.is_suspended = True
        try:
            for process_queue in self._pulled.process_queues:
                if process_queue.queue.topic == topic and process_queue.queue in offsets:
                    process_queue.dropped = True
                    process_queue.clear()
            await self._clock.pause(RESET_PAUSE_MS)
            for queue in sorted(self._pulled.of_topic(topic)):
                if queue in offsets and not self._stopped:
                    self.offsets.set(queue, offsets[queue])
                    await self._pulled.give_up(queue)
        finally:
            self.resume()

    def offset_table(self, topic: str) -> Mapping[MessageQueue, int]:
        """Returns the offsets that were noted for a topic, by queue."""
        return self.offsets.table(topic)

    def running_info(self, *, with_stacks: bool) -> ConsumerRunningInfo:
        """Describes the consumer for administrators."""
        properties = {
            **running_info.push_properties(self.config),
            "PROP_CONSUME_TYPE": "CONSUME_PASSIVELY",
            "PROP_CONSUMEORDERLY": self.is_orderly,
        }
        return ConsumerRunningInfo(
            properties=running_info.properties_of(
                self._instance, self.group, self.started_ms, properties
            ),
            subscription_set=self.subscriptions.all(),
            mq_table=running_info.queues_of(
                self._instance, self.offsets, self._pulled.process_queues
            ),
            mq_pop_table=self._popping.describe(),
            status_table={
                topic: self.statistics.status(topic) for topic in self.subscriptions.topics()
            },
            jstack=running_info.stacks() if with_stacks else None,
        )

    async def consume_directly(
        self, message: MessageExt, broker_name: str | None
    ) -> ConsumeMessageDirectlyResult | None:
        """Gives a message to the listener now; nothing is committed or sent back."""
        message.broker_name = broker_name
        return await consume_directly(self._calls, self._clock, message, is_orderly=self.is_orderly)

    # ------------------------------------------------------------------ more

    def _send_back_expired(self) -> None:
        for process_queue in self._pulled.process_queues:
            spawn(
                self._consumption.send_back_expired(process_queue),
                "sending back what took too long",
            )

    def _persist_soon(self) -> None:
        spawn(self._pulled.persist(), "telling how far the group is")
