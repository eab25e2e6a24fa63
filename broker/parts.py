# SPDX-License-Identifier: Apache-2.0
"""The parts of a broker, built once, for its service, its processors and the tests.

`Parts` owns no thread, no timer and no socket. What the parts do by themselves is declared beside
them (all_parts.py). The service sets `known_as` when the broker has its address; only then can
processors be built. Counterpart of the fields of BrokerController.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from txrocketmq.broker.accounts.access import Access
from txrocketmq.broker.cluster.members import Members
from txrocketmq.broker.cluster.registration import Registration
from txrocketmq.broker.cluster.strict_locks import StrictLocks
from txrocketmq.broker.cluster.topic_routes import TopicRoutes
from txrocketmq.broker.controller.controlled import Controlled
from txrocketmq.broker.delays.schedule import Schedule
from txrocketmq.broker.engines.role import Role
from txrocketmq.broker.filter.consumer_filters import ConsumerFilters
from txrocketmq.broker.intake.after_durable import AfterDurable
from txrocketmq.broker.intake.all_transforms import Others, all_transforms
from txrocketmq.broker.intake.intake import Intake
from txrocketmq.broker.intake.transform import Transforms
from txrocketmq.broker.kernel.chosen import Kernel
from txrocketmq.broker.pop.pop import Pop
from txrocketmq.broker.pulls.broadcast_offsets import BroadcastOffsets
from txrocketmq.broker.pulls.long_polling import LongPolling
from txrocketmq.broker.replication.acting import Acting
from txrocketmq.broker.replication.config_copy import ConfigCopy, Tables
from txrocketmq.broker.replication.escape import Escape
from txrocketmq.broker.replication.master import Master
from txrocketmq.broker.replication.new_topics import NewTopics
from txrocketmq.broker.replication.popped_elsewhere import PoppedElsewhere
from txrocketmq.broker.replication.pre_online import PreOnline
from txrocketmq.broker.replication.slave import Slave
from txrocketmq.broker.settings.config import BrokerConfig
from txrocketmq.broker.store.disk.files import OsFiles
from txrocketmq.broker.store.formats.config import StoreConfig
from txrocketmq.broker.store.formats.delay_levels import DelayLevels
from txrocketmq.broker.store.formats.packed import PackedRows
from txrocketmq.broker.store.message_store import MessageStore
from txrocketmq.broker.store.queues.light_queues import is_served
from txrocketmq.broker.store_services import StoreServices
from txrocketmq.broker.tables.clients import Consumers, Producers
from txrocketmq.broker.tables.group_changes import GroupChanges
from txrocketmq.broker.tables.lost_files import LostFiles
from txrocketmq.broker.tables.message_request_mode import MessageRequestModes
from txrocketmq.broker.tables.offset import ConsumerOffsets
from txrocketmq.broker.tables.queue_locks import QueueLocks
from txrocketmq.broker.tables.stats import BrokerStats
from txrocketmq.broker.tables.subscription import SubscriptionGroups
from txrocketmq.broker.tables.topic import Topics
from txrocketmq.broker.timer.metrics import TimerMetrics
from txrocketmq.broker.timer.timer_escape import TimerEscape
from txrocketmq.broker.timer.timers import Timers
from txrocketmq.broker.transaction.check import TransactionCheck
from txrocketmq.broker.transaction.metrics import TransactionMetrics
from txrocketmq.broker.transaction.question import Questions
from txrocketmq.broker.work.in_order import InOrder
from txrocketmq.broker.work.in_thread import InThread, at_once
from txrocketmq.broker.work.json_file import JsonFile
from txrocketmq.broker.work.patience import Patience
from txrocketmq.broker.work.walks import Walks
from txrocketmq.remoting.dispatch import Dispatcher
from txrocketmq.remoting.message.ids import UniqueKeys
from txrocketmq.remoting.settings.config_file import Configuration
from txrocketmq.remoting.transport.raw.raw_connection import RawHandler


@dataclass(frozen=True, slots=True)
class KnownAs:
    """How others know this broker, once it listens."""

    address: str = ""
    """The address that clients are told, "host:port"."""
    store_host: bytes = b""
    """The same address as in records: 4 or 16 bytes of IP, 4 of port."""

    def unique_keys(self) -> UniqueKeys:
        """A source of unique keys for messages that come without one."""
        return UniqueKeys(self.store_host[:-4] or bytes(4), os.getpid(), id(self))


@dataclass(kw_only=True)
class Parts:
    """The parts of a broker.

    `clock` returns the time in milliseconds since the epoch, `steady_clock` the time by which
    durations are measured; without the latter, the former is used for both. The service provides
    the rest: `call_soon` calls a function in a later turn of the reactor, `at_end_of_turn` before
    the reactor waits again, `later` after some ms.
    `in_thread` runs what reads files, and `write_in_thread` what writes them, which is waited for
    at the end. `walks` is the service's too; without a service a walk runs to its end at once, as
    does all else.
    """

    configuration: Configuration
    """The settings of the broker: a BrokerConfig and a StoreConfig."""
    clock: Callable[[], int]
    steady_clock: Callable[[], int] | None = None
    wake_soon: Callable[[], None] = lambda: None
    call_soon: Callable[[Callable[[], None]], object] = lambda call: call()
    at_end_of_turn: Callable[[Callable[[], None]], object] = lambda call: call()
    later: Callable[[float, Callable[[], None]], object] = lambda _, call: call()
    controlled: Controlled | None = None
    """What a controller has decided for this broker; None without one."""
    in_thread: InThread = at_once
    write_in_thread: InThread = at_once
    walks: Walks = field(default_factory=lambda: Walks(lambda call: call(), lambda: 0.0))
    known_as: KnownAs = field(default_factory=KnownAs)
    kernel: Kernel | None = None
    """What reads sends and pulls from bytes; None: they are read as all requests are."""
    raw_requests: list[RawHandler] = field(init=False, default_factory=list)
    """Serve what that reads; the processors make them."""
    dispatcher: Dispatcher = field(init=False)
    """Serves all requests that come to the usual port."""

    config: BrokerConfig = field(init=False)
    role: Role = field(init=False)
    access: Access = field(init=False)
    store: MessageStore = field(init=False)
    store_services: StoreServices = field(init=False)
    topics: Topics = field(init=False)
    groups: SubscriptionGroups = field(init=False)
    offsets: ConsumerOffsets = field(init=False)
    lost_files: LostFiles = field(init=False)
    broadcast_offsets: BroadcastOffsets = field(init=False)
    delay_levels: DelayLevels = field(init=False)
    intake: Intake = field(init=False)
    after_durable: AfterDurable = field(init=False)
    schedule: Schedule = field(init=False)
    timers: Timers = field(init=False)
    timer_escape: TimerEscape | None = field(init=False)
    """What sends timer messages elsewhere, while this is a slave that acts as master."""
    transaction_check: TransactionCheck = field(init=False)
    transaction_metrics: TransactionMetrics = field(init=False)
    consumers: Consumers = field(init=False)
    producers: Producers = field(init=False)
    filters: ConsumerFilters = field(init=False)
    group_changes: GroupChanges = field(init=False)
    locks: QueueLocks = field(init=False)
    modes: MessageRequestModes = field(init=False)
    registration: Registration = field(init=False)
    routes: TopicRoutes = field(init=False)
    stats: BrokerStats = field(init=False)
    polling: LongPolling = field(init=False)
    pop: Pop = field(init=False)
    patience: Patience = field(init=False)
    master: Master = field(init=False)
    new_topics: NewTopics = field(init=False)
    config_copy: ConfigCopy | None = field(init=False)
    """What copies the tables of the master, if this broker is a slave."""
    slave: Slave | None = field(init=False, default=None)
    """What follows the master, if this broker is a slave."""
    members: Members = field(init=False)
    acting: Acting = field(init=False)
    pre_online: PreOnline = field(init=False)
    strict_locks: StrictLocks = field(init=False)
    escape: Escape = field(init=False)
    popped_elsewhere: PoppedElsewhere = field(init=False)
    in_order: InOrder = field(init=False)
    files: list[JsonFile] = field(init=False, default_factory=list)
    """The files of `config/` that hold tables."""

    def __post_init__(self) -> None:
        """Builds all parts; reads no file yet."""
        clock, steady_clock = self.clock, self.steady_clock or self.clock
        config = self.config = self.configuration.get(BrokerConfig)
        store_config = self.configuration.get(StoreConfig)
        self.role = Role(store_config, lambda: config.slave_read_enable)
        folder = Path(store_config.store_path_root_dir) / "config"
        self.access = Access(config, folder, steady_clock, clock, self.write_in_thread)
        self.files += self.access.files()

        def file(name: str) -> JsonFile:
            self.files.append(JsonFile(folder / name))
            return self.files[-1]

        self.patience = self.walks.patience = Patience(self.in_thread)
        self.in_order = InOrder(self.walks)
        self._make_store(store_config, files := OsFiles(), steady_clock)
        self.acting = Acting(config, self.slave)
        light = is_served(store_config)
        self.topics = Topics(config, file("topics.json"), clock, has_light_queues=light)
        self.groups = SubscriptionGroups(
            config, file("subscriptionGroup.json"), clock, has_light_queues=light
        )
        self.offsets = ConsumerOffsets(offsets_file := file("consumerOffset.json"), clock)
        if light:
            light_file = file("lmqConsumerOffset.json")
            self.offsets = ConsumerOffsets(light_file, clock, before=offsets_file)
        self.lost_files = LostFiles(self.topics, self.groups, self.offsets, self.store)
        self.delay_levels = DelayLevels(store_config.message_delay_level)
        self.consumers = Consumers(expired_ms=config.channel_expired_timeout)
        self.producers = Producers(config.channel_expired_timeout)
        self.filters = self._filters(file("consumerFilter.json"))
        self.store.set_bitmap_of(self.filters.bitmap)
        self.broadcast_offsets = BroadcastOffsets(
            config, self.consumers, self.offsets, self.store, steady_clock
        )
        self.group_changes = GroupChanges(config, self.groups, self.consumers, self.call_soon)
        self.locks = QueueLocks()
        self.modes = MessageRequestModes(file("messageRequestMode.json"))
        self.registration = Registration(self.topics, self.configuration, clock, self.later)
        self.routes = TopicRoutes(
            self.registration.ask_route, lambda steps: self.walks.run(steps, _raise)
        )
        self.stats = BrokerStats(config.broker_cluster_name, self.topics.is_system, steady_clock())
        self.transaction_metrics = TransactionMetrics(file("transactionMetrics"), clock)
        self.intake = Intake(self.store, self.stats, self._transforms(store_config, steady_clock))
        self.after_durable = AfterDurable(self.intake, clock, self.call_soon)
        timer_metrics = TimerMetrics(file("timermetrics"), clock)
        self.timers = Timers(files, self.intake, timer_metrics, self.in_thread, self.patience)
        self.transaction_check = self._check()
        self.schedule = Schedule(
            self.delay_levels, self.intake, file("delayOffset.json"), clock, self.patience
        )
        self.config_copy = self._copy(steady_clock)
        self.polling = LongPolling(self.store, self.wake_soon, self.walks.timer)
        self.pop = self._pop(file("consumerOrderInfo.json"))
        self._join_group()

    def _make_store(
        self, store_config: StoreConfig, files: OsFiles, steady_clock: Callable[[], int]
    ) -> None:
        """Makes the store, and what copies it to others or from another one."""
        controlled = self.controlled
        self.store = MessageStore(
            store_config,
            files=files,
            policy=None if controlled is None else controlled.policy(store_config),
            new_rows=self._rows(),
        )
        self.store_services = StoreServices(self.store, self.write_in_thread)
        brokers = None if controlled is None else controlled.serve(self.store, files)
        self.master = Master(self.store, self.patience, steady_clock, self._soon_or_later, brokers)
        if not self.role.writes:
            self.slave = Slave(
                self.store,
                self.store_services.sync,
                steady_clock,
                self.call_soon,
                self.at_end_of_turn,
                new_follower=None if controlled is None else controlled.new_follower,
                chosen_master=None if controlled is None else controlled.master_address,
            )

    def _soon_or_later(self, delay_ms: float, call: Callable[[], None]) -> object:
        """Calls a function after some ms, or at the end of the turn."""
        return self.later(delay_ms, call) if delay_ms else self.at_end_of_turn(call)

    def _join_group(self) -> None:
        """Makes what this broker needs among others of its name."""
        config, store_config = self.config, self.store.config
        self.members = Members(config, self.registration)
        self.escape = Escape(config, self.registration.ask_route, self.steady_clock or self.clock)
        self.popped_elsewhere = PoppedElsewhere(self.registration.ask_route)
        self.strict_locks = StrictLocks(store_config.total_replicas, self.members.others)
        self.pre_online = PreOnline(
            config=config,
            acting=self.acting,
            registration=self.registration,
            members=self.members,
            master=self.master,
            slave=self.slave,
            offsets=self.offsets,
            delay_offsets=self.schedule.offsets,
            timers=self.timers,
        )
        revive = self.pop.revive
        revive.others.elsewhere = self.popped_elsewhere
        self.timer_escape = None
        if self.slave is not None and config.enable_remote_escape:
            escape = TimerEscape(self.timers, self.intake, revive, self.patience)
            self.timer_escape = escape
            for engine in (self.schedule, escape, self.transaction_check, revive):
                engine.escape, engine.escapes = self.escape, lambda: self.acting.acts
        if self.controlled is not None:
            self.controlled.register(self.registration)
        for each in (self.schedule, self.timers, self.transaction_check, self.pop.revive):
            each.rests = self.acting.rests

    def create_new_topics(self) -> None:
        """Creates topics that a slave that begins to act as master does not know yet."""
        self.walks.run(self.new_topics.create(), _raise)

    def _rows(self) -> Callable[[], PackedRows] | None:
        return None if self.kernel is None else self.kernel.new_rows

    def _transforms(self, store_config: StoreConfig, steady_clock: Callable[[], int]) -> Transforms:
        return all_transforms(
            self.config,
            self.topics,
            self.groups,
            self.locks,
            store_config,
            self.delay_levels,
            steady_clock,
            Others(
                self.transaction_metrics.add,
                self.stats.died,
                lambda due_ms: self.timers.rejected(due_ms),  # noqa: PLW0108 - made later
                lambda message: self.pop.takes(message),  # noqa: PLW0108
            ),
        )

    def _filters(self, file: JsonFile) -> ConsumerFilters:
        return ConsumerFilters(
            self.config,
            file,
            self.clock,
            lambda: max(self.clock(), self.store.flush.log_timestamp_ms),
            self.in_thread,
            lambda steps: self.walks.run(steps, _raise),
        )

    def _check(self) -> TransactionCheck:
        return TransactionCheck(
            self.config,
            self.intake,
            self.topics,
            self.offsets,
            Questions(self.producers, self.config.broker_name),
            self.transaction_metrics,
            self.after_durable,
            lambda: self.known_as.store_host,
            self.patience,
        )

    def _copy(self, steady_clock: Callable[[], int]) -> ConfigCopy | None:
        self.new_topics = NewTopics(self.topics, self.store)
        slave = self.slave
        if slave is None:
            return None
        tables = Tables(
            self.topics,
            self.groups,
            self.offsets,
            self.schedule.offsets,
            self.modes,
            self.timers,
            self.new_topics,
        )
        acting = self.acting
        return ConfigCopy(
            tables, lambda: None if acting.acts else slave.followed_address, steady_clock
        )

    def _pop(self, order_file: JsonFile) -> Pop:
        return Pop(
            config=self.config,
            order_file=order_file,
            intake=self.intake,
            after_durable=self.after_durable,
            topics=self.topics,
            groups=self.groups,
            offsets=self.offsets,
            stats=self.stats,
            clock=self.clock,
            store_host=lambda: self.known_as.store_host,
            call_soon=self.call_soon,
            patience=self.patience,
            timer=self.walks.timer,
        )


def _raise(error: Exception) -> None:
    raise error
