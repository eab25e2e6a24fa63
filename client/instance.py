# SPDX-License-Identifier: Apache-2.0
"""One client: its routes, its connections, its heartbeats; producers and consumers share it.

Routes of all topics that were ever asked for are asked for again every 30 s, and whoever watches a
topic hears of changes. Every broker's master hears of the producers every 30 s. Counterpart of
MQClientInstance.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

from twisted.internet.defer import Deferred
from twisted.logger import Logger
from twisted.python.failure import Failure

from txrocketmq.client.api import Api
from txrocketmq.client.config import DEFAULT_INSTANCE, ClientConfig
from txrocketmq.client.errors import BrokerNotExist, ClientClosed, MQClientError, NoRoute
from txrocketmq.client.name_servers import NameServers
from txrocketmq.client.route import (
    BrokerAddresses,
    PublishInfo,
    default_route,
    is_changed,
    publish_queues,
    subscribe_queues,
)
from txrocketmq.remoting.errors import RemotingError
from txrocketmq.remoting.message.ids import UniqueKeys, ip_bytes
from txrocketmq.remoting.message.message import MessageQueue
from txrocketmq.remoting.protocol.body.heartbeat import HeartbeatData, ProducerData
from txrocketmq.remoting.protocol.body.route import TopicRouteData
from txrocketmq.remoting.transport.address import address_facing
from txrocketmq.remoting.transport.client import Connections
from txrocketmq.remoting.transport.clock import Clock, Repeating

FIRST_HEARTBEAT_MS = 1_000

log = Logger()


class ClientInstance:
    """Starts with `start`, ends with `stop`; `config` says where the name servers are."""

    def __init__(
        self,
        config: ClientConfig,
        clock: Clock | None = None,
        connections: Connections | None = None,
    ) -> None:
        self.config = config
        self.clock = clock or Clock()
        self._connections = connections or Connections(self.clock)
        self.api = Api(self._connections, config.api_timeout_ms)
        self.name_servers = NameServers(
            self._connections, config.name_servers, config.api_timeout_ms
        )
        self.brokers = BrokerAddresses()
        ip = config.client_ip or address_facing(config.namesrv_addr)
        self.client_id = client_id(ip, config)
        self.unique_keys = UniqueKeys(ip_bytes(ip), os.getpid(), id(self))
        self._routes: dict[str, TopicRouteData] = {}
        self._publish: dict[str, PublishInfo] = {}
        self._asking: dict[str, list[Deferred[bool]]] = {}
        self._watchers: dict[str, list[Callable[[], None]]] = {}
        self._producer_groups: set[str] = set()
        self._looking: list[Repeating] = []
        self._closed = False

    def start(self) -> None:
        """Begins to look after routes and to send heartbeats."""
        every, config = self.clock.every, self.config
        self._looking = [
            every(config.poll_name_server_interval_ms, self._poll_routes),
            every(
                config.heartbeat_broker_interval_ms, self._heartbeat, first_ms=FIRST_HEARTBEAT_MS
            ),
        ]

    async def stop(self) -> None:
        """Takes leave of the brokers and closes all connections."""
        if self._closed:
            return
        self._closed = True
        for repeating in self._looking:
            repeating.cancel()
        for group in sorted(self._producer_groups):
            for address in self.brokers.masters():
                await self._quietly(self.api.unregister(address, self.client_id, group))
        self._connections.close()
        self.clock.stop()  # not before: it is what ends the waiting for answers

    # ---------------------------------------------------------------- routes

    async def publish_info(self, topic: str, create_topic_key: str, max_queues: int) -> PublishInfo:
        """Where to send messages of a topic: it is created after the pattern if nobody has it.

        Raises NoRoute, NoNameServer, MQBrokerError.
        """
        info = self._publish.get(topic)
        if info is None or not info.queues:
            await self.refresh(topic)
            info = self._publish.get(topic)
        if info is not None and info.queues:
            return info
        if topic in self._routes:
            raise NoRoute(topic, "its brokers allow no writing, or have no master")
        pattern = await self.name_servers.route(create_topic_key)
        if pattern is None:
            raise NoRoute(
                topic,
                f"no broker registered at {self.config.namesrv_addr} has it, or creates topics"
                " by itself (autoCreateTopicEnable)",
            )
        self._take(topic, default_route(pattern, max_queues))
        return self._publish[topic]

    async def subscribe_queues(self, topic: str) -> list[MessageQueue]:
        """All queues of a topic that can be read. Raises NoRoute, NoNameServer, MQBrokerError."""
        if topic not in self._routes:
            await self.refresh(topic)
        route = self._routes.get(topic)
        if route is None:
            where = self.config.namesrv_addr
            raise NoRoute(topic, f"no broker registered at {where} has it")
        return subscribe_queues(topic, route)

    def refresh(self, topic: str) -> Deferred[bool]:
        """Asks for the route of a topic; fires with whether it changed. One question at a time."""
        result: Deferred[bool] = Deferred()
        waiting = self._asking.setdefault(topic, [])
        waiting.append(result)
        if len(waiting) == 1:
            asked = Deferred.fromCoroutine(self._ask_route(topic))
            asked.addBoth(lambda outcome: self._answer(topic, outcome))
        return result

    def watch(self, topic: str, changed: Callable[[], None]) -> Callable[[], None]:
        """Calls `changed` whenever the route of a topic has changed; the result ends that."""
        watchers = self._watchers.setdefault(topic, [])
        watchers.append(changed)
        return lambda: watchers.remove(changed)

    async def address_to_publish(self, queue: MessageQueue) -> str:
        """The master of a queue. Raises BrokerNotExist."""
        address = self.brokers.to_publish(queue.broker_name)
        if address is None:
            await self.refresh(queue.topic)
            address = self.brokers.to_publish(queue.broker_name)
        if address is None:
            raise BrokerNotExist(f"broker {queue.broker_name} has no master now")
        return address

    async def address_to_subscribe(self, queue: MessageQueue, broker_id: int = 0) -> str:
        """The broker of a queue with an id, or another one of that name. Raises BrokerNotExist."""
        address = self.brokers.to_subscribe(queue.broker_name, broker_id)
        if address is None:
            await self.refresh(queue.topic)
            address = self.brokers.to_subscribe(queue.broker_name, broker_id)
        if address is None:
            raise BrokerNotExist(f"broker {queue.broker_name} is not there now")
        return address

    async def _ask_route(self, topic: str) -> bool:
        route = await self.name_servers.route(topic)
        if self._closed:
            raise ClientClosed("the client was stopped")
        return route is not None and self._take(topic, route)

    def _answer(self, topic: str, outcome: Any) -> None:
        for waiting in self._asking.pop(topic):
            waiting.callback(outcome)

    def _take(self, topic: str, route: TopicRouteData) -> bool:
        """Takes a route over; whether it is news."""
        if not is_changed(self._routes.get(topic), route):
            return False
        self._routes[topic] = route
        self._publish[topic] = PublishInfo(publish_queues(topic, route))
        self.brokers.update(route.broker_datas)
        self.brokers.keep(
            {each.broker_name for its in self._routes.values() for each in its.broker_datas}
        )
        for changed in tuple(self._watchers.get(topic, ())):
            changed()
        return True

    def _poll_routes(self) -> None:
        for topic in self._routes.keys() | self._watchers.keys():
            self._log_failure(self.refresh(topic), f"asking for the route of {topic}")

    # ------------------------------------------------------------ heartbeats

    def register_producer(self, group: str) -> None:
        """From now on heartbeats tell of a producer of this group."""
        self._producer_groups.add(group)

    def _heartbeat(self) -> None:
        if not self._producer_groups:
            return
        groups = [ProducerData(group_name=group) for group in sorted(self._producer_groups)]
        data = HeartbeatData(client_id=self.client_id, producer_data_set=groups)
        for address in self.brokers.masters():
            beat = Deferred.fromCoroutine(self.api.heartbeat(address, data))
            self._log_failure(beat, f"the heartbeat to {address}")

    def _log_failure(self, result: Deferred[Any], what: str) -> None:
        def failed(failure: Failure) -> None:
            if not isinstance(failure.value, (MQClientError, RemotingError)):
                log.failure("{what} failed", failure, what=what)
            elif not self._closed:
                log.warn("{what} failed: {error}", what=what, error=failure.getErrorMessage())

        result.addErrback(failed)

    async def _quietly(self, asked: Any) -> None:
        try:
            await asked
        except (MQClientError, RemotingError) as error:
            log.debug("{error}", error=error)


def client_id(ip: str, config: ClientConfig) -> str:
    """ip@instance, or ip@instance@unit (ClientConfig.buildMQClientId, changeInstanceNameToPID)."""
    name = config.instance_name
    if name == DEFAULT_INSTANCE:
        name = f"{os.getpid()}#{time.monotonic_ns()}"
    return f"{ip}@{name}" + (f"@{config.unit_name}" if config.unit_name else "")
