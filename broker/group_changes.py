# SPDX-License-Identifier: Apache-2.0
"""Tells the consumers of a group that others came or went, or subscribed to something else.

They then rebalance at once, not within 20 s. Counterpart of DefaultConsumerIdsChangeListener.
"""

from __future__ import annotations

from txrocketmq.broker.clients import BROADCASTING, ConsumerGroup, Consumers
from txrocketmq.broker.config import BrokerConfig
from txrocketmq.broker.subscription import SubscriptionGroups
from txrocketmq.remoting.protocol import heartbeat
from txrocketmq.remoting.protocol.heartbeat import NotifyConsumerIdsChangedRequestHeader

DELAYED_MS = 15_000
"""How often groups are told without realTimeNotifyConsumerChange."""


class GroupChanges:
    """`changed` is told of each change of a group; `tick` wants to be called every DELAYED_MS."""

    def __init__(
        self, config: BrokerConfig, groups: SubscriptionGroups, consumers: Consumers
    ) -> None:
        self._config = config
        self._groups = groups
        self._consumers = consumers
        self._waiting: set[str] = set()

    def changed(self, group: ConsumerGroup) -> None:
        """Tells the members of the group, unless they all consume for themselves anyway."""
        if not self._wanted(group):
            return
        if self._config.real_time_notify_consumer_change:
            _tell(group)
        else:
            self._waiting.add(group.name)

    def tick(self) -> None:
        """Tells the members of all groups that have changed since."""
        waiting, self._waiting = self._waiting, set()
        for name in waiting:
            group = self._consumers.group(name)
            if group is not None and self._wanted(group):
                _tell(group)

    def _wanted(self, group: ConsumerGroup) -> bool:
        if not self._config.notify_consumer_ids_changed_enable:
            return False
        configured = self._groups.get(group.name)
        if configured is not None and not configured.notify_consumer_ids_changed_enable:
            return False
        return group.message_model != BROADCASTING


def _tell(group: ConsumerGroup) -> None:
    header = NotifyConsumerIdsChangedRequestHeader(consumer_group=group.name)
    for peer in list(group.members):
        peer.invoke_oneway(heartbeat.NOTIFY_CONSUMER_IDS_CHANGED, header)
