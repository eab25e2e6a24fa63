# SPDX-License-Identifier: Apache-2.0
"""A client: its routes, connections and heartbeats, which producers and consumers share.

It fetches the routes of all topics that were ever used again every 30 s, and notifies those who
watch a topic of changes. Every 30 s it sends heartbeats about its producers and consumers to the
brokers, and to slaves only if there is a consumer. A broker gets a heartbeat at once when a new
connection to it has been made. When a broker says that a group has changed, the group's consumer is
told; when it asks what became of a transaction, a producer of the group does. Name servers
that are told by an HTTP server are asked for every two minutes. Counterpart of MQClientInstance and
ClientRemotingProcessor.
"""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Callable
from typing import Any, Protocol

from twisted.internet.defer import Deferred, gatherResults
from twisted.logger import Logger
from twisted.python.failure import Failure

from txrocketmq.client.base.config import DEFAULT_INSTANCE, ClientConfig
from txrocketmq.client.base.errors import BrokerNotExist, ClientClosed, MQClientError, NoRoute
from txrocketmq.client.base.namespace import with_namespace, without_namespace
from txrocketmq.client.core import top_addressing
from txrocketmq.client.core.api import Api
from txrocketmq.client.core.consumer_requests import AskedConsumer, ConsumerRequests
from txrocketmq.client.core.heartbeats import Heartbeats
from txrocketmq.client.core.name_servers import NameServers, check_addresses
from txrocketmq.client.core.producer_requests import RegisteredProducer, Replies, ToldProducers
from txrocketmq.client.core.tls import contexts_of
from txrocketmq.remoting.call import Reply, Request
from txrocketmq.remoting.dispatch import Dispatcher, Registry, serves
from txrocketmq.remoting.errors import RemotingError
from txrocketmq.remoting.frame.credentials import seal_of
from txrocketmq.remoting.header import NoHeader
from txrocketmq.remoting.host.clock import Clock, Repeating
from txrocketmq.remoting.message.ids import UniqueKeys, ip_bytes
from txrocketmq.remoting.message.message import MessageQueue
from txrocketmq.remoting.primitives.listeners import tell_all
from txrocketmq.remoting.protocol import heartbeat
from txrocketmq.remoting.protocol.body.heartbeat import ConsumerData, HeartbeatData, ProducerData
from txrocketmq.remoting.protocol.body.route import TopicRouteData
from txrocketmq.remoting.protocol.heartbeat import NotifyConsumerIdsChangedRequestHeader
from txrocketmq.remoting.routing.known_routes import KnownRoutes
from txrocketmq.remoting.routing.routes import PublishInfo, default_route, why_not_writable
from txrocketmq.remoting.transport.address import address_facing
from txrocketmq.remoting.transport.client import Connections

FIRST_HEARTBEAT_MS = 1_000

log = Logger()


