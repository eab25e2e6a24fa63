# SPDX-License-Identifier: Apache-2.0
"""The broker: builds its parts, joins them, starts and stops them.

Counterpart of BrokerController, without its logic: each part gets the two or three things it uses.
"""

from __future__ import annotations

import datetime
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from twisted.internet.defer import Deferred, DeferredList, maybeDeferred
from twisted.internet.error import CannotListenError
from twisted.logger import Logger

from txrocketmq.broker.all_processors import all_processors
from txrocketmq.broker.clients import Consumers, Producers
from txrocketmq.broker.config import BrokerConfig
from txrocketmq.broker.group_changes import DELAYED_MS, GroupChanges
from txrocketmq.broker.json_file import JsonFile
from txrocketmq.broker.long_polling import LongPolling
from txrocketmq.broker.message_request_mode import MessageRequestModes
from txrocketmq.broker.offset import ConsumerOffsets
from txrocketmq.broker.outer_api import Identity, NameServers
from txrocketmq.broker.queue_locks import QueueLocks
from txrocketmq.broker.schedule import DelayLevels, Schedule
from txrocketmq.broker.stats import BrokerStats
from txrocketmq.broker.store.config import StoreConfig
from txrocketmq.broker.store.errors import StoreError
from txrocketmq.broker.store.flush import FlushJob
from txrocketmq.broker.store.message_store import MessageStore
from txrocketmq.broker.subscription import SubscriptionGroups
from txrocketmq.broker.topic import Topics
from txrocketmq.broker.topic_routes import TopicRoutes
from txrocketmq.remoting.call import PendingReply
from txrocketmq.remoting.config_file import Configuration
from txrocketmq.remoting.dispatch import Dispatcher, Registry
from txrocketmq.remoting.errors import ConnectError
from txrocketmq.remoting.message.ids import UniqueKeys
from txrocketmq.remoting.transport.address import address_facing, address_of
from txrocketmq.remoting.transport.client import Connections
from txrocketmq.remoting.transport.clock import Clock
from txrocketmq.remoting.transport.peer import TcpPeer, host_bytes
from txrocketmq.remoting.transport.server import (
    RemotingServer,
    configured_serialize_type,
    log_failure,
)

