# SPDX-License-Identifier: Apache-2.0
"""The brokers and clusters that are alive, and the queues of topics.

Pure: `steady_ms` and an opaque `channel` are arguments, and there is no I/O. Events of brokers are
collected for the owner of the table. Invariants: a broker name has at least one address, and an
address one id; a cluster has at least one broker name, and a topic at least one QueueData.
Counterpart of RouteInfoManager.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from txrocketmq.namesrv.config import NamesrvConfig
from txrocketmq.namesrv.registration import Registered, Registration
from txrocketmq.namesrv.route_events import (
    BrokerJoined,
    BrokerLeft,
    Event,
    MinIdChanged,
    RegistrationIgnored,
    TwoOfOneId,
)
from txrocketmq.remoting.message.flags import PermName
from txrocketmq.remoting.protocol.body.route import (
    BrokerData,
    BrokerMemberGroup,
    ClusterInfo,
    DataVersion,
    QueueData,
    TopicRouteData,
)
from txrocketmq.remoting.protocol.body.static_topic import TopicQueueMappingInfo
from txrocketmq.remoting.protocol.body.topic import TopicList
from txrocketmq.remoting.settings.config_file import Configuration

MASTER_ID = 0
BROKER_EXPIRED_MS = 120_000
"""A broker that was silent for longer, in ms, is gone, unless it registered with another limit."""
_TOPICS_A_STEP = 8
_NAMES_A_STEP = 128
SYNC_MEMBER_PREFIX = "rmq_sys_SYNC_BROKER_MEMBER_"
"""Topics whose routes show no acting master: slaves look for their true master with them."""


@dataclass(slots=True)
class Broker:
    """A broker name, with the addresses of its master (0) and slaves by id."""

    cluster: str
    name: str
    addresses: dict[int, str] = field(default_factory=dict)
    zone: str | None = None
    acting_master: bool = False

    def data(self, addresses: Mapping[int, str] | None = None) -> BrokerData:
        """Makes the form that is sent, with other addresses if these are given."""
        return BrokerData(
            cluster=self.cluster,
            broker_name=self.name,
            broker_addrs=dict(self.addresses if addresses is None else addresses),
            zone_name=self.zone,
            enable_acting_master=self.acting_master,
        )


@dataclass(slots=True)
class LiveBroker:
    """A registered broker process, and when it was last heard of."""

    cluster: str
    broker_name: str
    address: str
    last_seen_ms: int
    timeout_ms: int
    data_version: DataVersion
    channel: object
    ha_address: str


class RouteTable:
    """All that a name server knows of brokers.

    `events` has what happened since they were last taken.
    """

    def __init__(self, configuration: Configuration) -> None:
        self._configuration = configuration
        self._queues: dict[str, dict[str, QueueData]] = {}
        self._topics_of: dict[str, dict[str, None]] = {}
        """The topics of each broker name: the reverse of `_queues`."""
        self._cluster_info: bytes | None = None
        """The text of `cluster_info` while brokers and clusters stay as they are."""
        self._brokers: dict[str, Broker] = {}
        self._clusters: dict[str, set[str]] = {}
        self._live: dict[tuple[str, str], LiveBroker] = {}
        self._filter_servers: dict[tuple[str, str], list[str]] = {}
        self._mappings: dict[str, dict[str, TopicQueueMappingInfo]] = {}
        self._events: list[Event] = []

    @property
    def live_brokers(self) -> int:
        """How many brokers are alive."""
        return len(self._live)

    @property
    def topic_count(self) -> int:
        """How many topics have a broker."""
        return len(self._queues)

    def take_events(self) -> list[Event]:
        """Returns what happened to brokers since the last call."""
        events, self._events = self._events, []
        return events

    # --------------------------------------------------------- registrations

    def register(self, it: Registration, channel: object, steady_ms: int) -> Registered | None:
        """Takes all steps of `registering` at once."""
        steps = self.registering(it, channel, steady_ms)
        try:
            while True:
                next(steps)
        except StopIteration as end:
            registered: Registered | None = end.value
            return registered

    def registering(
        self, it: Registration, channel: object, steady_ms: int
    ) -> Generator[None, None, Registered | None]:
        """Registers a broker, then some topics in each step; it ends early if the broker leaves.

        Returns None when it is refused ("register broker failed"). Until the last topic is
        registered, the broker counts as one whose data version is not known.
        """
        key = (it.cluster, it.address)
        broker = self._brokers.get(it.broker_name) or Broker(it.cluster, it.broker_name)
        others = {
            broker_id: address
            for broker_id, address in broker.addresses.items()
            if address != it.address or broker_id == it.broker_id
        }  # without the id it had before: a slave has become master, or the reverse
        old_address = others.get(it.broker_id)
        live = self._live.get(key)
        if self._is_older(it, old_address):
            if live is not None:
                self._leave(live, "another one holds its id with a later term")
            self._events.append(RegistrationIgnored(it.broker_name, it.address, str(old_address)))
            return Registered()
        if old_address is None and len(it.topics) == 1:
            return None  # the incremental registration of a broker that is not known in full
        if live is not None and live.broker_name != it.broker_name:
            self._leave(live, f"it is {it.broker_name} now")
            live = None
        self._note_two(it, old_address)
        min_id_changed = it.broker_id < min(broker.addresses, default=0)
        self._brokers[it.broker_name] = broker
        self._clusters.setdefault(it.cluster, set()).add(it.broker_name)
        broker.acting_master = bool(it.enable_acting_master)
        broker.zone = it.zone
        broker.addresses = {**others, it.broker_id: it.address}
        self._cluster_info = None
        changed = not old_address or live is None or live.data_version != it.data_version
        if live is None:
            self._events.append(
                BrokerJoined(it.cluster, it.broker_name, it.broker_id, it.address, len(it.topics))
            )
        mine = self._live[key] = LiveBroker(
            cluster=it.cluster,
            broker_name=it.broker_name,
            address=it.address,
            last_seen_ms=steady_ms,
            timeout_ms=it.heartbeat_timeout_ms or BROKER_EXPIRED_MS,
            data_version=DataVersion(state_version=it.data_version.state_version),
            channel=channel,
            ha_address=it.ha_address,
        )
        self._take_filter_servers(it)
        if min_id_changed:
            self._min_id_changed(broker, None, it.ha_address)
        for count, _ in enumerate(self._topics_registered(it, broker, changed=changed), 1):
            if count % _TOPICS_A_STEP == 0:
                yield
            if self._live.get(key) is not mine:
                return Registered()
        mine.data_version = it.data_version
        return self._master_of(broker) if it.broker_id != MASTER_ID else Registered()

    def _note_two(self, it: Registration, old_address: str | None) -> None:
        if old_address is None or old_address == it.address:
            return
        other = self._live.get((it.cluster, old_address))
        if other is not None and other.broker_name == it.broker_name:
            self._events.append(TwoOfOneId(it.broker_name, it.broker_id, it.address, other.address))

    def _take_filter_servers(self, it: Registration) -> None:
        key = it.cluster, it.address
        if it.filter_servers:
            self._filter_servers[key] = list(it.filter_servers)
        elif it.filter_servers is not None:
            self._filter_servers.pop(key, None)

    def _is_older(self, it: Registration, old_address: str | None) -> bool:
        """Whether a broker with a later term holds the id already (5.x, controller mode)."""
        if old_address is None or old_address == it.address:
            return False
        other = self._live.get((it.cluster, old_address))
        return (
            other is not None and other.data_version.state_version > it.data_version.state_version
        )

    def _topics_registered(
        self, it: Registration, broker: Broker, *, changed: bool
    ) -> Generator[None, None, None]:
        """Registers the topics of a broker one by one."""
        is_master = it.broker_id == MASTER_ID
        is_prime_slave = (
            it.enable_acting_master is not None
            and not is_master
            and it.broker_id == min(broker.addresses)
        )
        if not (is_master or is_prime_slave):
            return
        if self._config.delete_topic_with_broker_registration and not it.queue_mappings:
            for name in list(self._topics_of.get(broker.name, ())):
                if name not in it.topics:
                    self._remove_queues(name, broker.name)
                yield
        read_only = is_prime_slave and broker.acting_master
        for name, topic in it.topics.items():
            topic_name = topic.topic_name or name
            if changed or broker.name not in self._queues.get(topic_name, {}):
                queues = QueueData(
                    broker_name=broker.name,
                    read_queue_nums=topic.read_queue_nums,
                    write_queue_nums=topic.write_queue_nums,
                    perm=topic.perm & ~PermName.WRITE if read_only else topic.perm,
                    topic_sys_flag=topic.topic_sys_flag,
                )
                self._put(topic_name, queues)
            yield
        if changed:
            for name, mapping in it.queue_mappings.items():
                self._mappings.setdefault(name, {})[mapping.bname or broker.name] = mapping
                yield

    def _put(self, topic: str, queues: QueueData) -> None:
        self._queues.setdefault(topic, {})[queues.broker_name] = queues
        self._topics_of.setdefault(queues.broker_name, {})[topic] = None

    def _master_of(self, broker: Broker) -> Registered:
        master = broker.addresses.get(MASTER_ID)
        live = self._live.get((broker.cluster, master)) if master else None
        return Registered(master, live.ha_address) if live else Registered()

    def unregister(self, cluster: str, broker_name: str, address: str) -> None:
        """Removes a broker process that says it is stopping."""
        live = self._live.get((cluster, address))
        if live is not None:
            self._leave(live, "it unregistered")
        self._remove_address(broker_name, address)

    def channel_closed(self, channel: object) -> None:
        """Removes the brokers that registered over a connection which has ended."""
        for live in [live for live in self._live.values() if live.channel is channel]:
            self._leave(live, "its connection ended")

    def expire(self, steady_ms: int) -> list[LiveBroker]:
        """Removes the brokers that were silent for too long, and returns them."""
        silent = [b for b in self._live.values() if b.last_seen_ms + b.timeout_ms < steady_ms]
        for live in silent:
            self._leave(live, f"it was silent for {live.timeout_ms} ms")
        return silent

    def seen(self, cluster: str, address: str, steady_ms: int) -> None:
        """Notes that a broker is alive."""
        live = self._live.get((cluster, address))
        if live is not None:
            live.last_seen_ms = steady_ms

    def data_version(self, cluster: str, address: str) -> DataVersion | None:
        """Returns the data version that a broker registered with."""
        live = self._live.get((cluster, address))
        return live.data_version if live is not None else None

    def _leave(self, live: LiveBroker, reason: str) -> None:
        """Removes a broker process."""
        key = (live.cluster, live.address)
        del self._live[key]
        self._filter_servers.pop(key, None)
        self._events.append(BrokerLeft(live.cluster, live.broker_name, live.address, reason))
        self._remove_address(live.broker_name, live.address)

    def _remove_address(self, broker_name: str, address: str) -> None:
        """Removes an address of a broker name; if it was the last, also the name and its topics."""
        broker = self._brokers.get(broker_name)
        if broker is None or address not in broker.addresses.values():
            return
        smallest = min(broker.addresses)
        self._cluster_info = None
        broker.addresses = {i: its for i, its in broker.addresses.items() if its != address}
        if not broker.addresses:
            self._remove_broker(broker_name)
            return
        if broker.acting_master and MASTER_ID not in broker.addresses:
            for _ in self._set_perm(broker_name, lambda perm: perm & ~PermName.WRITE):
                pass
        if smallest not in broker.addresses and broker.acting_master:
            self._min_id_changed(broker, address, None)

    def _remove_broker(self, broker_name: str) -> None:
        del self._brokers[broker_name]
        for cluster, names in list(self._clusters.items()):
            names.discard(broker_name)
            if not names:
                del self._clusters[cluster]
        for topic in list(self._topics_of.get(broker_name, ())):
            self._remove_queues(topic, broker_name)

    def _min_id_changed(self, broker: Broker, offline: str | None, ha: str | None) -> None:
        smallest = min(broker.addresses)
        told = [
            address
            for broker_id, address in broker.addresses.items()
            if offline is not None or len(broker.addresses) == 1 or broker_id != smallest
        ]
        self._events.append(
            MinIdChanged(
                broker.name, smallest, broker.addresses[smallest], offline, ha, tuple(told)
            )
        )

    # ---------------------------------------------------------------- topics

    def register_topic(self, topic: str, queues: Iterable[QueueData]) -> None:
        """Adds queues of a topic; does nothing when one of them is on an unknown broker."""
        queues = list(queues)
        if queues and all(queue.broker_name in self._brokers for queue in queues):
            for each in queues:
                self._put(topic, each)

    def delete_topic(self, topic: str, cluster: str | None = None) -> None:
        """Removes a topic, everywhere or on the brokers of a cluster."""
        names = self._queues.get(topic, {}) if cluster is None else self._clusters.get(cluster, ())
        for broker_name in list(names):
            self._remove_queues(topic, broker_name)

    def wipe_write_perm(self, broker_name: str) -> Generator[None, None, int]:
        """Takes the write permission of all topics of a broker, some in each step; returns how
        many there are.
        """
        return self._set_perm(broker_name, lambda perm: perm & ~PermName.WRITE)

    def add_write_perm(self, broker_name: str) -> Generator[None, None, int]:
        """Lets all topics of a broker be read and written, some in each step; returns how many
        there are.
        """
        return self._set_perm(broker_name, lambda _: PermName.READ | PermName.WRITE)

    def _set_perm(
        self, broker_name: str, change: Callable[[int], int]
    ) -> Generator[None, None, int]:
        count = 0
        for topic in list(self._topics_of.get(broker_name, ())):
            queues = self._queues.get(topic, {})
            queue = queues.get(broker_name)
            if queue is not None:
                queues[broker_name] = dataclasses.replace(queue, perm=change(queue.perm))
                count += 1
                if count % _TOPICS_A_STEP == 0:
                    yield
        return count

    def _remove_queues(self, topic: str, broker_name: str) -> None:
        queues = self._queues.get(topic, {})
        queues.pop(broker_name, None)
        if not queues:
            self._queues.pop(topic, None)
        topics = self._topics_of.get(broker_name, {})
        topics.pop(topic, None)
        if not topics:
            self._topics_of.pop(broker_name, None)

    def topics(self) -> TopicList:
        """The names of all topics."""
        return TopicList(topic_list=tuple(self._queues))

    def topics_in_turns(
        self, wanted: Callable[[Mapping[str, QueueData]], bool] | None = None
    ) -> Iterator[list[str]]:
        """The names of topics, after some of them were looked at; `wanted` is asked about the
        queues of each.
        """
        names = list(self._queues)
        for at in range(0, len(names), _NAMES_A_STEP):
            some = names[at : at + _NAMES_A_STEP]
            if wanted is not None:
                some = [name for name in some if wanted(self._queues.get(name) or {})]
            yield some

    def broker_names(self, cluster: str) -> AbstractSet[str]:
        """The names of the brokers of a cluster."""
        return self._clusters.get(cluster, set())

    def system_topics(self) -> TopicList:
        """The names of clusters and brokers, which are topics too, and some broker to ask for
        more.
        """
        names = [
            name for cluster, its in self._clusters.items() for name in (cluster, *sorted(its))
        ]
        first = next(iter(self._brokers.values()), None)
        return TopicList(
            topic_list=tuple(names),
            broker_addr=next(iter(first.addresses.values())) if first is not None else None,
        )

    # ---------------------------------------------------------------- routes

    def route(self, topic: str) -> TopicRouteData | None:
        """The route of a topic without its order configuration; None if no broker has it."""
        queues = self._queues.get(topic, {})
        brokers = [self._brokers[name] for name in queues if name in self._brokers]
        if not brokers:
            return None
        return TopicRouteData(
            queue_datas=tuple(queues.values()),
            broker_datas=tuple(
                broker.data(self._addresses(topic, broker, queues)) for broker in brokers
            ),
            filter_server_table={
                address: self._filter_servers[broker.cluster, address]
                for broker in brokers
                for address in broker.addresses.values()
                if (broker.cluster, address) in self._filter_servers
            },
            topic_queue_mapping_by_broker=self._mappings.get(topic),
        )

    def _addresses(
        self, topic: str, broker: Broker, queues: Mapping[str, QueueData]
    ) -> Mapping[int, str]:
        """The addresses for clients: a slave may take the place of its master (5.x)."""
        if (
            MASTER_ID in broker.addresses
            or not broker.acting_master
            or not self._config.support_acting_master
            or topic.startswith(SYNC_MEMBER_PREFIX)
            or queues[broker.name].perm & PermName.WRITE
        ):
            return broker.addresses
        addresses = dict(broker.addresses)
        addresses[MASTER_ID] = addresses.pop(min(addresses))
        return addresses

    def cluster_info(self) -> ClusterInfo:
        """All brokers and clusters."""
        return ClusterInfo(
            broker_addr_table={name: broker.data() for name, broker in self._brokers.items()},
            cluster_addr_table={name: sorted(its) for name, its in self._clusters.items()},
        )

    def encoded_cluster_info(self) -> bytes:
        """The text of all brokers and clusters, which is made when they have changed."""
        if self._cluster_info is None:
            self._cluster_info = self.cluster_info().encode()
        return self._cluster_info

    def member_group(self, cluster: str, broker_name: str) -> BrokerMemberGroup:
        """Master and slaves of a broker name; empty when it is unknown."""
        broker = self._brokers.get(broker_name)
        return BrokerMemberGroup(
            cluster=cluster,
            broker_name=broker_name,
            broker_addrs=dict(broker.addresses) if broker is not None else {},
        )

    @property
    def _config(self) -> NamesrvConfig:
        return self._configuration.get(NamesrvConfig)


def without_other_zones(route: TopicRouteData, zone: str) -> TopicRouteData:
    """The route without brokers of other zones that have a master (ZoneRouteRPCHook)."""
    kept: list[BrokerData] = []
    removed: list[BrokerData] = []
    for broker in route.broker_datas:
        same = (broker.zone_name or "").lower() == zone.lower()
        (kept if same or MASTER_ID not in broker.broker_addrs else removed).append(broker)
    names = {broker.broker_name for broker in removed}
    gone = {address for broker in removed for address in broker.broker_addrs.values()}
    return dataclasses.replace(
        route,
        broker_datas=tuple(kept),
        queue_datas=tuple(queue for queue in route.queue_datas if queue.broker_name not in names),
        filter_server_table={a: s for a, s in route.filter_server_table.items() if a not in gone},
    )
