# SPDX-License-Identifier: Apache-2.0
"""Connected producers and consumers, and what a consumer is doing.

Java: ConsumerConnectionSubCommand, ProducerConnectionSubCommand, ConsumerStatusSubCommand.
"""

from __future__ import annotations

from collections.abc import Mapping

from txrocketmq.client.admin.destinations import Destinations
from txrocketmq.client.admin.results import BrokerInfo
from txrocketmq.client.base.errors import AdminRefused, GroupOffline
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.header import NoHeader
from txrocketmq.remoting.message.message import MessageQueue
from txrocketmq.remoting.protocol import offset
from txrocketmq.remoting.protocol.body.client import (
    ClientConnection,
    ConsumerConnection,
    ConsumerRunningInfo,
    ProducerConnection,
    ProducerInfo,
    ProducerTableInfo,
)
from txrocketmq.remoting.protocol.body.offset import GetConsumerStatusBody
from txrocketmq.remoting.protocol.offset import GetConsumerStatusRequestHeader
from txrocketmq.remoting.protocol.operations import admin
from txrocketmq.remoting.protocol.operations.admin import (
    GetConsumerConnectionListRequestHeader,
    GetConsumerRunningInfoRequestHeader,
    GetProducerConnectionListRequestHeader,
)


class Clients:
    """The part of the admin client for clients."""

    def __init__(self, destinations: Destinations) -> None:
        self._servers = destinations

    async def consumer_connections(self, group: str) -> ConsumerConnection:
        """Returns the connected consumers of a group and their subscriptions.

        Since consumers connect to all brokers, the answer is that of the first broker that knows
        any of them. Raises GroupOffline if none is connected, and also AdminRefused and
        BrokerNotExist.
        """
        return (await self._first_with(group))[1]

    async def producer_connections(self, group: str, topic: str) -> list[ClientConnection]:
        """Returns the producers of a group that are connected to the brokers of a topic.

        The list is empty if none is connected. Raises NoRoute and AdminRefused.
        """
        found: dict[str | None, ClientConnection] = {}
        for broker in await self._servers.brokers_of_topic(topic):
            try:
                reply = await self._servers.ask(
                    broker.address,
                    admin.GET_PRODUCER_CONNECTION_LIST,
                    GetProducerConnectionListRequestHeader(producer_group=group),
                    doing=f"asking for the producers of group {group}",
                )
            except AdminRefused as error:
                if error.code != ResponseCode.SYSTEM_ERROR:  # "the producer group not exist"
                    raise
                continue
            for each in ProducerConnection.decode(reply.body_bytes).connection_set:
                found[each.client_id] = each
        return list(found.values())

    async def producers(self, broker: str) -> Mapping[str, tuple[ProducerInfo, ...]]:
        """Returns all producers that are connected to a broker, by group.

        Raises BrokerNotExist and AdminRefused.
        """
        (server,) = await self._servers.masters(broker=broker)
        reply = await self._servers.ask(
            server.address,
            admin.GET_ALL_PRODUCER_INFO,
            NoHeader(),
            doing=f"asking {server.name} for its producers",
        )
        table = ProducerTableInfo.decode(reply.body_bytes).data
        return {group: tuple(its) for group, its in sorted(table.items())}

    async def consumer_running_info(
        self, group: str, client_id: str, *, with_stacks: bool = False
    ) -> ConsumerRunningInfo:
        """Asks a connected consumer for its settings, its queues and its figures.

        With `with_stacks`, the answer also contains the stacks of its threads. Raises GroupOffline
        if no consumer of the group is connected, and AdminRefused if this consumer is not connected
        or does not answer.
        """
        header = GetConsumerRunningInfoRequestHeader(
            consumer_group=group, client_id=client_id, jstack_enable=with_stacks
        )
        broker, _ = await self._first_with(group)
        reply = await self._servers.ask(
            broker.address,
            admin.GET_CONSUMER_RUNNING_INFO,
            header,
            doing=f"asking client {client_id} of group {group} what it is doing",
            timeout_ms=self._servers.config.search_timeout_ms,
        )
        return ConsumerRunningInfo.decode(reply.body_bytes)

    async def consumer_status(
        self, group: str, topic: str
    ) -> Mapping[str, Mapping[MessageQueue, int]]:
        """Asks each connected consumer of a group for its offsets; returns them by client id.

        Raises NoRoute and AdminRefused.
        """
        found: dict[str, dict[MessageQueue, int]] = {}
        for broker in await self._servers.brokers_of_topic(topic):
            reply = await self._servers.ask(
                broker.address,
                offset.INVOKE_BROKER_TO_GET_CONSUMER_STATUS,
                GetConsumerStatusRequestHeader(topic=topic, group=group, client_addr=""),
                doing=f"asking the consumers of group {group} how far they have come",
                timeout_ms=self._servers.config.search_timeout_ms,
            )
            for client_id, table in GetConsumerStatusBody.decode(
                reply.body_bytes
            ).consumer_table.items():
                found.setdefault(client_id, {}).update(table)
        return found

    async def _first_with(self, group: str) -> tuple[BrokerInfo, ConsumerConnection]:
        """The first broker that consumers of the group are connected to, and these consumers."""
        for broker in await self._servers.brokers_of_group(group):
            try:
                reply = await self._servers.ask(
                    broker.address,
                    admin.GET_CONSUMER_CONNECTION_LIST,
                    GetConsumerConnectionListRequestHeader(consumer_group=group),
                    doing=f"asking for the consumers of group {group}",
                )
            except AdminRefused as error:
                if error.code != ResponseCode.CONSUMER_NOT_ONLINE:
                    raise
                continue
            found = ConsumerConnection.decode(reply.body_bytes)
            if found.connection_set:
                return broker, found
        raise GroupOffline(group)
