# SPDX-License-Identifier: Apache-2.0
"""The subscriptions of a consumer: topics, each with an expression of tags or of SQL92.

A newer version of a subscription counts at the brokers, not an older one; a consumer makes one
whenever its queues have changed, so that members with different subscriptions do not keep each
other's.

Java: RebalanceImpl.subscriptionInner, MessageSelector, MQClientInstance.checkClientInBroker.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, replace

from txrocketmq.client.base.validators import check_topic
from txrocketmq.client.core.instance import ClientInstance
from txrocketmq.remoting.arguments.arguments import checked_class
from txrocketmq.remoting.message.tags import SQL92, TAG, SubscriptionData, build_subscription_data
from txrocketmq.remoting.protocol.body.heartbeat import CheckClientRequestBody


@checked_class
@dataclass(frozen=True, slots=True)
class MessageSelector:
    """An expression and its type, made by `by_tag` or `by_sql`."""

    expression: str
    type: str = TAG

    @classmethod
    def by_tag(cls, expression: str) -> MessageSelector:
        """Tags separated by `||`, or `*`."""
        return cls(expression, TAG)

    @classmethod
    def by_sql(cls, expression: str) -> MessageSelector:
        """A condition over the properties of messages, as brokers with SQL92 filters take it."""
        return cls(expression, SQL92)


Expression = str | MessageSelector
"""Tags as a text, or a selector."""


class Subscriptions:
    """The subscriptions of a consumer, by topic."""

    def __init__(self, expressions: Mapping[str, Expression], version: int) -> None:
        self._data: dict[str, SubscriptionData] = {}
        for topic, expression in expressions.items():
            self.add(topic, expression, version)

    def __contains__(self, topic: object) -> bool:
        return topic in self._data

    def topics(self) -> list[str]:
        """The topics that are subscribed to."""
        return list(self._data)

    def all(self) -> list[SubscriptionData]:
        """All subscriptions, in the form for brokers."""
        return list(self._data.values())

    def of(self, topic: str) -> SubscriptionData:
        """The subscription to a topic. Raises KeyError."""
        return self._data[topic]

    def add(self, topic: str, expression: Expression, version: int) -> None:
        """Adds a subscription, or replaces it. Raises MessageIllegal and SubscriptionError."""
        check_topic(topic)
        self._data[topic] = subscription_of(topic, expression, version)

    def remove(self, topic: str) -> None:
        """Removes the subscription to a topic, if there is one."""
        self._data.pop(topic, None)

    def renew(self, topic: str, version: int) -> None:
        """Makes a newer version of a subscription."""
        if topic in self._data:
            self._data[topic] = replace(self._data[topic], sub_version=version)

    async def check(self, instance: ClientInstance, group: str) -> None:
        """Asks a broker of each topic that is filtered by other means than tags, whether it can.

        Raises MQBrokerError when it cannot, and NoRoute.
        """
        for data in self.all():
            if data.expression_type == TAG:
                continue
            queues = await instance.subscribe_queues(data.topic)
            if not queues:
                continue
            address = await instance.address_to_subscribe(random.choice(queues))
            body = CheckClientRequestBody(
                client_id=instance.client_id, group=group, subscription_data=data
            )
            await instance.api.check_subscription(address, body)


def subscription_of(topic: str, expression: Expression, version: int) -> SubscriptionData:
    """Makes the subscription for an expression. Raises SubscriptionError."""
    if isinstance(expression, MessageSelector):
        return build_subscription_data(
            topic, expression.expression, expression.type, sub_version=version
        )
    return build_subscription_data(topic, expression, sub_version=version)
