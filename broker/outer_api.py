# SPDX-License-Identifier: Apache-2.0
"""What a broker asks of its name servers: to be registered, and forgotten at the end.

Each name server is told on its own; one that does not answer holds up nobody. Counterpart of
BrokerOuterAPI and of registerBrokerAll in BrokerController.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from twisted.logger import Logger

from txrocketmq.remoting.call import PendingReply, Reply
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.errors import ConnectError, HeaderError
from txrocketmq.remoting.message.message import body_crc
from txrocketmq.remoting.protocol import route
from txrocketmq.remoting.protocol.body.route import (
    DataVersion,
    KVTable,
    RegisterBrokerBody,
    TopicConfig,
    TopicConfigAndMappingSerializeWrapper,
)
from txrocketmq.remoting.protocol.route import (
    GetRouteInfoRequestHeader,
    QueryDataVersionRequestHeader,
    RegisterBrokerRequestHeader,
    UnRegisterBrokerRequestHeader,
)
from txrocketmq.remoting.transport.client import Connections

UNREGISTER_TIMEOUT_MS = 3_000
QUERY_TIMEOUT_MS = 3_000

log = Logger()


@dataclass(frozen=True, slots=True)
class Identity:
    """How a broker is known to name servers."""

    cluster: str
    name: str
    broker_id: int
    address: str
    ha_address: str


class NameServers:
    """All name servers of a broker. `on_order_topics` hears which topics are order topics."""

    def __init__(
        self,
        connections: Connections,
        identity: Identity,
        timeout_ms: int,
        on_order_topics: Callable[[set[str]], None],
    ) -> None:
        self._connections = connections
        self._identity = identity
        self._timeout_ms = timeout_ms
        self._on_order_topics = on_order_topics
        self.addresses: tuple[str, ...] = ()
        self._registered: dict[str, bool] = {}

    def set_addresses(self, text: str) -> None:
        """Addresses "host:port" separated by semicolons."""
        self.addresses = tuple(part.strip() for part in text.split(";") if part.strip())

    def register(
        self, topics: Mapping[str, TopicConfig], data_version: DataVersion, *, force: bool
    ) -> None:
        """Tells every name server the topics; without `force` only those that miss some."""
        for address in self.addresses:
            if force or not self._registered.get(address):
                self._register(address, topics, data_version)
            else:
                self._register_if_changed(address, topics, data_version)

    def unregister(self, then: Callable[[], None]) -> None:
        """Takes leave of every name server; `then` is called when all have answered, or not."""
        waiting = set(self.addresses)
        it = self._identity
        header = UnRegisterBrokerRequestHeader(
            broker_name=it.name,
            broker_addr=it.address,
            cluster_name=it.cluster,
            broker_id=it.broker_id,
        )
        if not waiting:
            then()
        for address in self.addresses:

            def answered(_: Any, address: str = address) -> None:
                waiting.discard(address)
                if not waiting:
                    then()

            self._connections.invoke(
                address, route.UNREGISTER_BROKER, header, timeout_ms=UNREGISTER_TIMEOUT_MS
            ).then(answered)

    def ask_route(self, topic: str) -> PendingReply:
        """The route of a topic, of the first name server that answers; or the last one's error."""
        promise = PendingReply()
        header = GetRouteInfoRequestHeader(topic=topic)
        left = list(self.addresses)

        def ask_next(outcome: Reply[Any] | Exception) -> None:
            if isinstance(outcome, Exception) and left:
                self._connections.invoke(
                    left.pop(0), route.GET_ROUTEINFO_BY_TOPIC, header, timeout_ms=QUERY_TIMEOUT_MS
                ).then(ask_next)
            else:
                promise.resolve(outcome)

        ask_next(ConnectError("no name server is configured"))
        return promise

    def _register_if_changed(
        self, address: str, topics: Mapping[str, TopicConfig], data_version: DataVersion
    ) -> None:
        it = self._identity
        header = QueryDataVersionRequestHeader(
            broker_name=it.name,
            broker_addr=it.address,
            cluster_name=it.cluster,
            broker_id=it.broker_id,
        )

        def answered(outcome: Reply[Any] | Exception) -> None:
            if (
                isinstance(outcome, Reply)
                and outcome.code == ResponseCode.SUCCESS
                and outcome.header is not None
                and not outcome.header.changed
            ):
                return
            self._register(address, topics, data_version)

        self._connections.invoke(
            address,
            route.QUERY_DATA_VERSION,
            header,
            data_version.encode(),
            timeout_ms=QUERY_TIMEOUT_MS,
        ).then(answered)

    def _register(
        self, address: str, topics: Mapping[str, TopicConfig], data_version: DataVersion
    ) -> None:
        it = self._identity
        body = RegisterBrokerBody(
            topic_config_serialize_wrapper=TopicConfigAndMappingSerializeWrapper(
                topic_config_table=topics, data_version=data_version
            )
        ).encode()
        header = RegisterBrokerRequestHeader(
            broker_name=it.name,
            broker_addr=it.address,
            cluster_name=it.cluster,
            ha_server_addr=it.ha_address,
            broker_id=it.broker_id,
            enable_acting_master=False,
            body_crc32=body_crc(body),
        )
        self._connections.invoke(
            address, route.REGISTER_BROKER, header, body, timeout_ms=self._timeout_ms
        ).then(lambda outcome: self._answered(address, outcome))

    def _answered(self, address: str, outcome: Reply[Any] | Exception) -> None:
        before = self._registered.get(address)
        if isinstance(outcome, Reply) and outcome.code == ResponseCode.SUCCESS:
            self._registered[address] = True
            if not before:
                log.info("registered with name server {address}", address=address)
            self._take_order_topics(address, outcome.body_bytes)
            return
        self._registered[address] = False
        if before is not False:
            why = outcome.remark if isinstance(outcome, Reply) else outcome
            log.warn("name server {address} did not register us: {why}", address=address, why=why)

    def _take_order_topics(self, address: str, body: bytes) -> None:
        if not body:
            return
        try:
            table = KVTable.decode(body).table
        except HeaderError as error:
            log.warn(
                "name server {address} sent order topics that are none: {error}",
                address=address,
                error=error,
            )
            return
        self._on_order_topics(set(table))