SCHEDULE_MS = 100
SECOND_MS = 1_000
EXPIRE_MS = 10_000
PAUSE_MS = 100
"""Between two registrations of topics: each carries them all."""
ROUTES_MS = 30_000
"""How often routes of other brokers are asked for (loadBalancePollNameServerInterval)."""
_VIP_OFFSET = 2
_HA_OFFSET = 1
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
    ) -> None:
        self.clock = clock or Clock()
        self.config = config
        self.configuration = configuration or Configuration((config, store_config), {})
        self.port = config.listen_port
        self.store = MessageStore(store_config)
        folder = Path(store_config.store_path_root_dir) / "config"
        now_ms = self.clock.now_ms
        self.topics = Topics(config, JsonFile(folder / "topics.json"), now_ms)
        self.groups = SubscriptionGroups(
            config, JsonFile(folder / "subscriptionGroup.json"), now_ms
        )
        self.offsets = ConsumerOffsets(JsonFile(folder / "consumerOffset.json"), now_ms)
        self.delay_levels = DelayLevels(store_config.message_delay_level)
        self.schedule = Schedule(
            self.delay_levels, self.store, JsonFile(folder / "delayOffset.json"), now_ms()
        )
        self.consumers = Consumers(expired_ms=config.channel_expired_timeout)
        self.group_changes = GroupChanges(config, self.groups, self.consumers)
        self.consumers.on_change = self.group_changes.changed
        self.producers = Producers(config.channel_expired_timeout)
        self.locks = QueueLocks()
        self.modes = MessageRequestModes(JsonFile(folder / "messageRequestMode.json"))
        self.routes = TopicRoutes(self._ask_route)
        self.stats = BrokerStats(config.broker_cluster_name, self.topics.is_system, now_ms())
        self.polling = LongPolling(self.store.max_offset, self._has_tag, self._wake_soon)
        self._server = RemotingServer(
            self.clock.steady,
            self._disconnected,
            max_idle_ms=config.server_channel_max_idle_time_seconds * 1000,
        )
        self._connections = Connections(self.clock.steady)
        self.name_servers: NameServers | None = None
        self.serialize_type = configured_serialize_type()
        self.address = ""
        self.store_host = b""
        self.unique_keys = UniqueKeys(bytes(4), os.getpid(), id(self))
        self._is_pausing = self._is_due = False
        self._saving: dict[str, Deferred[Any]] = {}

    # ------------------------------------------------------- start and stop

    def start(self) -> None:
        """Raises OSError, ValueError, CannotListenError: the text says what to do."""
        config = self.config
        ip = config.broker_ip1 or address_facing(config.namesrv_addr)
        own_host = address_of(ip, "brokerIP1")
        for part in (self.topics, self.groups, self.offsets, self.schedule, self.modes):
            part.load()
        try:
            recovered = self.store.load(self.clock.now_ms())
        except StoreError as error:
            raise OSError(str(error)) from error
        self.schedule.correct()
        log.info("store {path} {what}", path=self.store.config.store_path_root_dir, what=recovered)
        for warning in recovered.warnings:
            log.warn("store: {warning}", warning=warning)
        form = self.serialize_type
        dispatcher = Dispatcher(Registry(), self.clock.now_ms, log_failure, form)
        vip = Dispatcher(Registry(), self.clock.now_ms, log_failure, form)
        try:
            self.port = self._server.listen(config.listen_port, dispatcher, config.bind_address)
            vip_port = self.port - _VIP_OFFSET
            self._server.listen(vip_port, vip, config.bind_address)
        except CannotListenError:
            self.store.stop(self.clock.now_ms())
            raise
        if not config.broker_ip1:  # from here on as if it had been set: it stands in remarks
            config.broker_ip1 = ip
            self.configuration.update({"brokerIP1": ip})
        self.address = f"{ip}:{self.port}"
        self.store_host = host_bytes(own_host, self.port)
        self.unique_keys = UniqueKeys(self.store_host[:-4], os.getpid(), id(self))
        registry = Registry(*all_processors(self))
        dispatcher.use(registry)
        vip.use(registry.vip())
        self._join()
        log.info(
            "broker {name} of {cluster} listens on {port} (VIP {vip}), is known as {address}",
            name=config.broker_name,
            cluster=config.broker_cluster_name,
            port=self.port,
            vip=vip_port,
            address=self.address,
        )
        self.name_servers = NameServers(
            self._connections,
            self._identity(ip),
            config.register_broker_timeout_mills,
            self.topics.set_order_topics,
        )
        self.register(force=True)

    def _identity(self, ip: str) -> Identity:
        config, ha_port = self.config, self.store.config.ha_listen_port
        if ha_port <= 0:
            ha_port = self.port + _HA_OFFSET
            self.configuration.update({"haListenPort": str(ha_port)})
        return Identity(
            config.broker_cluster_name,
            config.broker_name,
            config.broker_id,
            self.address,
            f"{config.broker_ip2 or ip}:{ha_port}",
        )

    def _join(self) -> None:
        """Events and clocks of the parts."""
        store, every, config = self.store, self.clock.every, self.config
        store.on_arrival = self.polling.arrived
        store.flush.on_demand = self._flush
        self.schedule.on_refused = _level_stands_still
        self.topics.on_change = lambda _: self._register_soon()
        every(SCHEDULE_MS, lambda: self.schedule.tick(self.clock.now_ms()), first_ms=SECOND_MS)
        every(SECOND_MS, lambda: store.tick(self.clock.now_ms()))
        every(SECOND_MS, lambda: self.polling.tick(self.clock.now_ms()))
        every(SECOND_MS, self._count)
        every(SECOND_MS, lambda: self._save("topics.json", self.topics.changes))
        every(SECOND_MS, lambda: self._save("subscriptionGroup.json", self.groups.changes))
        every(lambda: store.config.flush_interval_commit_log, self._flush)
        every(EXPIRE_MS, self._expire)
        every(
            config.flush_consumer_offset_interval,
            lambda: self._save("consumerOffset.json", self.offsets.changes),
        )
        every(
            store.config.flush_delay_offset_interval,
            lambda: self._save(
                "delayOffset.json", lambda: self.schedule.changes(self.clock.now_ms())
            ),
        )
        period_ms = min(max(config.register_name_server_period, _MIN_REGISTER_MS), _MAX_REGISTER_MS)
        every(period_ms, lambda: self.register(force=config.force_register))
        every(ROUTES_MS, self.routes.refresh)
        every(DELAYED_MS, self.group_changes.tick)

    def stop(self) -> Deferred[None]:
        """Unregisters, lets no one in, writes everything, closes the store; in this order."""
        done: Deferred[None] = Deferred()
        if self.name_servers is None:
            self._close(done)
        else:
            self.name_servers.unregister(lambda: self._close(done))
        return done

    def _close(self, done: Deferred[None]) -> None:
        self._is_due = False
        self.clock.stop()
        self._connections.close()

        def closed(_: Any) -> None:
            if self.name_servers is not None:  # else it never started, and the store is not ours
                self._write_all()
            log.info("broker {name} has stopped", name=self.config.broker_name)
            done.callback(None)

        waiting = [self._server.stop(), *self._saving.values()]
        DeferredList(waiting, consumeErrors=True).addBoth(closed)

    def _write_all(self) -> None:
        """What is only in memory, then the store's last marks; what fails holds up nothing else."""
        now_ms = self.clock.now_ms()
        for what, write in (
            ("flushing the store", self.store.flush.flush_all),
            ("writing consumerOffset.json", lambda: _run(self.offsets.changes())),
            ("writing delayOffset.json", lambda: _run(self.schedule.changes(now_ms))),
            ("writing topics.json", self.topics.save),
            ("writing subscriptionGroup.json", self.groups.save),
            ("closing the store", lambda: self.store.stop(now_ms)),
        ):
            try:
                write()
            except (OSError, StoreError) as error:
                log.error(  # noqa: TRY400 - a full disk is no defect of ours
                    "{what} failed: {error}", what=what, error=error
                )

    # ---------------------------------------------------------------- events

    def register(self, *, force: bool) -> None:
        """Tells the name servers the topics, with the broker's permission applied."""
        if self.name_servers is not None:
            self.name_servers.set_addresses(self.config.namesrv_addr)
            self.name_servers.register(
                self.topics.for_registration(), self.topics.data_version, force=force
            )

    def _register_soon(self) -> None:
        """At once; but when topics come one after the other, once for all that came in a pause."""
        if self._is_pausing:
            self._is_due = True
            return
        self._is_pausing = True
        self.register(force=True)
        self.clock.later(PAUSE_MS, self._after_pause)

    def _after_pause(self) -> None:
        self._is_pausing = False
        if self._is_due:
            self._is_due = False
            self._register_soon()

    def _ask_route(self, topic: str) -> PendingReply:
        if self.name_servers is not None:
            return self.name_servers.ask_route(topic)
        pending = PendingReply()
        pending.resolve(ConnectError("this broker has not started"))
        return pending

    def _disconnected(self, peer: TcpPeer, now_ms: int) -> None:
        self.polling.disconnected(peer, now_ms)
        self.consumers.disconnected(peer, now_ms)
        self.producers.disconnected(peer, now_ms)

    def _wake_soon(self) -> None:
        self.clock.later(0, self.polling.run_woken)

    def _has_tag(
        self, topic: str, queue_id: int, start: int, end: int, wanted: frozenset[int]
    ) -> bool:
        units = self.store.queue_units(topic, queue_id, start, end - start)
        return any(code in wanted for _, _, code in units)

    def _count(self) -> None:
        today = datetime.date.today().toordinal()  # noqa: DTZ011 - local days
        self.stats.tick(self.clock.now_ms(), today)

    def _expire(self) -> None:
        now_ms = self.clock.now_ms()
        self.locks.expire(now_ms)
        for peer in {*self.consumers.expire(now_ms), *self.producers.expire(now_ms)}:
            peer.close()

    # ------------------------------------------------------ work in threads

    def _flush(self) -> None:
        """Syncs the log in a thread; again at once while somebody waits for it."""
        job = self.store.flush.begin()
        if job is not None:
            self.clock.in_thread(job.run).addBoth(lambda _: self._flushed(job))

    def _flushed(self, job: FlushJob) -> None:
        self.store.flush.finish(job)
        if job.error is not None:
            log.error("syncing the store failed: {error}; no more is taken", error=job.error)
        elif self.store.flush.is_wanted:
            self._flush()

    def _save(self, name: str, changes: Callable[[], Callable[[], None] | None]) -> None:
        """Writes a configuration file in a thread, one write of each at a time."""
        if name in self._saving:
            return
        write = changes()
        if write is None:
            return
        saved = self._saving[name] = maybeDeferred(self.clock.in_thread, write)
        saved.addErrback(
            lambda why: log.error(
                "writing {name} failed: {error}", name=name, error=why.getErrorMessage()
            )
        )
        saved.addBoth(lambda _: self._saving.__delitem__(name))


def _run(write: Callable[[], None] | None) -> None:
    if write is not None:
        write()


def _level_stands_still(level: int, topic: str, status: str) -> None:
    log.warn(
        "delay level {level} stands still: the store refuses a message for {topic}: {status}",
        level=level,
        topic=topic,
        status=status,
    )
