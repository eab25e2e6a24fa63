# SPDX-License-Identifier: Apache-2.0
"""Brokers, clusters, the queues of topics, and who is alive.

Pure: `now_ms` and an opaque `channel` are arguments, nothing is written and nobody is told. Routes
come out as the plain objects of the wire's JSON. Counterpart of RouteInfoManager.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from txrocketmq.remoting.message.flags import PermName
from txrocketmq.remoting.protocol.body.route import DataVersion, TopicConfig

MASTER_ID = 0
BROKER_EXPIRED_MS = 120_000
"""Silence after which a broker is gone, unless it said otherwise (DEFAULT_BROKER_CHANNEL_EXPIRED_TIME)."""
SYNC_MEMBER_PREFIX = "rmq_sys_SYNC_BROKER_MEMBER_"


@dataclass(slots=True)
class QueueData:
    """Queues that a broker has of a topic."""

    broker_name: str
    read_queue_nums: int
    write_queue_nums: int
    perm: int
    topic_sys_flag: int

    def to_json(self) -> dict[str, Any]:
        """The object of the wire."""
        return {
            "brokerName": self.broker_name,
            "perm": self.perm,
            "readQueueNums": self.read_queue_nums,
            "topicSysFlag": self.topic_sys_flag,
            "writeQueueNums": self.write_queue_nums,
        }


@dataclass(slots=True)
class BrokerData:
    """A broker name: addresses of its master (0) and slaves."""

    cluster: str
    name: str
    addresses: dict[int, str] = field(default_factory=dict)
    zone: str | None = None
    enable_acting_master: bool = False

    def to_json(self, addresses: Mapping[int, str] | None = None) -> dict[str, Any]:
        """The object of the wire, with other addresses if such are given."""
        return {
            "brokerAddrs": dict(self.addresses if addresses is None else addresses),
            "brokerName": self.name,
            "cluster": self.cluster,
            "enableActingMaster": self.enable_acting_master,
            "zoneName": self.zone,
        }


@dataclass(slots=True)
class LiveBroker:
    """A broker process that registered, and when it was heard of last."""

    cluster: str
    address: str
    last_seen_ms: int
    expired_ms: int
    data_version: DataVersion
    channel: object
    ha_address: str


@dataclass(frozen=True, slots=True)
class Registration:
    """What a broker says of itself; `enable_acting_master` None: it is a 4.x."""

    cluster: str
    broker_name: str
    broker_id: int
    address: str
    ha_address: str
    topics: Mapping[str, TopicConfig]
    data_version: DataVersion
    filter_servers: Sequence[str] = ()
    queue_mappings: Mapping[str, Any] = field(default_factory=dict)
    heartbeat_timeout_ms: int | None = None
    enable_acting_master: bool | None = None
    zone: str | None = None


@dataclass(frozen=True, slots=True)
class Registered:
    """The answer to a registration: for a slave, where its master is."""

    master_address: str | None = None
    ha_address: str | None = None


@dataclass(frozen=True, slots=True)
class MinIdChange:
    """Brokers to be told that the smallest id of their name has changed."""

    broker_name: str
    min_id: int
    min_address: str
    offline_address: str | None
    ha_address: str | None
    addresses: tuple[str, ...]


class RouteTable:
    """All that a name server knows of brokers."""

    def __init__(
        self, *, delete_topic_with_registration: bool = False, support_acting_master: bool = False
    ) -> None:
        self._delete_topic_with_registration = delete_topic_with_registration
        self._support_acting_master = support_acting_master
        self._queues: dict[str, dict[str, QueueData]] = {}
        self._brokers: dict[str, BrokerData] = {}
        self._clusters: dict[str, set[str]] = {}
        self._live: dict[tuple[str, str], LiveBroker] = {}
        self._filter_servers: dict[tuple[str, str], list[str]] = {}
        self._mappings: dict[str, dict[str, Any]] = {}
        self.min_id_changes: list[MinIdChange] = []
        """Changes since the caller last emptied this."""

    # --------------------------------------------------------- registrations

    def register(self, it: Registration, channel: object, now_ms: int) -> Registered | None:
        """A broker registers; None: refused ("register broker failed")."""
        key = (it.cluster, it.address)
        known = it.broker_name in self._brokers
        self._clusters.setdefault(it.cluster, set()).add(it.broker_name)
        broker = self._brokers.setdefault(it.broker_name, BrokerData(it.cluster, it.broker_name))
        broker.enable_acting_master = bool(it.enable_acting_master)
        broker.zone = it.zone
        addresses = broker.addresses
        min_id_changed = it.broker_id < min(addresses, default=0)
        for other_id, address in list(addresses.items()):
            if address == it.address and other_id != it.broker_id:
                del addresses[other_id]  # a slave has become master, or the reverse
        old_address = addresses.get(it.broker_id)
        if old_address is not None and old_address != it.address:
            other = self._live.get((it.cluster, old_address))
            if other and other.data_version.state_version > it.data_version.state_version:
                self._live.pop(key, None)
                return Registered()
        if it.broker_id not in addresses and len(it.topics) == 1:
            return None  # an incremental registration, of a broker not known in full
        addresses[it.broker_id] = it.address
        self._register_topics(it, broker, first=not known or not old_address)
        self._live[key] = LiveBroker(
            it.cluster,
            it.address,
            now_ms,
            it.heartbeat_timeout_ms or BROKER_EXPIRED_MS,
            it.data_version,
            channel,
            it.ha_address,
        )
        if it.filter_servers:
            self._filter_servers[key] = list(it.filter_servers)
        else:
            self._filter_servers.pop(key, None)
        if min_id_changed:
            self._min_id_changed(broker, None, it.ha_address)
        return self._master_of(broker) if it.broker_id != MASTER_ID else Registered()

    def _register_topics(self, it: Registration, broker: BrokerData, *, first: bool) -> None:
        is_master = it.broker_id == MASTER_ID
        is_prime_slave = (
            it.enable_acting_master is not None
            and not is_master
            and it.broker_id == min(broker.addresses)
        )
        if not (is_master or is_prime_slave):
            return
        live = self._live.get((it.cluster, it.address))
        changed = first or live is None or live.data_version != it.data_version
        if self._delete_topic_with_registration and not it.queue_mappings:
            for topic in [t for t, its in self._queues.items() if it.broker_name in its]:
                if topic not in it.topics:
                    self._remove_queue(topic, it.broker_name)
        for topic in it.topics.values():
            queues = self._queues.setdefault(topic.topic_name, {})
            if changed or it.broker_name not in queues:
                perm = topic.perm
                if is_prime_slave and broker.enable_acting_master:
                    perm &= ~PermName.WRITE
                queues[it.broker_name] = QueueData(
                    it.broker_name,
                    topic.read_queue_nums,
                    topic.write_queue_nums,
                    perm,
                    topic.topic_sys_flag,
                )
        if changed:
            for topic_name, mapping in it.queue_mappings.items():
                bname = mapping.get("bname") or it.broker_name
                self._mappings.setdefault(topic_name, {})[bname] = mapping

    def _master_of(self, broker: BrokerData) -> Registered:
        master = broker.addresses.get(MASTER_ID)
        live = self._live.get((broker.cluster, master)) if master else None
        return Registered(master, live.ha_address) if live else Registered()

    def unregister(self, cluster: str, broker_name: str, address: str) -> None:
        """A broker process is gone: its address, and with the last one its topics."""
        self._live.pop((cluster, address), None)
        self._filter_servers.pop((cluster, address), None)
        broker = self._brokers.get(broker_name)
        if broker is None:
            return
        smallest = min(broker.addresses, default=None)
        gone = [i for i, its in broker.addresses.items() if its == address]
        for broker_id in gone:
            del broker.addresses[broker_id]
        if not broker.addresses:
            del self._brokers[broker_name]
            names = self._clusters.get(cluster, set())
            names.discard(broker_name)
            if not names:
                self._clusters.pop(cluster, None)
            for topic in list(self._queues):
                self._remove_queue(topic, broker_name)
            return
        if broker.enable_acting_master and MASTER_ID not in broker.addresses:
            for queues in self._queues.values():
                if broker_name in queues:
                    queues[broker_name].perm &= ~PermName.WRITE
        if smallest in gone and broker.enable_acting_master:
            self._min_id_changed(broker, address, None)

    def channel_closed(self, channel: object) -> list[LiveBroker]:
        """A connection ended: the brokers that registered over it are gone."""
        return self._drop([live for live in self._live.values() if live.channel is channel])

    def expire(self, now_ms: int) -> list[LiveBroker]:
        """Drops the brokers that were silent for too long."""
        return self._drop(
            [b for b in self._live.values() if b.last_seen_ms + b.expired_ms < now_ms]
        )

    def seen(self, cluster: str, address: str, now_ms: int) -> None:
        """A broker gave a sign of life."""
        live = self._live.get((cluster, address))
        if live is not None:
            live.last_seen_ms = now_ms

    def data_version(self, cluster: str, address: str) -> DataVersion | None:
        """The data version a broker registered with."""
        live = self._live.get((cluster, address))
        return live.data_version if live is not None else None

    def _drop(self, gone: list[LiveBroker]) -> list[LiveBroker]:
        for live in gone:
            for broker in list(self._brokers.values()):
                if broker.cluster == live.cluster and live.address in broker.addresses.values():
                    self.unregister(live.cluster, broker.name, live.address)
                    break
            else:
                self._live.pop((live.cluster, live.address), None)
        return gone

    def _min_id_changed(self, broker: BrokerData, offline: str | None, ha: str | None) -> None:
        smallest = min(broker.addresses)
        told = [
            address
            for broker_id, address in broker.addresses.items()
            if offline is not None or len(broker.addresses) == 1 or broker_id != smallest
        ]
        self.min_id_changes.append(
            MinIdChange(broker.name, smallest, broker.addresses[smallest], offline, ha, tuple(told))
        )

    def _remove_queue(self, topic: str, broker_name: str) -> None:
        queues = self._queues.get(topic, {})
        queues.pop(broker_name, None)
        if not queues:
            self._queues.pop(topic, None)

    # ---------------------------------------------------------------- topics

    def register_topic(self, topic: str, queues: Iterable[QueueData]) -> None:
        """Adds queues of a topic; nothing is done when one is of an unknown broker."""
        queues = list(queues)
        if queues and all(queue.broker_name in self._brokers for queue in queues):
            self._queues.setdefault(topic, {}).update({q.broker_name: q for q in queues})

    def delete_topic(self, topic: str, cluster: str | None = None) -> None:
        """Forgets a topic, everywhere or on the brokers of a cluster."""
        if cluster is None:
            self._queues.pop(topic, None)
            return
        for broker_name in self._clusters.get(cluster, ()):
            self._remove_queue(topic, broker_name)

    def wipe_write_perm(self, broker_name: str) -> int:
        """Takes the write permission of all topics of a broker; how many those are."""
        return self._set_perm(broker_name, lambda perm: perm & ~PermName.WRITE)

    def add_write_perm(self, broker_name: str) -> int:
        """Lets all topics of a broker be read and written; how many those are."""
        return self._set_perm(broker_name, lambda _: PermName.READ | PermName.WRITE)

    def _set_perm(self, broker_name: str, change: Any) -> int:
        queues = [its[broker_name] for its in self._queues.values() if broker_name in its]
        for queue in queues:
            queue.perm = change(queue.perm)
        return len(queues)

    def topics(self) -> list[str]:
        """All topics."""
        return list(self._queues)

    def topics_of_cluster(self, cluster: str) -> list[str]:
        """Topics with queues on a broker of the cluster."""
        names = self._clusters.get(cluster, set())
        return [topic for topic, queues in self._queues.items() if names & queues.keys()]

    def topics_with(self, wanted: Any) -> list[str]:
        """Topics whose first queue data has a sys flag that `wanted` accepts."""
        return [
            topic
            for topic, queues in self._queues.items()
            if queues and wanted(next(iter(queues.values())).topic_sys_flag)
        ]

    def system_topics(self) -> tuple[list[str], str | None]:
        """Names of clusters and brokers, and the address of some broker that knows the others."""
        names: list[str] = []
        for cluster, brokers in self._clusters.items():
            names.append(cluster)
            names += sorted(brokers)
        address = next(
            (next(iter(b.addresses.values())) for b in self._brokers.values() if b.addresses), None
        )
        return names, address

    # ---------------------------------------------------------------- routes

    def route(self, topic: str) -> dict[str, Any] | None:
        """TopicRouteData without its order configuration; None: nobody has the topic."""
        queues = self._queues.get(topic)
        if not queues:
            return None
        brokers = [self._brokers[name] for name in queues if name in self._brokers]
        if not brokers:
            return None
        return {
            "brokerDatas": [b.to_json(self._addresses(topic, b, queues)) for b in brokers],
            "filterServerTable": {
                address: self._filter_servers[broker.cluster, address]
                for broker in brokers
                for address in broker.addresses.values()
                if (broker.cluster, address) in self._filter_servers
            },
            "queueDatas": [queue.to_json() for queue in queues.values()],
            "topicQueueMappingByBroker": self._mappings.get(topic),
        }

    def _addresses(
        self, topic: str, broker: BrokerData, queues: Mapping[str, QueueData]
    ) -> dict[int, str]:
        """Addresses as clients see them: a slave may stand in for its master (5.x)."""
        addresses = dict(broker.addresses)
        if (
            self._support_acting_master
            and addresses
            and MASTER_ID not in addresses
            and broker.enable_acting_master
            and not topic.startswith(SYNC_MEMBER_PREFIX)
            and not queues[broker.name].perm & PermName.WRITE
        ):
            addresses[MASTER_ID] = addresses.pop(min(addresses))
        return addresses

    def cluster_info(self) -> dict[str, Any]:
        """ClusterInfo."""
        return {
            "brokerAddrTable": {name: b.to_json() for name, b in self._brokers.items()},
            "clusterAddrTable": {name: sorted(its) for name, its in self._clusters.items()},
        }

    def member_group(self, cluster: str, broker_name: str) -> dict[str, Any]:
        """BrokerMemberGroup."""
        broker = self._brokers.get(broker_name)
        return {
            "brokerAddrs": dict(broker.addresses) if broker else {},
            "brokerName": broker_name,
            "cluster": cluster,
        }


def without_other_zones(route: dict[str, Any], zone: str) -> dict[str, Any]:
    """The route without brokers of other zones that have a master (ZoneRouteRPCHook)."""
    brokers = [
        broker
        for broker in route["brokerDatas"]
        if broker["zoneName"] == zone or MASTER_ID not in broker["brokerAddrs"]
    ]
    names = {broker["brokerName"] for broker in brokers}
    kept = {address for broker in brokers for address in broker["brokerAddrs"].values()}
    return {
        **route,
        "brokerDatas": brokers,
        "filterServerTable": {a: s for a, s in route["filterServerTable"].items() if a in kept},
        "queueDatas": [queue for queue in route["queueDatas"] if queue["brokerName"] in names],
    }
