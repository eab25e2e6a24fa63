# SPDX-License-Identifier: Apache-2.0
"""Which queue a message goes to: always the same one for a message group, else each in turn.

A broker that did not take a message is passed over for a while, if there are others; what has a
group waits for it.

Java: SendMessageActivity.SendMessageQueueSelector, MessageQueueSelector.
"""

from __future__ import annotations

from typing import Final

from txrocketmq.proxy.base.statuses import Refused
from txrocketmq.proxy.cluster.cluster import TopicRoute
from txrocketmq.proxy.schema.codes import Code
from txrocketmq.proxy.sends.consistent_hash import bucket_of
from txrocketmq.remoting.host.clock import Clock
from txrocketmq.remoting.message.message import MessageQueue

PENALTY_MS: Final = 5_000
"""For how long a broker is passed over."""


class SendPlaces:
    """Chooses queues."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._failed: dict[str, int] = {}
        """Until when each broker is passed over that did not take a message."""

    def queue(self, route: TopicRoute, message_group: str) -> MessageQueue:
        """Returns the queue for a message. Raises Refused if there is none."""
        queues = route.writable
        if not queues:
            raise Refused(Code.FORBIDDEN, f"no writable queue: topic {route.topic}")
        if message_group:
            return queues[bucket_of(message_group, len(queues))]
        if not self._failed:
            return route.publish.select()
        return route.publish.select(preferences=(self._takes,))

    def failed(self, broker_name: str) -> None:
        """Notes that a broker did not take a message."""
        self._failed[broker_name] = self._clock.steady_ms() + PENALTY_MS

    def took(self, broker_name: str) -> None:
        """Notes that it did."""
        if self._failed:
            self._failed.pop(broker_name, None)

    def _takes(self, broker_name: str) -> bool:
        until_ms = self._failed.get(broker_name)
        if until_ms is None or until_ms <= self._clock.steady_ms():
            self._failed.pop(broker_name, None)
            return True
        return False
