# SPDX-License-Identifier: Apache-2.0
"""The brokers of a name, with enableSlaveActingMaster: name servers are told of this one often, and
asked for the others.

A heartbeat is a request without an answer to every name server. The members are what the first name
server says that answers. With compatibleWithOldNameSrv both go by requests that name servers of 4.x
serve as well: QUERY_DATA_VERSION, and the route of a topic that each broker has for this purpose,
in which no slave is shown as a master.

Java: sendHeartbeat and syncBrokerMemberGroup in BrokerController and BrokerOuterAPI.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from txrocketmq.broker.cluster.outer_api import Identity
from txrocketmq.broker.cluster.registration import Registration
from txrocketmq.broker.settings.config import BrokerConfig
from txrocketmq.broker.work.life import Beat, Life
from txrocketmq.remoting.call import Reply
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.errors import HeaderError
from txrocketmq.remoting.primitives.listeners import tell_all
from txrocketmq.remoting.protocol import route
from txrocketmq.remoting.protocol.body.route import (
    GetBrokerMemberGroupResponseBody,
    TopicRouteData,
)
from txrocketmq.remoting.protocol.operations import ha
from txrocketmq.remoting.protocol.operations.ha import GetBrokerMemberGroupRequestHeader
from txrocketmq.remoting.protocol.route import (
    BrokerHeartbeatRequestHeader,
    GetRouteInfoRequestHeader,
    QueryDataVersionRequestHeader,
)
from txrocketmq.remoting.transport.client import Connections

TIMEOUT_MS: Final = 3_000
MEMBER_PREFIX: Final = "rmq_sys_SYNC_BROKER_MEMBER_"
"""The beginning of the name of the topic whose route shows the members as they are."""
MOST_MEMBERS: Final = 1_000
"""How many members are remembered; an answer with more is not believed."""

Addresses = Mapping[int, str]


class Members:
    """The members by id; `on_known` hears of them each time that a name server has named some."""

    def __init__(self, config: BrokerConfig, registration: Registration) -> None:
        self._config = config
        self._registration = registration
        self._connections: Connections | None = None
        self._identity: Identity | None = None
        self._is_asking = False
        self.addresses: Addresses = {}
        self.on_known: list[Callable[[Addresses], None]] = []

    def begin(self, connections: Connections, identity: Identity) -> None:
        """Begins with heartbeats and questions."""
        self._connections, self._identity = connections, identity

    def life(self) -> Life:
        """Heartbeats, and questions for the members, if they matter."""
        config = self._config
        beats = (
            Beat(config.broker_heartbeat_interval, self.beat),
            Beat(config.sync_broker_member_group_period, self._look),
        )
        return Life("brokers of the name", beats=beats if config.enable_slave_acting_master else ())

    def others(self) -> Addresses:
        """The members but this broker."""
        return others(self.addresses, self._identity)

    def beat(self) -> None:
        """Tells each name server that this broker lives, unless it is not to be known yet."""
        it, connections, registration = self._identity, self._connections, self._registration
        name_servers = registration.name_servers
        if it is None or connections is None or name_servers is None or registration.is_held:
            return
        for address in name_servers.addresses:
            if self._config.compatible_with_old_name_srv:
                header = QueryDataVersionRequestHeader(
                    broker_name=it.name,
                    broker_addr=it.address,
                    cluster_name=it.cluster,
                    broker_id=it.broker_id,
                )
                version = registration.table().data_version.encode()
                connections.invoke_oneway(address, route.QUERY_DATA_VERSION, header, version)
            else:
                beat = BrokerHeartbeatRequestHeader(
                    cluster_name=it.cluster, broker_addr=it.address, broker_name=it.name
                )
                connections.invoke_oneway(address, route.BROKER_HEARTBEAT, beat)

    def ask(self, then: Callable[[Addresses | None], None]) -> None:
        """Asks the name servers, one after another, until one answers.

        `then` gets what that has said, which may be nobody, or None if none has answered.
        """
        it, connections = self._identity, self._connections
        name_servers = self._registration.name_servers
        left = [] if name_servers is None else list(name_servers.addresses)

        def ask_next() -> None:
            if not left or it is None or connections is None:
                then(None)
                return
            call: Any = ha.GET_BROKER_MEMBER_GROUP
            header: Any = GetBrokerMemberGroupRequestHeader(
                cluster_name=it.cluster, broker_name=it.name
            )
            if self._config.compatible_with_old_name_srv:
                call = route.GET_ROUTEINFO_BY_TOPIC
                header = GetRouteInfoRequestHeader(topic=MEMBER_PREFIX + it.name)
            connections.invoke(left.pop(0), call, header, timeout_ms=TIMEOUT_MS).then(answered)

        def answered(outcome: Reply[Any] | Exception) -> None:
            found = None if it is None else self._found(it, outcome)
            if found is None:
                ask_next()
            else:
                self.addresses = found
                then(found)

        ask_next()

    def _look(self) -> None:
        """Asks, unless the question before is open, or another part asks (pre_online.py)."""
        if self._is_asking or self._identity is None or self._registration.is_held:
            return
        self._is_asking = True

        def known(found: Addresses | None) -> None:
            self._is_asking = False
            if found:
                tell_all(self.on_known, found)

        self.ask(known)

    def _found(self, it: Identity, outcome: Reply[Any] | Exception) -> Addresses | None:
        """The members of an answer; None if it is none."""
        if isinstance(outcome, Exception):
            return None
        is_route = self._config.compatible_with_old_name_srv
        if is_route and outcome.code == ResponseCode.TOPIC_NOT_EXIST:
            return {}
        if outcome.code != ResponseCode.SUCCESS:
            return None
        try:
            found = _of_route(it, outcome) if is_route else _of_group(outcome)
        except HeaderError:
            return None
        return None if len(found) > MOST_MEMBERS else found


def others(addresses: Addresses, it: Identity | None) -> Addresses:
    """Those addresses that are not of this broker, also under an id that it had before."""
    own = -1 if it is None else it.broker_id
    where = "" if it is None else it.address
    return {each: its for each, its in addresses.items() if each != own and its != where}


def _of_route(it: Identity, outcome: Reply[Any]) -> Addresses:
    for broker in TopicRouteData.decode(outcome.body_bytes).broker_datas:
        if broker.broker_name == it.name and broker.cluster == it.cluster:
            return dict(broker.broker_addrs)
    return {}


def _of_group(outcome: Reply[Any]) -> Addresses:
    group = GetBrokerMemberGroupResponseBody.decode(outcome.body_bytes).broker_member_group
    return {} if group is None else dict(group.broker_addrs)
