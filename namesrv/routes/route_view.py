# SPDX-License-Identifier: Apache-2.0
"""Routes and clusters as they were at one moment, made into answers step by step.

A view is taken at once, by copies of references; what is made of it takes as long as there are
brokers, so it is made in turns with everything else. Java: RouteInfoManager.pickupTopicRouteData,
getAllClusterInfo, which hold a lock meanwhile.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, Final

from txrocketmq.namesrv.routes.brokers import MASTER_ID, Broker
from txrocketmq.remoting.message.flags import PermName
from txrocketmq.remoting.protocol.body.route import (
    BrokerData,
    ClusterInfo,
    QueueData,
    TopicRouteData,
)
from txrocketmq.remoting.protocol.body.static_topic import TopicQueueMappingInfo
from txrocketmq.remoting.serialize.json import HOLE, encode_body, encode_member

SYNC_MEMBER_PREFIX: Final = "rmq_sys_SYNC_BROKER_MEMBER_"
"""Topics whose routes show no acting master: slaves look for their true master with them."""
_A_STEP: Final = 4
"""How many brokers are encoded at once."""
_NAMES_A_STEP: Final = 64
_HOLE: Final = b'"' + HOLE.encode() + b'"'


@dataclass(frozen=True, slots=True)
class RouteView:
    """The queues of a topic, and the brokers that have it."""

    topic: str
    queues: Mapping[str, QueueData]
    brokers: Sequence[Broker]
    filter_servers: Mapping[tuple[str, str], Sequence[str]]
    mappings: Mapping[str, TopicQueueMappingInfo] | None
    supports_acting_master: bool
    headless: AbstractSet[str]
    """Brokers that have lost their master, whose topics may not be read-only yet."""

    def route(self, zone: str = "") -> Generator[None, None, TopicRouteData]:
        """Makes the route, without brokers of other zones if a zone is given."""
        brokers: list[BrokerData] = []
        queues: list[QueueData] = []
        servers: dict[str, Sequence[str]] = {}
        count = 0
        for broker in self.brokers:
            its = self._queue_of(broker)
            data = broker.data(self._addresses(broker, its))
            if not (zone and _is_elsewhere(data, zone)):
                brokers.append(data)
                queues.append(its)
                if self.filter_servers:
                    servers.update(self._filter_servers_of(broker))
            count += len(data.broker_addrs)
            if count >= _A_STEP:
                count = 0
                yield
        return TopicRouteData(
            queue_datas=tuple(queues),
            broker_datas=tuple(brokers),
            filter_server_table=servers,
            topic_queue_mapping_by_broker=self.mappings,
        )

    def _queue_of(self, broker: Broker) -> QueueData:
        queue = self.queues[broker.name]
        if broker.name in self.headless and broker.lacks_master:
            return dataclasses.replace(queue, perm=queue.perm & ~PermName.WRITE)
        return queue

    def _addresses(self, broker: Broker, queue: QueueData) -> Mapping[int, str]:
        """The addresses for clients: a slave may take the place of its master (5.x)."""
        if (
            not broker.lacks_master
            or not self.supports_acting_master
            or self.topic.startswith(SYNC_MEMBER_PREFIX)
            or queue.perm & PermName.WRITE
        ):
            return broker.addresses
        addresses = dict(broker.addresses)
        addresses[MASTER_ID] = addresses.pop(min(addresses))
        return addresses

    def _filter_servers_of(self, broker: Broker) -> dict[str, Sequence[str]]:
        found = {
            address: self.filter_servers.get((broker.cluster, address))
            for address in broker.addresses.values()
        }
        return {address: servers for address, servers in found.items() if servers is not None}


def _is_elsewhere(broker: BrokerData, zone: str) -> bool:
    """Whether a broker is in another zone, and has a master (ZoneRouteRPCHook)."""
    is_same = (broker.zone_name or "").lower() == zone.lower()
    return not is_same and MASTER_ID in broker.broker_addrs


def encoded_route(
    route: TopicRouteData, encode: Callable[[Any], bytes]
) -> Generator[None, None, list[bytes]]:
    """Encodes a route on many brokers, some of them in each step."""
    content = dataclasses.replace(route, broker_datas=(), queue_datas=()).to_json()
    pieces: list[bytes] = []
    rest = encode({**content, "brokerDatas": HOLE, "queueDatas": HOLE})
    for datas in (route.broker_datas, route.queue_datas):  # which is their order in both forms
        before, _, rest = rest.partition(_HOLE)
        pieces.append(before + b"[")
        for is_first, some in _portions(datas):
            pieces += (b"" if is_first else b",", encode(some)[1:-1])
            yield
        pieces.append(b"]")
    return [*pieces, rest]


def _portions(
    datas: Sequence[BrokerData] | Sequence[QueueData],
) -> Iterator[tuple[bool, list[BrokerData | QueueData]]]:
    """Divides what is encoded so that no portion has many addresses; also tells the first one."""
    is_first, some, count = True, list[BrokerData | QueueData](), 0
    for each in datas:
        some.append(each)
        count += len(each.broker_addrs) if isinstance(each, BrokerData) else 1
        if count >= _A_STEP:
            yield is_first, some
            is_first, some, count = False, [], 0
    if some:
        yield is_first, some


@dataclass(frozen=True, slots=True)
class ClusterView:
    """All brokers, and the broker names of each cluster in order."""

    brokers: Mapping[str, Broker]
    clusters: Mapping[str, Sequence[str]]

    def info(self) -> ClusterInfo:
        """Makes it into the form that is sent."""
        return ClusterInfo(
            broker_addr_table={name: broker.data() for name, broker in self.brokers.items()},
            cluster_addr_table=self.clusters,
        )

    def encoded(self) -> Generator[None, None, list[bytes]]:
        """Encodes it, some brokers or a cluster in each step."""
        empty = encode_body({"brokerAddrTable": HOLE, "clusterAddrTable": HOLE})
        before, between, after = empty.split(_HOLE)
        pieces, count = [before, b"{"], 0
        for number, (name, broker) in enumerate(self.brokers.items()):
            pieces += (b"," if number else b"", encode_member(name, broker.data().to_json()))
            count += len(broker.addresses)
            if count >= _A_STEP:
                count = 0
                yield
        pieces += (b"}", between, b"{")
        for number, (name, its) in enumerate(self.clusters.items()):
            pieces += (b"," if number else b"", encode_member(name, [])[:-1])
            for at in range(0, len(its), _NAMES_A_STEP):
                pieces += (b"," if at else b"", encode_body(its[at : at + _NAMES_A_STEP])[1:-1])
                yield
            pieces.append(b"]")
            yield
        return [b"".join(pieces), b"}", after]
