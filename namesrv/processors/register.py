# SPDX-License-Identifier: Apache-2.0
"""REGISTER_BROKER, UNREGISTER_BROKER, BROKER_HEARTBEAT, QUERY_DATA_VERSION, GET_BROKER_MEMBER_GROUP.

A registration is refused (1) when its CRC is wrong or when it is the incremental one of a broker not
known in full. Its answer carries the order configuration of topics, and for a slave its master's
addresses. Unregistering is done at once; the original queues it. Java: DefaultRequestProcessor.
"""

from __future__ import annotations

from collections.abc import Callable

from txrocketmq.namesrv.kv_config import ORDER_TOPIC_CONFIG, KvConfig
from txrocketmq.namesrv.route_table import Registration, RouteTable
from txrocketmq.remoting.call import Reply, Request
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.dispatch import serves
from txrocketmq.remoting.errors import ResponseError
from txrocketmq.remoting.header import NoHeader
from txrocketmq.remoting.protocol import ha, route
from txrocketmq.remoting.message.message import body_crc
from txrocketmq.remoting.protocol.body.route import DataVersion, RegisterBrokerBody
from txrocketmq.remoting.protocol.ha import GetBrokerMemberGroupRequestHeader
from txrocketmq.remoting.protocol.route import (
    BrokerHeartbeatRequestHeader,
    QueryDataVersionRequestHeader,
    QueryDataVersionResponseHeader,
    RegisterBrokerRequestHeader,
    RegisterBrokerResponseHeader,
    UnRegisterBrokerRequestHeader,
)
from txrocketmq.remoting.serialize.json import encode_body

ZONE_NAME = "__ZONE_NAME"


class RegisterProcessor:
    """Takes what brokers say; `changed` is called after each change of the table."""

    def __init__(self, table: RouteTable, kv: KvConfig, changed: Callable[[], None]) -> None:
        self._table = table
        self._kv = kv
        self._changed = changed

    @serves(route.REGISTER_BROKER)
    def register(
        self, request: Request[RegisterBrokerRequestHeader]
    ) -> Reply[RegisterBrokerResponseHeader]:
        """A broker with its topics."""
        header = request.header
        body = _registration(request)
        wrapper = body.topic_config_serialize_wrapper
        registered = self._table.register(
            Registration(
                cluster=header.cluster_name,
                broker_name=header.broker_name,
                broker_id=header.broker_id,
                address=header.broker_addr,
                ha_address=header.ha_server_addr,
                topics=wrapper.topic_config_table,
                data_version=wrapper.data_version,
                filter_servers=body.filter_server_list,
                queue_mappings={
                    name: mapping.to_json()
                    for name, mapping in wrapper.topic_queue_mapping_info_map.items()
                },
                heartbeat_timeout_ms=header.heartbeat_timeout_millis,
                enable_acting_master=header.enable_acting_master,
                zone=(request.command.ext_fields or {}).get(ZONE_NAME),
            ),
            request.peer,
            request.now_ms,
        )
        if registered is None:
            raise ResponseError(ResponseCode.SYSTEM_ERROR, "register broker failed")
        self._changed()
        table = self._kv.namespace(ORDER_TOPIC_CONFIG)
        return Reply(
            RegisterBrokerResponseHeader(
                ha_server_addr=registered.ha_address, master_addr=registered.master_address
            ),
            encode_body({"table": dict(table)}) if table is not None else b"",
        )

    @serves(route.UNREGISTER_BROKER)
    def unregister(self, request: Request[UnRegisterBrokerRequestHeader]) -> Reply[NoHeader]:
        """A broker stops."""
        header = request.header
        self._table.unregister(header.cluster_name, header.broker_name, header.broker_addr)
        self._changed()
        return Reply()

    @serves(route.BROKER_HEARTBEAT)
    def heartbeat(self, request: Request[BrokerHeartbeatRequestHeader]) -> Reply[NoHeader]:
        """A broker lives."""
        header = request.header
        self._table.seen(header.cluster_name, header.broker_addr, request.now_ms)
        return Reply()

    @serves(route.QUERY_DATA_VERSION)
    def query_data_version(
        self, request: Request[QueryDataVersionRequestHeader]
    ) -> Reply[QueryDataVersionResponseHeader]:
        """Whether a broker must register anew; a sign of life if not."""
        header = request.header
        known = self._table.data_version(header.cluster_name, header.broker_addr)
        changed = known is None or known != DataVersion.decode(request.body)
        self._table.seen(header.cluster_name, header.broker_addr, request.now_ms)
        return Reply(
            QueryDataVersionResponseHeader(changed=changed),
            known.encode() if known is not None else b"",
        )

    @serves(ha.GET_BROKER_MEMBER_GROUP)
    def member_group(self, request: Request[GetBrokerMemberGroupRequestHeader]) -> Reply[NoHeader]:
        """Master and slaves of a broker name."""
        group = self._table.member_group(request.header.cluster_name, request.header.broker_name)
        return Reply(body=encode_body({"brokerMemberGroup": group}))


def _registration(request: Request[RegisterBrokerRequestHeader]) -> RegisterBrokerBody:
    header, data = request.header, request.body
    if header.body_crc32 and body_crc(data) != header.body_crc32:
        raise ResponseError(ResponseCode.SYSTEM_ERROR, "crc32 not match")
    if not data:
        return RegisterBrokerBody()
    if header.compressed:
        return RegisterBrokerBody.decode_compressed(data, request.command.version)
    return RegisterBrokerBody.decode(data)
