# SPDX-License-Identifier: Apache-2.0
"""Groups of consumers: their settings, as a broker has them.

A group that brokers do not have, or that cannot be asked for, has the default settings: it is made
by its first request, and must not lose messages to its dead letters meanwhile.

Java: ClusterMetadataService.getSubscriptionGroupConfig.
"""

from __future__ import annotations

import random
from typing import Final

from twisted.logger import Logger

from txrocketmq.client.base.errors import MQBrokerError, MQClientError
from txrocketmq.proxy.base.cache import Cache
from txrocketmq.proxy.cluster.cluster import TIMEOUT_MS, Cluster
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.errors import RemotingError
from txrocketmq.remoting.protocol import topic as calls
from txrocketmq.remoting.protocol.body.topic import SubscriptionGroupConfig
from txrocketmq.remoting.protocol.topic import GetSubscriptionGroupConfigRequestHeader

DEFAULTS: Final = SubscriptionGroupConfig()

log = Logger()


class Groups:
    """Asks brokers about groups; all brokers of the cluster have the topic `cluster_name`."""

    def __init__(self, cluster: Cluster, cluster_name: str) -> None:
        self._cluster = cluster
        self._cluster_name = cluster_name
        config = cluster.config
        self._configs: Cache[str, SubscriptionGroupConfig] = Cache(
            cluster.clock,
            self._ask,
            1_000 * config.subscription_group_config_cache_refresh_seconds,
            1_000 * config.subscription_group_config_cache_expired_seconds,
        )

    def known(self, group: str) -> SubscriptionGroupConfig | None:
        """Returns the settings of a group, or None if they have to be asked for."""
        return self._configs.known(group)

    async def config(self, group: str) -> SubscriptionGroupConfig:
        """Returns the settings of a group."""
        try:
            return await self._configs.get(group) or DEFAULTS
        except (MQClientError, RemotingError) as error:
            log.warn("the settings of group {group} are unknown: {e}", group=group, e=str(error))
            return DEFAULTS

    async def _ask(self, group: str) -> SubscriptionGroupConfig | None:
        route = await self._cluster.routes.get(self._cluster_name)
        address = self._cluster.some_broker(route, random.choice)
        if address is None:
            return None
        header = GetSubscriptionGroupConfigRequestHeader(group=group)
        call = calls.GET_SUBSCRIPTIONGROUP_CONFIG
        try:
            reply = await self._cluster.api.ask(address, call, header, b"", TIMEOUT_MS)
        except MQBrokerError as error:
            if error.code == ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST:
                return None
            raise
        return SubscriptionGroupConfig.decode(reply.body_bytes)
