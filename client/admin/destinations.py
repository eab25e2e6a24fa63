# SPDX-License-Identifier: Apache-2.0
"""Which servers an administrator's request goes to, and which errors refusals become.

A request for several servers is sent to all of them, even if some fail; the failures are reported
together. Names of topics and groups are those at the brokers: a namespace of version 1 is
refused, because administrators of a cluster want to see its prefix.

Java: MQAdminImpl, CommandUtil.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeVar

from txrocketmq.client.admin.config import AdminConfig
from txrocketmq.client.admin.results import MASTER_ID, BrokerInfo
from txrocketmq.client.base.errors import (
    AdminRefused,
    BrokerNotExist,
    MQBrokerError,
    MQClientError,
    NoNameServer,
    NoRoute,
    PartlyFailed,
)
from txrocketmq.client.core.instance import ClientInstance
from txrocketmq.remoting.call import Call, Reply
from txrocketmq.remoting.errors import RemotingError
from txrocketmq.remoting.header import Header, NoHeader
from txrocketmq.remoting.message.message import MessageQueue
from txrocketmq.remoting.message.topics import RETRY_PREFIX
from txrocketmq.remoting.protocol import route
from txrocketmq.remoting.protocol.body.route import ClusterInfo, TopicRouteData

Q = TypeVar("Q", bound=Header)
R = TypeVar("R", bound=Header)
T = TypeVar("T")

FAILURES: Final = (MQClientError, RemotingError)


class Destinations:
    """Asks the servers of clusters for the parts of the admin client."""

    def __init__(self, instance: ClientInstance, config: AdminConfig) -> None:
        if instance.config.namespace:
            raise ValueError(
                "the admin client takes names as brokers have them: leave namespace out, and write"
                f" {instance.config.namespace}%TOPIC"
            )
        self.config = config
        self.instance = instance

    # ----------------------------------------------------------------- whom

    async def cluster_info(self) -> ClusterInfo:
        reply = await self.instance.name_servers.ask(route.GET_BROKER_CLUSTER_INFO, NoHeader())
        if reply.code:
            error = MQBrokerError(reply.code, reply.remark, "a name server")
            raise AdminRefused("asking for the brokers", error)
        return ClusterInfo.decode(reply.body_bytes)

    async def brokers(self) -> list[BrokerInfo]:
        info = await self.cluster_info()
        clusters = {
            name: cluster for cluster, names in info.cluster_addr_table.items() for name in names
        }
        return [
            BrokerInfo(
                cluster=clusters.get(name) or data.cluster or "",
                name=name,
                broker_id=broker_id,
                address=address,
            )
            for name, data in sorted(info.broker_addr_table.items())
            for broker_id, address in sorted(data.broker_addrs.items())
        ]

    async def masters(
        self, cluster: str | None = None, broker: str | None = None
    ) -> list[BrokerInfo]:
        """The masters of a cluster, or of all; or one broker, by its name or its address.

        Raises BrokerNotExist, ValueError.
        """
        if cluster and broker:
            raise ValueError("give a cluster or a broker, not both")
        brokers = await self.brokers()
        if broker:
            return [_one(brokers, broker)]
        found = [each for each in brokers if each.is_master and cluster in (None, each.cluster)]
        if not found and cluster:
            known = ", ".join(sorted({each.cluster for each in brokers})) or "none"
            raise BrokerNotExist(f"cluster {cluster} has no master; clusters with brokers: {known}")
        if not found:
            raise BrokerNotExist("no master is registered at the name servers: is a broker up?")
        return found

    async def masters_to_change(
        self, cluster: str | None = None, broker: str | None = None
    ) -> list[BrokerInfo]:
        """Returns the same as `masters`; ValueError if that would be several clusters."""
        return _of_one_cluster(await self.masters(cluster, broker))

    async def everyone(
        self, cluster: str | None = None, broker: str | None = None
    ) -> list[BrokerInfo]:
        """Returns the same as `masters`, and the slaves of these clusters."""
        found = await self.masters(cluster, broker)
        if broker:
            return found
        clusters = {each.cluster for each in found}
        slaves = [each for each in await self.brokers() if not each.is_master]
        return found + [each for each in slaves if each.cluster in clusters]

    async def everyone_to_change(
        self, cluster: str | None = None, broker: str | None = None
    ) -> list[BrokerInfo]:
        """Returns the same as `everyone`; ValueError if that would be several clusters."""
        return _of_one_cluster(await self.everyone(cluster, broker))

    async def route(self, topic: str) -> TopicRouteData:
        """Returns the route of a topic. Raises NoRoute."""
        found = await self.instance.name_servers.route(topic)
        if found is None:
            where = self.instance.config.namesrv_addr
            raise NoRoute(topic, f"no broker registered at {where} has it; check its spelling")
        return found

    async def brokers_of_topic(self, topic: str) -> list[BrokerInfo]:
        """The broker to ask of each name in a topic's route: the master, else a slave."""
        return _to_ask(await self.route(topic))

    async def brokers_of_group(self, group: str) -> list[BrokerInfo]:
        """The brokers of the group's retry topic, or all masters if it does not exist yet."""
        found = await self.instance.name_servers.route(RETRY_PREFIX + group)
        brokers = [] if found is None else _to_ask(found)
        return brokers or await self.masters()

    async def broker_of(self, queue: MessageQueue) -> BrokerInfo:
        """The broker to ask about a queue. Raises BrokerNotExist, NoRoute."""
        for broker in await self.brokers_of_topic(queue.topic):
            if broker.name == queue.broker_name:
                return broker
        raise BrokerNotExist(f"broker {queue.broker_name} does not have topic {queue.topic} now")

    # ------------------------------------------------------------------ ask

    async def ask(
        self,
        address: str,
        call: Call[Q, R],
        header: Q,
        body: bytes = b"",
        *,
        doing: str,
        timeout_ms: int | None = None,
    ) -> Reply[R]:
        """Asks one server. Raises AdminRefused, and errors of the connection."""
        timeout_ms = timeout_ms or self.config.admin_timeout_ms
        try:
            return await self.instance.api.ask(address, call, header, body, timeout_ms)
        except MQBrokerError as error:
            raise AdminRefused(doing, error) from None

    async def each(
        self,
        servers: Sequence[BrokerInfo],
        doing: str,
        ask: Callable[[BrokerInfo], Awaitable[T]],
    ) -> list[T]:
        """Asks the servers one by one. Raises PartlyFailed if some failed, or the only error."""
        done: list[T] = []
        failures: list[tuple[str, Exception]] = []
        for server in servers:
            try:
                done.append(await ask(server))
            except FAILURES as error:
                failures.append((str(server), error))
        if len(failures) == 1 and not done:
            raise failures[0][1]
        if failures:
            raise PartlyFailed(doing, len(done), failures)
        return done

    async def each_name_server(
        self, call: Call[Q, R], header: Q, body: bytes = b"", *, doing: str
    ) -> list[tuple[str, Reply[R]]]:
        """Asks all name servers: each has its own configuration."""
        addresses = sorted(self.instance.name_servers.addresses)
        if not addresses:
            raise NoNameServer("no name server is given: set namesrv_addr or $NAMESRV_ADDR")
        servers = [
            BrokerInfo(cluster="", name="name server", broker_id=MASTER_ID, address=address)
            for address in addresses
        ]

        async def ask(server: BrokerInfo) -> tuple[str, Reply[R]]:
            return server.address, await self.ask(server.address, call, header, body, doing=doing)

        return await self.each(servers, doing, ask)


