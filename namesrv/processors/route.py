# SPDX-License-Identifier: Apache-2.0
"""GET_ROUTEINFO_BY_TOPIC, GET_BROKER_CLUSTER_INFO.

An unknown topic is answered TOPIC_NOT_EXIST (17). Broker ids in a route are quoted only for clients
that ask for standard JSON or are 4.9.4 and newer; all others want them bare. A zone in the request
leaves out brokers of other zones. Java: ClientRequestProcessor, ZoneRouteRPCHook.
"""

from __future__ import annotations

from txrocketmq.namesrv.config import NamesrvConfig
from txrocketmq.namesrv.kv_config import ORDER_TOPIC_CONFIG, KvConfig
from txrocketmq.namesrv.live_config import LiveConfig
from txrocketmq.namesrv.route_table import RouteTable, without_other_zones
from txrocketmq.remoting.call import Reply, Request
from txrocketmq.remoting.codes import MQVersion, ResponseCode
from txrocketmq.remoting.dispatch import serves
from txrocketmq.remoting.errors import ResponseError
from txrocketmq.remoting.header import NoHeader
from txrocketmq.remoting.protocol import route
from txrocketmq.remoting.protocol.route import GetRouteInfoRequestHeader
from txrocketmq.remoting.serialize.json import encode_body, encode_standard_body

FAQ = "\nSee https://rocketmq.apache.org/docs/bestPractice/06FAQ for further details."
ZONE_MODE = "__ZONE_MODE"
ZONE_NAME = "__ZONE_NAME"


class RouteProcessor:
    """Tells clients where topics are. `started_ms` is when the name server began to take brokers."""

    def __init__(self, live: LiveConfig, table: RouteTable, kv: KvConfig, started_ms: int) -> None:
        self._live = live
        self._table = table
        self._kv = kv
        self._started_ms = started_ms

    @serves(route.GET_ROUTEINFO_BY_TOPIC)
    def route_of_topic(self, request: Request[GetRouteInfoRequestHeader]) -> Reply[NoHeader]:
        """TopicRouteData."""
        config = self._live.config
        if self._waits(config, request.now_ms):
            raise ResponseError(ResponseCode.SYSTEM_ERROR, "name server not ready")
        topic = request.header.topic
        found = self._table.route(topic)
        if found is None:
            raise ResponseError(
                ResponseCode.TOPIC_NOT_EXIST,
                f"No topic route info in name server for the topic: {topic}{FAQ}",
            )
        ext_fields = request.command.ext_fields or {}
        if ext_fields.get(ZONE_MODE, "").lower() == "true" and ext_fields.get(ZONE_NAME):
            found = without_other_zones(found, ext_fields[ZONE_NAME])
        if config.order_message_enable:
            found["orderTopicConf"] = self._kv.get(ORDER_TOPIC_CONFIG, topic)
        standard = (
            request.command.version >= MQVersion.V4_9_4
            or request.header.accept_standard_json_only is True
        )
        return Reply(body=encode_standard_body(found) if standard else encode_body(found))

    @serves(route.GET_BROKER_CLUSTER_INFO)
    def cluster_info(self, request: Request[NoHeader]) -> Reply[NoHeader]:
        """ClusterInfo: clusters, their broker names, their addresses."""
        return Reply(body=encode_body(self._table.cluster_info()))

    def _waits(self, config: NamesrvConfig, now_ms: int) -> bool:
        waited_ms = now_ms - self._started_ms
        return config.need_wait_for_service and waited_ms < config.wait_seconds_for_service * 1000
