# SPDX-License-Identifier: Apache-2.0
"""Requests of brokers: 103, 104, 322, 901, 904.

REGISTER_BROKER, UNREGISTER_BROKER, QUERY_DATA_VERSION, GET_BROKER_MEMBER_GROUP, BROKER_HEARTBEAT. A
registration is refused (1) when its CRC is wrong, or when it is incremental and the broker is not
known in full. Its answer contains the order configuration of topics, and for a slave its master's
addresses. A long registration is read, and takes effect, in slices; what else its broker registers
or unregisters comes after it. Java: DefaultRequestProcessor.
"""

from __future__ import annotations

from collections.abc import Callable

from txrocketmq.namesrv.config import NamesrvConfig
from txrocketmq.namesrv.kv_config import ORDER_TOPIC_CONFIG, KvConfig
from txrocketmq.namesrv.routes.registration import read
from txrocketmq.namesrv.routes.route_table import RouteTable
from txrocketmq.namesrv.turns import Steps, Turns
from txrocketmq.remoting.call import PendingReply, Reply, Request
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.dispatch import serves
from txrocketmq.remoting.errors import ResponseError
from txrocketmq.remoting.header import NoHeader
from txrocketmq.remoting.protocol import route
from txrocketmq.remoting.protocol.body.route import (
    DataVersion,
    GetBrokerMemberGroupResponseBody,
    KVTable,
)
from txrocketmq.remoting.protocol.operations import ha
from txrocketmq.remoting.protocol.operations.ha import GetBrokerMemberGroupRequestHeader
from txrocketmq.remoting.protocol.route import (
    BrokerHeartbeatRequestHeader,
    QueryDataVersionRequestHeader,
    QueryDataVersionResponseHeader,
    RegisterBrokerRequestHeader,
    RegisterBrokerResponseHeader,
    UnRegisterBrokerRequestHeader,
)
from txrocketmq.remoting.settings.config_file import Configuration


class RegisterProcessor:
    """Serves requests of brokers; `changed` is called when the table may have events."""

    def __init__(
        self,
        table: RouteTable,
        kv: KvConfig,
        configuration: Configuration,
        changed: Callable[[], None],
        turns: Turns,
    ) -> None:
        self._table = table
        self._kv = kv
        self._configuration = configuration
        self._changed = changed
        self._turns = turns

    @serves(route.REGISTER_BROKER)
    def register(
        self, request: Request[RegisterBrokerRequestHeader]
    ) -> Reply[RegisterBrokerResponseHeader] | PendingReply:
        """Registers a broker with its topics."""
        return self._turns.answer(request.peer, self._register(request), len(request.body))

    def _register(self, request: Request[RegisterBrokerRequestHeader]) -> Steps:
        it = yield from read(request)
        registered = yield from self._table.registering(it, request.peer, request.steady_ms)
        self._changed()
        if registered is None:
            raise ResponseError(ResponseCode.SYSTEM_ERROR, "register broker failed")
        header = RegisterBrokerResponseHeader(
            # A broker that serves no slaves says so by an empty text, which slaves cannot read.
            ha_server_addr=registered.ha_address or None,
            master_addr=registered.master_address,
        )
        order = self._kv.namespace(ORDER_TOPIC_CONFIG)
        wanted = self._configuration.get(NamesrvConfig).return_order_topic_config_to_broker
        return Reply(header, KVTable(table=order).encode() if wanted and order is not None else b"")

    @serves(route.UNREGISTER_BROKER)
    def unregister(
        self, request: Request[UnRegisterBrokerRequestHeader]
    ) -> Reply[NoHeader] | PendingReply:
        """Unregisters a broker, which stops."""
        return self._turns.answer(request.peer, self._unregister(request))

    def _unregister(self, request: Request[UnRegisterBrokerRequestHeader]) -> Steps:
        header = request.header
        self._table.unregister(header.cluster_name, header.broker_name, header.broker_addr)
        self._changed()
        return Reply()
        yield

    @serves(route.BROKER_HEARTBEAT)
    def heartbeat(self, request: Request[BrokerHeartbeatRequestHeader]) -> Reply[NoHeader]:
        """Takes a heartbeat of a broker."""
        header = request.header
        self._table.seen(header.cluster_name, header.broker_addr, request.steady_ms)
        return Reply()

    @serves(route.QUERY_DATA_VERSION)
    def query_data_version(
        self, request: Request[QueryDataVersionRequestHeader]
    ) -> Reply[QueryDataVersionResponseHeader]:
        """Returns whether a broker must register again; this counts as a heartbeat as well."""
        header = request.header
        asked = DataVersion.decode(request.body)
        known = self._table.data_version(header.cluster_name, header.broker_addr)
        self._table.seen(header.cluster_name, header.broker_addr, request.steady_ms)
        return Reply(
            QueryDataVersionResponseHeader(changed=known != asked),
            known.encode() if known is not None else b"",
        )

    @serves(ha.GET_BROKER_MEMBER_GROUP)
    def member_group(self, request: Request[GetBrokerMemberGroupRequestHeader]) -> Reply[NoHeader]:
        """Returns master and slaves of a broker name."""
        group = self._table.member_group(request.header.cluster_name, request.header.broker_name)
        return Reply(body=GetBrokerMemberGroupResponseBody(broker_member_group=group).encode())
