# SPDX-License-Identifier: Apache-2.0
"""The broker: builds its parts, connects them, starts and stops them.

Counterpart of BrokerController, without its logic: each part gets the two or three things it uses.
"""

from __future__ import annotations

import datetime
import errno
from collections.abc import Collection, Mapping
from functools import partial
from itertools import chain
from typing import Any

from twisted.internet.defer import Deferred, DeferredList, maybeDeferred
from twisted.internet.error import CannotListenError
from twisted.logger import Logger
from twisted.python.failure import Failure

from txrocketmq.broker.all_processors import all_processors
from txrocketmq.broker.cluster.outer_api import Identity, NameServers, TopicTable
from txrocketmq.broker.delays.due_message import DEAD_LETTER_TOPIC
from txrocketmq.broker.filter.consumer_filters import FILTERS_MS
from txrocketmq.broker.intake.after_durable import SYNC_MS
from txrocketmq.broker.journal import Journal
from txrocketmq.broker.last_writes import write_all
from txrocketmq.broker.parts import KnownAs, Parts, unanswered
from txrocketmq.broker.pulls.broadcast_offsets import BROADCAST_MS
from txrocketmq.broker.settings.config import BrokerConfig
from txrocketmq.broker.store.disk.removals import RemovalJob
from txrocketmq.broker.store.formats.config import StoreConfig
from txrocketmq.broker.store.formats.errors import StoreError
from txrocketmq.broker.store.upkeep.flush import FlushJob
from txrocketmq.broker.tables.group_changes import DELAYED_MS
from txrocketmq.broker.upkeep import Upkeep
from txrocketmq.broker.work.in_thread import Done, Work
from txrocketmq.broker.work.notices import store_opened
from txrocketmq.broker.work.slices import Slices
from txrocketmq.broker.work.walks import Walks
from txrocketmq.remoting.call import PendingReply
from txrocketmq.remoting.codes import SerializeType
from txrocketmq.remoting.dispatch import Dispatcher, Guard, Registry
from txrocketmq.remoting.host.clock import Clock
from txrocketmq.remoting.host.metrics_port import MetricsPort
from txrocketmq.remoting.host.threads import Threads
from txrocketmq.remoting.rpc_times import RpcTimes
from txrocketmq.remoting.settings.config_file import Configuration
from txrocketmq.remoting.settings.tls import TlsConfig, own_client_context
from txrocketmq.remoting.transport.address import address_facing, address_of, host_bytes
from txrocketmq.remoting.transport.client import Connections
from txrocketmq.remoting.transport.failures import Failures
from txrocketmq.remoting.transport.peer import TcpPeer
from txrocketmq.remoting.transport.refusals import Refusals
from txrocketmq.remoting.transport.server import RemotingServer, configured_serialize_type

SCHEDULE_MS = 100
DELIVERY_MS = 5
"""How long delayed messages are delivered before other work has its turn, in ms."""
SECOND_MS = 1_000
EXPIRE_MS = 10_000
FIRST_PAUSE_MS, PAUSE_MS = 10, 100
"""The first and the longest pause between registrations of changed topics, in ms."""
MAX_SINGLE_TOPICS = 100
"""Up to this many changed topics are registered singly; if there are more, all topics are."""
ROUTES_MS = 30_000
"""How often routes of other brokers are requested, in ms (loadBalancePollNameServerInterval)."""
LAST_JOBS_MS = 10_000
"""How long `stop` waits for work in threads, in ms."""
_VIP_OFFSET, _HA_OFFSET = 2, 1
_MIN_REGISTER_MS = 10_000
_MAX_REGISTER_MS = 60_000

log = Logger()


