# SPDX-License-Identifier: Apache-2.0
"""GET_ROUTEINFO_BY_TOPIC, GET_BROKER_CLUSTER_INFO.

An unknown topic is answered TOPIC_NOT_EXIST (17). Broker ids in a route are quoted only for clients
that ask for standard JSON or are 4.9.4 and newer; all others want them bare. A zone in the request
leaves out brokers of other zones. Java: ClientRequestProcessor, ZoneRouteRPCHook.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from txrocketmq.namesrv.config import NamesrvConfig
from txrocketmq.namesrv.kv_config import ORDER_TOPIC_CONFIG, KvConfig
from txrocketmq.namesrv.route_table import RouteTable, without_other_zones
from txrocketmq.namesrv.turns import Steps, Turns
from txrocketmq.remoting.call import PendingReply, Reply, Request
from txrocketmq.remoting.codes import MQVersion, ResponseCode
from txrocketmq.remoting.dispatch import serves
from txrocketmq.remoting.errors import ResponseError
from txrocketmq.remoting.header import NoHeader
from txrocketmq.remoting.protocol import route
from txrocketmq.remoting.protocol.body.route import TopicRouteData
from txrocketmq.remoting.protocol.route import GetRouteInfoRequestHeader
from txrocketmq.remoting.serialize.json import HOLE, encode_body, encode_standard_body
from txrocketmq.remoting.settings.config_file import Configuration

FAQ = "\nSee https://rocketmq.apache.org/docs/bestPractice/06FAQ for further details."
ZONE_MODE = "__ZONE_MODE"
ZONE_NAME = "__ZONE_NAME"
_AT_ONCE = 64
"""How many brokers of a route are encoded at once."""
_HOLE = b'"' + HOLE.encode() + b'"'


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

    @serves(route.GET_ROUTEINFO_BY_TOPIC)
    def route_of_topic(
        self, request: Request[GetRouteInfoRequestHeader]
    ) -> Reply[NoHeader] | PendingReply:
        """Returns the TopicRouteData of a topic."""
        config = self._configuration.get(NamesrvConfig)
        if self._waits(config, request.steady_ms):
            raise ResponseError(ResponseCode.SYSTEM_ERROR, "name server not ready")
        topic = request.header.topic
        found = self._table.route(topic)
        if found is None:
            raise ResponseError(
                ResponseCode.TOPIC_NOT_EXIST,
                f"No topic route info in name server for the topic: {topic}{FAQ}",
            )
        ext_fields = request.command.ext_fields or {}
        zone = ext_fields.get(ZONE_NAME, "")
        if zone.strip() and ext_fields.get(ZONE_MODE, "").lower() == "true":
            found = without_other_zones(found, zone)
        if config.order_message_enable:
            order = self._kv.get(ORDER_TOPIC_CONFIG, topic)
            found = dataclasses.replace(found, order_topic_conf=order)
        standard = (
            request.command.version >= MQVersion.V4_9_4
            or request.header.accept_standard_json_only is True
        )
        if len(found.queue_datas) > _AT_ONCE:
            steps = _encoded(found, encode_standard_body if standard else encode_body)
            return self._turns.answer(request.peer, steps)
        return Reply(body=found.encode_standard() if standard else found.encode())

    @serves(route.GET_BROKER_CLUSTER_INFO)
    def cluster_info(self, request: Request[NoHeader]) -> Reply[NoHeader]:
        """Returns ClusterInfo: clusters, their broker names, and the addresses of these."""
        return Reply(body=self._table.encoded_cluster_info())

    def _waits(self, config: NamesrvConfig, steady_ms: int) -> bool:
        waited_ms = steady_ms - self._started_ms
        return config.need_wait_for_service and waited_ms < config.wait_seconds_for_service * 1000


def _encoded(found: TopicRouteData, encode: Callable[[Any], bytes]) -> Steps:
    """Answers a route on many brokers, of which some are encoded in each step."""
    content = dataclasses.replace(found, broker_datas=(), queue_datas=()).to_json()
    pieces: list[bytes] = []
    rest = encode({**content, "brokerDatas": HOLE, "queueDatas": HOLE})
    for datas in (found.broker_datas, found.queue_datas):  # which is their order in both forms
        before, _, rest = rest.partition(_HOLE)
        pieces.append(before + b"[")
        for at in range(0, len(datas), _AT_ONCE):
            pieces += (b"," if at else b"", encode(datas[at : at + _AT_ONCE])[1:-1])
            yield
        pieces.append(b"]")
    return Reply(body=[*pieces, rest])
