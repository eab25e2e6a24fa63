# SPDX-License-Identifier: Apache-2.0
"""The parts of POP, built together: what was popped, which pops wait, what is brought back.

Java: the fields of PopMessageProcessor, AckMessageProcessor and NotificationProcessor.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

from txrocketmq.broker.intake.after_durable import AfterDurable
from txrocketmq.broker.intake.inner_message import InnerMessage
from txrocketmq.broker.intake.intake import Intake
from txrocketmq.broker.pop.check_points import CheckPoints
from txrocketmq.broker.pop.in_flight import InFlight
from txrocketmq.broker.pop.metrics import PopMetrics
from txrocketmq.broker.pop.order_info import OrderInfos
from txrocketmq.broker.pop.polling import PopPolling
from txrocketmq.broker.pop.queues import PopQueues
from txrocketmq.broker.pop.records import CHECK_POINT_TAG, ReviveTopic
from txrocketmq.broker.pop.replaced_check_points import Replaced
from txrocketmq.broker.pop.revive import Revive
from txrocketmq.broker.settings.config import BrokerConfig
from txrocketmq.broker.tables.offset import ConsumerOffsets
from txrocketmq.broker.tables.stats import BrokerStats
from txrocketmq.broker.tables.subscription import SubscriptionGroups
from txrocketmq.broker.tables.topic import Topics
from txrocketmq.broker.work.json_file import JsonFile
from txrocketmq.broker.work.life import OFTEN_MS, AtStop, Hears, Life, Tick
from txrocketmq.broker.work.patience import Patience
from txrocketmq.broker.work.walks import Walks
from txrocketmq.remoting.call import Peer
from txrocketmq.remoting.message import properties as names


@dataclass(kw_only=True)
class Pop:
    """The parts of POP. Call `tick` every 100 ms, and `revive.tick` every reviveInterval."""

    config: BrokerConfig
    order_file: JsonFile
    intake: Intake
    after_durable: AfterDurable
    topics: Topics
    groups: SubscriptionGroups
    offsets: ConsumerOffsets
    stats: BrokerStats
    clock: Callable[[], int]
    store_host: Callable[[], bytes]
    call_soon: Callable[[Callable[[], None]], object]
    patience: Patience
    timer: Callable[[], float] = lambda: 0.0

    revive_topic: ReviveTopic = field(init=False)
    in_flight: InFlight = field(init=False)
    metrics: PopMetrics = field(init=False, default_factory=PopMetrics)
    orders: OrderInfos = field(init=False)
    check_points: CheckPoints = field(init=False)
    replaced: Replaced = field(init=False)
    revive: Revive = field(init=False)
    queues: PopQueues = field(init=False)
    walks: Walks = field(init=False)
    """Those of requests of POP, which do not wait for those of administrators."""
    polling: PopPolling = field(init=False)
    notifications: PopPolling = field(init=False)

    def __post_init__(self) -> None:
        """Builds the parts."""
        config, intake, offsets = self.config, self.intake, self.offsets
        topic = self.revive_topic = ReviveTopic(
            config.broker_cluster_name, config.broker_name, self.store_host
        )
        self.in_flight = InFlight()
        self.orders = OrderInfos(config, self.order_file, self.clock, self._read_queues)
        self.check_points = CheckPoints(
            config, intake, offsets, topic, self._is_known, self.metrics
        )
        self.replaced = Replaced(self.after_durable, self.metrics)
        self.revive = Revive(
            config, intake, self.topics, self.groups, offsets, topic, self.in_flight,
            self.replaced, metrics=self.metrics, patience=self.patience,
        )  # fmt: skip
        self.queues = PopQueues(
            config, self.topics, offsets, intake.store, self.stats, self.check_points,
            self.orders, self.in_flight, random.randrange,
        )  # fmt: skip
        self.walks = Walks(self.call_soon, self.timer, self.patience)
        self.polling = PopPolling(config, self.call_soon, self.timer)
        self.notifications = PopPolling(config, self.call_soon, self.timer)
        self.orders.on_free.append(self.notify)
        self.topics.on_change.append(self._topic_changed)
        self.groups.on_change.append(self._group_changed)

    def takes(self, message: InnerMessage) -> bool:
        """Whether a message that was sent to the revive topic is a record of another broker, and
        there is room for it.
        """
        is_check_point = message.properties.get(names.TAGS) == CHECK_POINT_TAG
        is_full = is_check_point and self.revive.others.is_full
        return not is_full and self.revive_topic.is_of_another(message)

    def notify(self, topic: str, group: str, queue_id: int) -> None:
        """Wakes a waiting pop of a group, which may pop a queue again."""
        for polling in (self.polling, self.notifications):
            polling.notify(topic, group, queue_id)

    def disconnected(self, peer: Peer, steady_ms: int) -> None:
        """Forgets the waiting pops of a peer that has disconnected."""
        self.polling.disconnected(peer, steady_ms)
        self.notifications.disconnected(peer, steady_ms)

    def tick(self, now_ms: int, steady_ms: int) -> None:
        """Does what is due in the parts that depend on time."""
        self.check_points.tick(now_ms)
        self.orders.tick()
        self.polling.tick(steady_ms)
        self.notifications.tick(steady_ms)

    def settle(self) -> None:
        """Moves offsets as far as the log is durable, before they are written for the last time."""
        self.check_points.settle()
        self.revive.settle()

    def life(self) -> Life:
        """Offsets move when check points are durable; pops end as held pulls do."""
        on_arrivals = self.intake.store.on_arrivals
        return Life(
            "pops",
            hears=tuple(
                Hears(on_arrivals, listener)
                for listener in (*self.polling.listeners, *self.notifications.listeners)
            ),
            beats=(Tick(OFTEN_MS, self.tick),),
            forgets=self.disconnected,
            at_stop=(AtStop("keeping the progress of pops", lambda _: self.settle()),),
        )

    def _topic_changed(self, name: str) -> None:
        if self.topics.get(name) is None:
            self.metrics.forget_topic(name)

    def _group_changed(self, name: str) -> None:
        if self.groups.get(name) is None:
            self.metrics.forget_group(name)

    def _read_queues(self, topic: str, group: str) -> int | None:
        found = self.topics.get(topic)
        return None if found is None or self.groups.get(group) is None else found.read_queue_nums

    def _is_known(self, topic: str, group: str) -> bool:
        return self.topics.get(topic) is not None and self.groups.get(group) is not None
