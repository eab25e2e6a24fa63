# SPDX-License-Identifier: Apache-2.0
"""Notifies the consumers of a group when members join, leave or change subscriptions.

They then rebalance at once instead of within 20 s. The changes of one turn of the reactor are
announced together in the next one: when a thousand members of a group go at the same moment, the
remaining members are not notified a thousand times. Since there may be many members to notify, this
is done in slices. Counterpart of DefaultConsumerIdsChangeListener.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from txrocketmq.broker.settings.config import BrokerConfig
from txrocketmq.broker.tables.clients import BROADCASTING, ConsumerGroup, Consumers
from txrocketmq.broker.tables.subscription import SubscriptionGroups
from txrocketmq.broker.work.life import Beat, Hears, Life
from txrocketmq.remoting.protocol import heartbeat
from txrocketmq.remoting.protocol.heartbeat import NotifyConsumerIdsChangedRequestHeader

DELAYED_MS = 15_000
"""How often groups are notified, in ms, when realTimeNotifyConsumerChange is off."""
TOLD_A_TURN: Final = 32
"""How many members are notified in one turn of the reactor."""
_OVER: Final = object()


class GroupChanges:
    """Call `changed` for each change of a group, and `tick` every DELAYED_MS.

    `call_soon` calls `tell` in a later turn of the reactor.
    """

    def __init__(
        self,
        config: BrokerConfig,
        groups: SubscriptionGroups,
        consumers: Consumers,
        call_soon: Callable[[Callable[[], None]], object],
    ) -> None:
        self._config = config
        self._groups = groups
        self._consumers = consumers
        self._call_soon = call_soon
        self._changed: dict[str, None] = {}
        """Groups that have changed and are to be notified in the next turn."""
        self._waiting: dict[str, None] = {}
        """Groups that have changed and are to be notified at the next tick."""
        self._steps: Iterator[None] = iter(())
        self._is_telling = False

    def changed(self, group: ConsumerGroup) -> None:
        """Has the members of a changed group notified, unless it broadcasts or does not want it."""
        if not self._wanted(group):
            return
        if self._config.real_time_notify_consumer_change:
            self._changed[group.name] = None
            self._begin()
        else:
            self._waiting[group.name] = None

    def tick(self) -> None:
        """Has the members of all groups notified that have changed since the last tick."""
        waiting, self._waiting = self._waiting, {}
        self._changed.update(waiting)
        self._begin()

    def life(self) -> Life:
        """Groups are notified when they change, or after a period."""
        return Life(
            "changes of groups",
            hears=(Hears(self._consumers.on_change, self.changed),),
            beats=(Beat(DELAYED_MS, self.tick),),
        )

    def _begin(self) -> None:
        if not self._is_telling:
            self._is_telling = True
            self._call_soon(self.tell)

    def tell(self) -> None:
        """Notifies some members of changed groups, and leaves the others to later turns."""
        self._is_telling = False
        for _ in range(TOLD_A_TURN):
            if next(self._steps, _OVER) is _OVER:
                if not self._changed:
                    return
                changed, self._changed = self._changed, {}
                self._steps = self._tell_all(changed)
        self._begin()

    def _tell_all(self, names: Iterable[str]) -> Iterator[None]:
        for name in names:
            group = self._consumers.group(name)
            if group is not None and self._wanted(group):
                header = NotifyConsumerIdsChangedRequestHeader(consumer_group=name)
                for peer in list(group.members):
                    peer.invoke_oneway(heartbeat.NOTIFY_CONSUMER_IDS_CHANGED, header)
                    yield
            yield

    def _wanted(self, group: ConsumerGroup) -> bool:
        if not self._config.notify_consumer_ids_changed_enable:
            return False
        configured = self._groups.get(group.name)
        if configured is not None and not configured.notify_consumer_ids_changed_enable:
            return False
        return group.message_model != BROADCASTING
