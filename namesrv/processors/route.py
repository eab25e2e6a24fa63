# SPDX-License-Identifier: Apache-2.0
"""GET_ROUTEINFO_BY_TOPIC, GET_BROKER_CLUSTER_INFO.

An unknown topic is answered TOPIC_NOT_EXIST (17). Broker ids in a route are quoted only for clients
that ask for standard JSON or are 4.9.4 and newer; all others want them bare. A zone in the request
leaves out brokers of other zones. What is on many brokers shows all of them as they were at one
moment, and is encoded in several turns. Java: ClientRequestProcessor, ZoneRouteRPCHook.
"""

from __future__ import annotations

import dataclasses

from txrocketmq.namesrv.config import NamesrvConfig
from txrocketmq.namesrv.kv_config import ORDER_TOPIC_CONFIG, KvConfig
from txrocketmq.namesrv.routes.route_table import RouteTable
from txrocketmq.namesrv.routes.route_view import RouteView, encoded_route
from txrocketmq.namesrv.turns import Steps, Turns
from txrocketmq.remoting.call import PendingReply, Reply, Request
from txrocketmq.remoting.codes import MQVersion, ResponseCode
from txrocketmq.remoting.dispatch import serves
from txrocketmq.remoting.errors import ResponseError
from txrocketmq.remoting.header import NoHeader
from txrocketmq.remoting.protocol import route
from txrocketmq.remoting.protocol.route import GetRouteInfoRequestHeader
from txrocketmq.remoting.serialize.json import encode_body, encode_standard_body
from txrocketmq.remoting.settings.config_file import Configuration

FAQ = "\nSee https://rocketmq.apache.org/docs/bestPractice/06FAQ for further details."
ZONE_MODE = "__ZONE_MODE"
ZONE_NAME = "__ZONE_NAME"
_AT_ONCE = 16
"""A route on more brokers is encoded in steps."""


class RouteProcessor:
    """Tells clients where topics are.

    `started_ms` is when brokers could begin to register.
    """

    def __init__(
        self,
        table: RouteTable,
        kv: KvConfig,
        configuration: Configuration,
        started_ms: int,
        turns: Turns,
    ) -> None:
        self._table = table
        self._kv = kv
        self._configuration = configuration
        self._started_ms = started_ms
        self._turns = turns
        self._cluster_info: tuple[int, list[bytes]] | None = None
        """The text of the last cluster info, and the version of the table that it shows."""

    @serves(route.GET_ROUTEINFO_BY_TOPIC)
    def route_of_topic(
        self, request: Request[GetRouteInfoRequestHeader]
    ) -> Reply[NoHeader] | PendingReply:
        """Returns the TopicRouteData of a topic."""
        config = self._configuration.get(NamesrvConfig)
        if self._waits(config, request.steady_ms):
            raise ResponseError(ResponseCode.SYSTEM_ERROR, "name server not ready")
        topic = request.header.topic
        view = self._table.view(topic)
        if view is None:
            raise ResponseError(
                ResponseCode.TOPIC_NOT_EXIST,
                f"No topic route info in name server for the topic: {topic}{FAQ}",
            )
        order = self._kv.get(ORDER_TOPIC_CONFIG, topic) if config.order_message_enable else None
        return self._turns.answer(request.peer, _route(request, view, order))

    @serves(route.GET_BROKER_CLUSTER_INFO)
    def cluster_info(self, request: Request[NoHeader]) -> Reply[NoHeader] | PendingReply:
        """Returns ClusterInfo: clusters, their broker names, and the addresses of these."""
        if self._cluster_info is not None and self._cluster_info[0] == self._table.version:
            return Reply(body=self._cluster_info[1])
        return self._turns.answer(request.peer, self._encoded_cluster_info())

    def _encoded_cluster_info(self) -> Steps:
        version = self._table.version
        pieces = yield from self._table.cluster_view().encoded()
        self._cluster_info = version, pieces
        return Reply(body=pieces)

    def _waits(self, config: NamesrvConfig, steady_ms: int) -> bool:
        waited_ms = steady_ms - self._started_ms
        return config.need_wait_for_service and waited_ms < config.wait_seconds_for_service * 1000


def _route(
    request: Request[GetRouteInfoRequestHeader], view: RouteView, order: str | None
) -> Steps:
    """Answers a route as the client reads it."""
    ext_fields = request.command.ext_fields or {}
    zone = ext_fields.get(ZONE_NAME, "")
    is_of_zone = zone.strip() and ext_fields.get(ZONE_MODE, "").lower() == "true"
    found = yield from view.route(zone if is_of_zone else "")
    if order is not None:
        found = dataclasses.replace(found, order_topic_conf=order)
    standard = (
        request.command.version >= MQVersion.V4_9_4
        or request.header.accept_standard_json_only is True
    )
    if len(found.queue_datas) <= _AT_ONCE:
        return Reply(body=found.encode_standard() if standard else found.encode())
    return Reply(
        body=(yield from encoded_route(found, encode_standard_body if standard else encode_body))
    )
