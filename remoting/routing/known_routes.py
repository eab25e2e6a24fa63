# SPDX-License-Identifier: Apache-2.0
"""The routes that a client has, with all that follows from them: queues and addresses.

It asks for nothing itself: whoever has asked a name server passes the route on.
Java: the tables of MQClientInstance.
"""

from __future__ import annotations

from collections.abc import Iterator

from txrocketmq.remoting.message.message import MessageQueue
from txrocketmq.remoting.protocol.body.route import TopicRouteData
from txrocketmq.remoting.routing.addresses import BrokerAddresses
from txrocketmq.remoting.routing.routes import (
    PublishInfo,
    is_changed,
    publish_queues,
    subscribe_queues,
)


class KnownRoutes:
    """The known routes by topic; `brokers` has the addresses of all brokers that they name."""

    def __init__(self) -> None:
        self.brokers = BrokerAddresses()
        self._routes: dict[str, TopicRouteData] = {}
        self._publish: dict[str, PublishInfo] = {}

    def __iter__(self) -> Iterator[str]:
        return iter(self._routes)

    def __contains__(self, topic: object) -> bool:
        return topic in self._routes

    def get(self, topic: str) -> TopicRouteData | None:
        """Returns the route of a topic, or None if it is not known."""
        return self._routes.get(topic)

    def take(self, topic: str, route: TopicRouteData) -> bool:
        """Stores a route; returns whether it has changed."""
        if not is_changed(self._routes.get(topic), route):
            return False
        self._routes[topic] = route
        self._publish[topic] = PublishInfo(publish_queues(topic, route))
        self.brokers.update(route.broker_datas)
        return True

    def forget(self, topic: str) -> None:
        """Forgets a route, but no addresses."""
        self._routes.pop(topic, None)
        self._publish.pop(topic, None)

    def forget_unnamed(self) -> None:
        """Forgets the brokers and addresses that no known route names."""
        self.brokers.keep(each for its in self._routes.values() for each in its.broker_datas)

    def publish_info(self, topic: str) -> PublishInfo | None:
        """Returns the queues that can be sent to, or None if there are none or they are unknown."""
        info = self._publish.get(topic)
        return info if info is not None and info.queues else None

    def subscribe_queues(self, topic: str) -> list[MessageQueue] | None:
        """Returns the queues that can be read, or None if the route is not known."""
        route = self._routes.get(topic)
        return None if route is None else subscribe_queues(topic, route)
