# SPDX-License-Identifier: Apache-2.0
"""The brokers and clusters that are alive, and the queues of topics.

Pure: `steady_ms` and an opaque `channel` are arguments, and there is no I/O. Events of brokers are
collected for the owner of the table. Invariants: a broker name has at least one address, and an
address one id; a cluster has at least one broker name. What went leaves work for `cleaning`, which
is to be done in turns with everything else. Counterpart of RouteInfoManager.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from itertools import chain, islice
from typing import Final, TypeVar

from txrocketmq.namesrv.config import NamesrvConfig
from txrocketmq.namesrv.routes.brokers import (
    BROKER_EXPIRED_MS,
    MASTER_ID,
    MAX_ADDRESSES,
    Broker,
    LiveBroker,
)
from txrocketmq.namesrv.routes.registration import Registered, Registration
from txrocketmq.namesrv.routes.route_events import (
    BrokerJoined,
    BrokerLeft,
    Event,
    MinIdChanged,
    RegistrationIgnored,
    TwoOfOneId,
)
from txrocketmq.namesrv.routes.route_view import ClusterView, RouteView
from txrocketmq.namesrv.routes.topic_queues import TopicQueues
from txrocketmq.remoting.message.flags import PermName
from txrocketmq.remoting.protocol.body.route import (
    BrokerMemberGroup,
    ClusterInfo,
    DataVersion,
    QueueData,
    TopicRouteData,
)
from txrocketmq.remoting.protocol.body.static_topic import TopicQueueMappingInfo
from txrocketmq.remoting.protocol.body.topic import TopicList
from txrocketmq.remoting.settings.config_file import Configuration

T = TypeVar("T")

_TOPICS_A_STEP: Final = 8
_BROKERS_A_STEP: Final = 128
_AT_ONCE: Final = 16
"""How many brokers of one connection leave at once, when it ends; the others do so in steps."""


class RouteTable:
    """All that a name server keeps of brokers.

    `events` has what happened since they were last taken.
    """

    def __init__(self, configuration: Configuration) -> None:
        self._configuration = configuration
        self._topics = TopicQueues()
        self.version = 0
        """Changes when brokers or clusters change."""
        self._brokers: dict[str, Broker] = {}
        self._clusters: dict[str, set[str]] = {}
        self._clusters_of: dict[str, set[str]] = {}
        """The clusters that each broker name has registered in, of which there is one as a rule."""
        self._live: dict[tuple[str, str], LiveBroker] = {}
        self._of_channel: dict[object, dict[tuple[str, str], None]] = {}
        """The live brokers of each connection."""
        self._ended: list[tuple[object, Iterable[tuple[str, str]]]] = []
        """Brokers of connections that have ended, which have yet to leave."""
        self._headless: dict[str, None] = {}
        """Names of brokers without a master, whose topics have yet to be made read-only."""
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
        return len(self._topics)

    def take_events(self) -> list[Event]:
        """Returns what happened to brokers since the last call."""
        events, self._events = self._events, []
        return events

    # --------------------------------------------------------- registrations

    def register(self, it: Registration, channel: object, steady_ms: int) -> Registered | None:
        """Takes all steps of `registering` at once."""
        return taken(self.registering(it, channel, steady_ms))

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
        if old_address is None and (len(it.topics) == 1 or len(others) >= MAX_ADDRESSES):
            return None  # the incremental registration of a broker that is not known in full
        if live is not None and live.broker_name != it.broker_name:
            self._leave(live, f"it is {it.broker_name} now")
            live = None
        self._note_two(it, old_address)
        min_id_changed = it.broker_id < min(broker.addresses, default=0)
        broker = _updated(broker, it, {**others, it.broker_id: it.address})
        self._keep(it.cluster, broker)
        changed = not old_address or live is None or live.data_version != it.data_version
        if live is None:
            self._events.append(
                BrokerJoined(it.cluster, it.broker_name, it.broker_id, it.address, len(it.topics))
            )
        else:
            self._forget_channel(live)
        mine = self._join(it, channel, steady_ms)
        self._take_filter_servers(it)
        if min_id_changed:
            self._min_id_changed(broker, None, it.ha_address)
        for count, _ in enumerate(self._topics_registered(it, broker, changed=changed), 1):
            if count % _TOPICS_A_STEP == 0:
                yield
                if self._live.get(key) is not mine:
                    return Registered()
        mine.data_version = it.data_version
        return self._master_of(it.broker_name) if it.broker_id != MASTER_ID else Registered()

    def _keep(self, cluster: str, broker: Broker) -> None:
        """Puts what is known of a broker name in the place of what was known before."""
        names = self._clusters.setdefault(cluster, set())
        if broker != self._brokers.get(broker.name) or broker.name not in names:
            names.add(broker.name)
            self._clusters_of.setdefault(broker.name, set()).add(cluster)
            self._brokers[broker.name] = broker
            self.version += 1

    def _join(self, it: Registration, channel: object, steady_ms: int) -> LiveBroker:
        """Adds a broker process, whose topics are not registered yet."""
        key = (it.cluster, it.address)
        self._of_channel.setdefault(channel, {})[key] = None
        live = self._live[key] = LiveBroker(
            cluster=it.cluster,
            broker_name=it.broker_name,
            address=it.address,
            last_seen_ms=steady_ms,
            timeout_ms=it.heartbeat_timeout_ms or BROKER_EXPIRED_MS,
            data_version=DataVersion(state_version=it.data_version.state_version),
            channel=channel,
            ha_address=it.ha_address,
        )
        return live

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
            for name in self._topics.topics_of(broker.name):
                if name not in it.topics:
                    self._topics.remove(name, broker.name)
                yield
        read_only = is_prime_slave and broker.acting_master
        for name, topic in it.topics.items():
            topic_name = topic.topic_name or name
            if changed or not self._topics.has(topic_name, broker.name):
                queues = QueueData(
                    broker_name=broker.name,
                    read_queue_nums=topic.read_queue_nums,
                    write_queue_nums=topic.write_queue_nums,
                    perm=topic.perm & ~PermName.WRITE if read_only else topic.perm,
                    topic_sys_flag=topic.topic_sys_flag,
                )
                self._topics.put(topic_name, queues)
            yield
        if changed:
            for name, mapping in it.queue_mappings.items():
                self._mappings.setdefault(name, {})[mapping.bname or broker.name] = mapping
                yield

    def _master_of(self, broker_name: str) -> Registered:
        broker = self._brokers.get(broker_name)
        master = broker.addresses.get(MASTER_ID) if broker is not None else None
        live = self._live.get((broker.cluster, master)) if broker and master else None
        return Registered(master, live.ha_address) if live else Registered()

    def unregister(self, cluster: str, broker_name: str, address: str) -> None:
        """Removes a broker process that says it is stopping."""
        live = self._live.get((cluster, address))
        if live is not None:
            self._leave(live, "it unregistered")
        self._remove_address(broker_name, address)

    def channel_closed(self, channel: object) -> None:
        """Removes the brokers that registered over a connection which has ended."""
        keys = self._of_channel.pop(channel, ())
        gone = [self._live[key] for key in islice(keys, _AT_ONCE)]
        for live in gone:
            self._leave(live, "its connection ended")
        if len(keys) > len(gone):
            self._ended.append((channel, keys))

    def expire(self, steady_ms: int) -> list[LiveBroker]:
        """Takes all steps of `expiring` at once; returns the brokers that are removed."""
        return list(filter(None, self.expiring(steady_ms)))

    def expiring(self, steady_ms: int) -> Iterator[LiveBroker | None]:
        """Removes the brokers that were silent for too long, and yields each; None are pauses."""
        for count, (key, live) in enumerate(list(self._live.items()), 1):
            is_late = live.last_seen_ms + live.timeout_ms < steady_ms
            if is_late and self._live.get(key) is live:
                self._leave(live, f"it was silent for {live.timeout_ms} ms")
                yield live
            elif count % _BROKERS_A_STEP == 0:
                yield None

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
        self._forget_channel(live)
        self._filter_servers.pop(key, None)
        self._events.append(BrokerLeft(live.cluster, live.broker_name, live.address, reason))
        self._remove_address(live.broker_name, live.address)

    def _forget_channel(self, live: LiveBroker) -> None:
        keys = self._of_channel.get(live.channel, {})
        keys.pop((live.cluster, live.address), None)
        if not keys:
            self._of_channel.pop(live.channel, None)

    def _remove_address(self, broker_name: str, address: str) -> None:
        """Removes an address of a broker name; if it was the last, also the name and its topics."""
        broker = self._brokers.get(broker_name)
        if broker is None or address not in broker.addresses.values():
            return
        smallest = min(broker.addresses)
        self.version += 1
        left = {i: its for i, its in broker.addresses.items() if its != address}
        if not left:
            self._remove_broker(broker)
            return
        broker = self._brokers[broker_name] = dataclasses.replace(broker, addresses=left)
        if broker.lacks_master:
            self._headless[broker_name] = None
        if smallest not in broker.addresses and broker.acting_master:
            self._min_id_changed(broker, address, None)

    def _remove_broker(self, broker: Broker) -> None:
        """Removes a broker name; from now on its topics are not found, and `cleaning` is due."""
        del self._brokers[broker.name]
        for cluster in self._clusters_of.pop(broker.name, ()):
            names = self._clusters[cluster]
            names.discard(broker.name)
            if not names:
                del self._clusters[cluster]
        self._topics.leave(broker.name)

    # -------------------------------------------------------------- cleaning

    @property
    def is_to_clean(self) -> bool:
        """Whether something is left for `cleaning`."""
        return bool(self._ended or self._headless or self._topics.is_to_clean)

    def cleaning(self) -> Generator[None, None, None]:
        """Does what brokers and topics that went have left to do, some of it in each step.

        Nobody sees a difference.
        """
        while self.is_to_clean:
            while self._ended:
                yield from self._end(*self._ended.pop())
            while self._headless:
                name = next(iter(self._headless))
                yield from self._topics.set_perm(name, _without_write, partial(self._lacks, name))
                self._headless.pop(name, None)
            yield from self._topics.cleaning()

    def _lacks(self, broker_name: str) -> bool:
        broker = self._brokers.get(broker_name)
        return broker is not None and broker.lacks_master

    def _end(self, channel: object, keys: Iterable[tuple[str, str]]) -> Generator[None, None, None]:
        for key in keys:
            live = self._live.get(key)
            if live is not None and live.channel is channel:
                self._leave(live, "its connection ended")
            yield

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
                self._topics.put(topic, each)

    def delete_topic(self, topic: str, cluster: str | None = None) -> None:
        """Removes a topic, everywhere or on the brokers of a cluster; `cleaning` is due then."""
        brokers = None if cluster is None else self._clusters.get(cluster, set())
        self._topics.delete(topic, brokers)

    def wipe_write_perm(self, broker_name: str) -> Generator[None, None, int]:
        """Takes the write permission of all topics of a broker, some in each step; returns how
        many there are.
        """
        return self._topics.set_perm(broker_name, _without_write)

    def add_write_perm(self, broker_name: str) -> Generator[None, None, int]:
        """Lets all topics of a broker be read and written, some a step; returns how many."""
        return self._topics.set_perm(broker_name, lambda _: PermName.READ | PermName.WRITE)

    def topics(self) -> TopicList:
        """The names of all topics."""
        return TopicList(topic_list=tuple(chain.from_iterable(self.topics_in_turns())))

    def topics_in_turns(
        self, wanted: Callable[[Mapping[str, QueueData]], bool] | None = None
    ) -> Iterator[list[str]]:
        """The names of topics, after some of them were looked at; `wanted` is asked about the
        queues of each, as they are then.
        """
        return self._topics.topics(wanted)

    def broker_names(self, cluster: str) -> AbstractSet[str]:
        """The names of the brokers of a cluster, as they are now."""
        return frozenset(self._clusters.get(cluster, ()))

    def system_topics_in_turns(self) -> tuple[str | None, Iterator[Sequence[str]]]:
        """The names of clusters and brokers, which are topics too, and a broker to ask for more.

        They come as an address, or None, and some names at a time; all are those of this moment.
        """
        first = next(iter(self._brokers.values()), None)
        address = next(iter(first.addresses.values())) if first is not None else None
        return address, _in_portions(self.cluster_view().clusters)

    # ---------------------------------------------------------------- routes

    def route(self, topic: str) -> TopicRouteData | None:
        """The route of a topic without its order configuration; None if no broker has it."""
        view = self.view(topic)
        return None if view is None else taken(view.route())

    def view(self, topic: str) -> RouteView | None:
        """What is known of a topic at this moment; None if no broker has it."""
        queues = dict(self._topics.of(topic))
        brokers = tuple(filter(None, map(self._brokers.get, queues)))
        if not brokers:
            return None
        mappings = self._mappings.get(topic)
        return RouteView(
            topic,
            queues,
            brokers,
            dict(self._filter_servers),
            None if mappings is None else dict(mappings),
            self._config.support_acting_master,
            frozenset(self._headless),
        )

    def cluster_info(self) -> ClusterInfo:
        """All brokers and clusters."""
        return self.cluster_view().info()

    def cluster_view(self) -> ClusterView:
        """All brokers and clusters at this moment."""
        return ClusterView(
            dict(self._brokers), {name: sorted(its) for name, its in self._clusters.items()}
        )

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


def _without_write(perm: int) -> int:
    return perm & ~PermName.WRITE


def taken(steps: Generator[None, None, T]) -> T:
    """Takes all steps at once; returns their result."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: T = end.value
            return result


def _in_portions(clusters: Mapping[str, Sequence[str]]) -> Iterator[Sequence[str]]:
    """The names of clusters, each with those of its brokers."""
    for cluster, names in clusters.items():
        yield (cluster,)
        for at in range(0, len(names), _BROKERS_A_STEP):
            yield names[at : at + _BROKERS_A_STEP]


def _updated(broker: Broker, it: Registration, addresses: dict[int, str]) -> Broker:
    """Returns what is known of a broker name after a registration, which may say nothing new."""
    acting, zone = bool(it.enable_acting_master), it.zone
    if (broker.acting_master, broker.zone, broker.addresses) == (acting, zone, addresses):
        return broker
    return dataclasses.replace(broker, acting_master=acting, zone=zone, addresses=addresses)
