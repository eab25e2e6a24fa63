# SPDX-License-Identifier: Apache-2.0
"""Topics: which types of messages they take, and how one is made that nobody has.

A topic without a type takes normal messages, as in the original. A type that cannot be asked for is
the last known one, or else any: the original announces none then, and its clients fail.

Java: ClusterMetadataService.getTopicMessageType.
"""

from __future__ import annotations

import random
from typing import Final

from twisted.logger import Logger

from txrocketmq.client.base.config import CREATE_TOPIC_KEY
from txrocketmq.client.base.errors import MQBrokerError, MQClientError, NoRoute
from txrocketmq.proxy.base.cache import Cache
from txrocketmq.proxy.cluster.cluster import TIMEOUT_MS, Cluster, TopicRoute
from txrocketmq.proxy.grpc.call import Call
from txrocketmq.proxy.schema.enums import MessageType
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.errors import RemotingError
from txrocketmq.remoting.message.flags import PermName
from txrocketmq.remoting.protocol import topic as calls
from txrocketmq.remoting.protocol.body.route import TopicConfig
from txrocketmq.remoting.protocol.topic import (
    CreateTopicRequestHeader,
    GetTopicConfigRequestHeader,
)

ATTRIBUTE: Final = "message.type"
DEFAULT_QUEUES: Final = 4
"""How many queues a topic gets that is made here, or fewer if the brokers say so."""
PAUSE_MS: Final = 100
PAUSES: Final = 20
"""How often it is looked whether the name servers have a topic that was just made."""
_MIXED: Final = (MessageType.NORMAL, MessageType.FIFO, MessageType.DELAY, MessageType.TRANSACTION)
_ANY: Final = (*_MIXED, MessageType.PRIORITY)
_TYPES: Final[dict[str, tuple[MessageType, ...]]] = {
    "MIXED": _MIXED,
    **{each.name: (each,) for each in MessageType if each},
}

log = Logger()


class Topics:
    """Asks brokers about topics."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        config = cluster.config
        self._types: Cache[str, tuple[MessageType, ...]] = Cache(
            cluster.clock,
            self._ask,
            1_000 * config.topic_config_cache_refresh_seconds,
            1_000 * config.topic_config_cache_expired_seconds,
        )

    def known_types(self, topic: str) -> tuple[MessageType, ...] | None:
        """Returns the types that a topic takes, or None if they have to be asked for."""
        return self._types.known(topic)

    async def types(self, topic: str) -> tuple[MessageType, ...]:
        """Returns the types that a topic takes; any, if they cannot be asked for."""
        try:
            return await self._types.get(topic) or _TYPES["NORMAL"]
        except (MQClientError, RemotingError) as error:
            log.warn("the type of topic {topic} is unknown: {e}", topic=topic, e=str(error))
            return _ANY

    async def route(self, topic: str, call: Call | None = None) -> TopicRoute:
        """Returns the route of a topic; one that nobody has may be made (auto_create_topic_enable).

        It is made by brokers that make topics for those who send to them, and only if the account
        of the call, if it has one, may send to it. Raises NoRoute.
        """
        cluster = self._cluster
        try:
            return await cluster.route(topic)
        except NoRoute:
            if not cluster.config.auto_create_topic_enable:
                raise
            caller = None if call is None else call.caller
            if call is not None and caller is not None and not caller.may_send(topic, call.peer):
                raise
        await self._make(topic)
        for _ in range(PAUSES):
            if await cluster.routes.refresh(topic) is not None:
                break
            await cluster.clock.pause(PAUSE_MS)
        return await cluster.route(topic)

    async def _make(self, topic: str) -> None:
        """Raises what the last broker has said if none makes the topic."""
        pattern = await self._cluster.route(CREATE_TOPIC_KEY)
        is_made = False
        failure: Exception = NoRoute(topic, "no broker that creates topics has a master")
        for data in pattern.data.queue_datas:
            address = self._cluster.master(data.broker_name)
            if address is None:
                continue
            queues = min(DEFAULT_QUEUES, data.read_queue_nums)
            header = CreateTopicRequestHeader(
                topic=topic,
                default_topic=CREATE_TOPIC_KEY,
                read_queue_nums=queues,
                write_queue_nums=queues,
                perm=PermName.READ | PermName.WRITE,
                topic_filter_type="SINGLE_TAG",
                topic_sys_flag=0,
            )
            api = self._cluster.api
            try:
                await api.ask(address, calls.UPDATE_AND_CREATE_TOPIC, header, b"", TIMEOUT_MS)
                is_made = True
            except (MQClientError, RemotingError) as error:
                failure = error
        if not is_made:
            raise failure

    async def _ask(self, topic: str) -> tuple[MessageType, ...] | None:
        route = await self._cluster.routes.get(topic)
        address = self._cluster.some_broker(route, random.choice)
        if address is None:
            raise NoRoute(topic, "no broker is known that could be asked")
        header = GetTopicConfigRequestHeader(topic=topic)
        api = self._cluster.api
        try:
            reply = await api.ask(address, calls.GET_TOPIC_CONFIG, header, b"", TIMEOUT_MS)
        except MQBrokerError as error:
            if error.code == ResponseCode.TOPIC_NOT_EXIST:
                return None
            raise
        config = TopicConfig.decode(reply.body_bytes)
        return _TYPES.get(config.attributes.get(ATTRIBUTE, "NORMAL"), _ANY)
