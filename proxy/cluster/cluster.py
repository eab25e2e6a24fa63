# SPDX-License-Identifier: Apache-2.0
"""The cluster behind the proxy: routes of topics, addresses of brokers, requests to them.

The connections, the requests and the name servers are those of the client. Its instance is not
used, since it asks for the routes of all topics at once every 30 seconds, and a proxy uses many.

Java: TopicRouteService, MQClientAPIFactory.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from txrocketmq.client.base.errors import NoRoute
from txrocketmq.client.core.api import Api
from txrocketmq.client.core.name_servers import NameServers
from txrocketmq.proxy.base.cache import Cache
from txrocketmq.proxy.config import MessagingConfig
from txrocketmq.remoting.call import Call, PendingReply
from txrocketmq.remoting.header import Header
from txrocketmq.remoting.host.clock import Clock
from txrocketmq.remoting.protocol.body.route import BrokerData, TopicRouteData
from txrocketmq.remoting.routing.addresses import MASTER_ID, BrokerAddresses
from txrocketmq.remoting.routing.routes import PublishInfo, publish_queues
from txrocketmq.remoting.transport.client import Connections

TIMEOUT_MS: Final = 3_000
"""How long brokers and name servers may take to answer."""


class TopicRoute:
    """The route of a topic, with what follows from it.

    `writable` are the queues that can be written, in the order by which groups are spread over
    them; `publish` has the same in turn.
    """

    def __init__(self, topic: str, route: TopicRouteData) -> None:
        self.topic = topic
        self.data = route
        queues = publish_queues(topic, route)
        self.publish = PublishInfo(queues)
        self.writable = tuple(sorted(queues))
        self.brokers: dict[str, BrokerData] = {
            broker.broker_name: broker for broker in route.broker_datas
        }


class Cluster:
    """Asks name servers and brokers. `addresses` are those of the name servers."""

    def __init__(
        self,
        clock: Clock,
        connections: Connections,
        name_servers: list[str],
        config: MessagingConfig,
    ) -> None:
        self.clock = clock
        self.config = config
        self.api = Api(connections, TIMEOUT_MS)
        self.brokers = BrokerAddresses()
        """The addresses of all brokers that any route has named."""
        self.routes: Cache[str, TopicRoute] = Cache(
            clock,
            self._ask_route,
            1_000 * config.topic_route_service_cache_refresh_seconds,
            1_000 * config.topic_route_service_cache_expired_seconds,
        )
        self._connections = connections
        self._name_servers = NameServers(connections, name_servers, TIMEOUT_MS)

    async def route(self, topic: str) -> TopicRoute:
        """Returns the route of a topic. Raises NoRoute, NoNameServer, MQBrokerError."""
        route = await self.routes.get(topic)
        if route is None:
            raise NoRoute(topic, f"no broker of {self._names} has it")
        return route

    async def address(self, broker_name: str, topic: str) -> str | None:
        """Returns the address of a broker that has a topic, or None if the name is unknown.

        It is that of the master, or else of the slave that acts for it.
        """
        if self.routes.known(topic) is None or self.brokers.to_subscribe(broker_name) is None:
            await self.routes.refresh(topic)
        return self.brokers.to_subscribe(broker_name)

    def known_address(self, broker_name: str, topic: str) -> str | None:
        """Returns that address if nobody has to be asked for it, and None otherwise."""
        if self.routes.known(topic) is None:
            return None
        return self.brokers.to_subscribe(broker_name)

    def master(self, broker_name: str) -> str | None:
        """Returns the address of a master, or None if the name is unknown."""
        return self.brokers.to_publish(broker_name)

    def ask_again(self, topic: str) -> None:
        """Asks for a route anew, since what it leads to does not answer."""
        self.routes.doubt(topic)

    def name_of(self, address: str) -> str | None:
        """Returns the name of the broker at an address, or None if it is unknown."""
        return self.brokers.name_of(address)

    def invoke(
        self, address: str, call: Call[Any, Any], header: Header, body: bytes, timeout_ms: int
    ) -> PendingReply:
        """Sends a request to a broker."""
        return self._connections.invoke(address, call, header, body, timeout_ms=timeout_ms)

    def takes_more(self, address: str) -> bool:
        """Returns whether the connection with a broker takes more than was written already."""
        return self._connections.takes_more(address)

    def when_free(self, address: str, then: Callable[[], None]) -> None:
        """Calls a function once when the connection with a broker takes more, or has ended."""
        self._connections.when_free(address, then)

    def some_broker(
        self, route: TopicRoute | None, choose: Callable[[list[str]], str]
    ) -> str | None:
        """Returns the address of a master that has a topic, or of any that is known."""
        addresses = self.masters(route)
        return choose(addresses) if addresses else None

    def masters(self, route: TopicRoute | None) -> list[str]:
        """Returns the addresses of the masters that have a topic, or of all that are known."""
        its = [] if route is None else route.brokers.values()
        return [
            broker.broker_addrs[MASTER_ID] for broker in its if MASTER_ID in broker.broker_addrs
        ] or list(self.brokers.masters())

    @property
    def _names(self) -> str:
        return ";".join(self._name_servers.addresses)

    async def _ask_route(self, topic: str) -> TopicRoute | None:
        route = await self._name_servers.route(topic)
        if route is None:
            return None
        self.brokers.update(route.broker_datas)
        return TopicRoute(topic, route)