class ClientInstance:
    """The client behind producers and consumers; runs from `start` until `stop`."""

    def __init__(
        self,
        config: ClientConfig,
        clock: Clock | None = None,
        connections: Connections | None = None,
    ) -> None:
        check_addresses(config)
        self.config = config
        self.clock = clock or Clock()
        self._connections = connections or Connections(
            self.clock,
            Dispatcher(
                Registry(
                    _Told(self),
                    ToldProducers(self),
                    ConsumerRequests(self._asked_consumer),
                ),
                self.clock.now_ms,
                self.clock.steady_ms,
            ),
            seal=seal_of(
                config.access_key, config.secret_key, config.security_token, config.namespace_v2
            ),
            tls=contexts_of(config),
        )
        self._connections.on_connected = self._connected
        self.api = Api(self._connections, config.api_timeout_ms)
        self.name_servers = NameServers(
            self._connections, config.name_servers, config.api_timeout_ms
        )
        self.routes = KnownRoutes()
        self.brokers = self.routes.brokers
        ip = config.client_ip or address_facing(config.namesrv_addr)
        self.client_id = client_id(ip, config)
        self.unique_keys = UniqueKeys(ip_bytes(ip), os.getpid(), id(self))
        self._asking: dict[str, list[Deferred[bool]]] = {}
        self._watchers: dict[str, list[Callable[[], None]]] = {}
        self.replies = Replies(self.clock)
        self._met: set[str] = set()
        """Addresses of brokers to which a connection was made before."""
        self._introduced: set[str] = set()
        """Addresses of brokers to which a heartbeat was sent."""
        self._heartbeats = Heartbeats(use_v2=config.use_heartbeat_v2)
        self._producers: dict[str, list[RegisteredProducer | None]] = {}
        self._consumers: dict[str, RegisteredConsumer] = {}
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
        if config.namesrv_domain and not config.name_servers:
            self._looking.append(
                every(
                    top_addressing.PERIOD_MS,
                    lambda: self._log_failure(
                        Deferred.fromCoroutine(self.fetch_name_servers()),
                        "asking for the name servers",
                    ),
                    first_ms=top_addressing.FIRST_MS,
                )
            )

    async def fetch_name_servers(self) -> None:
        """Asks the HTTP server for the name servers if no addresses are given.

        Raises NoNameServer if it returns none.
        """
        config = self.config
        if config.namesrv_domain and not config.name_servers:
            told = await top_addressing.fetch(config, self.clock)
            self.name_servers.update(dataclasses.replace(config, namesrv_addr=told).name_servers)

    def with_namespace(self, name: str) -> str:
        """The name of a topic or group at the brokers."""
        return with_namespace(self.config.namespace, name)

    def without_namespace(self, name: str) -> str:
        """The name of a topic or group in the program."""
        return without_namespace(self.config.namespace, name)

    def queue_with_namespace(self, queue: MessageQueue) -> MessageQueue:
        """A queue with its name at the brokers."""
        return dataclasses.replace(queue, topic=self.with_namespace(queue.topic))

    async def stop(self) -> None:
        """Takes leave of the brokers and closes all connections."""
        if self._closed:
            return
        self._closed = True
        for repeating in self._looking:
            repeating.cancel()
        for group in sorted(self._producers):
            await self._unregister_producers(group)
        self.replies.fail_all(ClientClosed("the client was stopped"))
        for group in sorted(self._consumers):
            await self.unregister_consumer(group)
        self._connections.close()
        self.clock.stop()  # not earlier, because it ends the waiting for answers

    # ---------------------------------------------------------------- routes

    async def publish_info(self, topic: str, create_topic_key: str, max_queues: int) -> PublishInfo:
        """Returns where to send messages of a topic, which is created if it does not exist.

        Raises NoRoute, NoNameServer, MQBrokerError.
        """
        routes = self.routes
        info = routes.publish_info(topic)
        if info is None:
            await self.refresh(topic)
            info = routes.publish_info(topic)
        if info is not None:
            return info
        if (route := routes.get(topic)) is not None:
            raise NoRoute(topic, why_not_writable(route))
        pattern = await self.name_servers.route(create_topic_key)
        if pattern is None:
            raise NoRoute(
                topic,
                f"no broker registered at {self.config.namesrv_addr} has it, or creates topics"
                " by itself (autoCreateTopicEnable)",
            )
        route = default_route(pattern, max_queues)
        self._take(topic, route)
        info = routes.publish_info(topic)
        if info is None:
            why = why_not_writable(route)
            raise NoRoute(topic, f"no broker has it, and of those that create topics {why}")
        return info

    async def subscribe_queues(self, topic: str) -> list[MessageQueue]:
        """All queues of a topic that can be read. Raises NoRoute, NoNameServer, MQBrokerError."""
        if topic not in self.routes:
            await self.refresh(topic)
        queues = self.routes.subscribe_queues(topic)
        if queues is None:
            where = self.config.namesrv_addr
            raise NoRoute(topic, f"no broker registered at {where} has it")
        return queues

    def refresh(self, topic: str) -> Deferred[bool]:
        """Asks for a topic's route, once at a time; fires with whether it has changed."""
        result: Deferred[bool] = Deferred()
        waiting = self._asking.setdefault(topic, [])
        waiting.append(result)
        if len(waiting) == 1:
            asked = Deferred.fromCoroutine(self._ask_route(topic))
            asked.addBoth(lambda outcome: self._answer(topic, outcome))
        return result

    def watch(self, topic: str, changed: Callable[[], None]) -> Callable[[], None]:
        """Calls `changed` whenever the route of a topic changes; the result ends that."""
        watchers = self._watchers.setdefault(topic, [])
        watchers.append(changed)
        return lambda: watchers.remove(changed)

    async def address_to_publish(self, queue: MessageQueue) -> str:
        """Returns the address of a queue's master. Raises BrokerNotExist."""
        address = self.brokers.to_publish(queue.broker_name)
        if address is None:
            await self.refresh(queue.topic)
            address = self.brokers.to_publish(queue.broker_name)
        if address is None:
            raise BrokerNotExist(
                f"broker {queue.broker_name} has no master now: its queues of topic {queue.topic}"
                " take no messages until it is back"
            )
        return address

    async def address_to_subscribe(self, queue: MessageQueue, broker_id: int = 0) -> str:
        """Returns the broker with this id, or another one of its name. Raises BrokerNotExist."""
        address = self.brokers.to_subscribe(queue.broker_name, broker_id)
        if address is None:
            await self.refresh(queue.topic)
            address = self.brokers.to_subscribe(queue.broker_name, broker_id)
        if address is None:
            raise BrokerNotExist(
                f"broker {queue.broker_name} is not available now: its queues of topic"
                f" {queue.topic} cannot be read until it is back"
            )
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
        """Stores a route; returns whether it has changed."""
        if not self.routes.take(topic, route):
            return False
        self.routes.forget_unnamed()
        tell_all(tuple(self._watchers.get(topic, ())))
        return True

    def _poll_routes(self) -> None:
        for topic in {*self.routes, *self._watchers}:
            self._log_failure(self.refresh(topic), f"asking for the route of {topic}")

    # ------------------------------------------------------------ heartbeats

    def register_producer(self, group: str, producer: RegisteredProducer | None = None) -> None:
        """Adds a producer of this group to the heartbeats; one that is given may be asked."""
        self._producers.setdefault(group, []).append(producer)

    async def unregister_producer(
        self, group: str, producer: RegisteredProducer | None = None
    ) -> None:
        """Unregisters a producer, at the brokers as well if it was the last one of its group."""
        its = self._producers.get(group, [])
        if producer in its:
            its.remove(producer)
            if not its:
                await self._unregister_producers(group)

    async def _unregister_producers(self, group: str) -> None:
        self._producers.pop(group, None)
        for address in self.brokers.masters():
            await self._quietly(self.api.unregister(address, self.client_id, producer_group=group))

    def producer_of(self, group: str) -> RegisteredProducer | None:
        """Returns a producer of the group that can be asked, or None."""
        for producer in self._producers.get(group, ()):
            if producer is not None:
                return producer
        return None

    def register_consumer(self, group: str, consumer: RegisteredConsumer) -> None:
        """Adds a consumer to the heartbeats. Raises ValueError if the group has one already."""
        if group in self._consumers:
            raise ValueError(f"this client has a consumer of the group {group} already")
        self._consumers[group] = consumer

    async def unregister_consumer(self, group: str) -> None:
        """Tells all brokers that the consumer of the group leaves."""
        if self._consumers.pop(group, None) is not None:
            for address in self.brokers.all():
                await self._quietly(
                    self.api.unregister(address, self.client_id, consumer_group=group)
                )

    def group_changed(self, group: str) -> None:
        """Tells the consumer of a group, if there is one, that its members have changed."""
        consumer = self._consumers.get(group)
        if consumer is not None:
            consumer.group_changed()

    def _asked_consumer(self, group: str) -> AskedConsumer | None:
        return self._consumers.get(group)

    @property
    def is_introduced(self) -> bool:
        """Whether a heartbeat was sent to each known master."""
        return self._introduced.issuperset(self.brokers.masters())

    async def heartbeat_now(self) -> None:
        """Sends heartbeats to all brokers and waits for the answers; errors are only logged."""
        await gatherResults([self._beat(address, data) for address, data in self._beats()])

    def _heartbeat(self) -> None:
        self.routes.forget_unnamed()
        self._introduced.intersection_update(self.brokers.all())
        for address, data in self._beats():
            self._beat(address, data)

    def _beat(self, address: str, data: HeartbeatData) -> Deferred[None]:
        self._introduced.add(address)
        beat = Deferred.fromCoroutine(self._tell(address, data))
        self._log_failure(beat, f"the heartbeat to {address}")
        return beat

    async def _tell(self, address: str, data: HeartbeatData) -> None:
        says = await self.api.heartbeat(address, data)
        self._heartbeats.answered(address, data, says)

    def _connected(self, address: str) -> None:
        """Sends a heartbeat and rebalances, because the broker may have been restarted.

        After the first connection to a broker, the starting producer or consumer does this itself.
        """
        self._heartbeats.forget(address)
        known = self.brokers.all()
        self._met = {its for its in self._met if its in known}
        if address not in self._met:
            if address in known:
                self._met.add(address)
            return
        for its, data in self._beats():
            if its == address:
                self._beat(address, data)
        for consumer in self._consumers.values():
            consumer.group_changed()

    def _beats(self) -> list[tuple[str, HeartbeatData]]:
        """Returns the addresses to which heartbeats go, each with its data."""
        if not self._producers and not self._consumers:
            return []
        data = HeartbeatData(
            client_id=self.client_id,
            producer_data_set=[ProducerData(group_name=group) for group in sorted(self._producers)],
            consumer_data_set=[each.describe() for each in self._consumers.values()],
        )
        brokers = self.brokers.all() if self._consumers else self.brokers.masters()
        return self._heartbeats.for_brokers(data, brokers)

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


class RegisteredConsumer(AskedConsumer, Protocol):
    """What the instance requires of a consumer."""

    def describe(self) -> ConsumerData:
        """Describes the consumer in heartbeats."""

    def group_changed(self) -> None:
        """Called when members of its group came or went."""


class _Told:
    """Serves notices of brokers."""

    def __init__(self, instance: ClientInstance) -> None:
        self._instance = instance

    @serves(heartbeat.NOTIFY_CONSUMER_IDS_CHANGED)
    def notify_consumer_ids_changed(
        self, request: Request[NotifyConsumerIdsChangedRequestHeader]
    ) -> Reply[NoHeader]:
        """Tells the consumer of a group of changed members; nobody waits for the answer."""
        self._instance.group_changed(request.header.consumer_group)
        return Reply()


def client_id(ip: str, config: ClientConfig) -> str:
    """ip@instance, or ip@instance@unit (ClientConfig.buildMQClientId, changeInstanceNameToPID)."""
    name = config.instance_name
    if name == DEFAULT_INSTANCE and not config.keep_default_instance_name:
        name = f"{os.getpid()}#{time.monotonic_ns()}"
    return f"{ip}@{name}" + (f"@{config.unit_name}" if config.unit_name else "")
