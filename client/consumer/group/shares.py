# SPDX-License-Identifier: Apache-2.0
"""Which queues of a topic a member gets: all, those of its strategy, or those a broker names.

A broker of 5.x that is asked says of each queue whether it is to be pulled or popped; a queue id of
-1 stands for any queue of a broker. If a broker cannot be asked, because it is of version 4.x, the
members distribute the queues of the topic among themselves from then on.

Java: RebalanceImpl.rebalanceByTopic, tryQueryAssignment, getRebalanceResultFromBroker.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from twisted.logger import Logger

from txrocketmq.client.base.errors import MQBrokerError
from txrocketmq.client.core.instance import ClientInstance
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.message.allocation import STRATEGIES, Strategy
from txrocketmq.remoting.message.message import MessageQueue
from txrocketmq.remoting.protocol.body.pop import QueryAssignmentRequestBody

POP = "POP"

log = Logger()


class Own(NamedTuple):
    """A member's own queues of a topic, by how they are read."""

    pulled: frozenset[MessageQueue]
    popped: frozenset[MessageQueue] = frozenset()


class Share(Protocol):
    """A way to determine the queues of a member."""

    async def own(self, topic: str, queues: Sequence[MessageQueue]) -> Own | None:
        """Returns a member's own queues of a topic; None means that they stay as they are for now.

        Raises MQBrokerError, BrokerNotExist, errors of the connection, and ValueError of a strategy
        that cannot distribute the queues.
        """


class Everything:
    """In broadcasting, every member has all queues."""

    async def own(self, topic: str, queues: Sequence[MessageQueue]) -> Own:
        """Returns all queues."""
        return Own(frozenset(queues))


class ByStrategy:
    """Members apply the same strategy to the same list, so their results agree."""

    def __init__(self, instance: ClientInstance, group: str, strategy: Strategy) -> None:
        self._instance = instance
        self._group = group
        self._strategy = strategy

    async def own(self, topic: str, queues: Sequence[MessageQueue]) -> Own:
        """Returns the queues that the strategy assigns to this client."""
        if not queues:
            return Own(frozenset())
        # Any broker of the topic has the members; a random one, as a certain one may be away.
        address = await self._instance.address_to_subscribe(random.choice(queues))
        members = sorted(await self._instance.api.consumer_ids(address, self._group))
        return Own(frozenset(self._strategy(self._instance.client_id, queues, members)))


class ByBroker:
    """A broker of the topic says who reads what, and how. Raises ValueError for a strategy that
    brokers do not have.
    """

    def __init__(self, instance: ClientInstance, group: str, strategy: Strategy) -> None:
        names = [name for name, each in STRATEGIES.items() if each is strategy]
        if not names:
            raise ValueError(
                "with client_rebalance=False brokers share the queues, which have the strategies"
                " averagely, averagely_by_circle and consistent_hash only"
            )
        self._instance = instance
        self._group = group
        self._strategy_name = names[0]
        self._by_strategy = ByStrategy(instance, group, strategy)
        self._unknown: set[str] = set()
        """Topics whose broker does not serve the request; at most as many as are subscribed to."""

    async def own(self, topic: str, queues: Sequence[MessageQueue]) -> Own | None:
        """Returns the queues that a broker of the topic assigns to this client."""
        if topic in self._unknown or not queues:
            return await self._by_strategy.own(topic, queues)
        address = await self._instance.address_to_subscribe(random.choice(queues))
        body = QueryAssignmentRequestBody(
            topic=topic,
            consumer_group=self._group,
            client_id=self._instance.client_id,
            strategy_name=self._strategy_name,
            message_model="CLUSTERING",
        )
        try:
            found = await self._instance.api.assignments(address, body)
        except MQBrokerError as error:
            if error.code != ResponseCode.REQUEST_CODE_NOT_SUPPORTED:
                raise
            log.info("the members of {group} share {topic}", group=self._group, topic=topic)
            self._unknown.add(topic)
            return await self._by_strategy.own(topic, queues)
        if found is None:
            return None
        pulled: set[MessageQueue] = set()
        popped: set[MessageQueue] = set()
        for each in found:
            if each.message_queue is not None:
                (popped if each.mode == POP else pulled).add(each.message_queue)
        return Own(frozenset(pulled), frozenset(popped))


def share_of(
    instance: ClientInstance, group: str, strategy: Strategy, *, is_shared: bool, by_broker: bool
) -> Share:
    """Returns the way for a consumer. Raises ValueError for a strategy that brokers do not have."""
    if not is_shared:
        return Everything()
    return (ByBroker if by_broker else ByStrategy)(instance, group, strategy)
