# SPDX-License-Identifier: Apache-2.0
"""Brokers and name servers: their list, their state and their settings.

Java: ClusterListSubCommand, BrokerStatusSubCommand, UpdateBrokerConfigSubCommand,
UpdateNamesrvConfigCommand, UpdateKvConfigCommand, WipeWritePermSubCommand and others.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from txrocketmq.client.admin.destinations import Destinations
from txrocketmq.client.admin.results import BrokerInfo
from txrocketmq.client.base.errors import AdminRefused, MQBrokerError
from txrocketmq.remoting.call import Call
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.header import NoHeader
from txrocketmq.remoting.protocol import route
from txrocketmq.remoting.protocol.body.ha import HARuntimeInfo
from txrocketmq.remoting.protocol.body.route import KVTable
from txrocketmq.remoting.protocol.body.stats import BrokerStatsData
from txrocketmq.remoting.protocol.operations import admin
from txrocketmq.remoting.protocol.operations.admin import ViewBrokerStatsDataRequestHeader
from txrocketmq.remoting.protocol.operations.ha import GET_BROKER_HA_STATUS
from txrocketmq.remoting.protocol.route import (
    AddWritePermOfBrokerRequestHeader,
    DeleteKVConfigRequestHeader,
    GetKVConfigRequestHeader,
    GetKVListByNamespaceRequestHeader,
    PutKVConfigRequestHeader,
    WipeWritePermOfBrokerRequestHeader,
)
from txrocketmq.remoting.serialize.json import decode_body
from txrocketmq.remoting.settings.config_file import read_properties, write_properties


class Servers:
    """The part of the admin client for brokers and name servers."""

    def __init__(self, destinations: Destinations) -> None:
        self._servers = destinations

    async def brokers(self, cluster: str | None = None) -> list[BrokerInfo]:
        """Returns all brokers that are registered, or those of one cluster.

        Raises NoNameServer.
        """
        return [each for each in await self._servers.brokers() if cluster in (None, each.cluster)]

    async def clusters(self) -> list[str]:
        """Returns the names of all clusters.

        Raises NoNameServer.
        """
        return sorted({each.cluster for each in await self._servers.brokers()})

    async def broker_stats(self, broker: str) -> dict[str, str]:
        """Returns the state of a broker as names and values, all of them text.

        The broker is given by its name or its address. Raises BrokerNotExist, AdminRefused, and
        errors of the connection.
        """
        server, doing = await self._server(broker, "asking {} how it is")
        reply = await self._servers.ask(
            server.address, admin.GET_BROKER_RUNTIME_INFO, NoHeader(), doing=doing
        )
        return dict(sorted(KVTable.decode(reply.body_bytes).table.items()))

    async def replication(self, broker: str) -> HARuntimeInfo:
        """Returns the state of replication as a broker sees it (5.x brokers).

        That of a master has its slaves, and what each of them has of its log; that of a slave,
        when it last heard from its master. Raises BrokerNotExist and AdminRefused.
        """
        server, doing = await self._server(broker, "asking {} for its replication")
        reply = await self._servers.ask(
            server.address, GET_BROKER_HA_STATUS, NoHeader(), doing=doing
        )
        return HARuntimeInfo.decode(reply.body_bytes)

    async def broker_counter(self, broker: str, name: str, key: str) -> BrokerStatsData | None:
        """Returns a counter of a broker over a minute, an hour and a day.

        Counters are, for example, ("TOPIC_PUT_NUMS", topic) and ("GROUP_GET_NUMS", "TOPIC@GROUP").
        The result is None if the broker does not have the counter. Raises BrokerNotExist and
        AdminRefused.
        """
        server, doing = await self._server(broker, "asking {} for a counter")
        header = ViewBrokerStatsDataRequestHeader(stats_name=name, stats_key=key)
        try:
            reply = await self._servers.ask(
                server.address, admin.VIEW_BROKER_STATS_DATA, header, doing=doing
            )
        except AdminRefused as error:
            if error.code == ResponseCode.SYSTEM_ERROR:  # "The stats ... not exist"
                return None
            raise
        return BrokerStatsData.decode(reply.body_bytes)

    async def broker_config(self, broker: str) -> dict[str, str]:
        """Returns the settings of a broker.

        Raises BrokerNotExist and AdminRefused.
        """
        server, doing = await self._server(broker, "asking {} for its settings")
        reply = await self._servers.ask(
            server.address, admin.GET_BROKER_CONFIG, NoHeader(), doing=doing
        )
        return dict(read_properties(reply.body_bytes.decode("utf-8", "replace")))

    async def update_broker_config(self, broker: str, settings: Mapping[str, str]) -> None:
        """Changes settings of a broker while it runs.

        Raises BrokerNotExist, and AdminRefused for a setting that cannot be changed while the
        broker runs.
        """
        server, doing = await self._server(broker, "changing settings of {}")
        body = write_properties(dict(settings)).encode()
        await self._servers.ask(
            server.address, admin.UPDATE_BROKER_CONFIG, NoHeader(), body, doing=doing
        )

    async def timer_stats(self, broker: str) -> Mapping[str, int]:
        """Returns how many timer messages wait in a broker, by topic (5.x brokers).

        Raises BrokerNotExist and AdminRefused.
        """
        server, doing = await self._server(broker, "asking {} for its timers")
        reply = await self._servers.ask(
            server.address, admin.GET_TIMER_METRICS, NoHeader(), doing=doing
        )
        told: Any = decode_body(reply.body_bytes)
        counts = told.get("timingCount", {}) if isinstance(told, dict) else {}
        return {
            str(topic): int(its.get("count", 0))
            for topic, its in sorted(counts.items())
            if isinstance(its, dict)
        }

    async def wipe_write_perm(self, broker: str) -> int:
        """Keeps producers away from a broker, for example before it is stopped.

        This lasts until `add_write_perm` is called, or until the broker changes its topics. Returns
        the number of topics that were changed. Raises AdminRefused and PartlyFailed.
        """
        answers = await self._servers.each_name_server(
            route.WIPE_WRITE_PERM_OF_BROKER,
            WipeWritePermOfBrokerRequestHeader(broker_name=broker),
            doing=f"taking the write permission of broker {broker}",
        )
        return max(reply.header.wipe_topic_count for _, reply in answers if reply.header)

    async def add_write_perm(self, broker: str) -> int:
        """Lets producers send to a broker again; returns the number of topics.

        Raises AdminRefused and PartlyFailed.
        """
        answers = await self._servers.each_name_server(
            route.ADD_WRITE_PERM_OF_BROKER,
            AddWritePermOfBrokerRequestHeader(broker_name=broker),
            doing=f"giving the write permission of broker {broker} back",
        )
        return max(reply.header.add_topic_count for _, reply in answers if reply.header)

    async def clean_unused_topics(self, broker: str) -> None:
        """Removes the queues of topics that no longer exist from a broker.

        Raises BrokerNotExist and AdminRefused.
        """
        await self._tell(broker, admin.CLEAN_UNUSED_TOPIC, "cleaning topics of {}")

    async def clean_expired_queues(self, broker: str) -> None:
        """Removes from a broker the files of queues whose messages have expired.

        Raises BrokerNotExist and AdminRefused.
        """
        await self._tell(broker, admin.CLEAN_EXPIRED_CONSUMEQUEUE, "cleaning queues of {}")

    async def delete_expired_commit_log(self, broker: str) -> None:
        """Removes from a broker the files of the commit log that have expired.

        Raises BrokerNotExist and AdminRefused.
        """
        await self._tell(broker, admin.DELETE_EXPIRED_COMMITLOG, "cleaning the log of {}")

    async def namesrv_config(self) -> dict[str, dict[str, str]]:
        """Returns the settings of each name server, by address.

        Raises AdminRefused and PartlyFailed.
        """
        answers = await self._servers.each_name_server(
            admin.GET_NAMESRV_CONFIG, NoHeader(), doing="asking for the settings"
        )
        return {
            address: dict(read_properties(reply.body_bytes.decode("utf-8", "replace")))
            for address, reply in answers
        }

    async def update_namesrv_config(self, settings: Mapping[str, str]) -> None:
        """Changes settings of all name servers.

        Raises AdminRefused and PartlyFailed.
        """
        body = write_properties(dict(settings)).encode()
        await self._servers.each_name_server(
            admin.UPDATE_NAMESRV_CONFIG, NoHeader(), body, doing="changing settings"
        )

    async def kv_config(self, namespace: str, key: str) -> str | None:
        """Returns a value that the name servers keep, or None if there is none.

        Raises AdminRefused.
        """
        header = GetKVConfigRequestHeader(namespace=namespace, key=key)
        reply = await self._servers.instance.name_servers.ask(route.GET_KV_CONFIG, header)
        if reply.code == ResponseCode.QUERY_NOT_FOUND:
            return None
        if reply.code or reply.header is None:
            error = MQBrokerError(reply.code, reply.remark, "a name server")
            raise AdminRefused(f"asking for {key} of {namespace}", error)
        return reply.header.value

    async def kv_configs(self, namespace: str) -> dict[str, str]:
        """Returns all values of a namespace; there may be none.

        Raises AdminRefused.
        """
        header = GetKVListByNamespaceRequestHeader(namespace=namespace)
        reply = await self._servers.instance.name_servers.ask(route.GET_KVLIST_BY_NAMESPACE, header)
        if reply.code == ResponseCode.QUERY_NOT_FOUND:
            return {}
        if reply.code:
            error = MQBrokerError(reply.code, reply.remark, "a name server")
            raise AdminRefused(f"asking for the values of {namespace}", error)
        return dict(KVTable.decode(reply.body_bytes).table)

    async def put_kv_config(self, namespace: str, key: str, value: str) -> None:
        """Sets a value at all name servers.

        Raises AdminRefused and PartlyFailed.
        """
        header = PutKVConfigRequestHeader(namespace=namespace, key=key, value=value)
        doing = f"setting {key} of {namespace}"
        await self._servers.each_name_server(route.PUT_KV_CONFIG, header, doing=doing)

    async def delete_kv_config(self, namespace: str, key: str) -> None:
        """Removes a value from all name servers.

        Raises AdminRefused and PartlyFailed.
        """
        header = DeleteKVConfigRequestHeader(namespace=namespace, key=key)
        doing = f"removing {key} of {namespace}"
        await self._servers.each_name_server(route.DELETE_KV_CONFIG, header, doing=doing)

    async def _server(self, broker: str, doing: str) -> tuple[BrokerInfo, str]:
        (server,) = await self._servers.masters(broker=broker)
        return server, doing.format(f"broker {broker}")

    async def _tell(self, broker: str, call: Call[NoHeader, NoHeader], doing: str) -> None:
        server, what = await self._server(broker, doing)
        await self._servers.ask(server.address, call, NoHeader(), doing=what)