class Broker:
    """One broker. `start` opens the store, listens and registers; `port` is then the real one."""

    def __init__(
        self,
        config: BrokerConfig,
        store_config: StoreConfig,
        clock: Clock | None = None,
        configuration: Configuration | None = None,
        tls: TlsConfig | None = None,
    ) -> None:
        self.clock = clock or Clock()
        self.port = config.listen_port
        self._tls = tls or TlsConfig()
        self.metrics = MetricsPort()
        self.guards: list[Guard] = []
        """Called in this order for each request on both ports before it is served."""
        self.parts = Parts(
            configuration=configuration or Configuration((config, store_config), {}),
            clock=self.clock.now_ms,
            steady_clock=self.clock.steady_ms,
            ask_route=self._ask_route,
            wake_soon=self._wake_soon,
            call_soon=lambda call: self.clock.later(0, call),
            in_thread=self._read_ahead,
            walks=Walks(partial(self.clock.later, 0), self.clock.reactor.seconds),
        )
        self.server = RemotingServer(
            self.clock.unhurried,
            self._disconnected,
            max_idle_ms=config.server_channel_max_idle_time_seconds * 1000,
            tls=self._tls,
            max_held_bytes=lambda: self.parts.config.max_bytes_held_for_peers,
        )
        self._connections: Connections | None = None
        self.name_servers: NameServers | None = None
        self._refusals = Refusals(self.clock.unhurried)
        self._failures = Failures(self.clock.unhurried)
        self._journal = Journal(self.parts)
        self._upkeep = Upkeep(
            self.parts, self._journal, self.clock.steady_ms, self._failures.by_itself
        )
        self._is_pausing = self._is_delivering = False
        self._pause_ms = FIRST_PAUSE_MS
        self._to_register: dict[str, None] = {}
        """Topics that were created, changed or deleted since the last registration."""
        self._threads = Threads(self.clock)

    @property
    def address(self) -> str:
        """The address that clients are given, once the broker has started."""
        return self.parts.known_as.address

    # ------------------------------------------------------- start and stop

    def start(self) -> None:
        """Starts the broker. Raises OSError, ValueError, CannotListenError with advice."""
        parts = self.parts
        config = parts.config
        ip = config.broker_ip1 or address_facing(config.namesrv_addr)
        own_host = address_of(ip, "brokerIP1")
        self.server.encryption.prepare()
        tls = own_client_context(self._tls) if config.use_tls else None
        self._connections = Connections(self.clock.unhurried, tls=tls)
        warnings = parts.load()
        try:
            now_ms, steady_ms = self.clock.now_ms(), self.clock.steady_ms()
            recovered = parts.store.load(
                now_ms, steady_ms, parts.topics.known(), parts.topics.has_batches
            )
        except StoreError as error:
            raise OSError(str(error)) from error
        parts.schedule.correct()
        warnings += parts.timers.open(now_ms)
        warnings += parts.restore(after_crash=not recovered.was_closed)
        store_opened(parts.store.config.store_path_root_dir, recovered, warnings)
        form = configured_serialize_type()
        # No request finds the registries empty: nothing is read before this method has returned.
        dispatcher, vip = self._dispatchers(form)
        vip_port = self._listen(dispatcher, vip)
        # From here on these count as settings: remarks and answers to tools contain them.
        own = {} if config.broker_ip1 else {"brokerIP1": ip}
        own |= {} if config.broker_ip2 else {"brokerIP2": ip}
        if own:
            parts.configuration.update(own, at_start=True)
        told = config.advertised_port or self.port
        parts.known_as = KnownAs(f"{ip}:{told}", host_bytes(own_host, told))
        registry = Registry(*all_processors(parts, form))
        dispatcher.use(registry)
        vip.use(registry.vip())
        self._join()
        self._journal.listen()
        log.info(
            "broker {name} of {cluster} listens on {port} (VIP {vip}) and registers as {address}",
            name=config.broker_name,
            cluster=config.broker_cluster_name,
            port=self.port,
            vip=vip_port,
            address=self.address,
        )
        self.name_servers = NameServers(
            self._connections,
            self._identity(ip),
            lambda: config.register_broker_timeout_mills,
            self._topic_table,
            parts.topics.set_order_topics,
            self._threads.run_or_do,
            self.clock.steady_ms,
        )
        self.register(force=True)
        self.clock.every(SECOND_MS, self.name_servers.tick)

    def _dispatchers(self, form: SerializeType) -> tuple[Dispatcher, Dispatcher]:
        """Makes the dispatchers of the two ports, which have no processors yet."""
        times = self.clock.now_ms, self.clock.steady_ms
        dispatcher = Dispatcher(Registry(), *times, self._failures, form)
        vip = Dispatcher(Registry(), *times, self._failures, form)
        for each in (dispatcher, vip):
            each.guards = self.guards
            each.on_refusal.append(self._refusals)
            self._journal.dispatchers.append(each)
        return dispatcher, vip

    def _listen(self, dispatcher: Dispatcher, vip: Dispatcher) -> int:
        """Listens on all ports and returns the VIP port; closes the store if a port is taken."""
        config = self.parts.config
        try:
            self.port = self.server.listen(config.listen_port, dispatcher, config.bind_address)
            vip_port = self.port - _VIP_OFFSET
            self.server.listen(vip_port, vip, config.bind_address)
            self.metrics.open(self.clock.unhurried, config, self._metrics, self.why_not_ready)
        except (CannotListenError, OSError):
            self.parts.store.stop(self.clock.now_ms())
            raise
        return vip_port

    def _metrics(self, labels: Mapping[str, str]) -> Any:
        # Not at the top: the package may not be there.
        from txrocketmq.broker.metrics import BrokerMetrics  # noqa: PLC0415
        from txrocketmq.remoting.transport.peer_metrics import PeerMetrics  # noqa: PLC0415

        times = RpcTimes()
        for dispatcher in self._journal.dispatchers:
            dispatcher.times = times
        metrics = BrokerMetrics(self.parts, labels, self.clock.now_ms, times)
        peers = PeerMetrics(self.server.shared, metrics.own)
        return lambda: chain(metrics.collect(), peers.collect())

    def why_not_ready(self) -> str:
        """Why clients should not connect now, as a sentence; empty when they may."""
        if self.name_servers is None or not self.name_servers.is_registered:
            return "no name server has registered this broker yet"
        return self.parts.store.why_not_writeable()

    def _identity(self, ip: str) -> Identity:
        config, store_config = self.parts.config, self.parts.store.config
        if store_config.ha_listen_port <= 0:
            ha_port = self.port + _HA_OFFSET
            self.parts.configuration.update({"haListenPort": str(ha_port)}, at_start=True)
        return Identity(
            config.broker_cluster_name,
            config.broker_name,
            config.broker_id,
            self.address,
            f"{config.broker_ip2 or ip}:{store_config.ha_listen_port}",
        )

    def _join(self) -> None:
        """Connects the parts with each other and with the clock."""
        parts, every = self.parts, self.clock.every
        store, config = parts.store, parts.config
        now_ms, steady_ms = self.clock.now_ms, self.clock.steady_ms
        # One thread is started now: when memory is short later, it would be too late.
        maybeDeferred(self.clock.in_thread, int).addErrback(
            lambda why: self._journal.went("starting a thread", why.getErrorMessage())
        )
        store.on_arrival += [parts.polling.arrived, *parts.pop.on_arrival]
        store.commit.on_demand.append(self._flush)
        parts.after_durable.on_wanted.append(lambda: self.clock.later(SYNC_MS, self._flush))
        parts.schedule.on_dead_letters.append(self._dead_letters)
        check_slices = Slices(parts.transaction_check, now_ms, steady_ms, parts.call_soon)
        revive_slices = Slices(parts.pop.revive, now_ms, steady_ms, parts.call_soon)
        timer_slices = Slices(parts.timers, now_ms, steady_ms, parts.call_soon)
        parts.schedule.reading.on_end.append(self._deliver)
        parts.schedule.on_wanted.append(self._flush)
        parts.consumers.on_change += [parts.group_changes.changed, parts.filters.changed]
        parts.topics.on_change.append(self._register_soon)
        parts.configuration.on_change.append(self._reconfigured)
        every(SCHEDULE_MS, self._deliver, first_ms=SECOND_MS)
        every(SCHEDULE_MS, timer_slices.begin)
        every(SECOND_MS, lambda: store.tick(now_ms(), steady_ms()))
        follow = self._upkeep.follow_log
        make = self._upkeep.make_files
        for tick in (
            self._journal.tick,
            follow,
            make,
            self._unlink,
            check_slices.begin,
            self._count,
        ):
            every(SECOND_MS, tick)
        every(SCHEDULE_MS, lambda: parts.pop.tick(now_ms(), steady_ms()))
        every(config.revive_interval, revive_slices.begin)
        every(SECOND_MS, lambda: parts.polling.tick(steady_ms()))
        saved = (
            parts.topics, parts.groups, parts.modes, parts.offsets, parts.filters, parts.schedule,
        )  # fmt: skip
        for part in (*saved, parts.transaction_metrics, parts.pop.orders, parts.timers.metrics):
            part.saving.in_thread = self._threads.run
            part.saving.on_end = partial(self._journal.went, f"writing {part.saving.name}")
        for part in (parts.topics, parts.groups, parts.modes, parts.timers.metrics):
            every(SECOND_MS, part.saving.begin)
        every(lambda: store.config.flush_interval_commit_log, self._flush)
        every(EXPIRE_MS, self._upkeep.expire)
        every(SCHEDULE_MS, self._save_progress)
        every(config.transaction_metric_flush_interval, parts.transaction_metrics.saving.begin)
        period_ms = min(max(config.register_name_server_period, _MIN_REGISTER_MS), _MAX_REGISTER_MS)
        every(period_ms, lambda: self.register(force=config.force_register))
        every(ROUTES_MS, self._upkeep.refresh_routes)
        every(DELAYED_MS, parts.group_changes.tick)
        every(BROADCAST_MS, lambda: parts.broadcast_offsets.scan(parts.walks))
        every(FILTERS_MS, parts.filters.clean)

    def stop(self) -> Deferred[None]:
        """Unregisters, stops listening, writes everything and closes the store, in this order."""
        done: Deferred[None] = Deferred()
        close = partial(self._close, done)
        if self.name_servers is None:
            close()
        else:
            see_off = partial(self.server.see_off, self.parts.config, close)
            self.name_servers.unregister(see_off)
        return done

    def _close(self, done: Deferred[None]) -> None:
        self._to_register.clear()
        self.clock.stop()
        self.metrics.close()
        if self._connections is not None:
            self._connections.close()

        def closed(_: Any) -> None:
            if late.active():
                late.cancel()
            if self.name_servers is not None:  # else it never started, and the store is not ours
                write_all(self.parts, self.clock.now_ms(), _not_written)
            log.info("broker {name} has stopped", name=self.parts.config.broker_name)
            done.callback(None)

        read: Deferred[None] = Deferred()
        self.parts.patience.stop(lambda: read.callback(None))
        waiting = DeferredList(
            [self.server.stop(), read, *self._threads.running], consumeErrors=True
        )

        def too_late() -> None:
            self._threads.do_here()
            waiting.cancel()

        late = self.clock.later(LAST_JOBS_MS, too_late)
        waiting.addBoth(closed)

    # ---------------------------------------------------------------- events

    def register(self, *, force: bool) -> None:
        """Registers all topics at the name servers, with the broker's permission applied."""
        if self.name_servers is not None:
            self.name_servers.set_addresses(self.parts.config.namesrv_addr)
            self.name_servers.register(force=force)

    def _topic_table(self) -> TopicTable:
        topics, config = self.parts.topics, self.parts.config
        return TopicTable(
            topics.all(),
            topics.data_version,
            config.broker_permission,
            config.split_registration_size,
            config.enable_split_registration,
        )

    def _reconfigured(self, keys: Collection[str]) -> None:
        """Registers again when changed settings are told to name servers or name other ones."""
        if "brokerPermission" in keys:
            topics = self.parts.topics
            topics.data_version = topics.data_version.next(self.clock.now_ms())
        if not {"brokerPermission", "namesrvAddr"}.isdisjoint(keys):
            self.register(force=True)

    def _register_soon(self, topic: str) -> None:
        """Registers a changed topic at once; if others follow soon, those of a pause together.

        The original registers each by itself, before it answers the request that made the topic.
        """
        self._to_register[topic] = None
        if not self._is_pausing:
            self._pause_ms = FIRST_PAUSE_MS
            self._register_topics()

    def _register_topics(self) -> None:
        """Registers the topics that changed; all topics if one was deleted, or too many changed."""
        names, self._to_register = list(self._to_register), {}
        self._is_pausing = bool(names)
        if not names:
            return
        self.clock.later(self._pause_ms, self._register_topics)
        self._pause_ms = min(2 * self._pause_ms, PAUSE_MS)
        found = [self.parts.topics.get(name) for name in names]
        changed = [topic for topic in found if topic is not None]
        if len(changed) < len(names) or len(changed) > MAX_SINGLE_TOPICS:
            self.register(force=True)
        elif self.name_servers is not None:
            self.name_servers.set_addresses(self.parts.config.namesrv_addr)
            self.name_servers.register_topics(changed)

    def _ask_route(self, topic: str) -> PendingReply:
        return self.name_servers.ask_route(topic) if self.name_servers else unanswered(topic)

    def _disconnected(self, peer: TcpPeer, steady_ms: int) -> None:
        parts = self.parts
        with self._journal.because(f"the end of the connection of {peer.remote_address}"):
            parts.pop.disconnected(peer, steady_ms)
            for part in (parts.polling, parts.patience, parts.consumers, parts.producers):
                part.disconnected(peer, steady_ms)

    def _wake_soon(self) -> None:
        self.clock.later(0, self.parts.polling.run_woken)

    def _deliver(self) -> None:
        """Delivers due delayed messages in slices until none is left."""
        if not self._is_delivering:
            self._deliver_slice()

    def _deliver_slice(self) -> None:
        self._is_delivering = False
        now_ms, steady_ms = self.clock.now_ms, self.clock.steady_ms
        end_ms = steady_ms() + DELIVERY_MS

        def is_time_up() -> bool:
            return steady_ms() >= end_ms

        while True:
            self.parts.schedule.tick(now_ms(), steady_ms(), is_time_up)
            if not self.parts.schedule.is_behind:
                return
            if is_time_up():
                break
        self._is_delivering = True
        self.clock.later(0, self._deliver_slice)

    def _save_progress(self) -> None:
        steady_ms, longest_ms = (
            self.clock.steady_ms(),
            self.parts.config.flush_consumer_offset_interval,
        )
        for saving in (self.parts.offsets.saving, self.parts.pop.orders.saving):
            saving.begin_soon(steady_ms, longest_ms)

    def _dead_letters(self, level: int, count: int, offset: int, why: str) -> None:
        self.parts.topics.create_in_heartbeat(DEAD_LETTER_TOPIC, 1)
        log.error(
            "{count} messages of delay level {delay_level}, from offset {offset} on, cannot be"
            " delivered: {why}. They are dead letters in the topic {topic}",
            count=count,
            delay_level=level,
            offset=offset,
            why=why,
            topic=DEAD_LETTER_TOPIC,
        )

    def _count(self) -> None:
        today = datetime.date.today().toordinal()  # noqa: DTZ011 - local days
        self._upkeep.sample(today)

    # ------------------------------------------------------ work in threads

    def _read_ahead(self, work: Work, done: Done) -> None:
        """Runs work in a thread, then `done` in the reactor's; a failure is logged."""

        def read(error: Exception | None) -> None:
            if error is not None:
                log.error("reading ahead failed: {error}", error=error)
            done(error)

        self._threads.run(work, read)

    def _flush(self) -> None:
        """Syncs the log in a thread, and again at once while sends wait for it."""
        job = self.parts.store.flush.begin()
        if job is not None:
            done = maybeDeferred(self.clock.in_thread, job.run)
            done.addBoth(lambda why: self._flushed(job, why))

    def _flushed(self, job: FlushJob, why: Failure | None) -> None:
        store = self.parts.store
        flush = store.flush
        if why is not None:  # no thread could be started
            job.error = OSError(errno.EAGAIN, why.getErrorMessage())
        flush.finish(job)
        if flush.error is not None:
            log.error("syncing the store failed: {error}; sends are refused", error=flush.error)
            return
        self._journal.went("syncing the store", flush.trouble)
        if flush.trouble is None and store.commit.is_wanted:
            self._flush()

    def _unlink(self) -> None:
        """Unlinks, in a thread, the files that the store has given up."""
        removals = self.parts.store.removals
        job = removals.begin()
        if job is not None:
            self._threads.run(job.run, lambda _: self._unlinked(job))

    def _unlinked(self, job: RemovalJob) -> None:
        removals = self.parts.store.removals
        removals.finish(job)
        self._journal.went("removing files of the store", removals.trouble)


def _not_written(what: str, error: Exception) -> None:
    log.error("{what} failed: {error}", what=what, error=error)
