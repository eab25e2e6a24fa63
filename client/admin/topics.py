# SPDX-License-Identifier: Apache-2.0
"""Topics: listing, creating, changing and deleting them; their routes and queues.

A topic belongs to brokers: it is created and deleted at all masters of a cluster, or at one
broker. A topic in order has its queues in the name servers' key-values as well, so that they stay
the same when a broker is away.

Java: UpdateTopicSubCommand, DeleteTopicSubCommand and others; MQAdminImpl.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Final

from txrocketmq.client.admin.destinations import Destinations
from txrocketmq.client.admin.results import BrokerInfo, QueueStats, TopicStats
from txrocketmq.client.base.config import CREATE_TOPIC_KEY
from txrocketmq.client.base.errors import AdminRefused, MQBrokerError, NoRoute, NotKept
from txrocketmq.client.base.validators import check_topic
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.header import NoHeader
from txrocketmq.remoting.protocol import route
from txrocketmq.remoting.protocol import topic as calls
from txrocketmq.remoting.protocol.body.route import (
    TopicConfig,
    TopicConfigSerializeWrapper,
    TopicRouteData,
)
from txrocketmq.remoting.protocol.body.stats import TopicStatsTable
from txrocketmq.remoting.protocol.body.topic import GroupList, TopicList
from txrocketmq.remoting.protocol.operations import admin
from txrocketmq.remoting.protocol.operations.admin import GetTopicStatsInfoRequestHeader
from txrocketmq.remoting.protocol.route import (
    DeleteKVConfigRequestHeader,
    GetKVConfigRequestHeader,
    PutKVConfigRequestHeader,
)
from txrocketmq.remoting.protocol.topic import (
    CreateTopicRequestHeader,
    DeleteTopicFromNamesrvRequestHeader,
    DeleteTopicRequestHeader,
    GetAllTopicConfigRequestHeader,
    GetTopicConfigRequestHeader,
    GetTopicsByClusterRequestHeader,
    QueryTopicConsumeByWhoRequestHeader,
)

ORDER_NAMESPACE: Final = "ORDER_TOPIC_CONFIG"
DEFAULT_QUEUES: Final = 8
READ_WRITE: Final = 6
Attributes = Mapping[str, str | None]
"""Values by name; the value None removes an attribute."""


class Topics:
    """The part of the admin client for topics."""

    def __init__(self, destinations: Destinations) -> None:
        self._servers = destinations

    async def topics(self, cluster: str | None = None) -> list[str]:
        """Returns the names of all topics, or of the topics of one cluster.

        Raises NoNameServer if there is no name server to ask, and AdminRefused if a name server
        does not give the list away (enableAllTopicList).
        """
        names = self._servers.instance.name_servers
        if cluster is None:
            reply = await names.ask(calls.GET_ALL_TOPIC_LIST_FROM_NAMESERVER, NoHeader())
        else:
            header = GetTopicsByClusterRequestHeader(cluster=cluster)
            reply = await names.ask(calls.GET_TOPICS_BY_CLUSTER, header)
        if reply.code:
            error = MQBrokerError(reply.code, reply.remark, "a name server")
            raise AdminRefused("asking for the topics", error)
        return sorted(TopicList.decode(reply.body_bytes).topic_list)

    async def topic_route(self, topic: str) -> TopicRouteData:
        """Returns the brokers that have a topic, with their numbers of queues.

        Raises NoRoute and NoNameServer.
        """
        return await self._servers.route(topic)

    async def topic_configs(self, topic: str) -> dict[str, TopicConfig]:
        """Returns the settings of a topic at each master of its route, by broker name.

        Raises NoRoute.
        """
        found: dict[str, TopicConfig] = {}
        for broker in await self._servers.brokers_of_topic(topic):
            config = await self._topic_config(broker, topic)
            if config is not None:
                found[broker.name] = config
        return found

    async def topic_stats(self, topic: str) -> TopicStats:
        """Returns the first and the next offset of each queue of a topic.

        Raises NoRoute and AdminRefused.
        """
        doing = f"asking for the queues of topic {topic}"

        async def ask(broker: BrokerInfo) -> TopicStatsTable:
            header = GetTopicStatsInfoRequestHeader(topic=topic)
            reply = await self._servers.ask(
                broker.address, admin.GET_TOPIC_STATS_INFO, header, doing=doing
            )
            return TopicStatsTable.decode(reply.body_bytes)

        tables = await self._servers.each(await self._servers.brokers_of_topic(topic), doing, ask)
        queues = [
            QueueStats(
                queue=queue,
                min_offset=its.min_offset,
                max_offset=its.max_offset,
                last_update_timestamp=its.last_update_timestamp,
            )
            for table in tables
            for queue, its in table.offset_table.items()
        ]
        return TopicStats(
            topic=topic,
            queues=tuple(sorted(queues, key=lambda each: each.queue)),
            put_tps=sum(table.topic_put_tps for table in tables),
        )

    async def topic_groups(self, topic: str) -> list[str]:
        """Returns the names of the groups that consume a topic or have consumed it.

        Raises NoRoute and AdminRefused.
        """
        doing = f"asking who consumes topic {topic}"
        found: set[str] = set()
        for broker in await self._servers.brokers_of_topic(topic):
            header = QueryTopicConsumeByWhoRequestHeader(topic=topic)
            reply = await self._servers.ask(
                broker.address, calls.QUERY_TOPIC_CONSUME_BY_WHO, header, doing=doing
            )
            found.update(GroupList.decode(reply.body_bytes).group_list)
        return sorted(found)

    async def create_topic(
        self,
        topic: str,
        *,
        queues: int = DEFAULT_QUEUES,
        perm: int = READ_WRITE,
        order: bool = False,
        attributes: Attributes | None = None,
        cluster: str | None = None,
        broker: str | None = None,
    ) -> None:
        """Creates a topic at all masters of a cluster, or at one broker.

        The broker is given by its name or its address. `queues` is the number of queues at each
        broker. `perm` is 6 for reading and writing, 4 for reading only, and 2 for writing only.
        With `order`, clients keep using the same list of queues while brokers are away.
        `attributes` are for 5.x brokers, such as {"message.type": "FIFO"}. If the topic exists
        already, it gets these settings.

        Raises ValueError if there are several clusters and you name none of them, and also
        AdminRefused, PartlyFailed, NotKept, BrokerNotExist and MessageIllegal.
        """
        check_topic(topic)
        config = TopicConfig(
            topic_name=topic,
            read_queue_nums=queues,
            write_queue_nums=queues,
            perm=perm,
            order=order,
        )
        masters = await self._servers.masters_to_change(cluster, broker)
        await self._put_topic(masters, dict.fromkeys(masters, config), attributes)

    async def update_topic(
        self,
        topic: str,
        *,
        read_queues: int | None = None,
        write_queues: int | None = None,
        perm: int | None = None,
        order: bool | None = None,
        attributes: Attributes | None = None,
        broker: str | None = None,
    ) -> None:
        """Changes some settings of a topic, at all brokers that have it or at one broker.

        Settings that are not given stay as they are. Raises NoRoute, AdminRefused, PartlyFailed,
        NotKept and BrokerNotExist.
        """
        changes = {
            "read_queue_nums": read_queues,
            "write_queue_nums": write_queues,
            "perm": perm,
            "order": order,
        }
        changes = {name: value for name, value in changes.items() if value is not None}
        brokers = await self._servers.brokers_of_topic(topic)
        if broker is not None:
            brokers = [each for each in brokers if broker in (each.name, each.address)]
            if not brokers:
                raise NoRoute(topic, f"broker {broker} does not have it")
        configs: dict[BrokerInfo, TopicConfig] = {}
        for each in brokers:
            found = await self._topic_config(each, topic)
            if found is not None:
                values = {name: getattr(found, name) for name in _KEPT}
                configs[each] = TopicConfig(**{**values, **changes})
        if not configs:
            raise NoRoute(topic, "the brokers that the name server names do not have it")
        await self._put_topic(list(configs), configs, attributes)

    async def delete_topic(self, topic: str, *, cluster: str | None = None) -> None:
        """Deletes a topic and its messages, at all masters or at those of one cluster.

        The name servers forget the topic as well. Raises NoRoute, AdminRefused, PartlyFailed and
        BrokerNotExist.
        """
        await self._servers.route(topic)
        await self.delete_topic_here(topic, cluster)

    async def delete_topic_here(self, topic: str, cluster: str | None) -> None:
        """Does the same, whether or not a name server knows the topic."""
        doing = f"deleting topic {topic}"

        async def delete(broker: BrokerInfo) -> None:
            header = DeleteTopicRequestHeader(topic=topic)
            await self._servers.ask(
                broker.address, calls.DELETE_TOPIC_IN_BROKER, header, doing=doing
            )

        await self._servers.each(await self._servers.masters(cluster), doing, delete)
        header = DeleteTopicFromNamesrvRequestHeader(topic=topic, cluster_name=cluster)
        await self._servers.each_name_server(calls.DELETE_TOPIC_IN_NAMESRV, header, doing=doing)
        if cluster is None and await self._order_conf(topic):
            its = DeleteKVConfigRequestHeader(namespace=ORDER_NAMESPACE, key=topic)
            await self._servers.each_name_server(route.DELETE_KV_CONFIG, its, doing=doing)

    # ------------------------------------------------------------- settings

    async def _topic_config(self, broker: BrokerInfo, topic: str) -> TopicConfig | None:
        """Returns the configuration of a topic; 4.x brokers can only be asked for all topics."""
        doing = f"asking for topic {topic}"
        try:
            reply = await self._servers.ask(
                broker.address,
                calls.GET_TOPIC_CONFIG,
                GetTopicConfigRequestHeader(topic=topic),
                doing=doing,
            )
        except AdminRefused as error:
            if error.code == ResponseCode.TOPIC_NOT_EXIST:
                return None
            if error.code != ResponseCode.REQUEST_CODE_NOT_SUPPORTED:
                raise
            every = await self._servers.ask(
                broker.address,
                calls.GET_ALL_TOPIC_CONFIG,
                GetAllTopicConfigRequestHeader(),
                doing=doing,
            )
            table = TopicConfigSerializeWrapper.decode(every.body_bytes).topic_config_table
            return table.get(topic)
        return TopicConfig.decode(reply.body_bytes)

    async def _put_topic(
        self,
        brokers: list[BrokerInfo],
        configs: Mapping[BrokerInfo, TopicConfig],
        attributes: Attributes | None,
    ) -> None:
        topic = str(next(iter(configs.values())).topic_name)
        doing = f"creating or changing topic {topic}"
        if attributes:
            await self._check_attributes(brokers, topic)

        async def put(broker: BrokerInfo) -> None:
            config = configs[broker]
            header = CreateTopicRequestHeader(
                topic=topic,
                default_topic=CREATE_TOPIC_KEY,
                read_queue_nums=config.read_queue_nums,
                write_queue_nums=config.write_queue_nums,
                perm=config.perm,
                topic_filter_type=config.topic_filter_type,
                topic_sys_flag=config.topic_sys_flag,
                order=config.order,
                attributes=attributes_text(attributes or {}),
            )
            await self._servers.ask(
                broker.address, calls.UPDATE_AND_CREATE_TOPIC, header, doing=doing
            )

        await self._servers.each(brokers, doing, put)
        ordered = {its.name: configs[its].write_queue_nums for its in brokers if configs[its].order}
        if ordered:
            await self._put_order(topic, ordered)

    async def _check_attributes(self, brokers: list[BrokerInfo], topic: str) -> None:
        """A broker of 4.x would not say that it takes none."""
        for broker in brokers:
            header = GetTopicConfigRequestHeader(topic=topic)
            try:
                await self._servers.ask(
                    broker.address, calls.GET_TOPIC_CONFIG, header, doing="asking"
                )
            except AdminRefused as error:
                if error.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED:
                    raise NotKept(
                        f"{broker} keeps no attributes of topics: it is of 4.x; nothing was changed"
                    ) from None

    async def _order_conf(self, topic: str) -> dict[str, str]:
        header = GetKVConfigRequestHeader(namespace=ORDER_NAMESPACE, key=topic)
        reply = await self._servers.instance.name_servers.ask(route.GET_KV_CONFIG, header)
        if reply.code or reply.header is None or not reply.header.value:
            return {}
        parts = (part.partition(":") for part in reply.header.value.split(";"))
        return {name: count for name, _, count in parts if name}

    async def _put_order(self, topic: str, queues: Mapping[str, int]) -> None:
        known = await self._order_conf(topic)
        known.update({name: str(count) for name, count in queues.items()})
        value = ";".join(f"{name}:{count}" for name, count in sorted(known.items()))
        header = PutKVConfigRequestHeader(namespace=ORDER_NAMESPACE, key=topic, value=value)
        doing = f"setting the order of topic {topic}"
        await self._servers.each_name_server(route.PUT_KV_CONFIG, header, doing=doing)


_KEPT: Final = frozenset(each.name for each in dataclasses.fields(TopicConfig)) - {"attributes"}
"""What is told again with each change; attributes are told by their changes alone."""


def attributes_text(attributes: Attributes) -> str | None:
    """Changes of attributes in the form of the header; None if there are none."""
    parts = [
        f"-{name}" if value is None else f"+{name}={value}" for name, value in attributes.items()
    ]
    return ",".join(parts) or None