def _one(brokers: Sequence[BrokerInfo], broker: str) -> BrokerInfo:
    named = [each for each in brokers if broker in (each.name, each.address)]
    if named:
        return min(named, key=lambda each: each.broker_id)
    if ":" in broker:  # a broker that is not registered, or not yet
        return BrokerInfo(cluster="", name="broker", broker_id=MASTER_ID, address=broker)
    known = ", ".join(sorted({each.name for each in brokers})) or "none"
    raise BrokerNotExist(f"there is no broker {broker}; brokers that are registered: {known}")


def _of_one_cluster(brokers: list[BrokerInfo]) -> list[BrokerInfo]:
    clusters = sorted({each.cluster for each in brokers})
    if len(clusters) > 1:
        raise ValueError(f"there are several clusters: say which of {', '.join(clusters)}")
    return brokers


def _to_ask(data: TopicRouteData) -> list[BrokerInfo]:
    found = []
    for broker in sorted(data.broker_datas, key=lambda each: each.broker_name):
        if broker.broker_addrs:
            broker_id = min(broker.broker_addrs)
            found.append(
                BrokerInfo(
                    cluster=broker.cluster or "",
                    name=broker.broker_name,
                    broker_id=broker_id,
                    address=broker.broker_addrs[broker_id],
                )
            )
    return found
